"""``ComputeDevice``: a GPU for large matrices, where it is faster; what is small, or too large for it, the CPU does.

Measured with an H200: fits of 200 rows three times as fast, of 500 ten times, of 5,000 twice. The search for the next
point takes a third of the time with one source of 3,000 rows and an eighth with 5,000; with 2,000 it was slower.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from headstart.errors import InputError
from headstart.models.posterior import map_tensors

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class ComputeDevice:
    """A device of torch's: fits run there from ``fit_rows`` rows on, searches from ``search_elements`` in matrices."""

    name: str = "cpu"
    warn: Callable[[str], None] = field(default=_log.warning)  # told where the CPU does the work instead
    fit_rows: int = 300
    search_elements: int = 3000**2

    def run(self, work: Callable[[str], T]) -> T:
        """``work(name)``; on the CPU where the device has too little memory."""
        try:
            return work(self.name)
        except torch.OutOfMemoryError:
            if self.name == "cpu":
                raise
        self.warn(f"{self.name} has too little memory for the largest sources: the CPU does that part.")
        return work("cpu")

    def searching(self, known: Any, search: Callable[[Any, str], T]) -> T:
        """``search(known, device)`` with the posteriors moved to the device it is given."""
        if self.name == "cpu" or elements_in(known) < self.search_elements:
            return search(known, "cpu")
        return self.run(lambda device: search(known if device == "cpu" else moved(known, device), device))


CPU = ComputeDevice()


def device_from(name: str, warn: Callable[[str], None] = _log.warning) -> ComputeDevice:
    """The device of that name; where this machine has none, the CPU, and ``warn`` is told so."""
    try:
        kind = torch.device(str(name)).type  # a number is one to a PyTorch with CUDA
    except RuntimeError as error:
        raise InputError(f'device must be "cpu", "cuda" or one of several, as "cuda:1", but it is {name!r}.') from error
    if kind not in ("cpu", "cuda"):
        raise InputError(f'device must be "cpu" or "cuda", but it is {name!r}.')
    if kind == "cuda" and not (
        torch.cuda.is_available() and (torch.device(name).index or 0) < torch.cuda.device_count()
    ):
        warn(f"There is no {name} here, or this PyTorch was built without CUDA: the CPU does all the work.")
        kind = "cpu"
    return ComputeDevice(name if kind == "cuda" else "cpu", warn)


def moved(value: T, device: str) -> T:
    """A copy with every tensor on the device: of a posterior, a data set, a tuple of anything."""
    return map_tensors(value, lambda tensor: tensor.to(device))


def elements_in(value: Any) -> int:
    """How many numbers the matrices in it have, each counted once."""
    found: dict[int, int] = {}

    def count(tensor: Tensor) -> Tensor:
        if tensor.dim() >= 2:
            found[tensor.data_ptr()] = max(found.get(tensor.data_ptr(), 0), tensor.numel())
        return tensor

    map_tensors(value, count)
    return sum(found.values())
