"""RGPE's draws from a source's prediction: determined by the prediction, not by how its covariance is factorised."""

from __future__ import annotations

import torch

from headstart.gp.fit import generator_from
from headstart.gp.kernels import Kernel
from headstart.models.ensemble import _samples


def _prediction() -> tuple[torch.Tensor, torch.Tensor]:
    X = torch.rand(6, 2, generator=generator_from(0), dtype=torch.float64)
    X[5] = X[0]  # a repeated input: the covariance is singular
    return torch.arange(6.0, dtype=torch.float64), Kernel.RBF(X, X, torch.full((2,), 0.4, dtype=torch.float64))


def test_draws_go_through_the_symmetric_root() -> None:
    """The only positive semidefinite R with R R = cov maps the random numbers to the draws.

    Eigenvectors have no sign of their own: through V √Λ it would be arbitrary which draw belongs to which numbers.
    """
    mean, cov = _prediction()
    numbers = torch.randn(50, 6, generator=generator_from(1), dtype=torch.float64)
    root = torch.linalg.lstsq(numbers, _samples(mean, cov, 50, generator_from(1)) - mean).solution
    assert torch.allclose(root, root.mT, atol=1e-7)
    assert torch.linalg.eigvalsh(root).min() > -1e-7
    assert torch.allclose(root @ root, cov, atol=1e-7)


def test_draws_have_the_mean_and_the_covariance_of_the_prediction() -> None:
    """Also where an input is repeated: both of its values are equal in every draw."""
    mean, cov = _prediction()
    draws = _samples(mean, cov, 20_000, generator_from(3))
    assert torch.allclose(draws.mean(0), mean, atol=0.03)
    assert torch.allclose(torch.cov(draws.T), cov, atol=0.05)
    assert torch.allclose(draws[:, 0] - mean[0], draws[:, 5] - mean[5], atol=1e-6)
