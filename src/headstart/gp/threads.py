"""One thread while fitting: a second one makes many small factorisations slower, on a busy machine by far."""

from __future__ import annotations

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
    """Torch and BLAS on one thread inside, as they were outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
