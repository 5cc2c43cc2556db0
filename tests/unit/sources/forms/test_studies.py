"""Studies and lists of trials: objectives by name, what a missing value means, and which study it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from tests.unit.sources.forms.past_studies import X, failed, name_metrics, read_one, study, trial

from headstart.errors import InputError
from headstart.sources.alignment import align
from headstart.sources.forms.studies import is_same_study
from headstart.sources.past import read_sources

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def two_objectives() -> optuna.Study:
    made = optuna.create_study(study_name="both", directions=["minimize", "maximize"])
    made.add_trials([trial(0.1, 1.0, 10.0), trial(0.2, 2.0, 20.0)])
    return made


@pytest.mark.parametrize(
    ("objective", "y", "maximize"),
    [
        ("loss", [1.0, 2.0], False),
        ("accuracy", [10.0, 20.0], True),
        ("0", [1.0, 2.0], False),
        ("1", [10.0, 20.0], True),
    ],
)
def test_one_of_several_objectives_is_picked(objective: str, y: list[float], maximize: bool) -> None:
    """By the name of its metric or by its number, for all sources or for one, and with its own direction."""
    both = two_objectives()
    name_metrics(both, "loss", "accuracy")
    for said in (objective, {"both": objective}):
        task = read_one(both, objective=said)
        assert task.y.tolist() == y
        assert task.maximize is maximize


def test_an_objective_that_is_not_there_is_answered_with_those_that_are() -> None:
    """No name, a wrong name, a name for a study that has one objective without any, and for no source at all."""
    both = two_objectives()
    undecided = read_one(both)
    assert undecided.undecided
    assert {name: own.maximize for name, own in undecided.objectives.items()} == {"0": False, "1": True}
    assert "it has 2 objectives, '0', '1'" in undecided.notes
    name_metrics(both, "loss", "accuracy")
    with pytest.raises(InputError, match=r"Study 'both' has no objective 'los'\. There are 'loss', 'accuracy'\."):
        read_one(both, objective="los")
    with pytest.raises(InputError, match=r"Study 'past' has no objective 'loss'\. There is '0'\."):
        read_one(study(), objective={"past": "loss"})
    with pytest.raises(InputError, match=r"objective: there is no source 'psat'\. Did you mean 'past'\?"):
        read_one(study(), objective={"psat": "loss"})
    with pytest.raises(InputError, match="objective must be the name"):
        read_one(study(), objective=0.5)


def test_a_name_for_all_does_not_concern_a_study_with_one_objective() -> None:
    """It may be the column of a table next to it; where the study's own has another name, that is noted."""
    past = study()
    assert read_one(past, objective="loss").notes == ()
    name_metrics(past, "error")
    assert read_one(past, objective="loss").notes == ("it has one objective, 'error', which is taken as 'loss'",)
    assert read_one(past, objective="error").notes == ()


def test_a_list_of_trials_is_a_source() -> None:
    """In the new study's direction, unfinished ones left out, one of several values by its number."""
    task = read_one([trial(0.1, 1.0), trial(0.2, 2.0, kind="b"), trial(0.3, state=TrialState.FAIL)])
    assert task.name == "source 1"
    assert task.y.tolist() == [1.0, 2.0]
    assert math.isnan(task.rows["kind"][0])  # None may be a category
    assert task.rows["kind"][1] == "b"
    assert task.maximize is None
    assert task.identity is None
    assert task.distributions is not None
    assert task.distributions["x"] == X
    assert task.notes == ("trials without a final value are left out: 1 failed",)
    assert read_one(two_objectives().trials, objective="1").y.tolist() == [10.0, 20.0]
    assert read_one(tuple(study().trials)).y.tolist() == [1.0, 2.0]


def test_a_list_of_trials_may_be_unusable_or_wrong() -> None:
    """No trials are skipped; trials of two kinds of study are refused."""
    assert len(read_sources([[], failed("f").trials, study()]).skipped) == 2
    assert list(read_one(two_objectives().trials).objectives) == ["0", "1"]
    with pytest.raises(InputError, match="some trials have 1 values and others 2"):
        read_one([trial(0.1, 1.0), trial(0.1, 1.0, 2.0)])
    with pytest.raises(InputError, match="put the list in brackets"):
        read_sources(study().trials)


def test_studies_that_teach_nothing_are_skipped() -> None:
    """Empty, only failed, only infinite or missing values: a line each, and the rest goes on."""
    inf = float("inf")
    nothing: list[Any] = [
        study("empty", y=()),
        failed("failed"),
        study("infinite", y=(inf, -inf)),
        pd.DataFrame({"x": [1.0], "loss": [None]}),
    ]
    sources = read_sources([*nothing, study()], objective="loss")
    assert [task.name for task in sources] == ["past"]
    assert sources.skipped == (
        "Study 'empty' has no finished trial to learn from (no trials at all).",
        "Study 'failed' has no finished trial to learn from (1 failed).",
        "Study 'infinite' has no result to learn from (of 2 none is a finite number).",
        "source 4 (DataFrame) has no result to learn from (of 1 none is a finite number).",
    )
    with pytest.raises(InputError, match=r"nothing to start from(.*\n){4}source 4"):
        read_sources(nothing, objective="loss")


def test_some_infinite_values_stay() -> None:
    """They count as the worst or best finite one, which is said when the source is aligned."""
    task = read_one(study(y=(1.0, float("inf"), 2.0)))
    assert task.y.tolist() == [1.0, float("inf"), 2.0]
    (data,) = align([task], {"x": X}).datasets
    assert data.y.tolist() == [1.0, 2.0, 2.0]


def test_a_source_of_another_direction_is_kept_and_flagged() -> None:
    """The direction is the study's own, and what is done about it is told."""
    task = read_one(study(direction="maximize"))
    assert task.maximize is True
    assert any("its sign is turned round" in str(decision) for decision in align([task], {"x": X}).decisions)


def test_categories_that_are_no_more_stay_as_evidence() -> None:
    """A level of the past which the new space lacks is never suggested, and the report says so."""
    task = read_one([trial(0.1, 1.0, kind="a"), trial(0.2, 2.0, kind="b")])
    space = {"x": X, "kind": optuna.distributions.CategoricalDistribution(["a", "c"])}
    assert any("'b': unknown here" in str(decision) for decision in align([task], space).decisions)


def test_a_missing_value_of_a_study_is_a_branch_not_taken() -> None:
    """Of studies, lists of trials and tables of trials, but not of any other table."""
    past = study()
    past.add_trial(trial(0.4, 3.0, kind="a"))
    for source in (past, past.trials, past.trials_dataframe(), past.trials_dataframe(multi_index=True)):
        task = read_one(source)
        assert task.conditional
        assert task.rows["kind"].isna().tolist() == [True, True, False]
    assert not read_one(
        past.trials_dataframe()[["params_x", "value"]].rename(columns=str.upper), objective="VALUE"
    ).conditional


# ── which study it is ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_study_is_recognised_as_itself(tmp_path: Path) -> None:
    """However it is read, and whatever it has done since; another study of the same name is another one."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    first, other = study(storage=url), study()
    for source in (first, (url, "past"), url):
        task = read_one(source)
        assert task.identity == ("past", first.trials[0].datetime_start)
        assert is_same_study(task, first)
        assert is_same_study(task, optuna.load_study(study_name="past", storage=url))
        assert not is_same_study(task, other)
        assert not is_same_study(task, study("future"))
    assert not is_same_study(read_one(first.trials), first)


def test_trials_are_not_loaded_to_tell_studies_of_other_names_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a study of a database is the new one is asked for every source, so it must be cheap."""
    task, other = read_one(study()), study("future")

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(InMemoryStorage, "get_all_trials", refuse)
    assert not is_same_study(task, other)


def test_a_study_whose_first_trial_waits_is_recognised_later() -> None:
    """A trial that was enqueued has not begun yet; once it has, the study is still the same."""
    target = study(y=())
    target.enqueue_trial({"x": 0.5})
    target.add_trial(trial(0.1, 1.0))
    task = read_one(target)
    assert is_same_study(task, target)
    target.tell(target.ask({"x": X}), 2.0)
    assert target.trials[0].datetime_start != task.identity[1]  # type: ignore[index]
    assert is_same_study(task, target)


def test_names_are_told_apart_without_losing_the_identity() -> None:
    """Two studies of one name get a number; their identity keeps the name that they have."""
    tasks = read_sources([study(), study()])
    assert [task.name for task in tasks] == ["past", "past (2)"]
    assert [task.identity and task.identity[0] for task in tasks] == ["past", "past"]
    np.testing.assert_array_equal(tasks[0].y, tasks[1].y)
