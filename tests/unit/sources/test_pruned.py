"""What pruned trials would have ended at, by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import optuna
import pandas as pd
import pytest
from optuna.trial import FrozenTrial, TrialState, create_trial

from headstart.sources.forms.studies import estimated_finals
from headstart.sources.past import read_sources

FINISHED = [({0: 5.0, 2: 4.0}, 3.0), ({0: 6.0, 2: 5.0}, 3.5), ({0: 9.0, 2: 7.0}, 6.0)]


def trial(number: int, reported: Mapping[int, float], value: float | None = None) -> FrozenTrial:
    state = TrialState.PRUNED if value is None else TrialState.COMPLETE
    made = create_trial(state=state, value=value, intermediate_values=dict(reported))
    made.number = number
    return made


def trials(*pruned: Mapping[int, float]) -> list[FrozenTrial]:
    every = [trial(i, reported, value) for i, (reported, value) in enumerate(FINISHED)]
    return [*every, *(trial(len(FINISHED) + i, reported) for i, reported in enumerate(pruned))]


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({0: 8.0}, 8.0 - 2.5),  # final − value at 0: −2, −2.5, −3
        ({0: 8.0, 2: 7.5}, 7.5 - 1.0),  # at 2: −1, −1.5, −1
        ({0: 8.0, 1: 7.8}, 7.8 - 2.5),  # the others' latest value up to step 1 is that of step 0
        ({0: 4.0}, 3.0),  # no better than the best
    ],
)
def test_what_the_others_went_on_to_do_is_added(reported: dict[int, float], expected: float) -> None:
    assert estimated_finals(trials(reported), minimize=True) == {3: pytest.approx(expected)}


def test_the_other_way_round_no_estimate_is_above_the_best() -> None:
    assert estimated_finals(trials({0: 20.0}), minimize=False) == {3: 6.0}
    assert estimated_finals(trials({0: 20.0}), minimize=None) == {3: pytest.approx(17.5)}


def test_with_few_finished_trials_the_value_is_taken_as_it_is() -> None:
    few = [trial(0, {0: 5.0}, 3.0), trial(1, {0: 8.0})]
    assert estimated_finals(few, minimize=True) == {1: 8.0}


@pytest.mark.parametrize("reported", [{}, {0: math.nan}, {0: math.inf}])
def test_what_reported_nothing_of_use_has_no_estimate(reported: dict[int, float]) -> None:
    assert estimated_finals(trials(reported), minimize=True) == {}


def test_a_source_has_its_pruned_trials(quiet_optuna: None) -> None:
    """And says so."""
    study = optuna.create_study(study_name="pruned")

    def run(one: optuna.Trial) -> float:
        x = one.suggest_float("x", 0, 1)
        one.report(x + 1, 0)
        if one.number % 2:
            raise optuna.TrialPruned
        return x

    study.optimize(run, n_trials=10)
    (task,) = read_sources([study])
    assert len(task.rows) == 10
    best = min(t.value for t in study.trials if t.state == TrialState.COMPLETE and t.value is not None)
    assert task.y.tolist() == pytest.approx([max(x, best) for x in pd.to_numeric(task.rows["x"])])
    assert any("5 pruned trials count as" in note for note in task.notes)
