"""The store: what is written is read, whatever happens to the program or the file."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchmarks.queue import Unit
from benchmarks.run.experiment import BenchExperiment, LockstepUnit, ProblemSpec, execute
from benchmarks.store import SCHEMA, Run, Store

RUN = Run(
    problem="forrester[sources=1,points=20,noise=0.1]",
    method="shgp",
    seed=0,
    settings={"steps": 2, "paper": True},
    label="forrester [1.0]",
    x=[[0.25], [0.5]],
    y=[1.0, 2.0],
    value=[1.1, 1.9],
    regret=[0.5, 0.5],
    fit_seconds=[0.1, 0.2],
    acquisition_seconds=[0.01, 0.02],
    learn_seconds=0.3,
    provenance={"headstart": "0.1.0"},
)


def _runs(n: int) -> list[Run]:
    return [replace(RUN, seed=seed) for seed in range(n)]


def test_what_is_appended_is_read(tmp_path: Path) -> None:
    """All fields, in order, over several appends, in a folder that was not there."""
    store = Store(tmp_path / "new" / "folder")
    assert store.read() == type(store.read())((), ())
    store.append(_runs(2))
    store.append([replace(RUN, seed=2)])
    contents = store.read()
    assert contents.runs == tuple(_runs(3))
    assert contents.remarks == ()


def test_a_run_written_before_predictions_were_kept_is_read(tmp_path: Path) -> None:
    """It has none; one that has some keeps them, and what was not predicted is null in the file."""
    old = {key: value for key, value in asdict(RUN).items() if key not in ("pit", "log_density")}
    (tmp_path / "runs.jsonl").write_text(json.dumps({"schema": SCHEMA, **old}) + "\n")
    new = replace(RUN, seed=1, pit=[None, 0.25], log_density=[None, -1.5])
    store = Store(tmp_path)
    store.append([new])
    assert '"pit": [null, 0.25]' in store.path.read_text()
    assert store.read().runs == (replace(RUN, pit=[], log_density=[]), new)


def test_of_equal_runs_the_last_counts(tmp_path: Path) -> None:
    """Equal are problem, method, seed and settings; other settings are another run."""
    store = Store(tmp_path)
    again = replace(RUN, regret=[0.4, 0.3])
    other = replace(RUN, settings={"steps": 2, "paper": False})
    store.append([RUN, other, again])
    assert set(map(tuple, (run.regret for run in store.read().runs))) == {(0.4, 0.3), (0.5, 0.5)}
    assert len(store.read().runs) == 2


def test_a_line_cut_off_in_the_middle_costs_that_line_alone(tmp_path: Path) -> None:
    """It is said where; what is appended later is whole, for it begins a line of its own."""
    store = Store(tmp_path)
    store.append(_runs(3))
    content = store.path.read_bytes()
    store.path.write_bytes(content[:-40])
    contents = store.read()
    assert [run.seed for run in contents.runs] == [0, 1]
    assert contents.remarks == (f"{store.path}, line 3: cut off in the middle, left out.",)
    store.append([replace(RUN, seed=2)])
    assert [run.seed for run in store.read().runs] == [0, 1, 2]
    assert len(store.read().remarks) == 1


def test_a_line_of_another_format_is_left_out_and_named(tmp_path: Path) -> None:
    """Another version's, one without a version, and JSON that is no run."""
    store = Store(tmp_path)
    store.append([RUN])
    lines = [
        json.dumps({"schema": SCHEMA + 1, **asdict(RUN)}),
        json.dumps(asdict(RUN)),
        "17",
        json.dumps({"schema": SCHEMA, "problem": "p"}),
    ]
    with store.path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    contents = store.read()
    assert contents.runs == (RUN,)
    assert [remark.partition(": ")[2] for remark in contents.remarks] == [
        f"written in format {SCHEMA + 1}, this is {SCHEMA}; left out.",
        f"written in format None, this is {SCHEMA}; left out.",
        f"written in format None, this is {SCHEMA}; left out.",
        "has not the fields of a run, left out.",
    ]


def test_two_writers_do_not_mix_their_lines(tmp_path: Path) -> None:
    """Two processes that append at the same time: every run of both is there."""
    program = (
        "import sys\n"
        "from dataclasses import replace\n"
        "from pathlib import Path\n"
        "from benchmarks.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "run = replace(store.read().runs[0], method=sys.argv[2], label='x' * 20_000)\n"
        "for seed in range(40):\n"
        "    store.append([replace(run, seed=seed)])\n"
    )
    store = Store(tmp_path)
    store.append([RUN])
    writers = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    contents = store.read()
    assert contents.remarks == ()
    written = sorted((run.method, run.seed) for run in contents.runs if run.method in ("a", "b"))
    assert written == [(name, seed) for name in ("a", "b") for seed in range(40)]


@pytest.mark.parametrize("chunk", [1, 25])
def test_a_rerun_does_what_is_missing_and_nothing_else(tmp_path: Path, chunk: int) -> None:
    """Finished runs are skipped, one by one; more runs and other steps are done."""
    store = Store(tmp_path)
    experiment = BenchExperiment("test", (ProblemSpec(family="forrester", points=5),), ("random",), runs=3, steps=2)
    begun: list[int] = []
    done: list[tuple[int, ...]] = []

    def note(unit: Unit, _: Exception | None) -> None:
        assert isinstance(unit, LockstepUnit)
        done.append(unit.seeds)

    def run(what: BenchExperiment) -> None:
        begun.clear()
        done.clear()
        execute([what], store, chunk=chunk, on_start=begun.append, on_unit=note)

    run(experiment)
    assert [seed for seeds in done for seed in seeds] == [0, 1, 2]
    before = store.path.read_bytes()
    run(experiment)
    assert begun == [0]
    assert store.path.read_bytes() == before
    run(replace(experiment, runs=5))
    assert [seed for seeds in done for seed in seeds] == [3, 4]
    run(replace(experiment, steps=3))
    assert [seed for seeds in done for seed in seeds] == [0, 1, 2]
