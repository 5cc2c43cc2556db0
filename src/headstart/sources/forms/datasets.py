"""A ``Dataset``: coordinates of the unit cube, which a space gives names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headstart.data.dataset import Dataset, require_unit_cube
from headstart.data.space import Space
from headstart.errors import InputError
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def task_of_dataset(data: Dataset, space: Mapping[str, BaseDistribution] | None, name: str) -> RawTask:
    """The values that the coordinates stand for, column by column of the space."""
    what = f"{name} (Dataset)"
    if space is None:
        raise InputError(
            f"{what}: its columns have no names. Give the sampler space={{name: distribution, ...}} in the order of "
            "the columns, or pass a DataFrame."
        )
    if data.batch_shape:
        raise InputError(f"{what}: a source is one task, but this is a batch of shape {tuple(data.batch_shape)}.")
    places = Space.of(space)
    if data.d != places.d:
        raise InputError(
            f"{what}: the space has {places.d} columns in the unit cube (a categorical parameter has one a category), "
            f"but the data set has {data.d}."
        )
    require_unit_cube(data, what)
    rows = pd.DataFrame(places.decode(data.X), columns=list(places.names), dtype=object)
    y = data.y.cpu().numpy().copy()
    return RawTask(name, rows, y, distributions=dict(space), origin=what, error=_error(data))


def _error(data: Dataset) -> NDArray[np.float64] | None:
    """The standard errors. A variance of 0 says that there is none, which as good as no error says too."""
    if data.error_var is None:
        return None
    variances: NDArray[np.float64] = data.error_var.cpu().numpy()
    return np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny))
