"""A suggestion and everything it rests on; and whether somebody else was given the same point meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from headstart.models.botorch import TransferPosterior
from headstart.models.model import Prior
from headstart.sampler.strategy import how_often
from headstart.sampler.trials import SeenTrials
from headstart.sources.aligned import Alignment

__all__ = ["Suggested", "find_clash"]


@dataclass(frozen=True)
class Suggested:
    """A suggestion and everything it rests on: what ``explain`` needs.

    ``x`` are the parameters in the unit cube of ``alignment.space``; the posterior is of the task to be minimised, and
    ``remarks`` are on the study's own results.
    """

    trial_number: int
    params: dict[str, Any]
    x: Float[Tensor, "d"]
    alignment: Alignment
    prior: Prior
    posterior: TransferPosterior
    remarks: tuple[str, ...] = ()


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
