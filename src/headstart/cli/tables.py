"""Tables of the commands that people read, and how numbers stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headstart.campaign.desk.words import cell, count, percent, with_interval

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["cell", "count", "in_plain_words", "percent", "show", "table", "with_interval"]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = ()) -> Table:
    """A table; the columns in ``left`` hold words, the others numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # as Text, because rich takes the brackets of [min] for a style
    heading = Text(title, style="bold")
    made = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(Text(column), justify="left" if column in left else "right")
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def show(made: Table) -> None:
    """Print the table; one that is wider than the terminal is turned, so that its headings stay readable.

    Where nobody looks at a terminal it is not folded.
    """
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    elif Measurement.get(console, console.options.update(max_width=10_000), made).maximum > console.width:
        made = _turned(made)
    console.print()
    console.print(made)
    console.print()


def _turned(made: Table) -> Table:
    """A row for every column, if there are fewer rows than columns."""
    if made.row_count >= len(made.columns):
        return made
    headings = [str(column.header) for column in made.columns]
    cells = [[str(cell) for cell in column.cells] for column in made.columns]
    title = str(made.title or "")
    first, *others = zip(headings, cells, strict=True)
    return table(title, (first[0], *first[1]), [(name, *own) for name, own in others], left=(first[0],))


def in_plain_words(reason: str, *, figures: bool = False) -> str:
    """A reason for people who do experiments: a target is their campaign; figures in nats only where they are told."""
    words = reason.replace("the target's", "this campaign's").replace("the target", "this campaign")
    return words if figures else re.sub(r" \([^()]*\bnats\b[^()]*\)", "", words)
