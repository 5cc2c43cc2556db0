"""A table problem by name: the one that comes with headstart, a shared one, or a file of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from headstart.bench.problems.shared_tables import SHARED, shared_problem
from headstart.bench.problems.svm_table import svm_sklearn
from headstart.bench.problems.table import Table, TableProblem, read_table

__all__ = ["table_problem"]


@cache
def _file(path: str, task: str, objective: str, maximize: bool, log: tuple[str, ...], ignore: tuple[str, ...]) -> Table:
    return read_table(path, task=task, objective=objective, maximize=maximize, log=log, ignore=ignore)


@cache
def table_problem(
    name: str,
    *,
    sources: int | None = None,
    rows: int | None = 60,
    task: str = "task",
    objective: str = "objective",
    maximize: bool = False,
    log: Sequence[str] = (),
    ignore: Sequence[str] = (),
    in_turn: bool = False,
    repeats: bool = False,
) -> TableProblem:
    """``svm``, a name of ``shared_tables.SHARED``, or the path of a CSV or Parquet file."""
    if name in SHARED:
        return shared_problem(name, n_sources=sources, rows=rows, in_turn=in_turn, repeats=repeats)
    svm = name == "svm"
    table = svm_sklearn() if svm else _file(name, task, objective, maximize, tuple(log), tuple(ignore))
    n_sources = 10 if sources is None else sources
    return TableProblem(table, n_sources=n_sources, rows=rows, in_turn=in_turn, repeats=repeats)
