"""Pasts with a known truth: some sources as they are, some upside down, unrelated, or with their results shuffled.

A source is compared with the target where both are known without noise: at random points of a family of functions, at
the rows that two tasks of a table share, at random configurations of a tuning problem. With ρ Spearman's correlation
there, and ρ' the same over the better half of the target,

    related       ρ ≥ 0.5  and ρ' ≥ 0.2
    upside down   ρ ≤ −0.5 and ρ' ≤ −0.2
    unrelated     |ρ| ≤ 0.2 and |ρ'| ≤ 0.2, or shuffled results
    between       anything else: no verdict on it counts as wrong

An unrelated source is a smooth random function of the same parameters, at the points of the source whose place it
takes, in its units.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor

from benchmarks.problems.shared_tables import shared_table
from benchmarks.problems.transfer import family
from headstart.data.dataset import Dataset
from headstart.decide.domain import Candidates, Cube, Domain, Mixed
from headstart.errors import InputError

_RELATED, _UNRELATED = 0.5, 0.2
_POOL = 2000  # points at which functions are compared
_COMMON = 50  # rows that two tasks of a table must share
_ROWS = 60  # of a source from a table
_TARGET_ROWS = 500  # of a table that can be chosen
_WAYS = ("as it is", "upside down", "unrelated", "shuffled")
_SHARES = (0.5, 0.2, 0.2, 0.1)


class Truth(StrEnum):
    """What a source is to its target."""

    RELATED = "related"
    REVERSED = "upside down"
    UNRELATED = "unrelated"
    BETWEEN = "between"

    @classmethod
    def of(cls, source: NDArray[np.float64], target: NDArray[np.float64]) -> Truth:
        """From the noiseless values of both at the same points, to be minimised."""
        good = target <= np.median(target)
        over_all, where_good = (_rank_correlation(source[on], target[on]) for on in (good | True, good))
        if over_all >= _RELATED and where_good >= _UNRELATED:
            return cls.RELATED
        if over_all <= -_RELATED and where_good <= -_UNRELATED:
            return cls.REVERSED
        return cls.UNRELATED if max(abs(over_all), abs(where_good)) <= _UNRELATED else cls.BETWEEN


def _rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    return float(spearmanr(a, b).statistic)


@dataclass(frozen=True, eq=False)
class Past:
    """Sources of which it is known what they are, and a target to minimise."""

    sources: tuple[Dataset, ...]
    truths: tuple[Truth, ...]
    domain: Domain
    evaluate: Callable[[Float[Tensor, "n d"]], Float[Tensor, "n"]]


def generator(*key: object) -> np.random.Generator:
    """Random numbers of their own for every key."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, key)).encode()))


def ways(n: int, random: np.random.Generator) -> list[str]:
    """What is done to each of n sources; one past in eight is upside down as a whole."""
    if random.random() < 1 / 8:
        return [_WAYS[1]] * n
    return [str(way) for way in random.choice(_WAYS, n, p=_SHARES)]


def smooth(d: int, random: np.random.Generator) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """A random smooth function of d columns in [0, 1]: 64 waves, a draw from a process with lengthscale 0.3 √d."""
    waves = random.normal(size=(64, d)) / (0.3 * np.sqrt(d))
    phases, sizes = random.uniform(0, 2 * np.pi, 64), random.normal(size=64)
    return lambda X: np.cos(X @ waves.T + phases) @ sizes


def spoilt(
    y: NDArray[np.float64],
    X: NDArray[np.float64],
    way: str,
    pool: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    random: np.random.Generator,
) -> tuple[NDArray[np.float64], Truth]:
    """The results y at X in one of the ways, and what they are; the pool is points, source and target there."""
    points, source, target = pool
    match way:
        case "upside down":
            return -y, Truth.of(-source, target)
        case "unrelated":
            other = smooth(X.shape[-1], random)
            values = other(X)
            values = y.mean() + y.std() * (values - values.mean()) / max(values.std(), 1e-12)
            return values, Truth.of(other(points), target)
        case "shuffled":
            return random.permutation(y), Truth.UNRELATED
        case _:
            return y, Truth.of(source, target)


def family_past(name: str, seed: int) -> Past:
    """One to five random tasks of a family of functions, and another one as the target."""
    of, random = family(name), generator("verdicts", name, seed)
    n = int(random.integers(1, 6))
    torch_random = torch.Generator().manual_seed(int(random.integers(1 << 62)))
    params, target = of.sample(n, torch_random), of.sample_target(1, torch_random)[0]
    points = of.random_points(1, _POOL, torch_random)[0]
    at_pool = of.evaluate(params, points.expand(n, -1, -1)).numpy()
    here = of.evaluate(target, points).numpy()
    sources, truths, levels = [], [], () if of.space is None else of.space.categories
    for i, way in enumerate(ways(n, random)):
        X = of.random_points(1, of.source_points, torch_random)[0]
        y = of.evaluate(params[i], X).numpy() + of.noise_std * random.normal(size=len(X))
        y, truth = spoilt(y, X.numpy(), way, (points.numpy(), at_pool[i], here), random)
        sources.append(Dataset(X, torch.from_numpy(y), f"source {i}", categories=levels))
        truths.append(truth)
    noise = torch.Generator().manual_seed(seed)

    def evaluate(X: Tensor) -> Tensor:
        return of.evaluate(target, X) + of.noise_std * torch.randn(len(X), generator=noise, dtype=torch.float64)

    domain = Cube(of.d) if of.space is None else Mixed(of.space)
    return Past(tuple(sources), tuple(truths), domain, evaluate)


def table_past(name: str, seed: int) -> Past:
    """One to five tasks of a table, 60 random rows of each, and the rows of another one to choose from."""
    table, random = shared_table(name), generator("verdicts", name, seed)
    names = [str(task) for task in random.permutation(list(table.tasks))]
    target = table.tasks[names[0]]
    where = {row.tobytes(): k for k, row in enumerate(target.X.numpy())}
    n = min(int(random.integers(1, 6)), len(names) - 1)
    sources, truths = [], []
    for i, (task, way) in enumerate(zip(names[1 : n + 1], ways(n, random), strict=True)):
        data = table.tasks[task]
        both = [(k, where[row.tobytes()]) for k, row in enumerate(data.X.numpy()) if row.tobytes() in where]
        if len(both) < _COMMON:
            raise InputError(f"{name}: {task} and {names[0]} have {len(both)} rows in common.")
        own, here = np.array(both).T
        rows = random.permutation(data.n)[:_ROWS]
        X = data.X[rows]
        pool = (data.X[own].numpy(), data.y[own].numpy(), target.y[here].numpy())
        y, truth = spoilt(data.y[rows].numpy(), X.numpy(), way, pool, random)
        sources.append(Dataset(X, torch.from_numpy(y), f"source {i}", categories=table.space.categories))
        truths.append(truth)
    few = random.permutation(target.n)[:_TARGET_ROWS]
    chosen = target.X[few]
    known = {row.tobytes(): float(value) for row, value in zip(chosen.numpy(), target.y[few], strict=True)}

    def evaluate(at: Tensor) -> Tensor:
        return torch.tensor([known[row.tobytes()] for row in at.numpy()], dtype=torch.float64)

    return Past(tuple(sources), tuple(truths), Candidates(chosen, table.space.categories), evaluate)
