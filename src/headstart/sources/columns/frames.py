"""A file as a DataFrame: numbers where a column holds numbers, text elsewhere, and no guess where it is unclear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import InputError, refuse
from headstart.sources.columns.cleaning import TableUse, cleaned
from headstart.sources.files.cells import is_date, is_failure, is_missing, number
from headstart.sources.files.tables import Table, read_table

if TYPE_CHECKING:
    import pandas as pd


def read_frame(path: Path | str, *, measured: Sequence[str] = ()) -> pd.DataFrame:
    """The table as a DataFrame: float64 where a column holds numbers (NaN: no cell), else text (None: no cell).

    Cells mean what they mean in any file: '60 °C' is 60, and a date is text. In columns of what was ``measured`` there
    are numbers alone, NaN for a result that failed. The remarks on how cells were read are in ``attrs["remarks"]``;
    all that cannot be read is told together.
    """
    import pandas as pd

    table = read_table(path)
    if not table.rows:
        raise InputError(f"{path} has a header but no rows: nothing was measured there. Leave it out.")
    results = tuple(column for column in measured if column in table.columns)
    inputs = [c for c in table.columns if c not in results and table.kind(c, forms=True) != "empty"]
    numbers = tuple(column for column in inputs if table.kind(column, forms=True) == "number")
    plain = cleaned(table, TableUse(results, numbers, past=False))
    refuse(plain.problems)
    table, nobody = plain.table, [False] * len(plain.table.rows)
    frame: dict[str, Any] = {c: input_column(table, c, nobody, text=c not in numbers) for c in inputs}
    for column in results:
        values = [float("nan") if value is None else value for value in result_column(table, column)]
        frame[column] = pd.Series(values, dtype="float64")
    found = pd.DataFrame({c: frame[c] for c in table.columns if c in frame})
    found.attrs["remarks"] = list(table.remarks)
    return found


def result_column(table: Table, column: str) -> list[float | None]:
    """The results, None where there is none: empty, 'n/a', 'failed'. Other text is an ``InputError``."""
    cells = table.cells(column)
    remedy = (
        "Write the number alone, with the unit in the header. Leave the cell empty while the result is awaited, and "
        "write n/a if the experiment failed."
    )
    return [None if is_failure(cell) else table.number_at(i, column, remedy=remedy) for i, cell in enumerate(cells)]


def input_column(table: Table, column: str, needed: Sequence[bool], *, text: bool) -> Any:
    """A column of inputs as a Series. Rows that are ``needed`` must have a value."""
    import pandas as pd

    kind = "text" if text else table.kind(column)
    cells = table.cells(column)
    if kind == "date":
        row = next(i for i, cell in enumerate(cells) if is_date(cell))
        raise InputError(
            f"{table.place(row, column)}: {cells[row]!r} is a date, which is no parameter. Leave the column out "
            f"(--ignore {column!r}), or make a number of it, such as the days since the first one."
        )
    missing = [is_missing(cell, numeric=kind == "number") for cell in cells]
    for i, cell in enumerate(cells):
        if needed[i] and missing[i]:
            more = sum(n and m for n, m in zip(needed, missing, strict=True)) - 1
            raise InputError(
                f"{table.place(i, column)}: {repr(cell) if cell else 'an empty cell'} is not a value"
                f"{f' ({more} more rows lack one)' if more else ''}. Fill it in, or delete the row; rows without a "
                "result are ignored, rows without inputs are not."
            )
    if kind == "text":
        return pd.Series([None if m else cell for m, cell in zip(missing, cells, strict=True)], dtype=object)
    lenient = any(needed)  # a cell of a row without a result may hold anything
    values = (
        number(cell, table.mark) if lenient and not needed[i] else table.number_at(i, column)
        for i, cell in enumerate(cells)
    )
    return pd.Series([float("nan") if v is None else v for v in values], dtype="float64")
