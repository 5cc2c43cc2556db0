"""Rows at one place as their mean: posterior and evidence are those of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from headstart.data.dataset import Dataset
from headstart.data.replicates import NEAR, pooled_rows
from headstart.gp.evidence import GaussianEvidence, RowCounts
from headstart.gp.hyperparameters import GPParams, Inputs
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer, Propagation

KERNEL = Kernel.MATERN52


def repeated(*, errors: bool, seed: int = 0) -> Dataset:
    """40 rows at 15 places, some of them alone, with results that scatter."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(15, 3, generator=generator, dtype=torch.float64)
    which = torch.cat([torch.arange(15), torch.randint(10, (25,), generator=generator)])
    which = which[torch.randperm(40, generator=generator)]
    y = torch.sin(5 * places[which]).sum(-1) + 0.3 * torch.randn(40, generator=generator, dtype=torch.float64)
    by_place = torch.rand(15, generator=generator, dtype=torch.float64)
    return Dataset(places[which], y, error_var=by_place[which] if errors else None)


def evidences(task: Dataset, C: torch.Tensor | None = None) -> tuple[GaussianEvidence, GaussianEvidence]:
    pooled = pooled_rows(task)
    assert pooled is not None
    options: dict[str, Any] = {"kernel": KERNEL, "residual": False, "free_offset": True, "inputs": Inputs.of(task.d)}
    own = None if task.error_var is None else task.error_var[None]
    plain = GaussianEvidence(task.X[None], task.y[None], C, error_var=own, **options)
    data = pooled.data
    means = GaussianEvidence(
        data.X[None],
        data.y[None],
        None,
        replicates=RowCounts(pooled.counts[None], pooled.scatter[None]),
        error_var=None if data.error_var is None else data.error_var[None],
        **options,
    )
    return plain, means


@pytest.mark.parametrize("errors", [False, True])
def test_the_evidence_of_the_means_is_that_of_all_rows(errors: bool) -> None:
    """Value and gradient, the noise's share of the scatter included, agree with the dense formula."""
    plain, means = evidences(repeated(errors=errors))
    generator = torch.Generator().manual_seed(1)
    theta = torch.randn(6, 5, generator=generator, dtype=torch.float64) - 1.0
    items = torch.zeros(6, dtype=torch.int64)
    expected = plain.evaluate_by_torch(theta, items)
    compiled, torchs = means.evaluate(theta, items), means.evaluate_by_torch(theta, items)
    for mine, dense in zip((*compiled, *torchs), (*expected, *expected), strict=True):
        assert torch.allclose(mine.double(), dense.double(), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("errors", [False, True])
def test_the_posterior_of_the_means_is_that_of_all_rows(errors: bool) -> None:
    """Means with the noise v/c say what all rows say."""
    task = repeated(errors=errors)
    pooled = pooled_rows(task)
    assert pooled is not None
    params = GPParams.of(lengthscale=[0.4, 0.5, 0.6], outputscale=1.3, noise_var=0.2, offset=0.1)
    options: dict[str, Any] = {"kernel": KERNEL, "propagation": Propagation.EXACT}
    dense = Layer.observe(NoBeliefs(torch.Size()), params, task, **options)
    nothing = Layer.observe(NoBeliefs(torch.Size()), params, task.head(0), **options)
    mine = nothing.observing(pooled.data.X, pooled.data.y, noise_var=pooled.noise(params.noise_var))
    X = torch.rand(20, 3, dtype=torch.float64)
    for a, b in zip(mine.predict(X), dense.predict(X), strict=True):
        assert torch.allclose(a, b, atol=1e-10)


def test_rows_that_differ_by_rounding_are_one_place_and_others_are_not() -> None:
    """Inputs are compared to a millionth; a row of its own stays what it is."""
    X = torch.tensor([[0.5, 0.5], [0.25, 0.5], [0.5 + 0.1 * NEAR, 0.5], [0.5, 0.5 + 20 * NEAR]], dtype=torch.float64)
    pooled = pooled_rows(Dataset(X, torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64)))
    assert pooled is not None
    assert pooled.data.y.tolist() == [2.5, 2.0, 8.0]
    assert pooled.counts.tolist() == [2.0, 1.0, 1.0]
    assert pooled.scatter.tolist() == [4.5, 0.0, 0.0]


def test_rows_with_different_known_errors_are_not_pooled() -> None:
    """The noise of a mean would depend on σ² in another way."""
    X, y = torch.full((3, 2), 0.5, dtype=torch.float64), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    pooled = pooled_rows(Dataset(X, y, error_var=torch.tensor([0.1, 0.2, 0.1], dtype=torch.float64)))
    assert pooled is not None
    assert pooled.data.y.tolist() == [2.0, 2.0]


def test_nothing_is_pooled_where_every_row_is_alone_and_in_a_batch() -> None:
    """Batches have places of their own each."""
    task = repeated(errors=False)
    assert pooled_rows(replace(task, X=torch.rand_like(task.X))) is None
    assert pooled_rows(Dataset(task.X.expand(2, -1, -1), task.y.expand(2, -1))) is None


def test_digits_far_from_zero_are_kept() -> None:
    """A mean of results around 10⁸ has the digits that they have."""
    X = torch.zeros(3, 1, dtype=torch.float64)
    pooled = pooled_rows(Dataset(X, 1e8 + torch.tensor([1e-6, 2e-6, 3e-6], dtype=torch.float64)))
    assert pooled is not None
    assert abs(float(pooled.data.y[0]) - 1e8 - 2e-6) < 2e-8


@pytest.mark.parametrize("errors", [False, True])
def test_rows_of_a_place_and_a_batch_are_pooled(errors: bool) -> None:
    """With shifts of batches evidence and posterior of the means are those of all rows, too."""
    task = repeated(errors=errors)
    batch, known = torch.arange(task.n).remainder(3), task.error_var
    known = None if known is None else known.repeat(2)
    task = Dataset(task.X.repeat(2, 1), torch.cat([task.y, task.y + 0.1]), error_var=known, batch=batch.repeat(2))
    found = pooled_rows(task)
    assert found is not None
    data = found.data
    assert data.n < task.n
    assert data.batch is not None
    options: dict[str, Any] = {"kernel": KERNEL, "residual": False, "free_offset": True}
    rows, means = (
        GaussianEvidence(
            one.X[None],
            one.y[None],
            error_var=None if one.error_var is None else one.error_var[None],
            replicates=counts,
            shifts=one.shift_pattern[None],  # type: ignore[index]
            **options,
        )
        for one, counts in ((task, None), (data, RowCounts(found.counts[None], found.scatter[None])))
    )
    theta = rows.layout.centre().repeat(5, 1) + 0.3 * torch.randn(5, rows.layout.size, dtype=torch.float64)
    items = torch.zeros(5, dtype=torch.int64)
    torch.testing.assert_close(means.evaluate(theta, items), rows.evaluate(theta, items), rtol=1e-8, atol=1e-8)
