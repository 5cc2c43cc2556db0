"""Halved and doubled numbers: what is tried, how it is compared, and a small run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.read.sheet import Interval
from benchmarks.run import sensitivity
from benchmarks.run.sensitivity import Record, Variant, pairs, report, scaled, variants, verdict
from headstart import tuning

TRIED = Variant("AUTO_TUNING", "plain_turn_every", 3, 6)


def _record(variant: Variant, seed: int, log_regret: list[float]) -> Record:
    return {"variant": variant.key, "model": "AUTO", "problem": "p", "seed": seed, "log_regret": log_regret}


def test_numbers_are_scaled_by_their_kind() -> None:
    """Whole numbers stay whole and positive, shares stay below 1, other numbers and tuples are multiplied."""
    assert [scaled(7, 2.0, "rows"), scaled(1, 0.5, "rows")] == [14, 1]
    assert [scaled(0.6, 2.0, "kin_belief"), scaled(0.7, 2.0, "log_sd"), scaled(1.0, 2.0, "share")] == [0.99, 1.4, 2.0]
    assert scaled((0.1, 0.4), 0.5, "own_shares") == (0.05, 0.2)


def test_every_number_is_tried_halved_and_doubled_where_that_is_another_value() -> None:
    """The values are those of headstart.tuning; a word picks some of them."""
    found = list(variants("plain_turn_every"))
    assert {v.before for v in found} == {tuning.AUTO_TUNING.plain_turn_every}
    assert [v.value for v in found] == [scaled(found[0].before, factor, "") for factor in (0.5, 2.0)]
    assert all(v.value != v.before for v in variants())
    assert {v.section for v in variants()} == {"AUTO_TUNING", "PLAIN_TUNING"}


def test_runs_are_paired_by_problem_and_seed() -> None:
    """Runs that only one side has do not count."""
    records = [_record(Variant(), 0, [0.0, -1.0]), _record(Variant(), 1, [0.5, 0.5]), _record(TRIED, 2, [9.0, 9.0])]
    records += [_record(TRIED, 1, [0.5, 0.0]), _record(TRIED, 0, [0.25, -1.0])]
    assert sorted(pairs(records, TRIED, "AUTO")) == [[0.0, -0.5], [0.25, 0.0]]
    assert pairs(records, TRIED, "GPBO") == []
    row = report([TRIED], records)[4]
    assert row.startswith("| plain_turn_every | 3 | 6 | AUTO | 2 | 2 | +0.125 (+0.000 to +0.250) | -0.250 (-0.5")


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        ([(0.0, 0.0), (0.0, 0.0)], "changes nothing"),
        ([(-0.02, 0.05), (0.01, 0.05)], "no difference"),
        ([(-0.02, 0.05), (0.01, 0.3)], "worse"),
        ([(-0.2, -0.05), (-0.5, 0.3)], "better"),
        ([(-0.2, 0.05), (-0.5, 0.3)], "unclear"),
    ],
)
def test_the_verdict_is_that_of_all_marks(intervals: list[tuple[float, float]], said: str) -> None:
    assert verdict([Interval((low + high) / 2, low, high) for low, high in intervals]) == said


def test_a_variant_is_set_before_anything_reads_it() -> None:
    """In a fresh process it is what is imported from then on; in one that has imported models it is refused."""
    code = (
        "from benchmarks.run.sensitivity import Variant; "
        "Variant('AUTO_TUNING', 'plain_turn_every', 3, 6).set(); "
        "import headstart.models.family; from headstart.tuning import AUTO_TUNING; print(AUTO_TUNING.plain_turn_every)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "6\n"
    with pytest.raises(RuntimeError, match="may have read"):
        TRIED.set()


def test_a_small_run_is_kept_continued_and_reported(tmp_path: Path, monkeypatch) -> None:
    """Two variants of one number on one problem; a second call has nothing left to run."""
    monkeypatch.setattr(sensitivity, "development_problems", lambda: [SyntheticProblem("forrester", source_points=8)])
    printed = sensitivity.measure(tmp_path, jobs=1, runs=1, steps=5, only="plain_turn_every")
    kept = (tmp_path / "runs.jsonl").read_text()
    assert [line.count("log_regret") for line in kept.splitlines()] == [1] * 4  # unchanged: AUTO and GPBO
    assert sensitivity.measure(tmp_path, jobs=1, runs=1, steps=5, only="plain_turn_every") == printed
    assert (tmp_path / "runs.jsonl").read_text() == kept
    assert printed[-1] == "No difference from half to double: plain_turn_every."
    assert (tmp_path / "table.md").read_text().splitlines() == printed
