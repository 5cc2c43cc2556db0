"""What a benchmark problem is: for every seed some source data, and a target to minimise.

All seeds of a cell are drawn at once, as one batch, so that they can be optimised in lockstep. Randomness is keyed by
(problem, seed) and by nothing else: every method meets the same tasks, the same source rows and the same noise.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.space import Space


def stream(*key: object) -> torch.Generator:
    """A random generator of its own for every key, such as (problem, seed, "noise")."""
    digest = hashlib.sha256("\x1f".join(map(str, key)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)


@dataclass(frozen=True, slots=True)
class TargetRows:
    """The rows a discrete target can be evaluated at, each once or, with ``repeats``, as often as one likes.

    Targets of different length are padded.
    """

    X: Float[Tensor, "P M d"]
    values: Float[Tensor, "P M"]
    real: Bool[Tensor, "P M"]  # false where a row is padding
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Instance:
    """A batch of P optimisation problems, one per seed: exactly one of ``function`` and ``candidates`` is given.

    ``function`` maps X (P, n, d) in the unit cube to noiseless values (P, n). ``noise`` (P, steps) is added to the
    value of every evaluation. A regret is (value − minimum) / scale: the scale is 1 for functions, and max − min of
    the whole target table for tables, which makes the mean regret the ADTM. ``labels`` name the target of each seed.
    ``space`` are the parameters whose columns X has, where there are categories or grids among them; without it every
    point of the unit cube may be chosen.
    """

    sources: tuple[Dataset, ...]
    minimum: Float[Tensor, "P"]
    scale: Float[Tensor, "P"]
    noise: Float[Tensor, "P steps"]
    labels: tuple[str, ...]
    function: Callable[[Tensor], Tensor] | None = None
    candidates: TargetRows | None = None
    space: Space | None = None

    @property
    def d(self) -> int:
        """How many inputs."""
        return self.sources[0].d


class Problem(ABC):
    """A way of drawing instances. ``fingerprint`` tells data of the same name apart; functions need none.

    ``space`` is that of its instances.
    """

    name: str
    d: int
    space: Space | None = None
    fingerprint: str | None = None

    @abstractmethod
    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """The instances of these seeds, with noise for ``steps`` evaluations; each is what it is when drawn alone."""
