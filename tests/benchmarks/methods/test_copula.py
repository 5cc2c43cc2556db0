"""GC3P: ranks to normal scores, a network for the pooled sources, a Gaussian process on what it leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
import torch
from tests.problems import agree, item_of, tensor, transfer_problem
from torch import Tensor

from benchmarks.methods.copula import GC3P, CopulaPosterior, GC3PPrior, Training, to_normal_scores
from headstart import Dataset
from headstart.errors import InputError
from headstart.gp.fit import FitOptions, Objective

QUICK = GC3P(
    fit=FitOptions(restarts=1),
    training=Training(learning_rates=(1e-2, 1e-3), steps=60, check_every=30, batch_size=16, width=12),
)
CANDIDATES = torch.rand(3, 40, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
ALL = torch.ones(3, 40, dtype=torch.bool)
SEEDS = [11, 12, 13]


def _learnt(model: GC3P = QUICK, *, n_target: int = 8, sizes: tuple[int, ...] = (30, 25)) -> tuple[GC3PPrior, Dataset]:
    """Three problems learnt in lockstep, and their target."""
    problem = transfer_problem(batch_shape=(3,), sizes=sizes, n_target=n_target)
    return model.learn(problem.sources, seed=SEEDS), problem.target


def _head(target: Dataset, n: int) -> Dataset:
    return Dataset(target.X[..., :n, :], target.y[..., :n])


# ── step 1 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_normal_scores_of_four_values() -> None:
    """z = Φ⁻¹ of the share strictly below, at least δ = 1/(4 · 4^¼ √(π ln 4)) = 0.0847; ties share a score."""
    z = to_normal_scores(tensor([3.0, 1.0, 2.0, 2.0]))  # shares 3/4, 0, 1/4, 1/4
    assert agree(
        z, tensor([0.6744897501960817, -1.3740853470539527, -0.6744897501960817, -0.6744897501960817]), rtol=1e-12
    )


def test_normal_scores_of_two_values() -> None:
    """With two values δ = 1/(4 · 2^¼ √(π ln 2)) = 0.1425: the lower one scores −1.0693, the upper one 0."""
    assert agree(to_normal_scores(tensor([7.0, -2.0])), tensor([0.0, -1.0693294421916424]), rtol=1e-12)
    assert agree(to_normal_scores(tensor([7.0, 7.0])), tensor([-1.0693294421916424, -1.0693294421916424]), rtol=1e-12)


def test_normal_scores_are_clipped_on_both_sides() -> None:
    """With 100 values δ = 0.0208: the lowest three and the highest two fall together, and nothing between does."""
    z = to_normal_scores(torch.arange(100.0, dtype=torch.float64))
    delta = 1 / (4 * 100**0.25 * math.sqrt(math.pi * math.log(100)))
    assert agree(z[:3], tensor([NormalDist().inv_cdf(delta)] * 3), rtol=1e-12)
    assert agree(z[-2:], tensor([NormalDist().inv_cdf(1 - delta)] * 2), rtol=1e-12)
    assert agree(z[3:98], tensor([NormalDist().inv_cdf(k / 100) for k in range(3, 98)]), rtol=1e-12, atol=1e-12)


def test_normal_scores_of_one_or_no_value_are_zero() -> None:
    """Without a second value there is no order: the score is that of the median."""
    assert to_normal_scores(tensor([5.0])).tolist() == [0.0]
    assert to_normal_scores(torch.empty(2, 0, dtype=torch.float64)).shape == (2, 0)


@pytest.mark.slow
@pytest.mark.parametrize("increasing", [torch.exp, lambda y: 3 * y - 7, lambda y: y**3, torch.atan])
def test_only_the_order_of_the_outputs_matters(increasing) -> None:
    """A strictly increasing map of any task's outputs changes neither the scores nor a suggestion."""
    prior, target = _learnt()
    y = target.y - 1
    assert torch.equal(to_normal_scores(increasing(y)), to_normal_scores(y))
    mapped = QUICK.learn([Dataset(s.X, increasing(s.y - 1)) for s in prior.sources], seed=SEEDS)
    assert torch.equal(mapped.copula.theta, prior.copula.theta)
    for n in (0, 3, 8):
        suggestion = mapped.suggest(_head(Dataset(target.X, increasing(y)), n), CANDIDATES, ALL, seed=SEEDS)
        assert torch.equal(suggestion, prior.suggest(_head(target, n), CANDIDATES, ALL, seed=SEEDS))


def test_normal_scores_of_a_batch_are_those_of_its_rows() -> None:
    """Every row is a task of its own."""
    y = torch.randn(2, 3, 17, generator=torch.Generator().manual_seed(0), dtype=torch.float64).round(decimals=1)
    z = to_normal_scores(y)
    below = (y.unsqueeze(-2) < y.unsqueeze(-1)).double().mean(-1)
    order = np.argsort(below.flatten().numpy(), kind="stable")
    assert (np.diff(z.flatten().numpy()[order]) >= 0).all()
    assert torch.equal(z[1, 2], to_normal_scores(y[1, 2]))


# ── step 2 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_network_finds_mean_and_spread() -> None:
    """Of y = c(x₂) Φ⁻¹(x₁) + √(1 − c²) ε, which is normal, it learns μ = c Φ⁻¹(x₁), σ = √(1 − c²); in any units."""
    generator = torch.Generator().manual_seed(0)

    def truth(X: Tensor) -> tuple[Tensor, Tensor]:
        c = 0.3 + 0.65 * X[..., 1]
        return c * torch.special.ndtri(X[..., 0]), (1 - c**2).sqrt()

    def task(n: int) -> tuple[Tensor, Tensor]:
        X = torch.rand(n, 2, generator=generator, dtype=torch.float64).clamp(1e-6, 1 - 1e-6)
        mu, sigma = truth(X)
        return X, mu + sigma * torch.randn(n, generator=generator, dtype=torch.float64)

    (X1, y1), (X2, y2) = task(3000), task(3000)
    prior = GC3P().learn([Dataset(X1, y1), Dataset(X2, 1e-3 * torch.exp(2 * y2) + 40)], seed=0)
    axis = torch.linspace(0.1, 0.9, 9, dtype=torch.float64)
    X = torch.cartesian_prod(axis, axis)
    mu, sigma = prior.copula.predict(X)
    true_mu, true_sigma = truth(X)
    assert (mu - true_mu).abs().mean() < 0.06
    assert (sigma / true_sigma - 1).abs().mean() < 0.08
    assert sigma[X[:, 1] < 0.2].mean() > 1.5 * sigma[X[:, 1] > 0.8].mean()


def test_the_network_is_what_its_formula_says() -> None:
    """μ and σ are the layers' formula on standardised inputs: no dropout is left, and nothing is random."""
    prior, _ = _learnt()
    pooled = torch.cat([s.X[1] for s in prior.sources]).numpy()
    theta, X = prior.copula.theta[1].numpy(), CANDIDATES[1].numpy()
    h, at = (X - pooled.mean(0)) / pooled.std(0), 0
    for layer, (n_in, n_out) in enumerate([(2, 12), (12, 12), (12, 12), (12, 12), (12, 2)]):
        A, at = theta[at : at + n_in * n_out].reshape(n_in, n_out), at + n_in * n_out
        a, at = theta[at : at + n_out], at + n_out
        h = h @ A + a
        if layer in (1, 2, 3):
            h = np.maximum(h, 0)
    assert at == len(theta)
    mu, sigma = prior.copula.predict(CANDIDATES)
    assert agree(mu[1], torch.from_numpy(h[:, 0]), rtol=1e-12, atol=1e-13)
    assert agree(sigma[1], torch.from_numpy(np.log1p(np.exp(h[:, 1])) + 1e-3), rtol=1e-12)


def test_the_best_checkpoint_is_kept() -> None:
    """A last round that wrecks the network does not count."""
    good = replace(QUICK, training=replace(QUICK.training, learning_rates=(1e-2,)))
    wrecked = replace(QUICK, training=replace(QUICK.training, learning_rates=(1e-2, 30.0)))
    assert torch.equal(_learnt(good)[0].copula.theta, _learnt(wrecked)[0].copula.theta)


def test_learning_lowers_the_loss() -> None:
    """The fitted network describes the sources better than N(0, 1), which knows their marginal."""
    prior, _ = _learnt(replace(QUICK, training=replace(QUICK.training, steps=300)), sizes=(100, 100))
    for source in prior.sources:
        z = to_normal_scores(source.y)
        mu, sigma = prior.copula.predict(source.X)
        loss = (sigma.log() + 0.5 * ((z - mu) / sigma) ** 2).mean(-1)
        assert (loss < 0.5 * z.square().mean(-1) - 0.1).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3])
def test_two_observations_of_one_source_are_enough(n: int) -> None:
    """Also where an input or the output is constant, the network is finite and a suggestion is made."""
    X = tensor([[0.1, 0.3], [0.9, 0.3], [0.4, 0.3]])[:n]
    for y in (tensor([1.0, 2.0, 3.0])[:n], tensor([1.0, 1.0, 1.0])[:n]):
        prior = QUICK.learn([Dataset(X, y)], seed=1)
        mu, sigma = prior.copula.predict(CANDIDATES[0])
        assert bool(mu.isfinite().all())
        assert bool((sigma > 0).all())
        assert mu.abs().max() < 100
        target = Dataset(CANDIDATES[0, :6], torch.zeros(6, dtype=torch.float64))
        assert 0 <= int(prior.suggest(target, CANDIDATES[0], ALL[0])) < 40


# ── step 4 ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _matern(A: Tensor, B: Tensor, lengthscale: Tensor) -> Tensor:
    a = math.sqrt(5) * (((A[:, None] - B[None]) / lengthscale) ** 2).sum(-1).sqrt()
    return (1 + a + a**2 / 3) * torch.exp(-a)


def _dense(prior: GC3PPrior, posterior: CopulaPosterior, target: Dataset, i: int) -> tuple[Tensor, Tensor]:
    mu, sigma = (value[i] for value in prior.copula.predict(target.X))
    r = (to_normal_scores(target.y)[i] - mu) / sigma
    p = item_of(posterior.residual.params, i)
    K = p.outputscale * _matern(target.X[i], target.X[i], p.lengthscale) + p.noise_var * torch.eye(target.n)
    k = p.outputscale * _matern(CANDIDATES[i], target.X[i], p.lengthscale)
    mean = p.offset + k @ torch.linalg.solve(K, r - p.offset)
    var = p.outputscale - (k * torch.linalg.solve(K, k.mT).mT).sum(-1)
    mu, sigma = (value[i] for value in prior.copula.predict(CANDIDATES))
    return mu + sigma * mean, sigma * var.sqrt()


def test_predictions_are_those_of_the_dense_formula() -> None:
    """Mean μ + σ m_r and deviation σ s_r, with a Matérn-5/2 process on r = (z − μ)/σ and noise of at least 1e-3."""
    prior, target = _learnt()
    posterior = prior.condition(target)
    mean, sd = posterior.predict(CANDIDATES)
    assert (posterior.residual.noise_var >= 1e-3 * (1 - 1e-12)).all()
    assert torch.equal(posterior.z, to_normal_scores(target.y))
    for i in range(3):
        dense_mean, dense_sd = _dense(prior, posterior, target, i)
        assert agree(mean[i], dense_mean, rtol=1e-8, atol=1e-10)
        assert agree(sd[i], dense_sd, rtol=1e-7)


def test_the_noise_floor_binds_where_the_residuals_are_smooth() -> None:
    """Residuals without noise would ask for less than 1e-3."""
    prior, _ = _learnt()
    constant = Dataset(CANDIDATES, torch.zeros(3, 40, dtype=torch.float64))  # r is then as smooth as the network
    likelihood = replace(prior, model=replace(QUICK, fit=FitOptions(objective=Objective.LIKELIHOOD)))
    assert likelihood.condition(constant).residual.noise_var.amin() == pytest.approx(1e-3)


def test_without_observations_the_posterior_is_the_network() -> None:
    """Mean μ, and a deviation of σ times the prior's median outputscale, 1."""
    prior, target = _learnt()
    posterior = prior.condition(_head(target, 0))
    mu, sigma = prior.copula.predict(CANDIDATES)
    mean, sd = posterior.predict(CANDIDATES)
    assert agree(mean, mu, rtol=1e-12)
    assert agree(sd, sigma, rtol=1e-12)
    with pytest.raises(InputError, match="no observation yet"):
        posterior.log_expected_improvement(CANDIDATES)


def test_expected_improvement_is_on_the_least_score() -> None:
    """log EI = log((b − m) Φ(u) + s φ(u)) with b = min z, u = (b − m)/s; finite where EI itself underflows."""
    prior, target = _learnt()
    posterior = prior.condition(target)
    mean, sd = posterior.predict(CANDIDATES)
    gap = to_normal_scores(target.y).amin(-1, keepdim=True) - mean
    normal = torch.distributions.Normal(tensor(0.0), tensor(1.0))
    ei = gap * normal.cdf(gap / sd) + sd * normal.log_prob(gap / sd).exp()
    near = gap / sd > -4
    assert near.any()
    log_ei = posterior.log_expected_improvement(CANDIDATES)
    assert agree(log_ei[near].exp(), ei[near], rtol=1e-6)
    hopeless = replace(posterior, z=posterior.z - 1e4).log_expected_improvement(CANDIDATES)
    assert bool(hopeless.isfinite().all())
    assert (hopeless < -1000).all()


# ── the protocol ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_five_ignore_the_outputs_and_then_improvement_decides() -> None:
    """Until there are five observations the outputs and the fit play no part; afterwards the seed plays none."""
    prior, target = _learnt()
    for n in range(5):
        some, other = _head(target, n), _head(Dataset(target.X, -target.y), n)
        drawn = prior.suggest(some, CANDIDATES, ALL, seed=SEEDS)
        assert torch.equal(drawn, prior.suggest(other, CANDIDATES, ALL, seed=SEEDS))
    for n in (5, 8):
        chosen = prior.suggest(_head(target, n), CANDIDATES, ALL, seed=SEEDS)
        assert torch.equal(chosen, prior.suggest(_head(target, n), CANDIDATES, ALL, seed=[1, 2, 3]))
        log_ei = prior.condition(_head(target, n)).log_expected_improvement(CANDIDATES)
        assert torch.equal(chosen, log_ei.argmax(-1))


@pytest.mark.slow
def test_a_draw_picks_a_candidate_as_often_as_it_is_the_least() -> None:
    """Of two candidates the first is drawn with probability Φ((μ₂ − μ₁)/√(σ₁² + σ₂²)), at every one of the five."""
    prior, target = _learnt()
    X, allowed, draws = CANDIDATES[:, :2], ALL[:, :2], 300
    mu, sigma = prior.copula.predict(X)
    gap = (mu[:, 1] - mu[:, 0]) / sigma.square().sum(-1).sqrt()
    p = torch.distributions.Normal(tensor(0.0), tensor(1.0)).cdf(gap)
    for n in (0, 4):
        picks = [
            prior.suggest(_head(target, n), X, allowed, seed=[3 * s, 3 * s + 1, 3 * s + 2]) == 0 for s in range(draws)
        ]
        share = torch.stack(picks).double().mean(0)
        assert ((share - p).abs() < 4 * (p * (1 - p) / draws).sqrt()).all()


def test_every_step_of_a_run_draws_anew() -> None:
    """With one seed for the whole run the draws of the five steps differ, and come again with the same seed."""
    prior, target = _learnt()
    first, again = (
        [prior.suggest(_head(target, n), CANDIDATES, ALL, seed=SEEDS).tolist() for n in range(5)] for _ in range(2)
    )
    assert first == again
    assert len({tuple(step) for step in first}) > 1
    other = [prior.suggest(_head(target, n), CANDIDATES, ALL, seed=[1, 2, 3]).tolist() for n in range(5)]
    assert other != first


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 4, 5, 8])
def test_only_allowed_candidates_are_suggested(n: int) -> None:
    """Down to the last one, and though others would be better."""
    prior, target = _learnt()
    allowed = ALL.clone()
    for left in range(40, 0, -1):
        chosen = prior.suggest(_head(target, n), CANDIDATES, allowed, seed=SEEDS)
        assert bool(allowed.gather(-1, chosen.unsqueeze(-1)).all())
        allowed.scatter_(-1, chosen.unsqueeze(-1), False)
        assert allowed.sum(-1).tolist() == [left - 1] * 3
    with pytest.raises(InputError, match="every problem"):
        prior.suggest(_head(target, n), CANDIDATES, allowed, seed=SEEDS)


@pytest.mark.parametrize("n", [0, 3, 8])
def test_padding_changes_nothing(n: int) -> None:
    """Candidates appended to a shorter list, and not allowed, leave the suggestion as it was."""
    prior, target = _learnt()
    padded = torch.cat([CANDIDATES, torch.zeros(3, 9, 2, dtype=torch.float64)], dim=1)
    allowed = torch.cat([ALL, torch.zeros(3, 9, dtype=torch.bool)], dim=1)
    short = prior.suggest(_head(target, n), CANDIDATES, ALL, seed=SEEDS)
    assert torch.equal(short, prior.suggest(_head(target, n), padded, allowed, seed=SEEDS))


def _run(prior: GC3PPrior, f: Tensor, X: Tensor, seed: list[int], steps: int) -> Tensor:
    """A run over candidates X (P, M, d) with values f (P, M): what was evaluated, (P, steps)."""
    target = Dataset.empty(X.shape[-1], batch_shape=X.shape[:1])
    allowed, problems, chosen = torch.ones(X.shape[:2], dtype=torch.bool), torch.arange(len(X)), []
    for _ in range(steps):
        i = prior.suggest(target, X, allowed, seed=seed)
        allowed[problems, i] = False
        target = target.with_point(X[problems, i], f[problems, i])
        chosen.append(i)
    return torch.stack(chosen, dim=-1)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [SEEDS, 4])
def test_a_batch_is_its_problems(seeds: list[int] | int) -> None:
    """Learnt together every network is bit for bit what it is alone, and a run evaluates the same points."""
    problem = transfer_problem(batch_shape=(3,), sizes=(30, 25))
    f = torch.sin(4 * CANDIDATES).sum(-1)
    prior = QUICK.learn(problem.sources, seed=seeds)
    together = _run(prior, f, CANDIDATES, SEEDS, 9)
    for i in range(3):
        own = seeds if isinstance(seeds, int) else [seeds[i]]
        alone = QUICK.learn([Dataset(s.X[i : i + 1], s.y[i : i + 1]) for s in problem.sources], seed=own)
        assert torch.equal(alone.copula.theta[0], prior.copula.theta[i])
        assert torch.equal(_run(alone, f[i : i + 1], CANDIDATES[i : i + 1], SEEDS[i : i + 1], 9)[0], together[i])
        bare = QUICK.learn([Dataset(s.X[i], s.y[i]) for s in problem.sources], seed=own)
        assert torch.equal(bare.copula.theta, prior.copula.theta[i])
        chosen = bare.suggest(Dataset.empty(2), CANDIDATES[i], ALL[i], seed=SEEDS[i])
        assert chosen.shape == ()
        assert chosen == together[i, 0]


def test_two_leading_dimensions_are_a_batch_too() -> None:
    """batch_shape (2, 3) works as (6,) does."""
    problem = transfer_problem(batch_shape=(2, 3), sizes=(12, 9), n_target=6)
    X, allowed = CANDIDATES.expand(2, 3, 40, 2), ALL.expand(2, 3, 40)
    prior = QUICK.learn(problem.sources, seed=list(range(6)))
    flat = QUICK.learn([Dataset(s.X.flatten(0, 1), s.y.flatten(0, 1)) for s in problem.sources], seed=list(range(6)))
    for n in (2, 6):
        one = problem.head(n)
        two = Dataset(one.X.flatten(0, 1), one.y.flatten(0, 1))
        shaped = prior.suggest(one, X, allowed, seed=list(range(6)))
        assert shaped.shape == (2, 3)
        assert torch.equal(
            shaped.flatten(), flat.suggest(two, X.flatten(0, 1), allowed.flatten(0, 1), seed=list(range(6)))
        )


def test_equal_seeds_give_equal_networks_and_others_do_not() -> None:
    """Problems with the same data and the same seed share a network; another seed gives another."""
    source = transfer_problem(sizes=(20,)).sources[0]
    tripled = Dataset(source.X.expand(3, 20, 2), source.y.expand(3, 20))
    theta = QUICK.learn([tripled], seed=[7, 7, 8]).copula.theta
    assert torch.equal(theta[0], theta[1])
    assert not torch.equal(theta[0], theta[2])
    assert torch.equal(theta[0], QUICK.learn([source], seed=7).copula.theta)


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bad_input_is_named() -> None:
    """Every message says which task or argument it is about."""
    prior, target = _learnt()
    source = prior.sources[0]
    one = Dataset(source.X[:, :1], source.y[:, :1], "monday")
    with pytest.raises(InputError, match=r"source 1 \('monday'\) has a single observation"):
        QUICK.learn([source, one])
    with pytest.raises(InputError, match="at least one source"):
        QUICK.learn([])
    with pytest.raises(InputError, match="same number of inputs"):
        QUICK.learn([source, Dataset(source.X[..., :1], source.y)])
    with pytest.raises(InputError, match="unit cube"):
        QUICK.learn([Dataset(source.X + 1, source.y)])
    with pytest.raises(InputError, match="one for each of 3 problems"):
        QUICK.learn([source], seed=[1, 2])
    with pytest.raises(InputError, match="same number of inputs"):
        prior.condition(Dataset(target.X[..., :1], target.y))
    with pytest.raises(InputError, match=r"candidates need shape \(3, 'M', 2\)"):
        prior.suggest(target, CANDIDATES[..., :1], ALL)
    with pytest.raises(InputError, match="draws must be at least 1"):
        GC3P(draws=0)
