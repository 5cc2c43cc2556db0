"""Points whose result is awaited."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import points

from headstart import FAMILY, Dataset, FitOptions, InputError, TransferPosterior
from headstart.decide.acquisition import Acquisition
from headstart.decide.average import PlainAcquisition, Voice
from headstart.decide.pending import ByCovariance, ByLayer, PendingAcquisition

KINDS = pytest.mark.parametrize("kind", Acquisition)


def _waves(X: torch.Tensor) -> torch.Tensor:
    return torch.sin(6 * X).sum(-1) + (X - 0.3).square().sum(-1)


def _posterior(name: str = "SHGP", n: int = 5, noise: float = 0.0, draws: int = 8) -> TransferPosterior:
    source, X = points(10, seed=0), points(n, seed=1)
    prior = FAMILY[name].using(fit=FitOptions(restarts=1, draws=draws)).learn([Dataset(source, 7 * _waves(source))])
    error = noise * torch.randn(n, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return prior.condition(Dataset(X, 7 * (_waves(X + 0.1) + error)))


def _lowest(posterior: TransferPosterior) -> torch.Tensor:
    """The lowest mean at the observed points, in model units."""
    return posterior.predictor.predict_marginal(posterior.train_inputs[0])[0].amin(-1)


def _value(
    posterior: TransferPosterior, pending: torch.Tensor, kind: Acquisition = Acquisition.LOG_EI
) -> PendingAcquisition:
    best_f, generator = _lowest(posterior), torch.Generator().manual_seed(0)
    return PendingAcquisition.of(
        posterior.predictor, kind, pending=pending, best_f=best_f, beta=3.0, generator=generator
    )


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "HGP"])
@KINDS
def test_observing_and_conditioning_on_the_covariance_agree(name: str, kind: Acquisition) -> None:
    """Where Bayes' rule holds, the two ways of taking an awaited result into account give the same value."""
    posterior, pending, X = _posterior(name, draws=0), points(3, seed=2), points(20, seed=3)
    value = _value(posterior, pending, kind)
    assert isinstance(value.given, ByLayer)
    _, cov = posterior.predictor.predict(pending)
    noise = 1e-4 * cov.diagonal() + 1e-10
    L = torch.linalg.cholesky(cov + noise.diag())
    given = ByCovariance(posterior.predictor, pending, L, value.given.z)
    other = PendingAcquisition(given, kind, value.best_f, value.noise_var, value.beta)
    torch.testing.assert_close(other(X), value(X), rtol=1e-6, atol=1e-6)


def test_the_value_is_what_a_point_adds_to_the_expected_improvement_of_the_batch() -> None:
    """E[max(f* − min(f(P), f(x)), 0)] − E[max(f* − min f(P), 0)], here by many draws of all values together."""
    posterior, pending, X = _posterior("GPBO", n=4, draws=0), points(2, seed=2), points(6, seed=3)
    best_f = _lowest(posterior)
    added = []
    generator = torch.Generator().manual_seed(1)
    for x in X:
        mean, cov = posterior.predictor.predict(torch.cat([pending, x.unsqueeze(0)]))
        L = torch.linalg.cholesky(cov + 1e-10 * torch.eye(3, dtype=torch.float64))
        f = mean + torch.randn(400_000, 3, generator=generator, dtype=torch.float64) @ L.mT
        batch, others = f.amin(-1), f[:, :2].amin(-1)
        added.append(((best_f - batch).clamp_min(0) - (best_f - others).clamp_min(0)).mean())
    without_noise = replace(_value(posterior, pending), noise_var=torch.tensor(0.0, dtype=torch.float64))
    value = without_noise(X).exp()
    assert bool((_value(posterior, pending)(X) < value.log()).all())
    assert int((value > 0.03).sum()) == 3
    torch.testing.assert_close(value, torch.stack(added), rtol=0.1, atol=2e-3)


def test_the_bound_keeps_its_mean_and_loses_uncertainty() -> None:
    """LCB is −(mean − β sd) with the mean as it is and the standard deviation given the awaited points."""
    posterior, pending, X = _posterior(), points(3, seed=2), points(20, seed=3)
    mean, var = posterior.predictor.predict_marginal(X)
    left = (_value(posterior, pending, Acquisition.LCB)(X) + mean) / 3.0
    assert bool((left <= var.sqrt() + 1e-9).all())
    joint = posterior.predictor.predict(torch.cat([pending, X]))[1]
    given = joint[3:, 3:] - joint[3:, :3] @ torch.linalg.solve(joint[:3, :3], joint[:3, 3:])
    torch.testing.assert_close(left, given.diagonal().sqrt(), rtol=0.02, atol=1e-3)


@pytest.mark.parametrize("name", FAMILY)
@KINDS
def test_a_pending_point_is_worth_little(name: str, kind: Acquisition) -> None:
    """In every model a point is worth less once its result is awaited, under noise too, and gradients are finite."""
    posterior = _posterior(name, noise=0.3)
    X = points(200, seed=3)
    plain = PlainAcquisition(Voice(posterior.predictor, None), kind, _lowest(posterior), 3.0)
    best = X[plain(X).argmax()].unsqueeze(0)
    value = _value(posterior, best, kind)
    assert value(best).item() < plain(best).item() - 0.1
    assert value(X).shape == (200,)
    query = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(value(query).sum(), query)
    assert bool(gradient.isfinite().all())


@KINDS
def test_pending_points_may_repeat(kind: Acquisition) -> None:
    """The same point twice teaches what it teaches once."""
    posterior, pending, X = _posterior(), points(1, seed=2), points(20, seed=3)
    once, twice = _value(posterior, pending, kind)(X), _value(posterior, pending.expand(2, 2), kind)(X)
    torch.testing.assert_close(once, twice, rtol=0, atol=0.5)


@pytest.mark.parametrize("name", ["SHGP", "RGPE"])
@KINDS
def test_a_batch_of_problems_equals_one_by_one(name: str, kind: Acquisition) -> None:
    """Every problem has its own pending points."""
    source, X, pending, queries = (points(2, n, seed=n) for n in (9, 4, 3, 7))
    model = FAMILY[name].using(fit=FitOptions(restarts=1))
    batch = model.learn([Dataset(source, _waves(source))]).condition(Dataset(X, _waves(X + 0.1)))
    together = _value(batch, pending, kind)(queries)
    assert together.shape == (2, 7)
    for i in range(2):
        single = model.learn([Dataset(source[i], _waves(source[i]))]).condition(Dataset(X[i], _waves(X[i] + 0.1)))
        if name == "SHGP":  # the weights of RGPE are drawn for the batch together
            torch.testing.assert_close(_value(single, pending[i], kind)(queries[i]), together[i], rtol=1e-3, atol=1e-3)


def test_a_negative_beta_is_refused() -> None:
    """Uncertainty attracts, with pending points as without."""
    posterior, pending = _posterior(), points(1, seed=2)
    best_f = torch.tensor(0.0, dtype=torch.float64)
    with pytest.raises(InputError, match="beta"):
        PendingAcquisition.of(
            posterior.predictor, Acquisition.LCB, pending=pending, best_f=best_f, beta=-1.0, generator=torch.Generator()
        )
