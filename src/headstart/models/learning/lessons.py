"""What lessons have in common: the seed of their starting points, what they cost, and how they are called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headstart.data.dataset import Dataset
from headstart.gp.fit import Seed, generator_from


def entropy_from(seed: Seed) -> int:
    """The seed of all lessons: an integer as it is, otherwise one that is drawn."""
    if isinstance(seed, int):
        return seed
    return int(torch.randint(1 << 31, (), generator=generator_from(seed)))


def of_level(entropy: int, level: int) -> int:
    """The seed of a level of a chain; the first one begins as a source on its own does."""
    return entropy if level == 0 else int(np.random.SeedSequence([entropy % (1 << 64), level]).generate_state(1)[0])


def expected_seconds(source: Dataset) -> float:
    """About how long a source of this size takes to be learnt on an ordinary processor.

    Up to some hundred rows all of them are in every evaluation; beyond that their number matters less.
    """
    n, problems = source.n, source.batch_shape.numel()
    return float(problems * (0.004 + min((n / 500) ** 2.3, 4 * (n / 2000) ** 1.2)))


def in_number(sources: Sequence[Dataset]) -> str:
    """How many sources and rows, in words."""
    rows = sum(source.n for source in sources)
    return f"{len(sources)} source{'' if len(sources) == 1 else 's'} ({rows} rows)"
