"""Runs with given regrets, for tests of what is read from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.store import Run


def run_of(problem: str, method: str, seed: int, regret: Sequence[float], **settings: Any) -> Run:
    """A run of one evaluation per regret, each of 1.5 seconds, at one point."""
    n = len(regret)
    return Run(
        problem=problem,
        method=method,
        seed=seed,
        settings={"steps": n, **settings},
        label="target",
        x=[[0.0]] * n,
        y=[0.0] * n,
        value=[0.0] * n,
        regret=list(regret),
        fit_seconds=[1.0] * n,
        acquisition_seconds=[0.5] * n,
        learn_seconds=2.0,
    )
