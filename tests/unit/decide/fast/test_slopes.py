"""The acquisition value at a point with its gradient in closed form, and searches that go by it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.problems import agree, params_for, quick, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, Dataset, TransferPosterior
from headstart.decide.acquisition import (
    Acquisition,
    AcquisitionValue,
    acquisition_values,
    acquisition_values_and_slopes,
)
from headstart.decide.average import AveragedAcquisition, PlainAcquisition, voices
from headstart.decide.fast.slopes import AverageSlopes, means_at
from headstart.decide.pending import PendingAcquisition
from headstart.decide.suggest import suggest
from headstart.gp.linalg import LEAST_VAR
from headstart.models.auto.posterior import AutoPosterior

KINDS = pytest.mark.parametrize("kind", Acquisition)
PROBLEM = transfer_problem(n_queries=9)
PENDING = tensor([[0.2, 0.7], [0.9, 0.4]])


def posterior(name: str, n: int = 5, batch_shape: tuple[int, ...] = ()) -> TransferPosterior:
    """At given hyperparameters, for one problem or for equal ones."""
    tasks = [Dataset(t.X.expand(*batch_shape, -1, -1), t.y.expand(*batch_shape, -1)) for t in PROBLEM.sources]
    target = PROBLEM.head(n)
    target = Dataset(target.X.expand(*batch_shape, -1, -1), target.y.expand(*batch_shape, -1))
    n_sources = 0 if name == "GPBO" else 2
    return FAMILY[name].at(params_for(name, n_sources=n_sources), sources=tasks[:n_sources], target=target)


def fitted_auto() -> AutoPosterior:
    """Behind an output map; its plain candidate, in units of its own, decides and is a mixture over draws."""
    *informed, plain = AUTO.candidates
    found = PROBLEM.posterior(quick(AUTO).using(candidates=(*informed, replace(plain, at_least=0.6))))
    assert isinstance(found, AutoPosterior)
    assert found.warp is not None
    assert len(voices(found.predictor)[0]) > 4
    return found


def acquisition_of(of: TransferPosterior, kind: Acquisition, pending: Tensor | None) -> AcquisitionValue:
    every, weights = voices(of.predictor)
    best = means_at(every, weights, PROBLEM.Xq).amin(-1)
    if pending is None:
        parts: list[AcquisitionValue] = [PlainAcquisition(voice, kind, best, 2.0) for voice in every]
    else:
        parts = [
            PendingAcquisition.of(
                voice.predictor,
                kind,
                pending=pending,
                best_f=best,
                beta=2.0,
                generator=torch.Generator().manual_seed(0),
            )
            for voice in every
        ]
    return parts[0] if len(parts) == 1 else AveragedAcquisition(kind, tuple(parts), weights)


@KINDS
@pytest.mark.parametrize("pending", [None, PENDING], ids=["nothing awaited", "two awaited"])
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR", "HGP", "fitted AUTO"])
def test_slopes_are_what_differentiation_finds(name: str, pending: Tensor | None, kind: Acquisition) -> None:
    """Value and gradient are those of the acquisition value, whatever it is of."""
    value = acquisition_of(fitted_auto() if name == "fitted AUTO" else posterior(name), kind, pending)
    slopes = AverageSlopes.of(value)
    assert slopes is not None
    X = PROBLEM.Xq.clone().requires_grad_()
    expected = value(X)
    (gradient,) = torch.autograd.grad(expected.sum(), X)
    found, found_gradient = slopes.climb(PROBLEM.Xq.numpy())
    assert agree(torch.from_numpy(found), expected.detach(), rtol=1e-9)
    assert agree(torch.from_numpy(found_gradient), gradient, rtol=1e-8)
    assert agree(slopes(PROBLEM.Xq), expected.detach(), rtol=1e-9)


@KINDS
@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
def test_the_slopes_of_a_value_by_mean_and_variance(kind: Acquisition, noise: float) -> None:
    """From where improvement is certain to where it is hopeless, 1000 standard deviations away, with noise or not."""
    away = torch.cat([torch.linspace(-40, 40, 81), tensor([-1000.0, -50.0, 50.0, 1000.0])]).double()
    best_f = tensor(0.3)
    for sd in (1e-3, 1.0, 10.0):
        mean, var = (best_f + sd * away).requires_grad_(), torch.full_like(away, sd**2).requires_grad_()
        noise_var = tensor(noise * sd**2)
        value = acquisition_values(kind, mean, var, best_f=best_f, noise_var=noise_var, beta=2.0)
        by_mean, by_var = torch.autograd.grad(value.sum(), (mean, var))
        given = (mean.detach().numpy(), var.detach().numpy())
        numbers: Any = {"best_f": best_f.numpy(), "noise_var": noise_var.numpy(), "beta": 2.0}
        found = [torch.from_numpy(f) for f in acquisition_values_and_slopes(kind, *given, **numbers)]
        assert torch.allclose(found[0], value.detach(), rtol=1e-14)
        assert torch.allclose(found[1], by_mean, rtol=1e-6, atol=1e-12 / sd)
        assert torch.allclose(found[2], by_var, rtol=1e-6, atol=1e-12 / sd**2)


@pytest.mark.parametrize("name", ["BHGP", "MHGP", "RGPE"])
def test_others_are_differentiated(name: str) -> None:
    """A model without a surface has no slopes, nor has a batch; suggestions come all the same."""
    model = posterior(name)
    assert AverageSlopes.of(acquisition_of(model, Acquisition.LOG_EI, None)) is None
    assert suggest(model, n_candidates=16, n_starts=2).shape == (2,)


@KINDS
@pytest.mark.parametrize("pending", [None, PENDING], ids=["nothing awaited", "two awaited"])
@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR", "AUTO"])
def test_a_search_by_slopes_ends_where_one_by_differentiation_does(
    name: str, n: int, pending: Tensor | None, kind: Acquisition
) -> None:
    """A batch of one problem is differentiated: its suggestion is the same."""
    alone, batch = posterior(name, n), posterior(name, n, (1,))
    options: dict[str, Any] = {"kind": kind, "pending": pending, "n_candidates": 64, "n_starts": 3}
    by_slopes, by_differentiation = suggest(alone, **options), suggest(batch, **options)[0]
    assert float((by_slopes - by_differentiation).abs().max()) < 1e-4
    if n:
        value = acquisition_of(alone, kind, pending)
        values = value(torch.stack([by_slopes, by_differentiation]))
        assert values[0].item() == pytest.approx(values[1].item(), abs=1e-6)


@pytest.mark.parametrize("name", ["GPBO", "STAR", "BHGP", "AUTO", "fitted AUTO"])
def test_means_are_those_of_the_predictor(name: str) -> None:
    """In model units, with surfaces or without; of a mixture that of its voices."""
    model = fitted_auto() if name == "fitted AUTO" else posterior(name)
    every, weights = voices(model.predictor)
    found, expected = means_at(every, weights, PROBLEM.Xq), model.predictor.predict_marginal(PROBLEM.Xq)[0]
    # who has less than a thousandth of the weight is not asked
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-2 if name == "fitted AUTO" else 1e-9)


@KINDS
def test_a_variance_that_is_next_to_nothing_has_no_slope(kind: Acquisition) -> None:
    """It counts as the least variance there is: close to where f is known only its mean changes."""
    at = PROBLEM.Xq[:1]
    known = posterior("SHGP").condition_on_observations(at, tensor([[0.4]]), noise=tensor([[1e-15]]))
    x = at + 1e-6
    slopes = AverageSlopes.of(acquisition_of(known, kind, None))
    assert slopes is not None
    X = x.clone().requires_grad_()
    mean, var = known.predictor.predict_marginal(X)
    assert var.item() < LEAST_VAR
    best_f, noise_var = tensor(slopes.best_f[0, 0]), known.predictor.noise_var
    value = acquisition_values(kind, mean, var, best_f=best_f, noise_var=noise_var, beta=2.0)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    found, found_gradient = slopes.climb(x.numpy())
    assert float(found[0]) == pytest.approx(value.item(), rel=1e-6)
    assert agree(torch.from_numpy(found_gradient), gradient, rtol=1e-4)
