"""What a campaign's data say: the fitted model, the next experiments, and what each of them rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.decide.domain import Mixed
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.models.botorch import TransferPosterior
from headstart.models.family import FAMILY
from headstart.models.model import TransferModel
from headstart.study.alignment import Alignment, align
from headstart.study.campaign import Campaign, State, repeat_spread
from headstart.study.campaign_file import TOML, nearest

__all__ = [
    "Fitted",
    "Suggestion",
    "fit_campaign",
    "model_named",
    "next_experiments",
    "noise_of",
    "reference_point",
    "rests_on",
]

# Half the width of an interval that holds 95 % of a normal distribution, in standard deviations
HALF_WIDTH = 1.96
# A noise below this share of the model's unit (about the spread of a task) is none: repeating teaches nothing
_NO_NOISE = 1e-2
_FAR = 1e3  # a coordinate so far off that nothing there is related to the unit cube


@dataclass(frozen=True, slots=True)
class Fitted:
    """A campaign's model. ``sign`` turns model values, which are minimised, into the user's."""

    campaign: Campaign
    alignment: Alignment
    model: TransferModel
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
        target = Dataset(space.encode([e.values for e in finished]), -y if file.maximize else y, "this campaign")
    else:
        target = Dataset.empty(space.d, name="this campaign")
    posterior = model.learn(alignment.datasets, seed=seed).condition(target, seed=seed)
    return Fitted(campaign, alignment, model, target, posterior)


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
    shares = rests_on(fitted, space.encode(rows))
    names = [*(d.name for d in fitted.alignment.datasets), "this campaign"]
    return tuple(
        Suggestion(row, float(m), HALF_WIDTH * float(s), tuple(zip(names, share, strict=True)))
        for row, m, s, share in zip(rows, mean, sd, shares.tolist(), strict=True)
    )


def _settable(campaign: Campaign, row: Mapping[str, Any], taken: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The row with as few digits as keep it apart from those that are taken."""
    for digits in range(3, 12):
        rounded = {p.name: p.rounded(row[p.name], digits) for p in campaign.file.parameters}
        if rounded not in taken:
            return rounded
    return dict(row)


def rests_on(fitted: Fitted, X: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """How much of what is known at X each past campaign and (last) this one contributes; every row sums to 1.

    The share of a task is by how much its data lower the variance at X, at the same hyperparameters: half of it as
    the only task with data, half as the last one to come, when the others have said all they can. Sources of a model
    that inherits means alone (MHGP) lower no variance, and have no share.
    """
    tasks = [*fitted.alignment.datasets, fitted.target]
    nobody = [_silenced(task) for task in tasks]
    gains = torch.zeros(len(X), len(tasks), dtype=torch.float64)
    if len(tasks) > 1:
        nothing, everything = _var(fitted, nobody, X), _var(fitted, tasks, X)
        for i, task in enumerate(tasks):
            if task.n > 0:
                alone = [t if j == i else silent for j, (t, silent) in enumerate(zip(tasks, nobody, strict=True))]
                others = [silent if j == i else t for j, (t, silent) in enumerate(zip(tasks, nobody, strict=True))]
                first = nothing - _var(fitted, alone, X)
                last = _var(fitted, others, X) - everything
                gains[:, i] = 0.5 * (first.clamp_min(0.0) + last.clamp_min(0.0))
    total = gains.sum(-1, keepdim=True)
    own = torch.zeros_like(gains)
    own[:, -1] = 1.0  # where nobody else has anything to say
    return torch.where(total > 0, gains / torch.where(total > 0, total, 1.0), own)


def _var(fitted: Fitted, tasks: Sequence[Dataset], X: Float[Tensor, "m d"]) -> Float[Tensor, "m"]:
    """The variance at X had the tasks these data."""
    posterior = fitted.model.at(fitted.posterior.hyperparameters, sources=tasks[:-1], target=tasks[-1])
    with torch.no_grad():
        return posterior.predict(X)[1]


def _silenced(task: Dataset) -> Dataset:
    """The task with a single observation, so far away that it says nothing here."""
    X = torch.full((1, task.d), _FAR, dtype=torch.float64)
    return Dataset(X, torch.zeros(1, dtype=torch.float64), task.name, unseen=task.unseen)


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
