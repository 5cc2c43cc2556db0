"""Data that break careless arithmetic: repeated, constant, tiny, huge, many."""

from __future__ import annotations

import time
from functools import cache

import pytest
import torch
from tests.cases import with_slow
from tests.problems import (
    REPRESENTATIVES,
    VARIANTS,
    agree,
    behind_the_map,
    in_turn,
    predictions,
    quick,
    transfer_problem,
)
from torch import Tensor

from benchmarks.run import robustness
from benchmarks.run.robustness import MODELS, odd_problem, require_sound
from headstart import FAMILY, Dataset, TransferModel, TransferPosterior
from headstart.models.model import Prior

PROBLEM = transfer_problem()
NUMBERS_OF_POINTS = (0, 1, 2, 4)
ODD = (2, 3, 4, 9, 20, 25)  # every kind of trouble is in one of these


def _assert_sound(posterior: TransferPosterior, X: Tensor) -> None:
    """Means are finite, variances positive, and a joint covariance has no direction of negative variance."""
    mean, var = posterior.predict(X)
    assert bool(mean.isfinite().all())
    assert bool((var > 0).all())
    assert bool(var.isfinite().all())
    normal = behind_the_map(posterior)
    cov, var = normal.posterior(X).distribution.covariance_matrix, normal.predict(X)[1]
    assert agree(cov.diagonal(dim1=-2, dim2=-1), var, rtol=1e-8)
    assert float(torch.linalg.eigvalsh(cov).min()) > -1e-8 * float(var.max())


def _assert_sound_for_any_target(model: TransferModel, sources: tuple[Dataset, ...], target: Dataset) -> Prior:
    prior = model.learn(sources)
    for n in NUMBERS_OF_POINTS:
        _assert_sound(prior.condition(Dataset(target.X[:n], target.y[:n])), PROBLEM.Xq)
    return prior


@cache
def _learnt(name: str, scale: float) -> Prior:
    return quick(FAMILY[name]).learn(transfer_problem(scale=scale).sources)


def _repeated(task: Dataset, times: int = 3) -> Dataset:
    return Dataset(task.X.repeat(times, 1), task.y.repeat(times))


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS))
def test_inputs_may_be_repeated(name: str, variant: str) -> None:
    """Every row three times, in the sources and in the target, also at the points that are asked about."""
    sources, target = tuple(_repeated(s) for s in PROBLEM.sources), _repeated(PROBLEM.head(3))
    posterior = VARIANTS[variant](FAMILY[name]).learn(sources).condition(target)
    _assert_sound(posterior, torch.cat([PROBLEM.Xq, PROBLEM.Xq, target.X]))


@pytest.mark.parametrize("name", REPRESENTATIVES[1:])
def test_the_target_may_repeat_the_inputs_of_a_source(name: str) -> None:
    """Tasks measured on one grid share all their inputs."""
    X = PROBLEM.sources[0].X
    grid = [Dataset(X, torch.sin(4 * X).sum(-1) + 0.1 * i * X[:, 0]) for i in range(3)]
    _assert_sound(quick(FAMILY[name]).learn(grid[:2]).condition(grid[2]), torch.cat([X, PROBLEM.Xq]))


@pytest.mark.parametrize(
    ("name", "case"), in_turn([("default", -3.0), ("default", 1e9), ("paper", 0.0), ("plain", 0.0)])
)
def test_sources_may_be_constant(name: str, case: tuple[str, float]) -> None:
    """A source that says the same everywhere is a source, whatever it says."""
    variant, value = case
    sources = tuple(Dataset(s.X, torch.full_like(s.y, value)) for s in PROBLEM.sources)
    target = Dataset(PROBLEM.target.X, PROBLEM.target.y + value)
    _assert_sound_for_any_target(VARIANTS[variant](FAMILY[name]), sources, target)


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS))
def test_the_target_may_be_constant(name: str, variant: str) -> None:
    """A target that has said the same so far leaves room for doubt."""
    target = Dataset(PROBLEM.target.X, torch.full_like(PROBLEM.target.y, 2.5))
    _assert_sound_for_any_target(VARIANTS[variant](FAMILY[name]), PROBLEM.sources, target)


@pytest.mark.parametrize(("name", "value"), in_turn([0.0, 7.0]))
def test_everything_may_be_constant(name: str, value: float) -> None:
    """With nothing but one value the prediction is that value, and its variance is positive."""
    sources = tuple(Dataset(s.X, torch.full_like(s.y, value)) for s in PROBLEM.sources)
    target = Dataset(PROBLEM.target.X, torch.full_like(PROBLEM.target.y, value))
    mean, _ = _assert_sound_for_any_target(quick(FAMILY[name]), sources, target).condition(target).predict(PROBLEM.Xq)
    assert torch.allclose(mean, torch.full_like(mean, value), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS))
def test_a_source_may_be_a_single_point(name: str, variant: str) -> None:
    """One observation is a source, and two such sources are two."""
    sources = tuple(Dataset(s.X[:1], s.y[:1]) for s in PROBLEM.sources)
    _assert_sound_for_any_target(VARIANTS[variant](FAMILY[name]), sources, PROBLEM.target)
    _assert_sound_for_any_target(VARIANTS[variant](FAMILY[name]), sources[:1], PROBLEM.target)


@pytest.mark.parametrize(("name", "scale"), in_turn([1e-12, 1e12]))
def test_outputs_may_have_any_scale(name: str, scale: float) -> None:
    """Predictions for outputs of size 1e-12 or 1e12 are those of size 1 in other units."""
    scaled = transfer_problem(scale=scale)
    # one value of a target without sources has no spread: its scale is unknown
    for n in NUMBERS_OF_POINTS if name != "GPBO" else (2, 4):
        posterior, unit = _learnt(name, scale).condition(scaled.head(n)), _learnt(name, 1.0).condition(PROBLEM.head(n))
        (mean, var), (mean_, var_) = posterior.predict(PROBLEM.Xq), unit.predict(PROBLEM.Xq)
        assert bool((var > 0).all()), n
        assert agree(mean / scale, mean_, rtol=1e-4), n
        assert agree(var / scale**2, var_, rtol=1e-4), n


@pytest.mark.parametrize(("name", "scale"), in_turn([1e-12, 1e12]))
def test_the_botorch_posterior_has_any_scale_too(name: str, scale: float) -> None:
    """Mean and variance of ``posterior`` are those of ``predict``: nothing is clipped on the way to BoTorch."""
    posterior = _learnt(name, scale).condition(transfer_problem(scale=scale).target)
    mean, var = posterior.predict(PROBLEM.Xq)
    through = posterior.posterior(PROBLEM.Xq)
    assert agree(through.mean.squeeze(-1), mean, rtol=1e-9)
    assert agree(through.variance.squeeze(-1), var, rtol=1e-6)
    assert agree(posterior.likelihood.noise.squeeze(-1) / scale**2, _noise(posterior) / scale**2, rtol=1e-9)


def _noise(posterior: TransferPosterior) -> Tensor:
    return posterior.predictor.noise_var * posterior.units.scale**2


@pytest.mark.parametrize("name", REPRESENTATIVES[1:])
def test_tasks_may_lie_far_apart(name: str) -> None:
    """Where a task lies is its own affair: a target a thousand spreads above its sources is followed there."""
    target = Dataset(PROBLEM.target.X, PROBLEM.target.y + 1000)
    posterior = _learnt(name, 1.0).condition(target)
    _assert_sound(posterior, PROBLEM.Xq)
    mean, _ = posterior.predict(target.X)
    assert float((mean - target.y).abs().max()) < 2


@pytest.mark.parametrize("name", ["MHGP", "SHGP", "BHGP"])
def test_thirty_sources_are_no_burden(name: str) -> None:
    """Thirty sources are learnt and asked within seconds: nothing recurses from level to level."""
    problem = transfer_problem(sizes=(8,) * 30, n_target=6, n_queries=50)
    start = time.process_time()
    _assert_sound(problem.posterior(quick(FAMILY[name])), problem.Xq)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("name", ["SHGP", "WSGP", "RGPE"])
def test_many_inputs_are_fine(name: str) -> None:
    """Twenty inputs, fewer observations than that."""
    problem = transfer_problem(d=20, sizes=(12, 8), n_target=4)
    _assert_sound(problem.posterior(quick(FAMILY[name])), problem.Xq)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_predictions_do_not_care_about_far_away_batches(name: str) -> None:
    """Predicting one point, or a thousand at once, gives the same numbers."""
    posterior = _learnt(name, 1.0).condition(PROBLEM.target)
    X = torch.rand(1000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    together = predictions(posterior, X)
    alone = torch.cat([predictions(posterior, x[None]) for x in X[:5]], dim=-1)
    assert agree(together[:, :5], alone, rtol=1e-10)


@pytest.mark.parametrize(("name", "variant"), in_turn(["default", "plain"]))
def test_a_target_value_a_billion_spreads_away_is_no_numerical_error(name: str, variant: str) -> None:
    """With an output map, where it is pulled in, and without, where it dominates; a fit comes to an end."""
    value, position = (1e9, 0) if variant == "default" else (-1e9, 3)
    y = PROBLEM.target.y.clone()
    y[position] = value
    posterior = VARIANTS[variant](FAMILY[name]).learn(PROBLEM.sources).condition(Dataset(PROBLEM.target.X, y))
    mean, var = posterior.predict(PROBLEM.Xq)
    assert bool(mean.isfinite().all())
    assert bool((var > 0).all())
    assert bool(var.isfinite().all())


@pytest.mark.parametrize("name", ["AUTO", "GPBO", "SHGP"])
def test_one_diverged_run_decides_nothing(name: str) -> None:
    """Away from a penalty of 1e9 predictions are much as they are without it: within a spread of the others."""
    problem = transfer_problem(n_target=9, n_queries=40)
    y = problem.target.y.clone()
    y[4] = 1e9
    model = quick(FAMILY[name])
    spoilt = model.learn(problem.sources).condition(Dataset(problem.target.X, y))
    keep = torch.arange(9) != 4
    clean = model.learn(problem.sources).condition(Dataset(problem.target.X[keep], y[keep]))
    away = torch.cdist(problem.Xq, problem.target.X[4:5]).squeeze(-1) > 0.5
    low, middle = (posterior.quantile(problem.Xq[away], 0.5) for posterior in (spoilt, clean))
    assert int(away.sum()) >= 5
    assert float((low - middle).abs().median()) < float(y[keep].std())


@pytest.mark.parametrize("number", with_slow(range(30), quick=ODD))
def test_odd_problems_are_survived(number: int) -> None:
    """Repeated, constant, spoilt, tiny and huge data, drawn by number: no error, no warning, nothing but numbers."""
    problem = odd_problem(number)
    for model in MODELS.values():
        if problem.sources or not model.needs_sources:
            require_sound(model, problem)


def test_odd_problems_have_all_that_is_odd() -> None:
    """Equal numbers are equal problems; together they have every kind of trouble."""
    problems = [odd_problem(number) for number in range(300)]
    again = odd_problem(7)
    assert all(torch.equal(a.y, b.y) for a, b in zip(problems[7].sources, again.sources, strict=True))
    assert {len(p.sources) for p in problems} == {0, 1, 2, 3}
    assert {p.target.d for p in problems} == {1, 2, 3, 4}
    assert {min(p.target.n, 3) for p in problems} == {0, 1, 2, 3}
    assert max(s.n for p in problems for s in p.sources) == 30
    assert min(s.n for p in problems for s in p.sources) == 1
    text = " ".join(p.description for p in problems)
    for word in ("repeated rows", "one place", "outliers", "constant", "zero", "steps", "tail", "other units"):
        assert word in text
    sizes = torch.tensor([float(p.target.y.abs().max()) for p in problems if p.target.n]).log10()
    assert float(sizes[sizes.isfinite()].max()) > 12
    assert float(sizes[sizes.isfinite()].min()) < -7


def test_what_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the problem, the model and what is odd about it."""
    assert list(robustness.failures([5])) == []

    def broken(model: TransferModel, problem: robustness.OddProblem) -> None:
        raise ArithmeticError("what broke")

    monkeypatch.setattr(robustness, "require_sound", broken)
    (_, second) = robustness.failures([5])
    assert "problem 5, GPBO: ArithmeticError: what broke" in second
    assert "inputs, scale" in second
