"""``gpbo-0.1``, to which gains are compared: it stays what it was."""

from __future__ import annotations

import pytest
import torch
from tests.benchmarks.methods.small import small_problem

from benchmarks.methods.method import Settings
from benchmarks.problems.laboratory import ROASTING
from benchmarks.problems.shared_tables import svm_sklearn
from benchmarks.problems.table import TableProblem
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.experiment import ProblemSpec
from benchmarks.run.runner import run_batch

NAME = "gpbo-0.1"
QUICK = Settings(paper=False, acquisition="log_ei", restarts=1, max_iterations=20)
STEPS = 5


def test_the_first_points_are_those_of_the_early_state() -> None:
    """On forrester with seed 0, by headstart's defaults of then."""
    expected = [0.4263191444, 1.0, 0.1951783591, 0.0, 0.2618265954, 0.2638515031]
    settings = Settings(paper=False, acquisition="log_ei")
    (run,) = run_batch(ProblemSpec(family="forrester").build(), NAME, [0], steps=6, settings=settings)
    found, known = (torch.tensor(x, dtype=torch.float64) for x in (run.x, expected))
    torch.testing.assert_close(found[:, 0], known, rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["family", "mixed", "table"])
def test_it_begins_at_random_and_equal_seeds_give_equal_points(kind: str) -> None:
    """The first point is that of ``random``, and nothing is designed; a seed has the same run again and in company."""
    problem = small_problem(kind)
    together = run_batch(problem, NAME, [3, 4], steps=STEPS, settings=QUICK)
    again = run_batch(problem, NAME, [3, 4], steps=STEPS, settings=QUICK)
    (alone,) = run_batch(problem, NAME, [3], steps=STEPS, settings=QUICK)
    at_random = run_batch(problem, "random", [3, 4], steps=STEPS, settings=QUICK)
    designed = run_batch(problem, "gpbo", [3, 4], steps=STEPS, settings=QUICK)
    assert [run.x for run in together] == [run.x for run in again]
    for run, uniform, laid_out in zip(together, at_random, designed, strict=True):
        assert run.x[0] == uniform.x[0]
        assert run.x[1] != uniform.x[1]
        assert run.x[0] != laid_out.x[0]
    X = torch.tensor(together[0].x, dtype=torch.float64)
    torch.testing.assert_close(torch.tensor(alone.x, dtype=torch.float64), X, rtol=0, atol=1e-3)
    assert together[0].x != together[1].x
    assert min(together[0].regret) >= 0
    if kind == "mixed":
        assert ROASTING.space is not None
        torch.testing.assert_close(ROASTING.space.snap(X), X, rtol=0, atol=1e-8)
    if kind == "table":
        candidates = problem.draw([3], STEPS).candidates
        assert candidates is not None
        distance, rows = torch.cdist(X, candidates.X[0]).min(-1)
        assert float(distance.max()) < 1e-9
        assert len(set(rows.tolist())) == STEPS


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["family", "table"])
def test_no_source_is_looked_at(kind: str) -> None:
    """With other sources the points are the same."""
    few, many = (
        SyntheticProblem("branin", n_sources=1, source_points=n, noise=0.0)
        if kind == "family"
        else TableProblem(svm_sklearn(), n_sources=2, rows=n)
        for n in (2, 20)
    )
    (a,), (b,) = (run_batch(problem, NAME, [0], steps=STEPS, settings=QUICK) for problem in (few, many))
    assert a.x == b.x
