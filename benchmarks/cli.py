"""``python -m benchmarks``: run experiments, read what they found, reproduce the paper. Parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchmarks.display import interruptible, names, print_sheets, watching
from headstart.cli.main import Commands
from headstart.cli.output import errors_in_one_line, say
from headstart.errors import InputError

app = typer.Typer(
    name="benchmarks",
    cls=Commands,
    help="Compare methods on problems of the paper, or on your own table, and reproduce the paper's figures.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

ResultsFolder = Annotated[Path, typer.Argument(help="Where 'python -m benchmarks run' put its results.")]
Methods = Annotated[str | None, typer.Option(help="Only these, separated by commas: gpbo,shgp.")]


@app.command()
def run(
    what: Annotated[
        str | None, typer.Argument(metavar="[EXPERIMENT.toml|PRESET]", help="A file, or fig2, fig3, fig4, one-dim …")
    ] = None,
    table: Annotated[Path | None, typer.Option(help="A CSV or Parquet file of evaluations instead.")] = None,
    task: Annotated[str | None, typer.Option(help="Its column that names the task.")] = None,
    objective: Annotated[str | None, typer.Option(help="Its column with what is to be minimised.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="The objective is to be maximised.")] = False,
    log: Annotated[list[str] | None, typer.Option(help="A column with a log scale; may be repeated.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="A column to leave out; may be repeated.")] = None,
    sources: Annotated[int, typer.Option(help="Source tasks per run, of a table.")] = 10,
    rows: Annotated[int, typer.Option(help="Random rows of every source, of a table; 0 for all.")] = 60,
    methods: Methods = None,
    runs: Annotated[int | None, typer.Option(help="Random seeds per method.", show_default="the file's; 50")] = None,
    evaluations: Annotated[
        int | None, typer.Option(help="Evaluations of the target in a run.", show_default="the file's; 30")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="At most 5 runs and 15 evaluations.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Units at once.")] = 1,
    engine: Annotated[str, typer.Option(help="process, or ray.")] = "process",
    chunk: Annotated[
        int | None, typer.Option(help="Seeds of a unit, which run in lockstep.", show_default="25; on a GPU 200")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the results.", show_default="out/NAME")] = None,
) -> None:
    """Run what is not there yet: problems × methods × seeds. Stop it at any time; a rerun continues."""
    with errors_in_one_line():
        from benchmarks.run.execution import execute
        from benchmarks.run.experiment import ProblemSpec
        from benchmarks.run.requests import decisions, on_table, requested
        from benchmarks.store import Store

        chosen = names(methods)
        if (what is None) == (table is None):
            raise InputError("Say what to run: either a .toml file or a preset, or --table FILE.csv.")
        if table is None:
            if task or objective or maximize or log or ignore:
                raise InputError("--task, --objective, --maximize, --log and --ignore go with --table.")
            assert what is not None
            experiments = requested(what, methods=chosen, runs=runs, evaluations=evaluations, quick=quick)
        else:
            if task is None or objective is None:
                raise InputError(f"{table}: name its columns with --task COLUMN and --objective COLUMN.")
            spec = ProblemSpec(
                table=str(table),
                sources=sources,
                rows=rows,
                task=task,
                objective=objective,
                maximize=maximize,
                log=tuple(log or ()),
                ignore=tuple(ignore or ()),
            )
            experiments = on_table(
                spec,
                methods=chosen or ("random", "gpbo", "shgp"),
                runs=50 if runs is None else runs,
                evaluations=30 if evaluations is None else evaluations,
                quick=quick,
            )
        folder = out or Path("out") / experiments[0].name
        for experiment in experiments:
            say(decisions(experiment), at_most=None)
        say(Store(folder).read().remarks)
        with interruptible(folder), watching(experiments[0].name) as watch:
            execute(
                experiments,
                Store(folder),
                device=device,
                jobs=jobs,
                engine=engine,
                chunk=chunk,
                on_start=watch.on_start,
                on_unit=watch.on_unit,
            )
        typer.echo(f"Results: {folder}. Look at them with: python -m benchmarks table|plot|compare {folder}")
        if watch.failures:
            typer.echo(f"headstart: {len(watch.failures)} units failed; a rerun tries them again.", err=True)
            raise typer.Exit(1)


@app.command()
def table(
    folder: ResultsFolder,
    methods: Methods = None,
    at: Annotated[list[int] | None, typer.Option(help="After how many evaluations; may be repeated.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write CSV and Markdown into this folder.")] = None,
) -> None:
    """Mean ± standard error and median of the regret after 1, 5, 10, 20 and 30 evaluations."""
    with errors_in_one_line():
        from benchmarks.read.analysis import load, require_marks
        from benchmarks.read.analysis import table as sheets_of
        from benchmarks.read.sheet import write_sheets

        results = load(folder)
        say(results.remarks)
        results = results.only(names(methods)) if methods else results
        sheets = sheets_of(results, require_marks(at))
        print_sheets(sheets)
        if out is not None:
            for path in write_sheets(sheets, out, name="table", heading="Regret"):
                typer.echo(f"Written: {path}")


@app.command()
def compare(
    folder: ResultsFolder,
    baseline: Annotated[str, typer.Option(help="The method that the others are compared with.")] = "gpbo",
    methods: Methods = None,
    at: Annotated[list[int] | None, typer.Option(help="After how many evaluations; may be repeated.")] = None,
    level: Annotated[
        float | None, typer.Option(help="Regret to reach, for the speed-up.", show_default="the baseline's last")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write CSV and Markdown into this folder.")] = None,
) -> None:
    """Paired differences with bootstrap intervals, speed-ups, and ranks with a critical difference."""
    with errors_in_one_line():
        from benchmarks.read import report
        from benchmarks.read.analysis import load, require_marks
        from benchmarks.read.sheet import write_sheets

        results = load(folder)
        say(results.remarks)
        reference = baseline.lower()
        results = results.only((reference, *names(methods))) if methods else results
        sheets = report.compare(results, reference, at=require_marks(at), level=level)
        print_sheets(sheets)
        if out is not None:
            for path in write_sheets(sheets, out, name="compare", heading=f"Against {reference}"):
                typer.echo(f"Written: {path}")


@app.command()
def plot(
    folder: ResultsFolder,
    methods: Methods = None,
    out: Annotated[Path | None, typer.Option(help="Where the pictures go.", show_default="DIR itself")] = None,
) -> None:
    """Regret against evaluations, mean ± standard error and median with quantiles, as PNG and SVG."""
    with errors_in_one_line():
        from benchmarks.read.analysis import load
        from benchmarks.read.regret_figures import draw_regret

        results = load(folder)
        say(results.remarks)
        results = results.only(names(methods)) if methods else results
        for path in draw_regret(results, out or folder):
            typer.echo(f"Picture: {path}")


@app.command()
def safety(
    folders: Annotated[list[Path], typer.Argument(help="Folders with runs of adversarial, head-start and tables.")],
    out: Annotated[Path | None, typer.Option(help="Also write CSV and Markdown into this folder.")] = None,
) -> None:
    """Does AUTO do no harm where sources mislead, and how much of the head start does it keep where they help?"""
    with errors_in_one_line():
        from benchmarks.read.analysis import Results, load
        from benchmarks.read.report import write_regrets
        from benchmarks.read.safety import safety as sheets_of
        from benchmarks.read.sheet import write_sheets

        loaded = [load(folder) for folder in folders]
        results = Results(tuple(cell for part in loaded for cell in part.cells))
        for part in loaded:
            say(part.remarks)
        sheets = sheets_of(results)
        if not sheets:
            raise InputError("There are no runs of auto and gpbo to compare.")
        print_sheets(sheets)
        if out is not None:
            written = [*write_sheets(sheets, out, name="tables", heading="Safety"), write_regrets(results, out)]
            for path in written:
                typer.echo(f"Written: {path}")


@app.command()
def calibration(
    folder: ResultsFolder,
    methods: Methods = None,
    by_problem: Annotated[bool, typer.Option("--by-problem", help="Also every problem on its own.")] = False,
    out: Annotated[Path | None, typer.Option(help="Also write CSV and Markdown into this folder.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw nominal against observed coverage: FILE.png, and SVG beside it.")
    ] = None,
) -> None:
    """Are results where they were expected? Coverage of intervals and log density, by how many results were known."""
    with errors_in_one_line():
        from benchmarks.read.calibration import load_forecasts
        from benchmarks.read.calibration import sheets as sheets_of
        from benchmarks.read.sheet import write_sheets

        found, remarks = load_forecasts(folder, names(methods))
        say(remarks)
        sheets = sheets_of(found, by_problem=by_problem)
        print_sheets(sheets)
        if out is not None:
            for path in write_sheets(sheets, out, name="calibration", heading="Calibration"):
                typer.echo(f"Written: {path}")
        if plot is not None:
            from benchmarks.read.calibration_figure import draw_calibration

            for path in draw_calibration(found, plot):
                typer.echo(f"Picture: {path}")


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LIST|fig1|fig2|fig3|fig4|one-dim|runtime|ablation|order|gc3p|complexity|all",
            help="Which experiment; LIST says what they are.",
        ),
    ] = "LIST",
    runs: Annotated[
        int | None, typer.Option(help="Runs of the cheaper methods.", show_default="the paper's number, or 50")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Cheap methods, 5 runs, 15 evaluations, small sizes.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Units at once.")] = 1,
    engine: Annotated[str, typer.Option(help="process, or ray.")] = "process",
    out: Annotated[Path, typer.Option(help="Folder of the figures and tables.")] = Path("out"),
    store: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="that of --out")] = None,
) -> None:
    """Run an experiment of the paper and write its figures and tables. Stop it at any time; a rerun continues."""
    with errors_in_one_line():
        from benchmarks.reproduce import EXPERIMENTS, HowToRun, possible
        from benchmarks.reproduce import reproduce as run

        if name.lower() == "list":
            for known, what in EXPERIMENTS.items():
                typer.echo(f"{known:<12} {what}")
            return
        failed = 0
        chosen, left_out = possible() if name == "all" else ([name], [])
        say(left_out)
        for each in chosen:
            with interruptible(store or out), watching(each) as watch:
                work = HowToRun(
                    runs=runs,
                    quick=quick,
                    device=device,
                    jobs=jobs,
                    engine=engine,
                    on_start=watch.on_start,
                    on_unit=watch.on_unit,
                    on_timings=watch.on_timings,
                    on_timing=watch.on_timing,
                )
                done = run(each, out, store=store, work=work)
            say(done.remarks)
            print_sheets(done.sheets)
            for path in done.files:
                typer.echo(f"Written: {path}")
            failed += len(done.failed)
        if failed:
            typer.echo(f"headstart: {failed} units failed; a rerun tries them again.", err=True)
            raise typer.Exit(1)
