"""Tables of evaluations: what is read, what is left out and said, and the problems drawn from them."""

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

from benchmarks.problems.columns import ColumnKind
from benchmarks.problems.table import TableProblem, TaskTable, read_table
from headstart import InputError, MissingExtraError
from headstart.data.dataset import require_unit_cube


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


def _read(frame: Any, **options: Any) -> TaskTable:
    return read_table(frame, **({"task": "task", "objective": "error", "log": ("cost",)} | options))


def _said(table: TaskTable) -> str:
    return "\n".join(table.report)


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_inputs_lie_in_the_unit_cube_and_nothing_is_said_of_a_plain_table() -> None:
    """A table of text and numbers without gaps has all its rows, in the unit cube, and an empty report."""
    table = _read(_frame())
    assert list(table.tasks) == ["a", "b", "c"]
    assert table.report == ()
    assert [column.kind for column in table.columns] == [ColumnKind.CATEGORICAL, ColumnKind.NUMERIC, ColumnKind.LOG]
    assert table.d == 5
    for name, data in table.tasks.items():
        assert (data.n, data.d, data.name) == (8, 5, name)
        require_unit_cube(data, name)


def test_two_levels_are_at_distance_one() -> None:
    """Rows that differ in one categorical column alone are at distance 1, whatever the two levels are."""
    frame = pd.DataFrame({"task": "a", "x": ["r", "s", "t"], "error": [1.0, 2.0, 3.0]})
    X = _read(frame, log=()).tasks["a"].X
    assert torch.allclose(torch.pdist(X), torch.ones(3, dtype=torch.float64))
    assert set(X.flatten().tolist()) == {0.0, 1 / math.sqrt(2)}


def test_numbers_are_scaled_over_the_whole_table() -> None:
    """0 and 1 are the least and the greatest value of all tasks together; equal values stay equal across tasks."""
    frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [2.0, 4.0, 4.0, 6.0], "error": [1.0, 2.0, 3.0, 4.0]})
    table = _read(frame, log=())
    assert table.tasks["a"].X.flatten().tolist() == [0.0, 0.5]
    assert table.tasks["b"].X.flatten().tolist() == [0.5, 1.0]
    assert (table.columns[0].low, table.columns[0].high) == (2.0, 6.0)


def test_a_log_column_is_scaled_by_its_logarithm() -> None:
    """1, 10 and 100 become 0, ½ and 1."""
    frame = pd.DataFrame({"task": "a", "x": [1.0, 10.0, 100.0], "error": [1.0, 2.0, 3.0]})
    X = _read(frame, log="x").tasks["a"].X
    assert torch.allclose(X.flatten(), torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64))


def test_the_last_bit_of_a_number_is_no_other_data() -> None:
    """Machines may read the same file with another last bit; a value that is another one changes the fingerprint."""

    def fingerprint(x: float, y: float) -> str:
        frame = pd.DataFrame({"task": ["a", "a", "b", "b"], "x": [0.0, x, 1.0, 0.9], "y": [y, 2.0, 3.0, 4.0]})
        return read_table(frame, task="task", objective="y").fingerprint

    x, y = 0.3, 0.1
    assert fingerprint(math.nextafter(x, 1), math.nextafter(y, 1)) == fingerprint(x, y)
    assert len({fingerprint(x, y), fingerprint(x + 1e-6, y), fingerprint(x, y + 1e-6)}) == 3


def test_an_objective_to_be_maximised_is_negated() -> None:
    """The core minimises, so the best row of a maximised objective has the lowest y."""
    frame = _frame()
    up, down = _read(frame, maximize=True), _read(frame)
    assert torch.equal(up.tasks["b"].y, -down.tasks["b"].y)


def test_true_and_false_are_categorical() -> None:
    """A column of booleans is one-hot, also where some are missing."""
    frame = _frame().assign(shrink=[True, False] * 12)
    assert _read(frame).columns[-1].levels == ("False", "True")
    frame["shrink"] = frame["shrink"].astype(object)
    frame.loc[0, "shrink"] = None
    table = _read(frame)
    assert table.columns[-1].levels == ("False", "True")
    assert "1 of 24 (1 without shrink)" in _said(table)


@pytest.mark.parametrize("convert", ["category", "Float64", "string"])
def test_pandas_types_are_read_as_what_they_hold(convert: str) -> None:
    """Categories and nullable columns give the same table as plain ones."""
    frame = _frame()
    column = "width" if convert == "Float64" else "kernel"
    table = _read(frame.astype({column: convert}))
    assert torch.equal(table.tasks["a"].X, _read(frame).tasks["a"].X)


def test_the_index_of_a_frame_does_not_matter() -> None:
    """A frame with a strange index is read by position."""
    frame = _frame()
    table = _read(frame.set_index(pd.Index([7] * len(frame))))
    assert torch.equal(table.tasks["c"].X, _read(frame).tasks["c"].X)


@pytest.mark.parametrize("tasks", [[90, 90, 105, 105], [90.0, 90.0, 105.0, 105.0], ["90", "90", "105", "105"]])
def test_tasks_are_named_by_text(tasks: list[Any]) -> None:
    """A number as a task is its digits, without a decimal point."""
    frame = pd.DataFrame({"task": tasks, "x": [1.0, 2.0, 3.0, 4.0], "error": [1.0, 2.0, 3.0, 4.0]})
    assert list(_read(frame, log=()).tasks) == ["90", "105"]


def test_only_the_columns_asked_for_are_inputs() -> None:
    """``columns`` chooses the inputs, in its order."""
    table = _read(_frame(), columns=["cost", "kernel"])
    assert [column.name for column in table.columns] == ["cost", "kernel"]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".parquet.gz"])
def test_every_format_gives_the_same_table(tmp_path: Path, ending: str) -> None:
    """CSV and Parquet, gzipped or not, hold the same numbers; the table has the name of the file."""
    frame, path = _frame(), tmp_path / f"past{ending}"
    if ending.startswith(".csv"):
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
        frame.to_parquet(tmp_path / "past.parquet")
        if ending.endswith(".gz"):
            path.write_bytes(gzip.compress((tmp_path / "past.parquet").read_bytes()))
    table = _read(path)
    assert table.name == "past"
    for name, data in _read(frame).tasks.items():
        assert torch.allclose(table.tasks[name].X, data.X, rtol=0, atol=1e-14)
        assert torch.allclose(table.tasks[name].y, data.y, rtol=0, atol=1e-14)
    assert _read(str(path), name="mine").name == "mine"


def test_none_in_a_file_is_a_level_and_an_empty_field_is_missing(tmp_path: Path) -> None:
    """The text None is a level, for hyperparameters have it; nothing, NA and nan are missing."""
    path = tmp_path / "t.csv"
    path.write_text("task,x,error\na,None,1\na,sqrt,2\na,,3\na,NA,4\na,nan,5\n")
    table = _read(path, log=())
    assert table.columns[0].levels == ("None", "sqrt")
    assert "3 of 5 (3 without x)" in _said(table)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("absent.csv", None, "absent.csv: there is no such file", id="absent"),
        pytest.param("t.xlsx", b"x", r"t.xlsx: unknown format. Known are .csv, .csv.gz, .parquet", id="format"),
        pytest.param("t.csv", b"", "t.csv: the file is not what its name says", id="empty"),
        pytest.param("t.csv", b"a,b\n1,2\n1,2,3\n", "t.csv: the file is not what its name says.*line 3", id="ragged"),
        pytest.param("t.csv", b"a\n\xff\xfe\n", "t.csv: the file is not what its name says", id="not UTF-8"),
        pytest.param("t.csv.gz", b"a,b\n1,2\n", "t.csv.gz: the file cannot be read", id="not gzipped"),
        pytest.param("t.csv.gz", gzip.compress(b"a,b\n" * 99)[:-9], "t.csv.gz: .*cut off", id="cut off"),
        pytest.param(
            "t.csv", b"task;x;error\na;1;2\n", r"no column 'task', 'error'.*separator a comma", id="semicolons"
        ),
        pytest.param("t.csv", b"task,x,error\n", "t.csv: no task has two complete rows", id="header only"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    """The message names the file, what is wrong with it, and what would be right."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        _read(tmp_path / name, log=())


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    """A folder with the name of a table is said to be one."""
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        _read(tmp_path / "t.csv")


def test_parquet_that_is_none_is_named(tmp_path: Path) -> None:
    """Other bytes under a Parquet name are an ``InputError``."""
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    (tmp_path / "t.parquet").write_bytes(b"nothing of the sort")
    with pytest.raises(InputError, match=r"t.parquet: the file"):
        _read(tmp_path / "t.parquet")


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pyarrow cannot be imported, the message says what to install."""
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pip install headstart\[parquet\]"):
        _read(tmp_path / "t.parquet")


def test_neither_path_nor_frame_is_refused() -> None:
    """A list of rows is no table."""
    with pytest.raises(InputError, match="path or a pandas DataFrame, but this is a list"):
        _read([[1, 2]])


# ── what is left out, and said ────────────────────────────────────────────────────────────────────────────────────


def test_rows_with_gaps_are_left_out_and_counted_by_column() -> None:
    """Rows without a task, an objective or an input go; the report counts them for each column."""
    frame = _frame()
    frame.loc[0, "task"] = None
    frame.loc[[1, 9], "error"] = math.nan
    frame.loc[[9, 17], "kernel"] = None
    frame.loc[18, "width"] = math.inf
    table = _read(frame)
    assert [data.n for data in table.tasks.values()] == [6, 7, 6]
    assert "5 of 24 (1 without task, 2 without error, 2 without kernel, 1 without width)" in _said(table)


def test_a_task_without_complete_rows_is_left_out_and_named() -> None:
    """A task all of whose objectives are missing is gone, and said."""
    frame = _frame()
    frame.loc[frame["task"] == "b", "error"] = math.nan
    table = _read(frame)
    assert list(table.tasks) == ["a", "c"]
    assert "none of their rows is complete: 1 (b)" in _said(table)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
def test_a_task_with_a_constant_objective_is_left_out_and_named(scale: float) -> None:
    """max − min ≤ 1e-6 max |y| counts as constant, in any units of the objective; so does a single row."""
    frame = _frame(4)
    frame.loc[frame["task"] == "a", "error"] = 0.0
    frame.loc[frame["task"] == "b", "error"] = 0.5 + 1e-8 * np.arange(8)
    frame.loc[frame["task"] == "c", "error"] = 0.5 + 1e-4 * np.arange(8)
    frame = frame.drop(index=range(25, 32)).assign(error=frame["error"] * scale)
    table = _read(frame)
    assert list(table.tasks) == ["c"]
    assert "their error is constant: 3 (a, b, d)" in _said(table)


def test_constant_and_empty_columns_are_left_out_and_named() -> None:
    """A column with one value, be it text or a number, or with none, is no input."""
    frame = _frame().assign(blackbox="SVM", seed=3, comment=math.nan)
    table = _read(frame)
    assert [column.name for column in table.columns] == ["kernel", "width", "cost"]
    assert table.report == (
        "comment is left out: it is empty.",
        "blackbox is left out: it is SVM in every row.",
        "seed is left out: it is 3.0 in every row.",
    )


@pytest.mark.parametrize(
    ("column", "said"),
    [
        pytest.param(
            ["1", "2", "3"] * 8, "x is text, so categorical, though of its 3 levels all are numbers", id="text"
        ),
        pytest.param([1, 2, "auto"] * 8, "of its 3 levels all but auto are numbers", id="numbers and a word"),
        pytest.param([f"m{i}" for i in range(24)], "x is text with 24 levels in 24 rows", id="many levels"),
        pytest.param([1, 3, 5] * 8, "x has only the whole numbers 1, 3, 5: taken as numeric", id="few whole numbers"),
        pytest.param(range(24), "x is a different whole number in every row.*leave it out", id="row numbers"),
        pytest.param(np.logspace(-3, 3, 24), "x runs from 0.001 to 1000 on a linear scale. A log", id="wide"),
    ],
)
def test_what_could_be_meant_otherwise_is_said(column: Any, said: str) -> None:
    """A column whose kind or scale is doubtful is read by the rule, and the report says so."""
    frame = _frame().assign(x=pd.Series(list(column)))
    (sentence,) = _read(frame).report
    assert pd.Series([sentence]).str.contains(said).all()


def test_numbers_that_are_near_zero_by_chance_are_not_taken_for_a_log_scale() -> None:
    """Uniform numbers are no reason to speak of a log scale, however small the least of them."""
    assert _read(_frame().assign(x=np.linspace(1e-6, 1, 24))).report == ()


def test_rows_with_equal_inputs_are_kept_and_counted() -> None:
    """Repeated configurations stay, each a candidate of its own; the same inputs in two tasks are no repetition."""
    frame = pd.DataFrame({"task": ["a"] * 3 + ["b"] * 2, "x": [1.5, 1.5, 2.5, 1.5, 2.5], "error": range(5)})
    table = _read(frame, log=())
    assert table.tasks["a"].n == 3
    assert "inputs of another row of their task: 1." in _said(table)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            {"task": "dataset"}, "no column 'dataset'. There are: task, kernel, width, cost, error", id="task"
        ),
        pytest.param({"objective": "loss"}, "no column 'loss'. There are", id="objective"),
        pytest.param({"columns": ["cost", "gamma"]}, "no column 'gamma'", id="input"),
        pytest.param({"log": ["gamma"]}, "no column 'gamma'", id="log"),
        pytest.param({"columns": ["kernel"]}, "log names cost, not among the inputs kernel", id="log not an input"),
        pytest.param({"columns": []}, "at least one column", id="no inputs"),
        pytest.param({"columns": ["cost", "cost"]}, "each named once", id="twice"),
        pytest.param({"columns": ["cost", "error"]}, "'task', the objective 'error' and the inputs", id="objective in"),
        pytest.param({"objective": "task"}, "must be different", id="task as objective"),
        pytest.param(
            {"log": ["kernel"]}, "kernel is to be on a log scale, but it is text, such as 'linear'", id="text log"
        ),
        pytest.param(
            {"objective": "kernel", "columns": ["cost"]}, r"kernel, row 1: '\w+' is not a number", id="text y"
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    """Unknown and doubly used columns are named, with the columns that there are."""
    with pytest.raises(InputError, match=message):
        _read(_frame(), **options)


def test_a_log_of_what_is_not_positive_names_the_row() -> None:
    """The message names column, value and row; a row that is left out anyway does not matter."""
    frame = _frame()
    frame.loc[[4, 20], "cost"] = [-1.0, 0.0]
    with pytest.raises(InputError, match=r"row 5: cost = -1 has no logarithm. Leave cost out of the log columns"):
        _read(frame)
    frame.loc[[4, 20], "error"] = math.nan
    assert "2 without error" in _said(_read(frame))


def test_an_objective_with_a_word_in_it_names_the_row() -> None:
    """The first objective that is no number is named with its row."""
    frame = _frame().astype({"error": object})
    frame.loc[6, "error"] = "failed"
    with pytest.raises(InputError, match="error, row 7: 'failed' is not a number"):
        _read(frame)


def test_dates_are_refused() -> None:
    """A column of dates is neither a number nor text."""
    with pytest.raises(
        InputError, match=r"day must be numbers or text, but it is of type datetime64.*leave the column"
    ):
        _read(_frame().assign(day=pd.Timestamp("2024-03-01")))


def test_a_column_that_is_there_twice_is_refused() -> None:
    """Which of the two is meant cannot be known."""
    frame = _frame()
    with pytest.raises(InputError, match="width is there more than once"):
        _read(pd.concat([frame, frame[["width"]]], axis=1))


def test_a_table_without_anything_to_learn_is_refused() -> None:
    """No task that varies, or no input that varies, is an ``InputError``."""
    with pytest.raises(InputError, match=r"no task has two complete rows that differ in error.*constant: 3"):
        _read(_frame().assign(error=1.0))
    with pytest.raises(InputError, match=r"all inputs \(x\) are constant"):
        _read(_frame().assign(x=1.0), columns=["x"], log=())


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
    """A task with fewer rows than asked is said, is never a source, and is a target at times."""
    problem = TableProblem(table, n_sources=2, rows=25)
    assert problem.notes == ("Tasks with fewer than 25 rows, which are no sources: 2 (a, b).",)
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
    """``rows=None`` takes as many rows as the shortest task has, says so, and takes all where tasks are equal."""
    problem = TableProblem(table, n_sources=2, rows=None, tasks=["b", "c", "d"])
    assert problem.notes == ("All sources are cut to 20 rows: so many has the shortest task.",)
    assert [source.n for source in problem.draw([0], 4).sources] == [20, 20]
    equal = TableProblem(table, n_sources=2, rows=None, tasks=["c", "d", "e"])
    assert equal.notes == ()
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
    prints.append(_read(frame.rename(columns={"width": "breadth"})).fingerprint)
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4


def test_columns_can_be_left_out() -> None:
    """They are no inputs, and it is said; what is needed elsewhere or is not there is refused."""
    table = _read(_frame(), ignore=("kernel",))
    assert [c.name for c in table.columns] == ["width", "cost"]
    assert table.report[0] == "Left out as asked: kernel."
    with pytest.raises(InputError, match="cost cannot be left out, for it is asked for as well"):
        _read(_frame(), ignore="cost")
    with pytest.raises(InputError, match="there is no column 'colour'"):
        _read(_frame(), ignore=("colour",))


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
        pytest.param({"tasks": ["c", "z"]}, "six: there is no task z. There are: a, b, c, d, e, f", id="unknown task"),
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


def test_the_modules_load_without_pandas() -> None:
    """pandas is imported when a table is read, and not before."""
    root = Path(sys.modules["headstart"].__file__ or "").parents[1]
    modules = ("table", "shared_tables")
    code = f"import sys; sys.path.insert(0, {str(root)!r})\n"
    code += "".join(f"import benchmarks.problems.{name}\n" for name in modules)
    code += "print({'pandas', 'openml', 'sklearn', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() in ("set()", "{'sklearn'}")  # linear_operator may bring scikit-learn along
