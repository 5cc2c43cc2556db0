"""Fitting a star: its evidence, how the weightings become weights, and what the fit makes of the sources."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.problems import (
    STARS,
    agree,
    behind_the_map,
    most_probable,
    params_for,
    plainly,
    points,
    predictions,
    quick,
    star_params,
    tensor,
    transfer_problem,
)
from tests.reference import dense
from tests.reference.dense import Gaussian, Level
from tests.reference.test_evidence import PROBLEMS, assert_gradient, kind_of, thetas
from torch import Tensor

from headstart import FAMILY, MWSGP, SCAML, STAR, Dataset, InputError, Kernel, StarParams
from headstart.data.units import OutputMap
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.star import weights
from headstart.models.star.star import Star, StarPrior
from headstart.models.star.weights import FittedWeights, Integrated, SourceFacts, StarBeliefs, Weighting, star_evidence
from headstart.tuning import AUTO_TUNING

WEIGHTINGS: dict[str, Weighting] = {
    "STAR": Integrated(),
    "SCAML": FittedWeights(),
    "MWSGP": FittedWeights(modular=True),
}
BATCH = transfer_problem(batch_shape=(PROBLEMS,), sizes=(6, 4, 5), n_target=5)
PROBLEM = transfer_problem()
every_weighting = pytest.mark.parametrize("weighting", WEIGHTINGS)


def star_prior(kernel: Kernel = Kernel.RBF, shut: int | None = None) -> StarPrior:
    """Three sources with some unfitted hyperparameters; one of them may be shut out."""
    model = plainly(STAR).using(kernel=kernel, fit=replace(STAR.fit, restarts=1, max_iterations=3, draws=0))
    prior = model.learn(BATCH.sources)
    assert isinstance(prior, StarPrior)
    trust = torch.ones(PROBLEMS, 3, dtype=torch.float64)
    if shut is not None:
        trust[0, shut] = 0.0
    return trusting(prior, trust)


def trusting(prior: StarPrior, trust: Tensor) -> StarPrior:
    """The prior with other trust in its sources."""
    return replace(prior, alone=replace(prior.alone, trust=trust))


def facts_of(prior: StarPrior) -> SourceFacts:
    return SourceFacts(prior.alone.spread, prior.alone.trust)


def evidence_of(prior: StarPrior, weighting: str, n: int = 5) -> tuple[GaussianEvidence, Dataset]:
    target = prior.alone.units.inward(BATCH.head(n))
    at = prior.alone.locate(target.X)
    terms = WEIGHTINGS[weighting].terms(prior.alone.members, facts_of(prior), at, target.batch_shape)
    return star_evidence(target, prior.model.kernel, terms), target


# ── the evidence ──────────────────────────────────────────────────────────────────────────────────────────────────


@every_weighting
@pytest.mark.parametrize("kernel", Kernel)
@pytest.mark.parametrize("n", [1, 5])
def test_the_gradient_of_a_star_s_evidence(weighting: str, kernel: Kernel, n: int) -> None:
    """It is that of the value, by every parameter of the target's process and of the weights."""
    evidence, _ = evidence_of(star_prior(kernel), weighting, n)
    assert_gradient(evidence)


@every_weighting
@pytest.mark.parametrize("shut", [None, 1])
def test_a_star_s_evidence_is_the_dense_formula(weighting: str, shut: int | None) -> None:
    """The value is −log N(y; ȳ + Σ a (m − m̄), prior + noise + OFFSET_VAR), and the offset is its posterior mean."""
    prior = star_prior(shut=shut)
    evidence, target = evidence_of(prior, weighting)
    theta, items = thetas(evidence, rows=1)
    value, _, ok = evidence.evaluate(theta, items)
    own, omega = evidence.params(theta), evidence.omega(theta)
    w = WEIGHTINGS[weighting].weights(omega, facts_of(prior))
    assert bool(ok.all())
    for i in range(PROBLEMS):
        X, y = target.X[i].numpy(), target.y[i].numpy()
        n = len(y)
        level = Level(tuple(own.lengthscale[i].tolist()), own.outputscale[i].item(), own.noise_var[i].item())
        mean, cov = np.zeros(n), dense.kernel("rbf", X, X, level) + level.noise_var * np.eye(n)
        for s, (layer, source) in enumerate(zip(prior.alone.layers, BATCH.sources, strict=True)):
            p = layer.params
            below = Level(
                tuple(p.lengthscale[i].tolist()), p.outputscale[i].item(), p.noise_var[i].item(), p.offset[i].item()
            )
            data = prior.alone.units.inward(source)
            Z = np.concatenate([data.X[i].numpy(), X])
            K = dense.kernel("rbf", Z, Z, below)
            f = dense.condition(
                Gaussian(np.full(len(Z), below.offset), K), slice(0, source.n), data.y[i].numpy(), below.noise_var
            )[slice(source.n, None)]
            shape = f.mean - below.offset
            m, v, o = (t[i, s].item() for t in (w.mean, w.var, w.own))
            mean += m * shape
            cov += (m**2 + v) * f.cov + v * np.outer(shape, shape) + o * K[source.n :, source.n :]
        # an offset around where the observations are, once the sources' part of it is off
        centre = float((y - mean).mean())
        cov = np.block([[cov + OFFSET_VAR, np.full((n, 1), OFFSET_VAR)], [np.full((1, n), OFFSET_VAR), OFFSET_VAR]])
        joint = Gaussian(np.append(mean + centre, centre), cov)
        assert -value[i].item() == pytest.approx(joint[slice(0, n)].log_density(y), abs=1e-8)
        offset = dense.condition(joint, slice(0, n), y, 0.0).mean[-1]
        assert own.offset[i].item() == pytest.approx(offset, abs=1e-8)
    assert kind_of(prior.model.kernel) == "rbf"


# ── the weightings ────────────────────────────────────────────────────────────────────────────────────────────────


def test_integrated_weights_share_the_target_between_the_open_sources() -> None:
    """Times the spread of their source they have mean 0.3 ρ/s and variance ρ²/s, and the target .14 ρ²/s of its kernel.

    A source that is shut has nothing.
    """
    prior = star_prior(shut=1)
    rho = tensor([[2.0], [2.0]])
    w = Integrated().weights(rho, facts_of(prior))
    spread = prior.alone.spread
    for i, n in ((0, 2), (1, 3)):
        for s in range(3):
            shut = (i, s) == (0, 1)
            assert w.mean[i, s].item() == pytest.approx(0 if shut else 2.0 * 0.3 / n / spread[i, s].item())
            assert w.var[i, s].item() == pytest.approx(0 if shut else 4.0 / n / spread[i, s].item() ** 2)
            assert w.own[i, s].item() == pytest.approx(
                0 if shut else 4 * 0.05**0.2 * 0.1**0.3 * 0.2**0.3 * 0.4**0.2 / n / spread[i, s].item() ** 2
            )


def test_the_target_has_a_share_of_the_sources_kernels_to_itself() -> None:
    """With ``own`` the prior covariance is larger by own_ν k_ν of every source, and the posterior's is, too."""
    prior, X = star_prior(shut=1), BATCH.Xq
    ones = torch.ones(PROBLEMS, 1, dtype=torch.float64)
    weights = Integrated().weights(ones, facts_of(prior))
    without = Integrated(own=0.0).weights(ones, facts_of(prior))
    assert not without.own.any()
    members = prior.alone.members
    added = StarBeliefs(members, weights).prior_cov(X, X) - StarBeliefs(members, without).prior_cov(X, X)
    parts = [weights.own[:, i, None, None] * member.prior_cov(X, X) for i, member in enumerate(members)]
    torch.testing.assert_close(added, parts[0] + parts[1] + parts[2])
    assert bool((added.diagonal(dim1=-2, dim2=-1) > 0).all())
    found = prior.condition(BATCH.target).hyperparameters
    assert isinstance(found, StarParams)
    torch.testing.assert_close(found.own, AUTO_TUNING.own_share * found.weight_var)


def test_fitted_weights_are_what_was_found() -> None:
    """SCAML takes w, MWSGP b = w/(1 + w) and b (1 − b) of the kernel; a source that is shut has none."""
    facts = facts_of(star_prior(shut=1))
    omega = tensor([[0.5, 1.0, 2.0], [0.5, 1.0, 2.0]])
    free, modular = (FittedWeights(modular=modular).weights(omega, facts) for modular in (False, True))
    assert free.mean.tolist() == [[0.5, 0.0, 2.0], [0.5, 1.0, 2.0]]
    assert not free.var.any()
    assert not free.own.any()
    torch.testing.assert_close(modular.mean[1], tensor([1 / 3, 1 / 2, 2 / 3]))
    torch.testing.assert_close(modular.own[1], tensor([2 / 9, 1 / 4, 2 / 9]))
    assert modular.mean[0, 1].item() == modular.own[0, 1].item() == 0


@pytest.mark.parametrize("name", STARS)
def test_weights_are_defined_without_a_target_observation(name: str) -> None:
    """Zero-shot the sources are averaged: every weight is at its prior's median."""
    params = PROBLEM.posterior(quick(FAMILY[name]), n=0).hyperparameters
    assert isinstance(params, StarParams)
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    assert isinstance(prior, StarPrior)
    half = torch.full((2,), 0.5, dtype=torch.float64)
    expected = {"STAR": 0.3 * half / prior.alone.spread, "SCAML": half, "MWSGP": half / 1.5}[name]
    torch.testing.assert_close(params.weights, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", STARS)
def test_a_fitted_star_does_not_care_about_the_order_of_its_sources(name: str) -> None:
    """Learnt the other way round it predicts the same, at the most probable hyperparameters."""
    model = most_probable(quick(FAMILY[name]))
    there = model.learn(PROBLEM.sources).condition(PROBLEM.target)
    back = model.learn(PROBLEM.sources[::-1]).condition(PROBLEM.target)
    assert agree(predictions(there, PROBLEM.Xq), predictions(back, PROBLEM.Xq), rtol=1e-4)


@pytest.mark.parametrize("name", STARS)
def test_sources_of_equal_size_are_learnt_as_if_alone(name: str) -> None:
    """In lockstep or one by one, a source has the same process."""
    problem = transfer_problem(sizes=(8, 8))
    model = quick(plainly(FAMILY[name]))  # an output map has a power that all sources share
    together = model.learn(problem.sources)
    assert isinstance(together, StarPrior)
    for i, source in enumerate(problem.sources):
        alone = model.learn([source])
        assert isinstance(alone, StarPrior)
        one = alone.alone.layers[0].params.scaled(alone.alone.known.scale, alone.alone.known.offset)
        two = together.alone.layers[i].params.scaled(together.alone.known.scale, together.alone.known.offset)
        torch.testing.assert_close(two.lengthscale, one.lengthscale, rtol=1e-4, atol=0)
        torch.testing.assert_close(two.outputscale, one.outputscale, rtol=1e-4, atol=0)
        assert together.fit_reports[i].task == f"source {i}"


def test_a_negated_source_gets_a_negative_weight_in_effect() -> None:
    """STAR turns a source upside down where the target asks for it; weights that cannot be negative do not."""
    X = torch.rand(30, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    source = Dataset(X, torch.sin(6 * X[:, 0]))
    x = tensor([[0.05], [0.3], [0.5], [0.75], [0.95]])
    target = Dataset(x, -torch.sin(6 * x[:, 0]))
    query = torch.linspace(0, 1, 21, dtype=torch.float64).unsqueeze(-1)
    error = {}
    for name, model in (("STAR", STAR), ("SCAML", SCAML), ("MWSGP", MWSGP)):
        mean, _ = quick(model).learn([source]).condition(target).predict(query)
        error[name] = float((mean + torch.sin(6 * query[:, 0])).abs().max())
    assert error["STAR"] < 0.1
    assert error["STAR"] < min(error["SCAML"], error["MWSGP"])


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_constant_source_beside_others_has_no_units_of_its_own(scale: float) -> None:
    """Predictions follow a change of units also where one source is constant, and so does what was learnt of it."""
    flat = Dataset(PROBLEM.sources[1].X, torch.full_like(PROBLEM.sources[1].y, 0.4))

    def moved(task: Dataset) -> Dataset:
        return Dataset(task.X, scale * task.y)

    first = quick(STAR).learn([PROBLEM.sources[0], flat]).condition(PROBLEM.target).predict(PROBLEM.Xq)
    prior = quick(STAR).learn([moved(PROBLEM.sources[0]), moved(flat)])
    mean, var = prior.condition(moved(PROBLEM.target)).predict(PROBLEM.Xq)
    assert agree(mean / scale, first[0], rtol=1e-4)
    assert agree(var / scale**2, first[1], rtol=1e-4)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, r"weights must be a tensor with one value per source \(2\)"),
        ({"weights": [1.0, torch.nan]}, "weights of every source must be finite"),
        ({"weight_var": [-0.1, 0.0]}, "weight_var is a variance"),
        ({"own": [0.0, -0.1]}, "own is a variance"),
    ],
)
def test_numbers_that_make_no_star_are_refused(change: dict[str, object], message: str) -> None:
    """The argument is named; a negative weight is no trouble."""
    good: dict[str, object] = {"weights": [1.0, -1.0], "weight_var": 0.0, "own": 0.0}
    levels = params_for("STAR").levels
    star_params(levels, **good).require()
    with pytest.raises(InputError, match=message):
        star_params(levels, **(good | change)).require()


def test_shut_sources_do_not_change_a_star() -> None:
    """A star whose second source is not let in is the star without it."""
    prior = most_probable(quick(STAR)).learn(PROBLEM.sources)
    assert isinstance(prior, StarPrior)
    assert isinstance(prior.model, Star)
    without = trusting(prior, tensor([1.0, 0.0])).condition(PROBLEM.target).hyperparameters
    assert isinstance(without, StarParams)
    assert without.weights[1].item() == without.weight_var[1].item() == 0
    alone = STAR.at(
        StarParams(
            (without.levels[0], without.levels[2]),
            without.weights[:1],
            without.weight_var[:1],
            without.own[:1],
            without.balance,
        ),
        sources=prior.sources[:1],
        target=prior.inward(PROBLEM.target),
    )
    gated = behind_the_map(trusting(prior, tensor([1.0, 0.0])).condition(PROBLEM.target))
    assert agree(predictions(gated, PROBLEM.Xq), predictions(alone, PROBLEM.Xq), rtol=1e-9)


def test_a_star_whose_sources_are_at_hand_is_the_same_star() -> None:
    """To the last bit, with the categories of its sources."""
    X = torch.cat([points(10, d=1, seed=0), torch.eye(2, dtype=torch.float64).repeat(5, 1)], dim=-1)
    model = STAR.using(output_map=OutputMap.NONE)
    prior = model.learn([Dataset(X, X[:, 0].sin() + X[:, 1], categories=((1, 2),))])
    assert isinstance(prior, StarPrior)
    target = Dataset(X[:4], X[:4, 0].cos())
    found, (known, _) = (
        prior.condition(target, seed=3),
        prior.found(target, 3, prior.alone, prior.alone.locate(target.X)),
    )
    assert all(torch.equal(a, b) for a, b in zip(found.predict(X), known.predict(X), strict=True))


@pytest.mark.parametrize("batch_shape", [(), (2,)])
def test_the_covariance_from_kernels_at_hand_is_the_covariance(batch_shape: tuple[int, ...]) -> None:
    """Whatever the weights: the sources' kernels are worked out once for several of them."""
    problem = transfer_problem(n_target=5, batch_shape=batch_shape)
    posterior = STAR.at(params_for("STAR", batch_shape=batch_shape), sources=problem.sources, target=problem.target)
    below = posterior.predictor.below  # type: ignore[union-attr]
    assert isinstance(below, StarBeliefs)
    at = below.at(problem.target.X)
    kernels = torch.stack([member.prior_cov(at.X, at.X) for member in below.members])
    torch.testing.assert_close(below.cov_from(kernels, at), below.cov(at, at), rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_shape", [(), (2,)])
def test_kernels_of_many_sources_together_are_those_of_each(
    batch_shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sum over all kernels, in parts that fit, instead of one source after the other."""
    problem = transfer_problem(n_target=5, batch_shape=batch_shape)
    posterior = STAR.at(params_for("STAR", batch_shape=batch_shape), sources=problem.sources, target=problem.target)
    below = posterior.predictor.below  # type: ignore[union-attr]
    assert isinstance(below, StarBeliefs)
    A, B = problem.target.X, points(*batch_shape, 4, seed=1)
    expected = below.prior_cov(A, B)
    monkeypatch.setattr(weights, "_ONE_BY_ONE", 0)
    torch.testing.assert_close(below.prior_cov(A, B), expected, rtol=0, atol=1e-12)
    monkeypatch.setattr(weights, "_ELEMENTS", 1)
    torch.testing.assert_close(below.prior_cov(A, B), expected, rtol=0, atol=1e-12)
