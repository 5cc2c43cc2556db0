"""What the commands show: errors in one line, tables, and the live display of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headstart.errors import HeadstartError, InputError, MissingExtraError, SeveralProblemsError

if TYPE_CHECKING:
    from rich.console import Console

    from headstart.bench.read.sheet import Sheet
    from headstart.bench.run.experiment import Unit
    from headstart.models.learning import LearningProgress, OnProgress

_REMARKS_SHOWN = 5
_LONG = 2.0  # seconds: what takes longer shows how far it is


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """What is somebody's to mend is one line each and exit code 2; a numerical error exit code 1."""
    try:
        yield
    except HeadstartError as error:
        for problem in error.problems if isinstance(error, SeveralProblemsError) else (str(error),):
            typer.echo(f"headstart: {' '.join(problem.split(chr(10)))}", err=True)
        raise typer.Exit(2 if isinstance(error, InputError | MissingExtraError) else 1) from error
    except OSError as error:
        what = error.filename or "what was to be printed could not be written"
        typer.echo(f"headstart: {what}: {error.strerror or error}.", err=True)
        raise typer.Exit(2) from error


@contextmanager
def interruptible(folder: Path) -> Iterator[None]:
    """Ctrl-C says where the finished runs are."""
    try:
        yield
    except KeyboardInterrupt as error:
        typer.echo(f"\nInterrupted. What was finished is in {folder}; the same command continues from there.", err=True)
        raise typer.Exit(130) from error


def names(value: str | None) -> tuple[str, ...]:
    """``gpbo, SHGP`` as ("gpbo", "shgp"), each once."""
    found = (item.strip().lower() for item in (value or "").split(","))
    return tuple(dict.fromkeys(item for item in found if item))


def say(lines: Iterable[str], *, at_most: int | None = _REMARKS_SHOWN) -> None:
    """Remarks on the standard error, so that tables can be piped; all of them where ``at_most`` is None."""
    every = list(lines)
    for line in every[:at_most]:
        typer.echo(line, err=True)
    if at_most is not None and len(every) > at_most:
        typer.echo(f"… and {len(every) - at_most} more remarks of this kind.", err=True)


def print_sheets(sheets: Sequence[Sheet]) -> None:
    """The sheets as tables; wide ones are not folded where nobody looks at a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from headstart.bench.read.sheet import with_notes

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    for sheet, note in with_notes(sheets):
        columns, rows = sheet.for_people
        console.print(Text(sheet.title, style="bold"))
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for i, column in enumerate(columns):
            table.add_column(column, justify="left" if i == 0 or column == "" else "right", no_wrap=True)
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
        console.print(Text(f"{note}\n" if note else "", style="dim"), soft_wrap=True)


@dataclass
class Watch:
    """Who is told about the beginning and every unit of an experiment."""

    on_start: Callable[[int], None]
    on_unit: Callable[[Unit, Exception | None], None]
    on_timings: Callable[[int], None]
    on_timing: Callable[[], None]
    failures: list[str] = field(default_factory=list)


def _name(unit: Unit) -> str:
    problem = unit.problem.family or Path(unit.problem.table or "").name
    return f"{problem}, {unit.method}, seeds {unit.seeds[0]} to {unit.seeds[-1]}"


@contextmanager
def watching(description: str, console: Console | None = None) -> Iterator[Watch]:
    """A live display: units done, failures, time left. Failures stay above it as lines of their own."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    # units take minutes: the time left is estimated from all of them, not from the last seconds
    progress = Progress(*columns, console=console or Console(stderr=True), speed_estimate_period=24 * 3600)
    bars: dict[str, TaskID] = {}
    totals: dict[str, int] = {}

    def begin(what: str, n: int) -> None:
        if what not in bars:
            bars[what] = progress.add_task(f"{description}, {what}", total=0, more="")
        progress.start()
        totals[what] = totals.get(what, 0) + n
        progress.update(bars[what], total=totals[what])

    def done(unit: Unit, error: Exception | None) -> None:
        if error is not None:
            kind = "" if isinstance(error, HeadstartError) else f"{type(error).__name__}: "
            watch.failures.append(f"{_name(unit)}: {kind}{' '.join(str(error).split())}")
            progress.console.print(f"failed: {watch.failures[-1]}", markup=False, highlight=False, soft_wrap=True)
        more = f"{len(watch.failures)} failed" if watch.failures else ""
        progress.update(bars["units"], advance=1, more=more)

    watch = Watch(
        on_start=lambda n: begin("units", n),
        on_unit=done,
        on_timings=lambda n: begin("timings", n),
        on_timing=lambda: progress.advance(bars["timings"]),
    )
    try:
        yield watch
    finally:
        progress.stop()


@contextmanager
def how_far(doing: str, *, quiet: bool = False, console: Console | None = None) -> Iterator[OnProgress]:
    """What is being done, on a terminal; from two seconds on with a bar, and how long it will probably take."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TextColumn

    console = console or Console(stderr=True)
    short: list[ProgressColumn] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    long = [*short, BarColumn(), TextColumn("{task.fields[left]}", markup=False)]
    # where nobody looks at a terminal nothing is shown
    progress = Progress(*short, console=console, transient=True, disable=quiet or not console.is_terminal)
    task = progress.add_task(doing, total=1.0, left="")

    def tell(now: LearningProgress) -> None:
        from headstart.models.learning import format_seconds

        if now.seconds + now.left >= _LONG:
            progress.columns = tuple(long)
            left = f"about {format_seconds(now.left)} left" if now.left >= 1 else ""
            progress.update(task, description=f"{now.doing} …", completed=now.share, left=left)

    with progress:
        yield tell
