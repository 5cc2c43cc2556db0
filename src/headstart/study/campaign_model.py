"""What a campaign's data say: the fitted model, the next experiments, and what each of them rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.data.dataset import Dataset
from headstart.decide.domain import Mixed
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.models.botorch import TransferPosterior
from headstart.models.family import FAMILY
from headstart.models.model import Prior, TransferModel
from headstart.study.alignment import Alignment, align
from headstart.study.campaign import Campaign, State, repeat_spread
from headstart.study.campaign_file import TOML, nearest
from headstart.study.shares import shares

__all__ = [
    "HALF_WIDTH",
    "THIS",
    "Fitted",
    "Suggestion",
    "fit_campaign",
    "model_named",
    "next_experiments",
    "noise_of",
    "reference_point",
]

# Half the width of an interval that holds 95 % of a normal distribution, in standard deviations
HALF_WIDTH = 1.96
# A noise below this share of the model's unit (about the spread of a task) is none: repeating teaches nothing
_NO_NOISE = 1e-2
THIS = "this campaign"


@dataclass(frozen=True, slots=True)
class Fitted:
    """A campaign's model. ``sign`` turns model values, which are minimised, into the user's."""

    campaign: Campaign
    alignment: Alignment
    prior: Prior
    target: Dataset
    posterior: TransferPosterior

    @property
    def sign(self) -> float:
        """−1 where the user maximises."""
        return -1.0 if self.campaign.file.maximize else 1.0

    @property
    def noise_sd(self) -> float:
        """The standard deviation of a measurement, as the model sees it."""
        return float(self.posterior.likelihood.noise.squeeze().sqrt())

    def expected(
        self, rows: Sequence[Mapping[str, Any]], *, measured: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation in the user's units; ``measured`` adds the scatter of a measurement."""
        with torch.no_grad():
            mean, var = self.posterior.predict(self.alignment.space.encode(rows))
        sd = (var + (self.noise_sd**2 if measured else 0.0)).sqrt()
        return self.sign * mean.numpy(), sd.numpy()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An experiment to do: what to set, what to expect (± half of a 95 % interval), and what that rests on."""

    values: Mapping[str, Any]
    expected: float
    plus_minus: float
    shares: tuple[tuple[str, float], ...]  # of the past campaigns in order, and of this one


def model_named(name: str, where: str = TOML) -> TransferModel:
    """The model of that name, ready for past rows outside the present ranges."""
    if name.upper() not in FAMILY:
        raise InputError(f"{where}: there is no model {name!r}. {nearest(name, [known.lower() for known in FAMILY])}")
    model = FAMILY[name.upper()]
    return model.using(fit=replace(model.fit, unit_cube=False))


def fit_campaign(campaign: Campaign, *, seed: int = 0) -> Fitted:
    """Learn the past files, then the campaign's own results."""
    file = campaign.file
    model = model_named(file.model if campaign.past else "gpbo", str(campaign.folder / TOML))
    alignment = align(
        campaign.past,
        {p.name: p.distribution() for p in file.parameters},
        fill=file.fill,
        minimize=not file.maximize,
    )
    space, finished = alignment.space, campaign.those(State.FINISHED)
    if finished:
        y = np.array([e.result for e in finished])
        X = space.encode([e.values for e in finished])
        target = Dataset(X, -y if file.maximize else y, THIS, categories=space.categories)
    else:
        target = Dataset.empty(space.d, name=THIS, categories=space.categories)
    prior = model.learn(alignment.datasets, seed=seed)
    return Fitted(campaign, alignment, prior, target, prior.condition(target, seed=seed))


def next_experiments(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[Suggestion, ...]:
    """The n experiments that promise most, given those that are pending; failed ones are not asked for again."""
    if n < 1:
        raise InputError(f"The number of suggestions must be at least 1, but it is {n}.")
    campaign, space = fitted.campaign, fitted.alignment.space
    waiting = [e.values for e in (*campaign.those(State.PENDING), *campaign.those(State.FAILED))]
    deterministic = fitted.noise_sd < _NO_NOISE * float(fitted.posterior.units.scale)
    X = suggest(
        fitted.posterior,
        domain=Mixed(space),
        q=n,
        pending=space.encode(waiting) if waiting else None,
        avoid=fitted.target.X if deterministic and fitted.target.n else None,
        seed=seed,
    )
    X = X.reshape(n, space.d)
    taken = [*waiting, *(e.values for e in campaign.those(State.FINISHED) if deterministic)]
    rows: list[dict[str, Any]] = []
    for row in space.decode(X):
        rows.append(_settable(campaign, row, [*taken, *rows]))
    mean, sd = fitted.expected(rows, measured=True)
    each = shares(fitted.prior, fitted.posterior, space.encode(rows)).tolist()
    names = [*(d.name for d in fitted.alignment.datasets), THIS]
    return tuple(
        Suggestion(row, float(m), HALF_WIDTH * float(s), tuple(zip(names, share, strict=True)))
        for row, m, s, share in zip(rows, mean, sd, each, strict=True)
    )


def _settable(campaign: Campaign, row: Mapping[str, Any], taken: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The row with as few digits as keep it apart from those that are taken."""
    for digits in range(3, 12):
        rounded = {p.name: p.rounded(row[p.name], digits) for p in campaign.file.parameters}
        if rounded not in taken:
            return rounded
    return dict(row)


def reference_point(fitted: Fitted) -> dict[str, Any]:
    """The best finished experiment; before there is one, the settings with the best prediction among past rows.

    Past rows are moved into the present space first.
    """
    if (best := fitted.campaign.best) is not None:
        return dict(best.values)
    space = fitted.alignment.space
    known = [space.snap(d.X) for d in fitted.alignment.datasets]
    X = torch.cat(known) if known else space.snap(torch.rand(512, space.d, dtype=torch.float64))
    with torch.no_grad():
        mean, _ = fitted.posterior.predict(X)
    row = space.decode(X[mean.argmin()].unsqueeze(0))[0]
    return {p.name: p.rounded(row[p.name]) for p in fitted.campaign.file.parameters}


def noise_of(fitted: Fitted) -> tuple[float, int]:
    """The scatter of a measurement in the user's units: from repeats, with their number, or the model's guess and 0."""
    campaign = fitted.campaign
    finished = campaign.those(State.FINISHED)
    tasks: list[tuple[Sequence[Mapping[str, Any]], Sequence[float]]] = [
        ([e.values for e in finished], [e.result for e in finished])
    ]
    tasks += [(task.rows.to_dict("records"), task.y.tolist()) for task in campaign.past]
    return repeat_spread(tasks) or (fitted.noise_sd, 0)
