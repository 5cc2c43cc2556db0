"""What a method of the comparison is: given the evaluations so far, it returns the next point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.problems.problem import stream

# Results by outcome, as measured
Measured = Mapping[str, Float[Tensor, "n"]]


class Searcher(ABC):
    """A method at work on one instance."""

    @abstractmethod
    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        """The next point, given what was evaluated; on tables the nearest free row is taken instead."""


def draws(key: tuple[object, ...], *more: object) -> int:
    """A seed that belongs to these words."""
    return int(torch.randint(2**31, (), generator=stream(*key, *more)))
