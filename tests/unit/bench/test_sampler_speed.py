"""The benchmark of the sampler, at sizes that say nothing about its figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from headstart.bench.sampler_routes import History, MultiTaskRoute, Route, draw_history, routes
from headstart.bench.sampler_speed import Overhead, Reach, first, main, overhead, reach, suggestions
from headstart.errors import MissingExtraError


class Absent(Route):
    name, uses = "absent", "nothing"

    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        raise MissingExtraError("not installed: pip install absent")


def test_routes_take_turns_and_an_absent_one_says_so() -> None:
    """Every route has a time per data set and round, but the one that cannot be taken."""
    ours, optunas, *_ = routes("shgp")
    steps: list[str] = []
    found = suggestions(
        [ours, Absent(), optunas], data_sets=1, rounds=2, on_step=steps.append, sources=2, points=12, trials=12
    )
    assert [row.route for row in found] == ["TransferSampler (SHGP)", "absent", "Optuna's GPSampler"]
    assert [len(row.seconds) for row in found] == [2, 0, 2]
    assert found[1].median is None
    assert "pip install absent" in found[1].note
    assert [step.partition(",")[0] for step in steps] == ["TransferSampler (SHGP)", "Optuna's GPSampler"] * 2


def test_the_multi_task_route_suggests_a_point_of_the_cube() -> None:
    """It is BoTorch's model over all tasks."""
    x = MultiTaskRoute().begin(draw_history(0, sources=1, points=8, trials=6))()()
    assert isinstance(x, torch.Tensor)
    assert x.shape == (1, 6)
    assert bool(((x >= 0) & (x <= 1)).all())


def test_histories_are_those_of_their_seed() -> None:
    """Of the size that was asked for, and others with another seed."""
    one, again, other = (draw_history(seed, sources=2, points=7, trials=4) for seed in (0, 0, 1))
    assert [data.n for data in (*one.sources, one.target)] == [7, 7, 4]
    assert torch.equal(one.target.y, again.target.y)
    assert not torch.equal(one.target.y, other.target.y)
    assert not torch.equal(one.sources[0].y, one.sources[1].y)


def test_memory_is_looked_at_every_so_many_trials() -> None:
    """After every trial if they are few; the growth is from the first look to the last."""
    run = overhead("shgp", trials=5, points=10)
    assert list(run.memory) == [1, 2, 3, 4, 5]
    assert run.seconds > 0
    assert all(mib > 10 for mib in run.memory.values())
    assert Overhead("shgp", 3, 1.0, {1: 100.0, 2: 150.0, 3: 110.0}).growth == pytest.approx(0.1)


def test_quantiles_count_runs_that_never_get_there() -> None:
    """As infinitely long."""
    runs = Reach("shgp", 30, (1, None, 3, 2))
    assert [runs.quantile(share) for share in (0.25, 0.5, 0.75)] == [1, 2, 3]
    assert runs.quantile(1.0) == float("inf")
    assert Reach("shgp", 30, (7,)).quantile(0.25) == 7
    assert first([3.0, 1.0, 1.0], 1.0) == 2
    assert first([3.0, 2.0], 1.0) is None


def test_scratch_reaches_its_own_result() -> None:
    """GPBO gets to what it has at the end on every task, and others are counted on the same tasks."""
    gpbo, other = reach(["random"], turns=1, steps=3, sources=1, rows=10)
    assert (gpbo.method, other.method) == ("gpbo", "random")
    assert len(gpbo.trials) == len(other.trials) == 24
    assert None not in gpbo.trials


def test_a_single_part_leaves_the_others_in_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The program prints the table of the part and writes it."""
    out = tmp_path / "folder" / "sampler.json"
    out.parent.mkdir()
    out.write_text(json.dumps({"svm": "kept"}))
    main(["--quick", "--only", "overhead", "--trials", "3", "--model", "shgp", "--out", str(out)])
    assert "3 trials of a trivial objective (SHGP)" in capsys.readouterr().out
    record = json.loads(out.read_text())
    assert record["svm"] == "kept"
    assert record["overhead"]["trials"] == 3
    assert set(record["versions"]) == {"torch", "botorch", "optuna", "headstart", "python"}
