"""What the speed benchmark times of the engine itself: the compiled evidence, the floor, and fits as they come."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from benchmarks.speed import rivals
from benchmarks.speed.cases import floor_ms, over_data_sets, smooth_data, take_turns
from benchmarks.speed.rows import Likelihoods, Row
from headstart.gp.compiled import compiled_loops
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Starts
from headstart.gp.kernels import Kernel

_NONE = torch.Size()
_ROWS = 10


def _evidence(X: torch.Tensor, y: torch.Tensor, kernel: Kernel = Kernel.RBF) -> GaussianEvidence:
    return GaussianEvidence(X[None], y[None], None, kernel=kernel, residual=False, free_offset=False)


def compiled_evidence(n: int, rounds: int) -> Row:
    """One batch of ten evaluations of a plain evidence and its gradient: compiled, and with torch."""
    data = smooth_data(n, torch.Generator().manual_seed(n))
    evidence = _evidence(data.X, data.y, Kernel.MATERN52)
    theta = evidence.layout.starts(Starts.PRIOR, _ROWS, torch.Generator().manual_seed(0))
    items, repeats = torch.zeros(_ROWS, dtype=torch.int64), max(1, 20_000 // n**2)

    def repeated(evaluate: Callable[..., Any]) -> Any:
        with torch.inference_mode():
            return [evaluate(theta, items) for _ in range(repeats)][-1]

    milliseconds, results = take_turns(
        {
            "headstart": lambda: repeated(evidence.evaluate),
            "torch": lambda: repeated(evidence.evaluate_by_torch),
        },
        rounds,
    )
    milliseconds = {name: value / repeats for name, value in milliseconds.items()}
    gap = float((results["headstart"][1] - results["torch"][1]).abs().max())
    note = f"gradients agree to {gap:.0e}" if compiled_loops() is not None else "numba is not installed: both are torch"
    ratio = milliseconds["torch"] / milliseconds["headstart"]
    return Row("evidence and gradient, compiled", f"n = {n}", milliseconds, ratio, 1.0, note)


def against_the_floor(n: int, n_sets: int) -> Row:
    """Ten restarts against what their factorisations and inversions take through torch alone."""

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        data = smooth_data(n, torch.Generator().manual_seed(n + 1000 * i))
        evidence = _evidence(data.X, data.y)
        return {"headstart": lambda: fit(evidence, FitOptions.paper(), seed=0, task="", batch_shape=_NONE)[1]}

    milliseconds, results = over_data_sets(engines, n_sets)
    evaluations = median(int(r["headstart"].evaluations.sum()) for r in results)
    milliseconds["floor"] = floor_ms(n) * evaluations
    times = milliseconds["headstart"] / milliseconds["floor"]
    note = f"{times:.2f} times the floor (at most 2 asked for), {evaluations:.0f} evaluations"
    return Row("fit against the floor", f"n = {n}", milliseconds, 2 / times, 1.0, note)


def _data(n: int, i: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Functions of two to eight inputs that are smooth, rough, noisy, exact, of two inputs alone, or with a step."""
    generator = torch.Generator().manual_seed(1000 * i + n)
    X = torch.rand(n, 2 + (3 * i) % 7, generator=generator, dtype=torch.float64)
    w = 2 * torch.rand(X.shape[-1], generator=generator, dtype=torch.float64)
    error = torch.randn(n, generator=generator, dtype=torch.float64)
    y = [
        torch.sin(4 * X * w).sum(-1) + X[:, 0] * X[:, -1] + 0.1 * error,
        torch.sin(15 * X * w).sum(-1) + 0.05 * error,
        torch.sin(4 * X * w).sum(-1) + error,
        torch.exp(-3 * ((X - 0.4).square() * w).sum(-1)),
        torch.sin(6 * X[:, 0]) + (X[:, 1] - 0.5).square() + 0.05 * error,
        (X[:, 0] > 0.5) + X.sum(-1) + 0.02 * error,
    ][i % 6]
    return X, (y - y.mean()) / y.std()


def as_they_come(n: int, n_sets: int) -> Row:
    """The paper's ten restarts and our defaults against the time of one default fit of BoTorch's.

    The likelihood is compared with one fit by BoTorch of the same model, inside the same bounds.
    """

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        X, y = _data(n, i)
        evidence = _evidence(X, y)
        same = rivals.single_task(X, y, rivals.scaled_rbf(X.shape[-1]))
        return {
            "headstart": lambda: fit(evidence, FitOptions.paper(), seed=0, task="", batch_shape=_NONE)[1],
            "headstart, MAP": lambda: fit(evidence, FitOptions(), seed=0, task="", batch_shape=_NONE)[1],
            "botorch, 1 fit": lambda: rivals.fit_from_starts(lambda: same, lambda *_: None, torch.zeros(1)),
            "botorch default, 1 fit": lambda: rivals.fit_default(X, y),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    reached = [-n * float(r["headstart"].objective.min()) for r in results]
    log_p = Likelihoods.compared(reached, [r["botorch, 1 fit"] for r in results])
    ratio = milliseconds["botorch default, 1 fit"] / milliseconds["headstart"]
    return Row("10 restarts against 1 default fit", f"n = {n}", milliseconds, ratio, 1.0, str(log_p), log_p)
