"""Every model of the family under BoTorch's own acquisition functions, samplers and optimisers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.active_learning import qNegIntegratedPosteriorVariance
from botorch.acquisition.analytic import LogExpectedImprovement, PosteriorMean, UpperConfidenceBound
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models.model import Model
from botorch.optim.optimize import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.sampling import manual_seed
from tests.problems import (
    NAMES,
    REPRESENTATIVES,
    agree,
    behind_the_map,
    in_turn,
    item_of,
    most_probable,
    params_for,
    predictions,
    quick,
    tensor,
    transfer_problem,
)
from torch import Tensor

from headstart import FAMILY, AutoParams, CoregionalParams, Dataset, Kernel, TransferPosterior
from headstart.data.units import OutputMap

PROBLEM = transfer_problem()
X_NEW = transfer_problem(seed=1).Xq
BOUNDS = tensor([[0.0, 0.0], [1.0, 1.0]])
MINIMISE = ScalarizedPosteriorTransform(weights=tensor([-1.0]))

# Slopes at which BoTorch's optimiser stops, as at the top
FLAT = 1e-5

# Rows that repeat have a singular covariance. For sampling, BoTorch's samplers add 1e-8 to it, and say so.
REPEATED_ROWS = pytest.mark.filterwarnings("ignore:A not p.d., added jitter")


@pytest.fixture(autouse=True)
def _seeded() -> Iterator[None]:
    """BoTorch draws its starting points and base samples from the global random state."""
    with manual_seed(0):
        yield


@cache
def _fitted(name: str, n: int = 5) -> TransferPosterior:
    """A fitted model without an output map, so that it is normal: its units are not the user's."""
    return PROBLEM.posterior(most_probable(quick(FAMILY[name])).using(output_map=OutputMap.NONE), n=n)


def _sources(name: str) -> tuple[Dataset, ...]:
    return () if name == "GPBO" else PROBLEM.sources


def _at(name: str, *, kernel: Kernel = Kernel.RBF, n: int = 5) -> TransferPosterior:
    """A model at given hyperparameters."""
    model = FAMILY[name].using(kernel=kernel)
    return model.at(params_for(name), sources=_sources(name), target=PROBLEM.head(n))


def _sampler(n: int = 4) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size((n,)), seed=0)


# ── acquisition functions ─────────────────────────────────────────────────────────────────────────────────────────

Make = Callable[[TransferPosterior], AcquisitionFunction]
ACQUISITIONS: dict[str, tuple[Make, int]] = {
    "LogEI": (lambda m: LogExpectedImprovement(m, best_f=PROBLEM.target.y.max()), 1),
    "UCB": (lambda m: UpperConfidenceBound(m, beta=4.0), 1),
    "UCB of a minimum": (lambda m: UpperConfidenceBound(m, beta=4.0, posterior_transform=MINIMISE), 1),
    "qLogEI with pending points": (
        lambda m: qLogExpectedImprovement(m, PROBLEM.target.y.max(), sampler=_sampler(16), X_pending=X_NEW[:2]),
        2,
    ),
    "qLogNEI": (
        lambda m: qLogNoisyExpectedImprovement(m, m.train_inputs[0], sampler=_sampler(16), prune_baseline=True),
        2,
    ),
    "qLogNEI with pending points": (
        lambda m: qLogNoisyExpectedImprovement(m, m.train_inputs[0], sampler=_sampler(16), X_pending=X_NEW[:2]),
        1,
    ),
    "qKG": (lambda m: qKnowledgeGradient(m, num_fantasies=4), 1),
    "qKG with pending points": (lambda m: qKnowledgeGradient(m, num_fantasies=4, X_pending=X_NEW[:2]), 1),
    "qMES": (lambda m: qMaxValueEntropy(m, PROBLEM.Xq, num_mv_samples=4), 1),
    "qMES with pending points": (
        lambda m: qMaxValueEntropy(m, PROBLEM.Xq, num_mv_samples=4, num_fantasies=4, X_pending=X_NEW[:1]),
        1,
    ),
    "qNIPV": (lambda m: qNegIntegratedPosteriorVariance(m, mc_points=PROBLEM.Xq), 2),
}


@pytest.mark.parametrize(("name", "acquisition"), in_turn(ACQUISITIONS, NAMES))
def test_every_acquisition_function_can_be_optimised(name: str, acquisition: str) -> None:
    """It has a finite value and gradient, and from there ``optimize_acqf`` climbs: none gets worse, one gets better."""
    make, q = ACQUISITIONS[acquisition]
    function = make(_fitted(name))
    size = function.get_augmented_q_batch_size(q) if isinstance(function, qKnowledgeGradient) else q
    X = torch.rand(3, size, 2, dtype=torch.float64).requires_grad_()
    value = function(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert value.shape == (3,)
    assert bool(value.isfinite().all())
    assert bool(gradient.isfinite().all())

    start = X.detach()
    candidates, found = optimize_acqf(
        function,
        BOUNDS,
        q=q,
        num_restarts=3,
        batch_initial_conditions=start,
        options={"maxiter": 4},
        return_best_only=False,
    )
    assert candidates.shape == (3, q, 2)
    assert bool(((candidates >= 0) & (candidates <= 1)).all())
    assert found is not None
    gain = found - value.detach()
    assert bool((gain >= -1e-9).all())
    assert gain.max().item() > 0 or gradient.abs().max().item() < FLAT


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_optimising_an_acquisition_function_improves_it(name: str) -> None:
    """The point that is found is at least as good as random ones."""
    function = LogExpectedImprovement(_fitted(name), best_f=PROBLEM.target.y.max())
    _, best = optimize_acqf(function, BOUNDS, q=1, num_restarts=4, raw_samples=32, options={"seed": 0})
    assert best is not None
    assert best.item() >= function(torch.rand(64, 1, 2, dtype=torch.float64)).max().item() - 1e-9


@pytest.mark.parametrize(
    ("name", "acquisition"), in_turn(["LogEI", "UCB", "qLogEI with pending points", "qKG", "qMES"])
)
def test_acquisition_functions_work_before_the_first_observation(name: str, acquisition: str) -> None:
    """The zero-shot model is a BoTorch model like the others, fantasies included."""
    make, q = ACQUISITIONS[acquisition]
    function = make(_fitted(name, 0))
    size = function.get_augmented_q_batch_size(q) if isinstance(function, qKnowledgeGradient) else q
    X = torch.rand(3, size, 2, dtype=torch.float64).requires_grad_()
    value = function(X)
    assert value.shape == (3,)
    assert bool(value.isfinite().all())
    assert bool(torch.autograd.grad(value.sum(), X)[0].isfinite().all())


@REPEATED_ROWS
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_acquisition_function_may_be_asked_where_something_was_observed(name: str) -> None:
    """At the target's own points, and at points asked for twice, values and gradients are finite."""
    X = torch.cat([PROBLEM.target.X[:2], PROBLEM.target.X[:2]]).requires_grad_()
    function = UpperConfidenceBound(_fitted(name), beta=4.0)
    value = function(X.unsqueeze(-2))
    assert bool(torch.autograd.grad(value.sum(), X)[0].isfinite().all())
    pending = X[:2].detach()
    batch = qLogExpectedImprovement(_fitted(name), PROBLEM.target.y.max(), sampler=_sampler(16), X_pending=pending)
    assert bool(batch(X).isfinite().all())


# ── gradients ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _agrees_with_differences(function: Callable[[Tensor], Tensor], X: Tensor) -> bool:
    """Whether autograd agrees with central differences, relative to the largest derivative."""
    X = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    step = 1e-5
    differences = torch.empty_like(X)
    with torch.no_grad():
        for index in range(X.numel()):
            shift = torch.zeros_like(X)
            shift.view(-1)[index] = step
            differences.view(-1)[index] = (function(X + shift).sum() - function(X - shift).sum()) / (2 * step)
    return agree(gradient, differences, rtol=1e-5, atol=1e-8)


FUNCTIONS: dict[str, Callable[[TransferPosterior], Callable[[Tensor], Tensor]]] = {
    "mean": lambda m: lambda X: m.posterior(X).mean,
    "variance": lambda m: lambda X: m.posterior(X).variance,
    "covariance": lambda m: lambda X: m.posterior(X).distribution.covariance_matrix.square(),
    "predict": lambda m: lambda X: torch.stack(m.predict(X)),
    "LogEI": lambda m: lambda X: LogExpectedImprovement(m, best_f=PROBLEM.target.y.max())(X.unsqueeze(-2)),
    "UCB": lambda m: lambda X: UpperConfidenceBound(m, beta=4.0)(X.unsqueeze(-2)),
}


@pytest.mark.parametrize(("name", "function"), in_turn(FUNCTIONS))
def test_gradients_agree_with_finite_differences(name: str, function: str) -> None:
    """By the points asked about, of a fitted model and of one with the rougher kernel."""
    assert _agrees_with_differences(FUNCTIONS[function](_fitted(name)), X_NEW[:3])
    assert _agrees_with_differences(FUNCTIONS[function](_at(name, kernel=Kernel.MATERN52)), X_NEW[:3])


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_gradients_pass_through_a_fantasy(name: str) -> None:
    """By the point that was imagined to be observed, as the knowledge gradient needs them."""
    model = _at(name)

    def after(X: Tensor) -> Tensor:
        fantasy = model.condition_on_observations(X, X.sum(-1, keepdim=True))
        return torch.stack(fantasy.predict(PROBLEM.Xq))

    assert _agrees_with_differences(after, X_NEW[:2])


# ── more observations ─────────────────────────────────────────────────────────────────────────────────────────────


def _observed(name: str, posterior: TransferPosterior, X: Tensor, y: Tensor, n: int) -> TransferPosterior:
    """The model at the same hyperparameters, with the observations appended to the data."""
    head = PROBLEM.head(n)
    target = Dataset(torch.cat([head.X, X]), torch.cat([head.y, y]))
    return FAMILY[name].at(posterior.hyperparameters, sources=_sources(name), target=target)


def _same(a: TransferPosterior, b: TransferPosterior, X: Tensor = PROBLEM.Xq) -> bool:
    one, two = (m.posterior(X).distribution for m in (a, b))
    return agree(one.mean, two.mean, rtol=1e-8) and agree(one.covariance_matrix, two.covariance_matrix, rtol=1e-8)


@pytest.mark.parametrize(("name", "n"), in_turn([0, 1, 5]))
def test_conditioning_is_appending_to_the_data(name: str, n: int) -> None:
    """``condition_on_observations`` equals the model of all observations at the same hyperparameters."""
    posterior, y = _fitted(name, n), tensor([0.3, 1.7])
    conditioned = posterior.condition_on_observations(X_NEW[:2], y[:, None])
    expected = _observed(name, posterior, X_NEW[:2], y, n)
    assert _same(conditioned, expected)
    assert agree(conditioned.log_evidence, expected.log_evidence, rtol=1e-8)
    assert torch.equal(conditioned.train_inputs[0], torch.cat([PROBLEM.target.X[:n], X_NEW[:2]]))
    assert torch.equal(conditioned.train_targets, torch.cat([PROBLEM.target.y[:n], y]))
    assert isinstance(conditioned, TransferPosterior)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_conditioning_one_by_one_is_conditioning_at_once(name: str) -> None:
    """Rows may be appended in one step or in several, and the original stays what it was."""
    posterior, Y = _fitted(name), tensor([[0.3], [1.7], [-1.0]])
    before = predictions(posterior, PROBLEM.Xq)
    stepwise: Any = posterior
    for i in range(3):
        stepwise = stepwise.condition_on_observations(X_NEW[i : i + 1], Y[i : i + 1])
    assert _same(stepwise, posterior.condition_on_observations(X_NEW[:3], Y))
    assert torch.equal(predictions(posterior, PROBLEM.Xq), before)


@pytest.mark.parametrize(("name", "n"), in_turn([0, 5]))
def test_many_fantasies_are_each_their_own(name: str, n: int) -> None:
    """Y with a leading dimension makes a batch of models, one for every imagined outcome."""
    posterior, Y = _fitted(name, n), torch.randn(4, 2, 1, dtype=torch.float64)
    fantasies = posterior.condition_on_observations(X_NEW[:2], Y)
    assert fantasies.batch_shape == (4,)
    mean, cov = (lambda d: (d.mean, d.covariance_matrix))(fantasies.posterior(PROBLEM.Xq).distribution)
    assert mean.shape == (4, 7)
    for i in range(4):
        expected = _observed(name, posterior, X_NEW[:2], Y[i].squeeze(-1), n).posterior(PROBLEM.Xq).distribution
        assert agree(mean[i], expected.mean, rtol=1e-8)
        assert agree(cov[i], expected.covariance_matrix, rtol=1e-8)


@pytest.mark.parametrize(("name", "n"), in_turn([0, 5]))
def test_fantasies_at_many_places_are_each_their_own(name: str, n: int) -> None:
    """X (3, k, d) with Y (4, 3, k, 1) makes a batch (4, 3): every outcome at every place."""
    posterior = _fitted(name, n)
    X, Y = X_NEW[:6].reshape(3, 2, 2), torch.randn(4, 3, 2, 1, dtype=torch.float64)
    fantasies = posterior.condition_on_observations(X, Y)
    assert fantasies.batch_shape == (4, 3)
    assert fantasies.train_inputs[0].shape == (4, 3, n + 2, 2)
    assert fantasies.train_targets.shape == (4, 3, n + 2)
    distribution = fantasies.posterior(PROBLEM.Xq).distribution
    for i, j in ((0, 0), (1, 2), (3, 1)):
        expected = _observed(name, posterior, X[j], Y[i, j].squeeze(-1), n).posterior(PROBLEM.Xq).distribution
        assert agree(distribution.mean[i, j], expected.mean, rtol=1e-8)
        assert agree(distribution.covariance_matrix[i, j], expected.covariance_matrix, rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_fantasies_of_fantasies_work(name: str) -> None:
    """A fantasy can be conditioned again, as look-ahead over several steps does."""
    posterior = _fitted(name)
    first = posterior.condition_on_observations(X_NEW[:1], torch.randn(4, 1, 1, dtype=torch.float64))
    second = first.condition_on_observations(X_NEW[1:2], torch.randn(3, 4, 1, 1, dtype=torch.float64))
    assert second.batch_shape == (3, 4)
    y = torch.stack([first.train_targets[2, -1], second.train_targets[1, 2, -1]])
    expected = _observed(name, posterior, X_NEW[:2], y, 5)
    assert agree(second.posterior(PROBLEM.Xq).mean[1, 2], expected.posterior(PROBLEM.Xq).mean, rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_observation_may_bring_its_own_noise(name: str) -> None:
    """With ``noise`` almost 0 the prediction passes through the value; with a huge one nothing is learnt."""
    posterior, X, Y = _at(name), X_NEW[:1], tensor([[5.0]])
    mean, var = posterior.condition_on_observations(X, Y, noise=tensor([[1e-9]])).predict(X)
    if name != "RGPE":  # there only one member of the ensemble hears of it
        assert mean.item() == pytest.approx(5.0, abs=1e-6)
    assert var.item() < posterior.predict(X)[1].item()
    ignored = posterior.condition_on_observations(X, Y, noise=tensor([[1e12]]))
    assert agree(predictions(ignored, PROBLEM.Xq), predictions(posterior, PROBLEM.Xq), rtol=1e-8)
    usual = posterior.likelihood.noise.reshape(1, 1)
    same = posterior.condition_on_observations(X, Y, noise=usual)
    assert _same(same, posterior.condition_on_observations(X, Y))


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_fantasize_draws_outcomes_with_noise_and_conditions_on_them(name: str) -> None:
    """``fantasize`` is sampling y at X and conditioning on the samples."""
    posterior = _fitted(name)
    drawn = _sampler()(posterior.posterior(X_NEW[:2], observation_noise=True))
    expected = posterior.condition_on_observations(X_NEW[:2], drawn)
    fantasies = posterior.fantasize(X_NEW[:2], _sampler())
    assert fantasies.batch_shape == (4,)
    assert agree(predictions(fantasies, PROBLEM.Xq), predictions(expected, PROBLEM.Xq), rtol=1e-10)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_fantasize_takes_an_observation_noise(name: str) -> None:
    """A given noise is used for drawing and for conditioning, over a batch of places too."""
    posterior, noise = _fitted(name), tensor([[0.09]])
    fantasies = posterior.fantasize(X_NEW[:6].reshape(3, 2, 2), _sampler(), observation_noise=noise)
    assert fantasies.batch_shape == (4, 3)
    drawn = _sampler()(posterior.posterior(X_NEW[:6].reshape(3, 2, 2), observation_noise=noise))
    assert agree(fantasies.train_targets[..., 5:], drawn.squeeze(-1), rtol=1e-10)
    i, j = 2, 1
    expected = posterior.condition_on_observations(X_NEW[2:4], drawn[i, j], noise=noise.expand(2, 1))
    assert agree(predictions(fantasies, PROBLEM.Xq)[:, i, j], predictions(expected, PROBLEM.Xq), rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_fantasizing_about_nothing_makes_copies(name: str) -> None:
    """Without points every fantasy is the model itself."""
    posterior = _fitted(name)
    nothing = posterior.fantasize(X_NEW[:0], _sampler())
    assert nothing.batch_shape == (4,)
    for one in predictions(nothing, PROBLEM.Xq).unbind(1):
        assert agree(one, predictions(posterior, PROBLEM.Xq), rtol=1e-10)


# ── the posterior ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_what_condition_returns_is_a_botorch_model(name: str) -> None:
    """One output, the target's data, and its noise as a likelihood in the user's units."""
    posterior = _fitted(name)
    assert isinstance(posterior, Model)
    assert (posterior.num_outputs, posterior.batch_shape) == (1, ())
    assert torch.equal(posterior.train_inputs[0], PROBLEM.target.X)
    assert torch.equal(posterior.train_targets, PROBLEM.target.y)
    params: Any = posterior.hyperparameters
    match params:
        case CoregionalParams():
            noise = params.noise_var[-1]
        case AutoParams():
            candidates: Any = params.candidates
            every = [part.levels[-1].noise_var for part in candidates]
            noise = params.weights @ torch.stack(every)
        case _:
            noise = params.levels[-1].noise_var
    assert posterior.likelihood.noise.item() == pytest.approx(noise.item(), rel=1e-9)
    assert not posterior.training
    assert not any(p.requires_grad for p in posterior.parameters())


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_posterior_and_predict_agree(name: str) -> None:
    """Marginals are the same whether a covariance is computed or not, and the same for one point alone."""
    posterior = _fitted(name)
    mean, var = posterior.predict(PROBLEM.Xq)
    joint = posterior.posterior(PROBLEM.Xq)
    assert joint.mean.shape == joint.variance.shape == (7, 1)
    assert agree(joint.mean.squeeze(-1), mean, rtol=1e-10)
    assert agree(joint.variance.squeeze(-1), var, rtol=1e-8)
    alone = posterior.posterior(PROBLEM.Xq.unsqueeze(-2))
    assert agree(alone.mean.flatten(), mean, rtol=1e-10)
    assert agree(alone.variance.flatten(), var, rtol=1e-8)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1,), (5, 1)])
@pytest.mark.parametrize(("name", "n"), in_turn([0, 5]))
def test_batches_of_queries_are_asked_one_by_one(name: str, n: int, shape: tuple[int, ...]) -> None:
    """The posterior at X (*b, q, d) is that of every X (q, d) in it."""
    posterior, X = _at(name, n=n), torch.rand(*shape, 4, 2, dtype=torch.float64)
    together = posterior.posterior(X)
    assert together.mean.shape == (*shape, 4, 1)
    cov = together.distribution.covariance_matrix.reshape(-1, 4, 4)
    for i, x in enumerate(X.reshape(-1, 4, 2)):
        alone = posterior.posterior(x)
        assert agree(together.mean.reshape(-1, 4, 1)[i], alone.mean, rtol=1e-10)
        assert agree(cov[i], alone.distribution.covariance_matrix, rtol=1e-10)
    single = posterior.posterior(X[..., :1, :])
    assert single.mean.shape == single.variance.shape == (*shape, 1, 1)
    assert agree(single.variance.flatten(), cov[:, 0, 0], rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_samples_follow_the_posterior(name: str) -> None:
    """``rsample`` through a Sobol sampler has the mean and covariance of the posterior, and a gradient."""
    posterior = _fitted(name)
    distribution = posterior.posterior(X_NEW[:3])
    samples = SobolQMCNormalSampler(torch.Size((2048,)), seed=0)(distribution).squeeze(-1)
    assert samples.shape == (2048, 3)
    mean, cov = distribution.distribution.mean, distribution.distribution.covariance_matrix
    size = cov.diagonal().max().sqrt().item()
    assert torch.allclose(samples.mean(0), mean, rtol=0, atol=0.02 * size)
    assert torch.allclose(samples.mT.cov(), cov, rtol=0, atol=0.05 * size**2)
    X = X_NEW[:3].clone().requires_grad_()
    drawn = posterior.posterior(X).rsample(torch.Size((8,)))
    assert drawn.shape == (8, 3, 1)
    assert bool(torch.autograd.grad(drawn.sum(), X)[0].isfinite().all())


@REPEATED_ROWS
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_points_asked_about_twice_can_be_sampled(name: str) -> None:
    """Repeated rows share their value: sampling them works, as it does for BoTorch's own models."""
    X = torch.cat([X_NEW[:3], X_NEW[:3], PROBLEM.target.X[:2]])
    samples = _sampler(64)(_fitted(name).posterior(X)).squeeze(-1)
    assert bool(samples.isfinite().all())
    assert torch.allclose(samples[:, :3], samples[:, 3:6], atol=1e-2)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_observation_noise_is_added_to_the_variance(name: str) -> None:
    """True adds the target's own noise, a tensor its own values; the mean and the other covariances stay."""
    posterior = _fitted(name)
    f = posterior.posterior(X_NEW).distribution
    own = posterior.posterior(X_NEW, observation_noise=True).distribution
    noise = posterior.likelihood.noise.expand(7)
    assert agree(own.mean, f.mean, rtol=1e-14)
    assert agree(own.covariance_matrix, f.covariance_matrix + torch.diag(noise), rtol=1e-10)
    given = torch.rand(7, 1, dtype=torch.float64)
    other = posterior.posterior(X_NEW, observation_noise=given).distribution
    assert agree(other.covariance_matrix, f.covariance_matrix + torch.diag(given.squeeze(-1)), rtol=1e-10)
    batch = posterior.posterior(X_NEW.expand(3, 7, 2), observation_noise=given.expand(3, 7, 1)).distribution
    assert agree(batch.covariance_matrix[1], other.covariance_matrix, rtol=1e-10)
    alone = posterior.posterior(X_NEW[:, None], observation_noise=True).variance.flatten()
    assert agree(alone, own.covariance_matrix.diagonal(), rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_posterior_transform_is_applied(name: str) -> None:
    """With weight −1 the mean changes its sign and the covariance does not: how BoTorch minimises."""
    plain = _fitted(name).posterior(X_NEW)
    turned = _fitted(name).posterior(X_NEW, posterior_transform=MINIMISE)
    assert agree(turned.mean, -plain.mean, rtol=1e-12)
    assert agree(turned.variance, plain.variance, rtol=1e-12)
    lowest = PosteriorMean(_fitted(name), posterior_transform=MINIMISE)
    assert agree(lowest(X_NEW.unsqueeze(-2)), -plain.mean.flatten(), rtol=1e-10)


# ── batched models ────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _batched(name: str, n: int = 5) -> tuple[TransferPosterior, list[TransferPosterior]]:
    """Three problems as one model, and each alone, at equal hyperparameters."""
    problem = transfer_problem(batch_shape=(3,))
    params, sources = params_for(name, batch_shape=(3,)), () if name == "GPBO" else problem.sources
    model, target = FAMILY[name], problem.head(n)
    alone = [model.at(item_of(params, i), sources=item_of(sources, i), target=item_of(target, i)) for i in range(3)]
    return model.at(params, sources=sources, target=target), alone


@pytest.mark.parametrize(("name", "n"), in_turn([0, 5]))
def test_a_batched_model_answers_for_every_problem(name: str, n: int) -> None:
    """X (3, q, d) asks each of three problems its own question, X (5, 3, q, d) five such questions."""
    batch, alone = _batched(name, n)
    assert batch.batch_shape == (3,)
    for shape in ((3, 4, 2), (5, 3, 4, 2), (5, 3, 1, 2), (5, 1, 4, 2)):
        X = torch.rand(*shape, dtype=torch.float64)
        answer = batch.posterior(X)
        full = torch.broadcast_shapes(shape[:-2], (3,))
        assert answer.mean.shape == (*full, shape[-2], 1)
        for i in range(3):
            expected = alone[i].posterior(X.expand(*full, *shape[-2:]).select(-3, i))
            assert agree(answer.mean.select(-3, i), expected.mean, rtol=1e-10)
            cov = answer.distribution.covariance_matrix.select(-3, i)
            assert agree(cov, expected.distribution.covariance_matrix, rtol=1e-10)


@pytest.mark.parametrize(("name", "n"), in_turn([0, 5]))
def test_a_batched_model_can_be_conditioned(name: str, n: int) -> None:
    """Each problem gets its own new observation, and its own fantasies of it."""
    batch, alone = _batched(name, n)
    X, Y = torch.rand(3, 2, 2, dtype=torch.float64), torch.randn(3, 2, 1, dtype=torch.float64)
    conditioned = batch.condition_on_observations(X, Y)
    fantasies = batch.condition_on_observations(X, Y + torch.arange(4).reshape(4, 1, 1, 1))
    assert (conditioned.batch_shape, fantasies.batch_shape) == ((3,), (4, 3))
    Xq = PROBLEM.Xq.expand(3, 7, 2)
    for i in range(3):
        expected = predictions(alone[i].condition_on_observations(X[i], Y[i]), PROBLEM.Xq)
        assert agree(predictions(conditioned, Xq)[:, i], expected, rtol=1e-8)
        assert agree(predictions(fantasies, Xq)[:, 0, i], expected, rtol=1e-8)
        later = predictions(alone[i].condition_on_observations(X[i], Y[i] + 3), PROBLEM.Xq)
        assert agree(predictions(fantasies, Xq)[:, 3, i], later, rtol=1e-8)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_acquisition_functions_of_a_batched_model_have_a_value_per_problem(name: str) -> None:
    """LogEI and UCB at X (5, 3, 1, d) have shape (5, 3), each what the problem alone gives."""
    batch, alone = _batched(name)
    X = torch.rand(5, 3, 1, 2, dtype=torch.float64)
    make: list[Callable[[Model], AcquisitionFunction]] = [
        lambda m: LogExpectedImprovement(m, best_f=1.0),
        lambda m: UpperConfidenceBound(m, beta=4.0),
    ]
    for acquisition in make:
        value = acquisition(batch)(X)
        assert value.shape == (5, 3)
        for i in range(3):
            assert agree(value[:, i], acquisition(alone[i])(X[:, i]), rtol=1e-8)
    draws = _sampler()(batch.posterior(X))
    assert draws.shape == (4, 5, 3, 1, 1)


# ── behind an output map, over draws of hyperparameters: what a user gets by default ──────────────────────────────

DEFAULTS = pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR", "HGP", "RGPE", "AUTO"])
LONG = transfer_problem(n_target=9)


def _tail(task: Dataset) -> Dataset:
    return Dataset(task.X, task.y.exp())


@cache
def _mapped(name: str, draws: int = 8) -> TransferPosterior:
    """A fitted model of tasks with a long tail, whose map is no straight line."""
    model = FAMILY[name].using(fit=replace(quick(FAMILY[name]).fit, draws=draws))
    found = model.learn([_tail(s) for s in LONG.sources]).condition(_tail(LONG.target))
    assert found.warp is not None
    assert found.warp.power.item() < 0.9
    return found


@DEFAULTS
def test_samples_behind_a_map_follow_its_posterior(name: str) -> None:
    """Their mean, variance and order are the posterior's, in the user's units; rows go together as behind the map."""
    model, X = _mapped(name), LONG.Xq[:3]
    posterior = model.posterior(X)
    samples = posterior.rsample(torch.Size((40_000,))).squeeze(-1)
    mean, var = posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
    assert bool(((samples.mean(0) - mean).abs() < 5 * (var / 40_000).sqrt()).all())
    assert agree(samples.var(0), var, rtol=0.15)
    assert model.warp is not None
    inner = behind_the_map(model).posterior(X).distribution.covariance_matrix
    found = torch.cov(model.warp.inward(samples).mT)
    assert agree(found, inner, rtol=0.05)


@DEFAULTS
def test_gradients_behind_a_map_agree_with_finite_differences(name: str) -> None:
    """Those of LogEI, through the map and all members."""
    function = LogExpectedImprovement(_mapped(name), best_f=_tail(LONG.target).y.median(), maximize=False)
    X = LONG.Xq[:4].unsqueeze(-2).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(X).sum(), X)
    step = 1e-6
    for j in range(2):
        shift = torch.zeros(2, dtype=torch.float64)
        shift[j] = step
        with torch.no_grad():
            differences = (function(X + shift) - function(X - shift)) / (2 * step)
        assert agree(gradient[:, 0, j], differences, rtol=1e-4, atol=1e-5)


@DEFAULTS
@pytest.mark.parametrize("acquisition", ["LogEI", "UCB", "qLogEI with pending points", "qLogNEI", "qKG"])
def test_acquisition_functions_work_behind_a_map(name: str, acquisition: str) -> None:
    """All that need a mean, a variance, samples or fantasies: finite values and gradients."""
    make, q = ACQUISITIONS[acquisition]
    function = make(_mapped(name))
    size = function.get_augmented_q_batch_size(q) if isinstance(function, qKnowledgeGradient) else q
    X = torch.rand(2, size, 2, dtype=torch.float64).requires_grad_()
    value = function(X)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert bool(value.isfinite().all())
    assert bool(gradient.isfinite().all())


@DEFAULTS
def test_conditioning_behind_a_map_is_appending_to_the_data(name: str) -> None:
    """At the same hyperparameters: values come in the user's units, and meet the model behind its map."""
    model = FAMILY[name].using(fit=replace(quick(FAMILY[name]).fit, draws=0))
    prior = model.learn([_tail(s) for s in LONG.sources])
    target = _tail(LONG.target)
    posterior, y = prior.condition(target), tensor([1.5, 4.0])
    assert posterior.warp is not None
    conditioned = posterior.condition_on_observations(X_NEW[:2], y[:, None])
    inward = prior.inward(target)
    appended = Dataset(torch.cat([inward.X, X_NEW[:2]]), torch.cat([inward.y, posterior.warp.inward(y)]))
    sources = () if name == "GPBO" else prior.sources
    expected = model.at(posterior.hyperparameters, sources=sources, target=appended)
    seen = expected._seen_through(posterior.warp, torch.cat([target.y, y]))
    assert agree(predictions(conditioned, LONG.Xq), predictions(seen, LONG.Xq), rtol=1e-7)
    assert agree(conditioned.log_evidence, seen.log_evidence, rtol=1e-7)
    assert torch.equal(conditioned.train_targets, torch.cat([target.y, y]))


@DEFAULTS
def test_fantasies_behind_a_map_are_in_the_users_units(name: str) -> None:
    """Drawn with noise through the map, then conditioned on; a batch of models with means of its own."""
    posterior = _mapped(name)
    fantasies = posterior.fantasize(X_NEW[:2], _sampler())
    assert fantasies.batch_shape == (4,)
    drawn = _sampler()(posterior.posterior(X_NEW[:2], observation_noise=True))
    assert agree(fantasies.train_targets[..., -2:], drawn.squeeze(-1), rtol=1e-10)
    expected = posterior.condition_on_observations(X_NEW[:2], drawn)
    assert agree(predictions(fantasies, LONG.Xq), predictions(expected, LONG.Xq), rtol=1e-9)
    spread = (drawn.amax(0) - drawn.amin(0)).squeeze(-1)
    assert bool((spread > 0).all())
