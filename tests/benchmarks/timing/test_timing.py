"""Timings as units and tables: what is kept, what is left to do, and the smallest case of each part."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks.queue import work_off
from benchmarks.store import Run, Store
from benchmarks.timing.complexity import STATED, measure_steps, step_timings, timings_of
from benchmarks.timing.fits import compiled_evidence, plain_fit, shgp_fit
from benchmarks.timing.measurement import Figures, Timing, measured, timing_sheets
from benchmarks.timing.sampler import learning, suggestions
from benchmarks.timing.scale import in_a_process, measures_of, scale_sheets


def _two() -> Figures:
    return {"headstart": {"ms": 2.0, "more": 1.0}, "botorch": {"ms": 10.0}}


def test_a_timing_is_kept_for_its_commit_and_shown_as_a_ratio(tmp_path: Path) -> None:
    """A second call has nothing left to do; the other engine takes five times as long."""
    store, started = Store(tmp_path), list[int]()
    for _ in range(2):
        assert work_off([Timing("fit, n = 20", _two)], store, on_start=started.append) == []
    assert started == [1, 0]
    (sheet,) = timing_sheets(measured(store))
    assert sheet.columns == ("what", "method", "×", "ms", "more")
    assert sheet.cells == (("fit, n = 20", "headstart", "", "2", "1"), ("fit, n = 20", "botorch", "5", "10", ""))


@pytest.mark.slow
def test_fits_of_both_engines_are_timed() -> None:
    """On the smallest data there are; the likelihood is not below BoTorch's."""
    torch.manual_seed(0)
    found = plain_fit(8, 1)
    assert found["headstart"]["log p, least"] > -1e-2
    assert {"headstart", "botorch", "botorch, softplus", "botorch default, 1 fit"} == set(found)
    assert all(figures["ms"] > 0 for figures in found.values())
    assert shgp_fit(8, 1)["headstart"]["log p, least"] > -1e-2
    assert set(compiled_evidence(8, 1)) == {"headstart", "torch"}


def test_growth_is_a_slope_in_logarithms() -> None:
    """Seconds ∝ rows² have the exponent 2."""
    runs = [Run(f"learn, {n}", "auto", 0, {}, traces={"learn": [1e-6 * n**2]}) for n in (500, 1000, 2000)]
    ((words, model, exponent),) = scale_sheets(runs)[-1].rows
    assert (words, model) == ("to 5000 rows", "auto")
    assert exponent == pytest.approx(2.0)


@pytest.mark.slow
def test_a_case_of_its_own_process_is_measured_or_given_up() -> None:
    """With every measure it came to."""
    assert {"learn", "suggest", "further", "memory"} == set(in_a_process("learn", "30", ["shgp"], 60)["shgp"])
    assert "given up after s" in in_a_process("target", "3000", ["auto"], 1)["auto"]
    assert "first" in next(iter(measures_of("target", "41", "shgp")))


@pytest.mark.slow
def test_a_training_step_has_a_set_up_and_an_evaluation(tmp_path: Path) -> None:
    """For every model of the paper's table, and again from the store."""
    assert set(measure_steps(4, 1)) == set(STATED)
    store = Store(tmp_path)
    assert work_off(step_timings((8, 4), 1), store) == []
    timings = timings_of(measured(store))
    assert [(t.model, t.n_source) for t in timings] == [(model, n) for n in (4, 8) for model in STATED]
    assert all(t.total == pytest.approx(t.setup + t.evaluation) and t.evaluation > 0 for t in timings)


@pytest.mark.slow
def test_suggestions_and_learning_are_timed() -> None:
    """By all routes on the same small data; what is cached is not learnt again."""
    found = suggestions(1, 1, sources=1, points=8, trials=4)
    routes = {"TransferSampler (AUTO)", "TransferSampler (SHGP)", "Optuna's GPSampler", "BoTorch's MultiTaskGP"}
    assert set(found) == routes
    assert all(figures["s"] > 0 for figures in found.values())
    assert set(learning(2, 8)) == {"nothing cached", "all sources cached", "all but one cached", "explain()"}
