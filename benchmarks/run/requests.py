"""What somebody asks to be run, as experiments: a TOML file, a preset, or a table; and what was decided about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.problems.columns import Column, ColumnKind, some
from benchmarks.problems.table import TableProblem
from benchmarks.run.experiment import BenchExperiment, ProblemSpec, read_experiment
from benchmarks.run.presets import PRESETS, preset
from headstart.errors import InputError


def requested(
    what: str,
    *,
    methods: Sequence[str] = (),
    runs: int | None = None,
    evaluations: int | None = None,
    quick: bool = False,
) -> tuple[BenchExperiment, ...]:
    """The experiments of a TOML file or a preset, with other methods, runs or evaluations where those are given."""
    if what.endswith(".toml"):
        experiments: tuple[BenchExperiment, ...] = (read_experiment(Path(what)),)
        experiments = tuple(e.quick(5, 15) for e in experiments) if quick else experiments
        experiments = experiments if runs is None else tuple(replace(e, runs=runs) for e in experiments)
    elif what in PRESETS:
        experiments = preset(what, runs=runs, quick=quick)
    else:
        raise InputError(f"{what!r} is neither a .toml file nor a preset. The presets are {', '.join(PRESETS)}.")
    if methods:
        experiments = tuple(replace(e, methods=tuple(methods)) for e in experiments)
    return experiments if evaluations is None else tuple(replace(e, steps=evaluations) for e in experiments)


def on_table(
    spec: ProblemSpec, *, methods: Sequence[str], runs: int, evaluations: int, quick: bool = False
) -> tuple[BenchExperiment, ...]:
    """The paper's protocol on a table: the candidates are the target's own rows, none is evaluated twice."""
    name = Path(spec.table or "").name.partition(".")[0]
    experiment = BenchExperiment(name=name, problems=(spec,), methods=tuple(methods), runs=runs, steps=evaluations)
    return (experiment.quick(5, 15) if quick else experiment,)


def decisions(experiment: BenchExperiment) -> list[str]:
    """Sentences about every table of the experiment: how its columns are read, what is left out, what is ambiguous."""
    lines: list[str] = []
    for spec in experiment.problems:
        problem = spec.build()
        if not isinstance(problem, TableProblem):
            continue
        table = problem.table
        sizes = sorted(data.n for data in table.tasks.values())
        rows = str(sizes[0]) if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
        lines.append(f"{problem.name}: {len(sizes)} tasks of {rows} rows.")
        lines.append(f"Inputs: {', '.join(map(_described, table.columns))}.")
        if Path(spec.table or "").suffix:  # a file of the user's
            lines.append(f"{spec.objective} is {'maximised' if spec.maximize else 'minimised'}.")
        lines += [*table.report, *problem.notes]
        short = [name for name, data in table.tasks.items() if data.n < experiment.steps]
        if len(short) == len(sizes):
            raise InputError(
                f"{problem.name}: no task has the {experiment.steps} rows to evaluate; the longest has {sizes[-1]}. "
                "Ask for fewer evaluations."
            )
        if short:
            lines.append(
                f"Tasks that are no targets, for they have fewer than {experiment.steps} rows: "
                f"{len(short)} ({some(short)})."
            )
    return lines


def _described(column: Column) -> str:
    if column.kind is ColumnKind.CATEGORICAL:
        return f"{column.name} (categorical, {len(column.levels)} levels)"
    scale = "log" if column.kind is ColumnKind.LOG else "numeric"
    return f"{column.name} ({scale}, {column.low:g} to {column.high:g})"
