"""A table as it comes: a file or a pandas DataFrame, its columns as NumPy arrays, and complaints that name the row.

Rows are counted from 1, below the header. pandas is imported by the functions, not by the module.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.errors import InputError, MissingExtraError

# What pandas takes as missing, less "None" and "none": these are often a level of a hyperparameter.
_MISSING = ("", "NA", "<NA>", "N/A", "n/a", "#N/A", "NaN", "nan", "-NaN", "-nan", "NULL", "null")
_CSV, _PARQUET = (".csv", ".csv.gz"), (".parquet", ".parquet.gz")

Array = NDArray[Any]


def open_frame(source: Any) -> tuple[Any, str]:
    """The DataFrame in a file, or the one given; and how messages call it."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return source.set_axis([str(c) for c in source.columns], axis=1), "the DataFrame"
    if not isinstance(source, str | Path):
        raise InputError(f"A table is a path or a pandas DataFrame, but this is a {type(source).__name__}.")
    path = Path(source)
    if not path.name.lower().endswith((*_CSV, *_PARQUET)):
        raise InputError(f"{path}: unknown format. Known are {', '.join((*_CSV, *_PARQUET))}.")
    if not path.is_file():
        raise InputError(f"{path}: {'is a folder, not a file' if path.is_dir() else 'there is no such file'}.")
    try:
        content = path.read_bytes()
        if path.suffix.lower() == ".gz":
            content = gzip.decompress(content)
        if path.name.lower().endswith(_CSV):
            # low_memory guesses types by chunks, and warns where they differ
            frame = pd.read_csv(io.BytesIO(content), keep_default_na=False, na_values=_MISSING, low_memory=False)
        else:
            frame = pd.read_parquet(io.BytesIO(content), engine="pyarrow")
    except ImportError as error:
        raise MissingExtraError(
            f"{path}: reading Parquet needs pyarrow. Install it with pip install headstart[parquet], or use CSV."
        ) from error
    except (OSError, EOFError, zlib.error) as error:  # pyarrow's own errors of reading are OSError or ValueError
        raise InputError(f"{path}: the file cannot be read ({error}). It may be cut off.") from error
    except ValueError as error:  # pandas' errors of parsing, pyarrow's, and UnicodeDecodeError are ValueErrors
        raise InputError(f"{path}: the file is not what its name says ({str(error).strip()}).") from error
    return frame, str(path)


def require_columns(frame: Any, where: str, names: Sequence[str]) -> None:
    """Raise an ``InputError`` unless the frame has all these columns, and each only once."""
    there = [str(c) for c in frame.columns]
    absent = [repr(name) for name in dict.fromkeys(names) if name not in there]
    if absent:
        hint = " Is the separator a comma?" if len(there) == 1 and any(s in there[0] for s in ";\t|") else ""
        raise InputError(f"{where}: there is no column {', '.join(absent)}. There are: {', '.join(there)}.{hint}")
    twice = sorted({name for name in names if there.count(name) > 1})
    if twice:
        raise InputError(f"{where}: the column {', '.join(twice)} is there more than once. Rename or drop one.")


def numbers(series: Any, what: str) -> NDArray[np.float64]:
    """A column as float64, NaN where a value is missing; ``what`` names file and column in complaints."""
    from pandas.api import types

    _require_plain(series, what)
    series = series.infer_objects()
    if not types.is_numeric_dtype(series) or types.is_bool_dtype(series):
        for row, value in enumerate(series.to_numpy(dtype=object), 1):
            if not _missing(value) and not is_number(value):
                raise InputError(f"{what}, row {row}: {value!r} is not a number. Correct it, or delete the row.")
        if not all(map(_missing, series)):
            raise InputError(f"{what} must have numbers, but it is of type {series.dtype}.")
        return np.full(len(series), np.nan)
    return np.asarray(series.to_numpy(dtype=float, na_value=np.nan), dtype=np.float64)


def values(series: Any, what: str) -> Array:
    """A column of numbers as float64; any other as objects: strings, and None where a value is missing."""
    from pandas.api import types

    _require_plain(series, what)
    series = series.infer_objects()
    if types.is_numeric_dtype(series) and not types.is_bool_dtype(series):
        return numbers(series, what)
    return np.array([None if _missing(v) else str(v) for v in series.to_numpy(dtype=object)], dtype=object)


def labels(series: Any) -> Array:
    """A task column as strings, and None where it is empty; whole numbers have no decimal point."""
    whole = (int(v) if isinstance(v, float) and v.is_integer() else v for v in series.to_numpy(dtype=object))
    return np.array([None if _missing(v) else str(v) for v in whole], dtype=object)


def is_missing(column: Array) -> NDArray[np.bool_]:
    """Where a column as returned by ``values`` has nothing to go by: missing or infinite."""
    if column.dtype == object:
        return np.array([value is None for value in column], dtype=bool)
    return np.asarray(~np.isfinite(column))


def _require_plain(series: Any, what: str) -> None:
    if getattr(series.dtype, "kind", "O") in "cmM":
        raise InputError(
            f"{what} must be numbers or text, but it is of type {series.dtype}. "
            "Make a number of it, such as the days since the first date, or leave the column out."
        )


def _missing(value: object) -> bool:
    import pandas as pd

    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


def is_number(value: object) -> bool:
    """Whether a value is a number, or text that reads as one."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True
