"""Compiled evaluation of small problems: loads the numba functions, and holds the data in the form they take.

numba is an optional dependency. It compiles once for a machine and a version of this package (some seconds) and keeps
the result next to the module, or in NUMBA_CACHE_DIR; a later process reads it. Where numba is missing, cannot compile
or has no place to keep the result, ``compiled`` returns None and everything goes through torch, which is also the
reference for the compiled functions.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from headstart.gp.hyperparameters import Inputs
from headstart.gp.kernels import Kernel

# Up to so many observations (at 500 two thirds of the time through torch): beyond, LAPACK's blocks begin to pay
MOST = 512

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


class Compiled:
    """The data of P problems as the compiled function wants them."""

    def __init__(
        self,
        X: Float[Tensor, "#P n d"],
        y: Float[Tensor, "P n"],
        kernel: Kernel,
        inputs: Inputs,
        *,
        means: Float[Tensor, "P I n"] | None = None,
        covs: Float[Tensor, "P J n n"] | None = None,
        constant: float = 0.0,
        error_var: Float[Tensor, "#P n"] | None = None,
        noise_weight: Float[Tensor, "#P n"] | None = None,
    ) -> None:
        n = y.shape[-1]
        self._inputs = _contiguous(X.mT), np.array(inputs.group, dtype=np.int64), kernel is Kernel.MATERN52
        self._y, self._means, self._covs = _contiguous(y), _contiguous(means, 1, 0, n), _contiguous(covs, 1, 0, n, n)
        weight = np.ones((1, n)) if noise_weight is None else _contiguous(noise_weight)
        self._rest = constant, _contiguous(error_var, 1, n), weight
        loops = compiled_loops()
        assert loops is not None
        self._evaluate = loops.evaluate_batch
        self._ones = np.ones((1, self._covs.shape[1]))

    def evaluate(
        self,
        theta: Float[Tensor, "B p"],
        items: Int[Tensor, "B"],
        a: Float[Tensor, "B I"] | None = None,
        c: Float[Tensor, "B J"] | None = None,
        *,
        by_both: bool = False,
    ) -> tuple[Float[Tensor, "B"], Float[Tensor, "B p"], Float[Tensor, "B _"], Float[Tensor, "B _"], Bool[Tensor, "B"]]:
        """Value, gradient by θ, with ``by_both`` also by a and c, and ok. Without c every covariance counts once."""
        points = np.ascontiguousarray(theta.numpy())
        B = len(points)
        a_ = np.zeros((B, 0)) if a is None else np.ascontiguousarray(a.numpy())
        c_ = self._ones.repeat(B, axis=0) if c is None else np.ascontiguousarray(c.numpy())
        value, gradient, ok = np.empty(B), np.empty_like(points), np.empty(B, dtype=np.bool_)
        by_a, by_c = (np.empty_like(a_), np.empty_like(c_)) if by_both else (np.empty((B, 0)), np.empty((B, 0)))
        self._evaluate(
            points, items.numpy(), *self._inputs, self._y, self._means, a_, self._covs, c_, *self._rest,
            value, gradient, by_a, by_c, ok,
        )  # fmt: skip
        value_, gradient_, by_a_, by_c_, ok_ = map(torch.from_numpy, (value, gradient, by_a, by_c, ok))
        return value_, gradient_, by_a_, by_c_, ok_


def compiled(
    X: Float[Tensor, "#P n d"], y: Float[Tensor, "P n"], kernel: Kernel, inputs: Inputs, **data: Any
) -> Compiled | None:
    """These problems for the compiled function, where there is one and it is the faster way."""
    few, known = 0 < y.shape[-1] <= MOST, kernel in (Kernel.RBF, Kernel.MATERN52)
    if not (few and known and y.device.type == "cpu" and y.dtype == torch.float64) or compiled_loops() is None:
        return None
    return Compiled(X, y, kernel, inputs, **data)
