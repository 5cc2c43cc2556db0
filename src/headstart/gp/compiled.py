"""Compiled evaluation of small problems: loads the numba functions, and holds the data in the form they take.

numba is optional, and compiles once (docs/scale.md). Where it is missing, cannot compile or has no place to keep the
result, ``compiled_loops`` returns None and everything goes through torch, the reference for the compiled functions.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.gp.hyperparameters import Inputs
from headstart.gp.kernels import Kernel

# At 500 rows two thirds of the time through torch; beyond, LAPACK's blocks begin to pay
MAX_COMPILED_ROWS = 512

_log = logging.getLogger(__name__)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Ctrl-C while numba compiles or reads is raised afterwards: in the midst of it, it can get lost in a callback."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number in came[:1]:
            signal.raise_signal(number)


@cache
def compiled_loops() -> ModuleType | None:
    """``gp.compiled_loops``, or None; loaded when the first problem of a process is set up, not before."""
    try:
        with interrupts_wait():
            from headstart.gp import compiled_loops
    except ImportError:
        return None
    except Exception as error:  # numba has errors of its own for what it cannot compile or keep
        _log.info("Small problems are evaluated with torch and NumPy: numba gave %s", error)
        return None
    return compiled_loops


def _contiguous(data: Tensor | None, *shape: int) -> NDArray[np.float64]:
    return np.zeros(shape) if data is None else np.ascontiguousarray(data.numpy())


# (θ, items, a, c) → value, gradient by θ, by a and c where these are given, and ok; without c all are 1
CompiledEvaluation = Callable[..., tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]


def compiled_evaluation(
    X: Float[Tensor, "#P n d"],
    y: Float[Tensor, "P n"],
    kernel: Kernel,
    inputs: Inputs,
    means: Float[Tensor, "P I n"] | None,
    covs: Float[Tensor, "P J n n"] | None,
    constant: float,
    error_var: Float[Tensor, "#P n"] | None,
    noise_weight: Float[Tensor, "#P n"] | None,
) -> CompiledEvaluation | None:
    """The compiled evidence of these problems (``compiled_loops``); None where torch is the faster or the only way."""
    n = y.shape[-1]
    small = 0 < n <= MAX_COMPILED_ROWS and y.device.type == "cpu" and y.dtype == torch.float64
    loops = compiled_loops() if small else None
    if loops is None:
        return None
    at = _contiguous(X.mT), np.array(inputs.group, dtype=np.int64), kernel is Kernel.MATERN52
    outputs, mean, cov = _contiguous(y), _contiguous(means, 1, 0, n), _contiguous(covs, 1, 0, n, n)
    weight = np.ones((1, n)) if noise_weight is None else _contiguous(noise_weight)
    rest = constant, _contiguous(error_var, 1, n), weight
    once = np.ones((1, cov.shape[1]))

    def evaluate(
        theta: Float[Tensor, "B p"],
        items: Int[Tensor, "B"],
        a: Float[Tensor, "B I"] | None = None,
        c: Float[Tensor, "B J"] | None = None,
    ) -> tuple[Float[Tensor, "B"], Float[Tensor, "B p"], Float[Tensor, "B _"], Float[Tensor, "B _"], Bool[Tensor, "B"]]:
        points = np.ascontiguousarray(theta.numpy())
        B = len(points)
        a_ = np.zeros((B, 0)) if a is None else np.ascontiguousarray(a.numpy())
        c_ = once.repeat(B, axis=0) if c is None else np.ascontiguousarray(c.numpy())
        value, gradient, ok = np.empty(B), np.empty_like(points), np.empty(B, dtype=np.bool_)
        by_a, by_c = (np.empty_like(a_), np.empty_like(c_)) if c is not None else (np.empty((B, 0)), np.empty((B, 0)))
        loops.evaluate_batch(
            points, items.numpy(), *at, outputs, mean, a_, cov, c_, *rest, value, gradient, by_a, by_c, ok
        )
        value_, gradient_, by_a_, by_c_, ok_ = map(torch.from_numpy, (value, gradient, by_a, by_c, ok))
        return value_, gradient_, by_a_, by_c_, ok_

    return evaluate
