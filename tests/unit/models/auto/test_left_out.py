"""What leaving a source out would have changed."""

from __future__ import annotations

import pytest
import torch
from tests.problems import points

from headstart import AUTO, STAR, Dataset
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.left_out import _states, _told, left_out
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.layer import Layer
from headstart.models.star.weights import StarBeliefs


def _task(n: int, seed: int, sign: float = 1.0) -> Dataset:
    X = points(n, seed=seed)
    return Dataset(X, sign * (5 * (X[:, 0] - 0.3).square() + (X[:, 1] - 0.6).square()), f"{seed}")


def _fitted(*sources: Dataset, results: int = 8) -> tuple[AutoPrior, AutoPosterior]:
    prior = AUTO.learn(sources)
    posterior = prior.condition(_task(results, 9))
    assert isinstance(prior, AutoPrior)
    assert isinstance(posterior, AutoPosterior)
    return prior, posterior


@pytest.mark.parametrize("case", range(3))
def test_a_source_that_is_left_out_is_its_prior(case: int) -> None:
    """Mean and covariance of the weighted sum, term by term: without its rows a source has no shape."""
    layer = STAR.learn([_task(12, 0), _task(9, 1, -1.0)]).condition(_task(6, 9)).predictor
    assert isinstance(layer, Layer)
    below = layer.below
    assert isinstance(below, StarBeliefs)
    heard = torch.tensor([[True, True], [False, True], [True, False]])
    mean, cov, _ = (part[0] for part in _states([layer], heard, 6))
    X, weights = layer.X, below.weights
    expected = OFFSET_VAR + layer.params.outputscale * layer.kernel(X, X, layer.params.lengthscale)
    expected_mean = torch.zeros(6, dtype=torch.float64)
    for i, (member, told) in enumerate(zip(below.members, heard[case].tolist(), strict=True)):
        at, prior_cov = member.at(X), member.prior_cov(X, X)
        shape = at.mean - member.offset if told else torch.zeros(6, dtype=torch.float64)
        known = member.cov(at, at) if told else prior_cov
        expected_mean = expected_mean + weights.mean[i] * shape
        expected = expected + (weights.mean[i].square() + weights.var[i]) * known + weights.own[i] * prior_cov
        expected = expected + weights.var[i] * torch.outer(shape, shape)
    torch.testing.assert_close(mean[case], expected_mean)
    torch.testing.assert_close(cov[case], expected)


def test_results_are_told_by_conditioning() -> None:
    """Every prediction is the conditional mean of a normal distribution given the results before it."""
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(1, 2, 5, 8, generator=generator, dtype=torch.float64)
    mean, cov = torch.randn(1, 2, 5, generator=generator, dtype=torch.float64), A @ A.mT
    noise, y = torch.full((1, 1, 5), 0.1, dtype=torch.float64), torch.randn(5, generator=generator, dtype=torch.float64)
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    in_turn, best_at = _told(one, (mean, cov, noise), y, in_turn=True)
    assert best_at.tolist() == [int(y.argmin())] * 2
    for case in range(2):
        order: list[int] = []
        for step in range(5):
            for known, found in ((list(range(step)), in_turn[case, step]), (order, None)):
                C = cov[0, case][:, known]
                K = C[known] + 0.1 * torch.eye(step, dtype=torch.float64)
                told = mean[0, case] + C @ torch.linalg.solve(K, y[known] - mean[0, case, known])
                if found is not None:
                    assert float(told[step]) == pytest.approx(float(found))
            left = [i for i in range(5) if i not in order]
            order = [*order, min(left, key=lambda i: float(told[i]))]
        _, promising = _told(one, (mean, cov, noise), y, in_turn=False)
        assert promising[case] == order.index(int(y.argmin()))


def test_leaving_out_what_is_like_the_target_costs_and_a_constant_nothing() -> None:
    """In the target's units: ten times the results, ten times the gain; a source of weight 0 changes nothing."""
    constant = Dataset(points(20, seed=3), torch.ones(20, dtype=torch.float64))
    found = left_out(*_fitted(_task(20, 0), constant))
    assert found is not None
    gain, trials = found
    assert gain[0] > 0
    assert trials[0] >= 0
    assert gain[1] == 0
    assert trials[1] == 0
    prior = AUTO.learn([s.with_data(s.X, 10 * s.y) for s in (_task(20, 0), constant)])
    target = _task(8, 9)
    posterior = prior.condition(target.with_data(target.X, 10 * target.y))
    assert isinstance(prior, AutoPrior)
    assert isinstance(posterior, AutoPosterior)
    scaled = left_out(prior, posterior)
    assert scaled is not None
    torch.testing.assert_close(scaled[0], 10 * gain, rtol=1e-3, atol=1e-9)


def test_before_two_results_nothing_was_predicted() -> None:
    """Nor can a source be left out of candidates that are no stars."""
    assert left_out(*_fitted(_task(12, 0), results=1)) is None
    model = Auto(candidates=tuple(c for c in AUTO.candidates if not c.informed or c.pooled))
    prior = model.learn([_task(12, 0), _task(12, 1)])
    posterior = prior.condition(_task(5, 9))
    assert isinstance(prior, AutoPrior)
    assert isinstance(posterior, AutoPosterior)
    assert left_out(prior, posterior) is None
