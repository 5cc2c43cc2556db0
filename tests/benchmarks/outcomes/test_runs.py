"""Runs, the file that keeps them, and what is made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.outcomes import work
from benchmarks.outcomes.compare import main
from benchmarks.outcomes.problems.catalogue import outcome_problem
from benchmarks.outcomes.reading import curves_of
from benchmarks.outcomes.report import outcome_sheets
from benchmarks.outcomes.runs import OutcomeCell, OutcomeRun, append_outcomes, compare_one, read_outcomes
from benchmarks.outcomes.work import outcome_cells, work_through


def made_up(problem: str, method: str, seed: int, found: list[float], regret: list[float]) -> OutcomeRun:
    """A run that never was."""
    curves = {"regret": regret, "found": found}
    return OutcomeRun(problem, seed, method, len(found), "t", [], {}, curves, [0.0], 0.0)


@pytest.mark.parametrize("method", ["alone", "random", "optuna-tpe", "botorch"])
def test_a_run_keeps_the_rule_and_is_the_same_again(method: str) -> None:
    """Mixtures add up to 1, regrets never rise, and nothing depends on what ran before."""
    cell = OutcomeCell("mixture", 0, method, 2)
    first, again = compare_one(cell), compare_one(cell)
    assert first.x == again.x
    assert first.y == again.y
    assert [sum(row) for row in first.x] == pytest.approx([1.0, 1.0], abs=1e-6)
    assert first.curves["regret"][1] <= first.curves["regret"][0]


def test_noise_is_seen_and_not_counted() -> None:
    """What a method sees has the noise of the seed in it; the regret is of the value without."""
    run = compare_one(OutcomeCell("sum-rule", 0, "random", 2))
    instance = outcome_problem("sum-rule").draw(0, 2)
    values = instance.evaluate(torch.tensor(run.x, dtype=torch.float64))["value"]
    seen = torch.tensor(run.y["value"], dtype=torch.float64)
    assert torch.allclose(seen - values, instance.noise["value"], atol=1e-5)
    assert float(instance.noise["value"].abs().amin()) > 1e-4
    assert run.curves["regret"] == pytest.approx(instance.yardstick.curves(values.unsqueeze(-1))["regret"], abs=1e-5)


def test_what_is_in_the_store_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what lies beside it in another file; a line that was cut off is run again."""
    wanted = outcome_cells(["mixture"], ["random"], runs=3, steps=2)
    assert work_through(wanted[:2], tmp_path) == []
    (tmp_path / "runs.jsonl").rename(tmp_path / "elsewhere.jsonl")
    with (tmp_path / "elsewhere.jsonl").open("a") as file:
        file.write('{"schema": 1, "problem": "mix')
    ran = []

    def noted(cell: OutcomeCell, provenance: dict[str, object]) -> OutcomeRun:
        ran.append(cell)
        return compare_one(cell, provenance)

    monkeypatch.setattr(work, "compare_one", noted)
    assert work_through(wanted, tmp_path) == []
    assert ran == wanted[2:]
    assert sorted(run.seed for run in read_outcomes(tmp_path)) == [0, 1, 2]


def test_nothing_is_begun_when_the_time_is_up(tmp_path: Path) -> None:
    """Whoever gives it no seconds gets no runs."""
    assert work_through(outcome_cells(["mixture"], ["random"], runs=1, steps=1), tmp_path, seconds=0.0) == []
    assert read_outcomes(tmp_path) == ()


def test_a_run_that_fails_is_reported_and_the_others_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cell in two raises; the other is written."""

    def failing(cell: OutcomeCell, provenance: dict[str, object]) -> OutcomeRun:
        if cell.seed == 0:
            raise RuntimeError("no luck")
        return compare_one(cell, provenance)

    monkeypatch.setattr(work, "compare_one", failing)
    failed = work_through(outcome_cells(["mixture"], ["random"], runs=2, steps=1), tmp_path)
    assert [(cell.seed, str(error)) for cell, error in failed] == [(0, "no luck")]
    assert [run.seed for run in read_outcomes(tmp_path)] == [1]


def test_differences_are_paired_and_ratios_are_of_means() -> None:
    """Over the seeds that both have: a seed of one method alone counts for its mean only."""
    runs = [
        made_up("suzuki-limit", "headstart", 0, [1.0, 1.0], [0.5, 0.1]),
        made_up("suzuki-limit", "headstart", 1, [0.0, 1.0], [1.0, 0.3]),
        made_up("suzuki-limit", "alone", 0, [0.0, 0.0], [1.0, 1.0]),
        made_up("suzuki-limit", "alone", 1, [0.0, 1.0], [1.0, 0.4]),
        made_up("suzuki-limit", "alone", 2, [1.0, 1.0], [0.0, 0.0]),
    ]
    (found,) = curves_of(runs, steps=2)
    gap, pairs = found.difference("headstart", "alone", "regret", 2)
    assert pairs == 2
    assert gap.value == pytest.approx((-0.9 - 0.1) / 2)
    assert found.mean("alone", "regret", 2).value == pytest.approx(1.4 / 3)
    ratio, _ = found.ratio("headstart", "alone")
    assert ratio.value == pytest.approx((1 + 2) / (3 + 2))
    cost, _ = found.cost("headstart", "alone", "regret", 2)
    assert cost.value == pytest.approx(np.mean([0.9, 0.1]) / np.mean([1.0, 0.4]))


def test_the_report_says_what_is_reached_and_what_is_missed() -> None:
    """Of limits: a clear difference after 10 evaluations, and half of the evaluations to the first."""
    runs = []
    for seed in range(4):
        runs.append(made_up("suzuki-limit", "headstart", seed, [1.0] * 10, [0.1] * 10))
        runs.append(made_up("suzuki-limit", "alone", seed, [0.0] + [1.0] * 9, [0.1 + 0.1 * seed] * 10))
        runs.append(made_up("suzuki-limit", "optuna-gp", seed, [1.0] * 10, [0.1] * 10))
    asked = outcome_sheets(curves_of(runs, steps=10))[0]
    verdicts = {row[1]: row[-1] for row in asked.rows}
    assert verdicts == {
        "regret after 10 − alone's": "reached",
        "evaluations to the first within the limits, ratio to alone's": "reached",
        "regret after 10 − optuna-gp's": "missed",
        "evaluations to the first within the limits, ratio to optuna-gp's": "missed",
    }


def test_the_command_runs_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 0 and a Markdown file; an unknown method ends with 2."""
    where = ["--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"), "--quiet"]
    run = ["--problems", "mixture", "--runs", "1", "--steps", "1"]
    assert main([*run, "--methods", "random", *where]) == 0
    assert "mixture: regret" in (tmp_path / "out" / "outcomes.md").read_text()
    assert main([*run, "--methods", "nobody", *where]) == 2
    assert "nobody" in capsys.readouterr().out


def test_of_equal_runs_the_last_counts(tmp_path: Path) -> None:
    """A store that was written to twice has every run once."""
    append_outcomes(tmp_path, [made_up("suzuki-limit", "alone", 0, [0.0], [1.0])])
    append_outcomes(tmp_path, [made_up("suzuki-limit", "alone", 0, [1.0], [0.5])])
    (run,) = read_outcomes(tmp_path)
    assert run.curves["regret"] == [0.5]
