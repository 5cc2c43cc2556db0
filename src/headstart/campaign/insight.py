"""What the models of a campaign say of their own: which parameters matter, shifts, how well results were predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.campaign.experiments import Experiment
from headstart.campaign.file import CampaignFile
from headstart.campaign.fitted import THIS, Fitted, FittedOutcome, Pooled, Range, own_results
from headstart.models.auto.explanation import Explanation
from headstart.models.batch_shifts import Shifts, shifts_of_posterior
from headstart.sources.alignment import Alignment
from headstart.sources.batches import Batches
from headstart.sources.parameters import Kind

_POINTS = 1024  # behind an importance: its error is then some hundredths
_MOST_PREDICTED = 60  # results that are predicted again, the latest ones: each takes a fit


@dataclass(frozen=True, slots=True)
class Importance:
    """How much of the variance of the prediction a parameter explains: ``alone``, and ``total`` with the others."""

    parameter: str
    alone: float
    total: float


def importances(fitted: Fitted, own: FittedOutcome, *, seed: int = 0) -> tuple[Importance, ...]:
    """The Sobol indices of the posterior mean over the points that may be suggested; the greatest total first.

    See ``sobol_indices``. Points keep the rules; one of which a parameter is exchanged need not.
    """
    domain = fitted.campaign.settings.domain(fitted.space)
    generator = torch.Generator().manual_seed(seed)
    A, B = (domain.spread(_POINTS, generator) for _ in range(2))
    B = B[torch.randperm(_POINTS, generator=generator)]  # two Sobol sets are alike point by point
    free = [p.name for p in fitted.campaign.file.parameters if p.kind is not Kind.FIXED]
    axes = fitted.space.by_name
    columns = [list(range(fitted.space.d))[axes[name].columns] for name in free]

    def mean(X: Float[Tensor, "m d"]) -> Float[Tensor, "m"]:
        with torch.no_grad():
            return own.posterior.predict(X)[0]

    alone, total = sobol_indices(mean, A, B, columns)
    found = [Importance(*each) for each in zip(free, alone.tolist(), total.tolist(), strict=True)]
    return tuple(sorted(found, key=lambda one: -one.total))


def named_shifts(
    found: Sequence[Shifts], file: CampaignFile, alignment: Alignment, sign: float, own: Sequence[Experiment] = ()
) -> tuple[Shifts, ...]:
    """Shifts of an outcome in the words of the files, and by their sign; ``own`` are the rows with a result of it."""
    every = {THIS: Batches.of([e.batch for e in own], drift=file.drift)}
    every |= {task.name: task.batch for task in alignment.tasks if task.batch is not None}
    return tuple(one.named(file.batch, every[one.task].names, sign) for one in found)


def own_shifts(own: FittedOutcome) -> tuple[Shifts, ...]:
    """The shifts between the batches of the campaign's own results; none where there are not several."""
    found = shifts_of_posterior(own.posterior, THIS)
    return named_shifts([found], own.campaign.file, own.alignment, own.sign, own.experiments) if found else ()


def every_shift(own: FittedOutcome, told: Explanation | None) -> tuple[Shifts, ...]:
    """The shifts of an outcome's results: of the campaign's own, and of the past as far as there is an explanation."""
    if told is None:
        return own_shifts(own)
    return named_shifts(told.shifts, own.campaign.file, own.alignment, own.sign, own.experiments)


def sobol_indices(
    f: Callable[[Float[Tensor, "m d"]], Float[Tensor, "m"]],
    A: Float[Tensor, "n d"],
    B: Float[Tensor, "n d"],
    columns: Sequence[Sequence[int]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """First-order and total Sobol indices of f, by Jansen's estimators.

        S_j = 1 − E[(f(B) − f(A_j))²] / (2 Var f)        T_j = E[(f(A) − f(A_j))²] / (2 Var f)

    A_j is A with the columns of parameter j from B. S_j is the share of the variance that is gone once j is known, T_j
    the share that is left when everything but j is known. Both lie between 0 and 1; where f is constant they are 0.

    Args:
        f: A function of points.
        A: Points.
        B: As many others, independent of them.
        columns: The columns of every parameter.

    Returns:
        S and T, a value for every parameter.
    """
    at_A, at_B = f(A), f(B)
    variance = torch.cat([at_A, at_B]).var(correction=0)
    first, total = [], []
    for own in columns:
        mixed = A.clone()
        mixed[:, own] = B[:, own]
        at = f(mixed)
        first.append(1 - 0.5 * (at_B - at).square().mean() / variance)
        total.append(0.5 * (at_A - at).square().mean() / variance)
    S, T = (torch.stack(each).nan_to_num(0.0, 0.0, 0.0).clamp(0.0, 1.0).numpy() for each in (first, total))
    return (S, T) if float(variance) > 0 else (np.zeros_like(S), np.zeros_like(T))


@dataclass(frozen=True, slots=True)
class Predicted:
    """Results, and what was expected of each of them before it was known."""

    experiments: tuple[Experiment, ...]
    measured: NDArray[np.float64]
    expected: Range[NDArray[np.float64]]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which results lie in their 95 % range."""
        return np.asarray((self.expected.low <= self.measured) & (self.measured <= self.expected.high))


def predicted(fitted: Fitted, own: FittedOutcome) -> Predicted:
    """Every result as it was predicted from the past and the results above it in the table (prequential).

    Of many results these are the latest; those are left out of which nothing was known before.
    """
    outcome, every = own.column.outcome, own_results(fitted.campaign, own.column, fitted.space)
    results, bounds = outcome.signed(every), outcome.signed_bounds
    found: list[tuple[Experiment, float, tuple[float, ...]]] = []
    for i in range(max(0, every.n - _MOST_PREDICTED), every.n):
        before = Pooled.of(results.head(i))
        posterior = own.prior.condition(before.data)
        posterior = posterior if bounds is None else posterior.within_bounds(bounds)
        then = replace(own, own=before, posterior=posterior).expected(every.X[i : i + 1], measured=True)
        if then is not None:
            found.append((own.experiments[i], float(own.values[i]), tuple(float(part[0]) for part in then)))
    experiments, measured, ranges = zip(*found, strict=True) if found else ((), (), ())
    parts = np.array(ranges, dtype=np.float64).reshape(len(found), 3).T
    return Predicted(tuple(experiments), np.array(measured, dtype=np.float64), Range(*parts))
