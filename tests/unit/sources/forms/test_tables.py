"""Tables as sources: those of ``trials_dataframe`` in all their spellings, Parquet files and workbooks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState
from tests.unit.sources.forms.past_studies import failed, name_metrics, read_one, study, trial

from headstart.errors import InputError
from headstart.sources.past import read_sources

pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.fixture
def past() -> optuna.Study:
    made = study()
    made.add_trial(trial(0.4, state=TrialState.PRUNED))
    return made


@pytest.mark.parametrize("multi_index", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_the_table_of_a_study_needs_no_objective(past: optuna.Study, multi_index: bool, named: bool) -> None:
    """Its column is value, or value_loss where the metric has a name, also under a header of two rows."""
    if named:
        name_metrics(past, "loss")
    task = read_one(past.trials_dataframe(multi_index=multi_index))
    assert task.parameters == ("x",)
    assert task.y.tolist() == [1.0, 2.0]
    assert task.notes == ("1 unfinished trials are left out",)


@pytest.mark.parametrize("multi_index", [False, True])
@pytest.mark.parametrize(
    ("names", "objective", "y"),
    [
        ((), "1", [10.0, 20.0]),
        ((), "values_0", [1.0, 2.0]),
        (("loss", "accuracy"), "accuracy", [10.0, 20.0]),
        (("loss", "accuracy"), "values_loss", [1.0, 2.0]),
    ],
)
def test_one_of_the_objectives_of_a_table_of_trials(
    multi_index: bool, names: tuple[str, ...], objective: str, y: list[float]
) -> None:
    """By number, by the name of the metric or of the column; without a choice, all of them are read."""
    both = optuna.create_study(directions=["minimize", "maximize"])
    both.add_trials([trial(0.1, 1.0, 10.0), trial(0.2, 2.0, 20.0)])
    if names:
        name_metrics(both, *names)
    frame = both.trials_dataframe(multi_index=multi_index)
    assert read_one(frame, objective=objective).y.tolist() == y
    every = read_one(frame)
    assert every.undecided
    assert [own.y.tolist() for own in every.objectives.values()] == [[1.0, 2.0], [10.0, 20.0]]
    assert list(every.objectives) == (list(names) or ["0", "1"])
    with pytest.raises(InputError, match=r"has no objective 'f1'\. There are '"):
        read_one(frame, objective="f1")


def test_a_name_for_all_sources_does_not_concern_a_table_with_one_objective(past: optuna.Study) -> None:
    """A name for this source alone must be there; an attribute may be it."""
    frame = past.trials_dataframe()
    assert read_one(frame, objective="loss").y.tolist() == read_one(frame).y.tolist()
    frame.attrs["name"] = "mine"
    with pytest.raises(InputError, match=r"mine \(DataFrame\) has no objective 'loss'\. There is '0'\."):
        read_one(frame, objective={"mine": "loss"})
    frame["user_attrs_loss"] = [5.0, 6.0, 7.0]
    assert read_one(frame, objective="user_attrs_loss").y.tolist() == [5.0, 6.0]


def test_tables_without_rows_are_skipped(tmp_path: Path, past: optuna.Study) -> None:
    """An empty study has a table without columns, one that failed a table without results."""
    empty = tmp_path / "empty.csv"
    empty.write_text("x,loss\n")
    nothing = [optuna.create_study().trials_dataframe(), failed("failed").trials_dataframe(), empty]
    sources = read_sources([*nothing, past], objective="loss")
    assert len(sources) == 1
    first, second, third = sources.skipped
    assert first == "source 1 (DataFrame) has no rows: nothing was measured there."
    assert second == "source 2 (DataFrame) has no finished trial to learn from (1 trials)."
    assert "empty.csv has a header but no rows" in third


def test_a_table_of_trials_in_a_csv_file(tmp_path: Path, past: optuna.Study) -> None:
    """What ``trials_dataframe().to_csv(index=False)`` wrote is read as it was."""
    past.trials_dataframe().to_csv(tmp_path / "past.csv", index=False)
    task = read_one(tmp_path / "past.csv")
    assert task.rows["x"].tolist() == [0.0, 0.1]
    assert task.y.tolist() == [1.0, 2.0]
    assert task.conditional


def test_numbers_written_as_text_are_numbers() -> None:
    """A column of text in which every cell is a number."""
    assert read_one(pd.DataFrame({"x": [1, 2], "loss": ["1.5", "2.5"]}), objective="loss").y.tolist() == [1.5, 2.5]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_parquet_file_is_a_table(tmp_path: Path, past: optuna.Study) -> None:
    """Anybody's, or of trials."""
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": [1, 2], "kind": ["a", "b"], "loss": [0.5, None]}).to_parquet(tmp_path / "march.parquet")
    task = read_one(tmp_path / "march.parquet", objective="loss")
    assert task.name == "march"
    assert task.parameters == ("x", "kind")
    np.testing.assert_array_equal(task.y, [0.5, np.nan])
    past.trials_dataframe().to_parquet(tmp_path / "trials.pq")
    assert read_one(str(tmp_path / "trials.pq")).y.tolist() == [1.0, 2.0]
    (tmp_path / "bad.parquet").write_text("no table")
    with pytest.raises(InputError, match=r"bad\.parquet: the file is not what its name says"):
        read_one(tmp_path / "bad.parquet", objective="loss")


def test_a_workbook_is_a_table(tmp_path: Path) -> None:
    """Its first sheet; empty columns are left out, "failed" is no result, and rows are numbered as Excel does."""
    pytest.importorskip("openpyxl")
    path = tmp_path / "march.xlsx"
    table = pd.DataFrame({"x": [1.5, 2.5, 3.5], "kind": ["a", None, "b"], "": [None] * 3, "loss": [0.5, "failed", 0.7]})
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        table.to_excel(writer, index=False, sheet_name="runs")
        pd.DataFrame({"x": [2], "y": [1]}).to_excel(writer, index=False, sheet_name="other")
    task = read_one(path, objective="loss")
    assert task.parameters == ("x", "kind")
    np.testing.assert_array_equal(task.y, [0.5, np.nan, 0.7])
    assert task.notes[0].startswith("the sheet 'runs' is read")
    other = read_one(f"{path}#other", objective="y")
    assert (other.name, other.y.tolist()) == ("march", [1.0])
    table.assign(loss=[0.5, "good", 0.7]).to_excel(path, index=False, engine="openpyxl")
    with pytest.raises(InputError, match=r"march\.xlsx, row 3, column 'loss': 'good' is not a number"):
        read_one(path, objective="loss")
    table.rename(columns={"kind": None}).to_excel(path, index=False, engine="openpyxl")
    with pytest.raises(InputError, match=r"march\.xlsx, row 2: 'a' stands in column 2, which has no name"):
        read_one(path, objective="loss")
    path.write_text("no workbook")
    with pytest.raises(InputError, match=r"march\.xlsx: the file is damaged, cut off, or not the workbook"):
        read_one(path, objective="loss")
