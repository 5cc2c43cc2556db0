"""Tables of evaluations: what is read and left out, and the problems drawn from them."""

from __future__ import annotations

import gzip
import logging
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from benchmarks.problems.table import TableProblem, TaskTable, read_table
from headstart import InputError
from headstart.data.dataset import require_unit_cube
from headstart.data.ranges import Choices, FloatRange


def _frame(tasks: int = 3, rows: int = 8) -> pd.DataFrame:
    """Tasks a, b, c …: one text column, one numeric, one to be read as log, and an objective."""
    draw = np.random.default_rng(0)
    n = tasks * rows
    return pd.DataFrame(
        {
            "task": np.repeat([chr(ord("a") + i) for i in range(tasks)], rows),
            "kernel": draw.choice(["rbf", "linear", "poly"], n),
            "width": draw.uniform(3, 7, n),
            "cost": 10 ** draw.uniform(-3, 3, n),
            "error": draw.uniform(0, 1, n),
        }
    )


def _read(source: Any, name: str = "table", **options: Any) -> TaskTable:
    usual: dict[str, Any] = {"objective": "error", "inputs": ("kernel", "width", "cost"), "log": ("cost",)}
    return read_table(source, name=name, **(usual | options))


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_inputs_lie_in_the_unit_cube() -> None:
    """A table of text and numbers without gaps has all its rows, in the unit cube."""
    table = _read(_frame())
    assert list(table.tasks) == ["a", "b", "c"]
    kernel, width, cost = table.space.distributions.values()
    assert kernel == Choices(("linear", "poly", "rbf"))
    assert isinstance(width, FloatRange)
    assert isinstance(cost, FloatRange)
    assert (width.log, cost.log, table.d) == (False, True, 5)
    for name, data in table.tasks.items():
        assert (data.n, data.d, data.name) == (8, 5, name)
        require_unit_cube(data, name)


def test_two_levels_are_at_distance_one() -> None:
    """Rows that differ in one categorical column alone are at distance 1, whatever the two levels are."""
    frame = pd.DataFrame({"task": "a", "x": ["r", "s", "t"], "error": [1.0, 2.0, 3.0]})
    X = _read(frame, inputs=("x",)).tasks["a"].X
    assert torch.allclose(torch.pdist(X), torch.ones(3, dtype=torch.float64))
    assert set(X.flatten().tolist()) == {0.0, 1 / math.sqrt(2)}


def test_numbers_are_scaled_over_the_whole_table() -> None:
    """0 and 1 are the least and the greatest value of all tasks together; of a log column 1, 10, 100 are 0, ½, 1."""
    frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [2.0, 4.0, 4.0, 6.0], "error": [1.0, 2.0, 3.0, 4.0]})
    table = _read(frame, inputs=("x",))
    assert table.tasks["a"].X.flatten().tolist() == [0.0, 0.5]
    assert table.tasks["b"].X.flatten().tolist() == [0.5, 1.0]
    frame = pd.DataFrame({"task": "a", "x": [1.0, 10.0, 100.0], "error": [1.0, 2.0, 3.0]})
    X = _read(frame, inputs=("x",), log=("x",)).tasks["a"].X
    assert torch.allclose(X.flatten(), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))


def test_the_last_bit_of_a_number_is_no_other_data() -> None:
    """Machines may read the same file with another last bit; a value that is another one changes the fingerprint."""

    def fingerprint(x: float, y: float) -> str:
        frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [0.0, x, 1.0, 0.9], "error": [y, 2.0, 3.0, 4.0]})
        return _read(frame, inputs=("x",)).fingerprint

    x, y = 0.3, 0.1
    assert fingerprint(math.nextafter(x, 1), math.nextafter(y, 1)) == fingerprint(x, y)
    assert len({fingerprint(x, y), fingerprint(x + 1e-6, y), fingerprint(x, y + 1e-6)}) == 3


def test_an_objective_to_be_maximised_is_negated() -> None:
    """The core minimises, so the best row of a maximised objective has the lowest y."""
    frame = _frame()
    up, down = _read(frame, maximize=True), _read(frame)
    assert torch.equal(up.tasks["b"].y, -down.tasks["b"].y)


def test_true_and_false_are_categorical() -> None:
    """A column of booleans is one-hot."""
    frame = _frame().assign(shrink=[True, False] * 12)
    assert _read(frame, inputs=("shrink", "width")).space.distributions["shrink"] == Choices(("False", "True"))


def test_a_file_is_read_like_a_frame(tmp_path: Path) -> None:
    """Gzipped or not; None is a level, and an empty field is missing."""
    frame = _frame()
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    assert {_read(tmp_path / name).fingerprint for name in ("t.csv", "t.csv.gz")} == {_read(frame).fingerprint}
    text = (tmp_path / "t.csv").read_text().replace("rbf", "None").replace("linear", "", 1)
    (tmp_path / "t.csv").write_text(text)
    table = _read(tmp_path / "t.csv")
    assert table.space.distributions["kernel"] == Choices(("None", "linear", "poly"))
    assert sum(data.n for data in table.tasks.values()) == len(frame) - 1


def test_what_says_nothing_is_left_out() -> None:
    """Rows with a gap or an infinite value, tasks whose objective is constant, and constant inputs."""
    frame = _frame()
    frame.loc[0, "width"], frame.loc[1, "error"] = np.nan, np.inf
    frame.loc[frame.task == "b", "error"] = 0.5
    table = _read(frame.assign(cost=1.0), log=())
    assert {name: data.n for name, data in table.tasks.items()} == {"a": 6, "c": 8}
    assert list(table.space.distributions) == ["kernel", "width"]


def test_a_table_that_cannot_be_used_is_refused() -> None:
    """A column that is not there is named with those that are; so is a table without anything to learn."""
    with pytest.raises(InputError, match=r"table: there is no column colour in the table. There are: task, kernel"):
        _read(_frame(), inputs=("colour",))
    with pytest.raises(InputError, match="no task has two complete rows that differ in error"):
        _read(_frame().assign(error=1.0))


# ── problems ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(name="table", scope="module")
def _table() -> TaskTable:
    """Six tasks with 5, 20, 30, 30, 30, 30 rows."""
    frame = _frame(6, 30)
    cut = frame.groupby("task").cumcount() >= frame["task"].map({"a": 5, "b": 20}).fillna(30)
    return _read(frame[~cut], name="six")


def test_a_batch_has_a_target_and_sources_for_every_seed(table: TaskTable) -> None:
    """Sources are (P, rows, d), candidates are all rows of the target, and the regret is scaled by their span."""
    problem = TableProblem(table, n_sources=3, rows=10)
    drawn = problem.draw(range(7), 4)
    assert [source.X.shape for source in drawn.sources] == [(7, 10, 5)] * 3
    assert drawn.noise.shape == (7, 4)
    assert not drawn.noise.any()
    assert drawn.candidates is not None
    assert drawn.function is None
    for p, label in enumerate(drawn.labels):
        data, real = table.tasks[label], drawn.candidates.real[p]
        assert torch.equal(drawn.candidates.X[p][real], data.X)
        assert torch.equal(drawn.candidates.values[p][real], data.y)
        assert drawn.minimum[p] == data.y.min()
        assert drawn.scale[p] == data.y.max() - data.y.min()
    assert (problem.name, problem.d) == ("six[sources=3,rows=10]", 5)


def test_padding_is_never_the_best(table: TaskTable) -> None:
    """Targets of different length are padded with rows that are not real and have the value ∞."""
    drawn = TableProblem(table, n_sources=3, rows=10).draw(range(40), 4).candidates
    assert drawn is not None
    assert not drawn.real.all()
    assert drawn.values[~drawn.real].isposinf().all()


def test_a_seed_is_what_it_is_when_drawn_alone(table: TaskTable) -> None:
    """Nothing of an instance depends on the seeds drawn with it, or on the order of the draws."""
    problem = TableProblem(table, n_sources=3, rows=10)
    many = problem.draw([3, 0, 5], 4)
    for p, seed in enumerate([3, 0, 5]):
        alone = problem.draw([seed], 4)
        assert alone.labels[0] == many.labels[p]
        for a, b in zip(alone.sources, many.sources, strict=True):
            assert torch.equal(a.X[0], b.X[p])
            assert torch.equal(a.y[0], b.y[p])


def test_source_rows_are_rows_of_other_tasks_without_repeats(table: TaskTable) -> None:
    """The rows of a source all come from one task, each once, and that task is not the target or another source."""
    drawn = TableProblem(table, n_sources=3, rows=10).draw(range(12), 4)
    for p, target in enumerate(drawn.labels):
        met = {target}
        for source in drawn.sources:
            rows = {tuple(row) for row in source.X[p].tolist()}
            assert len(rows) == 10
            (task,) = [t for t, data in table.tasks.items() if rows <= {tuple(row) for row in data.X.tolist()}]
            assert task not in met
            met.add(task)


def test_fewer_rows_and_sources_are_a_part_of_more(table: TaskTable) -> None:
    """Asking for more rows or sources keeps the target, and those that were there."""
    few, more = TableProblem(table, 2, 7).draw([0, 1], 4), TableProblem(table, 4, 12).draw([0, 1], 4)
    assert few.labels == more.labels
    for p in range(2):
        for a, b in zip(few.sources, more.sources, strict=False):
            # the task with 20 rows is long enough for both
            assert torch.equal(a.X[p], b.X[p, :7])


def test_short_tasks_are_no_sources_but_may_be_targets(table: TaskTable) -> None:
    """A task with fewer rows than asked is never a source, and is a target at times."""
    problem = TableProblem(table, n_sources=2, rows=25)
    assert {"a", "b"} < set(problem.draw(range(60), 4).labels)


def test_a_target_that_is_shorter_than_the_run_is_passed_over_and_logged(
    table: TaskTable, caplog: pytest.LogCaptureFixture
) -> None:
    """With 10 evaluations a task of 5 rows is no target; the other seeds keep theirs."""
    problem = TableProblem(table, n_sources=2, rows=10)
    short = problem.draw(range(30), 4).labels
    with caplog.at_level(logging.WARNING):
        long = problem.draw(range(30), 10).labels
    assert "a" in short
    assert "a" not in long
    assert all(s == t for s, t in zip(short, long, strict=True) if s != "a")
    assert "six: no targets, for they have fewer than 10 rows: a." in caplog.text


def test_all_rows_are_those_of_the_shortest_task(table: TaskTable) -> None:
    """``rows=None`` takes as many rows as the shortest task has, and takes all where tasks are equal."""
    problem = TableProblem(table, n_sources=2, rows=None, tasks=["b", "c", "d"])
    assert [source.n for source in problem.draw([0], 4).sources] == [20, 20]
    equal = TableProblem(table, n_sources=2, rows=None, tasks=["c", "d", "e"])
    assert equal.draw([0], 4).sources[0].n == 30
    assert equal.name == "six[sources=2,rows=all]"


def test_tasks_can_take_turns_as_the_target(table: TaskTable) -> None:
    """Each has the same share of the runs, its sources are all the others, and a seed is the same in any batch."""
    problem = TableProblem(table, n_sources=2, rows=10, tasks=["c", "d", "e"], in_turn=True)
    assert problem.name == "six[sources=2,rows=10,targets=in turn]"
    drawn = problem.draw(range(6), 4)
    assert drawn.labels == ("c", "d", "e", "c", "d", "e")
    assert problem.draw([4], 4).labels == ("d",)
    rows = [{tuple(x) for x in source.X[0].tolist()} for source in drawn.sources]
    others = {tuple(x) for task in ("d", "e") for x in table.tasks[task].X.tolist()}
    assert rows[0] | rows[1] <= others
    assert not problem.draw([0], 4).candidates.repeats  # type: ignore[union-attr]


def test_a_fingerprint_tells_data_apart(table: TaskTable) -> None:
    """It is the same for the same data, and another one for another value, task name or column."""
    frame = _frame()
    prints = [_read(f).fingerprint for f in (frame, frame.copy())]
    prints.append(_read(frame.assign(error=frame.error.where(frame.index > 0, 0.5))).fingerprint)
    prints.append(_read(frame.assign(task=frame.task.replace("a", "z"))).fingerprint)
    renamed = frame.rename(columns={"width": "breadth"})
    prints.append(_read(renamed, inputs=("kernel", "breadth", "cost")).fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def test_only_the_tasks_named_take_part(table: TaskTable) -> None:
    """``tasks`` limits both targets and sources."""
    problem = TableProblem(table, n_sources=1, rows=10, tasks=["c", "d"])
    assert set(problem.draw(range(12), 4).labels) == {"c", "d"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"n_sources": 6}, "a target and 6 sources of 10 rows need 7 such tasks.*of 6 tasks 5", id="sources"
        ),
        pytest.param({"rows": 31}, "of 6 tasks 0 have so many rows. Ask for fewer sources or rows", id="rows"),
        pytest.param({"tasks": []}, "of 0 tasks 0", id="no tasks"),
        pytest.param({"n_sources": 0}, "must be at least 1, but are 0 and 10", id="no source"),
        pytest.param({"rows": 0}, "must be at least 1, but are 2 and 0", id="no row"),
    ],
)
def test_a_problem_that_the_table_is_too_small_for_is_refused(
    table: TaskTable, options: dict[str, Any], message: str
) -> None:
    """The message says what was asked for, and what there is."""
    with pytest.raises(InputError, match=message):
        TableProblem(table, **({"n_sources": 2, "rows": 10} | options))


def test_more_evaluations_than_any_task_has_rows_are_refused(table: TaskTable) -> None:
    """No row is evaluated twice, so a run cannot be longer than the table."""
    with pytest.raises(InputError, match="six: no task has 31 rows to evaluate"):
        TableProblem(table, n_sources=2, rows=10).draw([0], 31)


def test_a_problem_can_be_sent_to_another_process(table: TaskTable) -> None:
    """A pickled problem draws the same instances."""
    problem = TableProblem(table, n_sources=2, rows=10)
    copy = pickle.loads(pickle.dumps(problem))
    assert torch.equal(copy.draw([4], 4).sources[1].X, problem.draw([4], 4).sources[1].X)


@pytest.mark.slow
def test_the_modules_load_without_pandas() -> None:
    """pandas is imported when a table is read, and not before."""
    root = Path(sys.modules["headstart"].__file__ or "").parents[1]
    modules = ("table", "shared_tables")
    code = f"import sys; sys.path.insert(0, {str(root)!r})\n"
    code += "".join(f"import benchmarks.problems.{name}\n" for name in modules)
    code += "print({'pandas', 'openml', 'sklearn', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() in ("set()", "{'sklearn'}")  # linear_operator may bring scikit-learn along
