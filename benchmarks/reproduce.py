"""The paper's experiments from a name to figures and tables: what ``python -m benchmarks reproduce`` does.

    name         in the paper                                            needs runs
    fig1         posteriors of the sequential models on Alpine           no
    fig2         single-source benchmarks                                yes
    fig3         training time and its complexity; source data, noise    yes
    fig4         multi-source benchmarks and the SVM table               yes
    one-dim      appendix: Forrester and Alpine                          yes
    runtime      appendix: seconds per step of the optimisation          yes
    ablation     appendix: source points × noise on Hartmann-6           yes
    order        not there: Alpine's five sources in both orders         yes
    gc3p         not there: GC3P with its authors' protocol (XGBoost)    yes, and a table in HEADSTART_DATA

Every name has a folder of its own: the figures as PNG, the tables in one Markdown file, and the regrets behind them in
one compressed CSV file. Runs go to a store, from which a rerun continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.queue import Failure, Unit, work_off
from benchmarks.read import analysis
from benchmarks.read.analysis import Results
from benchmarks.read.report import compare, origin_sheet, seconds_sheet, speed_sheets
from benchmarks.read.sheet import Sheet, write_series, write_sheets
from benchmarks.read.styles import is_table
from benchmarks.run.experiment import execute
from benchmarks.run.presets import preset
from benchmarks.store import Store
from benchmarks.timing import complexity
from benchmarks.timing.measurement import measured
from headstart.errors import InputError, MissingDataError

EXPERIMENTS: dict[str, str] = {
    "fig1": "Posteriors of source model, MHGP, BHGP and SHGP on Alpine",
    "fig2": "Single-source benchmarks: Branin, Hartmann-3, Hartmann-6",
    "fig3": "Training time, with its slopes; final regret against source data and noise on Hartmann-3",
    "fig4": "Multi-source benchmarks: Hartmann-6, Alpine, SVM",
    "one-dim": "One-dimensional benchmarks: Forrester, Alpine",
    "runtime": "Seconds per step of the optimisation against source data, Hartmann-6",
    "ablation": "Source data and noise on Hartmann-6",
    "order": "Alpine's five sources, the one most like the target first, and last",
    "gc3p": "GC3P on the XGBoost table with its authors' protocol",
}
_BASELINE = "gpbo"
_SHOWN = ("complexity", "regret", "speed-up", "ranks")  # the others are for the files
_PAPER_LEVEL = 0.01  # the regret at which the paper compares speeds on the SVM table


def possible() -> tuple[list[str], list[str]]:
    """The experiments that can be run here, and sentences about the others."""
    names = list(EXPERIMENTS)
    try:
        preset("gc3p")[0].problems[0].build()
    except MissingDataError as error:
        names.remove("gc3p")
        return names, [f"gc3p is left out. {error}"]
    return names, []


@dataclass(frozen=True, slots=True)
class HowToRun:
    """How an experiment is run, and who is told about it.

    ``full``: all methods have as many runs as in the paper. After ``seconds`` nothing new is begun.
    """

    runs: int | None = None
    quick: bool = False
    full: bool = False
    seconds: float = float("inf")
    device: str = "cpu"
    jobs: int = 1
    engine: str = "process"
    on_start: Callable[[int], None] = lambda _: None
    on_unit: Callable[[Unit, Exception | None], None] = lambda _unit, _error: None


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was written, the sheets that matter most, what could not be read, and which units failed."""

    files: tuple[Path, ...]
    sheets: tuple[Sheet, ...]
    remarks: tuple[str, ...] = ()
    failed: tuple[Failure, ...] = ()


def reproduce(name: str, out: Path, *, store: Path | None = None, work: HowToRun | None = None) -> Reproduction:
    """Run what is missing in ``store/name``, then write everything to ``out/name``; quick runs have their own folders.

    Figures and tables are made of what the store holds, also if some units failed.
    """
    if name not in EXPERIMENTS:
        raise InputError(f"There is no experiment {name!r}. The known ones are {', '.join(EXPERIMENTS)}, and all.")
    work = HowToRun() if work is None else work
    own = f"{name}-quick" if work.quick else name
    folder = out / own
    if name == "fig1":
        return _figure1(folder)
    experiments = preset(name, runs=work.runs, quick=work.quick, full=work.full)
    runs = Store((store or out) / own)
    failed = execute(
        experiments,
        runs,
        device=work.device,
        jobs=work.jobs,
        engine=work.engine,
        chunk=1 if name == "runtime" else None,
        seconds=work.seconds,
        on_start=work.on_start,
        on_unit=work.on_unit,
    )
    if not runs.path.is_file():
        return Reproduction((), (), (f"{name}: nothing was run in this time.",))
    loaded = analysis.load(runs.folder)
    problems = [spec.build().name for e in experiments for spec in e.problems]
    results = loaded.among(problems)
    timings = _timings(Store(runs.folder / "timing"), work) if name == "fig3" else ()
    files = _figures(name, results, folder, problems, timings)
    sheets = [*(complexity.complexity_sheets(timings) if timings else ()), *_sheets(name, results)]
    sheets.append(origin_sheet([runs.folder]))
    files.append(write_sheets(sheets, folder, name="tables", heading=EXPERIMENTS[name]))
    files.append(write_series(analysis.series(results), folder))
    shown = tuple(sheet for sheet in sheets if sheet.name in _SHOWN or name == "runtime")
    return Reproduction(tuple(files), shown, loaded.remarks, tuple(failed))


def write_study(out: Path, store: Path) -> Path:
    """``out/study.md``: how many runs of all experiments were made on what, and in how many hours."""
    folders = [store / name for name in EXPERIMENTS]
    return write_sheets([origin_sheet(folders)], out, name="study", heading="All experiments")


def _figures(
    name: str,
    results: Results,
    folder: Path,
    problems: Sequence[str],
    timings: Sequence[complexity.StepTiming],
) -> list[Path]:
    from benchmarks.read.figures import draw_ablation, draw_regret
    from benchmarks.timing.figures import draw_figure3, draw_runtime

    if name == "fig3":
        return [draw_figure3(timings, results, folder)]
    if name == "runtime":
        return [draw_runtime(results, folder)]
    if name == "ablation":
        return draw_ablation(results, folder)
    return draw_regret(results, folder, name, problems=problems)


def _sheets(name: str, results: Results) -> list[Sheet]:
    if name == "runtime":
        return [seconds_sheet(results)]
    sheets = [*analysis.table(results)]
    if _BASELINE in results.methods and len(results.methods) > 1:
        tables = results.among([p for p in results.problems if is_table(p)])
        sheets += compare(results, _BASELINE)
        if _BASELINE in tables.methods:
            sheets += speed_sheets(tables, _BASELINE, _PAPER_LEVEL)
    return [*sheets, seconds_sheet(results)]


def _figure1(folder: Path) -> Reproduction:
    from benchmarks.read.posterior_figure import compare_posteriors, draw_posteriors, posterior_sheet

    comparison = compare_posteriors()
    sheet = posterior_sheet(comparison)
    tables = write_sheets([sheet], folder, name="tables", heading=EXPERIMENTS["fig1"])
    return Reproduction((draw_posteriors(comparison, folder), tables), (sheet,))


def _timings(store: Store, work: HowToRun) -> tuple[complexity.StepTiming, ...]:
    """Those of this commit, one process at a time."""
    sizes, rounds = (complexity.QUICK_SIZES, 3) if work.quick else (complexity.SIZES, complexity.ROUNDS)
    units = complexity.step_timings(sizes, rounds)
    work_off(units, store, seconds=work.seconds, on_start=work.on_start, on_unit=work.on_unit)
    return complexity.timings_of(measured(store))
