"""The benchmark of how it grows: cases in processes of their own, limits, going on where it was, and the tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.commit import commit
from benchmarks.scale import measure
from benchmarks.scale.accuracy import ExactMethod, errors, exact_posterior
from benchmarks.scale.plan import PARTS, ScaleCase, all_cases
from benchmarks.scale.report import GPU_MARKS, MARKS, as_tables, lines_of, slope, written
from benchmarks.scale.report import main as write_page
from benchmarks.scale.tasks import draw_task
from benchmarks.scale.work import measures_of
from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer, Propagation


def record(name: str, ended: str = "", **measures: Any) -> dict[str, Any]:
    """A case as it is kept."""
    part, size, model = name.split("/")
    return {"name": name, "part": part, "size": size, "model": model, "limit": 9, "measures": measures, "ended": ended}


def test_every_figure_that_is_asked_for_is_measured() -> None:
    """No line of what is asked for belongs to a case or a measure that does not exist."""
    from benchmarks.scale.plan import ASKED

    cases = {f"{case.part}/{case.size}" for case in all_cases()}
    assert {case for case, _ in ASKED} <= cases
    assert {case.part for case in all_cases()} == set(PARTS)
    assert ScaleCase("learn", "2000", "auto", 1).asked("learn") == 4.0
    assert ScaleCase("learn", "2000", "botorch", 1).asked("learn") is None
    assert ScaleCase("many", "100x50", "auto", 1).numbers == (100, 50)


@pytest.mark.parametrize(
    ("case", "measures"),
    [
        (("learn", "30", "shgp"), {"learn", "suggest", "further"}),
        (("many", "3x10", "auto"), {"learn", "suggest", "further"}),
        (("target", "45", "shgp"), {"first", "mean", "most", "new_results", "suggest"}),
        (("exact", "50", "shgp"), {"mean_error", "mean_error_rms", "sd_error", "sd_error_rms"}),
    ],
)
def test_a_case_measures_what_its_part_says(case: tuple[str, str, str], measures: set[str]) -> None:
    """Every part yields its measures and the memory, and none of them is negative."""
    found: dict[str, Any] = {}
    for each in measures_of(ScaleCase(*case, 60)):
        found |= each
    assert set(found) == measures | {"memory", "over"}
    assert all(value >= 0 for value in found.values())
    assert found["memory"] > 50


def test_a_case_that_takes_too_long_is_given_up_and_keeps_what_it_had() -> None:
    """A limit of a second of CPU time ends the process; that is an outcome, not an error."""
    outcome = measure.measured(ScaleCase("learn", "3000", "shgp", 1))
    assert outcome["ended"] == "given up after 1 s"
    assert "learn" not in outcome["measures"]


def test_a_case_that_fails_says_why() -> None:
    """The last line of what the process said is kept."""
    outcome = measure.measured(ScaleCase("learn", "20", "nonsense", 20))
    assert "nonsense" in outcome["ended"].lower()


def test_an_interrupted_measurement_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the store is not measured again; a complete measurement begins anew; --only keeps the others."""
    asked: list[str] = []

    def fake(case: ScaleCase) -> dict[str, Any]:
        asked.append(case.name)
        if case.name == stop:
            raise KeyboardInterrupt
        return record(case.name, learn=1.0, regrets=[0.5]) | {"commit": commit()}

    monkeypatch.setattr(measure, "measured", fake)
    out, store = tmp_path / "scale.json", tmp_path / "kept.jsonl"
    options = ["--quick", "--out", str(out), "--store", str(store)]
    names = [case.name for case in all_cases(quick=True)]
    stop = names[3]
    with pytest.raises(KeyboardInterrupt):
        measure.main(options)
    stop = ""
    measure.main(options)
    assert asked == [*names[:4], *names[3:]]
    assert [case["name"] for case in json.loads(out.read_text())["cases"]] == names
    asked.clear()
    measure.main([*options, "--only", "target"])
    assert asked == [name for name in names if name.startswith("target")]
    assert [case["name"] for case in json.loads(out.read_text())["cases"]] == names


# ── the tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_slope_is_the_exponent() -> None:
    """Seconds that grow as rows to the 1.7 have slope 1.7, whatever 20,000 rows take and whoever was given up."""
    cases = [record(f"learn/{n}/auto", learn=3e-4 * n**1.7) for n in (500, 1000, 5000)]
    cases += [record("learn/20000/auto", learn=1e9), record("learn/2000/auto", "given up after 9 s")]
    found = slope(cases, "learn", "auto")
    assert found is not None
    assert math.isclose(found, 1.7)
    assert slope(cases, "learn", "shgp") is None
    sources = [record(f"many/{s}x100/shgp", learn=2.0 * s**1.1) for s in (10, 30, 100)]
    assert math.isclose(slope([*sources, record("many/1000x50/shgp", learn=1.0)], "many", "shgp") or 0, 1.1)


def test_a_line_says_what_was_asked_and_whether_it_is_so() -> None:
    """Reached, missed, given up and nothing asked for are told apart; what it took before stands beside it."""
    cases = [
        record("learn/2000/auto", learn=3.9, memory=500.0),
        record("learn/5000/auto", "given up after 9 s"),
        record("many/100x100/auto", "given up after 9 s", learn=9.0),
        record("learn/500/botorch", learn=1.0),
    ]
    lines = {(line.size, line.what): line for line in lines_of(cases, [record("learn/2000/auto", learn=73.0)])}
    first = lines["2000", "learn"]
    assert (first.measured, first.before, first.asked, first.reached) == ("3.9 s", "73.0 s", "≤ 4 s", True)
    assert (lines["5000", "learn"].measured, lines["5000", "learn"].reached) == ("given up after 9 s", False)
    assert lines["100 × 100", "learn"].reached is False
    assert lines["100 × 100", "a suggestion"].measured == "given up after 9 s"
    assert lines["500", "learn"].reached is None
    assert len(list(as_tables(cases))) == 2


def test_regrets_are_compared_run_by_run() -> None:
    """A constant gap is outside its interval however large the spread between runs; none is within."""
    shgp, exact = [0.1, 5.0, 2.0], [0.1, 5.0, 2.001]
    worse = [
        record("regret/9/shgp", regret=1, regrets=[1.1, 6.0, 3.0]),
        record("regret/9/exact", regret=1, regrets=exact),
    ]
    alike = [record("regret/9/shgp", regret=1, regrets=shgp), worse[1]]
    assert [line.reached for line in lines_of(worse) if line.model == "SHGP − EXACT"] == [False]
    assert [line.reached for line in lines_of(alike) if line.model == "SHGP − EXACT"] == [True]


GPU = {
    "experiments": {
        "fig2": {"cells": 9, "measured": 4, "runs": 1650, "gpu_seconds": 3600.0, "runs_per_gpu_second": 0.458}
    },
    "paper": {
        "cpu_hours": 154353,
        "runs": 1650,
        "gpu_hours": 1.0,
        "share_measured": 0.75,
        "cells_unknown": 0,
        "complete": True,
    },
    "provenance": {"hardware": "a GPU"},
    "jobs": 4,
}


def test_the_page_has_the_tables_between_its_marks(tmp_path: Path) -> None:
    """Text around the marks stays, what was not measured as well, and writing twice changes nothing."""
    cases = [record("learn/2000/auto", learn=3.9), record("learn/5000/auto", learn=99.0)]
    page = tmp_path / "scale.md"
    page.write_text(
        "# Head\n\n" + "\n\n".join(f"{begin}\nold\n{end}" for begin, end in (MARKS, GPU_MARKS)) + "\n\nTail\n"
    )
    (tmp_path / "scale.json").write_text(json.dumps({"cases": cases}))
    (tmp_path / "scale-before.json").write_text(json.dumps({"cases": [record("learn/2000/auto", learn=73.0)]}))
    write_page(tmp_path, page)
    assert page.read_text().count("old") == 1
    (tmp_path / "gpu.json").write_text(json.dumps(GPU))
    write_page(tmp_path, page)
    first = page.read_text()
    assert first.startswith("# Head\n")
    assert first.endswith("Tail\n")
    assert "| 2000 | AUTO | 3.9 s (was 73.0 s; ≤ 4 s: reached) |" in first
    assert "| 5000 | AUTO | 99.0 s (≤ 15 s: **missed**) |" in first
    assert "| fig2 | 1,650 | 1 | 0.46 | 4 of 9 |" in first
    assert "**1 GPU-hours** (a GPU, 4 processes). 75% of that" in first
    write_page(tmp_path, page)
    assert page.read_text() == first


def test_the_page_of_the_documentation_is_that_of_the_results() -> None:
    """docs/scale.md holds what ``python -m benchmarks.scale.report`` makes of results/."""
    root = Path(__file__).parents[4]
    page = (root / "docs" / "scale.md").read_text(encoding="utf-8")
    assert all(page.count(mark) == 1 for mark in (*MARKS, *GPU_MARKS))
    assert written(page, root / "results") == page


# ── against the exact posterior ───────────────────────────────────────────────────────────────────────────────────────


def test_the_exact_posterior_is_that_of_a_layer() -> None:
    """The dense formulas of the benchmark are the ones of the models, with an offset that is not zero."""
    data, params = draw_task(60, "a"), GPParams.of(lengthscale=[0.5] * 6, outputscale=2.0, noise_var=0.1, offset=0.7)
    X = draw_task(20, "b").X
    mean, var = exact_posterior(Kernel.MATERN52, params, data, X)
    nothing = NoBeliefs(torch.Size())
    layer = Layer.observe(nothing, params, data, kernel=Kernel.MATERN52, propagation=Propagation.EXACT)
    beliefs = layer.as_beliefs()
    at = beliefs.at(X)
    assert torch.allclose(mean, at.mean, rtol=1e-10, atol=1e-10)
    assert torch.allclose(var, beliefs.var(at), rtol=1e-8, atol=1e-10)


def test_an_exact_model_has_no_error() -> None:
    """Of a small source every row counts, and the errors are those of rounding."""
    (found,) = errors("shgp", 1, 80)
    assert found["mean_error"] < 1e-8
    assert found["sd_error"] < 1e-8


def test_the_exact_method_is_shgp_where_that_is_exact() -> None:
    """With few rows both find the same hyperparameters, and so the same points."""
    from benchmarks.methods.method import Settings
    from benchmarks.problems.transfer import SyntheticProblem
    from benchmarks.run.runner import run_batch

    problem, settings = SyntheticProblem("hartmann3", source_points=30), Settings(paper=False, acquisition="log_ei")
    ours, exact = (run_batch(problem, m, [0], steps=3, settings=settings)[0] for m in ("shgp", ExactMethod()))
    assert exact.method == "exact"
    assert torch.allclose(torch.tensor(ours.x), torch.tensor(exact.x), atol=1e-3)
