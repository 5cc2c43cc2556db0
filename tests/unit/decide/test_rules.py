"""How a suggestion comes from several candidates that are believed to different degrees."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import item_of, params_for, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, Dataset
from headstart.decide.acquisition import Acquisition, InModelUnits, PlainWorth, incumbent
from headstart.decide.rules import AveragedWorth, Rule, answered, averaged, counting, pick
from headstart.decide.suggest import suggest
from headstart.models.auto_posterior import AutoPosterior

PROBLEM = transfer_problem(n_queries=40)
RULES = pytest.mark.parametrize("rule", Rule)
ALONE = {"star": [1.0, 0.0, 0.0], "chain": [0.0, 1.0, 0.0], "plain": [0.0, 0.0, 1.0]}


def disagreeing(weights: object) -> AutoPosterior:
    """A target that is lowest elsewhere than its sources: the candidates want different points."""
    sources = [Dataset(s.X, 4 * (s.X - 0.25).square().sum(-1)) for s in PROBLEM.sources]
    X = tensor([[0.2, 0.9], [0.5, 0.4], [0.9, 0.1]])
    params = replace(params_for("AUTO"), weights=tensor(weights))
    found = AUTO.at(params, sources=sources, target=Dataset(X, 4 * (X - 0.7).square().sum(-1)))
    assert isinstance(found, AutoPosterior)
    return found


def posterior(weights: object = None, n: int = 5, batch_shape: tuple[int, ...] = ()) -> AutoPosterior:
    problem = transfer_problem(batch_shape=batch_shape)
    params = params_for("AUTO", batch_shape=batch_shape)
    if weights is not None:
        params = replace(params, weights=tensor(weights).expand(*batch_shape, 3))
    found = AUTO.at(params, sources=problem.sources, target=problem.head(n))
    assert isinstance(found, AutoPosterior)
    return found


def uniform(n: int) -> Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


# ── who is asked ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_candidate_is_drawn_as_often_as_it_is_believed() -> None:
    """Of 1000 draws the shares are the weights, to three standard errors; one of weight 0 is never drawn."""
    for weights in ([0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]):
        model = posterior(weights)
        drawn = torch.stack([pick(model, Rule.DRAWN, u) for u in uniform(1000)])
        shares = torch.bincount(drawn, minlength=3) / 1000
        assert float((shares - tensor(weights)).abs().max()) < 3 * (0.25 / 1000) ** 0.5
        assert [s > 0 for s in shares.tolist()] == [w > 0 for w in weights]


@pytest.mark.parametrize("number", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_are_candidates_too(number: float) -> None:
    """The lowest and the highest number that can be drawn name a candidate that has weight."""
    assert int(pick(posterior([0.0, 1.0, 0.0]), Rule.DRAWN, tensor(number))) == 1
    assert int(pick(posterior([0.1, 0.2, 0.7]), Rule.DRAWN, tensor(number))) == (0 if number == 0 else 2)


def test_the_best_is_the_one_that_is_believed_most() -> None:
    """Whatever number was drawn."""
    model = posterior([0.3, 0.5, 0.2])
    assert {int(pick(model, Rule.BEST, u)) for u in uniform(20)} == {1}


def test_before_the_first_observation_the_most_believed_one_is_asked() -> None:
    """None was ever wrong: nothing is drawn."""
    model = posterior([0.3, 0.5, 0.2], n=0)
    assert {int(pick(model, Rule.DRAWN, u)) for u in uniform(20)} == {1}


def test_every_problem_of_a_batch_has_its_own_draw() -> None:
    """A number for each gives each its own candidate; one number for all is the same as alone."""
    model = posterior([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.6, 0.2]], batch_shape=(3,))
    assert pick(model, Rule.DRAWN, tensor([0.9, 0.1, 0.5])).tolist() == [0, 2, 1]
    assert pick(model, Rule.DRAWN, tensor(0.1)).tolist() == [0, 2, 0]


@pytest.mark.parametrize("batch_shape", [(4,), (2, 2)])
def test_answers_are_put_together_in_the_order_of_the_problems(batch_shape: tuple[int, ...]) -> None:
    """Each candidate answers once, for all problems that ask it, and for no other."""
    model = posterior(batch_shape=batch_shape)
    which = torch.tensor([2, 0, 2, 1]).reshape(batch_shape)
    asked = []

    def ask(candidate: object, k: int, rows: Tensor | None) -> Tensor:
        assert rows is not None
        asked.append((k, rows.tolist(), candidate.batch_shape))  # type: ignore[attr-defined]
        return torch.stack([rows, torch.full_like(rows, k)], dim=-1)

    answers = answered(model, which, ask)
    assert asked == [(0, [1], (1,)), (1, [3], (1,)), (2, [0, 2], (2,))]
    assert answers.shape == (*batch_shape, 2)
    assert answers.reshape(4, 2).tolist() == [[0, 2], [1, 0], [2, 2], [3, 1]]


# ── what a point is worth ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_average_is_the_log_of_the_expected_improvement_under_all() -> None:
    """log Σ w EI, each candidate improving on its own incumbent, with a finite gradient."""
    model = posterior([0.5, 0.2, 0.3])
    parts, improvements = [], []
    for k in range(3):
        candidate = model.candidate(k)
        units = InModelUnits(candidate.units)
        best = incumbent(candidate, posterior_transform=units)
        parts.append(PlainWorth.of(candidate, Acquisition.LOG_EI, best_f=best, beta=3.0))
        mean, var = candidate.predict(PROBLEM.Xq)
        sd, normal = var.sqrt(), torch.distributions.Normal(0.0, 1.0)
        u = (best - mean) / sd
        improvements.append(sd * (u * normal.cdf(u) + normal.log_prob(u).exp()))
    X = PROBLEM.Xq.clone().requires_grad_()
    value = AveragedWorth(Acquisition.LOG_EI, tuple(parts), model.weights)(X)
    expected = (torch.stack(improvements, dim=-1) @ model.weights).log()
    likely = expected > -15  # further out the plain formula is all cancellation
    assert int(likely.sum()) > 10
    torch.testing.assert_close(value[likely], expected[likely], rtol=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert bool(gradient.isfinite().all())


def test_a_candidate_that_is_not_believed_has_no_say_in_the_average() -> None:
    """With weight 1 on one of them the average is its own value, gradient included."""
    for k, weights in enumerate(ALONE.values()):
        model = posterior(weights)
        parts = []
        for j in range(3):
            best = incumbent(model.candidate(j), posterior_transform=InModelUnits(model.units))
            parts.append(PlainWorth.of(model.candidate(j), Acquisition.LOG_EI, best_f=best, beta=3.0))
        X = PROBLEM.Xq.clone().requires_grad_()
        value = AveragedWorth(Acquisition.LOG_EI, tuple(parts), model.weights)(X)
        (gradient,) = torch.autograd.grad(value.sum(), X)
        torch.testing.assert_close(value, parts[k](PROBLEM.Xq))
        assert bool(gradient.isfinite().all())


def test_a_lower_bound_is_averaged_as_it_is() -> None:
    """For LCB the value is Σ w (β sd − mean); a weight of less than a thousandth is none, problem by problem."""
    values = tensor([[1.0, 5.0, -2.0], [0.0, 1.0, 2.0]])
    assert averaged(Acquisition.LCB, values, tensor([0.5, 0.25, 0.25])).tolist() == pytest.approx([1.25, 0.75])
    model = posterior([[0.5, 0.0005, 0.4995], [0.4, 0.6, 0.0], [0.7, 0.0, 0.3]], batch_shape=(3,))
    every, weights = counting(model)
    assert every == [0, 1, 2]
    assert weights.tolist() == [[0.5, 0.0, 0.4995], [0.4, 0.6, 0.0], [0.7, 0.0, 0.3]]
    every, weights = counting(posterior([0.0005, 0.0, 0.9995]))
    assert (every, weights.tolist()) == ([2], [0.9995])


# ── suggestions ───────────────────────────────────────────────────────────────────────────────────────────────────


@RULES
@pytest.mark.parametrize("name", ALONE)
def test_a_candidate_that_is_believed_alone_makes_the_suggestion(name: str, rule: Rule) -> None:
    """Whatever the rule, no point is worth more to that candidate, and some are to another."""
    model = disagreeing(ALONE[name])
    k = list(ALONE).index(name)
    x = suggest(model, rule=rule)
    values = []
    for j in (k, (k + 1) % 3):
        candidate = model.candidate(j)
        best = incumbent(candidate, posterior_transform=InModelUnits(candidate.units))
        value = PlainWorth.of(candidate, Acquisition.LOG_EI, best_f=best, beta=3.0)
        values.append((value(suggest(candidate).unsqueeze(0)) - value(x.unsqueeze(0))).item())
    assert values[0] < 1e-3
    assert values[1] > 0.01


@RULES
@pytest.mark.parametrize("batch_shape", [(3,), (1, 2)])
def test_a_batch_gets_what_its_problems_get_alone(rule: Rule, batch_shape: tuple[int, ...]) -> None:
    """With equal seeds, also where the problems of the batch ask different candidates."""
    problem = transfer_problem(batch_shape=batch_shape)
    params = params_for("AUTO", batch_shape=batch_shape)
    weights = tensor(list(ALONE.values())[::-1][: batch_shape[-1]]).expand(*batch_shape, 3)
    params = replace(params, weights=weights)
    together = suggest(AUTO.at(params, sources=problem.sources, target=problem.target), seed=3, q=2, rule=rule)
    assert together.shape == (*batch_shape, 2, 2)
    for i in torch.cartesian_prod(*(torch.arange(b) for b in (1, *batch_shape)))[:, 1:].tolist():
        index = tuple(i)
        one = AUTO.at(
            item_of(params, index),
            sources=[item_of(s, index) for s in problem.sources],
            target=item_of(problem.target, index),
        )
        torch.testing.assert_close(suggest(one, seed=3, q=2, rule=rule), together[index], rtol=0, atol=1e-4)


@RULES
def test_several_points_at_once_differ_and_keep_away_from_pending_ones(rule: Rule) -> None:
    """q = 3 gives three points; with the first of them pending the next is another."""
    model = posterior([0.4, 0.3, 0.3])
    points = suggest(model, q=3, seed=1, rule=rule)
    assert points.shape == (3, 2)
    apart = torch.cdist(points, points).fill_diagonal_(1.0)
    assert float(apart.min()) > 1e-3
    first = suggest(model, seed=1, rule=rule)
    other = suggest(model, pending=first.unsqueeze(0), seed=1, rule=rule)
    assert float((other - first).abs().max()) > 1e-3
    avoided = suggest(model, avoid=first.unsqueeze(0), seed=1, rule=rule)
    assert float((avoided - first).abs().max()) > 1e-7


def test_a_fitted_auto_suggests_near_the_optimum_of_a_related_source() -> None:
    """Before the first observation the point lies where the source was lowest."""
    X = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    prior = AUTO.learn([Dataset(X, (X - 0.7).square().sum(-1))])
    x = suggest(prior.condition())
    assert float((x - 0.7).abs().max()) < 0.15
