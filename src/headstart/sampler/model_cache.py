"""Priors in memory, and what the sampler says while it learns.

The latest few priors are kept by content. Fits of single sources are kept in ``cache_dir`` (models.fitcache): one more
source is fitted without the others, and a prior of known fits is put together again in next to no time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import optuna

from headstart.data.dataset import Dataset
from headstart.models.fitcache import fit_key
from headstart.models.learning import DEFAULT_CONTEXT, LearnContext, LearningProgress, OnProgress
from headstart.models.model import Prior, TransferModel
from headstart.sampler.words import LOGGER

_logger = optuna.logging.get_logger(LOGGER)

_IN_MEMORY = 8
# Seconds: what takes longer is spoken of, and again every so often
_LONG, _OFTEN = 2.0, 10.0


class ModelCache:
    """The latest priors by the content they were learnt from; ``context`` says how others are learnt."""

    def __init__(self, context: LearnContext = DEFAULT_CONTEXT) -> None:
        self._kept: OrderedDict[str, Prior] = OrderedDict()
        self._context = context

    def learn(self, model: TransferModel, sources: Sequence[Dataset]) -> Prior:
        """What the model learns from the sources, from memory or learnt now. Every process learns the same."""
        key = fit_key("prior", sources, repr(model), [source.name for source in sources])
        prior = self._kept.get(key)
        if prior is None:
            prior = model.learn(sources, seed=0, context=replace(self._context, on_progress=throttled()))
        self._kept[key] = prior
        self._kept.move_to_end(key)
        while len(self._kept) > _IN_MEMORY:
            self._kept.popitem(last=False)
        return prior

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept in memory, which may be large and can be learnt again."""
        return vars(self) | {"_kept": OrderedDict()}


def throttled() -> OnProgress:
    """Logs how far learning is, where it takes a while, and not all the time."""
    said = float("-inf")

    def tell(now: LearningProgress) -> None:
        nonlocal said
        if now.share < 1 and now.seconds + now.left >= _LONG and time.monotonic() - said >= _OFTEN:
            said = time.monotonic()
            _logger.info("%s.", now)

    return tell


def log_warning(text: str) -> None:
    """A warning through Optuna's logger."""
    _logger.warning("%s", text)
