"""Tables in files: CSV, Parquet and Excel, by the ending of the name.

ending            read by                          cells
.parquet, .pq     pyarrow, an extra                have types
.xlsx, .xlsm      openpyxl, an extra               the first sheet; "failed" and n/a are no result
any other         headstart.sources.files          text, in any encoding, delimiter and decimal mark
"""

from __future__ import annotations

import warnings
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from headstart.errors import InputError, MissingExtraError, UnusableSourceError
from headstart.sources.files.cells import is_failure
from headstart.sources.files.frames import read_csv, result_column
from headstart.sources.files.tables import read_table
from headstart.sources.forms.found import Wanted
from headstart.sources.forms.tables import task_of_frame
from headstart.sources.raw import RawTask

__all__ = ["task_of_file"]

_PARQUET = (".parquet", ".pq")
_WORKBOOK = (".xlsx", ".xlsm")
_DATABASE = (".db", ".sqlite", ".sqlite3")


def task_of_file(path: Path, wanted: Wanted) -> RawTask:
    """The table in a file."""
    ending = path.suffix.lower()
    if ending in _DATABASE:
        raise InputError(f"{path} looks like a database: give its URL, 'sqlite:///{path}'.")
    if not path.exists():
        raise UnusableSourceError(f"{path}: there is no such file. Look at the spelling and at the folder.")
    if ending in _PARQUET:
        return task_of_frame(_parquet(path), wanted, path.stem, str(path))
    if ending in _WORKBOOK:
        return task_of_frame(_sheet(path, wanted), wanted, path.stem, str(path), first_row=2)
    return _of_csv(path, wanted)


def _of_csv(path: Path, wanted: Wanted) -> RawTask:
    table = read_table(path)
    if not table.rows:
        raise UnusableSourceError(f"{path} has a header but no rows: nothing was measured there.")
    measured = [column for column in _measured(wanted) if column in table.columns]
    frame = read_csv(path, ignore=measured)
    for column in measured:
        results = result_column(table, column)  # "failed" is none
        frame[column] = pd.Series([np.nan if v is None else v for v in results], dtype=np.float64)
    return task_of_frame(frame, wanted, path.stem, str(path), first_row=2)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path, engine="pyarrow")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Parquet needs pyarrow. Install it with pip install 'headstart[parquet]', or use CSV."
        ) from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are among both
        raise InputError(f"{path}: the file is not what its name says, or it is cut off ({_line(error)}).") from error


def _measured(wanted: Wanted) -> tuple[str, ...]:
    """The columns that hold what was measured, where a cell may say that it failed."""
    return tuple(dict.fromkeys((*wanted.objectives, *wanted.errors.every, *wanted.constraints.values())))


def _sheet(path: Path, wanted: Wanted) -> pd.DataFrame:
    """The first sheet, without rows and columns that are empty."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and validations that it does not know
            frame = pd.read_excel(path, engine="openpyxl")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Excel needs openpyxl. Install it with pip install 'headstart[excel]', or save the sheet "
            "as CSV."
        ) from error
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise InputError(f"{path}: the file is not what its name says, or it is cut off ({_line(error)}).") from error
    frame = frame.dropna(axis="columns", how="all")
    nameless = [str(column) for column in frame.columns if str(column).startswith("Unnamed: ")]
    if nameless:
        place = int(nameless[0].removeprefix("Unnamed: ").partition("_")[0]) + 1
        raise InputError(f"{path}: column {place} has no name. Name it in the first row, or empty it.")
    for column in _measured(wanted):
        if column in frame.columns and not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].map(lambda cell: np.nan if is_failure(str(cell)) else cell)
    return frame


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
