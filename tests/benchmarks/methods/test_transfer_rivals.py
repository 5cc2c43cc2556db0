"""Others' transfer libraries as methods of the benchmark, and the negative control."""

from __future__ import annotations

import sys

import pytest
import torch
from tests.benchmarks.methods.small import small_problem

from benchmarks.methods.method import Settings
from benchmarks.methods.transfer_rivals import begin, standardised
from benchmarks.run.presets import preset
from benchmarks.run.runner import run_batch
from headstart import InputError, MissingExtraError

QUICK = Settings(paper=False, acquisition="log_ei", restarts=1, max_iterations=20)


def test_outputs_are_standardised_by_task() -> None:
    """Mean 0 and standard deviation 1; a single result, or equal ones, are 0."""
    z = standardised(torch.tensor([1.0, 2.0, 3.0]))
    assert z.tolist() == [-1.0, 0.0, 1.0]
    assert standardised(torch.tensor([7.0])).tolist() == [0.0]
    assert standardised(torch.tensor([7.0, 7.0])).tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["family", "table"])
def test_a_multi_task_process_searches_cubes_and_rows(kind: str) -> None:
    """A run is the same alone and beside another one; no row comes twice."""
    problem = small_problem(kind)
    together = run_batch(problem, "botorch-mtgp", [3, 4], steps=2, settings=QUICK)
    (alone,) = run_batch(problem, "botorch-mtgp", [3], steps=2, settings=QUICK)
    assert alone.x == together[0].x
    assert len({tuple(x) for x in alone.x}) == 2
    assert min(together[0].regret) >= 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "package"), [("ax", "ax"), ("baybe", "baybe")])
def test_a_library_that_is_installed_chooses_rows(name: str, package: str) -> None:
    """Equal seeds give equal rows, no row twice."""
    pytest.importorskip(package)
    first, again = (run_batch(small_problem("table"), name, [0], steps=2, settings=QUICK)[0] for _ in range(2))
    assert first.x == again.x
    assert len({tuple(x) for x in first.x}) == 2


@pytest.mark.parametrize("name", ["ax", "baybe"])
def test_a_library_that_is_not_installed_is_named_with_its_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything runs; and neither does functions."""
    monkeypatch.setitem(sys.modules, name, None)
    table = small_problem("table").draw([0], 3)
    with pytest.raises(MissingExtraError, match="pip install --group platforms"):
        begin(name, table, "svm", [0])
    with pytest.raises(InputError, match="tables only"):
        begin(name, small_problem("family").draw([0], 3), "branin", [0])


def test_the_control_has_the_same_tasks_and_other_points() -> None:
    """GPBO again: the targets are the baseline's, the first point is not."""
    problem = small_problem("family")
    (base,), (again,) = (run_batch(problem, m, [0], steps=2, settings=QUICK) for m in ("gpbo", "gpbo-again"))
    assert again.method == "gpbo-again"
    assert again.label == base.label
    assert again.x[0] != base.x[0]


def test_the_preset_compares_on_six_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten runs of fifteen evaluations each, with every rival."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    (experiment,) = preset("rivals")
    assert (len(experiment.problems), experiment.runs, experiment.steps) == (6, 10, 15)
    assert {"auto", "gpbo", "rgpe", "gc3p", "best-past", "botorch-mtgp", "ax", "baybe"} == set(experiment.methods)
    assert all("gpbo-again" in experiment.methods for experiment in preset("compare"))
