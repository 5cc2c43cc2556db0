"""How probable it is that a limit holds: in the user's units, through the output map, by all members."""

from __future__ import annotations

import pytest
import torch
from tests.outcome_problems import LIMITED, known
from tests.problems import generator, points, tensor

from headstart import AUTO, Dataset, TransferPosterior
from headstart.decide.several.gain import log_within
from headstart.decide.several.members import Heard, Panel
from headstart.decide.several.quest import SeveralOutcomes
from headstart.models.mixture import components

N = 200_000


def _steep(X: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    return (5 * (X - 0.4 - shift).square().sum(-1)).exp()


def _posterior(n: int = 5) -> TransferPosterior:
    sources = [Dataset(points(15, seed=i), _steep(points(15, seed=i), 0.1 * i)) for i in range(2)]
    X = points(n, seed=5)
    return AUTO.learn(sources).condition(Dataset(X, _steep(X)) if n else Dataset.empty(2))


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("limit", [1.5, 4.0])
def test_the_probability_is_the_share_of_measurements_within_the_limit(n: int, limit: float) -> None:
    """Drawn from every member with its own noise, and brought into the user's units before they are compared."""
    posterior, X = _posterior(n), points(6, seed=8)
    panel = Panel.of(Heard.of(posterior.predictor))
    found = log_within(panel.ask(X), posterior.bound(limit))[0].exp()
    g, parts = generator(0), components(posterior.predictor, X)
    weights = torch.stack([weight for _, weight, _ in parts if weight is not None])
    counts = torch.multinomial(weights, N, replacement=True, generator=g).bincount(minlength=len(parts))
    drawn = []
    for (member, _, at), k in zip(parts, counts.tolist(), strict=True):
        mean, var = member.predict_marginal(at)
        e = torch.randn(k, 6, generator=g, dtype=torch.float64)
        drawn.append(mean + (var + member.noise_var).sqrt() * e)
    assert posterior.warp is not None
    y = posterior.warp.outward(posterior.units.offset + posterior.units.scale * torch.cat(drawn))
    share = (y <= limit).double().mean(0)
    # members with hardly any weight are not asked
    assert bool(((found - share).abs() < 5 * (share * (1 - share) / N).sqrt() + 4e-3).all())


def test_what_is_stated_is_the_distribution_of_a_measurement() -> None:
    """``within`` is ``cdf`` at the limit, with all that the members leave out of their uncertainty."""
    posterior, X = _posterior(), points(4, seed=8)
    torch.testing.assert_close(posterior.within(X, 2.0), posterior.cdf(X, tensor([2.0] * 4)))
    found = known(LIMITED, 4)
    own = found["impurity"].within(X, 0.04)
    assert torch.equal(found.probability_within(X), own)


def test_a_limit_among_outliers_still_tells_them_apart() -> None:
    """Outliers are pulled in, and a limit with them: a value a thousand times too high is not within it."""
    X = points(12, seed=0)
    y = 1 + 0.1 * X[:, 0]
    y[3] = 5e4
    prior = AUTO.learn([Dataset(points(15, seed=1), 1 + 0.1 * points(15, seed=1)[:, 0])])
    posterior = prior.condition(Dataset(X, y))
    assert posterior.warp is not None
    pulled = posterior.warp.task_inward(Dataset(X, y)).y
    for limit, within in ((2e4, False), (1e5, True)):
        bound = posterior.units.offset + posterior.units.scale * posterior.bound(limit)
        assert bool(pulled[3] <= bound) is within
        assert bool((torch.cat([pulled[:3], pulled[4:]]) <= bound).all())


def test_whether_a_result_is_within_the_limits_is_what_was_measured() -> None:
    """Not what the model makes of it; repeated measurements count by their mean."""
    X = tensor([[0.6, 0.5], [0.6, 0.5], [0.1, 0.1], [0.42, 0.5]])
    found = known(LIMITED, 0, X=X)
    assert SeveralOutcomes(found).holds(X).tolist() == [True, True, False, True]
    assert len(SeveralOutcomes(found).observed) == 4
