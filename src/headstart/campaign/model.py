"""What a campaign's data say: the fitted model, the next experiments, and what each of them rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from headstart.campaign.campaign import Campaign, State, repeat_spread
from headstart.campaign.file import TOML
from headstart.data.dataset import Dataset
from headstart.decide.domain import Mixed
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.models.auto.reasons import shares
from headstart.models.botorch import TransferPosterior
from headstart.models.family import model_named
from headstart.models.model import Prior
from headstart.sources.aligned import Alignment
from headstart.sources.alignment import align
from headstart.sources.extremes import outliers_in_words, own_outliers, with_outliers

__all__ = [
    "LEVEL",
    "THIS",
    "ExpectedResults",
    "Fitted",
    "Suggestion",
    "fit_campaign",
    "next_experiments",
    "noise_of",
    "reference_point",
]

# Of 20 results 19 should lie in the intervals that are stated
LEVEL = 0.95
# A noise below this share of the model's unit (about the spread of a task) is none: repeating teaches nothing
_NO_NOISE = 1e-2
THIS = "this campaign"


@dataclass(frozen=True, slots=True)
class ExpectedResults:
    """What is expected at some settings, in the user's units: the medians, and the ends of 95 % intervals."""

    median: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def errors(self) -> NDArray[np.float64]:
        """How far the ends lie from the medians, below and above: what Matplotlib's error bars take."""
        return np.stack([self.median - self.low, self.high - self.median])


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
    def knows(self) -> bool:
        """Whether anything can be said about a result: from a past that is listened to, or from two results."""
        return not bool(self.posterior.knows_nothing)

    @property
    def deterministic(self) -> bool:
        """Whether results hardly scatter, compared with how much they vary."""
        return float(self.posterior.predictor.noise_var) < _NO_NOISE**2

    def expected(self, rows: Sequence[Mapping[str, Any]], *, measured: bool = False) -> ExpectedResults | None:
        """What is expected of the true values, or (``measured``) of results; None where nothing is known."""
        if not self.knows:
            return None
        X = self.alignment.space.encode(rows)
        with torch.no_grad():
            found = (
                self.posterior.quantile(X, 0.5, noise=measured),
                *self.posterior.interval(X, LEVEL, noise=measured),
            )
        median, one, other = (self.sign * part.numpy() for part in found)
        return ExpectedResults(median, np.minimum(one, other), np.maximum(one, other))

    @property
    def outliers(self) -> NDArray[np.bool_]:
        """Which of the campaign's own results lie far from all others."""
        return own_outliers(self.prior, self.target)

    @property
    def ordinary_past(self) -> tuple[tuple[pd.DataFrame, NDArray[np.float64]], ...]:
        """Settings and results of every past campaign, outliers left out."""
        used, masks = self.alignment, self.prior.outliers or [torch.zeros(d.n) > 0 for d in self.alignment.datasets]
        kept = [np.array(rows)[~mask.numpy()] for rows, mask in zip(used.rows, masks, strict=True)]
        return tuple((task.rows.iloc[rows], task.y[rows]) for task, rows in zip(used.tasks, kept, strict=True))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be looked at in the campaign's own results."""
        finished = self.campaign.those(State.FINISHED)
        values, numbers = [e.result for e in finished], [e.number for e in finished]
        far = outliers_in_words(self.prior, self.target, values, numbers, "row")
        return (f"{self.campaign.table.path}: {far}",) if far else ()

    def scatter(self, row: Mapping[str, Any]) -> float:
        """The standard deviation of a measurement at these settings, in the user's units.

        Behind an output map it depends on how large the results are.
        """
        posterior = self.posterior
        with torch.no_grad():
            sd = posterior.predictor.noise_var.sqrt() * posterior.units.scale
            if (warp := posterior.warp) is None:
                return float(sd)
            middle = warp.inward(posterior.quantile(self.alignment.space.encode([row]), 0.5, noise=False))
            return float((warp.outward(middle + sd) - warp.outward(middle - sd)).squeeze() / 2)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An experiment to do: what to set, what to expect, and what that rests on.

    ``expected`` is the median of the result, and between ``low`` and ``high`` it will be with 95 % probability; NaN
    where nothing is known.
    """

    values: Mapping[str, Any]
    expected: float
    low: float
    high: float
    shares: tuple[tuple[str, float], ...]  # of the past campaigns in order, and of this one


@single_thread()
def fit_campaign(campaign: Campaign, *, seed: int = 0) -> Fitted:
    """Learn the past files, then the campaign's own results."""
    file = campaign.file
    model = model_named(file.model if campaign.past else "gpbo", where=str(campaign.folder / TOML)).anywhere()
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
    return Fitted(campaign, with_outliers(alignment, prior), prior, target, prior.condition(target, seed=seed))


@single_thread()
def next_experiments(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[Suggestion, ...]:
    """The n experiments that promise most, given those that are pending; failed ones are not asked for again."""
    if n < 1:
        raise InputError(f"The number of suggestions must be at least 1, but it is {n}.")
    campaign, space = fitted.campaign, fitted.alignment.space
    waiting = [e.values for e in (*campaign.those(State.PENDING), *campaign.those(State.FAILED))]
    deterministic = fitted.deterministic
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
    nothing = np.full(n, np.nan)
    found = fitted.expected(rows, measured=True) or ExpectedResults(nothing, nothing, nothing)
    each = shares(fitted.prior, fitted.posterior, space.encode(rows)).tolist()
    names = [*(d.name for d in fitted.alignment.datasets), THIS]
    return tuple(
        Suggestion(row, float(median), float(low), float(high), tuple(zip(names, share, strict=True)))
        for row, median, low, high, share in zip(rows, found.median, found.low, found.high, each, strict=True)
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

    Past rows are moved into the present space first. Without any it is the middle of the space.
    """
    if (best := fitted.campaign.best) is not None:
        return dict(best.values)
    space = fitted.alignment.space
    known = [space.snap(d.X) for d in fitted.alignment.datasets]
    X = torch.cat(known) if known else space.snap(torch.full((1, space.d), 0.5, dtype=torch.float64))
    with torch.no_grad():
        median = fitted.posterior.quantile(X, 0.5, noise=False)
    row = space.decode(X[median.argmin()].unsqueeze(0))[0]
    return {p.name: p.rounded(row[p.name]) for p in fitted.campaign.file.parameters}


def noise_of(fitted: Fitted) -> tuple[float, int]:
    """The scatter of a measurement in the user's units: from repeats, with their number, or the model's guess and 0.

    The guess is that at the reference point; NaN where nothing is known. Outliers do not count.
    """
    campaign = fitted.campaign
    kept = [e for e, far in zip(campaign.those(State.FINISHED), fitted.outliers, strict=True) if not far]
    tasks: list[tuple[Sequence[Mapping[str, Any]], Sequence[float]]] = [
        ([e.values for e in kept], [e.result for e in kept]),
        *((rows.to_dict("records"), y.tolist()) for rows, y in fitted.ordinary_past),
    ]
    return repeat_spread(tasks) or (fitted.scatter(reference_point(fitted)) if fitted.knows else math.nan, 0)
