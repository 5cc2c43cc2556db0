"""The next points under rules."""

from __future__ import annotations

import pytest
import torch
from tests.unit.decide.ruled.domains import DOMAINS
from tests.unit.decide.ruled.random_rules import broken

from headstart import AUTO, GPBO, Dataset, FitOptions, TransferPosterior, suggest
from headstart.decide.acquisition import Acquisition
from headstart.decide.aim import Aim
from headstart.decide.ruled.ruled import Ruled
from headstart.gp.fit import generator_from

NAMES = ("mixture", "bounds", "logs", "whole numbers", "both", "reaction")
AT_ONCE = {("mixture", 0), ("bounds", 1), ("whole numbers", 2), ("both", 0), ("reaction", 1)}


def _objective(X: torch.Tensor, best: torch.Tensor) -> torch.Tensor:
    return 5 * (X - best).square().sum(-1) + torch.sin(8 * X[..., 0])


def _posterior(domain: Ruled, seed: int, n: int = 20) -> TransferPosterior:
    """After results anywhere in the space, of which most break the rules."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.cat(
        [
            domain.uniform(n // 2, generator),
            domain.space.snap(torch.rand(n // 2, domain.d, generator=generator).double()),
        ]
    )
    y = _objective(X, domain.uniform(1, generator)[0])
    return GPBO.using(fit=FitOptions(restarts=2)).learn([]).condition(Dataset(X, y, categories=domain.categories))


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=() if (name, seed) in AT_ONCE else pytest.mark.slow)
        for name in NAMES
        for seed in range(3)
    ],
)
def test_a_suggestion_is_no_worse_than_the_best_of_two_thousand_points(name: str, seed: int) -> None:
    """Drawn independently among those that keep the rules."""
    domain = DOMAINS[name]
    posterior = _posterior(domain, seed)
    x = suggest(posterior, domain=domain, seed=seed)
    assert broken(domain, x.unsqueeze(0)) == []
    generator = generator_from(seed)
    X = domain.uniform(2000, generator)
    value = Aim.of(posterior, Acquisition.LOG_EI, 3.0).value(X, X[:0], generator)
    with torch.no_grad():
        assert float(value(x.unsqueeze(0))) >= float(value(X).max()) - 1e-6


@pytest.mark.parametrize(
    "name", ["logs", "both", "reaction", *(pytest.param(n, marks=pytest.mark.slow) for n in NAMES[:2] + NAMES[3:4])]
)
def test_a_batch_keeps_the_rules_with_others_pending(name: str) -> None:
    """And no point comes twice."""
    domain = DOMAINS[name]
    pending = domain.spread(2, generator_from(1))
    X = suggest(_posterior(domain, 0), domain=domain, q=2, pending=pending, seed=0, n_candidates=128)
    assert broken(domain, X) == []
    every = torch.cat([X, pending])
    assert float(torch.cdist(every, every, p=torch.inf).fill_diagonal_(1.0).min()) >= 1e-6


def test_problems_in_lockstep_keep_the_rules() -> None:
    """Each gets its own point."""
    domain = DOMAINS["bounds"]
    X = domain.uniform(24, generator_from(0)).reshape(3, 8, 10)
    y = _objective(X, torch.full((10,), 0.1).double())
    x = suggest(GPBO.using(fit=FitOptions(restarts=1)).learn([]).condition(Dataset(X, y)), domain=domain, seed=0)
    assert x.shape == (3, 10)
    assert broken(domain, x) == []


def test_the_past_may_break_the_rules() -> None:
    """Its rows are evidence, and its best ones are tried as near as the rules allow."""
    domain = DOMAINS["mixture"]
    generator = generator_from(0)
    X = torch.rand(40, 10, generator=generator, dtype=torch.float64)
    prior = AUTO.using(fit=FitOptions(restarts=1)).learn([Dataset(X, _objective(X, torch.full((10,), 0.3).double()))])
    x = suggest(prior.condition(), domain=domain, q=2, seed=0)
    assert broken(domain, x) == []


def test_equal_seeds_give_equal_points() -> None:
    """Also in a domain that has answered before."""
    posterior = _posterior(DOMAINS["mixture"], 0)
    first = suggest(posterior, domain=DOMAINS["mixture"], seed=3)
    again = suggest(posterior, domain=Ruled(DOMAINS["mixture"].space, DOMAINS["mixture"].rules), seed=3)
    torch.testing.assert_close(first, again, rtol=0, atol=0)
