"""OpenML's random-bot SVM runs, from answers written in the style of the server's: no test asks the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from benchmarks.problems.columns import ColumnKind
from benchmarks.problems.openml_svm import TASKS, fetch_runs, fill_unset, parse_runs, svm_openml
from headstart import HeadstartError, InputError, MissingExtraError

DATA = Path(__file__).parent / "data"
ANSWER = pd.DataFrame(json.loads((DATA / "openml_svm_runs.json").read_text()))


def _answer(task: int) -> pd.DataFrame:
    """What the server says of a task; an empty frame without columns where it has no runs, as openml gives it."""
    found = ANSWER[ANSWER["task_id"] == task]
    return found if len(found) else pd.DataFrame()


def test_the_tasks_are_the_28_of_the_paper() -> None:
    """They are 28 different ids, from 37 to 146064."""
    assert (len(TASKS), len(set(TASKS)), min(TASKS), max(TASKS)) == (28, 28, 37, 146064)
    assert list(TASKS) == sorted(TASKS)


def test_an_answer_becomes_one_row_per_run() -> None:
    """The settings are found by the end of their name, without quotes, and the error is 1 − accuracy."""
    runs = parse_runs(ANSWER).set_index("run")
    assert list(runs.columns) == ["task", "cost", "gamma", "degree", "kernel", "error"]
    assert len(runs) == 12
    assert runs.loc[2000002].to_dict() == {
        "task": 37,
        "cost": 1024.0,
        "gamma": 2.0**-10,
        "degree": pytest.approx(float("nan"), nan_ok=True),
        "kernel": "radial",
        "error": 0.35,
    }
    assert runs.loc[2000003, "degree"] == 5
    assert runs["error"].isna().sum() == 1


def test_what_was_not_set_is_filled_by_the_rule() -> None:
    """Defaults for what the kernel uses, the middle of the range for what it does not; a radial gamma stays unknown."""
    filled = fill_unset(parse_runs(ANSWER)).set_index("run")
    expected = {
        2000001: ("linear", 0.5, 1.0, 3.5),
        2000002: ("radial", 1024.0, 2.0**-10, 3.5),
        2000003: ("polynomial", 2.0, 1.0, 5.0),
        2000004: ("polynomial", 8.0, 1.0, 3.0),
        2000005: ("radial", 4.0, 2.0, 3.5),
        2000006: ("linear", 1.0, 1.0, 3.5),
    }
    for run, values in expected.items():
        assert tuple(filled.loc[run, ["kernel", "cost", "gamma", "degree"]]) == values
    assert filled.loc[2000007, "kernel"] == "radial"
    assert pd.isna(filled.loc[2000007, "gamma"])


def test_the_fill_is_the_middle_of_the_unit_interval(tmp_path: Path) -> None:
    """Where gamma runs from 2⁻¹⁰ to 2¹⁰ and degree from 2 to 5, an unused value lies at ½."""
    table = svm_openml(tmp_path, tasks=(37, 3485), fetch=_answer)
    names = [column.name for column in table.columns]
    assert names == ["cost", "gamma", "degree", "kernel"]
    linear = table.tasks["37"].X[0]
    assert torch.allclose(linear[1:3], torch.full((2,), 0.5, dtype=torch.float64))


def test_the_table_has_logs_a_one_hot_kernel_and_says_what_it_left_out(tmp_path: Path) -> None:
    """Cost and gamma are on log scales; runs without a value, an unknown gamma or another kernel are left out."""
    table = svm_openml(tmp_path, tasks=(37, 3485, 3492), fetch=_answer)
    assert [column.kind for column in table.columns] == [
        ColumnKind.LOG,
        ColumnKind.LOG,
        ColumnKind.NUMERIC,
        ColumnKind.CATEGORICAL,
    ]
    assert table.columns[-1].levels == ("linear", "polynomial", "radial")
    assert {name: data.n for name, data in table.tasks.items()} == {"37": 6, "3485": 3}
    said = "\n".join(table.report)
    assert "2 of 11 (1 without error, 1 without gamma)" in said
    assert "1 runs with a kernel other than linear, polynomial, radial are left out." in said
    assert "There are no runs of 1 tasks: 3492." in said
    assert table.name == "svm_openml"


def test_what_was_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    """Every task is asked for once; afterwards its file answers, and gives the same table."""
    asked: list[int] = []

    def fetch(task: int) -> pd.DataFrame:
        asked.append(task)
        return _answer(task)

    first = svm_openml(tmp_path, tasks=(37, 3492), fetch=fetch)
    second = svm_openml(tmp_path, tasks=(37, 3485, 3492), fetch=fetch)
    assert asked == [37, 3492, 3485]
    assert torch.equal(first.tasks["37"].y, second.tasks["37"].y)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "svm_5891_3485.csv",
        "svm_5891_3492.csv",
        "svm_5891_37.csv",
    ]


def test_tasks_that_came_before_an_interruption_are_kept(tmp_path: Path) -> None:
    """If the server fails at the second task, the first need not be fetched again."""

    def fails(task: int) -> pd.DataFrame:
        if task == 3485:
            raise HeadstartError("no answer")
        return _answer(task)

    with pytest.raises(HeadstartError, match="no answer"):
        svm_openml(tmp_path, tasks=(37, 3485), fetch=fails)
    assert [path.name for path in tmp_path.iterdir()] == ["svm_5891_37.csv"]


def test_the_cache_follows_the_users_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder the runs are kept under XDG_CACHE_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    svm_openml(tasks=(37,), fetch=_answer)
    assert (tmp_path / "headstart" / "openml_svm" / "svm_5891_37.csv").is_file()


def test_no_runs_at_all_are_an_error(tmp_path: Path) -> None:
    """A table cannot be made of nothing."""
    with pytest.raises(InputError, match="no runs of flow 5891 on the tasks 3492, 3493"):
        svm_openml(tmp_path, tasks=(3492, 3493), fetch=_answer)


def test_an_answer_of_another_form_is_refused() -> None:
    """A missing column or a cost that is no number is named."""
    with pytest.raises(InputError, match=r"no column parameters, but run_id, .*openml 0\.15"):
        parse_runs(ANSWER.drop(columns="parameters"))
    broken = ANSWER.head(1).assign(parameters=[{"mlr.classif.svm(6)_cost": "much"}])
    with pytest.raises(InputError, match="run 2000001: cost = 'much' is not a number"):
        parse_runs(broken)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where openml cannot be imported, the message says what to install."""
    monkeypatch.setitem(sys.modules, "openml", None)
    with pytest.raises(MissingExtraError, match=r"pip install headstart\[openml\]"):
        fetch_runs(37)


# ── with the openml package, and the network replaced ─────────────────────────────────────────────────────────────


@pytest.fixture(name="openml")
def _openml() -> Any:
    pytest.importorskip("openml", reason="the extra openml is not installed")
    import openml

    return openml


def test_the_package_makes_of_the_servers_text_what_is_parsed(openml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the package, the server's XML becomes the same rows as the recorded frame."""
    asked = []

    def perform(call: str, *_: Any, **__: Any) -> str:
        asked.append(call)
        kind = next(kind for kind in ("evaluation", "setup", "user") if call.startswith(f"{kind}/list"))
        return (DATA / f"openml_svm_{kind}s.xml").read_text()

    monkeypatch.setattr(openml._api_calls, "_perform_api_call", perform)
    runs = parse_runs(fetch_runs(3485))
    pd.testing.assert_frame_equal(runs, parse_runs(_answer(3485)), check_dtype=False)
    assert "function/predictive_accuracy" in asked[0]
    assert all(part in asked[0] for part in ("/task/3485", "/flow/5891", "/uploader/2702"))


def test_a_server_that_does_not_answer_is_said(openml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed connection names the task, and says how to go on."""

    def perform(*_: Any, **__: Any) -> str:
        raise ConnectionError("unreachable")

    monkeypatch.setattr(openml._api_calls, "_perform_api_call", perform)
    with pytest.raises(HeadstartError, match=r"did not answer for task 3485 \(unreachable\).*run it again"):
        fetch_runs(3485)
