"""A task of many rows as a layer: exactly, or through inducing points."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headstart.data.dataset import Dataset
from headstart.data.thinning import inducing_rows
from headstart.data.units import OutputMap, OutputUnits, Units
from headstart.gp.fit import FitOptions
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams
from headstart.gp.kernels import Kernel
from headstart.models.chain import condensed as module
from headstart.models.chain import fitting
from headstart.models.chain.beliefs import Beliefs, NoBeliefs
from headstart.models.chain.condensed import LevelSpec, condensed, exact_rows, learnt_through, source_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.family import STAR
from headstart.models.learning import LearnContext
from headstart.models.star import independent
from headstart.tuning import PLAIN_TUNING

PARAMS = GPParams.of(lengthscale=[0.5, 0.6, 0.7], outputscale=1.4, noise_var=0.05, offset=0.2)
TOP = GPParams.of(lengthscale=[0.8, 0.6, 0.5], outputscale=0.3, noise_var=0.02, offset=-0.1)
X_NEW = torch.rand(40, 3, generator=torch.Generator().manual_seed(9), dtype=torch.float64)


def with_tuning(monkeypatch: pytest.MonkeyPatch, **numbers: int) -> None:
    """Other numbers of rows, for all that is learnt from sources."""
    for place in (module, fitting, independent):
        monkeypatch.setattr(place, "PLAIN_TUNING", replace(PLAIN_TUNING, **numbers))


def task_of(n: int, *, seed: int = 0, errors: bool = False) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    y = torch.sin(6 * X).sum(-1) + 0.2 * torch.randn(n, generator=generator, dtype=torch.float64)
    known = 0.3 * torch.rand(n, generator=generator, dtype=torch.float64) if errors else None
    return Dataset(X, y, error_var=known)


def spec(propagation: Propagation = Propagation.EXACT) -> LevelSpec:
    return LevelSpec(Kernel.MATERN52, FitOptions(), OutputUnits.SHARED, propagation, source=True)


def dense(below: Beliefs, params: GPParams, task: Dataset, kernel: Kernel, propagation: Propagation) -> Layer:
    return Layer.observe(below, params, task, kernel=kernel, propagation=propagation)


def noise_of(params: GPParams, task: Dataset) -> torch.Tensor:
    own = params.noise_var.expand(task.n)
    return own if task.error_var is None else own + task.error_var


def empty_of(layer: Layer) -> Layer:
    return layer.with_observations(Dataset.empty(layer.X.shape[-1]))


@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("propagation", [Propagation.EXACT, Propagation.MEAN])
def test_with_every_row_an_inducing_point_the_posterior_is_exact(kernel: Kernel, propagation: Propagation) -> None:
    """On nothing, and on top of another task, whatever is inherited."""
    first, second = task_of(60), task_of(50, seed=1, errors=True)
    below: Beliefs = NoBeliefs(torch.Size())
    for params, task in ((PARAMS, first), (TOP, second)):
        exact = dense(below, params, task, kernel, propagation)
        mine = condensed(empty_of(exact), task, noise_of(params, task), torch.arange(task.n))
        for a, b in zip(mine.predict(X_NEW), exact.predict(X_NEW), strict=True):
            assert torch.allclose(a, b, atol=2e-6)
        on_it = dense(mine.as_beliefs(), TOP, task_of(10, seed=2), kernel, propagation)
        as_was = dense(exact.as_beliefs(), TOP, task_of(10, seed=2), kernel, propagation)
        for a, b in zip(on_it.predict(X_NEW), as_was.predict(X_NEW), strict=True):
            assert torch.allclose(a, b, atol=2e-6)
        below = exact.as_beliefs()


@pytest.mark.parametrize("free", [False, True])
def test_the_closed_form_is_the_dense_one(free: bool) -> None:
    """FITC: the posterior of y ~ N(offset, Q + diag(P − Q) + N), f seen through Q, with n×n matrices."""
    task, points = task_of(80, errors=True), torch.arange(0, 80, 4)
    nothing = dense(NoBeliefs(torch.Size()), PARAMS, task.rows(slice(0)), Kernel.MATERN52, Propagation.EXACT)
    noise = noise_of(PARAMS, task)
    mine = condensed(nothing, task, noise, points, torch.tensor(OFFSET_VAR, dtype=torch.float64) if free else None)

    def k(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return PARAMS.outputscale * Kernel.MATERN52(A, B, PARAMS.lengthscale)

    Z = task.X[points]
    to_Z = torch.linalg.solve(k(Z, Z), torch.cat([k(Z, task.X), k(Z, X_NEW)], dim=-1))
    Q = torch.cat([k(task.X, Z), k(X_NEW, Z)]) @ to_Z
    n = task.n
    K = Q[:n, :n] + torch.diag((PARAMS.outputscale - Q.diagonal()[:n]) + noise)
    inverse, ones = torch.linalg.inv(K), torch.ones(n, dtype=torch.float64)
    offset = PARAMS.offset
    if free:
        offset = offset + (ones @ inverse @ (task.y - offset)) / (ones @ inverse @ ones + 1 / OFFSET_VAR)
    mean = offset + Q[n:, :n] @ inverse @ (task.y - offset)
    cov = k(X_NEW, X_NEW) - Q[n:, :n] @ inverse @ Q[:n, n:]
    found = mine.predict(X_NEW)
    assert torch.allclose(mine.params.offset, offset, atol=1e-7)
    assert torch.allclose(found[0], mean, atol=1e-6)
    assert torch.allclose(found[1], cov, atol=1e-6)


def test_through_a_third_of_the_points_it_is_close_to_the_exact_posterior() -> None:
    """In three inputs: the mean within a fifth of the standard deviation (rms), and that right to three per cent."""
    task = task_of(1500)
    exact = dense(NoBeliefs(torch.Size()), PARAMS, task, Kernel.MATERN52, Propagation.EXACT)
    mine = condensed(
        empty_of(exact),
        task,
        noise_of(PARAMS, task),
        inducing_rows((task.X / PARAMS.lengthscale)[None], task.y[None], 500)[0],
    )
    (a, var), (b, exact_var) = mine.predict_marginal(X_NEW), exact.predict_marginal(X_NEW)
    assert float(((a - b) / exact_var.sqrt()).square().mean().sqrt()) < 0.2
    assert float(((var / exact_var).sqrt() - 1).abs().mean()) < 0.03
    assert mine.L.shape == (500, 500)


def test_up_to_five_thousand_rows_the_layer_is_the_exact_one() -> None:
    """Block by block gives what all at once gives; a free offset is the one of the evidence."""
    task = task_of(1100, errors=True)
    exact = dense(NoBeliefs(torch.Size()), PARAMS, task, Kernel.MATERN52, Propagation.EXACT)
    mine = source_layer(NoBeliefs(torch.Size()), PARAMS, task, spec())
    for a, b in zip(mine.predict(X_NEW), exact.predict(X_NEW), strict=True):
        assert torch.allclose(a, b, atol=1e-10)
    before = torch.tensor(OFFSET_VAR, dtype=torch.float64)
    free = source_layer(NoBeliefs(torch.Size()), PARAMS, task, spec(), before)
    K = exact.L @ exact.L.mT + OFFSET_VAR
    known = PARAMS.offset + OFFSET_VAR * torch.linalg.solve(K, task.y - PARAMS.offset).sum()
    assert torch.allclose(free.params.offset, known, atol=1e-9)
    again = dense(NoBeliefs(torch.Size()), free.params, task, Kernel.MATERN52, Propagation.EXACT)
    assert torch.allclose(free.predict(X_NEW)[0], again.predict(X_NEW)[0], atol=1e-9)


def test_copies_of_rows_are_one_row_of_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing of what they say is lost."""
    with_tuning(monkeypatch, every_row_up_to=50)
    few = task_of(40)
    other = few.with_data(few.X, few.y + 0.3)
    task = Dataset(torch.cat([few.X, other.X]), torch.cat([few.y, other.y]))
    mine = source_layer(NoBeliefs(torch.Size()), PARAMS, task, spec())
    assert mine.L.shape == (40, 40)
    exact = dense(NoBeliefs(torch.Size()), PARAMS, task, Kernel.MATERN52, Propagation.EXACT)
    for a, b in zip(mine.predict(X_NEW), exact.predict(X_NEW), strict=True):
        assert torch.allclose(a, b, atol=1e-10)
    assert learnt_through(NoBeliefs(torch.Size()), task, spec()) == "learnt from 80 rows at 40 places"


@pytest.mark.parametrize("propagation", list(Propagation))
def test_a_chain_of_large_tasks_stays_within_bounds(propagation: Propagation, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 300 rows, levels of 400 take at most 300 and then 80 each, and still predict their task."""
    with_tuning(monkeypatch, every_row_up_to=100, exact_up_to_rows=300, inducing_points=120, rows_beside_others=80)
    below: Beliefs = NoBeliefs(torch.Size())
    sizes = []
    for seed, params in ((0, PARAMS), (1, TOP), (2, TOP)):
        layer = source_layer(below, params, task_of(400, seed=seed), spec(propagation))
        sizes.append(layer.L.shape[-1])
        below = layer.as_beliefs()
    assert max(sizes) <= 300
    mean, var = layer.predict_marginal(X_NEW)
    assert float((mean - torch.sin(6 * X_NEW).sum(-1)).square().mean()) < 0.05
    assert bool((var > 0).all())


def test_more_rows_than_can_be_worked_through_are_thinned_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence has all three numbers."""
    with_tuning(monkeypatch, every_row_up_to=50, exact_up_to_rows=60, inducing_points=40, condensed_max_rows=100)
    task, nothing = task_of(400), NoBeliefs(torch.Size())
    layer = source_layer(nothing, PARAMS, task, spec())
    assert layer.L.shape == (40, 40)
    assert learnt_through(nothing, task, spec()) == (
        "learnt from 400 rows, of which 100 all over them are used, predictions through 40 points"
    )


def test_a_large_source_is_the_same_in_other_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its layer in units of 3 y − 2 predicts three times the values minus two, the free offset and all."""
    with_tuning(monkeypatch, every_row_up_to=50)
    one, two, three = (torch.tensor(v, dtype=torch.float64) for v in (1.0, 2.0, 3.0))
    model = STAR.using(output_map=OutputMap.NONE, fit=FitOptions(restarts=1))
    source, units = (task_of(80, errors=True),), (Units(0 * one, one), Units(two / three, 1 / three))
    plain, other = (independent.fit_each(source, [unit], one, model, 0, LearnContext())[0][0] for unit in units)
    (mean, cov), (mean_3, cov_3) = plain.predict(X_NEW), other.predict(X_NEW)
    assert torch.allclose(3 * mean - 2, mean_3, atol=1e-9)
    assert torch.allclose(9 * cov, cov_3, atol=1e-9)


def test_many_large_sources_side_by_side_take_no_more_memory_than_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones do not count; of many large ones each is exact to fewer rows, and through points beyond."""
    assert exact_rows([5000, 4000, 100, 100, 3000, 2500]) == PLAIN_TUNING.exact_up_to_rows
    for n_large in (5, 8, 12, 25, 300):
        each = exact_rows([5000] * n_large + [50] * 10)
        assert PLAIN_TUNING.inducing_points <= each < PLAIN_TUNING.exact_up_to_rows
        assert n_large * each**2 <= 4 * PLAIN_TUNING.exact_up_to_rows**2 or each == PLAIN_TUNING.inducing_points
    with_tuning(monkeypatch, every_row_up_to=50, exact_up_to_rows=100, inducing_points=40)
    sources = tuple(task_of(90, seed=i) for i in range(9))
    learnt = independent.fit_independently(
        sources, STAR.using(output_map=OutputMap.NONE, fit=FitOptions(restarts=1)), 0, LearnContext()
    )
    assert {layer.L.shape[-1] for layer in learnt.layers} == {40}
    assert "through 40 points" in learnt.reports[0].note
    few = independent.fit_independently(
        sources[:4], STAR.using(output_map=OutputMap.NONE, fit=FitOptions(restarts=1)), 0, LearnContext()
    )
    assert {layer.L.shape[-1] for layer in few.layers} == {90}


# ── shifts of batches ─────────────────────────────────────────────────────────────────────────────────────────────────


def shifted(
    n: int, n_batches: int, *, seed: int = 0, present: float | None = None, drift: float | None = None
) -> Dataset:
    """Rows of batches in turn, with shifts."""
    task = task_of(n, seed=seed, errors=True)
    batch = torch.arange(n).remainder(n_batches)
    level = torch.randn(n_batches, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    y = task.y + level[batch]
    return Dataset(task.X, y, error_var=task.error_var, batch=batch, present=present, drift=drift)


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("present", "drift"), [(1.0, None), (9.0, None), (1.0, 2.0), (9.0, 2.0)])
def test_the_closed_form_with_shifts_is_the_dense_one(free: bool, present: float, drift: float | None) -> None:
    """The posterior of y ~ N(offset, Q + diag(P − Q) + N + batch_var D), f seen through Q, with n×n matrices."""
    params = replace(PARAMS, batch_var=torch.tensor(0.7, dtype=torch.float64))
    task, points = shifted(80, 6, present=present, drift=drift), torch.arange(0, 80, 4)
    nothing = dense(NoBeliefs(torch.Size()), params, task.rows(slice(0)), Kernel.MATERN52, Propagation.EXACT)
    noise, offset_var = noise_of(params, task), torch.tensor(OFFSET_VAR, dtype=torch.float64)
    mine = condensed(nothing, task, noise, points, offset_var if free else None)

    def k(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return params.outputscale * Kernel.MATERN52(A, B, params.lengthscale)

    Z = task.X[points]
    P_inverse = torch.linalg.inv(k(Z, Z))
    Q = k(task.X, Z) @ P_inverse @ k(Z, task.X)
    D = task.shift_pattern
    assert D is not None
    K = Q + torch.diag((k(task.X, task.X) - Q).diagonal() + noise) + 0.7 * D
    inverse, one = torch.linalg.inv(K), torch.ones(80, dtype=torch.float64)
    r = task.y - params.offset
    moved = (one @ inverse @ r) / (one @ inverse @ one + 1 / OFFSET_VAR) if free else torch.zeros(())
    Q_new = k(X_NEW, Z) @ P_inverse @ k(Z, task.X)
    mean = params.offset + moved + Q_new @ inverse @ (r - moved)
    cov = k(X_NEW, X_NEW) - Q_new @ inverse @ Q_new.mT
    found = mine.predict(X_NEW)
    torch.testing.assert_close(found[0], mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found[1], cov, rtol=1e-5, atol=1e-5)


def test_a_source_of_many_rows_knows_its_shifts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted to some rows and observed exactly, through points, or (too many batches for these) on some rows."""
    for numbers, n_batches in (
        ({"exact_up_to_rows": 500}, 6),
        ({"exact_up_to_rows": 200, "inducing_points": 100}, 6),
        ({"exact_up_to_rows": 200, "inducing_points": 100}, 150),
    ):
        with_tuning(monkeypatch, every_row_up_to=100, first_fit_rows=90, last_fit_rows=150, **numbers)
        task = shifted(300, n_batches)
        model = STAR.using(output_map=OutputMap.NONE, fit=FitOptions(restarts=1))
        layers = [
            independent.fit_independently((one,), model, 0, LearnContext()).layers[0]
            for one in (task, replace(task, batch=None, present=None))
        ]
        assert layers[0].params.batch_var is not None
        assert layers[0].params.batch_var > 0.05
        truth = torch.sin(6 * X_NEW).sum(-1)
        errors = []
        for layer in layers:
            away = layer.predict_marginal(X_NEW)[0] - truth / Units.of([task]).scale
            errors.append((away - away.mean()).square().mean().sqrt())  # the level is that of today
        assert errors[0] < (0.8 if n_batches == 6 else 1.2) * errors[1]
