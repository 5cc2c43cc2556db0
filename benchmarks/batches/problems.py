"""Campaigns of a laboratory whose results come in batches, with shifts that are put in.

    y_i = f(x_i) + noise_std · (ε_i + size · z(batch_i))      ε_i, z ~ N(0, 1), z one for every batch of every task

A batch has 5 to 10 results. Two sources have 40 rows each, random ones, sorted along a random direction before they are
put into batches: every batch explored another corner, so that a shift looks like the work of the settings. The target's
results come one after another, and so do its batches; z and ε belong to the order of its results, not to their points.

    drift    in batches, which have shifts
    past     the sources; the target is one batch
    target   the target; every source is one batch
    both     all of them

The noise of a function is its own, 7 to 8 % of the standard deviation of its values; a table gets 8 % of that of each
of its tasks, and its values as they are count as the truth. Tasks, rows, noise and z belong to the name and the seed
alone, so that all cells of a seed are paired: with another size z is multiplied by another number, and nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.problem import stream
from benchmarks.problems.shared_tables import shared_table
from headstart.data.dataset import Dataset
from headstart.decide.domain import Candidates, Domain, Mixed

SIZES = (0.0, 0.5, 1.0, 2.0, 5.0)  # of shifts, in standard deviations of the noise
FUNCTIONS = tuple(LABORATORY)
TABLES = ("direct_arylation", "oer_catalysts", "laser_graphene")  # chemistry, materials, physics
STEPS = 15
_SOURCES, _ROWS = 2, 40
_FEWEST, _MOST = 5, 10  # results of a batch
_TABLE_NOISE = 0.08  # of the standard deviation of a task's results
_TARGET_ROWS = 500  # of a table that can be chosen


class Drift(StrEnum):
    """Which tasks are in batches, and have shifts."""

    PAST = "past"
    TARGET = "target"
    BOTH = "both"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A task of the past without shifts; ``z`` is the shift of every row's batch for size 1, in the units of y."""

    X: Float[Tensor, "n d"]
    y: Float[Tensor, "n"]
    batch: Float[Tensor, "n"]
    z: Float[Tensor, "n"]
    noise_std: float


@dataclass(frozen=True, slots=True, eq=False)
class Campaign:
    """Two sources and a target to minimise, of which f is known; ``noise``, ``batch`` and ``z`` are of its results.

    A regret is (f − minimum)/scale.
    """

    sources: tuple[Source, ...]
    f: Callable[[Float[Tensor, "n d"]], Float[Tensor, "n"]]
    domain: Domain
    minimum: float
    scale: float
    noise_std: float
    noise: Float[Tensor, "steps"]
    batch: Float[Tensor, "steps"]
    z: Float[Tensor, "steps"]

    def measured(self, x: Float[Tensor, "d"], step: int, size: float) -> float:
        """Result number ``step`` of the target at x, with a shift of that size."""
        return float(self.f(x.unsqueeze(0))[0] + self.noise[step] + size * self.z[step])

    def changes(self, step: int) -> bool:
        """Whether result number ``step`` is the first one of another batch than the one before."""
        return step > 0 and bool(self.batch[step] != self.batch[step - 1])


def batch_numbers(n: int, random: torch.Generator) -> Float[Tensor, "n"]:
    """0, 0, …, 1, 1, …: batches of 5 to 10 one after the other; the last one may be cut off."""
    sizes = torch.randint(_FEWEST, _MOST + 1, (n,), generator=random)
    return torch.arange(n).repeat_interleave(sizes)[:n].double()


def _shifts(batch: Tensor, noise_std: float, random: torch.Generator) -> Tensor:
    return noise_std * torch.randn(len(batch), generator=random, dtype=torch.float64)[batch.long()]


def _source(X: Tensor, y: Tensor, noise_std: float, random: torch.Generator) -> Source:
    """The rows with noise, sorted along a random direction and put into batches."""
    direction = torch.randn(X.shape[-1], generator=random, dtype=torch.float64)
    order = (X @ direction).argsort()
    batch = batch_numbers(len(y), random)
    z = _shifts(batch, noise_std, random)
    noise = noise_std * torch.randn(len(y), generator=random, dtype=torch.float64)
    return Source(X[order], y[order] + noise, batch, z, noise_std)


@lru_cache(maxsize=32)
def campaign(name: str, seed: int, steps: int = STEPS) -> Campaign:
    """The campaign of that function or table and seed."""
    return (_of_function if name in LABORATORY else _of_table)(name, seed, steps)


def _of_function(name: str, seed: int, steps: int) -> Campaign:
    of, random = LABORATORY[name], stream("batches", name, seed)
    assert of.space is not None
    params = of.sample(_SOURCES + 1, random)
    X = of.random_points(_SOURCES, _ROWS, random)
    y = of.evaluate(params[:_SOURCES], X)
    sources = tuple(_source(*rows, of.noise_std, random) for rows in zip(X, y, strict=True))
    target = params[-1]
    domain, minimum = Mixed(of.space), float(of.minimum(target))
    return _campaign(sources, lambda at: of.evaluate(target, at), domain, (minimum, 1.0), of.noise_std, random, steps)


def _of_table(name: str, seed: int, steps: int) -> Campaign:
    table, random = shared_table(name), stream("batches", name, seed)
    names = list(table.tasks)
    order = torch.randperm(len(names), generator=random).tolist()
    sources = []
    for i in order[1 : _SOURCES + 1]:
        data = table.tasks[names[i]]
        rows = torch.randperm(data.n, generator=random)[:_ROWS]
        sources.append(_source(data.X[rows], data.y[rows], _TABLE_NOISE * float(data.y.std()), random))
    target = table.tasks[names[order[0]]]
    rows = torch.randperm(target.n, generator=random)[:_TARGET_ROWS]
    X, y = target.X[rows], target.y[rows]
    known = {row.tobytes(): value for row, value in zip(X.numpy(), y, strict=True)}

    def f(at: Tensor) -> Tensor:
        return torch.stack([known[row.tobytes()] for row in at.numpy()])

    scaled = float(y.min()), float(y.max() - y.min())
    domain = Candidates(X, table.space.categories)
    return _campaign(tuple(sources), f, domain, scaled, _TABLE_NOISE * float(target.y.std()), random, steps)


def _campaign(
    sources: tuple[Source, ...],
    f: Callable[[Tensor], Tensor],
    domain: Domain,
    scaled: tuple[float, float],
    noise_std: float,
    random: torch.Generator,
    steps: int,
) -> Campaign:
    batch = batch_numbers(steps, random)
    z = _shifts(batch, noise_std, random)
    noise = noise_std * torch.randn(steps, generator=random, dtype=torch.float64)
    return Campaign(sources, f, domain, *scaled, noise_std, noise, batch, z)


def centred(y: Tensor, batch: Tensor) -> Tensor:
    """The results less the mean of their batch, at the mean of all of them."""
    means = torch.stack([y[batch == own].mean() for own in batch])
    return y - means + y.mean()


def source_data(source: Source, size: float, categories: tuple[tuple[int, ...], ...], treatment: str) -> Dataset:
    """The rows as a model gets them, with shifts of that size, and batches named, ignored or centred."""
    y = source.y + size * source.z
    if treatment == "centred":
        y = centred(y, source.batch)
    return Dataset(source.X, y, categories=categories, batch=source.batch if treatment == "named" else None)
