"""``headstart``: the commands. An input that cannot be used gives one line and exit code 2, never a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart import __version__
from headstart.cli.bench import bench
from headstart.cli.campaign import init, plot, status, suggest
from headstart.cli.output import errors_in_one_line
from headstart.cli.reproduce import reproduce

if TYPE_CHECKING:
    from rich.table import Table

    from headstart.bench.demo import DemoResult

__all__ = ["app"]

app = typer.Typer(
    name="headstart",
    help="Bayesian optimisation that starts from what you already measured.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


app.add_typer(bench)
app.command()(reproduce)
for command in (init, suggest, status, plot):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headstart {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Bayesian optimisation that starts from what you already measured."""


@app.command()
def demo(
    family: Annotated[
        str, typer.Option(help="Function family: forrester, alpine, alpine_c, branin, hartmann3 or hartmann6.")
    ] = "hartmann6",
    steps: Annotated[int, typer.Option(help="Evaluations of the target in every run.")] = 20,
    runs: Annotated[int, typer.Option(help="Random pairs of a source and a target task.")] = 3,
    source_points: Annotated[int, typer.Option(help="Measurements of the source task.")] = 60,
    noise: Annotated[
        float | None,
        typer.Option(help="Standard deviation of the noise.", show_default="the paper's: 0.1, and 1 for branin"),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Model that learns from the source: SHGP, BHGP, MHGP, HGP, WSGP, MTKGP, MTGP or RGPE.")
    ] = "SHGP",
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.")] = 0,
    out: Annotated[Path, typer.Option(help="Where the picture goes.")] = Path("headstart-demo.png"),
) -> None:
    """Optimise a task with the data of a related one, and from scratch: a table and a picture."""
    with errors_in_one_line():
        import torch
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        from headstart.bench.demo import Demo, run_demo
        from headstart.bench.figures import draw_demo, require_writable

        torch.set_num_threads(1)  # small matrices lose by threading
        settings = Demo(
            family=family, steps=steps, runs=runs, source_points=source_points, noise=noise, model=model, seed=seed
        )
        require_writable(out)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            bar = progress.add_task(f"{settings.problem.name}, both methods", total=settings.evaluations)
            result = run_demo(settings, on_step=lambda: progress.advance(bar))
        draw_demo(result, out)
        Console().print(_table(result))
        typer.echo(f"Picture: {out}")


def _table(result: DemoResult) -> Table:
    from rich import box
    from rich.table import Table

    demo = result.demo
    table = Table(
        title="Head start against from scratch",
        caption=f"{demo.problem.name}, noise {demo.noise_std:g}, {demo.source_points} source points; "
        f"{f'median of {demo.runs} runs' if demo.runs > 1 else 'one run'}; lower is better",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("")
    table.add_column("from scratch\n(GPBO)", justify="right")
    table.add_column(f"head start\n({demo.model.upper()})", justify="right", style="bold")
    for mark in result.marks:
        regrets = (f"{regret[mark - 1].item():.3g}" for regret in result.medians)
        table.add_row(f"regret after {mark} evaluation{'s' if mark > 1 else ''}", *regrets)
    table.add_section()
    counts = (f"> {demo.steps}" if n is None else str(n) for n in result.evaluations_to_match())
    table.add_row("evaluations for what scratch reached at the end", *counts)
    return table
