"""Halved and doubled numbers: what is tried, how it is compared, and a small run."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.queue import work_off
from benchmarks.read.sheet import Interval
from benchmarks.run.sensitivity import (
    Variant,
    VariantUnit,
    pairs,
    scaled,
    sensitivity_sheet,
    units_of,
    variants,
    verdict,
)
from benchmarks.store import Run, Store
from headstart import tuning

TRIED = Variant("AUTO_TUNING", "first_points", 5, 10)


def _run(variant: Variant, seed: int, regret: list[float]) -> Run:
    return Run("p", "auto", seed, {**variant.settings, "steps": 10}, regret=[1.0] * 4 + [regret[0]] * 5 + [regret[1]])


def test_numbers_are_scaled_by_their_kind() -> None:
    """Whole numbers stay whole and positive, shares stay below 1, other numbers and tuples are multiplied."""
    assert [scaled(7, 2.0, "rows"), scaled(1, 0.5, "rows")] == [14, 1]
    assert [scaled(0.6, 2.0, "kin_belief"), scaled(0.7, 2.0, "log_sd"), scaled(1.0, 2.0, "share")] == [0.99, 1.4, 2.0]
    assert scaled((0.1, 0.4), 0.5, "own_shares") == (0.05, 0.2)


def test_every_number_is_tried_halved_and_doubled_where_that_is_another_value() -> None:
    """The values are those of headstart.tuning; a word picks some of them."""
    found = list(variants("switch_rate"))
    assert {v.before for v in found} == {tuning.AUTO_TUNING.switch_rate}
    assert [v.value for v in found] == [scaled(found[0].before, factor, "") for factor in (0.5, 2.0)]
    assert all(v.value != v.before for v in variants())
    assert {v.section for v in variants()} == {"AUTO_TUNING", "PLAIN_TUNING"}


def test_runs_are_paired_by_problem_and_seed() -> None:
    """Runs that only one side has, or another commit, do not count; differences are those of log₁₀ regret."""
    runs = [_run(Variant(), 0, [1.0, 0.1]), _run(Variant(), 1, [1.0, 1.0]), _run(TRIED, 2, [9.0, 9.0])]
    runs += [_run(TRIED, 1, [1.0, 0.01]), _run(TRIED, 0, [10.0, 0.1])]
    runs.append(replace(_run(TRIED, 0, [5.0, 5.0]), settings={**TRIED.settings, "commit": "another"}))
    assert sorted(pairs(runs, TRIED, "auto")) == [[0.0, -2.0], [1.0, 0.0]]
    assert pairs(runs, TRIED, "gpbo") == []
    (row,) = sensitivity_sheet([TRIED], runs).rows
    assert row[:7] == ("first_points", "5", "10", "auto", 2, 2, "+0.500 [+0.000, +1.000]")


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


@pytest.mark.slow
def test_a_variant_is_set_before_anything_reads_it() -> None:
    """In a fresh process it is what is imported from then on; in one that has imported models it is refused."""
    code = (
        "from benchmarks.run.sensitivity import Variant; "
        "Variant('AUTO_TUNING', 'switch_rate', 3, 6).set(); "
        "import headstart.models.family; from headstart.tuning import AUTO_TUNING; print(AUTO_TUNING.switch_rate)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "6\n"
    with pytest.raises(RuntimeError, match="may have read"):
        TRIED.set()


@pytest.mark.slow
def test_a_small_run_is_kept_and_reported(tmp_path: Path) -> None:
    """A variant and the unchanged numbers on one problem; a second call has nothing left to run."""
    problems = {"forrester[sources=1,points=8,noise=0.1]": {"family": "forrester", "points": 8}}
    store, started = Store(tmp_path), list[int]()
    for _ in range(2):
        units = units_of(0, [TRIED], problems, store.read().runs, steps=5)
        assert work_off(units, store, on_start=started.append) == []
    assert started == [2, 0]
    runs = store.read().runs
    assert [(run.method, len(run.regret)) for run in runs] == [("auto", 5), ("gpbo", 5), ("auto", 5)]
    assert pairs(runs, TRIED, "auto") == [[0.0]]
    assert units_of(1, [TRIED], problems, runs, steps=5) == [VariantUnit(Variant(), problems, 1, 5)]
    assert "half to double: first_points." in sensitivity_sheet([TRIED], runs).note
