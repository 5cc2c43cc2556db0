"""The methods that know no source, and the one that repeats the best of the past."""

from __future__ import annotations

import sys

import optuna
import pytest
import torch
from tests.benchmarks.methods.small import small_problem

from benchmarks.methods.method import Settings
from benchmarks.methods.registry import METHODS
from benchmarks.methods.scratch import begin
from benchmarks.problems.laboratory import ROASTING
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.presets import preset
from benchmarks.run.runner import run_batch
from headstart import Dataset, MissingExtraError

QUICK = Settings(paper=False, acquisition="log_ei", restarts=1, max_iterations=20)
RIVALS = ("optuna-gp", "optuna-tpe", "botorch", "best-past")
STEPS = 12  # Optuna's samplers begin with ten random points


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["family", "mixed", "table"])
@pytest.mark.parametrize("name", RIVALS)
def test_equal_seeds_give_equal_points_in_the_domain(name: str, kind: str) -> None:
    """A seed has the same run alone and next to another one; points are of the space, rows are not repeated."""
    problem = small_problem(kind)
    steps = STEPS if name.startswith("optuna") else 6
    together = run_batch(problem, name, [3, 4], steps=steps, settings=QUICK)
    (alone,) = run_batch(problem, name, [3], steps=steps, settings=QUICK)
    X = torch.tensor(together[0].x, dtype=torch.float64)
    # gpbo fits a batch together, and agrees up to rounding
    torch.testing.assert_close(torch.tensor(alone.x, dtype=torch.float64), X, rtol=0, atol=1e-3)
    assert together[0].x != together[1].x
    assert min(together[0].regret) >= 0
    assert bool(((X >= 0) & (X <= 1)).all())
    if kind == "mixed":
        assert ROASTING.space is not None
        torch.testing.assert_close(ROASTING.space.snap(X), X, rtol=0, atol=1e-8)
    if kind == "table":
        instance = problem.draw([3], steps)
        assert instance.candidates is not None
        rows = torch.cdist(X, instance.candidates.X[0]).argmin(-1)
        assert len(set(rows.tolist())) == steps


@pytest.mark.slow
@pytest.mark.parametrize("name", ["optuna-gp", "optuna-tpe", "botorch"])
def test_no_source_is_looked_at(name: str) -> None:
    """With other sources the points are the same."""
    few, many = (SyntheticProblem("branin", n_sources=1, source_points=n, noise=0.0) for n in (2, 20))
    (a,), (b,) = (run_batch(problem, name, [0], steps=STEPS, settings=QUICK) for problem in (few, many))
    assert a.x == b.x


def test_the_best_of_the_past_comes_first() -> None:
    """The first points are the sources' own best, on a table the rows nearest to them; then gpbo goes on."""
    problem = small_problem("family")
    sources = problem.draw([0], 4).sources
    (run,) = run_batch(problem, "best-past", [0], steps=4, settings=QUICK)
    for x, source in zip(run.x, sources, strict=False):
        torch.testing.assert_close(torch.tensor(x, dtype=torch.float64), source.X[0, source.y[0].argmin()])
    table = small_problem("table")
    instance = table.draw([0], 2)
    (run,) = run_batch(table, "best-past", [0], steps=2, settings=QUICK)
    assert instance.candidates is not None
    first = instance.sources[0].X[0, instance.sources[0].y[0].argmin()]
    nearest = instance.candidates.X[0][torch.cdist(first[None], instance.candidates.X[0]).argmin()]
    torch.testing.assert_close(torch.tensor(run.x[0], dtype=torch.float64), nearest)


def test_a_study_is_told_the_row_that_stood_in_for_its_trial() -> None:
    """On a table every finished trial of the study is a row of the target, with its value."""
    problem = small_problem("table")
    instance = problem.draw([0], 3)
    search = METHODS["optuna-tpe"].begin(instance, "svm", [0], QUICK)
    assert instance.candidates is not None
    target, allowed = Dataset.empty(instance.d, batch_shape=(1,)), instance.candidates.real.clone()
    for _ in range(3):
        choice = search.propose(target, allowed)
        assert choice.row is not None
        allowed[0, choice.row] = False
        target = target.with_point(choice.x, instance.candidates.values[:, choice.row[0]])
    (study,) = search._studies  # type: ignore[attr-defined]
    done = [trial for trial in study.trials if trial.state is optuna.trial.TrialState.COMPLETE]
    assert [trial.value for trial in done] == target.y[0, :2].tolist()
    assert instance.space is not None
    torch.testing.assert_close(instance.space.encode([trial.params for trial in done]), target.X[0, :2])


def test_optunas_log_is_as_it_was() -> None:
    """Its verbosity comes back after a run."""
    before = optuna.logging.get_verbosity()
    run_batch(small_problem("family"), "optuna-tpe", [0], steps=2, settings=QUICK)
    assert optuna.logging.get_verbosity() == before


def test_without_optuna_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.setitem(sys.modules, "optuna.distributions", None)
    with pytest.raises(MissingExtraError, match="pip install optuna"):
        begin("optuna-gp", small_problem("family").draw([0], 1), "branin", [0], QUICK)


def test_the_preset_compares_what_knows_no_source() -> None:
    """On the five families and the three functions of the laboratory."""
    (experiment,) = preset("scratch")
    assert len(experiment.problems) == 8
    assert (experiment.runs, experiment.steps) == (20, 30)
    assert {"gpbo", "optuna-gp", "optuna-tpe", "botorch", "random"} <= set(experiment.methods)
