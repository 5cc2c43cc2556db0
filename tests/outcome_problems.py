"""A small problem with several outcomes, for tests that need one: bowls around different points, and their sources."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from tests.problems import points, quick
from torch import Tensor

from headstart import AUTO, Dataset, TransferModel
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors

__all__ = ["FUNCTIONS", "LIMITED", "TWO", "known"]


def _bowl(x: float, y: float) -> Callable[..., Tensor]:
    def function(X: Tensor, shift: float = 0.0) -> Tensor:
        return (X - torch.tensor([x + shift, y], dtype=torch.float64)).square().sum(-1)

    return function


FUNCTIONS = {"cost": _bowl(0.2, 0.5), "loss": _bowl(0.8, 0.5), "impurity": _bowl(0.6, 0.5)}
TWO = Outcomes((Goal("cost"), Goal("loss")))
LIMITED = Outcomes((Goal("cost"),), (Limit("impurity", at_most=0.04),))


def _task(name: str, at: Tensor, shift: float, factor: float) -> Dataset:
    return Dataset(at, factor * FUNCTIONS[name](at, shift)) if len(at) else Dataset.empty(2)


@cache
def _prior(outcomes: Outcomes, model: TransferModel, past: bool, factor: float) -> OutcomePriors:
    sources = {
        name: [_task(name, points(15, seed=i), 0.04 * (i + 1), factor) for i in range(2)] if past else []
        for name in outcomes.names
    }
    return OutcomePriors.learn(outcomes, sources, model=model)


@cache
def known(
    outcomes: Outcomes,
    n: int,
    *,
    model: TransferModel = quick(AUTO),  # noqa: B008
    past: bool = True,
    scale: float = 1.0,
    turned: bool = False,
    X: Tensor | None = None,
) -> OutcomePosteriors:
    """What is known after n results at random points, or those at X, of two sources and the target."""
    at, factor = points(n, seed=5) if X is None else X, -scale if turned else scale
    targets = {name: _task(name, at, 0.0, factor) for name in outcomes.names}
    return _prior(outcomes, model, past, factor).condition(targets)
