"""Regrets, pairs and figures against numbers made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.tuning import past
from benchmarks.tuning.compare import main
from benchmarks.tuning.problems.catalogue import tuning_problem
from benchmarks.tuning.reading import CAP, TaskScale, interval, regrets, task_scales
from benchmarks.tuning.report import summary, tables, write_report
from benchmarks.tuning.rivals import POOL
from benchmarks.tuning.runs import TuningRun, append_runs
from headstart.errors import NotComparableError

PROBLEM = "svm"  # minimised
UPSIDE_DOWN = "forest"  # maximised


def run(
    method: str, values: Sequence[float | None], *, task: str = "t", seed: int = 0, problem: str = PROBLEM
) -> TuningRun:
    n = len(values)
    return TuningRun(
        problem, tuning_problem(problem).revision, task, seed, method, n, [{}] * n, list(values), [0.1] * n
    )


# the best known is 1, by a run; the median of the pool is 3
POOL_RUN = run(POOL, [2.0, 3.0, 9.0])
OTHER_POOL = run(POOL, [2.0, 3.0, 9.0], task="u")
OURS = run("headstart", [4.0, 3.0, None, 2.0, 1e25, 1.0])
THEIRS = run("tpe-bests", [2.0, 2.0, 5.0, 5.0, 5.0, 5.0])


def test_regret_is_0_at_the_best_known_and_1_at_the_random_median() -> None:
    """(lowest so far − best)/(median − best); a pruned or diverged trial improves nothing."""
    (found,) = regrets([POOL_RUN, OURS, THEIRS], trials=6)
    assert task_scales([POOL_RUN, OURS, THEIRS]) == {(PROBLEM, "t"): TaskScale(1.0, 3.0)}
    assert found.regret["headstart"].tolist() == [[1.5, 1.0, 1.0, 0.5, 0.5, 0.0]]
    assert found.regret["tpe-bests"].tolist() == [[0.5] * 6]
    assert found.at("headstart", 1).tolist() == [1.5]


def test_a_score_that_is_maximised_is_turned_round() -> None:
    """The best known is then the highest."""
    runs = [run(POOL, [0.4, 0.5, 0.6], problem=UPSIDE_DOWN), run("tpe", [0.3, 0.7], problem=UPSIDE_DOWN)]
    (found,) = regrets(runs, trials=2)
    assert found.regret["tpe"][0] == pytest.approx([2.0, 0.0])


def test_a_diverged_first_trial_counts_as_the_cap() -> None:
    """And so does a pruned one: the mean stays a number."""
    runs = [POOL_RUN, run("tpe", [1e25, 1.0]), run("random", [None, 1.0])]
    (found,) = regrets(runs, trials=2)
    assert found.regret["tpe"].tolist() == [[CAP, 0.0]]
    assert found.regret["random"].tolist() == [[CAP, 0.0]]


def test_early_trials_are_the_second_to_the_fifth() -> None:
    """Worse than the median of 3 are: pruned, 1e25; not worse is 3 itself."""
    (found,) = regrets([POOL_RUN, OURS, THEIRS], trials=6)
    assert found.early["headstart"].tolist() == [0.5]
    assert found.early["tpe-bests"].tolist() == [0.75]


def test_only_pairs_that_all_methods_have_are_compared() -> None:
    """A run without its counterpart does count for the best known."""
    alone = run("headstart", [0.0] * 6, seed=1)
    elsewhere = run("tpe-bests", [2.5] * 6, task="u")
    (found,) = regrets([POOL_RUN, OTHER_POOL, OURS, THEIRS, alone, elsewhere], trials=6)
    assert found.pairs == (("t", 0),)
    assert found.at("headstart", 6) == pytest.approx([1 / 3])


def test_pairs_are_in_the_same_order_for_all() -> None:
    """However the store has them."""
    runs = [run("tpe", [2.0], seed=1), run("random", [5.0], seed=0), run("tpe", [1.0], seed=0)]
    (found,) = regrets([run("random", [3.0], seed=1), POOL_RUN, *runs], trials=1)
    assert found.pairs == (("t", 0), ("t", 1))
    assert (found.at("tpe", 1) - found.at("random", 1)).tolist() == [-2.0, -0.5]


def test_what_cannot_be_compared_is_said() -> None:
    """No runs, no such method, no common pair, no spread."""
    with pytest.raises(NotComparableError, match="no runs of 5 trials of any method"):
        regrets([POOL_RUN, OURS], trials=5)
    with pytest.raises(NotComparableError, match=r"of gp-bests\. There are runs of headstart, tpe-bests"):
        regrets([POOL_RUN, THEIRS, OURS], trials=6, show=["gp-bests"])
    with pytest.raises(NotComparableError, match="No target and seed"):
        regrets([POOL_RUN, OURS, run("tpe", [1.0] * 6, seed=3)], trials=6)
    with pytest.raises(NotComparableError, match="as good as any"):
        task_scales([run(POOL, [1.0, 1.0, 2.0])])


def test_runs_of_an_earlier_revision_are_left_out() -> None:
    """They tuned something else."""
    old = replace(OURS, revision=0, values=[-7.0] * 6)
    assert task_scales([POOL_RUN, OURS]) == summary([POOL_RUN, OURS, old], trials=6).scales


def test_an_interval_resamples_within_every_problem() -> None:
    """The mean is over problems; pairs that are all equal leave no doubt, whatever the problems."""
    constant = interval([np.array([1.0, 1.0]), np.array([3.0, 3.0, 3.0])])
    assert (constant.value, constant.low, constant.high) == (2.0, 2.0, 2.0)
    spread = interval([np.array([0.0, 1.0] * 50)])
    assert spread.value == 0.5
    assert spread.low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.02)
    assert spread.high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.02)


def _runs() -> list[TuningRun]:
    """Ours is better at first and clearly worse at the end, on both problems."""
    found = []
    for problem in ("classifier-choice", "pruned-network"):
        for task in ("t", "u"):
            found.append(run(POOL, [0.0, 1.0, 2.0], task=task, problem=problem))
            for seed in range(3):
                found.append(run("headstart", [0.5 + 0.01 * seed] * 20, task=task, seed=seed, problem=problem))
                found.append(run("tpe-bests", [0.9] + [0.2] * 19, task=task, seed=seed, problem=problem))
    return found


def test_the_differences_are_ours_minus_theirs() -> None:
    """Paired; clearly worse where the whole interval is above 0."""
    found = summary(_runs(), trials=20)
    assert found.ours == "headstart"
    assert found.difference("tpe-bests", 1).value == pytest.approx(0.51 - 0.9)
    assert found.difference("tpe-bests", 20).value == pytest.approx(0.51 - 0.2)
    assert found.clearly_worse("tpe-bests") == [
        f"{problem} after {mark}" for problem in ("classifier-choice", "pruned-network") for mark in (5, 10, 20)
    ]
    assert found.seconds("headstart") == pytest.approx(2.0)


def test_the_figures_asked_for_are_judged() -> None:
    """The choice of classifier and the pruned network are there by name."""
    sheets = {sheet.name: sheet for sheet in tables(summary(_runs(), trials=20))}
    verdicts = {str(row[0]): row[-1] for row in sheets["asked"].rows}
    assert verdicts == {
        "mean regret after 1/5/10/20 − tpe-bests's": "missed",
        "problems clearly worse than tpe-bests": "missed",
        "trials 2 to 5 worse than a random median": "reached",
        "choice of classifier after 20": "missed",
        "pruned network after 20 − tpe-bests's": "missed",
    }
    turned = summary(_runs(), trials=20, show=["tpe-bests", "headstart"])
    assert turned.ours == "tpe-bests"
    assert turned.clearly_worse("headstart") == ["classifier-choice after 1", "pruned-network after 1"]


def test_the_report_is_written_for_people_and_programs(tmp_path: Path) -> None:
    """With the scale of every task, and six digits."""
    data, text = write_report(summary(_runs(), trials=20), tmp_path / "new", {"commit": "abc"})
    record = json.loads(data.read_text())
    assert record["problems"]["pruned-network"]["tasks"]["t"] == {"best": 0.0, "median": 1.0}
    assert record["all"]["headstart"]["regret"]["20"]["value"] == 0.51
    assert record["versions"] == {"commit": "abc"}
    assert "### headstart − tpe-bests: paired differences of regret" in text.read_text()
    assert "**worse**" in text.read_text()


def test_the_program_runs_reports_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it wrote once it does not run again; bad names are errors in our words."""
    monkeypatch.setattr(past, "_FEWEST", 3)
    monkeypatch.setattr(past, "_MOST", 3)
    common = ["--problems", "diverging-sgd", "--trials", "2", "--pool", "5", "--seeds", "1"]
    folders = ["--store", str(tmp_path / "s"), "--cache", str(tmp_path / "c"), "--out", str(tmp_path / "o")]
    assert main([*common, *folders, "--methods", "random,tpe"]) == 0
    assert "0 left" in capsys.readouterr().out
    assert main([*common, *folders, "--methods", "random,tpe"]) == 0
    printed = capsys.readouterr().out
    assert "left" not in printed
    assert "Mean normalised regret over 1 problems, 5 pairs" in printed
    assert {path.name for path in (tmp_path / "o").iterdir()} == {"tuning.json", "tuning.md"}
    assert main(["--problems", "svn", *folders]) == 2
    assert "no tuning problem 'svn'" in capsys.readouterr().out
    assert main([*common, *folders, "--label", "x"]) == 2
    assert main([*common, *folders, "--seeds", "0"]) == 2


def test_an_empty_store_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says that there is nothing."""
    append_runs(tmp_path, [POOL_RUN])
    assert main(["--report-only", "--store", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "no runs of 20 trials" in " ".join(capsys.readouterr().out.split())
