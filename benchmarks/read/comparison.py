"""Methods against a baseline, and against one another.

    difference    of regret and of log₁₀ regret, paired over the seeds both have, with a bootstrap 95 % interval
    test          Wilcoxon's signed ranks of the paired log₁₀ differences, and the size of the effect
    over tasks    the same where a unit is a task: the mean over the seeds that have it as their target
    ranks         the mean rank over (problem, seed) blocks, Friedman's test and Nemenyi's critical difference
    speed-up      evaluations until the mean regret reaches a level, the baseline's over the method's

All intervals are percentiles over 10,000 resamples of the seeds with replacement, the same ones at every call. They
say how much the mean could differ with other seeds; they are not corrected for the number of comparisons. The tests
are: p-values are Holm's over all comparisons of a method, so that the chance that any verdict on a method that is like
the baseline is wrong is at most 5 %, however many problems there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from benchmarks.read.analysis import Array, Cell, Results, marks
from benchmarks.read.sheet import Interval
from benchmarks.read.styles import is_table
from headstart.errors import InputError, NotComparableError

RESAMPLES = 10_000
ALPHA = 0.05
ENOUGH = 10  # pairs for a verdict: a test of a handful says little
OVERALL = "all problems"
_LEVELS = (0.025, 0.975)
# A log has no zero: lower regrets count as these. On a table 1e-4 is a ten-thousandth of its range.
_FLOOR, _TABLE_FLOOR = 1e-6, 1e-4
# Records hold ten digits: regrets closer than this are equal.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Difference:
    """Regret of ``method`` − regret of ``baseline`` after some evaluations; below 0 the method is better.

    ``log10`` is the same of log₁₀ regret: −1 is a regret ten times lower. A win is a lower regret on a seed.
    ``p_value`` is Wilcoxon's, Holm-corrected over all comparisons of the method; ``effect`` is the rank-biserial
    correlation: −1 where the method is better in every pair, 1 where it is worse in every pair.
    """

    problem: str
    method: str
    baseline: str
    evaluations: int
    pairs: int
    regret: Interval
    log10: Interval
    wins: int
    ties: int
    losses: int
    effect: float
    p_value: float

    @property
    def verdict(self) -> str:
        """Better or worse, where the corrected test says so and there are enough pairs; else nothing."""
        if self.pairs < ENOUGH or self.p_value >= ALPHA:
            return ""
        return "better" if self.effect < 0 else "worse"


def signed_ranks(differences: Array) -> tuple[float, float]:
    """Wilcoxon's two-sided p-value, and the rank-biserial correlation of paired differences.

        (Σ ranks of |d| with d > 0 − Σ ranks of |d| with d < 0) / Σ ranks        over the pairs with d ≠ 0

    Without such a pair they are 1 and 0.
    """
    moved = differences[np.abs(differences) > _TIE]
    if not len(moved):
        return 1.0, 0.0
    # what is equal up to the digits of a record shares its rank
    rank = stats.rankdata(np.round(np.abs(moved) / _TIE))
    effect = float((rank * np.sign(moved)).sum() / rank.sum())
    return float(stats.wilcoxon(np.round(moved / _TIE)).pvalue), effect


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's corrected p-values: the i-th smallest of m times m − i + 1, at most 1, and never below a smaller one's."""
    order = np.argsort(p_values, kind="stable")
    m = len(order)
    raised = np.maximum.accumulate([(m - i) * p_values[j] for i, j in enumerate(order)]) if m else np.empty(0)
    corrected = np.empty(m)
    corrected[order] = np.minimum(raised, 1.0)
    return tuple(float(p) for p in corrected)


def _corrected(found: Sequence[Difference]) -> tuple[Difference, ...]:
    """With p-values that are corrected over all comparisons of the same method."""
    of_method = {m: [i for i, d in enumerate(found) if d.method == m] for m in {d.method for d in found}}
    corrected = {
        i: p for own in of_method.values() for i, p in zip(own, holm([found[i].p_value for i in own]), strict=True)
    }
    return tuple(replace(d, p_value=corrected[i]) for i, d in enumerate(found))


@lru_cache(maxsize=8)
def resampling_weights(n: int, resamples: int, seed: int) -> Array:
    """How often each of n seeds is in a resample, divided by n: a mean over a resample is a row times the values."""
    draw = np.random.default_rng(seed)
    return np.asarray(draw.multinomial(n, np.full(n, 1 / n), size=resamples) / n)


def mean_interval(values: Array) -> Interval:
    """The mean of the values, one per seed, and its bootstrap interval."""
    low, high = np.quantile(resampling_weights(len(values), RESAMPLES, 0) @ values, _LEVELS)
    return Interval(float(values.mean()), float(low), float(high))


def ratio_interval(values: Array, over: Array) -> Interval:
    """The ratio of two means over the same seeds, and its bootstrap interval."""
    weights = resampling_weights(len(values), RESAMPLES, 0)
    low, high = np.quantile((weights @ values) / (weights @ over), _LEVELS)
    return Interval(float(values.mean() / over.mean()), float(low), float(high))


def pairs(results: Results, baseline: str) -> list[tuple[Cell, Cell, list[int]]]:
    """(method, baseline, common seeds) of every problem where there are any."""
    if baseline not in results.methods:
        there = ", ".join(results.methods) or "nothing"
        raise InputError(f"There are no runs of the baseline {baseline!r}. There are runs of {there}.")
    found = []
    for problem in results.problems:
        cells = results.on(problem)
        if baseline in cells:
            base = cells.pop(baseline)
            found += [(cell, base, sorted(set(cell.seeds) & set(base.seeds))) for cell in cells.values()]
    return [(cell, base, seeds) for cell, base, seeds in found if seeds]


def log_regret(problem: str, regret: ArrayLike) -> Array:
    """log₁₀ of regrets, those below the floor counting as the floor."""
    return np.asarray(np.log10(np.maximum(regret, _TABLE_FLOOR if is_table(problem) else _FLOOR)))


def differences(results: Results, baseline: str, at: Sequence[int] | None = None) -> tuple[Difference, ...]:
    """Every method against the baseline at ``at``, or at the marks both reached, on every problem."""
    found = []
    for cell, base, seeds in pairs(results, baseline):
        ours, theirs = cell.of(seeds), base.of(seeds)
        steps = min(cell.steps, base.steps)
        for n in marks(steps) if at is None else [n for n in at if n <= steps]:
            a, b = ours[:, n - 1], theirs[:, n - 1]
            logs = log_regret(cell.problem, a) - log_regret(cell.problem, b)
            found.append(_difference(cell.problem, cell.method, baseline, n, a - b, logs))
    return _corrected(found)


def over_tasks(results: Results, baseline: str, at: Sequence[int] | None = None) -> tuple[Difference, ...]:
    """Every method against the baseline over all problems together, where a unit is a task of a problem.

    Seeds with the same target are no independent evidence about tasks: their mean difference is one unit.
    """
    units: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for cell, base, seeds in pairs(results, baseline):
        ours, theirs, labels = cell.of(seeds), base.of(seeds), np.array(cell.tasks(seeds))
        steps = min(cell.steps, base.steps)
        logs = log_regret(cell.problem, ours[:, :steps]) - log_regret(cell.problem, theirs[:, :steps])
        for n in marks(steps) if at is None else [n for n in at if n <= steps]:
            regrets = ours[:, n - 1] - theirs[:, n - 1]
            for label in dict.fromkeys(labels.tolist()):
                own = labels == label
                units.setdefault((cell.method, n), []).append((regrets[own].mean(), logs[own, n - 1].mean()))
    return _corrected(
        [
            _difference(OVERALL, method, baseline, n, *np.array(values).T)
            for (method, n), values in sorted(units.items(), key=lambda item: results.methods.index(item[0][0]))
        ]
    )


def _difference(problem: str, method: str, baseline: str, n: int, regret: Array, logs: Array) -> Difference:
    """Of paired differences of regret and log regret; the p-value is not corrected."""
    wins, losses = int((regret < -_TIE).sum()), int((regret > _TIE).sum())
    p_value, effect = signed_ranks(logs)
    return Difference(
        problem=problem,
        method=method,
        baseline=baseline,
        evaluations=n,
        pairs=len(regret),
        regret=mean_interval(regret),
        log10=mean_interval(logs),
        wins=wins,
        ties=len(regret) - wins - losses,
        losses=losses,
        effect=effect,
        p_value=p_value,
    )


@dataclass(frozen=True, slots=True)
class Ranks:
    """Mean ranks over blocks, 1 the best; two methods differ where their ranks do by ``critical_difference`` or more.

    ``left_out`` are methods without runs on some problem. ``p_value`` is Friedman's for "all methods are alike".
    """

    methods: tuple[str, ...]
    mean_ranks: tuple[float, ...]
    blocks: int
    p_value: float
    critical_difference: float
    left_out: tuple[str, ...] = ()


def ranks(results: Results) -> Ranks:
    """Every (problem, seed) that all methods have is a block, in which the methods are ranked; ties share their rank.

    χ² = (k − 1) Σ_j (R_j − n(k+1)/2)² / (Σ r² − n k (k+1)²/4)     R_j the rank sums, k methods, n blocks
    CD = q √(k(k+1)/(6n))                                          q the 95 % point of the studentised range / √2
    """
    everywhere = [m for m in results.methods if all(m in results.on(p) for p in results.problems)]
    if len(everywhere) < 2:
        raise NotComparableError("Ranks need two methods with runs on every problem.")
    blocks = []
    for problem in results.problems:
        cells = [results.on(problem)[m] for m in everywhere]
        seeds = sorted(set.intersection(*(set(cell.seeds) for cell in cells)))
        n = min(cell.steps for cell in cells)
        if seeds:
            blocks.append(np.stack([cell.of(seeds)[:, n - 1] for cell in cells], axis=-1))
    if not blocks:
        raise NotComparableError("Ranks need seeds that all methods have, but there are none.")
    rank = stats.rankdata(np.round(np.concatenate(blocks) / _TIE), axis=-1)
    n, k = rank.shape
    spread = float((rank**2).sum() - n * k * (k + 1) ** 2 / 4)
    between = float(((rank.sum(0) - n * (k + 1) / 2) ** 2).sum())
    chi2 = (k - 1) * between / spread if spread > 0 else 0.0
    q = float(stats.studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2)
    return Ranks(
        methods=tuple(everywhere),
        mean_ranks=tuple(float(r) for r in rank.mean(0)),
        blocks=n,
        p_value=float(stats.chi2.sf(chi2, k - 1)),
        critical_difference=q * math.sqrt(k * (k + 1) / (6 * n)),
        left_out=tuple(m for m in results.methods if m not in everywhere),
    )


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """How many evaluations it takes until the mean regret is at most ``level``, and the baseline's over the method's.

    A level that is not reached takes ∞ evaluations: then the speed-up is 0 (never by the method), ∞ (never by the
    baseline, so more than ``steps`` / ``evaluations``) or not a number (never by both). The interval is over resamples
    in which at least one gets there.
    """

    problem: str
    method: str
    baseline: str
    level: float
    pairs: int
    steps: int
    evaluations: float
    baseline_evaluations: float
    ratio: Interval


def evaluations_to(level: float | Array, mean_regret: Array) -> Array:
    """The first n with mean regret ≤ level along the last axis, ∞ where there is none."""
    there = mean_regret <= np.asarray(level)[..., None]
    return np.where(there.any(-1), there.argmax(-1) + 1.0, np.inf)


def speed_ups(
    results: Results,
    baseline: str,
    level: float | None = None,
) -> tuple[SpeedUp, ...]:
    """Every method against the baseline; the level is the mean regret of the baseline at its end where not given.

    A level that is not given is found anew in every resample.
    """
    if level is not None and not level >= 0:
        raise InputError(f"The level is a regret and must not be negative, but it is {level}.")
    found = []
    for cell, base, seeds in pairs(results, baseline):
        ours, theirs = cell.of(seeds), base.of(seeds)
        n, n_base, goal = _needed(ours.mean(0), theirs.mean(0), level)
        weights = resampling_weights(len(seeds), RESAMPLES, 0)
        mine, its, _ = _needed(weights @ ours, weights @ theirs, level)
        with np.errstate(invalid="ignore"):  # ∞/∞ is not a number
            value, ratio = n_base / n, its / mine
        some = ratio[~np.isnan(ratio)]
        # not interpolated, for some may be infinite
        low, high = np.quantile(some, _LEVELS, method="inverted_cdf") if len(some) else (math.nan, math.nan)
        found.append(
            SpeedUp(
                problem=cell.problem,
                method=cell.method,
                baseline=baseline,
                level=float(goal),
                pairs=len(seeds),
                steps=base.steps,
                evaluations=float(n),
                baseline_evaluations=float(n_base),
                ratio=Interval(float(value), float(low), float(high)),
            )
        )
    return tuple(found)


def _needed(ours: Array, theirs: Array, level: float | None) -> tuple[Array, Array, Array]:
    """Evaluations of both until the level, and the level: where not given, what the baseline has at its end."""
    goal = theirs[..., -1] + 1e-12 if level is None else np.asarray(level, dtype=np.float64)
    return evaluations_to(goal, ours), evaluations_to(goal, theirs), goal
