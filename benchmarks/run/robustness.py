"""Small problems of every odd kind, one after the other: whether a model can be fitted and asked for a point.

Measurements are seldom as tidy as benchmarks. Rows repeat, a sensor reports the same value all day, a failed run is
1e9, outputs are in nanometres or in pascals, and the first study had two rows. A problem here has any of these, drawn
by its number: 0 to 3 sources of 1 to 30 rows, a target of 0 to 30, 1 to 4 inputs, values of size 1e-9 to 1e9. A model
must be learnt and conditioned without an error or a warning, its predictions must be numbers with a positive variance,
and what it suggests must be a point.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from headstart.data.dataset import Dataset
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.family import AUTO, GPBO
from headstart.models.model import TransferModel

MODELS: dict[str, TransferModel] = {"AUTO": AUTO, "GPBO": GPBO}
_OUTLIER = 1e9
_MOST = 30
_SHAPES = ("smooth", "noise", "constant", "zero", "tail", "steps", "nearly constant")
_QUERIES = 16


@dataclass(frozen=True, slots=True)
class OddProblem:
    """Sources and a target, with a line on what is odd about them."""

    number: int
    sources: tuple[Dataset, ...]
    target: Dataset
    description: str


def odd_problem(number: int) -> OddProblem:
    """Problem ``number``; equal numbers are equal problems."""
    rng = np.random.default_rng([number, 20260])
    d = int(rng.integers(1, 5))
    scale, shift = 10.0 ** rng.uniform(-9, 9), float(rng.choice([0.0, 1.0, 1e6]))
    phase = rng.uniform(0, 6, d)
    tasks, words = [], []
    for i in range(1 + int(rng.integers(0, 4))):
        n = _size(rng, lowest=0 if i == 0 else 1)
        X, how = _inputs(rng, n, d)
        y, what = _outputs(rng, X, phase)
        own = scale * (10.0 ** rng.uniform(-6, 6) if rng.random() < 0.1 else 1.0)
        tasks.append(Dataset(X, own * (y + shift), "target" if i == 0 else f"source {i}"))
        words.append(f"{n} {what}{how}{' in other units' if own != scale else ''}")
    about = f"{d} inputs, scale {scale:.0e}, shift {shift:.0e}; target: {words[0]}; sources: {', '.join(words[1:])}"
    return OddProblem(number, tuple(tasks[1:]), tasks[0], about)


def _size(rng: np.random.Generator, *, lowest: int) -> int:
    """Small ones are more frequent: that is where spreads and quartiles are unknown."""
    return int(rng.integers(lowest, 8 if rng.random() < 0.5 else _MOST + 1))


def _inputs(rng: np.random.Generator, n: int, d: int) -> tuple[NDArray[np.float64], str]:
    X = rng.uniform(size=(n, d))
    match rng.integers(0, 6):
        case 0 if n:
            return X[rng.integers(0, max(1, n // 3), n)], ", repeated rows"
        case 1 if n:
            return np.broadcast_to(X[:1], X.shape).copy(), ", one place"
        case 2:
            return np.round(2 * X) / 2, ", on a grid"
        case _:
            return X, ""


def _outputs(
    rng: np.random.Generator, X: NDArray[np.float64], phase: NDArray[np.float64]
) -> tuple[NDArray[np.float64], str]:
    n = len(X)
    wave = np.sin(4 * X + phase).sum(-1)
    shape = str(rng.choice(_SHAPES))
    y = {
        "smooth": wave + 0.05 * rng.normal(size=n),
        "noise": rng.normal(size=n),
        "constant": np.full(n, rng.normal()),
        "zero": np.zeros(n),
        "tail": np.exp(3 * wave),
        "steps": np.round(wave),
        "nearly constant": 1 + 1e-12 * wave,
    }[shape]
    if n and rng.random() < 0.3:
        spoilt = rng.choice(n, int(rng.integers(1, max(2, n // 3 + 1))), replace=False)
        y[spoilt] = rng.choice([-_OUTLIER, _OUTLIER]) * rng.uniform(0.1, 1, len(spoilt))
        shape += f" with {len(spoilt)} outliers"
    return y, shape


def require_sound(model: TransferModel, problem: OddProblem) -> None:
    """Raise unless the model can be learnt, conditioned and asked, and everything it says is a number."""
    posterior = model.learn(problem.sources).condition(problem.target)
    d = problem.target.d
    generator = torch.Generator().manual_seed(problem.number)
    X = torch.cat([problem.target.X, torch.rand(_QUERIES, d, generator=generator, dtype=torch.float64)])
    mean, var = posterior.predict(X)
    low, high = posterior.interval(X, 0.9)
    said = {
        "mean": mean,
        "variance": var,
        "interval": torch.cat([low, high]),
        "log density": posterior.log_density(X, mean),
        "log evidence": posterior.log_evidence,
    }
    for what, values in said.items():
        if not bool(values.isfinite().all()):
            raise ArithmeticError(f"{what} is not finite: {values.tolist()}")
    if not bool((var > 0).all()):
        raise ArithmeticError(f"variance is not positive: {var.tolist()}")
    x = suggest(posterior)
    if x.shape != (d,) or not bool(((x >= 0) & (x <= 1)).all()):
        raise ArithmeticError(f"the suggestion is not a point of the cube: {x.tolist()}")


def failures(numbers: Iterable[int]) -> Iterator[str]:
    """A text for every problem and model where something went wrong."""
    for number in numbers:
        problem = odd_problem(number)
        for name, model in MODELS.items():
            if model.needs_sources and not problem.sources:
                continue
            try:
                with warnings.catch_warnings(), single_thread():
                    warnings.simplefilter("error")
                    require_sound(model, problem)
            except Exception as error:  # whatever it is, the next problem is looked at
                yield f"problem {number}, {name}: {type(error).__name__}: {str(error)[:300]}\n    {problem.description}"
