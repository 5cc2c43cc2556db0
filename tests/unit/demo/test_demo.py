"""What the demonstration tunes and how its results are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from benchmarks.problems.shared_tables import svm_sklearn
from headstart import InputError
from headstart.demo.demo import Demo, DemoResult, Start, run_demo
from headstart.demo.figure import draw_demo
from headstart.demo.svm import SPACE, TASKS, SupportVectorMachine, past_runs

TINY = Demo(data_set="wine", trials=3, runs=2, past_trials=15, model="shgp")


def test_the_machine_is_the_one_of_the_table() -> None:
    """Trained and tested anew, it has the errors that the table has: on wine and on iris to a prediction or two.

    Of cancer and digits the table drew other rows, so that its errors are met only nearly.
    """
    for name, task in TASKS.items():
        (run,) = (r for r in past_runs("wine" if name != "wine" else "iris", trials=300, seed=0) if r.name == name)
        machine = SupportVectorMachine.on(name)
        by_error = run.y.argsort()
        within = 0.002 if name in ("wine", "iris") else 0.03
        for place in (0, 60, 150, 240, 299):  # from the best of the table's rows to its worst
            row = run.rows.iloc[int(by_error[place])]
            error = machine.error(cost=row.cost, gamma=row.gamma, degree=int(row.degree), kernel=row.kernel)
            assert error == pytest.approx(run.y[by_error[place]], abs=within), f"{name}, row {place}: {task}"


def test_the_machine_meets_the_same_folds_at_every_call() -> None:
    """At least 1000 predictions in three folds: 178 rows of wine are split six times."""
    machine = SupportVectorMachine.on("wine")
    X, _, X_test, _ = machine.folds[0]
    assert (len(X) + len(X_test), X.shape[1], len(machine.folds)) == (178, 13, 18)
    one, two = (machine.error(cost=1.0, gamma=0.05, degree=3, kernel="rbf") for _ in range(2))
    assert one == two


def test_large_data_sets_are_sampled() -> None:
    """500 digits, odd or even; the labels of the folds are those two."""
    machine = SupportVectorMachine.on("digits")
    assert len(machine.folds[0][1]) + len(machine.folds[0][3]) == 500
    assert set(machine.folds[0][1].tolist()) == {0, 1}


@pytest.mark.parametrize("data_set", TASKS)
def test_the_past_is_on_other_data_sets(data_set: str) -> None:
    """Every other data set has a past run with rows of its task in the table; the one to be tuned has none."""
    past = past_runs(data_set, trials=20, seed=0)
    assert [run.name for run in past] == [name for name in TASKS if name != data_set]
    for run in past:
        assert run.parameters == tuple(SPACE)
        errors = set(svm_sklearn().tasks[TASKS[run.name]].y.tolist())
        assert len(run.y) == 20
        assert set(run.y.tolist()) <= errors


def test_other_seeds_know_other_trials_of_the_past() -> None:
    """And equal seeds the same ones."""
    first, again, other = (past_runs("iris", trials=20, seed=seed)[0] for seed in (0, 0, 1))
    assert first.rows.equals(again.rows)
    assert not first.rows.equals(other.rows)


def test_more_of_the_past_than_there_is_is_refused() -> None:
    """The message has both numbers."""
    with pytest.raises(InputError, match="has 1 to 300 trials, but 301"):
        past_runs("iris", trials=301, seed=0)


def test_equal_seeds_repeat_the_demo_and_both_starts_are_told_apart() -> None:
    """All runs of a trial come before the next trial, and errors are those of the best so far."""
    standings: list[tuple[Start, int, float]] = []
    first = run_demo(TINY, lambda *now: standings.append(now))
    again = run_demo(TINY)
    assert torch.equal(first.scratch, again.scratch)
    assert torch.equal(first.head_start, again.head_start)
    assert not torch.equal(first.scratch, first.head_start)
    assert first.scratch.shape == (2, 3)
    assert bool((first.scratch.diff(dim=-1) <= 0).all())
    assert [now[:2] for now in standings] == [(start, k) for k in range(1, 7) for start in Start]
    assert standings[-1][2] == pytest.approx(first.medians[1][-1].item(), abs=1e-6)
    assert first.best is not None
    start, params = first.best
    lowest = first.scratch.min() if start is Start.SCRATCH else first.head_start.min()
    assert SupportVectorMachine.on("wine").error(**params) == lowest.item()
    assert lowest.item() <= min(first.scratch.min().item(), first.head_start.min().item())


@pytest.mark.parametrize(("after", "trials"), [(1, 0), (7, 1), (12, 3)])
def test_an_interrupt_keeps_the_trials_that_all_runs_have_finished(after: int, trials: int) -> None:
    """Four studies take turns: with seven trials in all, each has one and some have two."""
    seen: list[int] = []

    def stop(_: Start, done: int, __: float) -> None:
        seen.append(done)
        if len(seen) == after:
            raise KeyboardInterrupt

    result = run_demo(TINY, stop)
    assert (result.interrupted, result.trials) == (True, trials)
    assert result.scratch.shape == result.head_start.shape == (2, trials)
    assert (result.best is None) == (trials == 0)


def _result(scratch: list[float], head_start: list[float], runs: int = 1) -> DemoResult:
    rows = torch.tensor([scratch, head_start], dtype=torch.float64)
    return DemoResult(Demo(runs=runs, trials=len(scratch)), rows[:1].repeat(runs, 1), rows[1:].repeat(runs, 1))


@pytest.mark.parametrize(
    ("scratch", "head_start", "counts", "verdict"),
    [
        ([0.3, 0.2, 0.1, 0.1], [0.4, 0.05, 0.05, 0.05], (3, 2), "10.00% took 3 trials from scratch, and 2 with"),
        ([0.3, 0.1, 0.1], [0.4, 0.2, 0.1], (2, 3), "No head start this time: 10.00% took 2 trials from scratch, 3"),
        ([0.3, 0.1], [0.3, 0.1], (2, 2), "No head start this time: 10.00% took 2 trials in both cases."),
        ([0.1], [0.1], (1, 1), "No head start this time: 10.00% took 1 trial in both cases."),
        ([0.3, 0.1], [0.4, 0.2], (2, None), "No head start this time: from scratch reached 10.00% at trial 2, with"),
    ],
)
def test_the_verdict_says_what_came_out(
    scratch: list[float], head_start: list[float], counts: tuple[int, int | None], verdict: str
) -> None:
    """Scratch counts to its own last improvement; a head start that is no gain is called that."""
    result = _result(scratch, head_start)
    assert result.trials_to_match() == counts
    assert result.verdict().startswith(verdict)


def test_errors_are_compared_after_some_trials_and_at_the_end() -> None:
    """1, 3, 5, 10, 20 as far as they were reached."""
    assert _result([1.0] * 12, [1.0] * 12).marks == (1, 3, 5, 10, 12)
    assert _result([1.0] * 20, [1.0] * 20).marks == (1, 3, 5, 10, 20)
    assert _result([1.0], [1.0]).marks == (1,)


@pytest.mark.parametrize(
    ("scratch", "head_start", "fewer"),
    [
        ([0.3, 0.2, 0.1], [0.1, 0.05, 0.05], "2 trials fewer"),
        ([0.3, 0.2, 0.1], [0.3, 0.1, 0.1], "1 trial fewer"),
        ([0.3, 0.1], [0.3, 0.2], None),
    ],
)
def test_the_picture_shows_both_and_how_much_sooner(
    tmp_path: Path, figures: list[Figure], scratch: list[float], head_start: list[float], fewer: str | None
) -> None:
    """The medians of either kind on a log axis; the arrow only where the head start was earlier."""
    draw_demo(_result(scratch, head_start), tmp_path / "a.png")
    (axes,) = figures[0].axes
    ours = [line for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert np.allclose([np.array(line.get_ydata()) for line in ours], [scratch, head_start])
    assert axes.get_yscale() == "log"
    told = [text.get_text() for text in axes.texts]
    assert [text for text in told if text.endswith("fewer")] == ([] if fewer is None else [fewer])


def test_an_error_of_zero_is_drawn_at_the_lowest_other(tmp_path: Path, figures: list[Figure]) -> None:
    """A log axis cannot show it."""
    draw_demo(_result([0.3, 0.0], [0.2, 0.0]), tmp_path / "a.png")
    steps = [line for line in figures[0].axes[0].lines if line.get_drawstyle() == "steps-post"]
    assert [np.min(line.get_ydata()) for line in steps] == [0.2, 0.2]


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn_whatever_the_errors(tmp_path: Path, suffix: str) -> None:
    """Also for error 0, which a log axis cannot show, for one trial, and for a head start that does not help."""
    results = [
        _result([0.3, 0.0], [0.0, 0.0]),
        _result([0.1], [0.2]),
        _result([0.3, 0.2, 0.1], [0.4, 0.15, 0.15], runs=20),
        _result([0.3, 0.2, 0.1], [0.2, 0.1, 0.1], runs=3),
    ]
    for i, result in enumerate(results):
        path = tmp_path / f"{i}.{suffix}"
        draw_demo(result, path)
        assert path.stat().st_size > 1000
