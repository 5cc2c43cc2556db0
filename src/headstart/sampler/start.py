"""From what the user gives to an adviser: all is read and checked here, before the first trial costs anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart.models.device import device_from
from headstart.models.fitcache import FitCache
from headstart.models.learning import LearnContext, require_n_jobs
from headstart.sampler.adviser import Adviser
from headstart.sampler.model_cache import ModelCache, log_warning
from headstart.sampler.settings.constraints import SettingConstraints
from headstart.sampler.several.learner import Learner
from headstart.sampler.strategy import Strategy
from headstart.sampler.words import Words
from headstart.sources.forms.naming import ErrorNames
from headstart.sources.past import read_sources
from headstart.sources.raw import RawTask

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

    from headstart.decide.acquisition import Acquisition
    from headstart.models.model import TransferModel


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
    n_jobs: int | str,
    device: str,
    settings: SettingConstraints,
    error: Any,
    constraints: Any,
) -> Adviser:
    """The adviser with its sources read; the arguments are those of ``TransferSampler``."""
    words = Words()
    place = device_from(device, words.of_device)
    strategy = Strategy.of(model, acquisition, beta=beta, deterministic=deterministic, device=place)
    fits = None if cache_dir is None else FitCache(Path(cache_dir).expanduser(), log_warning)
    context = LearnContext(fits, require_n_jobs(n_jobs), device=place)
    settings.require(space)
    errors = ErrorNames.of(error)
    found = read_sources(sources, objective=objective, space=space, rename=rename, error=error, constraints=constraints)
    learner = Learner(
        sources=found,
        strategy=strategy,
        space=dict(space) if space is not None else None,
        fill=dict(fill or {}),
        cache=ModelCache(context),
        words=words,
        order=() if objective is None or isinstance(objective, str | Mapping) else tuple(objective),
        errors=errors,
        listed=settings.candidates.task if settings.candidates else None,
    )
    if found and errors.every and not any(_knows_errors(task) for task in found):
        learner.words.error_of_no_source(errors.every[0])
    for line in found.skipped:
        learner.words.not_used(line)
    if not found and strategy.model.needs_sources:
        learner.words.from_scratch()
    learner.require_common_ground()
    return Adviser(learner, entropy, settings)


def _knows_errors(task: RawTask) -> bool:
    return any(error is not None for error in (task.error, *(own.error for own in task.objectives.values())))
