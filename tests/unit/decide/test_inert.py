"""What excludes nothing changes nothing: limits, rules and lists that leave every point in."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from tests.problems import points, quick
from torch import Tensor

from headstart import AUTO, GPBO, Candidates, Dataset, FloatRange, InputError, Mixed, Ruled, Space, TransferPosterior
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors

# How many results there are, and how many points are suggested
COUNTS = [(0, 1), (3, 2), (6, 1), (0, 3), (3, 3), (6, 3), (3, 1)]
CUBE = Space.of({"a": FloatRange(0, 1), "b": FloatRange(0, 1)})
GRID = Space.of({"a": FloatRange(0, 1, step=0.1), "b": FloatRange(0, 1, step=0.1)})


def _cost(X: Tensor, shift: float = 0.0) -> Tensor:
    return (X - torch.tensor([0.35 + shift, 0.6], dtype=torch.float64)).square().sum(-1) + 0.1 * torch.sin(6 * X[:, 0])


def _heat(X: Tensor) -> Tensor:
    return 1 + 0.02 * X[:, 0]


@cache
def _known(n: int) -> OutcomePosteriors:
    """A cost, of which two sources disagree, and a heat of 1.00 to 1.02 that may be up to 1000."""
    outcomes = Outcomes((Goal("cost"),), (Limit("heat", at_most=1000.0),))
    past, X = [points(14, seed=seed) for seed in (0, 1)], points(n, seed=2)
    sources = {
        "cost": [Dataset(own, _cost(own, shift)) for own, shift in zip(past, (0.1, -0.25), strict=True)],
        "heat": [Dataset(own, _heat(own)) for own in past],
    }
    return OutcomePriors.learn(outcomes, sources, model=quick(AUTO)).condition(
        {"cost": Dataset(X, _cost(X)), "heat": Dataset(X, _heat(X))}
    )


def _cases(first: object, second: object) -> list[Any]:
    """Every count with both; at once two of the one and two of the other."""
    at_once = {(first, (0, 1)), (first, (3, 2)), (second, (6, 1)), (second, (3, 2))}
    every = [(own, count) for own in (first, second) for count in COUNTS]
    return [pytest.param(*case, marks=() if case in at_once else pytest.mark.slow) for case in every]


@pytest.mark.parametrize(("kind", "count"), _cases(*Acquisition))
def test_a_limit_that_can_never_bind_moves_no_suggestion(kind: Acquisition, count: tuple[int, int]) -> None:
    """Of a point alone and of a batch, before the first result and later, by improvement and by a bound."""
    n, q = count
    known = _known(n)
    alone = suggest(known.goals[0], q=q, kind=kind)
    torch.testing.assert_close(suggest(known, q=q, kind=kind), alone, rtol=0, atol=1e-4)


def _posterior(name: str, n: int) -> TransferPosterior:
    if name == "AUTO":
        return _known(n).goals[0]
    X = points(n, seed=2)
    return quick(GPBO).learn().condition(Dataset(X, _cost(X)))


@pytest.mark.parametrize(("name", "count"), _cases("AUTO", "GPBO"))
def test_a_rule_that_excludes_nothing_and_a_list_of_all_points_move_no_suggestion(
    name: str, count: tuple[int, int]
) -> None:
    """In the continuous space, and on a grid."""
    n, q = count
    posterior = _posterior(name, n)
    free = suggest(posterior, domain=Mixed(CUBE), q=q)
    ruled = suggest(posterior, domain=Ruled(CUBE, ["a + b <= 10"]), q=q)
    torch.testing.assert_close(ruled, free, rtol=0, atol=1e-4)
    listed = Candidates.of(GRID, [{"a": i / 10, "b": j / 10} for i in range(11) for j in range(11)])
    assert torch.equal(suggest(posterior, domain=listed, q=q), suggest(posterior, domain=Mixed(GRID), q=q))


def test_the_acquisition_function_is_honoured_with_limits_and_refused_with_several_objectives() -> None:
    """Never ignored."""
    known = _known(3)
    by_bound, by_improvement = (suggest(known, kind=kind, beta=6.0) for kind in (Acquisition.LCB, Acquisition.LOG_EI))
    assert float((by_bound - by_improvement).abs().max()) > 1e-3
    two = OutcomePosteriors(Outcomes((Goal("cost"), Goal("heat"))), known.posteriors)
    with pytest.raises(InputError, match="logei"):
        suggest(two, kind=Acquisition.LCB)
