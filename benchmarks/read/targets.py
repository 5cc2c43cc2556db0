"""How many runs get within a regret of the best, and after how many evaluations.

    solve rate            the share of runs whose best value comes within the regret at all
    budget to target      evaluations until it does: the median over the runs, in which a run that does not takes ∞
    data profile          the share of (problem, seed) pairs solved within n evaluations
    performance profile   the share of pairs solved within τ times the evaluations of the best method on that pair

Profiles are over the pairs that all methods have, each pair counting once. A regret is that of ``analysis``: on tables
a share of the range of the target's values, on functions in the function's own units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.read.analysis import Array, Cell, Results, marks
from benchmarks.read.comparison import evaluations_to
from benchmarks.read.sheet import Cellular, Sheet, compact
from benchmarks.read.styles import style

TARGETS = (0.05, 0.01, 0.001)
FACTORS = (1.0, 1.5, 2.0, 4.0)  # τ of the performance profile


def budgets(cell: Cell, target: float) -> Array:
    """Evaluations of every run until its regret is at most the target, ∞ where it never is."""
    return evaluations_to(target, cell.regret)


def median_budget(needed: Array) -> float:
    """The lower median, which is the number of an actual run: ∞ where fewer than half of the runs get there."""
    return float(np.quantile(needed, 0.5, method="inverted_cdf"))


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Budgets (pairs,) to a target of every method on the (problem, seed) pairs that all of them have."""

    target: float
    steps: int
    budgets: Mapping[str, Array]
    left_out: tuple[str, ...]

    def within(self, method: str, evaluations: float | Array) -> Array:
        """Data profile: the share of pairs solved within so many evaluations."""
        return np.asarray((self.budgets[method][:, None] <= np.atleast_1d(evaluations)).mean(0))

    def near_the_best(self, method: str, factor: float | Array) -> Array:
        """Performance profile: the share of pairs solved within ``factor`` times the fewest evaluations of any."""
        best = np.min(list(self.budgets.values()), axis=0)
        solved = np.isfinite(self.budgets[method])
        limit = np.where(np.isfinite(best), best, 0.0)[:, None] * np.atleast_1d(factor)
        return np.asarray((solved[:, None] & (self.budgets[method][:, None] <= limit)).mean(0))


def profile(results: Results, target: float) -> Profile | None:
    """Of all methods with runs on every problem; None where no pair is common to two of them."""
    everywhere = [m for m in results.methods if all(m in results.on(p) for p in results.problems)]
    found: dict[str, list[Array]] = {m: [] for m in everywhere}
    shortest = []
    for problem in results.problems:
        cells = results.on(problem)
        common = sorted(set.intersection(*(set(cells[m].seeds) for m in everywhere))) if everywhere else []
        steps = min((cells[m].steps for m in everywhere), default=0)
        shortest.append(steps)
        for m in everywhere:
            found[m].append(evaluations_to(target, cells[m].of(common)[:, :steps]))
    together = {m: np.concatenate(parts) for m, parts in found.items()}
    if len(together) < 2 or not len(together[everywhere[0]]):
        return None
    out = tuple(m for m in results.methods if m not in everywhere)
    return Profile(target, max(shortest), together, out)


def target_sheets(results: Results) -> tuple[Sheet, ...]:
    """Solve rates and budgets for every problem and over all of them, and both profiles."""
    rows: list[tuple[Cellular, ...]] = []
    for problem in results.problems:
        for method, cell in results.on(problem).items():
            rows.append((problem, *_row(method, cell.regret[:, -1], [budgets(cell, t) for t in TARGETS])))
    solved = Sheet(
        name="targets",
        title="Regret at the end, and evaluations until a run is within a regret",
        columns=("problem", "method", "runs", "mean", "median", *(f"within {t:g}" for t in TARGETS)),
        rows=tuple(rows),
        note="Mean and median regret after the last evaluation; share of the runs that come within the regret · median "
        "of the evaluations they take, ∞ where fewer than half get there.",
    )
    profiles = [found for t in TARGETS if (found := profile(results, t)) is not None]
    return (solved, *_profile_sheets(results, profiles))


def _row(method: str, last: Array, needed: Sequence[Array]) -> tuple[Cellular, ...]:
    shares = (f"{np.isfinite(n).mean():.2f} · {_evaluations(median_budget(n))}" for n in needed)
    return (style(method).label, len(last), float(last.mean()), float(np.median(last)), *shares)


def _evaluations(n: float) -> str:
    return f"{n:.0f}" if np.isfinite(n) else "∞"


def _profile_sheets(results: Results, profiles: Sequence[Profile]) -> tuple[Sheet, ...]:
    sheets = []
    for found in profiles:
        at = marks(found.steps)
        n = len(next(iter(found.budgets.values())))
        out = f" Without runs on every problem: {', '.join(style(m).label for m in found.left_out)}."
        sheets.append(
            Sheet(
                name="profile",
                title=f"Share of {n} pairs (problem, seed) solved to a regret of {compact(found.target)}",
                columns=("method", *(f"after {k}" for k in at), *(f"{f:g} × best" for f in FACTORS)),
                rows=tuple(
                    (
                        style(m).label,
                        *(f"{share:.2f}" for share in found.within(m, np.array(at, dtype=np.float64))),
                        *(f"{share:.2f}" for share in found.near_the_best(m, np.array(FACTORS))),
                    )
                    for m in results.methods
                    if m in found.budgets
                ),
                note="Within so many evaluations (data profile), and within so many times the evaluations of the best "
                "method on that pair (performance profile); higher is better." + out * bool(found.left_out),
            )
        )
    return tuple(sheets)
