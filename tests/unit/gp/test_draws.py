"""Hyperparameters that stay uncertain: draws around the most probable ones, and what each counts for."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from tests.problems import generator, tensor
from torch import Tensor

from headstart import FitOptions, InputError, Kernel
from headstart.gp.draws import _flattened, draws_around
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import fit
from headstart.gp.hyperparameters import Inputs, gp_layout
from headstart.tuning import PLAIN_TUNING

LAYOUT = gp_layout(Inputs.of(2), residual=False)
SIZE = LAYOUT.size
ROOT = tensor([[4.0, 0.0, 0.0, 0.0], [1.5, 3.0, 0.0, 0.0], [-1.0, 0.5, 5.0, 0.0], [0.0, -2.0, 1.0, 2.0]])


@dataclass
class Bowl:
    """½ (θ − m)ᵀ A (θ − m), not to be seen where the first parameter exceeds ``cliff``."""

    minimum: Tensor
    A: Tensor
    cliff: float = torch.inf
    n_observations: int = 5

    def __post_init__(self) -> None:
        self.layout, self.device, self.n_problems = LAYOUT, torch.device("cpu"), len(self.minimum)

    def evaluate(self, theta: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        away = theta - self.minimum[items]
        slope = away @ self.A
        return 0.5 * (away * slope).sum(-1), slope, theta[:, 0] <= self.cliff

    def mode(self) -> tuple[Tensor, Tensor]:
        """That of the posterior, with the priors of the layout, and its curvature."""
        prior = LAYOUT.precision().diag()
        H = self.A + prior
        return torch.linalg.solve(H, (self.minimum @ self.A + LAYOUT.centre() @ prior).mT).mT, H


def plain(P: int = 1, n: int = 8) -> GaussianEvidence:
    X = torch.rand(P, n, 2, generator=generator(1), dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1) + torch.arange(P)[:, None] * X[..., 0]
    return GaussianEvidence(X, y, None, kernel=Kernel.MATERN52, residual=False, free_offset=True)


def mode_of(evidence: GaussianEvidence) -> Tensor:
    P = evidence.n_problems
    theta, _ = fit(evidence, FitOptions(restarts=2), seed=0, task="target", batch_shape=torch.Size((P,)))
    return theta


def test_draws_of_a_quadratic_evidence_have_its_covariance_and_equal_weights() -> None:
    """Where the posterior is normal the approximation is exact: covariance H⁻¹, and every draw counts alike."""
    bowl = Bowl(tensor([[-1.0, 0.2, 0.3, -4.0]]), ROOT @ ROOT.mT)
    theta, H = bowl.mode()
    points, weights = draws_around(bowl, theta, 20_000, generator())
    assert points.shape == (20_001, 1, SIZE)
    torch.testing.assert_close(weights, torch.full((1, 20_001), 1 / 20_001, dtype=torch.float64), rtol=1e-6, atol=0)
    away = points[1:, 0] - theta[0]
    expected = torch.linalg.inv(H)
    found = away.mT @ away / len(away)
    scale = expected.diagonal().sqrt()
    torch.testing.assert_close(found / scale.outer(scale), expected / scale.outer(scale), rtol=0, atol=0.03)


def test_the_mode_comes_first_and_draws_come_with_their_opposites() -> None:
    """So that their mean is the mode."""
    bowl = Bowl(tensor([[-1.0, 0.2, 0.3, -4.0]]), ROOT @ ROOT.mT)
    theta, _ = bowl.mode()
    points, _ = draws_around(bowl, theta, 6, generator())
    torch.testing.assert_close(points[0], theta)
    torch.testing.assert_close(points[1:4] + points[4:], 2 * theta.expand(3, 1, SIZE))


def test_a_draw_counts_by_how_probable_it_is_and_how_often_it_is_drawn() -> None:
    """w ∝ p(θ | y)/q(θ): where the posterior is not normal, means over draws are those of the posterior."""

    class Skewed(Bowl):
        def evaluate(self, theta: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            value, slope, ok = super().evaluate(theta, items)
            x = theta[:, 1]  # a half that is steeper
            extra = torch.zeros_like(slope)
            extra[:, 1] = torch.where(x > 0, 20 * x, 0.0)
            return value + torch.where(x > 0, 10 * x.square(), 0.0), slope + extra, ok

    A = torch.diag(tensor([30.0, 3.0, 30.0, 30.0]))
    skewed = Skewed(tensor([[0.0, 0.0, 0.0, -4.0]]), A)
    theta, _ = skewed.mode()
    points, weights = draws_around(skewed, theta, 40_000, generator())
    assert weights.sum().item() == pytest.approx(1, abs=1e-12)
    grid = torch.linspace(-4, 3, 70_001, dtype=torch.float64)
    value = 0.5 * 3 * grid.square() + torch.where(grid > 0, 10 * grid.square(), 0.0)
    prior = 0.5 * ((grid - LAYOUT.centre()[1]) ** 2) * LAYOUT.precision()[1]
    density = (-(value + prior)).exp()
    expected = float((density * grid).sum() / density.sum())
    assert float(weights[0] @ points[:, 0, 1]) == pytest.approx(expected, abs=0.015)
    assert abs(float(points[:, 0, 1].mean()) - expected) > 0.1  # without the weights they are around the mode


def test_without_observations_the_draws_are_the_priors() -> None:
    """Medians and spreads of the layout, and equal weights where no bound is in the way."""
    evidence = plain(n=0)
    points, weights = draws_around(evidence, LAYOUT.centre().unsqueeze(0), 4000, generator())
    away = (points[1:, 0] - LAYOUT.centre()) * LAYOUT.precision().sqrt()
    lower, upper = LAYOUT.bounds()
    inside = ((points[:, 0] > lower) & (points[:, 0] < upper)).all(-1)
    assert float((away.square().mean(0).sqrt() - 1).abs().max()) < 0.06
    assert float(inside.double().mean()) > 0.95
    own = weights[0, inside]
    torch.testing.assert_close(own, own[0].expand(len(own)))
    assert bool(((points >= lower) & (points <= upper)).all())


def test_a_batch_gives_what_its_problems_give_alone() -> None:
    """They share the standard draws, and nothing else."""
    every = plain(3)
    theta = mode_of(every)
    points, weights = draws_around(every, theta, 8, generator(4))
    assert weights.shape == (3, 9)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, dtype=torch.float64))
    X = torch.rand(3, 8, 2, generator=generator(1), dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1) + torch.arange(3)[:, None] * X[..., 0]
    for i in range(3):
        alone = GaussianEvidence(
            X[i : i + 1], y[i : i + 1], None, kernel=Kernel.MATERN52, residual=False, free_offset=True
        )
        own, own_weights = draws_around(alone, theta[i : i + 1], 8, generator(4))
        torch.testing.assert_close(own[:, 0], points[:, i], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(own_weights[0], weights[i], rtol=1e-7, atol=1e-9)
    assert not torch.allclose(weights[0], weights[1])


def test_equal_seeds_give_equal_draws_and_leave_the_global_state_alone() -> None:
    """A generator decides."""
    evidence = plain()
    theta = mode_of(evidence)
    state = torch.random.get_rng_state()
    first, again, other = (draws_around(evidence, theta, 4, generator(seed))[0] for seed in (3, 3, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.random.get_rng_state())


def test_few_observations_leave_more_open_than_many() -> None:
    """The draws of three observations lie further apart than those of thirty."""
    apart = []
    for n in (3, 30):
        evidence = plain(n=n)
        points, _ = draws_around(evidence, mode_of(evidence), 64, generator())
        apart.append(float(points[1:, 0].std(0).mean()))
    assert apart[1] < 0.7 * apart[0]


def test_a_direction_without_curvature_is_not_endless() -> None:
    """On a saddle or a plain a draw is at most a factor e² (one standard deviation) away, inside the bounds."""
    saddle = Bowl(LAYOUT.centre().unsqueeze(0), -3.0 * torch.eye(SIZE, dtype=torch.float64))
    points, weights = draws_around(saddle, LAYOUT.centre().unsqueeze(0), 2000, generator())
    lower, upper = LAYOUT.bounds()
    assert bool(((points >= lower) & (points <= upper)).all())
    assert float(points[1:, 0].std(0).max()) < 2.1
    assert bool(weights.isfinite().all())


def test_what_cannot_be_factorised_counts_for_nothing() -> None:
    """Beyond the cliff a draw has weight 0, and the others add up to 1."""
    bowl = Bowl(tensor([[-1.0, 0.2, 0.3, -4.0]]), ROOT @ ROOT.mT)
    theta, _ = bowl.mode()
    bowl.cliff = float(theta[0, 0]) + 0.1  # further away than the differences look
    points, weights = draws_around(bowl, theta, 40, generator())
    beyond = points[:, 0, 0] > bowl.cliff
    assert 0 < int(beyond.sum()) < 41
    assert bool((weights[0, beyond] == 0).all())
    assert bool((weights[0, ~beyond] > 0).all())
    assert weights.sum().item() == pytest.approx(1)


def test_weights_are_flattened_until_enough_draws_count() -> None:
    """``draws_effective`` of them as if all were equal; their order stays, and balanced ones are left alone."""
    balanced = tensor([[0.1, -0.2, 0.3, 0.0, -0.1]])
    torch.testing.assert_close(_flattened(balanced), balanced.softmax(-1))
    steep = tensor([[0.0, -40.0, -3.0, -90.0, -7.0], [0.1, -0.2, 0.3, 0.0, -0.1]])
    weights = _flattened(steep)
    assert float(1 / weights[0].square().sum()) >= PLAIN_TUNING.draws_effective
    assert weights[0].argsort().tolist() == steep[0].argsort().tolist()
    torch.testing.assert_close(weights[1], balanced[0].softmax(-1))
    torch.testing.assert_close(weights.sum(-1), tensor([1.0, 1.0]))
    broken = _flattened(tensor([[0.0, torch.nan, -torch.inf, -1.0]]))
    assert broken[0, 1:3].tolist() == [0.0, 0.0]
    assert broken.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("draws", [-2, 3, 2.0])
def test_draws_come_in_pairs(draws: int) -> None:
    """An odd number is refused, and named."""
    with pytest.raises(InputError, match="draws come in pairs"):
        FitOptions(draws=draws)
