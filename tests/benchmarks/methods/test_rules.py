"""Other ways to use candidates that are believed to different degrees."""

from __future__ import annotations

import pytest
import torch
from tests.problems import auto_posterior, tensor
from torch import Tensor

from benchmarks.methods.rules import Rule, ask_candidates, pick


def uniform(n: int) -> Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_a_candidate_is_drawn_as_often_as_it_is_believed() -> None:
    """Of 1000 draws the shares are the weights, to three standard errors; one of weight 0 is never drawn."""
    for weights in ([0.5, 0.3, 0.1, 0.1], [0.0, 0.5, 0.2, 0.3], [0.5, 0.0, 0.2, 0.3]):
        model = auto_posterior(weights)
        drawn = torch.stack([pick(model, Rule.DRAWN, u) for u in uniform(1000)])
        shares = torch.bincount(drawn, minlength=4) / 1000
        assert float((shares - tensor(weights)).abs().max()) < 3 * (0.25 / 1000) ** 0.5
        assert [s > 0 for s in shares.tolist()] == [w > 0 for w in weights]


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_are_candidates_too(number: float) -> None:
    """The lowest and the highest number that can be drawn name a candidate that has weight."""
    assert int(pick(auto_posterior([0.0, 1.0, 0.0, 0.0]), Rule.DRAWN, tensor(number))) == 1
    assert int(pick(auto_posterior([0.1, 0.1, 0.1, 0.7]), Rule.DRAWN, tensor(number))) == (0 if number == 0 else 3)


def test_the_best_is_the_one_that_is_believed_most() -> None:
    """Whatever number was drawn."""
    model = auto_posterior([0.3, 0.4, 0.2, 0.1])
    assert {int(pick(model, Rule.BEST, u)) for u in uniform(20)} == {1}


def test_before_the_first_observation_the_most_believed_one_is_asked() -> None:
    """None was ever wrong: nothing is drawn."""
    model = auto_posterior([0.3, 0.4, 0.2, 0.1], n=0)
    assert {int(pick(model, Rule.DRAWN, u)) for u in uniform(20)} == {1}


def test_every_problem_of_a_batch_has_its_own_draw() -> None:
    """A number for each gives each its own candidate; one number for all is the same as alone."""
    model = auto_posterior([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.2, 0.6, 0.1, 0.1]], batch_shape=(3,))
    assert pick(model, Rule.DRAWN, tensor([0.9, 0.1, 0.5])).tolist() == [0, 3, 1]
    assert pick(model, Rule.DRAWN, tensor(0.1)).tolist() == [0, 3, 0]


@pytest.mark.parametrize("batch_shape", [(4,), (2, 2)])
def test_answers_are_put_together_in_the_order_of_the_problems(batch_shape: tuple[int, ...]) -> None:
    """Each candidate answers once, for all problems that ask it, and for no other."""
    model = auto_posterior(batch_shape=batch_shape)
    which = torch.tensor([3, 0, 3, 1]).reshape(batch_shape)
    asked = []

    def ask(candidate: object, k: int, rows: Tensor | None) -> Tensor:
        assert rows is not None
        asked.append((k, rows.tolist(), candidate.batch_shape))  # type: ignore[attr-defined]
        return torch.stack([rows, torch.full_like(rows, k)], dim=-1)

    answers = ask_candidates(model, which, ask)
    assert asked == [(0, [1], (1,)), (1, [3], (1,)), (3, [0, 2], (2,))]
    assert answers.shape == (*batch_shape, 2)
    assert answers.reshape(4, 2).tolist() == [[0, 3], [1, 0], [2, 3], [3, 1]]
