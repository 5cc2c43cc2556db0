"""What the commands show: errors in one line, remarks, how far learning is, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from headstart.errors import HeadstartError, InputError, Message, MissingExtraError, SeveralProblemsError, message_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from headstart.models.learning import LearningProgress, OnProgress

_REMARKS_SHOWN = 5
_OPTIONS = {  # settings that have not the name of their option
    "cells": "init: --cell",
    "number": "-n",
    "begin": "headstart init PAST.csv ... --objective COLUMN --maximize",
}
_LONG = 2.0  # seconds: what takes longer shows how far it is
_PAPER = 200  # columns, where nobody looks at a terminal
_CELL = 26  # letters of a cell in a turned table before it is folded


def with_options(message: str) -> str:
    """A message with the options of the command line that mend what it tells."""
    settings = message.settings if isinstance(message, Message) else ()
    options = [_OPTIONS.get(one.name, f"--{one.name}") + (f" '{one.value}'" if one.value else "") for one in settings]
    return f"{message} ({', '.join(dict.fromkeys(options))})" if options else str(message)


@contextmanager
def errors_in_one_line() -> Iterator[None]:
    """What is somebody's to mend is one line each and exit code 2; a numerical error exit code 1."""
    try:
        yield
    except HeadstartError as error:
        for problem in error.problems if isinstance(error, SeveralProblemsError) else (message_of(error),):
            typer.echo(f"headstart: {' '.join(with_options(problem).split(chr(10)))}", err=True)
        raise typer.Exit(2 if isinstance(error, InputError | MissingExtraError) else 1) from error
    except OSError as error:
        what = error.filename or "what was to be printed could not be written"
        typer.echo(f"headstart: {what}: {error.strerror or error}.", err=True)
        raise typer.Exit(2) from error


def say(lines: Iterable[str], *, every: bool = False) -> None:
    """Remarks on the standard error, so that tables can be piped; those that somebody can answer come first.

    Unless ``every`` one is asked for, all that can be answered are told and a few of the others.
    """
    found = list(lines)
    asking = [line for line in found if isinstance(line, Message) and line.settings]
    others = [line for line in found if line not in asking]
    shown = len(others) if every else min(len(others), max(0, _REMARKS_SHOWN - len(asking)))
    for line in (*asking, *others[:shown]):
        typer.echo(with_options(line), err=True)
    if left := len(others) - shown:
        typer.echo(f"… and {left} more remarks: 'headstart check --all' lists them.", err=True)


@contextmanager
def working(
    doing: str = "learning from the past campaigns …", *, quiet: bool = False, console: Console | None = None
) -> Iterator[OnProgress]:
    """What is being done, on a terminal, while one thread works: small matrices lose by threading.

    From two seconds on there is a bar, and how long it will probably take.
    """
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
        from headstart.gp.threads import round_alike, single_thread

        round_alike()
        with single_thread():
            yield tell


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = ()) -> Table:
    """A table; the columns in ``left`` hold words, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # as Text, because rich takes the brackets of [min] for a style
    heading = Text(title, style="bold")
    made = Table(
        title=heading if title else None, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False
    )
    for column in columns:
        made.add_column(Text(column), justify="left" if column in left else "right")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def show(made: Table) -> None:
    """Print the table; one that is wider than the terminal is turned, in parts if need be, so that all stays readable.

    Where nobody looks at a terminal it is as wide as it is. A long table whose words fit is folded between them.
    """
    from rich.console import Console

    console = Console()
    widest, narrowest = _width(made, console)
    parts = [made]
    if not console.is_terminal:
        console = Console(width=max(_PAPER, widest))
    elif widest > console.width and (made.row_count < len(made.columns) or narrowest > console.width):
        parts = _turned(made, console)
    console.print()
    for part in parts:
        console.print(part)
        console.print()


def _width(made: Table, console: Console) -> tuple[int, int]:
    """How wide the table is if nothing is folded, and if everything is that has a space in it."""
    from rich.measure import Measurement

    found = Measurement.get(console, console.options.update(max_width=10_000), made)
    return found.maximum, found.minimum


def _turned(made: Table, console: Console) -> list[Table]:
    """A row for every column; as many of the table's rows beside each other as there is room for."""
    headings = [str(column.header) for column in made.columns]
    cells = [[str(cell) for cell in column.cells] for column in made.columns]

    def part(first: int, last: int) -> Table:
        (name, own), *others = zip(headings, cells, strict=True)
        rows = [(heading, *values[first:last]) for heading, values in others]
        turned = table("" if first else str(made.title or ""), (name, *own[first:last]), rows, left=(name,))
        for column in turned.columns[1:]:
            column.max_width = _CELL
        return turned

    found, first = [], 0
    while first < made.row_count:
        last = first + 1
        while last < made.row_count and _width(part(first, last + 1), console)[0] <= console.width:
            last += 1
        found.append(part(first, last))
        first = last
    return found
