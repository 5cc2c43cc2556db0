"""Past data from Optuna, tables and files."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.sources.past import read_sources
from headstart.sources.raw import RawTask

X = FloatDistribution(0.0, 1.0)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def read_source(source: Any, **options: Any) -> RawTask:
    """The only task of one source."""
    (task,) = read_sources([source], **options)
    return task


def study(direction: Any = "minimize", **options: Any) -> optuna.Study:
    made = optuna.create_study(direction=direction, study_name="past", **options)
    made.add_trial(create_trial(params={"x": 0.1}, distributions={"x": X}, value=1.0))
    both = {"x": X, "kind": CategoricalDistribution(["a", "b"])}
    made.add_trial(create_trial(params={"x": 0.2, "kind": "b"}, distributions=both, value=2.0))
    made.add_trial(create_trial(state=TrialState.FAIL, params={"x": 0.3}, distributions={"x": X}))
    made.add_trial(create_trial(state=TrialState.PRUNED, params={"x": 0.4}, distributions={"x": X}, value=9.0))
    return made


def test_a_study_gives_its_finished_trials() -> None:
    """Parameters that a trial did not have are missing, failed and pruned trials are left out and counted."""
    task = read_source(study("maximize"))
    assert task.name == "past"
    assert task.parameters == ("x", "kind")
    assert task.rows["x"].tolist() == [0.1, 0.2]
    assert math.isnan(task.rows["kind"][0])  # None may be a category
    assert task.rows["kind"][1] == "b"
    assert task.y.tolist() == [1.0, 2.0]
    assert task.maximize is True
    assert task.distributions is not None
    assert set(task.distributions) == {"x", "kind"}
    assert len(task.notes) == 1
    assert "1 pruned" in task.notes[0]
    assert "1 fail" in task.notes[0]


def test_a_study_is_read_from_its_storage(tmp_path: Path) -> None:
    """A pair of URL and name gives the same, and so does the URL where there is one study."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    study(storage=url)
    for source in ((url, "past"), url):
        task = read_source(source)
        assert task.y.tolist() == [1.0, 2.0]
        assert task.maximize is False


def test_a_storage_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A missing file is not made, an unknown study is answered with the known ones, and a password is not shown."""
    missing = tmp_path / "none.db"
    with pytest.raises(InputError, match="there is no file"):
        read_source((f"sqlite:///{missing}", "past"))
    assert not missing.exists()
    url = f"sqlite:///{tmp_path / 'past.db'}"
    study(storage=url)
    with pytest.raises(InputError, match=r"no study 'psat'\. It has 'past'"):
        read_source((url, "psat"))
    (tmp_path / "text.db").write_text("no database at all, but long enough to look like one" * 20)
    with pytest.raises(InputError, match="cannot be read"):
        read_source((f"sqlite:///{tmp_path / 'text.db'}", "past"))
    pytest.importorskip("psycopg2")
    with pytest.raises(InputError, match="cannot be read") as caught:
        read_source(("postgresql+psycopg2://me:secret@127.0.0.1:1/db", "past"))
    assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="no URL"):
        read_source(("past.csv", "loss"))


def test_studies_that_cannot_be_learnt_from_are_refused() -> None:
    """They have no finished trial."""
    with pytest.raises(InputError, match="no finished trial"):
        read_source(optuna.create_study(directions=["minimize", "maximize"]))
    with pytest.raises(InputError, match="no finished trial"):
        read_source(optuna.create_study())


def test_a_table_gives_its_other_columns() -> None:
    """The objective's column is the result, an empty cell none, and every other column a parameter."""
    frame = pd.DataFrame({"x": [1, 2, 3], "kind": ["a", None, "b"], "loss": [0.5, None, 0.1]})
    task = read_source(frame, objective="loss")
    assert task.parameters == ("x", "kind")
    np.testing.assert_array_equal(task.y, [0.5, np.nan, 0.1])
    assert task.maximize is None


def test_a_table_of_trials_is_recognised() -> None:
    """``Study.trials_dataframe`` needs no objective, and unfinished trials are left out."""
    task = read_source(study().trials_dataframe())
    assert task.parameters == ("kind", "x")
    assert task.y.tolist() == [1.0, 2.0]
    assert task.notes == ("2 unfinished trials are left out",)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (None, "which column holds the results is not said.*'x', 'loss', 'when'"),
        ("los", "has no column 'los'.*'loss'"),
        ("loss", "row 2: loss = 'bad' is not a number"),
        ("when", "row 1: when = .* is not a number"),
    ],
)
def test_a_table_without_results_is_refused(objective: str | None, message: str) -> None:
    """The message names the table, the row and the columns there are."""
    day = datetime.datetime(2024, 1, 1)
    frame = pd.DataFrame({"x": [1, 2], "loss": [1.0, "bad"], "when": pd.to_datetime([day, day])})
    with pytest.raises(InputError, match=message):
        read_source(frame, objective=objective)


def test_a_file_is_a_table(tmp_path: Path) -> None:
    """A CSV file with a decimal comma, as text or path; "failed" is no result."""
    file = tmp_path / "march.csv"
    file.write_text("x;loss\n0,5;1,5\n0,7;failed\n")
    for path in (file, str(file)):
        task = read_source(path, objective="loss")
        assert task.name == "march"
        assert task.rows["x"].tolist() == [0.5, 0.7]
        np.testing.assert_array_equal(task.y, [1.5, np.nan])
    with pytest.raises(InputError, match=r"april\.csv"):
        read_source(tmp_path / "april.csv", objective="loss")
    with pytest.raises(InputError, match=r"looks like a database: give its URL, 'sqlite:///past\.db'"):
        read_source("past.db")


def test_a_dataset_needs_the_space_its_columns_stand_for() -> None:
    """Its coordinates become values of the space, column by column."""
    data = Dataset(torch.tensor([[0.25, 1.0, 0.0], [1.0, 0.0, 1.0]], dtype=torch.float64), [1.0, 2.0], "old")
    space = {"x": FloatDistribution(0.0, 8.0), "kind": CategoricalDistribution(["a", "b"])}
    task = read_source(data, space=space)
    assert task.name == "old"
    assert task.rows.to_dict("records") == [{"x": 2.0, "kind": "a"}, {"x": 8.0, "kind": "b"}]
    with pytest.raises(InputError, match="no names"):
        read_source(data)
    with pytest.raises(InputError, match=r"has 1 columns.*has 3"):
        read_source(data, space={"x": X})
    with pytest.raises(InputError, match="unit cube"):
        read_source(Dataset(data.X * 2, data.y), space=space)


def test_anything_else_is_refused() -> None:
    """The message says what a source may be, and a single source is not a list."""
    with pytest.raises(InputError, match=r"Study.*DataFrame.*CSV.*but one is a dict"):
        read_sources([{"x": [1, 2]}])
    for single in ("past.csv", pd.DataFrame({"x": [1]}), ("sqlite:///past.db", "past")):
        with pytest.raises(InputError, match="in brackets"):
            read_sources(single)


def test_sources_have_names_of_their_own() -> None:
    """Two sources of one name are told apart, and tables are numbered."""
    frame = pd.DataFrame({"x": [1.0], "loss": [1.0]})
    tasks = read_sources([study(), study(), frame, RawTask("mine", frame[["x"]], np.zeros(1))], objective="loss")
    assert [task.name for task in tasks] == ["past", "past (2)", "source 3", "mine"]


def test_rows_and_values_must_belong_together() -> None:
    """One value a row, and no column twice."""
    with pytest.raises(InputError, match="2 rows"):
        RawTask("mine", pd.DataFrame({"x": [1, 2]}), np.zeros(3))
    with pytest.raises(InputError, match="'x' appears more than once"):
        RawTask("mine", pd.DataFrame([[1, 2]], columns=["x", "x"]), np.zeros(1))
