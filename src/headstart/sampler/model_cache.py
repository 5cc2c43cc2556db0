"""What was learnt from the sources, kept in memory and, if wished, in a folder: nothing is learnt twice.

In memory are the latest few priors. In the folder are numbers, an entry for every source (sources.keeping), so that one
more source is learnt without the others; a prior that is known is put together again, which takes next to no time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna

from headstart.data.dataset import Dataset
from headstart.models.learning.crew import Crew, InTurn
from headstart.models.learning.device import CPU, ComputeDevice
from headstart.models.learning.learning import Learning
from headstart.models.learning.notebook import Notebook
from headstart.models.learning.numbers import content_key
from headstart.models.learning.progress import HowFar, LearningProgress, Told
from headstart.models.model import Prior, TransferModel
from headstart.sampler.words import LOGGER
from headstart.sources.keeping.folder import FolderNotebook

_logger = optuna.logging.get_logger(LOGGER)

_IN_MEMORY = 8
# Seconds: what takes longer is spoken of, and again every so often
_LONG, _OFTEN = 2.0, 10.0


class ModelCache:
    """Priors by the content they were learnt from; ``crew`` learns what neither memory nor ``folder`` has."""

    def __init__(self, folder: Path | None = None, crew: Crew | None = None, device: ComputeDevice = CPU) -> None:
        self._kept: OrderedDict[str, Prior] = OrderedDict()
        self._notebook = Notebook() if folder is None else FolderNotebook(folder, _warn)
        self._crew = InTurn() if crew is None else crew
        self._device = device

    def learn(self, model: TransferModel, sources: Sequence[Dataset]) -> Prior:
        """What the model learns from the sources: known already, or learnt now. Every process learns the same."""
        key = content_key("prior", sources, repr(model), [source.name for source in sources])
        prior = self._kept.get(key)
        if prior is None:
            with Learning(self._notebook, self._crew, LearningProgress(throttled()), self._device).applied():
                prior = model.learn(sources, seed=0)
        self._kept[key] = prior
        self._kept.move_to_end(key)
        while len(self._kept) > _IN_MEMORY:
            self._kept.popitem(last=False)
        return prior

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept in memory, which may be large and can be learnt again."""
        return vars(self) | {"_kept": OrderedDict()}


def throttled() -> Told:
    """Says how far learning is, where it takes a while, and not all the time."""
    said = float("-inf")

    def tell(now: HowFar) -> None:
        nonlocal said
        if now.share < 1 and now.seconds + now.left >= _LONG and time.monotonic() - said >= _OFTEN:
            said = time.monotonic()
            _logger.info("%s.", now)

    return tell


def _warn(text: str) -> None:
    _logger.warning("%s", text)
