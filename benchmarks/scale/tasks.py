"""The data that everything is measured on."""

from __future__ import annotations

import torch

from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import HARTMANN6
from headstart.data.dataset import Dataset


def draw_task(n: int, name: str, seed: int = 0) -> Dataset:
    """Random points of a random function of the Hartmann-6 family, with the paper's noise."""
    draw = stream("scale", seed, name)
    X = torch.rand(n, HARTMANN6.d, generator=draw, dtype=torch.float64)
    y = HARTMANN6.evaluate(HARTMANN6.sample(1, draw)[0], X)
    return Dataset(X, y + HARTMANN6.noise_std * torch.randn(n, generator=draw, dtype=torch.float64), name)
