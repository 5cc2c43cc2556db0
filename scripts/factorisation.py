"""From which sizes on do factorisations in blocks (gp.blocked) pay? python scripts/factorisation.py [DEVICE]

For batches of covariances: milliseconds of factor and inverse by the library and in blocks of several sizes, and the
block that the rule in use chooses. results/factorisation.json has the cells of an H200.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import torch

from headstart.gp.blocked import block_for, blocked_cholesky, blocked_inverse
from headstart.gp.kernels import Kernel

_MOST_NUMBERS = 1 << 28  # of a batch: 2 GB


def milliseconds(work: Callable[[], object], device: str) -> float:
    """The median of five turns after one to warm up."""
    seconds = []
    for _ in range(6):
        begin = time.perf_counter()
        work()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return 1e3 * median(seconds[1:])


def covariances(n: int, batch: int, device: str) -> torch.Tensor:
    """Covariances of a Matérn kernel with outputscales from ½ to 2."""
    X = torch.rand(n, 6, generator=torch.Generator().manual_seed(n), dtype=torch.float64).to(device)
    K = Kernel.MATERN52(X, X, torch.full((6,), 0.7, dtype=torch.float64, device=device))
    K.diagonal().add_(0.01)
    return K.expand(batch, n, n) * torch.linspace(0.5, 2, batch, dtype=torch.float64, device=device)[:, None, None]


def in_blocks(K: torch.Tensor, block: int) -> torch.Tensor:
    """The inverse, by blocks."""
    return blocked_inverse(blocked_cholesky(K, block=block)[0], block=block)


def main(device: str = "cuda") -> None:
    """Print a line per size and batch."""
    for n in (48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096):
        for batch in (b for b in (1, 10, 100, 500, 2000) if n * n * b <= _MOST_NUMBERS):
            K = covariances(n, batch, device)
            library = milliseconds(lambda: torch.cholesky_inverse(torch.linalg.cholesky_ex(K.mT)[0]), device)  # noqa: B023
            blocks = {b: milliseconds(partial(in_blocks, K, b), device) for b in (32, 64, 128, 256) if b < n}
            gains = ", ".join(f"{block}: {library / own:.2f}" for block, own in blocks.items())
            rule = block_for(batch, n) or "the library"
            print(f"n {n:5d} batch {batch:5d} library {library:9.3f} ms, × by block {gains}; rule: {rule}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
