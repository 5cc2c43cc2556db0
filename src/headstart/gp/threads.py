"""How BLAS works in this process: one thread while fitting, and rounding that does not depend on memory addresses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process, looked up once: L-BFGS-B runs in SciPy's own."""
    return ThreadpoolController()


@contextmanager
def single_thread() -> Iterator[None]:
    """Torch and BLAS on one thread inside, as before outside: more threads slow down many small factorisations."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def round_alike() -> None:
    """Have MKL round a matrix alike wherever it lies in memory.

    Otherwise the last bits of a factorisation depend on the address of the matrix, so on its place in a batch. MKL
    reads MKL_CBWR when it is used for the first time: this has an effect before the first computation of a process, and
    on processes that are started later. What the user has set stays. It costs no measurable time.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO")
