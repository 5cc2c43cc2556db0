"""Small problems of every kind, for tests of methods."""

from __future__ import annotations

from benchmarks.problems.problem import Problem
from benchmarks.problems.shared_tables import svm_sklearn
from benchmarks.problems.table import TableProblem
from benchmarks.problems.transfer import SyntheticProblem


def small_problem(kind: str) -> Problem:
    """A function of numbers, one with categories, or a table."""
    match kind:
        case "family":
            return SyntheticProblem("branin", n_sources=2, source_points=6)
        case "mixed":
            return SyntheticProblem("roasting", n_sources=2, source_points=6)
    return TableProblem(svm_sklearn(), n_sources=2, rows=6)
