"""A CSV file as a DataFrame: numbers where a column holds numbers, text elsewhere, and no guess where it is unclear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.errors import InputError
from headstart.sources.files.cells import is_date, is_failure, is_missing, number
from headstart.sources.files.tables import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["input_column", "read_csv", "result_column"]


def read_csv(
    path: Path | str,
    *,
    objective: str | None = None,
    rename: Mapping[str, str] | None = None,
    ignore: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> pd.DataFrame:
    """The file as a DataFrame: float64 where a column holds numbers (NaN: no cell), else text (None: no cell).

    ``rename`` (old → new) comes first; ``ignore`` are columns that nobody looks at, ``categories`` those that are
    text even if it reads as numbers. With an ``objective``, rows that have one must have every input, a result that
    failed or is missing is NaN, and dates are refused; without one nobody knows what is needed, and dates are text.
    The remarks on how the file was read are in ``attrs["remarks"]``.
    """
    import pandas as pd

    table = read_table(path).renamed(rename or {})
    if objective is not None:
        table.require(objective, "Say which one holds the result.")
    if not table.rows:
        raise InputError(f"{path} has a header but no rows: nothing was measured there. Leave it out.")
    wanted = [c for c in table.columns if c not in ignore]
    frame: dict[str, Any] = {}
    has_result = [False] * len(table.rows)
    if objective is not None:
        results = result_column(table, objective)
        has_result = [value is not None for value in results]
        frame[objective] = pd.Series([float("nan") if v is None else v for v in results], dtype="float64")
    for column in wanted:
        if column != objective and table.kind(column) != "empty":
            frame[column] = input_column(
                table,
                column,
                has_result,
                text=column in categories or (objective is None and table.kind(column) == "date"),
            )
    found = pd.DataFrame({c: frame[c] for c in wanted if c in frame})
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
