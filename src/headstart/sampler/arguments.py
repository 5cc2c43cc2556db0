"""What the sampler is given, checked where it enters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from headstart.errors import InputError
from headstart.sources.parameters import nearest


def require_arguments(
    seed: Any,
    space: Mapping[str, Any] | None,
    fill: Mapping[str, Any] | None,
    *,
    independent_sampler: Any = None,
    beta: Any = 3.0,
    cache_dir: Any = None,
    constraints_func: Any = None,
) -> None:
    """Raise an ``InputError`` unless the seed is a number, the space of distributions, and ``fill`` of its parameters.

    Without a space the parameters are not known yet, and any name may be one of them.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, Integral)):
        raise InputError(f"seed must be a whole number, or None for another one every time, but it is {seed!r}.")
    for name, given in (("space", space), ("fill", fill)):
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"{name} must map names to values, as in {{'x': …}}, but it is {type(given).__name__}.")
    for name, distribution in (space or {}).items():
        if not isinstance(distribution, BaseDistribution):
            raise InputError(
                f"space gives {distribution!r} for {name!r}, but it takes Optuna's distributions, such as "
                "optuna.distributions.FloatDistribution(0, 1)."
            )
    if isinstance(beta, bool) or not isinstance(beta, Real) or not 0 <= float(beta) < math.inf:
        raise InputError(f"beta is how much uncertainty attracts, a number from 0 on, but it is {beta!r}.")
    if cache_dir is not None and not isinstance(cache_dir, str | PathLike):
        raise InputError(f"cache_dir must be the path of a folder, but it is {cache_dir!r}.")
    if constraints_func is not None and not callable(constraints_func):
        raise InputError(
            f"constraints_func must be a function of a trial that gives numbers, but it is {constraints_func!r}."
        )
    if independent_sampler is not None and not isinstance(independent_sampler, BaseSampler):
        raise InputError(
            f"independent_sampler must be one of Optuna's samplers, such as TPESampler(), but it is "
            f"{independent_sampler!r}."
        )
    for name in fill or {}:
        if space is not None and name not in space:
            raise InputError(
                f"fill gives a value for {name!r}, which is no parameter of the space. {nearest(name, space)}"
            )
