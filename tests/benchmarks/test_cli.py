"""``python -m benchmarks`` and ``python -m benchmarks reproduce`` from the command line to the files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner, Result

from benchmarks.cli import app
from benchmarks.methods.method import Settings
from benchmarks.problems.shared_tables import SHARED, table_problem
from benchmarks.reproduce import possible
from benchmarks.run import presets
from benchmarks.run.experiment import BenchExperiment, ProblemSpec
from benchmarks.store import Store

PNG = b"\x89PNG"
# an experiment that is no preset, for processes of their own
DEFINE = """
from benchmarks.cli import app
from benchmarks.methods.method import Settings
from benchmarks.run import presets
from benchmarks.run.experiment import BenchExperiment, ProblemSpec
presets.PRESETS["mine"] = (BenchExperiment("mine", {problems}, {methods}, {runs}, {steps}, Settings(restarts=3)),)
"""
NAME = "svm_sklearn[sources=2,rows=6]"


def invoke(*arguments: object) -> Result:
    """``python -m benchmarks`` with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module", autouse=True)
def _presets() -> Iterator[None]:
    """Further presets: a tiny one on a table, and two for sources that mislead and that help."""
    fast = Settings(restarts=2, max_iterations=20)
    small = BenchExperiment("small", (ProblemSpec(table="svm", sources=2, rows=6),), ("gpbo", "shgp"), 3, 4, fast)
    spoilt = {
        name: (BenchExperiment(name, (ProblemSpec(family="forrester", points=6, spoilt=name),), ("random",), 2, 20),)
        for name in ("negated", "related")
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(presets, "PRESETS", {**presets.PRESETS, **spoilt, "small": (small,)})
        yield


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A tiny run on a table."""
    out = tmp_path_factory.mktemp("results") / "new"
    return out, invoke("run", "small", "--methods", "gpbo,SHGP,random", "--out", out)


def test_a_run_saves_every_method_and_seed(results: tuple[Path, Result]) -> None:
    """No row of the table is evaluated twice in a run."""
    out, result = results
    assert result.exit_code == 0, result.output
    assert "3/3" in result.stderr
    assert f"Results: {out}." in result.stdout
    runs = Store(out).read().runs
    assert sorted((run.method, run.seed) for run in runs) == [
        (m, s) for m in ("gpbo", "random", "shgp") for s in range(3)
    ]
    assert all(len({tuple(x) for x in run.x}) == 4 for run in runs)


def test_the_table_of_a_run(results: tuple[Path, Result], tmp_path: Path) -> None:
    """Printed, and written as CSV and Markdown."""
    out, _ = results
    result = invoke("table", out, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert NAME in result.stdout
    assert "ADTM after so many evaluations" in result.stdout
    assert (tmp_path / "table.md").read_text().count("| GPBO |") == 1
    assert set(pd.read_csv(tmp_path / "runs.csv.gz").method) == {"random", "gpbo", "shgp"}
    only = invoke("table", out, "--methods", "shgp", "--at", 2)
    assert "SHGP" in only.stdout
    assert "GPBO" not in only.stdout


def test_the_comparison_of_a_run(results: tuple[Path, Result], tmp_path: Path) -> None:
    """Differences, speed-ups and ranks against any baseline, and a picture of the profiles."""
    out, _ = results
    result = invoke("compare", out, "--baseline", "random", "--level", 0.1, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "against random" in result.stdout
    assert "evaluations to a mean regret of 0.1" in result.stdout
    assert "Mean ranks after the last evaluation, 3 blocks" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"compare.md", "runs.csv.gz", "profiles.png"}


def test_the_safety_of_auto(tmp_path: Path) -> None:
    """Sheets of harm and gain from two folders, printed and written; an empty folder, or no AUTO in it, is said."""
    for name in ("negated", "related"):
        result = invoke("run", name, "--out", tmp_path / name)
        assert result.exit_code == 0, result.output
    folders = [tmp_path / "negated", tmp_path / "related"]
    alone = invoke("safety", *folders)
    assert alone.exit_code == 2
    assert alone.stderr.splitlines()[-1] == "headstart: There are no runs of auto and gpbo to compare."
    for folder in folders:  # random search under other names: what is judged is the form, not the models
        runs = Store(folder).read().runs
        Store(folder).append([replace(run, method=method) for run in runs for method in ("auto", "gpbo", "shgp")])
    result = invoke("safety", *folders, "--out", tmp_path / "sheets")
    assert result.exit_code == 0, result.output
    assert "Sources that mislead: AUTO against GPBO after 20 evaluations" in result.stdout
    assert "Related sources: log₁₀ regret after 20 evaluations against GPBO" in result.stdout
    assert {path.name for path in (tmp_path / "sheets").iterdir()} == {"tables.md", "runs.csv.gz"}
    (tmp_path / "empty").mkdir()
    empty = invoke("safety", tmp_path / "empty")
    assert empty.exit_code == 2
    assert "empty: there are no results, for there is no runs.jsonl in it." in empty.stderr.splitlines()[-1]


def test_the_calibration_of_a_run(results: tuple[Path, Result], tmp_path: Path) -> None:
    """Printed, written and drawn; GPBO has no prediction of its first two results, random search none at all."""
    out, _ = results
    options = ["--by-problem", "--out", tmp_path, "--plot", tmp_path / "coverage.png"]
    result = invoke("calibration", out, *options)
    assert result.exit_code == 0, result.output
    assert "Calibration: tables" in result.stdout
    assert f"Calibration: {NAME}" in result.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"calibration.md", "coverage.png"}
    assert (tmp_path / "coverage.png").read_bytes().startswith(PNG)
    written = (tmp_path / "calibration.md").read_text()
    for row in ("| GPBO | 1–5 | 3 | 6 |", "| SHGP | 0 | 3 | 3 |", "| SHGP | 1–5 | 3 | 9 |"):
        assert row in written
    only = invoke("calibration", out, "--methods", "gpbo")
    assert only.exit_code == 0, only.output
    assert "SHGP" not in only.stdout
    store = Store(tmp_path / "old")
    store.append([replace(run, pit=[], log_density=[]) for run in Store(out).read().runs])
    old = invoke("calibration", store.folder)
    assert old.exit_code == 2
    assert "its runs hold no predictions" in old.stderr.splitlines()[-1]


def test_the_pictures_of_a_run(results: tuple[Path, Result], tmp_path: Path) -> None:
    """Means and medians, as PNG; drawn twice they are the same files."""
    out, _ = results
    for folder in (tmp_path / "one", tmp_path / "two"):
        result = invoke("plot", out, "--out", folder)
        assert result.exit_code == 0, result.output
    names = {"regret.png", "regret-median.png", "profiles.png"}
    assert {path.name for path in (tmp_path / "one").iterdir()} == names
    assert (tmp_path / "one" / "regret.png").read_bytes().startswith(PNG)
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_rerun_finds_everything_there(results: tuple[Path, Result]) -> None:
    """And leaves the store as it is; more seeds are added to what is there."""
    out, _ = results
    before = (out / "runs.jsonl").read_bytes()
    assert invoke("run", "small", "--methods", "random", "--out", out).exit_code == 0
    assert (out / "runs.jsonl").read_bytes() == before
    assert invoke("run", "small", "--methods", "random", "--runs", 4, "--out", out).exit_code == 0
    assert len(Store(out).read().runs) == 10
    (out / "runs.jsonl").write_bytes(before)


def test_a_damaged_store_is_read_as_far_as_it_goes_and_said_so(results: tuple[Path, Result], tmp_path: Path) -> None:
    """By every command that reads it."""
    out, _ = results
    (tmp_path / "runs.jsonl").write_bytes((out / "runs.jsonl").read_bytes()[:-50])
    for command in ("table", "compare", "plot"):
        result = invoke(command, tmp_path)
        assert result.exit_code == 0, result.output
        assert f"{tmp_path / 'runs.jsonl'}, line 9: cut off in the middle, left out." in result.stderr


def test_a_failing_unit_is_reported_and_the_exit_code_is_1(tmp_path: Path) -> None:
    """It fails alone, and the rest is done."""
    result = invoke("run", "small", "--methods", "random", "--evaluations", 301, "--out", tmp_path / "out")
    assert result.exit_code == 1
    assert "failed: svm, random, seeds 0 to 2: svm_sklearn: no task has 301 rows to evaluate." in result.stderr
    assert "headstart: 1 units failed; a rerun tries them again." in result.stderr
    assert Store(tmp_path / "out").read().runs == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "fig9"], "There is no preset 'fig9'. The known ones are compare, adversarial"),
        (["run", "fig2", "--methods", "gpbo,xgp"], "There is no method 'xgp'. The known ones are gpbo"),
        (["run", "fig2", "--quick", "--engine", "slurm"], "There is no engine 'slurm'. The known ones are"),
        (["run", "fig2", "--quick", "--device", "tpu"], "There is no device 'tpu'."),
        (["run", "fig2", "--quick", "--jobs", "0"], "jobs must be at least 1, but it is 0."),
        (["run", "fig2", "--runs", "0"], "runs and steps must be at least 1, but are 0 and 30."),
        (["reproduce", "fig2", "--device", "cuda"], "cuda was asked for, but torch finds no CUDA device here."),
        (["outcomes", "--problems", "mixtures"], "There is no problem 'mixtures'. The known ones are lcbench-two"),
        (["tuning", "--trials", "0"], "--trials must be at least 1, but it is 0."),
        (["table", "nowhere"], "nowhere: there are no results, for there is no runs.jsonl in it."),
        (["plot", "nowhere"], "nowhere: there are no results"),
        (["calibration", "nowhere"], "nowhere: there are no results"),
        (["calibration", "RESULTS", "--methods", "random"], "no predictions of 'random'. There are"),
        (["compare", "RESULTS", "--baseline", "hgp"], "no runs of the baseline 'hgp'. There are runs of gpbo"),
        (["compare", "RESULTS", "--level", "-1"], "The level is a regret and must not be negative"),
        (["table", "RESULTS", "--methods", "hgp"], "There are no runs of 'hgp'. There are runs of gpbo"),
        (["table", "RESULTS", "--at", "0"], "Evaluations are counted from 1, but 0 was asked for."),
        (["table", "RESULTS", "--out", "FILE"], "the folder cannot be made: File exists."),
        (["reproduce", "fig9"], "There is no experiment 'fig9'. The known ones are fig1, fig2"),
        (["reproduce", "fig2", "--quick", "--device", "tpu"], "There is no device 'tpu'."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_gives_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    results: tuple[Path, Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last line says what is wrong and what to do; nothing was run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FILE").touch()
    places = {"RESULTS": results[0]}
    result = invoke(*(places.get(a, a) for a in arguments))
    assert result.exit_code == 2, result.output
    *_, last = result.stderr.splitlines()
    assert last.startswith("headstart: ")
    assert message in last
    assert "Traceback" not in result.output
    assert not list(tmp_path.rglob("runs.jsonl"))


def test_the_experiments_of_the_paper_are_listed() -> None:
    """``python -m benchmarks reproduce LIST``, and without a name."""
    for arguments in (["reproduce", "LIST"], ["reproduce"]):
        result = invoke(*arguments)
        assert result.exit_code == 0
        names = [line.split()[0] for line in result.stdout.splitlines()]
        paper = ["fig1", "fig2", "fig3", "fig4", "one-dim", "runtime", "ablation"]
        assert names == [*paper, "order", "gc3p"]


@pytest.mark.slow
def test_figure_1_is_drawn_and_shows_what_the_paper_says(tmp_path: Path) -> None:
    """MHGP underestimates on the right; BHGP does not, and equals MHGP on the left; SHGP is sure on the left."""
    result = invoke("reproduce", "fig1", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "fig1"
    assert (folder / "fig1.png").read_bytes().startswith(PNG)
    rows = [line.split(" | ") for line in (folder / "tables.md").read_text().splitlines() if line.startswith("| ")]
    names = [name.strip("| ") for name in rows[0]]
    sd = pd.DataFrame([[cell.strip("| ") for cell in row] for row in rows[2:]], columns=names).set_index("model")
    sd = sd.astype(float)
    assert sd.sd_right["mhgp"] < 0.6 * sd.sd_right["bhgp"]
    assert sd.sd_right["mhgp"] < 0.6 * sd.sd_right["shgp"]
    assert sd.sd_left["bhgp"] == pytest.approx(sd.sd_left["mhgp"], rel=0.05)
    assert sd.sd_left["shgp"] < 0.2 * sd.sd_left["mhgp"]


def _write_xgboost(folder: Path) -> None:
    """Ten tasks of four rows in the form of the shared table."""
    draw = np.random.default_rng(0)
    tasks = [*"abcdefghi", "skin_nonskin"]
    frame = pd.DataFrame({"task": np.repeat(tasks, 4)})
    for column in (*SHARED["xgboost"].inputs.split(), "metric_error"):
        frame[column] = draw.uniform(size=len(frame))
    frame.to_csv(folder / SHARED["xgboost"].file, index=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fig2", "fig3", "fig4", "one-dim", "runtime", "ablation", "order", "gc3p"])
def test_every_experiment_ends_in_figures_and_tables(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With random search and GPBO alone, one run and two steps: what is written, not what it says."""
    from benchmarks.timing import complexity

    short = {
        key: tuple(
            replace(e, methods=("random", "gpbo"), runs=1, steps=2, settings=Settings(restarts=1, max_iterations=5))
            for e in experiments
        )
        for key, experiments in presets.PRESETS.items()
    }
    monkeypatch.setattr(presets, "PRESETS", short)
    monkeypatch.setattr(complexity, "SIZES", (5, 10))
    monkeypatch.setattr(complexity, "ROUNDS", 1)
    _write_xgboost(tmp_path)
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    table_problem.cache_clear()
    result = invoke("reproduce", name, "--out", tmp_path / "figures", "--store", tmp_path / "runs")
    assert result.exit_code == 0, result.output
    folder = tmp_path / "figures" / name
    pictures = sorted(path.stem for path in folder.glob("*.png"))
    assert pictures == {
        "ablation": [f"ablation-{n}" for n in (120, 250, 30, 500, 60)],
        "fig2": ["fig2", "fig2-median"],
        "fig4": ["fig4", "fig4-median"],
        "gc3p": ["gc3p", "gc3p-median"],
        "one-dim": ["one-dim", "one-dim-median"],
        "order": ["order", "order-median"],
    }.get(name, [name])
    assert (folder / "tables.md").read_text().startswith("## ")
    assert all(f"Written: {path}" in result.stdout for path in folder.iterdir())
    assert (folder / "runs.csv.gz").exists()
    assert (tmp_path / "runs" / name / "runs.jsonl").exists()
    table_problem.cache_clear()  # it was not the real table


def test_without_time_nothing_is_run_and_that_is_said(tmp_path: Path) -> None:
    """``--minutes 0``; nothing is written, and it is no error."""
    result = invoke("reproduce", "fig2", "--quick", "--minutes", "0", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert "fig2: nothing was run in this time." in result.stderr
    assert not list(tmp_path.rglob("*.png"))


def test_all_goes_without_what_needs_a_table_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, with what to do; where the table is named, everything can be run."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    table_problem.cache_clear()
    names, remarks = possible()
    assert "gc3p" not in names
    assert "order" in names
    assert remarks[0].startswith("gc3p is left out. The table 'xgboost' does not come with headstart. Set")


@pytest.mark.slow
def test_how_many_seeds_run_in_lockstep_changes_nothing(tmp_path: Path) -> None:
    """``--chunk 3`` and ``--chunk 1`` give the same points and regrets, to the last digit that is written."""
    problems = '(ProblemSpec(family="hartmann3", points=31),)'
    # a process of its own, for how it rounds is decided before its first matrix
    program = DEFINE.format(problems=problems, methods=("shgp", "rgpe", "wsgp"), runs=3, steps=6) + (
        "import sys\n"
        "for n in '31':\n"
        "    arguments = ['run', 'mine', '--chunk', n, '--out', sys.argv[1] + '/' + n]\n"
        "    assert not app(arguments, standalone_mode=False)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, capture_output=True, timeout=240)
    together, alone = ({run.key: run for run in Store(tmp_path / name).read().runs} for name in ("3", "1"))
    assert len(together) == 9
    for key, run in together.items():
        if torch.backends.mkl.is_available():
            assert (run.x, run.regret) == (alone[key].x, alone[key].regret), key
        else:
            assert run.regret == pytest.approx(alone[key].regret, abs=1e-2)


@pytest.mark.slow
def test_ctrl_c_says_that_a_rerun_continues(tmp_path: Path) -> None:
    """The exit code is that of an interrupt, what was finished stays, and the rerun does the rest."""
    out, problems = tmp_path / "out", '(ProblemSpec(family="hartmann6"),)'
    program = DEFINE.format(problems=problems, methods=("random", "shgp"), runs=2, steps=200)
    # Ctrl-C stops it, also where the tests run in the background and ignore it
    program += "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\napp()\n"
    command = [sys.executable, "-c", program, "run", "mine", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        while not (out / "runs.jsonl").exists():
            assert running.poll() is None
            time.sleep(0.1)
        os.kill(running.pid, signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert f"Interrupted. What was finished is in {out}; the same command continues from there." in said
    assert "Traceback" not in said
    assert [run.method for run in Store(out).read().runs] == ["random", "random"]


def test_the_help_names_every_command_in_a_whole_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a heading that is a word, though none of them was given one."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = invoke("--help").stdout
    assert "\nCommands:\n" in shown
    assert " object at 0x" not in shown
    assert "..." not in shown.partition("Commands:")[2]
    told = re.findall(r"^  (\w+) {2,}[A-Z]", shown, re.MULTILINE)
    assert told == [one.name or one.callback.__name__ for one in app.registered_commands if one.callback]


def test_asking_for_help_does_not_load_torch() -> None:
    """Nor matplotlib: ``python -m benchmarks run --help`` is answered at once, and so is ``reproduce --help``."""
    program = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from benchmarks.cli import app\n"
        "for arguments in (['--help'], ['run', '--help'], ['reproduce', '--help']):\n"
        "    assert CliRunner().invoke(app, arguments).exit_code == 0\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
