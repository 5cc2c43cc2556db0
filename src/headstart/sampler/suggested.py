"""What a trial runs with and what that rests on; and whether somebody else was given the same point meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.models.model import Prior
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.sampler.strategy import how_often
from headstart.sampler.trials import SeenTrials
from headstart.sources.alignment import Alignment


@dataclass(frozen=True)
class Drawn:
    """A trial that no model had a say in: by whom its parameters were drawn, and why, parameter by parameter."""

    trial_number: int
    drawn: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """On one screen."""
        return "\n".join([f"Trial {self.trial_number} was not chosen by the model.", *_in_words(self.drawn)])


@dataclass(frozen=True, repr=False)
class Suggested:
    """A suggestion and everything it rests on: what ``explain`` needs.

    ``x`` are the parameters in the unit cube of ``alignment.space``; the posterior is of the task to be minimised, and
    ``remarks`` are on the study's own results. ``drawn`` are parameters that the objective asked for beyond those and
    by whom and why they were drawn. Where several things are measured, ``posterior`` and ``prior`` are those of the
    first objective, and ``several`` and ``priors`` have all of them.
    """

    trial_number: int
    params: dict[str, Any]
    x: Float[Tensor, "d"]
    alignment: Alignment
    prior: Prior
    posterior: TransferPosterior
    minimize: bool = True
    remarks: tuple[str, ...] = ()
    several: OutcomePosteriors | None = None
    priors: Mapping[str, Prior] = field(default_factory=dict)
    drawn: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        """On one screen: what is to be tried, what is expected of it, and from how much."""
        values = ", ".join(f"{name}={value!r}" for name, value in self.params.items())
        sources = ", ".join(f"{data.name} ({data.n} rows)" for data in self.alignment.datasets) or "no sources"
        n = self.posterior.train_targets.shape[-1]
        lines = [
            f"Trial {self.trial_number}: {values}",
            *(self._expected_of_all() if self.several else [self._expected()]),
            f"known: {n} results of this study; {sources}",
        ]
        return "\n".join([*lines, *self.remarks, *_in_words(self.drawn)])

    def _expected(self) -> str:
        return self._expected_of(self.posterior, 1.0 if self.minimize else -1.0)

    def _expected_of(self, posterior: TransferPosterior, sign: float) -> str:
        if bool(posterior.knows_nothing):
            return "nothing is known of its result"
        with torch.no_grad():
            found = [sign * float(posterior.quantile(self.x.unsqueeze(0), p)) for p in (0.025, 0.5, 0.975)]
        low, middle, high = sorted(found)
        return f"expected {middle:.4g}, 95 % range {low:.4g} to {high:.4g}"

    def _expected_of_all(self) -> list[str]:
        assert self.several is not None
        outcomes = self.several.outcomes
        lines = [f"{o.name}: {self._expected_of(self.several[o.name], o.sign)}" for o in outcomes]
        if outcomes.limits:
            probability = float(self.several.probability_within(self.x.unsqueeze(0)))
            lines.append(f"all constraints hold with a probability of {probability:.0%}")
        return lines


def _in_words(drawn: dict[str, str]) -> list[str]:
    return [f"{name} was drawn by {by_whom_and_why}" for name, by_whom_and_why in drawn.items()]


def find_clash(
    x: Float[Tensor, "d"], seen: SeenTrials, look: Callable[[], SeenTrials], pause: float
) -> SeenTrials | None:
    """What there is to see if somebody else was given the same point meanwhile, and still is after a pause."""
    for seconds in (0.0, pause):
        time.sleep(seconds)
        now = look()
        if how_often(x.unsqueeze(0), now.pending) <= how_often(x.unsqueeze(0), seen.pending):
            return None
    return now
