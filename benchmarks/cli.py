"""``python -m benchmarks``: run experiments, read what they found, reproduce the paper. Parse, call, print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from benchmarks.display import interruptible, names, print_sheets, watching
from headstart.cli.main import Commands
from headstart.cli.output import errors_in_one_line, say
from headstart.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from benchmarks.queue import Failure, Unit
    from benchmarks.read.sheet import Series, Sheet
    from benchmarks.store import Run, Store
    from benchmarks.timing.measurement import Timing

app = typer.Typer(
    name="benchmarks",
    cls=Commands,
    help="Compare methods, measure what headstart takes, and reproduce the paper's figures.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ResultsFolder = Annotated[Path, typer.Argument(help="Where 'python -m benchmarks run' put its results.")]
Methods = Annotated[str | None, typer.Option(help="Only these, separated by commas: gpbo,shgp.")]
Problems = Annotated[str | None, typer.Option(help="Only these, separated by commas.")]
Marks = Annotated[list[int] | None, typer.Option(help="After how many evaluations; may be repeated.")]
OutFolder = Annotated[Path | None, typer.Option(help="Also write the tables, and the runs behind them, here.")]
Device = Annotated[str, typer.Option(help="cpu or cuda.")]
Jobs = Annotated[int, typer.Option(help="Units at once.")]
Engine = Annotated[str, typer.Option(help="process, or ray.")]
Minutes = Annotated[float, typer.Option(help="Begin nothing new after so many.", show_default="no limit")]
ReportOnly = Annotated[bool, typer.Option("--report-only", help="Run nothing, read the store.")]
StoreFolder = Annotated[Path, typer.Option(help="Folder of the runs.")]
Tables = Annotated[Path, typer.Option(help="Folder of the tables.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small sizes, to see that it works.")]


def _report(
    sheets: Sequence[Sheet], out: Path | None, *stores: Path, name: str, heading: str, series: Iterable[Series] = ()
) -> None:
    """Print the sheets; with a folder, write them as Markdown, how the stores' runs were made, and their regrets."""
    from benchmarks.read.report import origin_sheet
    from benchmarks.read.sheet import write_series, write_sheets

    print_sheets(sheets)
    if out is not None:
        sheets = [*sheets, origin_sheet(stores)]
        typer.echo(f"Written: {write_sheets(sheets, out, name=name, heading=heading)}")
        if every := list(series):
            typer.echo(f"Written: {write_series(every, out)}")


def _exit_if_any(failed: Sequence[Failure]) -> None:
    if failed:
        typer.echo(f"headstart: {len(failed)} units failed; a rerun tries them again.", err=True)
        raise typer.Exit(1)


def _work(what: str, units: Iterable[Unit], store: Store, *, jobs: int, minutes: float, device: str = "cpu") -> None:
    """Run the units under the live display."""
    from benchmarks.queue import work_off

    with interruptible(store.folder), watching(what) as watch:
        failed = work_off(units, store, device=device, jobs=jobs, seconds=60 * minutes, **watch)
    _exit_if_any(failed)


@app.command()
def run(
    preset: Annotated[str, typer.Argument(help="fig2, fig3, fig4, one-dim, compare, adversarial …")],
    methods: Methods = None,
    runs: Annotated[int | None, typer.Option(help="Random seeds per method.", show_default="the preset's")] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Evaluations of the target in a run.", show_default="the preset's")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="At most 5 runs and 15 evaluations.")] = False,
    device: Device = "cpu",
    jobs: Jobs = 1,
    engine: Engine = "process",
    chunk: Annotated[
        int | None, typer.Option(help="Seeds of a unit, which run in lockstep.", show_default="25; on a GPU 50")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.", show_default="out/PRESET")] = None,
) -> None:
    """Run what is not there yet: problems × methods × seeds. Stop it at any time; a rerun continues."""
    with errors_in_one_line():
        from benchmarks.run.experiment import execute
        from benchmarks.run.presets import requested
        from benchmarks.store import Store

        experiments = requested(preset, methods=names(methods), runs=runs, evaluations=evaluations, quick=quick)
        folder = out or Path("out") / preset
        say(Store(folder).read().remarks)
        with interruptible(folder), watching(preset) as watch:
            failed = execute(experiments, Store(folder), device=device, jobs=jobs, engine=engine, chunk=chunk, **watch)
        typer.echo(f"Results: {folder}. Look at them with: python -m benchmarks table|plot|compare {folder}")
        _exit_if_any(failed)


@app.command()
def table(folder: ResultsFolder, methods: Methods = None, at: Marks = None, out: OutFolder = None) -> None:
    """Mean ± standard error and median of the regret after 1, 5, 10, 20 and 30 evaluations."""
    with errors_in_one_line():
        from benchmarks.read import analysis

        results = analysis.load(folder)
        say(results.remarks)
        results = results.only(names(methods)) if methods else results
        sheets = analysis.table(results, analysis.require_marks(at))
        _report(sheets, out, folder, name="table", heading="Regret", series=analysis.series(results))


@app.command()
def compare(
    folder: ResultsFolder,
    baseline: Annotated[str, typer.Option(help="The method that the others are compared with.")] = "gpbo",
    methods: Methods = None,
    at: Marks = None,
    level: Annotated[
        float | None, typer.Option(help="Regret to reach, for the speed-up.", show_default="the baseline's last")
    ] = None,
    out: OutFolder = None,
) -> None:
    """Paired differences and tests, speed-ups, solve rates, profiles, when the past pays, ranks, wins and losses."""
    with errors_in_one_line():
        from benchmarks.read import analysis, figures, report

        results = analysis.load(folder)
        say(results.remarks)
        reference = baseline.lower()
        results = results.only((reference, *names(methods))) if methods else results
        sheets = report.compare(results, reference, at=analysis.require_marks(at), level=level)
        _report(sheets, out, folder, name="compare", heading=f"Against {reference}", series=analysis.series(results))
        for path in figures.draw_profiles(results, out) if out is not None else ():
            typer.echo(f"Picture: {path}")


@app.command()
def plot(
    folder: ResultsFolder,
    methods: Methods = None,
    out: Annotated[Path | None, typer.Option(help="Where the pictures go.", show_default="DIR itself")] = None,
) -> None:
    """Regret against evaluations, mean ± standard error and median with quantiles, and profiles, as PNG."""
    with errors_in_one_line():
        from benchmarks.read.analysis import load
        from benchmarks.read.figures import draw_profiles, draw_regret

        results = load(folder)
        say(results.remarks)
        results = results.only(names(methods)) if methods else results
        for path in (*draw_regret(results, out or folder), *draw_profiles(results, out or folder)):
            typer.echo(f"Picture: {path}")


@app.command()
def safety(
    folders: Annotated[list[Path], typer.Argument(help="Folders with runs of adversarial and compare.")],
    out: OutFolder = None,
) -> None:
    """Does AUTO do no harm where sources mislead, and how much of the head start does it keep where they help?"""
    with errors_in_one_line():
        from benchmarks.read.analysis import Results, load, series
        from benchmarks.read.safety import safety as sheets_of
        from benchmarks.read.safety import spoilt

        loaded = [load(folder) for folder in folders]
        results = Results(tuple(cell for part in loaded for cell in part.cells))
        for part in loaded:
            say(part.remarks)
        sheets = sheets_of(results)
        if not sheets:
            raise InputError("There are no runs of auto and gpbo to compare.")
        _report(sheets, out, *folders, name="tables", heading="Safety", series=series(spoilt(results)))


@app.command()
def calibration(
    folder: ResultsFolder,
    methods: Methods = None,
    by_problem: Annotated[bool, typer.Option("--by-problem", help="Also every problem on its own.")] = False,
    out: OutFolder = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw nominal against observed coverage: FILE.png.")] = None,
) -> None:
    """Are results where they were expected? Coverage of intervals and log density, by how many results were known."""
    with errors_in_one_line():
        from benchmarks.read import calibration as found_by

        found, remarks = found_by.load_forecasts(folder, names(methods))
        say(remarks)
        sheets = found_by.sheets(found, by_problem=by_problem)
        _report(sheets, out, folder, name="calibration", heading="Calibration")
        if plot is not None:
            from benchmarks.read.figures import draw_calibration

            typer.echo(f"Picture: {draw_calibration(found, plot)}")


@app.command()
def outcomes(
    problems: Problems = None,
    methods: Methods = None,
    runs: Annotated[int, typer.Option(help="Seeds of every problem and method.")] = 60,
    steps: Annotated[int, typer.Option(help="Evaluations of a run.")] = 20,
    jobs: Jobs = 1,
    minutes: Minutes = float("inf"),
    store: StoreFolder = Path("out/outcomes"),
    out: Tables = Path("results/outcomes"),
    report_only: ReportOnly = False,
) -> None:
    """Several outcomes, limits and rules: with a past, without one, and by others."""
    with errors_in_one_line():
        from benchmarks.outcomes import report
        from benchmarks.outcomes.methods import METHODS_COMPARED
        from benchmarks.outcomes.runs import OUTCOME_PROBLEMS, OutcomeUnit, fits
        from benchmarks.read.analysis import series
        from benchmarks.store import Store

        on, by = names(problems) or tuple(OUTCOME_PROBLEMS), names(methods) or tuple(METHODS_COMPARED)
        kept = Store(store)
        _require(runs=runs, steps=steps)
        # seed by seed: whoever stops early has equally many runs of each
        units = [OutcomeUnit(p, m, seed, steps) for seed in range(runs) for p in on for m in by if fits(p, m)]
        _work("outcomes", [] if report_only else units, kept, jobs=jobs, minutes=minutes)
        found = report.outcome_results([run for run in kept.read().runs if run.problem in on], steps=steps)
        sheets, heading = report.outcome_sheets(found), "Several outcomes, limits and rules"
        _report(sheets, out, store, name="outcomes", heading=heading, series=series(found))


@app.command()
def tuning(
    problems: Problems = None,
    methods: Methods = None,
    seeds: Annotated[int, typer.Option(help="How often every task is the target, each with its past.")] = 2,
    trials: Annotated[int, typer.Option(help="Trials of a run.")] = 20,
    pool: Annotated[int, typer.Option(help="Random trials per task, by which regrets are scaled.")] = 150,
    jobs: Jobs = 1,
    minutes: Minutes = float("inf"),
    store: StoreFolder = Path("out/tuning"),
    cache: Annotated[Path | None, typer.Option(help="Folder of what was trained.", show_default="~/.cache")] = None,
    out: Tables = Path("results/sampler"),
    report_only: ReportOnly = False,
) -> None:
    """TransferSampler and its rivals on fifteen small real tuning problems: is a head start worth it with Optuna?"""
    with errors_in_one_line():
        from benchmarks.read.analysis import series
        from benchmarks.store import Store

        with _needing_extras("The tuning problems"):
            from benchmarks.tuning import report
            from benchmarks.tuning.problems import PROBLEMS
            from benchmarks.tuning.runs import RIVALS, default_cache, tuning_units
        on, by, kept = names(problems) or tuple(PROBLEMS), names(methods) or tuple(RIVALS), Store(store)
        _require(seeds=seeds, trials=trials, pool=pool)
        units = tuning_units(on, by, seeds=seeds, trials=trials, pool=pool, cache=cache or default_cache())
        _work("tuning", [] if report_only else units, kept, jobs=jobs, minutes=minutes)
        runs = [run for run in kept.read().runs if run.problem in on]
        found = report.tuning_results(runs, trials=trials)
        sheets = report.tuning_sheets(found)
        _report(sheets, out, store, name="tuning", heading="Tuning with a past", series=series(found.results))


@app.command()
def verdicts(
    problems: Problems = None,
    seeds: Annotated[int, typer.Option(help="Pasts of every problem.")] = 12,
    jobs: Jobs = 1,
    minutes: Minutes = float("inf"),
    store: StoreFolder = Path("out/verdicts"),
    out: Tables = Path("results/verdicts"),
    report_only: ReportOnly = False,
) -> None:
    """Are AUTO's verdicts on sources decided, and right? On pasts of which it is known what each source is."""
    with errors_in_one_line():
        from benchmarks.store import Store
        from benchmarks.verdicts.report import verdict_sheet
        from benchmarks.verdicts.runs import CHECKING, CHOOSING, verdict_units

        _require(seeds=seeds)
        on, kept = names(problems) or (*CHOOSING, *CHECKING), Store(store)
        _work("verdicts", () if report_only else verdict_units(on, seeds), kept, jobs=jobs, minutes=minutes)
        sheets = [verdict_sheet([run for run in kept.read().runs if run.problem in on])]
        _report(sheets, out, store, name="verdicts", heading="Verdicts on sources")


@app.command()
def batches(
    problems: Problems = None,
    methods: Annotated[
        str | None, typer.Option(help="auto or gpbo, -named, -ignored or -centred, separated by commas.")
    ] = None,
    drifts: Annotated[str | None, typer.Option(help="What drifts: past, target, both, separated by commas.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Shifts in noise levels, separated by commas.", show_default="0,0.5,1,2,5")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Campaigns of every problem.")] = 40,
    quick: Quick = False,
    jobs: Jobs = 1,
    minutes: Minutes = float("inf"),
    store: StoreFolder = Path("out/batches"),
    out: Tables = Path("results/batches"),
    report_only: ReportOnly = False,
) -> None:
    """Is it worth it to name batches? Campaigns whose past, target or both have shifts between batches, put in."""
    with errors_in_one_line():
        from benchmarks.batches.problems import SIZES, STEPS, TABLES, Drift
        from benchmarks.batches.report import BatchRuns, batch_series, batch_sheets
        from benchmarks.batches.runs import METHODS, batch_problems, batch_units
        from benchmarks.store import Store

        _require(seeds=seeds)
        on, by, ways = names(problems) or batch_problems(), names(methods) or METHODS, names(drifts) or tuple(Drift)
        of = tuple(map(_number, names(sizes) or ())) or SIZES
        steps, kept = STEPS, Store(store)
        if quick:
            seeds, steps, on, ways, of = 1, 8, on[-1:], ways[-1:], (min(of), max(of))
        units = list(batch_units(on, by, ways, of, seeds, steps))
        if problems is None and (absent := [name for name in TABLES if name not in on]):
            say([f"Without the tables {', '.join(absent)}: HEADSTART_DATA does not name a folder that has them."])
        _work("batches", [] if report_only else units, kept, jobs=jobs, minutes=minutes)
        found = BatchRuns.of([run for run in kept.read().runs if run.problem in on], steps=steps)
        sheets = batch_sheets(found)
        _report(sheets, out, store, name="batches", heading="Batches", series=batch_series(found))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"--sizes are numbers of noise levels, such as 0,0.5,2, but one is {text!r}.") from error


@contextmanager
def _needing_extras(what: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what} need Optuna and scikit-learn ({error}): pip install 'headstart[demo]'."
        ) from error


def _require(**counts: int) -> None:
    if wrong := [f"--{name} must be at least 1, but it is {n}." for name, n in counts.items() if n < 1]:
        raise InputError(wrong[0])


@app.command()
def time(
    part: Annotated[Literal["fits", "sampler", "scale"], typer.Argument(help="What is timed.")],
    only: Annotated[str, typer.Option(help="Only what has this word in its name.")] = "",
    quick: Quick = False,
    jobs: Jobs = 1,
    minutes: Minutes = float("inf"),
    store: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="out/time-PART")] = None,
    out: Annotated[Path, typer.Option(help="Folder of the tables.")] = Path("out/speed"),
) -> None:
    """Seconds and memory, side by side with BoTorch and Optuna. What was measured with this commit is kept."""
    with errors_in_one_line():
        from benchmarks.store import Store
        from benchmarks.timing.measurement import measured, timing_sheets

        kept = Store(store or Path("out") / f"time-{part}{'-quick' * quick}")
        units: Iterable[Timing]
        sheets_of: Callable[[Sequence[Run]], Sequence[Sheet]] = timing_sheets
        with _needing_extras("The timings"):
            match part:
                case "fits":
                    from benchmarks.timing.fits import fit_timings

                    units = fit_timings(quick=quick)
                case "sampler":
                    from benchmarks.timing.sampler import sampler_timings

                    units = sampler_timings(quick=quick)
                case "scale":
                    from benchmarks.timing.scale import scale_sheets, scale_timings

                    units, sheets_of = scale_timings(quick=quick), scale_sheets
        wanted = [unit for unit in units if only in unit.what]
        _work(f"time {part}", wanted, kept, jobs=jobs, minutes=minutes)
        _report(sheets_of(measured(kept)), out, kept.folder, name=part, heading="Timings")


@app.command()
def sensitivity(
    folder: Annotated[Path, typer.Argument(help="Where the runs and the table go.")],
    jobs: Jobs = 1,
    minutes: Annotated[float, typer.Option(help="Begin nothing new after so many; 0 only reports.")] = 9.0,
    runs: Annotated[int, typer.Option(help="Seeds of every problem.")] = 8,
    steps: Annotated[int, typer.Option(help="Evaluations of a run.")] = 20,
    only: Annotated[str, typer.Option(help="Numbers whose name has this word.")] = "",
) -> None:
    """What halving and doubling each number of headstart.tuning changes."""
    with errors_in_one_line():
        from benchmarks.run import sensitivity as study
        from benchmarks.store import Store

        kept, wanted, until = Store(folder), list(study.variants(only)), monotonic() + 60 * minutes
        for seed in range(runs):
            left = (until - monotonic()) / 60
            if left > 0:
                units = study.units_of(seed, wanted, study.development_specs(), kept.read().runs, steps)
                _work(f"sensitivity, seed {seed}", units, kept, jobs=jobs, minutes=left)
        sheet = study.sensitivity_sheet(wanted, kept.read().runs)
        _report([sheet], folder, folder, name="table", heading="Numbers halved and doubled")


@app.command()
def robustness(
    problems: Annotated[int, typer.Option(help="How many.")] = 1200,
    first: Annotated[int, typer.Option(help="The number of the first one.")] = 0,
) -> None:
    """Can AUTO and GPBO be fitted and asked where data are odd? Exit code 1 if anything fails."""
    with errors_in_one_line():
        from benchmarks.run.robustness import failures

        n = 0
        for failure in failures(range(first, first + problems)):
            n += 1
            typer.echo(failure)
        typer.echo(f"{n} failures in {problems} problems")
        raise typer.Exit(n > 0)


@app.command()
def docs(check: Annotated[bool, typer.Option("--check", help="Write nothing, only say what differs.")] = False) -> None:
    """Write into README and docs what they quote from results/; with --check exit code 1 where they differ."""
    with errors_in_one_line():
        from benchmarks.read.quoted import renew

        where = renew(Path(), write=not check)
        typer.echo("\n".join((*where, f"{len(where)} quotations {'differ' if check else 'written anew'}.")))
        if check and where:
            raise typer.Exit(1)


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LIST|fig1|fig2|fig3|fig4|one-dim|runtime|ablation|order|gc3p|all",
            help="Which experiment; LIST says what they are.",
        ),
    ] = "LIST",
    runs: Annotated[
        int | None, typer.Option(help="Runs of the cheaper methods.", show_default="the paper's number, or 50")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Cheap methods, 5 runs, 15 evaluations, small sizes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="As many runs of all methods as the paper has.")] = False,
    device: Device = "cpu",
    jobs: Jobs = 1,
    engine: Engine = "process",
    minutes: Minutes = float("inf"),
    out: Annotated[Path, typer.Option(help="Folder of the figures and tables.")] = Path("out"),
    store: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="that of --out")] = None,
) -> None:
    """Run an experiment of the paper and write its figures and tables. Stop it at any time; a rerun continues."""
    with errors_in_one_line():
        from benchmarks.reproduce import EXPERIMENTS, HowToRun, possible, write_study
        from benchmarks.reproduce import reproduce as run

        if name.lower() == "list":
            for known, what in EXPERIMENTS.items():
                typer.echo(f"{known:<12} {what}")
            return
        failed: list[Failure] = []
        chosen, left_out = possible() if name == "all" else ([name], [])
        say(left_out)
        how, until = HowToRun(runs, quick, full, device=device, jobs=jobs, engine=engine), monotonic() + 60 * minutes
        for each in chosen:
            with interruptible(store or out), watching(each) as watch:
                done = run(each, out, store=store, work=replace(how, seconds=until - monotonic(), **watch))
            say(done.remarks)
            print_sheets(done.sheets)
            for path in done.files:
                typer.echo(f"Written: {path}")
            failed += done.failed
        if name == "all":
            path = write_study(out, store or out)
            typer.echo(f"Written: {path}")
        _exit_if_any(failed)
