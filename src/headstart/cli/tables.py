"""Tables of the commands that people read, and how numbers stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PAPER = 200  # columns, where nobody looks at a terminal
_CELL = 26  # letters of a cell in a turned table before it is folded


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
