"""The batches of past results: user attributes of trials, columns of tables and files, and those of data sets."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.sources.alignment import align
from headstart.sources.forms.naming import BatchName
from headstart.sources.past import Sources, read_sources
from headstart.sources.raw import RawTask

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
LOTS = ["A", "A", "B", None, "A"]  # the fourth says none
NUMBERS, NAMES = [0.0, 0.0, 1.0, 1.0, 0.0], ["A", "A", "B", "B", "A"]


def read_one(source: Any, batch: str | None = "lot", drift: float | None = None, **options: Any) -> RawTask:
    (task,) = read_sources([source], batch=BatchName.of(batch, drift), **options)
    return task


def labels(task: RawTask) -> list[str]:
    assert task.batch is not None
    return [task.batch.names[number] for number in task.batch.numbers.tolist()]


def trial_of(i: int, lot: Any, state: TrialState = TrialState.COMPLETE) -> FrozenTrial:
    return create_trial(
        params={"x": i / 10},
        distributions=SPACE,
        value=float(i) if state == TrialState.COMPLETE else None,
        state=state,
        user_attrs={} if lot is None else {"lot": lot},
    )


def study(lots: list[Any] = LOTS, **options: Any) -> optuna.Study:
    made = optuna.create_study(study_name="past", **options)
    made.add_trials([trial_of(i, lot) for i, lot in enumerate(lots)])
    return made


def frame(lots: list[Any] = LOTS) -> pd.DataFrame:
    n = len(lots)
    return pd.DataFrame({"x": np.arange(n) / 10, "lot": lots, "loss": np.arange(float(n))})


@pytest.mark.parametrize("form", ["study", "trials", "trials_dataframe", "levels", "frame", "csv", "xlsx", "parquet"])
def test_every_form_of_a_source_has_its_batches(form: str, tmp_path: Path) -> None:
    """One that says none is that of the row before; the column is no parameter. Without ``batch`` there are none."""
    options: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {
        "study": study,
        "trials": lambda: study().trials,
        "trials_dataframe": lambda: study().trials_dataframe(),
        "levels": lambda: study().trials_dataframe(multi_index=True),
    }
    source = makers.get(form, frame)()
    if form in ("frame", "csv", "xlsx", "parquet"):
        options = {"objective": "loss"}
    if form in ("csv", "xlsx", "parquet"):
        path = tmp_path / f"past.{form}"
        {"csv": source.to_csv, "xlsx": source.to_excel, "parquet": source.to_parquet}[form](path, index=False)
        source = path
    task = read_one(source, **options)
    assert task.parameters == ("x",)
    assert task.batch is not None
    assert task.batch.numbers.tolist() == NUMBERS
    assert labels(task) == NAMES
    assert read_one(source, None, **options).batch is None
    assert read_one(source, "operator", **options).batch is None


def test_a_column_may_be_spelled_otherwise_and_hold_numbers_or_pandas_own(tmp_path: Path) -> None:
    """Lots that are mostly numbers are names all the same, also in a file; pandas' NA says nothing."""
    lots = ["4711", "4712", "4712b", "4711"]
    path = tmp_path / "past.csv"
    frame(lots).rename(columns={"lot": "LOT"}).to_csv(path, index=False)
    assert labels(read_one(path, objective="loss")) == lots
    assert labels(read_one(frame([4711, 4712.0, 4712, np.nan]), objective="loss")) == ["4711", "4712", "4712", "4712"]
    missing = frame(["A", "B", None, "A"]).astype({"lot": "string"})
    assert labels(read_one(missing, objective="loss")) == ["A", "B", "B", "A"]
    assert read_one(frame([None, np.nan, ""]), objective="loss").batch is None


def test_trials_without_a_result_say_which_batch_begins() -> None:
    """A finished trial that says none is of the batch of the trial before it, also where that one has failed."""
    made = optuna.create_study(study_name="past")
    made.add_trials([trial_of(0, "A"), trial_of(1, "B", TrialState.FAIL), trial_of(2, None)])
    for source in (made, made.trials, made.trials_dataframe()):
        assert labels(read_one(source)) == ["A", "B"]


def test_dates_are_days_and_drift_in_days() -> None:
    """Texts as Optuna's storages keep them, dates in memory and timestamps; with a drift the times of day count."""
    texts: list[Any] = ["2026-03-01T08:00", "2026-03-01T17:30", "2026-03-03"]
    own = [datetime.datetime.fromisoformat(text) for text in texts]
    for lots in (texts, own):
        assert labels(read_one(study(lots))) == ["2026-03-01", "2026-03-01", "2026-03-03"]
        for source in (study(lots), frame(lots)):
            found = read_one(source, drift=30, objective="loss").batch
            assert found is not None
            np.testing.assert_allclose(np.diff(found.numbers), [9.5 / 24, 2 - 17.5 / 24])
            assert found.drift == 30
    assert labels(read_one(study([*texts, "trial run"]))) == [*texts, "trial run"]
    with pytest.raises(InputError, match=r"Study 'past', 'lot': 'trial run' is neither a date nor a number"):
        read_one(study([*texts, "trial run"]), drift=30)


def test_a_data_set_keeps_its_batches() -> None:
    """Its numbers and its drift, also where rows are left out; batches of other sources do not change them."""
    X = np.linspace(0, 1, 5)[:, None]
    data = Dataset(X, X[:, 0], batch=[3.0, 3.0, 8.5, 8.5, 3.0], drift=2.0)
    task = read_one(data, space=SPACE)
    assert labels(task) == ["3", "3", "8.5", "8.5", "3"]
    assert task.batch is not None
    assert task.batch.drift == 2
    (aligned,) = align([task.only(np.array([1, 2, 4]))], SPACE).datasets
    assert aligned.batch is not None
    assert aligned.batch.tolist() == [3, 8.5, 3]
    assert aligned.drift == 2


def test_rows_that_are_left_out_take_their_batches_with_them() -> None:
    """A row without a result has no place in the data, and still says which batch the next ones belong to."""
    table = frame(["A", "B", None, "C"])
    table.loc[1, "loss"] = np.nan
    (aligned,) = align([read_one(table, objective="loss")], SPACE).datasets
    assert aligned.batch is not None
    assert aligned.batch.tolist() == [0, 1, 2]


def test_all_studies_of_a_storage_have_their_batches(tmp_path: Path) -> None:
    """Read together, each numbers its own."""
    url = f"sqlite:///{tmp_path}/past.db"
    for name, lots in (("a", ["A", "B"]), ("b", ["B", "B"])):
        made = optuna.create_study(storage=url, study_name=name)
        made.add_trials([trial_of(i, lot) for i, lot in enumerate(lots)])
    first, second = Sources.from_storage(url, batch="lot")
    assert (labels(first), labels(second)) == (["A", "B"], ["B", "B"])
    assert [task.batch for task in Sources.from_storage(url)] == [None, None]


@pytest.mark.parametrize(
    ("batch", "drift", "message"),
    [
        (3, None, r"batch must be the name of a column or user attribute, but it is 3"),
        ("", None, r"batch must be the name"),
        ("day", -1, r"drift is the time over which shifts stay alike, a positive number: .* it is -1"),
        ("day", True, r"drift is the time"),
        (None, 30, r"drift is about the shifts of batches: name the column or user attribute"),
    ],
)
def test_what_names_no_batch_is_refused(batch: Any, drift: Any, message: str) -> None:
    """With what is expected."""
    with pytest.raises(InputError, match=message):
        Sources.from_storage(study()._storage, batch=batch, drift=drift)
