"""The same numbers in a batch and alone: what has to be asked of the linear algebra for that."""

from __future__ import annotations

import os

__all__ = ["round_alike"]


def round_alike() -> None:
    """Have MKL round a matrix alike wherever it lies in memory.

    Otherwise the last bits of a factorisation depend on the address of the matrix, so on its place in a batch. A fit
    makes 1e-7 of them, and a few steps later a run in lockstep and the same run alone can be in different places. MKL
    reads MKL_CBWR when it is used for the first time: this has an effect before the first computation of a process, and
    on processes that are started later. What the user has set stays. It costs no measurable time.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO")
