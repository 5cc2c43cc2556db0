"""The sampler's logger: a child of Optuna's, so that ``optuna.logging.set_verbosity`` and its handlers hold for it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import optuna

if TYPE_CHECKING:
    from headstart.models.learning import LearningProgress, OnProgress

LOGGER = "optuna.headstart"

_logger = optuna.logging.get_logger(LOGGER)

# Seconds: progress is logged where learning takes longer than the first, and once in the second
_LONG, _INTERVAL = 2.0, 10.0


@dataclass
class OnceLogger:
    """Logs every message once; ``said`` are those that were logged."""

    said: set[str] = field(default_factory=set)

    def warn(self, text: str, key: str = "") -> None:
        """Log a warning unless one of the same key, by default its text, was logged."""
        if self.is_new(key or text):
            _logger.warning("%s", text)

    def is_new(self, key: str) -> bool:
        """Whether nothing of this key was logged; from now on it was."""
        new = key not in self.said
        self.said.add(key)
        return new

    def inform(self, text: str) -> None:
        """Log a message that needs no action, every time."""
        _logger.info("%s", text)


def log_warning(text: str) -> None:
    """Log a warning, every time."""
    _logger.warning("%s", text)


def progress_logger() -> OnProgress:
    """A function that logs how far learning is, every ten seconds where it takes long."""
    logged = float("-inf")

    def tell(now: LearningProgress) -> None:
        nonlocal logged
        if now.share < 1 and now.seconds + now.left >= _LONG and time.monotonic() - logged >= _INTERVAL:
            logged = time.monotonic()
            _logger.info("%s.", now)

    return tell
