"""``headstart demo``: the main job, on a machine that is really trained. Parse, call, print."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.arguments import command
from headstart.cli.output import say, show, table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from headstart.demo.demo import Demo, DemoResult, OnTrial, Start


@command
def demo(
    data: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What the machine is tuned on: cancer, digits, iris or wine; the past is the others."
        ),
    ] = "cancer",
    trials: Annotated[int, typer.Option(metavar="N", help="Trials of every run.")] = 20,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of either kind, side by side.")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Two runs of ten trials.")] = False,
    model: Annotated[str, typer.Option(metavar="NAME", help="Model that learns from the past.")] = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="Equal seeds give equal results.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the picture goes.")] = Path("headstart-demo.png"),
) -> None:
    """Tune a support vector machine with past runs and from scratch.

    It prints a table and saves a picture. The machine is trained and tested at every trial, on one of four data sets of
    scikit-learn; the past are trials on the other three. The README says how it goes on many others.
    """
    from rich.console import Console

    from headstart.demo.demo import Demo, run_demo
    from headstart.demo.figure import draw_demo, require_writable
    from headstart.gp.threads import single_thread

    if quick:
        trials, runs = 10, 2
    settings = Demo(data_set=data, trials=trials, runs=runs, model=model, seed=seed)
    require_writable(out)
    typer.echo(
        f"Tuning a support vector machine (cost, gamma, degree, kernel) on scikit-learn's {settings.described}: "
        f"{trials} trials, {'one run' if runs == 1 else f'{runs} runs'} of either kind.\n"
        f"The head start: {settings.past_trials} past trials on each of {', '.join(settings.sources)}.",
        err=True,
    )
    with single_thread(), _told_afterwards(), _two_lines(settings, Console(stderr=True)) as tell:
        result = run_demo(settings, on_trial=tell)
    if result.trials:
        draw_demo(result, out)
        show(_table(result))
        typer.echo(f"{result.verdict()}\n{_best(result)}\nPicture: {out}")
    if result.interrupted:
        kept = f"{result.trials} of {trials} trials of every run are above" if result.trials else "Nothing to show"
        typer.echo(f"Interrupted. {kept}.", err=True)
        raise typer.Exit(130)


@contextmanager
def _told_afterwards() -> Iterator[None]:
    """Warnings are kept until the live lines have ended, and then told once each, with how often they came.

    Optuna also tells of every new study, and a sampler of what it explains when it is asked: not here.
    """
    import optuna

    kept = BufferingHandler(capacity=1_000_000)
    kept.setLevel(logging.WARNING)
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.WARNING)
    optuna.logging.disable_default_handler()
    loggers = [logging.getLogger(name) for name in ("headstart", "optuna")]
    for logger in loggers:
        logger.addHandler(kept)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(kept)
        optuna.logging.enable_default_handler()
        optuna.logging.set_verbosity(before)
        counts = Counter(record.getMessage() for record in kept.buffer)
        told = [one for one in counts.items() if not one[0].endswith("(see sampler.explain())")]  # nobody has one here
        say((f"{text} ({n} times)" if n > 1 else text for text, n in told), every=True)


@contextmanager
def _two_lines(demo: Demo, console: Console) -> Iterator[OnTrial]:
    """A live line for either kind: trials done, the lowest error so far (median of the runs), the time left."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from headstart.demo.demo import Start

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("trial {task.fields[trial]} of {task.fields[of]}"),
        TextColumn("{task.fields[error]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, speed_estimate_period=60) as progress:
        names = {Start.SCRATCH: "from scratch (GPBO)", Start.HEAD_START: f"head start ({demo.model_name})"}
        width = max(map(len, names.values()))
        total = demo.trials * demo.runs
        bars = {
            start: progress.add_task(f"{name:<{width}}", total=total, trial=0, of=demo.trials, error="")
            for start, name in names.items()
        }

        def show(start: Start, done: int, error: float) -> None:
            trial = (done - 1) // demo.runs + 1
            progress.update(bars[start], completed=done, trial=trial, error=f"error {error:.2%}")

        yield show


def _table(result: DemoResult) -> Table:
    demo = result.demo
    runs = f"median of {demo.runs} runs" if demo.runs > 1 else "one run"
    columns = (f"{runs}; lower is better", "from scratch (GPBO)", f"head start ({demo.model_name})")
    rows = [
        (f"after {n} trial{'s' if n > 1 else ''}", *(f"{median[n - 1].item():.2%}" for median in result.medians))
        for n in result.marks
    ]
    counts = (f"> {result.trials}" if n is None else str(n) for n in result.trials_to_match())
    rows.append(("trials to what scratch reached at the end", *counts))
    return table(f"Lowest cross-validated error on {demo.described}", columns, rows, left=columns[:1])


def _best(result: DemoResult) -> str:
    assert result.best is not None
    start, params = result.best
    lowest = min(result.scratch.min().item(), result.head_start.min().item())
    shown = {name: f"{value:.3g}" if isinstance(value, float) else value for name, value in params.items()}
    values = ", ".join(f"{name} {value}" for name, value in shown.items())
    return f"Best of all: {lowest:.2%} with {values} ({start.value})."
