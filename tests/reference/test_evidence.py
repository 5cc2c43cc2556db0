"""Every evidence against the dense formula, and its gradient against central differences."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from tests.cases import with_slow
from tests.reference import dense
from tests.reference.dense import Gaussian, Joint, Kind, Level, Task
from torch import Tensor

from headstart import Dataset, Kernel
from headstart.gp.evidence import Evidence, GaussianEvidence
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.joint.coregion import Coregion, Free, Hierarchical, SharedKernel, WeightedSource
from headstart.models.joint.joint import ArrowEvidence, DenseEvidence, JointEvidence

PROBLEMS, D = 2, 2
COREGIONS: list[Coregion] = [Hierarchical(), WeightedSource(), SharedKernel(), Free()]
# of unequal size, with single points, without a target
SIZES = [(4, 3), (5, 2, 3), (1, 4, 2, 1), (3, 2, 0), (6, 0)]


def _named(value: Any) -> str:
    return type(value).__name__ if isinstance(value, Coregion) else str(value)


joint_cases = pytest.mark.parametrize("sizes", SIZES, ids=str)
kernels = pytest.mark.parametrize("kernel", Kernel)
offsets = pytest.mark.parametrize("free_offset", [False, True], ids=["no offset", "free offset"])


def kind_of(kernel: Kernel) -> Kind:
    return "rbf" if kernel is Kernel.RBF else "matern52"


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def residuals(n: int, *, inherited: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Inputs, what is to be explained there, and the covariance of it that comes from below."""
    F = draw(PROBLEMS, n, n, seed=3)
    return draw(PROBLEMS, n, D, seed=1).sigmoid(), 1 + draw(PROBLEMS, n, seed=2), 0.1 * F @ F.mT if inherited else None


def plain(kernel: Kernel, *, n: int, free_offset: bool, inherited: bool) -> GaussianEvidence:
    X, r, C = residuals(n, inherited=inherited)
    return GaussianEvidence(X, r, C, kernel=kernel, residual=inherited, free_offset=free_offset)


def tasks_of(sizes: tuple[int, ...]) -> list[Dataset]:
    return [
        Dataset(draw(PROBLEMS, n, D, seed=10 * i).sigmoid(), i + draw(PROBLEMS, n, seed=10 * i + 1))
        for i, n in enumerate(sizes)
    ]


def thetas(evidence: Evidence, rows: int = 3) -> tuple[Tensor, Tensor]:
    """Points around the prior's median, and which problem each belongs to."""
    theta = evidence.layout.centre() + 0.4 * draw(PROBLEMS * rows, evidence.layout.size, seed=5)
    return theta, torch.arange(PROBLEMS).repeat(rows)


def assert_gradient(evidence: Evidence) -> None:
    """Against central differences of fourth order, (8 (f₁ − f₋₁) − (f₂ − f₋₂)) / 12 h."""
    theta, items = thetas(evidence)
    _, gradient, ok = evidence.evaluate(theta, items)
    h = 1e-3
    numeric = torch.empty_like(gradient)
    for j, direction in enumerate(torch.eye(theta.shape[-1], dtype=torch.float64)):
        f = {k: evidence.evaluate(theta + k * h * direction, items)[0] for k in (-2, -1, 1, 2)}
        numeric[:, j] = (8 * (f[1] - f[-1]) - (f[2] - f[-2])) / (12 * h)
    assert bool(ok.all())
    torch.testing.assert_close(gradient, numeric, rtol=1e-5, atol=1e-7)


@kernels
@offsets
@pytest.mark.parametrize("inherited", [False, True], ids=["alone", "with C"])
@pytest.mark.parametrize("n", [1, 6])
def test_the_gradient_of_one_process(kernel: Kernel, free_offset: bool, inherited: bool, n: int) -> None:
    """GaussianEvidence's gradient is that of its value, with and without an inherited covariance and a free offset."""
    assert_gradient(plain(kernel, n=n, free_offset=free_offset, inherited=inherited))


@pytest.mark.parametrize(
    ("sizes", "coregion", "kernel", "free_offset"),
    # sizes and W in all pairs; kernel and offset in turn
    with_slow(
        product(SIZES, COREGIONS, Kernel, (False, True)),
        quick=[
            (sizes, coregion, list(Kernel)[(i + j) % 2], j // 2 == i % 2)
            for i, sizes in enumerate(SIZES)
            for j, coregion in enumerate(COREGIONS)
        ],
    ),
    ids=_named,
)
def test_the_gradient_of_a_joint_process(
    sizes: tuple[int, ...], kernel: Kernel, free_offset: bool, coregion: Coregion
) -> None:
    """DenseEvidence's gradient is that of its value, for every choice of W."""
    assert_gradient(DenseEvidence(tasks_of(sizes), coregion=coregion, kernel=kernel, free_offset=free_offset))


@joint_cases
@kernels
@offsets
def test_the_gradient_of_the_arrow(sizes: tuple[int, ...], kernel: Kernel, free_offset: bool) -> None:
    """ArrowEvidence's gradient is that of its value, with sources of different sizes and with an empty target."""
    assert_gradient(ArrowEvidence(tasks_of(sizes), kernel=kernel, free_offset=free_offset))


@joint_cases
@kernels
@offsets
def test_the_arrow_is_the_dense_evidence_of_wsgp(sizes: tuple[int, ...], kernel: Kernel, free_offset: bool) -> None:
    """Leaving out the zeros changes neither the value nor the gradient (1e-9), nor the hyperparameters read back."""
    tasks = tasks_of(sizes)
    arrow = ArrowEvidence(tasks, kernel=kernel, free_offset=free_offset)
    full = DenseEvidence(tasks, coregion=WeightedSource(), kernel=kernel, free_offset=free_offset)
    theta, items = thetas(arrow)
    for a, b in zip(arrow.evaluate(theta, items), full.evaluate(theta, items), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    ours, theirs = (
        WeightedSource().coregional(e.params(theta[:PROBLEMS], torch.Size([PROBLEMS])), e.T) for e in (arrow, full)
    )
    torch.testing.assert_close(ours.mean, theirs.mean, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.W, theirs.W, rtol=1e-12, atol=0)


@kernels
@offsets
@pytest.mark.parametrize("inherited", [False, True], ids=["alone", "with C"])
@pytest.mark.parametrize("n", [1, 6])
def test_one_process_is_the_dense_formula(kernel: Kernel, free_offset: bool, inherited: bool, n: int) -> None:
    """The value is −log N(r; r̄, k + C + σ² I + OFFSET_VAR); a free offset is read back as its posterior mean."""
    evidence = plain(kernel, n=n, free_offset=free_offset, inherited=inherited)
    theta, items = thetas(evidence, rows=1)
    value, _, _ = evidence.evaluate(theta, items)
    params = evidence.params(theta)
    X, r, C = residuals(n, inherited=inherited)
    for i in range(PROBLEMS):
        level = Level(tuple(params.lengthscale[i].tolist()), params.outputscale[i].item(), params.noise_var[i].item())
        K = dense.kernel(kind_of(kernel), X[i].numpy(), X[i].numpy(), level) + level.noise_var * np.eye(n)
        K = K if C is None else K + C[i].numpy()
        y = r[i].numpy()
        centre, variance = (float(y.mean()), OFFSET_VAR) if free_offset else (0.0, 0.0)
        # [y, offset]: the offset is common to all observations
        cov = np.block([[K + variance, np.full((n, 1), variance)], [np.full((1, n), variance), np.array([[variance]])]])
        prior = Gaussian(np.full(n + 1, centre), cov)
        assert -value[i].item() == pytest.approx(prior[slice(0, n)].log_density(y), abs=1e-9)
        offset = dense.condition(prior, slice(0, n), y, 0.0).mean[-1]
        assert params.offset[i].item() == pytest.approx(offset, abs=1e-9)


@joint_cases
@kernels
@offsets
@pytest.mark.parametrize("coregion", COREGIONS, ids=lambda c: type(c).__name__)
def test_a_joint_process_is_the_dense_formula(
    sizes: tuple[int, ...], kernel: Kernel, free_offset: bool, coregion: Coregion
) -> None:
    """The value is that of Σ_ν W_ν ∘ k_ν, plus OFFSET_VAR within every task whose free mean it integrates out."""
    tasks = tasks_of(sizes)
    evidence: JointEvidence = DenseEvidence(tasks, coregion=coregion, kernel=kernel, free_offset=free_offset)
    theta, items = thetas(evidence, rows=1)
    value, _, _ = evidence.evaluate(theta, items)
    T = len(sizes)
    params = coregion.coregional(evidence.params(theta, torch.Size([PROBLEMS])), T)
    for i in range(PROBLEMS):
        data = [Task(task.X[i].numpy(), task.y[i].numpy()) for task in tasks]
        centres = [float(task.y.mean()) if free_offset and len(task.y) else 0.0 for task in data]
        kernels_ = [Level(tuple(ell.tolist()), 1.0, 0.0) for ell in params.lengthscale[i]]
        joint = Joint(kind_of(kernel), data, kernels_, params.W[i].numpy(), centres, params.noise_var[i].tolist())
        prior = joint.prior(data[0].X[:0])
        member = np.repeat(np.eye(T), sizes, axis=0)  # observation × task
        variance = OFFSET_VAR if free_offset else 0.0
        cov = np.block(
            [[prior.cov + variance * member @ member.T, variance * member], [variance * member.T, variance * np.eye(T)]]
        )
        extended = Gaussian(np.concatenate([prior.mean, centres]), cov)
        N = len(joint.y)
        assert -value[i].item() == pytest.approx(extended[slice(0, N)].log_density(joint.y), abs=1e-8)
        means = dense.condition(extended, slice(0, N), joint.y, 0.0).mean[N:]
        seen = [t for t in range(T) if sizes[t]]
        np.testing.assert_allclose(params.mean[i].numpy()[seen], means[seen], rtol=0, atol=1e-8)


@kernels
@pytest.mark.parametrize("coregion", COREGIONS, ids=lambda c: type(c).__name__)
def test_a_target_without_data_is_expected_where_the_sources_are(kernel: Kernel, coregion: Coregion) -> None:
    """Its mean is that of the task before it in a hierarchy, and the average of the sources' elsewhere."""
    evidence = DenseEvidence(tasks_of((4, 3, 0)), coregion=coregion, kernel=kernel, free_offset=True)
    theta, _ = thetas(evidence, rows=1)
    mean = coregion.coregional(evidence.params(theta, torch.Size([PROBLEMS])), 3).mean
    expected = mean[:, 1] if isinstance(coregion, Hierarchical) else mean[:, :2].mean(-1)
    torch.testing.assert_close(mean[:, 2], expected)
