"""Sources with more rows than a model can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState
from tests.unit.sources.forms.past_studies import read_one, study, trial

from headstart.data.thinning import best_and_spread
from headstart.sources.forms import studies
from headstart.sources.forms.studies import is_same_study, thinned
from headstart.sources.raw import RawObjective, RawTask

pytestmark = pytest.mark.usefixtures("quiet_optuna")

N = 5000


@pytest.fixture
def y() -> Any:
    return np.random.default_rng(0).permutation(N).astype(float)


@pytest.mark.parametrize(("maximize", "low", "high"), [(False, 40, 0), (True, 0, 40), (None, 20, 20)])
def test_the_best_and_an_even_spread_are_kept(y: Any, maximize: bool | None, low: int, high: int) -> None:
    """A tenth are the best ones, of a table that does not say which those are both ends; the rest is everywhere."""
    kept = best_and_spread([(y, maximize)], 400)
    assert len(kept) == 400
    assert (np.diff(kept) > 0).all()  # in order, each once
    values = set(y[kept])
    assert set(range(low)) <= values
    assert set(range(N - high, N)) <= values
    assert np.diff(kept).max() <= 20  # 360 others, evenly, of 4960


def test_rows_without_a_result_are_the_first_to_go(y: Any) -> None:
    """Missing values are not kept, infinite ones count as the worst or best."""
    y[:4700] = np.nan
    y[4800] = np.inf
    assert best_and_spread([(y, False)], 400).tolist() == list(range(4700, N))
    assert 4800 in best_and_spread([(y, True)], 50)


def test_a_long_table_is_thinned_and_says_so(y: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows, values and their numbers in the file stay together."""
    monkeypatch.setattr(studies, "MAX_ROWS", 1000)
    task = RawTask("t", pd.DataFrame({"x": y}), y, numbers=tuple(range(2, N + 2)), notes=("first",))
    short = thinned(task)
    assert short.notes == ("first", "1,000 of 5,000 rows are used: the best tenth, and an even spread of the others")
    assert short.rows["x"].tolist() == short.y.tolist()
    assert short.numbers is not None
    assert [task.y[number - 2] for number in short.numbers] == short.y.tolist()
    assert read_one(pd.DataFrame({"x": y, "loss": y}), objective="loss").y.shape == (1000,)
    few = RawTask("t", pd.DataFrame({"x": y[:100]}), y[:100])
    assert thinned(few) is few


def test_the_best_of_every_objective_are_kept(y: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as it is not known which of them counts; a row that has any of them may be kept."""
    monkeypatch.setattr(studies, "MAX_ROWS", 1000)
    other = np.random.default_rng(1).permutation(N).astype(float)
    other[:10] = np.nan
    task = RawTask(
        "t",
        pd.DataFrame({"x": y}),
        y,
        objectives={"y": RawObjective(y, maximize=False), "other": RawObjective(other, maximize=True)},
    )
    kept = thinned(task)
    assert len(kept.rows) == 1000
    assert set(range(50)) <= set(kept.objectives["y"].y)
    assert set(np.sort(other[10:])[-50:]) <= set(kept.objectives["other"].y)
    only = thinned(replace(task, named={"y": "y"}, maximize=False))
    assert set(range(100)) <= set(only.y)


def test_of_a_large_study_the_best_of_every_objective_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever of them is asked about later."""
    past = optuna.create_study(
        study_name="large", storage=f"sqlite:///{tmp_path / 'past.db'}", directions=["minimize", "maximize"]
    )
    ranks = np.random.default_rng(2).permutation(60)
    for i, rank in enumerate(ranks):
        past.add_trial(
            optuna.trial.create_trial(
                params={"x": i / 60}, distributions={"x": FloatDistribution(0, 1)}, values=[float(i), float(rank)]
            )
        )
    monkeypatch.setattr(studies, "MAX_ROWS", 40)
    first, second = read_one(past).objectives.values()
    assert len(first.y) == 40
    assert {0.0, 1.0} <= set(first.y)
    assert {58.0, 59.0} <= set(second.y)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_and_a_spread_of_a_large_study_are_used(
    direction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order; the others are counted, and it is still known which study it is."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    values = (*map(float, np.random.default_rng(1).permutation(57)), float("inf"), float("-inf"))
    past = study("large", storage=url, y=values, direction=direction)
    past.add_trials([trial(0.5, state=TrialState.FAIL), trial(0.6, state=TrialState.PRUNED)])
    monkeypatch.setattr(studies, "MAX_ROWS", 20)
    task = read_one((url, "large"))
    best = {float("-inf"), 0.0} if direction == "minimize" else {float("inf"), 56.0}
    assert len(task.y) == 20
    assert best <= set(task.y)
    assert [values.index(value) for value in task.y] == sorted(values.index(value) for value in task.y)
    assert task.notes == (
        "trials without a final value are left out: 1 pruned and 1 failed",
        "20 of 59 rows are used: the best tenth, and an even spread of the others",
    )
    assert is_same_study(task, past)
