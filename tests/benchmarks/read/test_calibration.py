"""Calibration: hand-made predictions whose coverage is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.benchmarks.read.runs import run_of

from benchmarks.read.calibration import (
    KNOWN,
    Calibration,
    Forecasts,
    Known,
    calibration,
    coverage,
    forecasts,
    groups,
    load_forecasts,
    sheets,
)
from benchmarks.read.figures import draw_calibration
from benchmarks.run.presets import PRESETS
from benchmarks.store import Run, Store
from headstart import InputError

FAMILY, OTHER = "hartmann6[sources=1,points=120,noise=0.1]", "alpine[sources=1,points=20,noise=0.1]"
TABLE = "svm_sklearn[sources=10,rows=60]"


def _run(
    pit: Sequence[float | None],
    *,
    problem: str = FAMILY,
    method: str = "shgp",
    seed: int = 0,
    log_density: Sequence[float | None] | None = None,
) -> Run:
    run = run_of(problem, method, seed, [0.5] * len(pit))
    return replace(run, pit=list(pit), log_density=list(pit if log_density is None else log_density))


def _measured(*runs: Run, by_problem: bool = False) -> dict[tuple[str, str, str], Calibration]:
    found, _ = forecasts(runs)
    return {(c.problems, c.method, c.known.label): c for c in calibration(found, by_problem=by_problem)}


@pytest.mark.parametrize(
    ("pit", "inside"),
    [
        (0.5, (1, 1, 1)),
        (0.26, (1, 1, 1)),
        (0.74, (1, 1, 1)),
        (0.25, (1, 1, 1)),  # the ends belong to the interval
        (0.975, (0, 0, 1)),
        (0.24, (0, 1, 1)),
        (0.76, (0, 1, 1)),
        (0.09, (0, 0, 1)),
        (0.91, (0, 0, 1)),
        (0.03, (0, 0, 1)),
        (0.02, (0, 0, 0)),
        (0.98, (0, 0, 0)),
        (0.0, (0, 0, 0)),
        (1.0, (0, 0, 0)),
    ],
)
def test_intervals_are_central(pit: float, inside: tuple[int, ...]) -> None:
    """As much is left out below as above: results that are too low count like results that are too high."""
    (measured,) = _measured(_run([pit])).values()
    assert measured.coverage == inside


def test_uniform_pits_are_calibrated() -> None:
    """Of predictions that are right the nominal share is inside, at any level; standard errors say how nearly."""
    draw = np.random.default_rng(0)
    found, _ = forecasts(_run(draw.uniform(size=6).tolist(), seed=seed) for seed in range(1000))
    levels = (0.1, 0.5, 0.8, 0.95)
    share, error = coverage(found, Known(1, 5), levels)
    expected = [math.sqrt(level * (1 - level) / 5000) for level in levels]
    assert error == pytest.approx(expected, rel=0.1)
    assert np.all(np.abs(share - levels) < 3 * np.array(expected))


def test_a_prediction_belongs_to_the_number_of_results_known_before_it() -> None:
    """The first is made with none, the sixth with five, the seventh with six, the 21st with 20, the 22nd with 21."""
    outside, inside = 0.0, 0.5
    expected = {"0": {0}, "1–5": set(range(1, 6)), "6–20": set(range(6, 21)), "21+": set(range(21, 25))}
    assert {known.label: set(range(25)[known.columns]) for known in KNOWN} == expected
    for n in range(25):
        found = _measured(_run([inside if i == n else outside for i in range(25)]))
        for label, members in expected.items():
            measured = found["families", "shgp", label]
            assert measured.predictions == len(members)
            assert measured.coverage[2] == pytest.approx((n in members) / len(members))


def test_what_was_not_predicted_does_not_count() -> None:
    """GPBO's first point is not outside its interval: there is none. A method that never predicts is not there."""
    found = _measured(
        _run([None, 0.5, 0.999], method="gpbo"), _run([None] * 3, method="random"), _run([None, 0.5, None], seed=1)
    )
    assert set(found) == {("families", "gpbo", "1–5"), ("families", "shgp", "1–5")}
    assert found["families", "gpbo", "1–5"].coverage == (0.5, 0.5, 0.5)
    assert found["families", "gpbo", "1–5"].predictions == 2
    assert found["families", "shgp", "1–5"].predictions == 1


def test_families_and_tables_are_apart_and_problems_where_asked() -> None:
    """Every run weighs by its predictions."""
    runs = [
        *(_run([0.5, 0.5], problem=FAMILY, seed=seed) for seed in range(2)),
        *(_run([0.0, 0.0], problem=OTHER, seed=seed) for seed in range(2)),
        *(_run([0.5, 0.0], problem=TABLE, seed=seed) for seed in range(2)),
    ]
    found = _measured(*runs)
    assert {key: c.coverage[0] for key, c in found.items()} == {
        ("families", "shgp", "0"): 0.5,
        ("families", "shgp", "1–5"): 0.5,
        ("tables", "shgp", "0"): 1.0,
        ("tables", "shgp", "1–5"): 0.0,
    }
    assert found["families", "shgp", "0"].runs == 4
    apart = _measured(*runs, by_problem=True)
    assert {key[0]: c.coverage[0] for key, c in apart.items() if key[2] == "1–5"} == {OTHER: 0.0, FAMILY: 1.0, TABLE: 0}
    assert list(groups(forecasts(runs)[0])) == ["families", "tables"]


def test_standard_errors_take_a_run_for_one_observation() -> None:
    """Five predictions that stand and fall together are worth one; a single run has no standard error."""
    runs = [_run([None, *[0.5 if seed % 2 else 0.0] * 5], seed=seed) for seed in range(100)]
    together = _measured(*runs)["families", "shgp", "1–5"]
    assert together.coverage == (0.5, 0.5, 0.5)
    assert together.standard_error == pytest.approx([math.sqrt(0.25 / 100)] * 3, rel=0.1)
    alone = _measured(runs[0])["families", "shgp", "1–5"]
    assert np.isnan(alone.standard_error).all()
    assert math.isnan(alone.log_density.low)
    sure = _measured(*(run for run in runs if run.seed % 2))["families", "shgp", "1–5"]
    assert sure.standard_error == (0.0, 0.0, 0.0)


def test_log_densities_are_means_over_predictions_with_an_interval() -> None:
    """±1.96 s/√n of runs that are each one prediction; the median does not follow one that is lost."""
    logs = np.random.default_rng(1).normal(-1.0, 2.0, size=400)
    runs = [_run([0.5], seed=seed, log_density=[float(v)]) for seed, v in enumerate(logs)]
    measured = _measured(*runs)["families", "shgp", "0"]
    assert measured.log_density.value == pytest.approx(logs.mean())
    half = 1.96 * logs.std(ddof=1) / 20
    assert measured.log_density.high - measured.log_density.low == pytest.approx(2 * half, rel=0.1)
    lost = _measured(*runs, _run([0.0], seed=400, log_density=[-1e6]))["families", "shgp", "0"]
    assert lost.log_density.value < -2000
    assert lost.median == pytest.approx(np.median(logs), abs=0.05)


@pytest.mark.parametrize(("inside", "good"), [(91, "no"), (92, "yes"), (98, "yes"), (99, "no")])
def test_a_coverage_of_92_to_98_percent_is_good(inside: int, good: str) -> None:
    """Of the 95 % interval; too many inside is not good either."""
    runs = [_run([0.5 if seed < inside else 1.0], seed=seed) for seed in range(100)]
    (sheet,) = sheets(forecasts(runs)[0])
    (row,) = (dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows)
    assert (row["good"], row["predictions"]) == (good, 100)
    assert str(row["95 %"]).startswith(f"{inside}.0 ± ")


def test_sheets_of_problems_go_to_a_file_of_their_own() -> None:
    """Beside those of families and tables, so that no prediction is counted twice in a file."""
    found, _ = forecasts([_run([0.5]), _run([0.5], problem=TABLE)])
    assert [(s.name, s.title) for s in sheets(found, by_problem=True)] == [
        ("calibration", "Calibration: families"),
        ("calibration", "Calibration: tables"),
        ("calibration-by-problem", f"Calibration: {FAMILY}"),
        ("calibration-by-problem", f"Calibration: {TABLE}"),
    ]


def test_runs_without_predictions_are_refused_or_said(tmp_path: Path) -> None:
    """None at all: run again, elsewhere. Some: how many were left out. A method without any: which ones there are."""
    store = Store(tmp_path)
    old = _run([0.5, 0.5])
    old.pit.clear()
    old.log_density.clear()
    store.append([old])
    with pytest.raises(InputError, match=rf"hold no predictions.* into another folder.* run ({'|'.join(PRESETS)}) "):
        load_forecasts(tmp_path)
    store.append([_run([0.5, 0.5], seed=1), _run([None, None], method="random")])
    found, remarks = load_forecasts(tmp_path)
    assert [len(f.pit) for f in found] == [1]
    assert remarks == (f"{FAMILY}, shgp: 1 of 2 runs hold no predictions; left out.",)
    assert load_forecasts(tmp_path, ["shgp"])[0][0].method == "shgp"
    with pytest.raises(InputError, match=r"no predictions of 'random'\. There are predictions of shgp\."):
        load_forecasts(tmp_path, ["random"])
    with pytest.raises(InputError, match=r"there are no results"):
        load_forecasts(tmp_path / "nowhere")


@pytest.mark.slow
def test_the_picture_has_panels_for_what_is_there(tmp_path: Path, figures: list[Figure]) -> None:
    """A row for families and one for tables, with the coverage of every method; the same every time."""
    draw = np.random.default_rng(0)
    runs = [
        _run([None if method == "gpbo" else 0.4, *draw.uniform(size=7)], problem=problem, method=method, seed=seed)
        for problem in (FAMILY, TABLE)
        for method in ("gpbo", "shgp", "auto")
        for seed in range(3)
    ]
    found: tuple[Forecasts, ...] = forecasts(runs)[0]
    paths = [draw_calibration(found, tmp_path / name / "coverage.png") for name in ("one", "two")]
    assert [path.name for path in paths] == ["coverage.png", "coverage.png"]
    titles = [axes.get_title(loc="left") for axes in figures[0].axes]
    told = [known for known in KNOWN if any(np.isfinite(f.pit[:, known.columns]).any() for f in found)]
    assert [title.partition(",")[0] for title in titles] == ["Families"] * len(told) + ["Tables"] * len(told)
    assert titles[0] == "Families, no result known"
    own = [f for f in found if f.method == "shgp" and f.problem == FAMILY]
    share, _ = coverage(own, told[0], [0.8])
    lines = figures[0].axes[0].lines
    (look,) = (line.get_color() for line in lines if line.get_label() == "SHGP")
    x, y = next(
        np.array(line.get_xydata()).T for line in lines if line.get_color() == look and line.get_label() != "SHGP"
    )
    assert np.interp(0.8, x, y) == pytest.approx(share[0])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with pytest.raises(InputError, match=r"coverage\.pdf: pictures are written as PNG"):
        draw_calibration(found, tmp_path / "coverage.pdf")
