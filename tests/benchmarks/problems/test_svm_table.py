"""The SVM table that comes with headstart, and the script that made it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
import torch

from benchmarks.problems import shared_tables as svm_table
from benchmarks.problems.shared_tables import UNUSED_DEGREE, UNUSED_GAMMA, svm_sklearn
from benchmarks.problems.table import TableProblem
from headstart.data.ranges import Choices, FloatRange

FILE = Path(svm_table.__file__).parent / "data" / "svm_sklearn.csv.gz"
SCRIPT = Path(__file__).parents[3] / "scripts" / "make_svm_table.py"


@pytest.fixture(name="rows", scope="module")
def _rows() -> pd.DataFrame:
    return pd.read_csv(str(FILE))


def test_the_table_has_24_tasks_of_300_rows_and_nothing_was_left_out() -> None:
    """Every row of the file is in the table, the inputs are the paper's four."""
    table = svm_sklearn()
    assert len(table.tasks) == 24
    assert {data.n for data in table.tasks.values()} == {300}
    cost, gamma, degree, kernel = table.space.distributions.values()
    assert [isinstance(one, FloatRange) and one.log for one in (cost, gamma, degree)] == [True, True, False]
    assert kernel == Choices(("linear", "poly", "rbf"))
    assert table.d == 6


def test_values_that_a_kernel_does_not_use_are_in_the_middle(rows: pd.DataFrame) -> None:
    """The linear kernel has neither gamma nor degree, the radial one no degree: there the table has 1 and 3.5."""
    assert (rows.loc[rows["kernel"] == "linear", "gamma"] == UNUSED_GAMMA).all()
    assert (rows.loc[rows["kernel"] != "poly", "degree"] == UNUSED_DEGREE).all()
    assert set(rows.loc[rows["kernel"] == "poly", "degree"]) == {2.0, 3.0, 4.0, 5.0}
    X = torch.cat([data.X for data in svm_sklearn().tasks.values()])
    linear = X[:, 3] > 0
    assert torch.allclose(X[linear][:, 1:3], torch.full((), 0.5, dtype=torch.float64), atol=5e-3)


def test_every_task_has_an_optimum_that_is_hard_to_meet(rows: pd.DataFrame) -> None:
    """No task is nearly constant; few rows attain its minimum, and no more than a third come near it."""
    for _, error in rows.groupby("task")["error"]:
        span = error.max() - error.min()
        assert span > 0.05
        assert (error == error.min()).mean() < 0.1
        assert (error <= error.min() + 0.02 * span).mean() <= 1 / 3


def test_the_tasks_differ(rows: pd.DataFrame) -> None:
    """Each of the three kernels is the best somewhere, and the best costs are far apart."""
    best = rows.loc[rows.groupby("task")["error"].idxmin()]
    assert set(best["kernel"]) == {"linear", "poly", "rbf"}
    assert best["cost"].max() / best["cost"].min() > 1e4


def test_the_file_is_small() -> None:
    """It weighs less than 100 kB."""
    assert len(FILE.read_bytes()) < 100_000


def test_the_problem_is_that_of_the_paper() -> None:
    """Ten sources of 60 rows, and the 300 rows of the target to choose from."""
    drawn = TableProblem(svm_sklearn()).draw(range(5), 30)
    assert [source.X.shape for source in drawn.sources] == [(5, 60, 6)] * 10
    assert drawn.candidates is not None
    assert drawn.candidates.X.shape == (5, 300, 6)
    assert drawn.candidates.real.all()


@pytest.mark.slow
def test_loading_needs_no_scikit_learn() -> None:
    """The table is read where scikit-learn cannot be imported."""
    root = str(Path(sys.modules["headstart"].__file__ or "").parents[1])
    code = f"""
import sys
sys.path.insert(0, {root!r})
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
from benchmarks.problems.shared_tables import svm_sklearn
from benchmarks.problems.table import TableProblem
print(len(svm_sklearn().tasks))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "24"


# ── the script ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(name="script", scope="module")
def _script() -> ModuleType:
    pytest.importorskip("sklearn", reason="the extra svm is not installed")
    spec = importlib.util.spec_from_file_location("make_svm_table", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("task", ["iris_1_2", "wine"])
def test_the_script_makes_the_rows_of_the_file(script: ModuleType, rows: pd.DataFrame, task: str) -> None:
    """The first configurations of a task, and their errors but for a few predictions, come out again."""
    X, y = next((X, y) for name, X, y in script.tasks(0) if name == task)
    configs = script.configurations(0, task, 300)
    recorded = rows[rows["task"] == task].reset_index(drop=True)
    assert [tuple(c) for c in configs] == list(recorded[["cost", "gamma", "degree", "kernel"]].itertuples(index=False))
    again = script.errors(X, y, configs[:5], 0)
    assert again == pytest.approx(recorded["error"][:5].tolist(), abs=5e-3)  # libsvm's last digits are the machine's


def test_a_killed_script_goes_on_where_it_was(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A partial file that ends in the middle of a line is repaired, and completed to the same rows."""
    iris = [task for task in script.tasks(0) if task[0] == "iris_1_2"]
    monkeypatch.setattr(script, "tasks", lambda seed: iter(iris))
    whole = script.compute(tmp_path / "whole.csv", 0, 6, 1)
    cut = tmp_path / "cut.csv"
    cut.write_text((tmp_path / "whole.csv").read_text()[:-20])
    pd.testing.assert_frame_equal(script.compute(cut, 0, 6, 1), whole)
    assert len(whole) == 6
    assert "5 rows are there, 1 are to do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        pytest.param([0.10, 0.11, 0.12], "nearly constant", id="constant"),
        pytest.param([0.1] * 3 + [0.2 + 0.01 * i for i in range(9)], "25% of its rows attain the minimum", id="ties"),
        pytest.param(
            [0.1, *(0.1001 + 1e-5 * i for i in range(5)), *[0.2 + 0.1 * i for i in range(6)]], "50%", id="easy"
        ),
        pytest.param([0.1 + 0.05 * i for i in range(12)], "^$", id="kept"),
    ],
)
def test_tasks_that_teach_nothing_are_left_out(script: ModuleType, errors: list[float], reason: str) -> None:
    """Nearly constant tasks, and tasks whose minimum is met or nearly met by many rows, have a reason against them."""
    assert pd.Series([script.why_not(pd.Series(errors))]).str.contains(reason).all()
