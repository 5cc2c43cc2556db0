"""What the sampler says, through Optuna's logger and at its verbosity; what may be wrong is said once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import optuna

if TYPE_CHECKING:
    from headstart.sources.alignment import Decision

# A child of Optuna's: optuna.logging.set_verbosity and its handlers hold for it as well
LOGGER = "optuna.headstart"

_logger = optuna.logging.get_logger(LOGGER)


@dataclass
class Words:
    """What was said already."""

    said: set[str] = field(default_factory=set)

    def say_of(self, decision: Decision) -> None:
        """What was done about a source."""
        self._warn(f"{decision} (see sampler.report)")

    def not_used(self, line: str) -> None:
        """A source that was left out when it was read."""
        self._warn(line)

    def from_scratch(self) -> None:
        """There is no past."""
        self._inform("No sources are given: the study starts from scratch.")

    def own_study_left_out(self, name: str) -> None:
        """The study is among its own sources."""
        self._warn(
            f"The study {name!r} is one of its own sources, and is left out of them: its trials count as they are."
        )

    def nothing_trusted(self, count: int) -> None:
        """The model makes nothing of any source."""
        which = "The source is not" if count == 1 else f"None of the {count} sources is"
        self._warn(
            f"{which} trusted, being too small or noise (print(sampler.explain()) says why): the first trials are the "
            "best of the past and a design that fills the space."
        )

    def not_asked_for(self, name: str) -> None:
        """A parameter that the objective has dropped."""
        self._warn(f"{name}: the latest trials have not asked for it, so it is not chosen any more.")

    def of_rules(self, what: str) -> None:
        """A rule that does not bind, or that a trial cannot keep."""
        self._warn(what)

    def wrong_error(self, complaint: str) -> None:
        """A trial whose stated error is none."""
        self._warn(f"{complaint} Until then it is taken as not known.")

    def error_of_no_source(self, name: str) -> None:
        """An attribute or column that no source has."""
        self._warn(f"error: no source has a column or user attribute {name!r}, so the errors of theirs are not known.")

    def of_device(self, what: str) -> None:
        """A GPU that is not there, or has too little memory."""
        self._warn(what)

    def used_up(self, count: int) -> None:
        """Every candidate was tried, or is awaited."""
        self._warn(
            f"Every candidate that may be tried ({count}) was tried or is awaited: from now on they are tried again."
        )

    def outliers(self, what: str) -> None:
        """Results of the study that lie far from all others."""
        if "outliers" not in self.said:
            self.said.add("outliers")
            _logger.warning("This study: %s (see sampler.report)", what)

    def failed(self, number: int, error: Exception) -> None:
        """The arithmetic failed, every time it does."""
        _logger.warning("Trial %d is not chosen by the model, which failed: %s", number, error)

    def drawn(self, number: int, name: str, sampler: str, reason: str, *, expected: bool) -> None:
        """A parameter that no model chose: a warning the first time, unless nothing else can be expected."""
        text = f"{name} is drawn by {sampler}: {reason}"
        warn = not expected and text not in self.said
        if warn:
            self.said.add(text)
        (_logger.warning if warn else _logger.info)("Trial %d: %s.", number, text)

    def _warn(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            _logger.warning("%s", text)

    def _inform(self, text: str) -> None:
        if text not in self.said:
            self.said.add(text)
            _logger.info("%s", text)
