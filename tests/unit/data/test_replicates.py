"""Rows with equal inputs as one row with an error: nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.problems import gp_params, params_for, points, tensor, transfer_problem
from tests.reference import dense

from headstart import GPBO, SHGP, ChainParams, Dataset, GPParams, InputError, Kernel
from headstart.data.replicates import pool_replicates
from headstart.tuning import PLAIN_TUNING

FREEDOM = PLAIN_TUNING.replicate_freedom
SIZES = [3, 1, 2, 5]
WITHIN = 0.03


def repeated(seed: int = 0) -> Dataset:
    """Four points measured three times, once, twice and five times, in no order."""
    g = torch.Generator().manual_seed(seed)
    X = points(4, seed=seed + 1).repeat_interleave(torch.tensor(SIZES), dim=0)
    y = X.sum(-1) + WITHIN**0.5 * torch.randn(len(X), generator=g, dtype=torch.float64)
    order = torch.randperm(len(X), generator=g)
    return Dataset(X[order], y[order], "yield", categories=[(0, 1)])


def without_noise(params: GPParams) -> GPParams:
    return GPParams(params.lengthscale, params.outputscale, torch.zeros_like(params.noise_var), params.offset)


def test_groups_are_rows_with_equal_inputs_in_the_order_they_came() -> None:
    """Every row is in one group; −0 is 0; names and categories stay."""
    data = Dataset([[0.0, 1.0], [0.5, 0.5], [-0.0, 1.0]], [1.0, 5.0, 2.0], "yield", categories=[(0, 1)])
    pooled, groups = pool_replicates(data)
    assert groups == ((0, 2), (1,))
    assert pooled.y.tolist() == [1.5, 5.0]
    assert pooled.X.tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert (pooled.name, pooled.categories) == ("yield", ((0, 1),))


def test_the_scatter_is_that_of_all_groups_and_a_group_of_many_has_a_say_of_its_own() -> None:
    """s² = Σ (y − mean)²/Σ (n − 1); a group has (FREEDOM s² + its squares)/(FREEDOM + n − 1), divided by n."""
    data = repeated()
    pooled, groups = pool_replicates(data)
    squares = [np.sum((data.y[list(g)].numpy() - data.y[list(g)].numpy().mean()) ** 2) for g in groups]
    sizes = np.array([len(g) for g in groups])
    s2 = sum(squares) / (sizes - 1).sum()
    assert pooled.error_var is not None
    own = (FREEDOM * s2 + np.array(squares)) / (FREEDOM + sizes - 1)
    np.testing.assert_allclose(pooled.error_var, own / sizes, rtol=1e-12)
    single = list(sizes).index(1)
    assert pooled.error_var[single].item() == pytest.approx(s2, rel=1e-12)


@pytest.mark.parametrize("known", ["within", "each"])
def test_pooled_rows_say_what_all_rows_say(known: str) -> None:
    """With a known scatter differences of the log evidence, and the posterior, are those of all rows (1e-10)."""
    data = repeated()
    var = torch.full_like(data.y, WITHIN)
    if known == "each":
        var = WITHIN * torch.linspace(0.1, 3.0, data.n, dtype=torch.float64)
    every = Dataset(data.X, data.y, error_var=var)
    pooled, _ = pool_replicates(every)
    Xq, apart = points(6, seed=9), []
    for seed in range(3):
        params = ChainParams((without_noise(gp_params(2, seed=seed)),))
        a, b = GPBO.at(params, target=every), GPBO.at(params, target=pooled)
        for ours, theirs in zip(a.predict(Xq), b.predict(Xq), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
        apart.append((a.log_evidence - b.log_evidence).item())
    assert apart == pytest.approx([apart[0]] * 3, abs=1e-9)


def test_the_common_noise_is_what_repeating_does_not_average_out() -> None:
    """Pooled rows with noise_var are all rows with one error of that variance per point and a scatter on each."""
    data = repeated()
    pooled, groups = pool_replicates(Dataset(data.X, data.y, error_var=torch.full_like(data.y, WITHIN)))
    p = gp_params(2, seed=4)
    level = dense.Level(tuple(p.lengthscale.tolist()), p.outputscale.item(), 0.0)
    Xq = points(6, seed=9)
    group = np.empty(data.n, dtype=int)
    for i, rows in enumerate(groups):
        group[list(rows)] = i
    Z = np.concatenate([data.X.numpy(), Xq.numpy()])
    K = dense.kernel("rbf", Z, Z, level)
    n = data.n
    noise = p.noise_var.item() * (group[:, None] == group[None, :]) + WITHIN * np.eye(n)
    G = K[n:, :n] @ np.linalg.inv(K[:n, :n] + noise)
    mean = p.offset.item() + G @ (data.y.numpy() - p.offset.item())
    ours = GPBO.using(kernel=Kernel.RBF).at(ChainParams((p,)), target=pooled).posterior(Xq).distribution
    np.testing.assert_allclose(ours.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(ours.covariance_matrix, K[n:, n:] - G @ K[:n, n:], rtol=0, atol=1e-10)


def test_a_source_may_be_pooled_as_well() -> None:
    """SHGP on pooled sources predicts the target as on all of their rows."""
    data, problem = repeated(), transfer_problem(sizes=(5,))
    params = params_for("SHGP", n_sources=1)
    params = ChainParams((without_noise(params.levels[0]), params.levels[1]))
    every = Dataset(data.X, data.y, error_var=torch.full_like(data.y, WITHIN))
    pooled, _ = pool_replicates(every)
    a, b = (SHGP.at(params, sources=[s], target=problem.target).predict(problem.Xq) for s in (every, pooled))
    for ours, theirs in zip(a, b, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def copied(*, scattered: bool) -> Dataset:
    X = tensor([[0.1], [0.1], [0.1], [0.7], [0.7], [0.4]])
    return Dataset(X, tensor([2.0, 2.0, 2.0, 5.0, 5.2 if scattered else 5.0, 1.0]))


def test_equal_results_are_replicates() -> None:
    """Equal results count as a scatter of 0 among the others, which leaves an error above 0."""
    pooled, _ = pool_replicates(copied(scattered=True))
    assert pooled.error_var is not None
    assert pooled.error_var[0].item() == pytest.approx(FREEDOM * 0.02 / 3 / (FREEDOM + 2) / 3)
    assert bool((pooled.error_var > 0).all())


def test_without_any_scatter_nothing_is_claimed() -> None:
    """Nothing but equal results and single rows: no errors are known."""
    pooled, _ = pool_replicates(copied(scattered=False))
    assert pooled.error_var is None
    assert pooled.y.tolist() == [2.0, 5.0, 1.0]


def test_known_errors_weigh_by_their_precision() -> None:
    """The mean of a group has the variance 1/Σ 1/e; a row of its own stays what it is."""
    data = copied(scattered=True)
    pooled, _ = pool_replicates(Dataset(data.X, data.y, error_var=tensor([0.4, 0.4, 0.2, 0.1, 0.3, 0.3])))
    assert pooled.error_var is not None
    assert pooled.error_var.tolist() == pytest.approx([0.1, 0.075, 0.3])
    assert pooled.y.tolist() == pytest.approx([2.0, 5.05, 1.0])


def test_no_rows_are_no_groups() -> None:
    """An empty task stays empty."""
    pooled, groups = pool_replicates(Dataset.empty(2))
    assert (groups, pooled.n, pooled.error_var) == ((), 0, None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Dataset([[[0.1], [0.1]]], [[1.0, 2.0]]), "one task"),
        (Dataset([[0.1], [0.1]], [1.0, 2.0], error_var=[0.1, 0.0]), "Row 1 is a replicate of row 0"),
    ],
)
def test_what_cannot_be_pooled_is_refused(data: Dataset, message: str) -> None:
    """A batch, and an unknown error among known ones."""
    with pytest.raises(InputError, match=message):
        pool_replicates(data)


def test_rows_of_different_batches_are_no_replicates() -> None:
    """They differ by the shift between their batches, which repeating within one does not average out."""
    X = torch.zeros(6, 2, dtype=torch.float64)
    y = torch.tensor([0.0, 0.2, 5.0, 5.2, 0.1, 5.1], dtype=torch.float64)
    pooled, groups = pool_replicates(Dataset(X, y, batch=[1, 1, 2, 2, 1, 2]))
    assert groups == ((0, 1, 4), (2, 3, 5))
    assert pooled.batch is not None
    assert pooled.present is not None
    assert (pooled.batch.tolist(), pooled.present.item()) == ([1.0, 2.0], 2.0)
    torch.testing.assert_close(pooled.y, torch.tensor([0.1, 5.1], dtype=torch.float64))
    assert pooled.error_var is not None
    assert float(pooled.error_var.max()) < 0.02
