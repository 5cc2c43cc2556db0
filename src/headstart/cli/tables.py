"""Tables of the commands that people read, and how numbers stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headstart.campaign.desk.words import cell, count, percent, with_interval

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["cell", "count", "percent", "show", "table", "with_interval"]


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
    """Print the table; where nobody looks at a terminal it is not folded."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    console.print()
    console.print(made)
    console.print()
