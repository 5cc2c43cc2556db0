"""Tables in files: CSV, workbooks and Parquet, by the ending of the name.

ending                  read by                        cells
.parquet, .pq           pyarrow, an extra              have types
any other               headstart.sources.files        what they mean in a campaign's files: docs/files.md
.xlsx, .xlsm among them openpyxl, an extra             the first sheet that has any, or that of runs.xlsx#Sheet2
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from headstart.errors import InputError, MissingExtraError, UnusableSourceError
from headstart.sources.columns.frames import read_frame
from headstart.sources.files.tables import read_table
from headstart.sources.files.workbooks import split_sheet
from headstart.sources.forms.found import Wanted
from headstart.sources.forms.tables import task_of_frame
from headstart.sources.raw import RawTask

_PARQUET = (".parquet", ".pq")
_DATABASE = (".db", ".sqlite", ".sqlite3")


def task_of_file(path: Path, wanted: Wanted) -> RawTask:
    """The table in a file."""
    ending = path.suffix.lower()
    if ending in _DATABASE:
        raise InputError(f"{path} looks like a database: give its URL, 'sqlite:///{path}'.")
    if not (split_sheet(path) or (path,))[0].exists():
        raise UnusableSourceError(f"{path}: there is no such file. Look at the spelling and at the folder.")
    if ending in _PARQUET:
        return task_of_frame(_parquet(path), wanted, path.stem, str(path))
    if not read_table(path).rows:
        raise UnusableSourceError(f"{path} has a header but no rows: nothing was measured there.")
    frame = read_frame(path, measured=_measured(wanted))
    task = task_of_frame(frame, wanted, path.stem, str(path), first_row=2)
    # what is noted of a source is told with its name
    notes = (remark.removeprefix(str(path)).lstrip(":, ").rstrip(".") for remark in frame.attrs["remarks"])
    return replace(task, notes=(*task.notes, *notes))


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


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
