"""From what the user gives to an adviser: all is read and checked here, before the first trial costs anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.sampler.adviser import Adviser
from headstart.sampler.model_cache import ModelCache
from headstart.sampler.strategy import Strategy
from headstart.sources.past import read_sources

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from headstart.decide.acquisition import Acquisition
    from headstart.models.model import TransferModel

__all__ = ["start"]


def start(
    sources: Sequence[Any],
    *,
    model: str | TransferModel,
    acquisition: str | Acquisition,
    beta: float,
    deterministic: bool,
    entropy: int,
    objective: Any,
    space: Mapping[str, BaseDistribution] | None,
    rename: Mapping[str, Any] | None,
    fill: Mapping[str, Any] | None,
    cache_dir: str | PathLike[str] | None,
) -> Adviser:
    """The adviser with its sources read; the arguments are those of ``TransferSampler``."""
    strategy = Strategy.of(model, acquisition, beta=beta, deterministic=deterministic)
    found = read_sources(sources, objective=objective, space=space, rename=rename)
    adviser = Adviser(
        sources=found,
        strategy=strategy,
        space=dict(space) if space is not None else None,
        fill=dict(fill or {}),
        cache=ModelCache(None if cache_dir is None else Path(cache_dir).expanduser()),
        entropy=entropy,
    )
    for line in found.skipped:
        adviser.words.not_used(line)
    if not found and strategy.model.needs_sources:
        adviser.words.from_scratch()
    adviser.require_common_ground()
    return adviser
