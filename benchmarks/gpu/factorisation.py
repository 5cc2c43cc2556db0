"""From where do blocks pay? ``python -m benchmarks.gpu.factorisation --device cuda``.

Times the library's factorisation and inverse of batches of covariances, and those in blocks of several sizes
(gp.blocked), and says in every cell what the rule of that module chooses, and what that takes in units of the
better way.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch
from torch import Tensor

from benchmarks.commit import commit
from headstart.gp.blocked import block_for, blocked_cholesky, blocked_inverse
from headstart.gp.kernels import Kernel

SIZES = (48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096)
BATCHES = (1, 10, 100, 500, 2000)
BLOCKS = (32, 48, 64, 96, 128, 256)
_MOST_NUMBERS = 1 << 28  # of a batch: 2 GB


@dataclass(frozen=True, slots=True)
class FactorTimes:
    """Milliseconds of factorising, and of factorising and inverting, a batch: by the library, and by size of block.

    ``apart`` is the largest difference of the two inverses in units of the largest entry.
    """

    n: int
    batch: int
    library: tuple[float, float]
    blocks: dict[int, tuple[float, float]]
    apart: float

    def gain(self, block: int) -> float:
        """How many times as fast factor and inverse are in such blocks."""
        return self.library[1] / self.blocks[block][1]

    @property
    def chosen(self) -> int | None:
        """The block of the rule in use, None for the library; the nearest that was measured stands for it."""
        rule = block_for(self.batch, self.n)
        return None if rule is None or not self.blocks else min(self.blocks, key=lambda block: abs(block - rule))

    @property
    def regret(self) -> float:
        """What the rule takes in units of the best of all ways."""
        taken = self.library[1] if self.chosen is None else self.blocks[self.chosen][1]
        return taken / min([self.library[1], *(both for _, both in self.blocks.values())])


def _covariances(n: int, batch: int, device: str) -> Tensor:
    X = torch.rand(n, 6, generator=torch.Generator().manual_seed(n), dtype=torch.float64).to(device)
    K = Kernel.MATERN52(X, X, torch.full((6,), 0.7, dtype=torch.float64, device=device))
    K.diagonal().add_(0.01)
    return K.expand(batch, n, n) * torch.linspace(0.5, 2, batch, dtype=torch.float64, device=device)[:, None, None]


def _milliseconds(work: Callable[[], object], device: str, most: float) -> float:
    """The median of up to seven turns after one to warm up, for ``most`` seconds."""

    def once() -> float:
        begin = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - begin)

    first, seconds, begin = once(), list[float](), time.perf_counter()
    while len(seconds) < 7 and time.perf_counter() - begin + first / 1e3 < most:
        seconds.append(once())
    return median(seconds or [first])


def _library(K: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky_ex(K.mT)[0])


def measure(
    sizes: Sequence[int], batches: Sequence[int], blocks: Sequence[int], *, device: str, seconds: float
) -> Iterator[FactorTimes]:
    """Every size with every batch that fits into memory, the smaller ones first, until the time is up."""
    cells = sorted(
        ((n, b) for n in sizes for b in batches if n * n * b <= _MOST_NUMBERS), key=lambda c: c[0] ** 3 * c[1]
    )
    until = time.perf_counter() + seconds
    each = seconds / len(cells) / (2 * len(blocks) + 2)
    slowest = 0.0  # seconds of the last cell: the next may take several times as long
    for n, batch in cells:
        begin = time.perf_counter()
        if begin + 2 * slowest > until:
            return
        K = _covariances(n, batch, device)
        library = (
            _milliseconds(lambda K=K: torch.linalg.cholesky_ex(K.mT), device, each),  # type: ignore[misc]
            _milliseconds(lambda K=K: _library(K), device, each),  # type: ignore[misc]
        )
        found = {}
        for block in (b for b in blocks if b < n):

            def both(K: Tensor = K, block: int = block) -> Tensor:
                return blocked_inverse(blocked_cholesky(K, block=block)[0], block=block)

            def factor(K: Tensor = K, block: int = block) -> object:
                return blocked_cholesky(K, block=block)

            found[block] = (_milliseconds(factor, device, each), _milliseconds(both, device, each))
        theirs = _library(K)
        apart = 0.0
        if found:
            block = min(found, key=lambda b: found[b][1])
            ours = blocked_inverse(blocked_cholesky(K, block=block)[0], block=block)
            apart = float((ours - theirs).abs().max() / theirs.abs().max())
        yield FactorTimes(n, batch, library, found, apart)
        slowest = time.perf_counter() - begin


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the JSON object, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description="Factorisations in blocks beside those of the library.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    device = options.device
    sizes, batches = (SIZES[:7], BATCHES[:2]) if options.quick else (SIZES, BATCHES)
    cells = list(measure(sizes, batches, BLOCKS, device=device, seconds=options.seconds))
    record = {
        "worst_choice": max((cell.regret for cell in cells), default=1.0),
        "cells": [asdict(cell) for cell in cells],
        "hardware": torch.cuda.get_device_name() if device.startswith("cuda") else "cpu",
        "torch": torch.__version__,
        "commit": commit(),
    }
    text = json.dumps(record)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")
    for cell in cells:
        gains = ", ".join(f"{block}: {cell.gain(block):.2f}" for block in cell.blocks)
        rule = f"rule {cell.chosen or 'library'}, {cell.regret:.2f} of the best"
        print(f"n {cell.n:5d} batch {cell.batch:5d} library {cell.library[1]:9.3f} ms, × by block {gains}; {rule}")
    if options.out is None:
        print(text)


if __name__ == "__main__":
    main()
