"""Known errors, several objectives and constraints of past tables and studies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from optuna.distributions import FloatDistribution

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.sources.past import Sources, read_sources
from headstart.sources.raw import RawTask, error_var

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]

FRAME = pd.DataFrame(
    {
        "x": [0.1, 0.2, 0.3],
        "yield": [1.0, 2.0, 3.0],
        "size": [30.0, math.nan, 10.0],
        "yield_sd": [0.1, math.nan, 0.3],
        "excess": [-1.0, 0.5, math.nan],
    }
)


def read_one(source: Any, **options: Any) -> RawTask:
    (task,) = read_sources([source], **options)
    return task


def same(found: NDArray[np.float64] | None, expected: list[float]) -> None:
    assert found is not None
    np.testing.assert_allclose(found, expected, atol=1e-300)


def study(*values: tuple[float, ...], sds: list[Any] | None = None, names: list[str] | None = None) -> optuna.Study:
    made = optuna.create_study(study_name="past", directions=["minimize"] * len(values[0]))
    if names:
        made.set_metric_names(names)
    for i, own in enumerate(values):
        attributes = {} if sds is None or sds[i] is None else {"sd": sds[i]}
        made.add_trial(
            optuna.trial.create_trial(
                params={"x": i / 10}, distributions={"x": FloatDistribution(0, 1)}, values=own, user_attrs=attributes
            )
        )
    return made


def test_names_of_columns_may_be_spelled_otherwise() -> None:
    """Case does not matter in what is asked for, and the results are called as they were asked for."""
    task = read_one(FRAME, objective=["Yield", "size"], error={"Yield": "YIELD_SD"}, rename={"X": "lr"})
    assert task.parameters == ("lr", "excess")
    same(task.objectives["Yield"].error, [0.1, math.nan, 0.3])


@pytest.mark.parametrize("form", ["frame", "csv", "xlsx", "parquet"])
def test_a_column_with_errors_is_no_parameter(form: str, tmp_path: Path) -> None:
    """In every kind of table; a row without one is unknown."""
    source: Any = FRAME[["x", "yield", "yield_sd"]]
    if form != "frame":
        pytest.importorskip({"xlsx": "openpyxl", "parquet": "pyarrow"}.get(form, "pandas"))
        path = tmp_path / f"past.{form}"
        {"csv": source.to_csv, "xlsx": source.to_excel, "parquet": source.to_parquet}[form](path, index=False)
        source = path
    task = read_one(source, objective="yield", error="yield_sd")
    assert task.parameters == ("x",)
    assert task.error is not None
    same(task.error, [0.1, math.nan, 0.3])
    same(error_var(task.error), [0.01, 0.04, 0.09])
    assert read_one(source, objective="yield", error={"yield": "yield_sd"}).error is not None


def test_several_objectives_and_constraints_of_a_table() -> None:
    """By the names of their columns; what the table lacks is noted."""
    options: dict[str, Any] = {"error": {"yield": "yield_sd"}, "constraints": {"impurity": "excess"}}
    task = read_one(FRAME, objective=["yield", "size"], **options)
    assert task.parameters == ("x",)
    assert task.undecided
    assert list(task.objectives) == ["yield", "size"]
    same(task.objectives["size"].y, [30, math.nan, 10])
    assert task.objectives["size"].error is None
    same(task.objectives["yield"].error, [0.1, math.nan, 0.3])
    same(task.constraints["impurity"], [-1, 0.5, math.nan])
    less = read_one(FRAME.drop(columns="yield"), objective=["yield", "size"])
    assert list(less.objectives) == ["size"]
    assert "it has no objective 'yield'" in less.notes
    with pytest.raises(InputError, match="has no column 'a'"):
        read_one(FRAME, objective=["a", "b"])
    named = FRAME.copy()
    named.attrs["name"] = "mine"
    with pytest.raises(InputError, match="has no column 'cost'"):
        read_one(named, objective={"mine": ["yield", "cost"]})


def test_a_row_that_failed_in_one_objective_counts_for_the_other(tmp_path: Path) -> None:
    """As a laboratory writes it."""
    path = tmp_path / "past.csv"
    path.write_text("x;yield;size\n0,1;1,5;failed\n0,2;n/a;20\n0,3;2,5;30\n")
    task = read_one(path, objective=["yield", "size"])
    same(task.objectives["yield"].y, [1.5, math.nan, 2.5])
    same(task.objectives["size"].y, [math.nan, 20, 30])


@pytest.mark.parametrize("multi_index", [False, True])
def test_a_table_of_trials_has_its_attributes_and_constraints(multi_index: bool) -> None:
    """As ``trials_dataframe`` writes them."""
    made = optuna.create_study(directions=["minimize", "maximize"])

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("sd", 0.5)
        trial.set_constraint("heat", x - 0.5)
        return x, 2 * x

    made.optimize(objective, n_trials=3)
    task = read_one(made.trials_dataframe(multi_index=multi_index), error={"1": "sd"})
    x = [trial.params["x"] for trial in made.trials]
    assert task.parameters == ("x",)
    assert task.objectives["0"].error is None
    same(task.objectives["1"].error, [0.5] * 3)
    same(task.objectives["1"].y, [2 * v for v in x])
    same(task.constraints["heat"], [v - 0.5 for v in x])


def test_a_user_attribute_has_the_errors_of_a_study() -> None:
    """Of its one objective, of one by name, or of the one that counts."""
    same(
        read_one(study((1.0,), (2.0,), sds=[0.5, None]), error="sd").error,
        [0.5, math.nan],
    )
    assert read_one(study((1.0,), (2.0,)), error="sd").error is None
    both = study((1.0, 2.0), (3.0, 4.0), sds=[0.1, 0.2], names=["cost", "size"])
    by_name = read_one(both, error={"size": "sd"})
    assert by_name.error is None
    same(by_name.objectives["size"].error, [0.1, 0.2])
    chosen = read_one(both, objective="size", error="sd")
    same(chosen.error, [0.1, 0.2])
    assert chosen.objectives["cost"].error is None
    with pytest.raises(InputError, match=r"has 2 objectives, so it is not clear of which one 'sd' is the error. Give"):
        read_one(both, error="sd")
    assert read_one(both.trials, objective="1", error="sd").error is not None


@pytest.mark.parametrize("wrong", [0.0, -0.1, math.inf, "much", True])
def test_an_error_that_is_none_is_refused(wrong: Any, tmp_path: Path) -> None:
    """With the study and the trial, or the file and the row, and what to do."""
    remedy = "which must be a number above 0. Correct it, or leave it out: then a typical one is taken"
    with pytest.raises(InputError, match=rf"Study 'past', trial 1: the user attribute 'sd' = .*{remedy}"):
        read_one(study((1.0,), (2.0,), sds=[0.5, wrong]), error="sd")
    if wrong is not True:
        frame = FRAME.astype({"yield_sd": object})
        frame.loc[2, "yield_sd"] = wrong
        with pytest.raises(InputError, match=rf"DataFrame\), row 3: yield_sd = .*{remedy}"):
            read_one(frame, objective="yield", error="yield_sd")


def test_an_error_in_a_file_is_named_with_its_row(tmp_path: Path) -> None:
    """As a spreadsheet program counts; that of a row without a result does not matter."""
    path = tmp_path / "past.csv"
    path.write_text("x,yield,sd\n0.1,1,0.1\n0.2,n/a,0\n0.3,2,0\n")
    with pytest.raises(InputError, match=r"past.csv, row 4: sd = 0.0 is the standard error"):
        read_one(path, objective="yield", error="sd")


def test_the_errors_of_a_data_set_are_kept() -> None:
    """A variance of 0 stays as good as none."""
    X = torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64)
    data = Dataset(X, X[:, 0], error_var=torch.tensor([0.04, 0.0, 0.09], dtype=torch.float64))
    task = read_one(data, space={"x": FloatDistribution(0, 1)})
    same(error_var(task.error), [0.04, 0, 0.09])


def test_what_is_said_must_be_names() -> None:
    """Of columns and objectives."""
    with pytest.raises(InputError, match=r"error must be the name of a column or user attribute .*, but it is 3"):
        read_one(FRAME, objective="yield", error=3)
    with pytest.raises(InputError, match=r"constraints must be \{key: column of tables\}, but it is 'excess'"):
        read_one(FRAME, objective="yield", constraints="excess")
    with pytest.raises(InputError, match="objective names one thing twice"):
        read_one(FRAME, objective=["yield", "yield"])
    with pytest.raises(InputError, match="objective must be the name of a column or objective, or the number"):
        read_one(FRAME, objective=[0.5])


def test_all_studies_of_a_storage_have_their_errors(tmp_path: Path) -> None:
    """By the same attribute."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    optuna.copy_study(
        from_study_name="past", from_storage=study((1.0,), (2.0,), sds=[0.5, 0.2])._storage, to_storage=url
    )
    (task,) = Sources.from_storage(url, error="sd")
    same(task.error, [0.5, 0.2])


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_words_for_nothing_are_nothing_in_a_frame_as_in_a_file(form: str, tmp_path: Path) -> None:
    """In results, errors, constraints and settings; what failed has no result, and "-" may name a category."""
    source: Any = pd.DataFrame(
        {
            "x": ["0.1", "n/a", "-", 0.4, 0.5],
            "kind": ["a", "N/A", "-", "b", "a"],
            "loss": [1.5, "2.5", 3.5, "failed", "N/A"],
            "sd": [0.1, "n/a", "-", "", 0.3],
            "heat": ["nan", -1.0, "#N/A", "1.0", 2.0],
        }
    )
    if form == "csv":
        source.to_csv(tmp_path / "past.csv", index=False)
        source = tmp_path / "past.csv"
    task = read_one(source, objective="loss", error="sd", constraints={"heat": "heat"})
    same(task.y, [1.5, 2.5, 3.5, math.nan, math.nan])
    same(task.error, [0.1] + [math.nan] * 4)
    same(task.constraints["heat"], [math.nan, -1.0, math.nan, 1.0, 2.0])
    assert task.rows["kind"].tolist()[2] == "-"
    assert task.rows["kind"].isna().tolist() == [False, True, False, False, False]
    assert task.rows["x"].isna().tolist() == [False, True, True, False, False]


def test_a_table_that_knows_a_constraint_alone_is_used_for_it() -> None:
    """The others have the results; a column that no table has is told at once, with the nearest one."""
    hot = FRAME[["x", "excess"]]
    first, second = read_sources([FRAME[["x", "yield"]], hot], objective="yield", constraints={"impurity": "excess"})
    same(second.constraints["impurity"], [-1.0, 0.5, math.nan])
    assert second.parameters == ("x",)
    assert np.isnan(second.y).all()
    assert "it has no column 'excess'" in first.notes
    with pytest.raises(
        InputError, match=r"constraints: no table has a column 'exces', for 'impurity'\. Did .*'excess'"
    ):
        read_one(FRAME, objective="yield", constraints={"impurity": "exces"})
    with pytest.raises(InputError, match=r"has no column 'cost'\. There are 'x', 'excess'"):
        read_one(hot, objective="cost")
