"""The benchmark of the sampler, at sizes that say nothing about its figures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch
from rich.console import Console

from benchmarks.speed.measures import Overhead, Reach, SuggestionTimes, first, overhead, reach, suggestions
from benchmarks.speed.routes import (
    SINGLE,
    History,
    MultiTaskRoute,
    OptunaRoute,
    Route,
    When,
    draw_history,
    routes,
)
from benchmarks.speed.sampler import main, suggestion_table
from headstart.errors import MissingExtraError


class Absent(Route):
    name, uses = "absent", "nothing"

    def begin(self, history: History) -> Callable[[], Callable[[], object]]:
        raise MissingExtraError("not installed: pip install absent")


def test_routes_take_turns_and_an_absent_one_says_so() -> None:
    """Every route has a time per data set and round, but the one that cannot be taken."""
    going_on, at_once, optunas, *_ = routes("shgp")
    steps: list[str] = []
    found = suggestions(
        [going_on, at_once, Absent(), optunas],
        data_sets=1,
        rounds=2,
        on_step=steps.append,
        sources=2,
        points=12,
        trials=12,
    )
    assert [row.route for row in found] == [*["TransferSampler (SHGP)"] * 2, "absent", "Optuna's GPSampler"]
    assert [row.when for row in found] == ["going on", "read at once", "every time", "going on"]
    assert [len(row.seconds) for row in found] == [2, 2, 0, 2]
    assert found[2].median is None
    assert "pip install absent" in found[2].note
    turn = ["TransferSampler (SHGP), going on", "TransferSampler (SHGP), read at once", "Optuna's GPSampler, going on"]
    assert [step.partition(", data set")[0] for step in steps] == turn * 2


class Recording(optuna.samplers.RandomSampler):
    """Notes, whoever copies it, how many results there were whenever it was asked."""

    def __init__(self, seen: list[list[int]]) -> None:
        super().__init__(seed=0)
        self.seen = seen
        self.own: list[int] = []

    def __deepcopy__(self, memo: object) -> Recording:
        copy = Recording(self.seen)
        copy.own = [*self.own]
        self.seen.append(copy.own)
        return copy

    def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
        self.own.append(sum(t.state == optuna.trial.TrialState.COMPLETE for t in study.get_trials(deepcopy=False)))
        return {}


@pytest.mark.parametrize(("when", "before"), [(When.GOING_ON, [5]), (When.AT_ONCE, [])])
def test_what_a_sampler_knows_when_it_is_timed(when: When, before: list[int]) -> None:
    """It has learnt in an empty study, was asked for the last result if it is going on, and sees all of them."""
    seen: list[list[int]] = []
    arrange = OptunaRoute("", "", when, lambda _: Recording(seen)).begin(draw_history(0, sources=1, points=3, trials=6))
    for _ in range(2):
        timed = arrange()
        assert seen[-1] == [0, *before]
        timed()
        assert seen[-1] == [0, *before, 6]


def test_others_are_compared_with_a_study_that_goes_on() -> None:
    """A rival that takes five times as long meets what is asked for, however long reading a study at once takes."""
    ours = [SuggestionTimes("ours", "all", "going on", (0.1,)), SuggestionTimes("ours", "all", "read at once", (0.4,))]
    rivals = [SuggestionTimes("BoTorch", "all", "every time", (t,)) for t in (0.52, 0.48)]
    others = [
        SuggestionTimes("GP", "all", "going on", (0.01,)),
        SuggestionTimes("Ax", "all", "every time", (), "not installed"),
    ]
    # ours may take three times as long
    others += [SuggestionTimes(SINGLE, "all", "going on", (t,)) for t in (0.034, 0.032)]
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(suggestion_table([*ours, *rivals, *others]))
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    assert [line.split("│")[-2].split() for line in lines] == [
        *(["reached"], ["reached"], ["reached"], ["missed"], [], ["not", "installed"], ["reached"], ["missed"])
    ]
    assert [line.split("│")[7:9] for line in lines[2:3]] == [["        5.2 ", "       1.3 "]]


def test_the_multi_task_route_suggests_a_point_of_the_cube() -> None:
    """It is BoTorch's model over all tasks."""
    x = MultiTaskRoute().begin(draw_history(0, sources=1, points=8, trials=6))()()
    assert isinstance(x, torch.Tensor)
    assert x.shape == (1, 6)
    assert bool(((x >= 0) & (x <= 1)).all())


def test_histories_are_those_of_their_seed() -> None:
    """Of the size that was asked for, others with another seed; the target's results scatter about its function."""
    one, again, other = (draw_history(seed, sources=2, points=7, trials=4) for seed in (0, 0, 1))
    assert [data.n for data in (*one.sources, one.target)] == [7, 7, 4]
    assert torch.equal(one.target.y, again.target.y)
    assert not torch.equal(one.target.y, other.target.y)
    assert not torch.equal(one.sources[0].y, one.sources[1].y)
    error = one.target.y - one.measure(one.target.X)
    assert 0 < float(error.abs().max()) < 0.5 < float(one.target.y.abs().max())


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
