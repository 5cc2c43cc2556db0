"""Known errors on the way through a fitted model: units, maps, scores, memories and explanations."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from optuna.distributions import FloatDistribution
from tests.cases import with_slow
from tests.direct import direct_shares, prequential
from tests.problems import (
    NAMES,
    REPRESENTATIVES,
    Problem,
    behind_the_map,
    in_turn,
    item_of,
    most_probable,
    params_for,
    plainly,
    predictions,
    quick,
    tensor,
    transfer_problem,
)
from tests.reference.answers import joint_log_evidence
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, SHGP, STAR, Dataset, Kernel, TransferModel
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.auto.explanation import auto_only, explain
from headstart.models.auto.gate import _constant, informative
from headstart.models.auto.likeness import _evidences
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.relation import PRIOR, relations
from headstart.models.auto.scores import scores_of
from headstart.models.auto.shares import shares
from headstart.models.chain.layer import Layer
from headstart.models.learning import LearnContext
from headstart.models.model import observed
from headstart.models.star.independent import fit_independently
from headstart.sources.forms.tables import task_of_dataset

MODELS = pytest.mark.parametrize("name", with_slow(NAMES, quick=REPRESENTATIVES))


def errors(y: Tensor, seed: int, size: float = 0.004) -> Tensor:
    """Variances that differ by a factor of 100."""
    share = torch.rand(y.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    share[..., :1], share[..., 1:2] = 0.0, 1.0
    return size * 100**share


def known(problem: Problem, scale: float = 1.0) -> Problem:
    """The problem with errors of every task, all values in units of 1/scale."""

    def task(data: Dataset, seed: int) -> Dataset:
        return Dataset(data.X, scale * data.y, data.name, error_var=scale**2 * errors(data.y, seed))

    sources = tuple(task(s, i) for i, s in enumerate(problem.sources))
    return replace(problem, sources=sources, target=task(problem.target, 9))


PROBLEM = transfer_problem(sizes=(9, 6, 9), n_target=7)
KNOWN = known(PROBLEM)


def ready(name: str, variant: str) -> TransferModel:
    model = most_probable(quick(FAMILY[name]))
    return model if variant == "default" else plainly(model) if variant == "plain" else quick(FAMILY[name].paper())


@pytest.mark.parametrize(("name", "variant"), in_turn(["default", "plain", "paper"], NAMES))
def test_a_fitted_posterior_is_the_model_at_its_hyperparameters(name: str, variant: str) -> None:
    """``at`` with the hyperparameters found, and the data with their errors behind the maps, gives the same."""
    model = ready(name, variant)
    prior = model.learn(KNOWN.sources)
    posterior = prior.condition(KNOWN.target)
    inward = prior.inward(KNOWN.target)
    again = model.at(posterior.hyperparameters, sources=prior.sources if name != "GPBO" else (), target=inward)
    here = behind_the_map(posterior)
    torch.testing.assert_close(again.predict(KNOWN.Xq), here.predict(KNOWN.Xq), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(again.log_evidence, here.log_evidence, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "variant"), in_turn(["default", "plain", "paper"], NAMES))
def test_variances_follow_the_square_of_the_unit(name: str, variant: str) -> None:
    """Values in units 1024 times as small, and variances 1024² times as large, are the same problem to the last bit.

    A standard deviation in place of a variance, or one in other units, would not follow.
    """
    model, large = ready(name, variant), known(PROBLEM, 1024.0)
    here, there = (predictions(p.posterior(model), p.Xq) for p in (KNOWN, large))
    torch.testing.assert_close(there[0] / 1024, here[0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(there[1] / 1024**2, here[1], rtol=1e-9, atol=1e-9)


@MODELS
@pytest.mark.parametrize("changed", ["target", "source"])
def test_no_model_ignores_the_errors(name: str, changed: str) -> None:
    """Errors of the target, and of the sources, change what is predicted, by all models that look at the sources."""
    model = ready(name, "default")
    without = PROBLEM.posterior(model)
    only = replace(PROBLEM, **{"target": KNOWN.target} if changed == "target" else {"sources": KNOWN.sources})
    apart = (predictions(only.posterior(model), PROBLEM.Xq) - predictions(without, PROBLEM.Xq)).abs().max()
    assert bool(apart > 1e-3) is (changed == "target" or name != "GPBO")


@MODELS
def test_errors_of_0_are_no_errors(name: str) -> None:
    """A variance of 0 everywhere is the same as none, but for rounding."""
    model = ready(name, "plain")
    nothing = replace(
        PROBLEM,
        sources=tuple(replace(s, error_var=0.0 * s.y) for s in PROBLEM.sources),
        target=replace(PROBLEM.target, error_var=0.0 * PROBLEM.target.y),
    )
    here, there = (predictions(p.posterior(model), p.Xq) for p in (PROBLEM, nothing))
    torch.testing.assert_close(here, there, rtol=1e-7, atol=1e-7)


@MODELS
def test_every_problem_of_a_batch_has_errors_of_its_own(name: str) -> None:
    """A batch gives what each of its problems gives alone."""
    model = ready(name, "plain")
    batch = known(transfer_problem(sizes=(6, 6), n_target=5, batch_shape=(2,)))
    together = predictions(batch.posterior(model), batch.Xq)
    for i in range(2):

        def one(task: Dataset, i: int = i) -> Dataset:
            assert task.error_var is not None
            return Dataset(task.X[i], task.y[i], error_var=task.error_var[i])

        alone = Problem(tuple(one(s) for s in batch.sources), one(batch.target), batch.Xq[i])
        torch.testing.assert_close(predictions(alone.posterior(model), alone.Xq), together[:, i], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["GPBO", "MHGP", "SHGP", "BHGP", "HGP", "WSGP", "MTKGP", "MTGP"])
def test_what_was_maximised_is_the_evidence_of_the_posterior(name: str) -> None:
    """Trained as in the paper, by likelihood on standardised residuals: the errors are in both, in the same units."""
    posterior = KNOWN.posterior(ready(name, "paper"))
    report = posterior.fit_reports[-1]
    best = -report.n_observations * report.objective[report.best]
    if name in ("HGP", "WSGP", "MTKGP", "MTGP"):
        expected = joint_log_evidence(posterior)
    else:  # the residual's own spread is the unit of the fit
        layer = posterior.predictor
        assert isinstance(layer, Layer)
        residual = KNOWN.target.y - layer.at.mean
        expected = posterior.log_evidence + KNOWN.target.n * residual.std(correction=0).log()
    torch.testing.assert_close(best, expected, rtol=1e-8, atol=1e-8)


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])
def test_scores_know_the_errors(name: str) -> None:
    """Each value is predicted from those before it, with their errors and its own, by dense conditioning."""
    target = KNOWN.target
    assert target.error_var is not None
    params = params_for(name, n_sources=3)
    posterior = FAMILY[name].at(params, sources=KNOWN.sources if name != "GPBO" else (), target=target)
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    at = layer.below.at(target.X)
    K = layer.gain_cov(at, at) + torch.diag(layer.params.noise_var + target.error_var)
    r = target.y - at.mean
    scores = scores_of(layer.L, layer.z)
    for i in range(1, target.n):
        inverse, k, one = torch.linalg.inv(K[:i, :i]), K[:i, i], torch.ones(i, dtype=torch.float64)
        information = one @ inverse @ one
        level = (one @ inverse @ r[:i]) / information
        mean = level + k @ inverse @ (r[:i] - level)
        var = K[i, i] - k @ inverse @ k + (1 - one @ inverse @ k) ** 2 / information
        expected = -0.5 * ((r[i] - mean) ** 2 / var + torch.log(2 * math.pi * var))
        torch.testing.assert_close(scores[i], expected, rtol=1e-8, atol=1e-8)


def test_auto_s_candidates_are_weighed_by_scores_that_know_the_errors() -> None:
    """The scores behind the weights are those of every candidate conditioned anew at every refit."""
    prior = auto_only(quick(AUTO).learn(KNOWN.sources))
    posterior = prior.condition(KNOWN.target)
    assert isinstance(posterior, AutoPosterior)
    target = prior.inward(KNOWN.target)
    for k, one in enumerate(prior.priors):
        if k != prior.model.plain:  # which is tested in units of its own
            torch.testing.assert_close(posterior.scores[k], prequential(one, target), rtol=1e-6, atol=1e-6)


def test_a_source_s_relation_knows_the_errors() -> None:
    """Results with large errors say little about a source."""
    prior = auto_only(quick(AUTO).learn(KNOWN.sources))
    target = prior.inward(KNOWN.target)
    vague = replace(target, error_var=torch.full_like(target.y, 1e4 * float(target.y.var())))
    sure, unsure = relations(prior.alone, replace(target, error_var=None)), relations(prior.alone, vague)
    assert max(max(abs(p - q) for p, q in zip(one, PRIOR, strict=True)) for one in unsure) < 0.02
    assert max(max(abs(p - q) for p, q in zip(one, PRIOR, strict=True)) for one in sure) > 0.2


def test_what_is_kept_of_a_target_is_kept_with_its_errors() -> None:
    """The same values with other errors are another target."""
    prior = quick(AUTO).learn(KNOWN.sources)
    first = predictions(prior.condition(KNOWN.target), KNOWN.Xq)
    other = replace(KNOWN.target, error_var=errors(KNOWN.target.y, 77))
    second = predictions(prior.condition(other), KNOWN.Xq)
    afresh = predictions(quick(AUTO).learn(KNOWN.sources).condition(other), KNOWN.Xq)
    assert torch.equal(second, afresh)
    assert float((first - second).abs().max()) > 1e-3


# ── explanations ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_posterior_remembers_the_errors_of_its_data() -> None:
    """In the user's units, whatever map is in between; what is fantasised has none."""
    posterior = KNOWN.posterior(quick(SHGP))
    data = observed(posterior)
    assert data.error_var is not None
    assert KNOWN.target.error_var is not None
    assert torch.equal(data.error_var, KNOWN.target.error_var)
    fantasy = posterior.condition_on_observations(KNOWN.Xq[:2], torch.zeros(3, 2, 1, dtype=torch.float64))
    more = observed(fantasy).error_var
    assert more is not None
    assert more.shape == (3, 9)
    assert torch.equal(more[1], torch.cat([KNOWN.target.error_var, tensor([0.0, 0.0])]))
    assert observed(PROBLEM.posterior(quick(SHGP))).error_var is None


@pytest.mark.parametrize("name", ["STAR", "SHGP", "AUTO"])
def test_shares_know_the_errors(name: str) -> None:
    """They are those of models built for each case, of data with their errors."""
    prior = most_probable(quick(FAMILY[name])).learn(KNOWN.sources)
    posterior = prior.condition(KNOWN.target)
    with torch.no_grad():
        found, direct = shares(prior, posterior, KNOWN.Xq), direct_shares(prior, posterior, KNOWN.Xq)
    torch.testing.assert_close(found, direct, rtol=0, atol=1e-6)


def test_an_explanation_is_of_the_data_with_their_errors() -> None:
    """With a posterior at hand or without, the same verdicts and shares."""
    prior = quick(AUTO).learn(KNOWN.sources)
    posterior = prior.condition(KNOWN.target)
    first = explain(prior, KNOWN.target, KNOWN.Xq)
    second = explain(prior, observed(posterior), KNOWN.Xq, posterior=posterior)
    assert first.sources == second.sources
    assert first.shares is not None
    assert second.shares is not None
    assert torch.equal(first.shares, second.shares)


# ── the gate ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_constant_with_equal_errors_is_the_mean_and_variance_of_the_others() -> None:
    """As without errors, as long as the values scatter by more than these."""
    y = torch.randn(9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean, var = _constant(y, torch.full_like(y, 0.1))
    for i in range(9):
        others = torch.cat([y[:i], y[i + 1 :]])
        torch.testing.assert_close(mean[i], others.mean())
        torch.testing.assert_close(var[i], others.var() * (1 + 1 / 8), rtol=1e-9, atol=1e-9)


def test_a_constant_counts_values_by_their_errors() -> None:
    """Where the errors explain all scatter the mean is weighted by them, and a value is as far off as its own says."""
    e = tensor([1e-4, 1e-4, 1e-4, 1.0])
    mean, var = _constant(tensor([0.99, 1.01, 1.0, 3.0]), e)
    assert mean[3].item() == pytest.approx(1.0, abs=1e-6)
    assert var[3].item() == pytest.approx(1 + 1e-4 / 3, rel=1e-6)


def test_knowing_which_values_are_poor_does_not_open_the_gate() -> None:
    """Sources that are nothing but their stated errors, which differ by a factor of 100, are noise all the same."""
    opened = 0
    for seed in range(12):
        g = torch.Generator().manual_seed(seed)
        X = torch.rand(30, 2, generator=g, dtype=torch.float64)
        e = 0.04 * 100 ** torch.rand(30, generator=g, dtype=torch.float64)
        source = Dataset(X, e.sqrt() * torch.randn(30, generator=g, dtype=torch.float64), error_var=e)
        alone = fit_independently((source,), quick(STAR), 0, LearnContext())
        inward = alone.known.inward(source)
        gate = informative(alone.layers, [inward])
        opened += bool(gate.trust.item() > 0.5)
    assert opened <= 2


def test_auto_s_gate_knows_the_errors() -> None:
    """What a source gains over a constant is worked out with its errors."""
    prior = auto_only(quick(AUTO).learn(KNOWN.sources[:1]))
    inward = [prior.alone.known.inward(source) for source in prior.sources]
    gate = informative(prior.alone.layers, inward)
    assert torch.equal(prior.gate.gain, gate.gain)
    assert (
        float(
            (informative(prior.alone.layers, [replace(s, error_var=None) for s in inward]).gain - gate.gain).abs().max()
        )
        > 1e-3
    )


def test_likeness_knows_the_errors_of_the_source_that_is_predicted() -> None:
    """Without others what is maximised is log N(y; ȳ, k + diag(σ² + error_var) + OFFSET_VAR), and the priors."""
    alone = fit_independently(KNOWN.sources, quick(STAR), 0, LearnContext())
    trust = torch.ones(3, dtype=torch.float64)
    with torch.no_grad():
        value, theta, layout = _evidences(replace(alone, trust=trust), 1, [STAR, None], Kernel.MATERN52, None)
    source = alone.known.inward(KNOWN.sources[1])
    assert source.error_var is not None
    ell, (s2, sigma2) = theta[1, :2].exp(), theta[1, 2:4].exp()
    K = s2 * Kernel.MATERN52(source.X, source.X, ell) + torch.diag(sigma2 + source.error_var) + OFFSET_VAR
    dense = torch.distributions.MultivariateNormal(source.y.mean().expand(source.n), K).log_prob(source.y)
    pull = 0.5 * ((theta[1] - layout.centre()).square() * layout.precision()).sum()
    torch.testing.assert_close(value[1], dense - pull, rtol=1e-8, atol=1e-8)


# ── what carries them on ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_of_the_sampler_keeps_its_known_errors() -> None:
    """On the way through a task: standard errors, the roots of the variances."""
    space = {name: FloatDistribution(0.0, 1.0) for name in "ab"}
    source = KNOWN.sources[0]
    task = task_of_dataset(source, space, "old")
    assert source.error_var is not None
    assert task.error is not None
    torch.testing.assert_close(torch.from_numpy(task.error).square(), source.error_var)


def test_an_item_of_a_batch_keeps_its_errors() -> None:
    """The tests' own way of taking a batch apart."""
    batch = known(transfer_problem(batch_shape=(2,)))
    taken = item_of(batch.target, 1).error_var
    assert batch.target.error_var is not None
    assert taken is not None
    assert torch.equal(taken, batch.target.error_var[1])


def test_gpbo_s_draws_know_the_errors() -> None:
    """Every draw of the hyperparameters observes the data with their errors."""
    posterior = KNOWN.posterior(quick(GPBO))
    for member in posterior.predictor.members:  # type: ignore[union-attr]
        assert isinstance(member, Layer)
        inward = posterior.units.inward(posterior.warp.task_inward(KNOWN.target))  # type: ignore[union-attr]
        assert inward.error_var is not None
        torch.testing.assert_close(member.noise, member.noise_var + inward.error_var)
