"""When does the past pay? The gain of a method against how alike past and target are, and against the budget.

    gain           log₁₀ regret of the baseline − that of the method, on the same task and seed: 1 is ten times lower
    correlation    Spearman's of the past and the target, over the rows of the target (500 random points of a function)
    budget         evaluations / number of the target's rows; functions have no rows

The past at a point is the mean over the sources of their standardised values there; the value of a source at a point is
the mean of the five of its rows that are nearest. So the correlation says how well the plainest use of the past would
order the target's candidates. It is computed from the problem, which a name in a store is enough to build again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from benchmarks.problems.adversarial import Scenario
from benchmarks.problems.problem import Instance, Problem, stream
from benchmarks.read.analysis import Array, Results
from benchmarks.read.comparison import log_regret, mean_interval, pairs
from benchmarks.read.sheet import Cellular, Sheet
from benchmarks.read.styles import is_table, settings_of, style
from benchmarks.run.experiment import ProblemSpec
from headstart.errors import HeadstartError

_NEAREST, _POINTS = 5, 500
CORRELATIONS = (-1.0, 0.0, 0.3, 0.6, 0.8, 1.0)  # ends of the bins
SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
_AFTER = 10  # evaluations after which the gain is set against the correlation, besides the last


def spec_of(problem: str) -> ProblemSpec:
    """The problem that has this name."""
    name, settings = settings_of(problem)
    spoilt = next((s for s in Scenario if s.value in problem.partition("[")[2].split(",")), Scenario.RELATED)
    sources = int(settings["sources"])
    if is_table(problem):
        own = {"svm_sklearn": "svm"}.get(name, name)
        return ProblemSpec(
            table=own,
            sources=sources,
            rows=None if settings["rows"] == "all" else int(settings["rows"]),
            in_turn="targets" in settings,
            repeats="repeats" in settings,
            spoilt=spoilt,
        )
    points, noise = int(settings["points"]), float(settings["noise"])
    return ProblemSpec(
        family=name, sources=sources, points=points, noise=noise, reverse="order" in settings, spoilt=spoilt
    )


@dataclass(frozen=True, slots=True)
class Relation:
    """How alike past and target of a seed are, and how many rows the target has (∞ for functions)."""

    correlation: float
    candidates: float


@cache
def relations(problem: str, seeds: tuple[int, ...], steps: int) -> dict[int, Relation]:
    """Of every seed of the problem with this name, in runs of so many steps; nothing where its table is not here."""
    try:
        built = spec_of(problem).build()
    except (HeadstartError, KeyError, ValueError):  # a table that is not here, or runs of something else
        return {}
    instance = built.draw(seeds, steps)
    return {seed: _relation(built, instance, i, seed) for i, seed in enumerate(seeds)}


def _relation(problem: Problem, instance: Instance, i: int, seed: int) -> Relation:
    if instance.candidates is not None:
        real = instance.candidates.real[i]
        X, values = instance.candidates.X[i, real], instance.candidates.values[i, real]
        candidates = float(len(X))
    else:
        assert instance.function is not None
        draw = stream(problem.name, seed, "relation")
        X = torch.rand(_POINTS, instance.d, generator=draw, dtype=torch.float64)
        X = X if instance.space is None else instance.space.snap(X)
        every = X.expand(len(instance.minimum), *X.shape)
        values, candidates = instance.function(every)[i], float("inf")
    past = torch.stack([nearest_mean(X, s.X[i], s.y[i]) for s in instance.sources]).mean(0)
    return Relation(spearman(past, values), candidates)


def nearest_mean(X: Float[Tensor, "m d"], rows: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> Float[Tensor, "m"]:
    """The mean of the standardised values at the five rows nearest to every point; a constant source is 0."""
    spread = y.std() if len(y) > 1 else y.new_zeros(())
    z = (y - y.mean()) / spread if spread > 0 else torch.zeros_like(y)
    nearest = torch.cdist(X, rows).topk(min(_NEAREST, len(y)), largest=False).indices
    return z[nearest].mean(-1)


def spearman(a: Float[Tensor, "m"], b: Float[Tensor, "m"]) -> float:
    """The rank correlation, 0 where one of them is constant."""
    ranks = np.stack([stats.rankdata(v.numpy()) for v in (a, b)])
    return float(np.corrcoef(ranks)[0, 1]) if (ranks.std(1) > 0).all() else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Gains:
    """Gains of one method at some evaluations, one per (problem, seed), with what they are set against."""

    gain: Array
    correlation: Array
    share: Array


def _gains(results: Results, baseline: str, method: str, n: int | None) -> _Gains:
    found: list[tuple[float, float, float]] = []
    for cell, base, seeds in pairs(results, baseline):
        steps = min(cell.steps, base.steps)
        at = steps if n is None else n
        related = relations(cell.problem, tuple(seeds), cell.steps) if cell.method == method and at <= steps else {}
        if not related:
            continue
        ours, theirs = (log_regret(cell.problem, c.of(seeds)[:, at - 1]) for c in (cell, base))
        for seed, gain in zip(seeds, (theirs - ours).tolist(), strict=True):
            found.append((gain, related[seed].correlation, at / related[seed].candidates))
    columns = np.array(found, dtype=np.float64).reshape(-1, 3).T
    return _Gains(*columns)


def relation_sheets(results: Results, baseline: str, at: Sequence[int]) -> tuple[Sheet, ...]:
    """The gain of every method in bins of the correlation, and in bins of the budget per candidate."""
    methods = [m for m in results.methods if m != baseline]
    name = style(baseline).label
    rows: list[tuple[Cellular, ...]] = []
    for n in sorted({min(_AFTER, at[-1]), at[-1]}):
        for method in methods:
            found = _gains(results, baseline, method, n)
            rows.append((style(method).label, n, *binned(found.gain, found.correlation, CORRELATIONS)))
    by_share: list[tuple[Cellular, ...]] = []
    for method in methods:
        every = [_gains(results, baseline, method, n) for n in at]
        gain, share = (np.concatenate([getattr(g, key) for g in every]) for key in ("gain", "share"))
        rows_only = share > 0
        by_share.append((style(method).label, *binned(gain[rows_only], share[rows_only], SHARES)))
    how = "mean with bootstrap 95 % interval (pairs); above 0 the method is better."
    sheets = (
        Sheet(
            name="correlation",
            title=f"Gain over {name} in log10 regret by the rank correlation of past and target",
            columns=("method", "after", *_bins(CORRELATIONS, "{:g}")),
            rows=tuple(rows),
            note=f"Correlation over the target's rows with what the nearest past rows had on average: {how}",
        ),
        Sheet(
            name="budget",
            title=f"Gain over {name} in log10 regret by evaluations per candidate",
            columns=("method", *_bins(SHARES, "{:.0%}")),
            rows=tuple(by_share),
            note=f"Tables alone, after {', '.join(map(str, at))} evaluations: {how}",
        ),
    )
    return tuple(sheet for sheet in sheets if any(any(row[1 - len(SHARES) :]) for row in sheet.rows))


def binned(gain: Array, against: Array, ends: Sequence[float]) -> tuple[str, ...]:
    """The mean gain in every bin (low, high] with its interval and how many there are; the lowest end is inside."""
    number = np.digitize(against, ends[1:-1], right=True)
    cells = []
    for i in range(len(ends) - 1):
        own = gain[number == i]
        cells.append(f"{mean_interval(own):.2f} ({len(own)})" if len(own) else "")
    return tuple(cells)


def _bins(ends: Sequence[float], form: str) -> tuple[str, ...]:
    return tuple(f"{form.format(low)} to {form.format(high)}" for low, high in pairwise(ends))
