"""Functions of categories and numbers: their tasks, their minima, and the methods at work on them."""

from __future__ import annotations

import pytest
import torch
from tests.problems import generator

from benchmarks.methods.method import Settings
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.family import Family
from benchmarks.problems.laboratory import COUPLING, LABORATORY, ROASTING
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.experiment import ProblemSpec
from benchmarks.run.runner import run_batch
from headstart import GPBO, Dataset, InputError
from headstart.decide.domain import Mixed
from headstart.decide.suggest import suggest
from headstart.gp.fit import FitOptions

EVERY = pytest.mark.parametrize("family", LABORATORY.values(), ids=list(LABORATORY))
QUICK = Settings(paper=False, acquisition="log_ei", restarts=1, max_iterations=20)


def _points(family: Family, n: int = 3000) -> torch.Tensor:
    return family.random_points(1, n, generator())[0]


# ── the functions ─────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_no_point_is_below_the_minimum_and_some_come_close(family: Family) -> None:
    """Of 3000 random points none is below it, and the best is within a tenth of the range of all values."""
    params = family.sample(6, generator(1))
    minimum = family.minimum(params)
    values = family.evaluate(params, _points(family).expand(6, -1, -1))
    gap = values.amin(-1) - minimum
    assert bool((gap >= -1e-9).all())
    assert bool((gap < 0.1 * (values.amax(-1) - minimum)).all())
    assert torch.equal(family.minimum(params[2:3]), minimum[2:3])


@EVERY
def test_the_noise_is_a_small_share_of_the_range(family: Family) -> None:
    """Between 1 and 3 percent of what the values of a task span."""
    params = family.sample(6, generator(1))
    values = family.evaluate(params, _points(family).expand(6, -1, -1))
    share = family.noise_std / (values.amax(-1) - values.amin(-1))
    assert 0.01 < float(share.min()) < float(share.max()) < 0.03


@EVERY
def test_the_best_category_depends_on_the_task_and_the_best_numbers_on_the_category(family: Family) -> None:
    """Over 40 tasks no level is always the best; within a task the levels have their best at other numbers."""
    assert family.space is not None
    params, X = family.sample(40, generator(2)), _points(family)
    values = family.evaluate(params, X.expand(40, -1, -1))
    numbers = [axis.columns.start for axis in family.space.axes if not axis.categorical]
    for columns in family.space.categories:
        level = X[:, list(columns)].argmax(-1)
        assert len(set(level[values.argmin(-1)].tolist())) >= 3
        best = torch.stack([X[values[0].where(level == k, torch.inf).argmin()][numbers] for k in range(len(columns))])
        assert float(torch.pdist(best).max()) > 0.2


@EVERY
def test_tasks_are_alike_but_not_equal(family: Family) -> None:
    """Values of two tasks at the same points are correlated, and never perfectly."""
    params = family.sample(10, generator(3))
    correlation = torch.corrcoef(family.evaluate(params, _points(family).expand(10, -1, -1)))
    others = correlation[~torch.eye(10, dtype=torch.bool)]
    assert 0.4 < float(others.median()) < 0.95
    assert float(others.max()) < 0.999


def test_a_function_is_what_its_docstring_says() -> None:
    """Roasting far from what suits the process costs 25 points, and nothing where it is just right."""
    best, heat, pace, air = 86.0, 0.6 * 0.5 + 0.6 * 0.5, 0.5, 0.5
    params = torch.tensor([[best] * 3 + [heat] * 3 + [pace] * 3 + [air] * 3 + [0.3, 0.0]], dtype=torch.float64)
    assert ROASTING.space is not None
    X = ROASTING.space.encode([{"process": "honey", "charge": 195.0, "time": 10.5, "airflow": 5}])
    assert float(ROASTING.evaluate(params, X)) == pytest.approx(-best)
    assert float(ROASTING.evaluate(params + 10, X)) == pytest.approx(-(best + 10 - 25))


def test_points_of_another_space_are_refused() -> None:
    """The message gives both numbers of columns."""
    with pytest.raises(InputError, match=r"coupling has 20 parameters and float64 points of 12 columns.*\(1, 4\)"):
        COUPLING.evaluate(COUPLING.sample(1, generator()), torch.zeros(1, 4, dtype=torch.float64))


# ── the problems ──────────────────────────────────────────────────────────────────────────────────────────────────


@EVERY
def test_a_problem_draws_sources_from_the_space(family: Family) -> None:
    """Twenty points per parameter, each a point of the space; a seed is the same alone."""
    assert family.space is not None
    problem = ProblemSpec(family=family.name, sources=2).build()
    together, alone = problem.draw([0, 5], 4), problem.draw([5], 4)
    assert problem.name == f"{family.name}[sources=2,points={20 * len(family.space.axes)},noise={family.noise_std:g}]"
    assert together.space is family.space
    for a, b in zip(together.sources, alone.sources, strict=True):
        torch.testing.assert_close(family.space.snap(a.X), a.X, rtol=0, atol=1e-12)
        assert torch.equal(a.X[1:], b.X)
        torch.testing.assert_close(a.y[1:], b.y)
    assert together.function is not None
    assert bool((together.function(together.sources[0].X) >= together.minimum.unsqueeze(-1)).all())


def test_categories_of_spoilt_sources_stay_categories() -> None:
    """Shifted sources have another level, swapped ones two numbers exchanged; both are points of the cube."""
    problem = SyntheticProblem("coupling", source_points=10)
    clean = problem.draw([0], 3).sources[0].X
    shifted = SpoiltProblem(problem, Scenario.SHIFTED).draw([0], 3).sources[0].X
    assert torch.equal(shifted[..., :4], clean[..., :4].roll(1, -1))
    swapped = SpoiltProblem(problem, Scenario.SWAPPED).draw([0], 3).sources[0].X
    assert torch.equal(swapped[..., [9, 10, 11]], clean[..., [11, 10, 9]])


# ── the methods ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random", "gpbo", "shgp", "auto", "gc3p"])
def test_a_method_stays_in_the_space(name: str) -> None:
    """Every point evaluated is one of the space, and no regret is negative."""
    problem = SyntheticProblem("roasting", source_points=12)
    assert problem.space is not None
    for run in run_batch(problem, name, [0, 1], steps=4, settings=QUICK):
        X = torch.tensor(run.x, dtype=torch.float64)
        torch.testing.assert_close(problem.space.snap(X), X, rtol=0, atol=1e-8)
        assert min(run.regret) >= 0


@pytest.mark.slow
def test_a_batch_of_mixed_problems_is_searched_like_each_of_them() -> None:
    """Suggestions for three problems at once are points of the space, and the same as for each alone."""
    instance = SyntheticProblem("coupling", source_points=15).draw([0, 1, 2], 1)
    assert instance.space is not None
    data, domain = instance.sources[0], Mixed(instance.space)
    model = GPBO.using(fit=FitOptions(restarts=2))

    def point(target: Dataset) -> torch.Tensor:
        return suggest(model.learn([], seed=0).condition(target, seed=0), domain=domain, n_candidates=128, n_starts=2)

    together = point(data)
    assert together.shape == (3, 12)
    torch.testing.assert_close(domain.snap(together), together, rtol=0, atol=1e-9)
    for i in range(3):
        alone = point(data.with_data(data.X[i : i + 1], data.y[i : i + 1]))
        torch.testing.assert_close(alone[0], together[i], rtol=0, atol=1e-4)
