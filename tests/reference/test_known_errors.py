"""Every model with known errors, and with shifts of batches, against dense formulas.

    y_i ~ N(f(x_i) + g(batch_i) − g(present), noise_var + error_var_i) in all tasks, g ~ N(0, batch_var)

Everything is written down in NumPy for one joint Gaussian of all observations and the queries; the errors of a task
differ by a factor of 100.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import gpytorch
import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from numpy.typing import NDArray
from tests.problems import params_for, star_params, tensor, transfer_problem
from tests.reference import dense
from tests.reference.answers import joint_log_evidence
from tests.reference.test_evidence import COREGIONS, PROBLEMS, D, assert_gradient, draw, kind_of, residuals, thetas
from torch import Tensor

from headstart import (
    FAMILY,
    GPBO,
    AutoParams,
    ChainParams,
    CoregionalParams,
    Dataset,
    GPParams,
    Kernel,
    StarParams,
    TransferPosterior,
)
from headstart.gp.evidence import GaussianEvidence, WeightedTerms
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.chain.beliefs import sources_at
from headstart.models.chain.layer import Layer
from headstart.models.joint.coregion import Coregion, WeightedSource
from headstart.models.joint.joint import ArrowEvidence, DenseEvidence, JointEvidence
from headstart.models.star.weights import FittedWeights, Integrated, SourceFacts, star_evidence

Array = NDArray[np.float64]
TOLERANCE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}
kernels = pytest.mark.parametrize("kernel", Kernel)
either = pytest.mark.parametrize("batched", [False, True], ids=["errors", "errors and shifts"])


def errors(*shape: int, seed: int) -> Tensor:
    """Variances between 0.004 and 0.4, both met in every problem of two rows or more."""
    share = torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    share[..., :1], share[..., 1:2] = 0.0, 1.0
    return 0.004 * 100**share


def knowing(task: Dataset, seed: int) -> Dataset:
    return replace(task, error_var=errors(*task.y.shape, seed=seed))


def in_batches(task: Dataset) -> Dataset:
    """Rows of batches 5, 2 and 8 in turn; 2 is the present one."""
    return replace(task, batch=tensor([5.0, 2.0, 8.0]).repeat(task.n)[: task.n], present=tensor(2.0))


def tasks(*, batched: bool = False) -> tuple[list[Dataset], Dataset, Tensor]:
    problem = transfer_problem(sizes=(7, 5), n_target=6)
    sources, target = [knowing(s, i) for i, s in enumerate(problem.sources)], knowing(problem.target, 9)
    if batched:
        sources, target = [in_batches(source) for source in sources], in_batches(target)
    return sources, target, problem.Xq


def shifted(params: Any, *, batched: bool) -> Any:
    """The same hyperparameters with shifts of every level, if there are to be any."""
    if not batched:
        return params
    if isinstance(params, AutoParams):
        return replace(params, candidates=tuple(shifted(one, batched=True) for one in params.candidates))
    levels = enumerate(params.levels)
    return replace(params, levels=tuple(replace(p, batch_var=0.2 + 0.1 * i + 0 * p.offset) for i, p in levels))


# ── one joint Gaussian of everything, and Bayes' rule ─────────────────────────────────────────────────────────────────


def level_of(p: GPParams) -> dense.Level:
    ell = tuple(p.lengthscale.tolist())
    return dense.Level(ell, p.outputscale.item(), p.noise_var.item(), p.offset.item())


def noise_of(task: Dataset, p: GPParams) -> Array:
    assert task.error_var is not None
    N = np.diag(p.noise_var.item() + task.error_var.numpy())
    if task.batch is None or task.present is None or p.batch_var is None:
        return N
    return N + dense.shift_cov(task.batch.numpy(), task.present.item(), p.batch_var.item())


def bayes(mean: Array, cov: Array, y: Array, noise: Array) -> tuple[Array, Array, float]:
    """Mean and covariance of all of f after its first entries were observed, and log p(y)."""
    n = len(y)
    K = cov[:n, :n] + noise
    G = cov[:, :n] @ np.linalg.inv(K)
    r = y - mean[:n]
    value = -0.5 * (r @ np.linalg.inv(K) @ r + np.linalg.slogdet(K)[1] + n * np.log(2 * np.pi))
    return mean + G @ r, cov - G @ cov[:n], float(value)


def expect(posterior: TransferPosterior, Xq: Tensor, mean: Array, cov: Array, log_evidence: float) -> None:
    m = len(Xq)
    joint = posterior.posterior(Xq).distribution
    np.testing.assert_allclose(joint.mean, mean[-m:], **TOLERANCE)
    np.testing.assert_allclose(joint.covariance_matrix, cov[-m:, -m:], **TOLERANCE)
    np.testing.assert_allclose(posterior.predict(Xq)[1], cov[-m:, -m:].diagonal(), **TOLERANCE)
    np.testing.assert_allclose(posterior.log_evidence.item(), log_evidence, **TOLERANCE)


@kernels
@either
def test_gpbo_knows_the_errors(kernel: Kernel, batched: bool) -> None:
    """GPBO is Bayes' rule with noise_var + error_var_i on the diagonal; a new result has the common noise alone."""
    _, target, Xq = tasks(batched=batched)
    params = shifted(params_for("GPBO"), batched=batched)
    p = level_of(params.levels[0])
    Z = np.concatenate([target.X.numpy(), Xq.numpy()])
    prior = dense.kernel(kind_of(kernel), Z, Z, p)
    posterior = GPBO.using(kernel=kernel).at(params, target=target)
    noise = noise_of(target, params.levels[0])
    mean, cov, evidence = bayes(np.full(len(Z), p.offset), prior, target.y.numpy(), noise)
    expect(posterior, Xq, mean, cov, evidence)
    measured = posterior.posterior(Xq, observation_noise=True).distribution.covariance_matrix
    np.testing.assert_allclose(measured, cov[-len(Xq) :, -len(Xq) :] + p.noise_var * np.eye(len(Xq)), **TOLERANCE)


@kernels
@either
@pytest.mark.parametrize("name", ["MHGP", "SHGP", "BHGP"])
def test_chains_know_the_errors_of_every_level(name: str, kernel: Kernel, batched: bool) -> None:
    """Fact 1 of the errata level by level, with the errors in the gain and in what it leaves behind."""
    sources, target, Xq = tasks(batched=batched)
    every = [*sources, target]
    params = shifted(params_for(name), batched=batched)
    Z = np.concatenate([*(t.X.numpy() for t in every), Xq.numpy()])
    mean, cov = np.zeros(len(Z)), np.zeros((len(Z), len(Z)))
    start, evidence = 0, 0.0
    for task, level in zip(every, params.levels, strict=True):
        p, rows = level_of(level), slice(start, start + task.n)
        K = dense.kernel(kind_of(kernel), Z, Z, p)
        P_gain = K + cov if name == "SHGP" else K
        P_left = K if name == "MHGP" else K + cov
        N = noise_of(task, level)
        S = P_gain[rows, rows] + N
        G = P_gain[:, rows] @ np.linalg.inv(S)
        E = np.eye(len(Z))
        E[:, rows] -= G
        m = mean + p.offset
        r = task.y.numpy() - m[rows]
        evidence = -0.5 * (r @ np.linalg.inv(S) @ r + np.linalg.slogdet(S)[1] + task.n * np.log(2 * np.pi))
        mean, cov = m + G @ r, E @ P_left @ E.T + G @ N @ G.T
        start += task.n
    posterior = FAMILY[name].using(kernel=kernel).at(params, sources=sources, target=target)
    expect(posterior, Xq, mean, cov, evidence)


def joint_form(name: str, params: Any) -> tuple[list[dense.Level], Array, list[float], list[float]]:
    """Kernels, W, and the tasks' means and noise."""
    if isinstance(params, CoregionalParams):
        levels = [dense.Level(tuple(ell.tolist()), 1.0, 0.0) for ell in params.lengthscale]
        return levels, params.W.numpy(), params.mean.tolist(), params.noise_var.tolist()
    levels = [level_of(p) for p in params.levels]
    noise, offsets = [p.noise_var for p in levels], [p.offset for p in levels]
    if name == "HGP":
        return levels, dense.chain_W(len(levels)), np.cumsum(offsets).tolist(), noise
    return levels, dense.star_W(params.weights.tolist()), offsets, noise


@kernels
@pytest.mark.parametrize("name", ["HGP", "WSGP", "MTKGP", "MTGP"])
def test_joint_models_know_the_errors_of_all_tasks(name: str, kernel: Kernel) -> None:
    """Bayes' rule on Σ W_ν ∘ k_ν with the errors of all tasks on the diagonal; so is the evidence of all data."""
    sources, target, Xq = tasks()
    every = [*sources, target]
    params = params_for(name)
    levels, W, means, noise = joint_form(name, params)
    Z = np.concatenate([*(t.X.numpy() for t in every), Xq.numpy()])
    task = np.array([*np.repeat([0, 1, 2], [t.n for t in every]), *[2] * len(Xq)])
    prior: Array = sum(
        w[np.ix_(task, task)] * dense.kernel(kind_of(kernel), Z, Z, k) for w, k in zip(W, levels, strict=True)
    )
    N = sum(t.n for t in every)
    y, known = np.concatenate([t.y.numpy() for t in every]), np.concatenate([t.error_var for t in every])
    diagonal = np.diag(np.array(noise)[task[:N]] + known)
    mean, cov, evidence = bayes(np.array(means)[task], prior, y, diagonal)
    n_s = N - target.n
    _, _, of_sources = bayes(np.array(means)[task], prior, y[:n_s], diagonal[:n_s, :n_s])
    posterior = FAMILY[name].using(kernel=kernel).at(params, sources=sources, target=target)
    expect(posterior, Xq, mean, cov, evidence - of_sources)
    np.testing.assert_allclose(joint_log_evidence(posterior).item(), evidence, **TOLERANCE)


def star_prior(kernel: Kernel, sources: Sequence[Dataset], params: StarParams, Z: Array) -> tuple[Array, Array]:
    """Mean and covariance of the target at Z: every source conditioned on its own data, weighted and summed."""
    own = level_of(params.levels[-1])
    mean, cov = np.full(len(Z), own.offset), dense.kernel(kind_of(kernel), Z, Z, own)
    w, v, o = (t.numpy() for t in (params.weights, params.weight_var, params.own))
    c = params.balance.item()
    counts = (v > 0).astype(float)
    e = counts / np.sqrt(counts.sum()) if counts.any() else counts
    covariance_of_w = np.diag(np.sqrt(v)) @ (np.eye(len(v)) - c * np.outer(e, e)) @ np.diag(np.sqrt(v))
    shapes = []
    for i, source in enumerate(sources):
        p = level_of(params.levels[i])
        both = np.concatenate([source.X.numpy(), Z])
        K = dense.kernel(kind_of(kernel), both, both, p)
        m, S, _ = bayes(np.full(len(both), p.offset), K, source.y.numpy(), noise_of(source, params.levels[i]))
        n = source.n
        shapes.append(m[n:] - p.offset)
        mean = mean + w[i] * shapes[-1]
        cov = cov + (w[i] ** 2 + covariance_of_w[i, i]) * S[n:, n:] + o[i] * K[n:, n:]
    M = np.stack(shapes)
    return mean, cov + M.T @ covariance_of_w @ M


@kernels
@either
@pytest.mark.parametrize("name", ["STAR", "SCAML", "MWSGP", "kin"])
def test_stars_know_the_errors_of_sources_and_target(name: str, kernel: Kernel, batched: bool) -> None:
    """The target's prior from sources with errors, then Bayes' rule with its own."""
    sources, target, Xq = tasks(batched=batched)
    params = shifted(params_for("AUTO").candidates[0] if name == "kin" else params_for(name), batched=batched)
    model = FAMILY["STAR" if name == "kin" else name].using(kernel=kernel)
    Z = np.concatenate([target.X.numpy(), Xq.numpy()])
    prior = star_prior(kernel, sources, params, Z)
    posterior = model.at(params, sources=sources, target=target)
    expect(posterior, Xq, *bayes(*prior, target.y.numpy(), noise_of(target, params.levels[-1])))


@kernels
def test_rgpe_knows_the_errors_of_every_member(kernel: Kernel) -> None:
    """Each member is Bayes' rule in its own units, in which the variances are divided by the square of its scale."""
    sources, target, Xq = tasks()
    params = params_for("RGPE")
    mean, cov = np.zeros(len(Xq)), np.zeros((len(Xq), len(Xq)))
    for i, task in enumerate((*sources, target)):
        p, scale, offset = level_of(params.levels[i]), params.scales[i].item(), params.offsets[i].item()
        Z = np.concatenate([task.X.numpy(), Xq.numpy()])
        K = dense.kernel(kind_of(kernel), Z, Z, p)
        m, S, evidence = bayes(np.full(len(Z), p.offset), K, task.y.numpy(), noise_of(task, params.levels[i]))
        w = params.weights[i].item()
        mean = mean + w * (m[task.n :] - offset) / scale
        cov = cov + w**2 * S[task.n :, task.n :] / scale**2
    mean, cov = offset + scale * mean, scale**2 * cov  # as the target, the last of them, speaks
    posterior = FAMILY["RGPE"].using(kernel=kernel).at(params, sources=sources, target=target)
    expect(posterior, Xq, mean, cov, evidence)


@kernels
@either
def test_auto_is_the_mixture_of_candidates_that_know_the_errors(kernel: Kernel, batched: bool) -> None:
    """AUTO's mean and covariance are those of its candidates' dense posteriors together."""
    sources, target, Xq = tasks(batched=batched)
    params = shifted(params_for("AUTO"), batched=batched)
    star = FAMILY["STAR"].using(kernel=kernel)
    models = [star, star, star.using(pooled=True), FAMILY["GPBO"].using(kernel=kernel)]
    posterior = FAMILY["AUTO"].using(kernel=kernel).at(params, sources=sources, target=target)
    each = [
        model.at(own, sources=sources if model.needs_sources else (), target=target).posterior(Xq).distribution
        for model, own in zip(models, params.candidates, strict=True)
    ]
    w = params.weights
    mean = sum(w_k * one.mean for w_k, one in zip(w, each, strict=True))
    apart = [one.covariance_matrix + torch.outer(one.mean - mean, one.mean - mean) for one in each]
    joint = posterior.posterior(Xq).distribution
    torch.testing.assert_close(joint.mean, mean, **TOLERANCE)
    torch.testing.assert_close(
        joint.covariance_matrix, sum(w_k * a for w_k, a in zip(w, apart, strict=True)), **TOLERANCE
    )


@pytest.mark.parametrize(("n", "d"), [(2, 3), (15, 2)])
def test_gpbo_is_botorch_s_gp_with_fixed_noise(n: int, d: int) -> None:
    """SingleTaskGP with train_Yvar = noise_var + error_var gives the same evidence and posterior to 1e-8."""
    g = torch.Generator().manual_seed(n)
    X, Xq, y = (torch.rand(*s, generator=g, dtype=torch.float64) for s in ((n, d), (9, d), (n,)))
    p = params_for("GPBO", d=d).levels[0]
    target = knowing(Dataset(X, y), 3)
    assert target.error_var is not None
    base = MaternKernel(nu=2.5, ard_num_dims=d).double()
    base.lengthscale = p.lengthscale
    covar = ScaleKernel(base).double()
    covar.outputscale = p.outputscale
    mean = gpytorch.means.ConstantMean().double()
    mean.constant = p.offset
    theirs = SingleTaskGP(
        X,
        y.unsqueeze(-1),
        train_Yvar=(p.noise_var + target.error_var).unsqueeze(-1),
        covar_module=covar,
        mean_module=mean,
        outcome_transform=None,
    )
    ours = GPBO.at(ChainParams((p,)), target=target)
    both: Any
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        prior = theirs.train().likelihood(theirs(X))
        torch.testing.assert_close(ours.log_evidence, prior.log_prob(y), rtol=0, atol=1e-8)
        both = (ours.posterior(Xq), theirs.eval().posterior(Xq))
    a, b = (one.distribution for one in both)
    torch.testing.assert_close(a.mean, b.mean, rtol=0, atol=1e-8)
    torch.testing.assert_close(a.covariance_matrix, b.covariance_matrix, rtol=0, atol=1e-8)


@kernels
def test_leaving_one_out_knows_the_shifts(kernel: Kernel) -> None:
    """Every result predicted from the others, from those of its batch its shift as well: by Bayes' rule on all of y."""
    _, target, _ = tasks(batched=True)
    params = shifted(params_for("GPBO"), batched=True)
    layer = GPBO.using(kernel=kernel).at(params, target=target).predictor
    assert isinstance(layer, Layer)
    mean, var = layer.leave_one_out(target.y)
    p = level_of(params.levels[0])
    X, y = target.X.numpy(), target.y.numpy()
    K = dense.kernel(kind_of(kernel), X, X, p) + noise_of(target, params.levels[0])
    for i in range(target.n):
        order = [*(j for j in range(target.n) if j != i), i]
        m, v, _ = bayes(np.full(target.n, p.offset), K[np.ix_(order, order)], y[order[:-1]], 0.0 * K[1:, 1:])
        np.testing.assert_allclose((mean[i], var[i]), (m[-1], v[-1, -1]), **TOLERANCE)


@kernels
def test_leaving_one_out_knows_the_errors(kernel: Kernel) -> None:
    """Every result predicted from the others, each with its error, and with its own error: by leaving it out."""
    _, target, _ = tasks()
    assert target.error_var is not None
    params = params_for("GPBO")
    layer = GPBO.using(kernel=kernel).at(params, target=target).predictor
    assert isinstance(layer, Layer)
    mean, var = layer.leave_one_out(target.y)
    p = params.levels[0]
    for i in range(target.n):
        others = target.rows(torch.tensor([j for j in range(target.n) if j != i]))
        m, v = GPBO.using(kernel=kernel).at(params, target=others).predict(target.X[i : i + 1])
        torch.testing.assert_close(mean[i], m[0], **TOLERANCE)
        torch.testing.assert_close(var[i], v[0] + p.noise_var + target.error_var[i], **TOLERANCE)


# ── evidences at any θ, and their gradients ───────────────────────────────────────────────────────────────────────────


def patterns(n: int) -> tuple[Tensor, Array]:
    """D of n rows of every problem in batches, the present one of which has a row or two, and the same by NumPy."""
    batch = torch.arange(n).remainder(3).repeat(PROBLEMS, 1)
    task = Dataset(torch.zeros(PROBLEMS, n, 1, dtype=torch.float64), batch.double(), batch=batch, present=[1.0, 7.0])
    found = task.shift_pattern
    assert found is not None
    return found, np.stack([dense.shift_cov(batch[i].double().numpy(), now, 1.0) for i, now in enumerate((1.0, 7.0))])


@kernels
@either
@pytest.mark.parametrize("free_offset", [False, True], ids=["no offset", "free offset"])
@pytest.mark.parametrize("inherited", [False, True], ids=["alone", "with C"])
@pytest.mark.parametrize("n", [1, 6, 50])
def test_the_evidence_of_one_process(kernel: Kernel, free_offset: bool, inherited: bool, n: int, batched: bool) -> None:
    """−log N(r; r̄, k + C + diag(σ² + error_var) + batch_var D + OFFSET_VAR), and its gradient, compiled or not."""
    X, r, C = residuals(n, inherited=inherited)
    known, (D_, by_hand) = errors(PROBLEMS, n, seed=4), patterns(n)
    shifts = D_ if batched else None
    evidence = GaussianEvidence(
        X, r, C, kernel=kernel, residual=False, free_offset=free_offset, error_var=known, shifts=shifts
    )
    if n < 50:
        assert_gradient(evidence)
    theta, items = thetas(evidence, rows=1)
    value, gradient, _ = evidence.evaluate(theta, items)
    torch.testing.assert_close((value, gradient), evidence.evaluate_by_torch(theta, items)[:2], rtol=1e-9, atol=1e-9)
    for i in range(PROBLEMS):
        ell, (s2, sigma2, *tau2) = theta[i, :D].exp(), theta[i, D:].exp().tolist()
        K = dense.kernel(kind_of(kernel), X[i].numpy(), X[i].numpy(), dense.Level(tuple(ell.tolist()), s2, 0.0))
        K = K + np.diag(sigma2 + known[i].numpy()) + (0.0 if C is None else C[i].numpy())
        K = K + sum(tau2) * by_hand[i]
        K = K + OFFSET_VAR * free_offset
        centre = r[i].mean().item() if free_offset else 0.0
        expected = -dense.Gaussian(np.full(n, centre), K).log_density(r[i].numpy())
        np.testing.assert_allclose(value[i].item(), expected, rtol=1e-9, atol=1e-9)


def known_tasks(sizes: tuple[int, ...]) -> list[Dataset]:
    """The second task has no errors that are known."""
    found = []
    for i, n in enumerate(sizes):
        X, y = draw(PROBLEMS, n, D, seed=10 * i).sigmoid(), i + draw(PROBLEMS, n, seed=10 * i + 1)
        found.append(Dataset(X, y, error_var=None if i == 1 else errors(PROBLEMS, n, seed=i)))
    return found


@kernels
@pytest.mark.parametrize("sizes", [(5, 2, 3), (1, 4, 2, 1), (3, 2, 0), (6, 4)], ids=str)
@pytest.mark.parametrize("coregion", [*COREGIONS, None], ids=lambda c: "arrow" if c is None else type(c).__name__)
def test_the_evidence_of_all_tasks(sizes: tuple[int, ...], kernel: Kernel, coregion: Coregion | None) -> None:
    """Dense and in arrow form: −log N(y; 0, Σ W ∘ k + diag(σ_i² + error_var)), with the gradient of that."""
    every = known_tasks(sizes)
    evidence: JointEvidence
    if coregion is None:
        coregion = WeightedSource()
        evidence = ArrowEvidence(every, kernel=kernel, free_offset=False)
    else:
        evidence = DenseEvidence(every, coregion=coregion, kernel=kernel, free_offset=False)
    assert_gradient(evidence)
    theta, items = thetas(evidence, rows=1)
    value, _, _ = evidence.evaluate(theta, items)
    ell, values, noise_var = evidence.named(theta)
    W = coregion.W(values, len(sizes)).numpy()
    task = np.repeat(np.arange(len(sizes)), sizes)
    for i in range(PROBLEMS):
        Z, y = (np.concatenate([getattr(t, what)[i].numpy() for t in every]) for what in ("X", "y"))
        known = np.concatenate([np.zeros(t.n) if t.error_var is None else t.error_var[i].numpy() for t in every])
        K = np.diag(noise_var[i].numpy()[task] + known)
        for nu in range(W.shape[1]):
            kappa = dense.kernel(kind_of(kernel), Z, Z, dense.Level(tuple(ell[i, nu].tolist()), 1.0, 0.0))
            K = K + W[i, nu][np.ix_(task, task)] * kappa
        expected = -dense.Gaussian(np.zeros(len(y)), K).log_density(y)
        np.testing.assert_allclose(value[i].item(), expected, rtol=1e-9, atol=1e-9)


@kernels
@either
@pytest.mark.parametrize("n", [1, 5])
def test_the_evidence_of_a_star(kernel: Kernel, n: int, batched: bool) -> None:
    """−log N(y; a m, c C + k + diag(σ² + error_var) + batch_var D + OFFSET_VAR), all centred, and its gradient."""
    X, y, C = residuals(n, inherited=True)
    assert C is not None
    m, known = draw(PROBLEMS, n, seed=8), errors(PROBLEMS, n, seed=4)
    terms = WeightedTerms(m.unsqueeze(1), C.unsqueeze(1), Integrated(amplitude=0.7).coefficients)
    D_, by_hand = patterns(n)
    shifts = D_ if batched else None
    evidence = GaussianEvidence(
        X, y, kernel=kernel, residual=True, free_offset=True, terms=terms, error_var=known, shifts=shifts
    )
    assert_gradient(evidence)
    theta, items = thetas(evidence, rows=1)
    value, gradient, _ = evidence.evaluate(theta, items)
    torch.testing.assert_close((value, gradient), evidence.evaluate_by_torch(theta, items)[:2], rtol=1e-9, atol=1e-9)
    for i in range(PROBLEMS):
        ell, (s2, sigma2, rho, *tau2) = theta[i, :D].exp(), theta[i, D:].exp().tolist()
        K = dense.kernel(kind_of(kernel), X[i].numpy(), X[i].numpy(), dense.Level(tuple(ell.tolist()), s2, 0.0))
        K = K + rho**2 * C[i].numpy() + np.diag(sigma2 + known[i].numpy()) + OFFSET_VAR + sum(tau2) * by_hand[i]
        mean = y[i].mean() + rho * (m[i] - m[i].mean())
        expected = -dense.Gaussian(mean.numpy(), K).log_density(y[i].numpy())
        np.testing.assert_allclose(value[i].item(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighting", [FittedWeights(), FittedWeights(modular=True)], ids=["SCAML", "MWSGP"])
def test_fitted_weights_have_an_evidence_that_knows_the_errors(weighting: FittedWeights) -> None:
    """The evidence of a target with errors is, at every θ, the star's dense log p(y) at the weights of that θ."""
    sources, target, _ = tasks()
    params = params_for("SCAML")
    posterior = FAMILY["SCAML"].at(params, sources=sources, target=target)
    members = posterior.predictor.below.members  # type: ignore[union-attr]
    spread = torch.ones(2, dtype=torch.float64)
    terms = weighting.terms(members, SourceFacts(spread, spread), sources_at(members, target.X), target.batch_shape)
    evidence = star_evidence(target, Kernel.MATERN52, terms)
    theta = evidence.layout.centre() + 0.3 * draw(1, evidence.layout.size, seed=5)
    value, _, _ = evidence.evaluate(theta, torch.zeros(1, dtype=torch.int64))
    own, omega = theta[0, :4].exp(), theta[0, 4:].exp()
    w = weighting.weights(omega, SourceFacts(spread, spread))
    target_level = GPParams(own[:2], own[2], own[3], torch.zeros((), dtype=torch.float64))
    star = star_params((*params.levels[:2], target_level), w.mean, w.var, w.own)
    mean, cov = star_prior(Kernel.MATERN52, sources, star, target.X.numpy())
    r, mean = target.y.numpy() - target.y.numpy().mean(), mean - mean.mean()
    K = cov + noise_of(target, target_level) + OFFSET_VAR
    np.testing.assert_allclose(value.item(), -dense.Gaussian(mean, K).log_density(r), rtol=1e-9, atol=1e-9)
