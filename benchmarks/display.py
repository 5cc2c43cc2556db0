"""What the benchmark's commands show: tables, the live display of an experiment, and where it can go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from benchmarks.read.sheet import Sheet, with_notes
from headstart.errors import HeadstartError

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.queue import Unit


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


def print_sheets(sheets: Sequence[Sheet]) -> None:
    """The sheets as tables; wide ones are not folded where nobody looks at a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    for sheet, note in with_notes(sheets):
        console.print(Text(sheet.title, style="bold"))
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for i, column in enumerate(sheet.columns):
            table.add_column(column, justify="left" if i == 0 or column == "" else "right", no_wrap=True)
        for row in sheet.cells:
            table.add_row(*map(Text, row))
        console.print(table)
        console.print(Text(f"{note}\n" if note else "", style="dim"), soft_wrap=True)


@contextmanager
def watching(description: str, console: Console | None = None) -> Iterator[dict[str, Any]]:
    """A live display: units done, failures, time left. Failures stay above it as lines of their own.

    What is yielded are the arguments ``on_start`` and ``on_unit`` of the queue.
    """
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn

    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TextColumn("{task.fields[more]}"))
    # units take minutes: the time left is estimated from all of them, not from the last seconds
    progress = Progress(*columns, console=console or Console(stderr=True), speed_estimate_period=24 * 3600)
    bar = progress.add_task(f"{description}, units", total=0, more="")
    failures = list[str]()

    def begin(n: int) -> None:
        progress.start()
        progress.update(bar, total=(progress.tasks[0].total or 0) + n)

    def done(unit: Unit, error: Exception | None) -> None:
        if error is not None:
            kind = "" if isinstance(error, HeadstartError) else f"{type(error).__name__}: "
            failures.append(f"{unit}: {kind}{' '.join(str(error).split())}")
            progress.console.print(f"failed: {failures[-1]}", markup=False, highlight=False, soft_wrap=True)
        more = f"{len(failures)} failed" if failures else ""
        progress.update(bar, advance=1, more=more)

    try:
        yield {"on_start": begin, "on_unit": done}
    finally:
        progress.stop()
