"""Tests, corrections, effects, targets and profiles: small cases worked out by hand, and a control that reads 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats
from tests.benchmarks.read.runs import run_of

from benchmarks.problems.adversarial import Scenario
from benchmarks.read.analysis import Results, collect
from benchmarks.read.comparison import differences, holm, over_tasks, signed_ranks
from benchmarks.read.figures import draw_profiles
from benchmarks.read.relation import binned, nearest_mean, relation_sheets, relations, spearman, spec_of
from benchmarks.read.report import compare
from benchmarks.read.targets import budgets, median_budget, profile, target_sheets
from benchmarks.run.experiment import ProblemSpec
from benchmarks.store import Run

A, B = "branin[sources=1,points=40,noise=0.1]", "hartmann3[sources=1,points=60,noise=0.1]"


def _runs(method: str, regrets: Sequence[Sequence[float]], problem: str = A) -> list[Run]:
    return [run_of(problem, method, seed, trace) for seed, trace in enumerate(regrets)]


# ── tests and corrections ─────────────────────────────────────────────────────────────────────────────────────────


def test_holms_correction_by_hand() -> None:
    """.005·4, .01·3, .03·2 and .04·1, where the last may not be below the one before; none is above 1."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.5, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


def test_signed_ranks_by_hand() -> None:
    """Ranks 3 and 2 for better, 1 for worse: an effect of (1 − 5)/6, and 2 · 2/8 for p; equal pairs do not count."""
    p, effect = signed_ranks(np.array([-3.0, 0.0, -2.0, 1.0]))
    assert (p, effect) == pytest.approx((0.5, -2 / 3))
    assert signed_ranks(np.zeros(4)) == (1.0, 0.0)
    assert signed_ranks(np.array([1e-12, -1e-12])) == (1.0, 0.0)
    values = np.random.default_rng(0).normal(0.4, size=30)
    assert signed_ranks(values)[0] == pytest.approx(stats.wilcoxon(values).pvalue)
    assert signed_ranks(-values)[1] == -signed_ranks(values)[1]


def test_a_verdict_needs_the_corrected_test() -> None:
    """Nine of ten better is p = .004 on its own, which is enough alone, and not among twenty problems."""
    values = [[0.5 + 0.01 * i] for i in range(9)]
    names = [f"branin[sources=1,points={n},noise=0.1]" for n in range(1, 21)]
    one = [*_runs("gpbo", [[1.0]] * 10), *_runs("shgp", [*values, [1.01]])]
    (found,) = differences(collect(one), "gpbo")
    assert found.p_value == pytest.approx(2 * 2 / 2**10)
    assert found.verdict == "better"
    many = [replace(run, problem=name) for name in names[1:] for run in (*_runs("gpbo", [[1.0]] * 10),)]
    many += [replace(run, method="shgp") for run in many]
    found = next(d for d in differences(collect([*one, *many]), "gpbo") if d.problem == A)
    assert found.p_value == pytest.approx(20 * 2 * 2 / 2**10)
    assert found.verdict == ""


def test_seeds_of_a_task_are_one_unit() -> None:
    """log₁₀ differences −1 and −3 of one target and 1 of another are two units, −2 and 1."""
    base = [replace(r, label="xxy"[r.seed]) for r in _runs("gpbo", [[1.0], [1.0], [0.1]])]
    ours = [replace(r, label="xxy"[r.seed]) for r in _runs("shgp", [[0.1], [0.001], [1.0]])]
    (found,) = over_tasks(collect([*base, *ours]), "gpbo")
    assert (found.pairs, found.wins, found.losses) == (2, 1, 1)
    assert found.log10.value == pytest.approx(-0.5)
    assert found.effect == pytest.approx((1 - 2) / 3)
    elsewhere = [replace(r, problem=B) for r in (*base, *ours)]
    (both,) = over_tasks(collect([*base, *ours, *elsewhere]), "gpbo")
    assert both.pairs == 4


def _exchangeable(draw: np.random.Generator) -> Results:
    """Six problems on which two methods differ by chance alone, as the control does."""
    problems = [f"branin[sources=1,points={n},noise=0.1]" for n in range(6)]
    level = {problem: draw.lognormal(size=(12, 1)) for problem in problems}
    return collect(
        [
            run
            for method in ("gpbo", "gpbo-again")
            for problem in problems
            for run in _runs(method, (level[problem] * draw.lognormal(size=(12, 1))).tolist(), problem)
        ]
    )


def test_the_negative_control_reads_0() -> None:
    """Of 200 comparisons of like with like at most one in twenty has any verdict, and no difference on average."""
    draw = np.random.default_rng(0)
    alarms, means = 0, []
    for _ in range(200):
        found = differences(results := _exchangeable(draw), "gpbo")
        alarms += any(d.verdict for d in found)
        means.append(np.mean([d.log10.value for d in found]))
    assert alarms <= 0.05 * 200 + 3 * math.sqrt(0.05 * 0.95 * 200)
    assert abs(np.mean(means)) < 3 * np.std(means) / math.sqrt(200)
    tasks = next(sheet for sheet in compare(results, "gpbo") if sheet.name == "tasks")
    assert tasks.rows[0][0] == "GPBO again (control)"
    assert "must read 0" in tasks.note


def test_losses_stand_beside_wins_before_they_are_corrected() -> None:
    """A loss by its own interval is listed; a win is, where the corrected test says so."""
    worse = [*np.linspace(1.2, 2.4, 9), 0.55, 0.65, 0.75]  # an interval above 0, and p = .06
    runs = [*_runs("gpbo", [[1.0]] * 12), *_runs("shgp", [[0.1]] * 12)]
    runs += [*_runs("gpbo", [[1.0]] * 12, B), *_runs("shgp", [[v] for v in worse], B)]
    sheets = {sheet.name: sheet for sheet in compare(collect(runs), "gpbo")}
    assert sheets["verdicts"].rows == (("SHGP", 1, 1, 0),)
    assert [row[:3] for row in sheets["clear"].rows] == [("leans to worse", "SHGP", B), ("better", "SHGP", A)]


def test_tables_and_functions_are_summarised_apart_where_there_are_several_of_both(tmp_path: Path) -> None:
    """Mean ranks, ratios, verdicts and profiles are of one kind each; all are together where one kind is alone."""
    kinds = {"table[rows=5]": 2.0, "other[rows=5]": 2.0, A: 0.5, B: 0.5}
    runs = [
        run
        for problem, regret in kinds.items()
        for run in (*_runs("gpbo", [[1.0]] * 12, problem), *_runs("shgp", [[regret]] * 12, problem))
    ]
    sheets = {sheet.title: sheet for sheet in compare(collect(runs), "gpbo")}
    assert sheets["Tables: All 2 problems against GPBO, 24 common runs"].rows[1] == ("SHGP", "2.00 · 2.00")
    assert sheets["Functions: All 2 problems against GPBO, 24 common runs"].rows[1] == ("SHGP", "1.00 · 0.50")
    assert [path.name for path in draw_profiles(collect(runs), tmp_path)] == [
        "profiles-tables.png",
        "profiles-functions.png",
    ]
    clear = "Clearly better or worse than GPBO, of all comparisons (problem × evaluations)"
    assert [sheets[f"{kind}: {clear}"].rows[0][1:] for kind in ("Tables", "Functions")] == [(0, 0, 2), (2, 0, 0)]
    assert clear in {sheet.title for sheet in compare(collect(runs[24:]), "gpbo")}


# ── targets and profiles ──────────────────────────────────────────────────────────────────────────────────────────


def test_budgets_and_solve_rates_by_hand() -> None:
    """Runs that reach .01 after 2, 3 and never: two of three are solved, the median takes 3."""
    traces = [[0.5, 0.01, 0.01], [0.5, 0.02, 0.005], [0.5, 0.04, 0.02]]
    results = collect(_runs("shgp", traces))
    needed = budgets(results.cells[0], 0.01)
    assert needed.tolist() == [2.0, 3.0, math.inf]
    assert median_budget(needed) == 3.0
    assert median_budget(np.array([1.0, math.inf])) == 1.0
    assert median_budget(np.array([1.0, math.inf, math.inf])) == math.inf
    (sheet,) = target_sheets(results)
    assert sheet.rows[0][1:3] == ("SHGP", 3)
    assert sheet.rows[0][3:5] == pytest.approx(((0.01 + 0.005 + 0.02) / 3, 0.01))
    assert sheet.rows[0][5:] == ("1.00 · 2", "0.67 · 3", "0.00 · ∞")


def test_profiles_by_hand() -> None:
    """Budgets 1, 4 and ∞ against 2, 2 and ∞: which share is solved after n, and within τ times the best."""
    ours = [[0.0] * 4, [1.0, 1.0, 1.0, 0.0], [1.0] * 4]
    theirs = [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0] * 4]
    found = profile(collect([*_runs("gpbo", theirs), *_runs("shgp", ours)]), 0.01)
    assert found is not None
    steps = np.arange(1.0, 5.0)
    assert found.within("shgp", steps).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])
    assert found.within("gpbo", steps).tolist() == pytest.approx([0, 2 / 3, 2 / 3, 2 / 3])
    factors = np.array([1.0, 2.0])
    assert found.near_the_best("shgp", factors).tolist() == pytest.approx([1 / 3, 2 / 3])
    assert found.near_the_best("gpbo", factors).tolist() == pytest.approx([1 / 3, 2 / 3])


def test_profiles_never_fall(tmp_path: Path) -> None:
    """More evaluations, or a larger factor, solve no fewer; pairs are those that all methods have."""
    draw = np.random.default_rng(0)
    traces = {m: np.minimum.accumulate(draw.uniform(size=(9, 12)) ** 3, axis=1).tolist() for m in ("gpbo", "shgp")}
    results = collect([*_runs("gpbo", traces["gpbo"][:7]), *_runs("shgp", traces["shgp"])])
    found = profile(results, 0.05)
    assert found is not None
    assert {len(v) for v in found.budgets.values()} == {7}
    for method in found.budgets:
        assert (np.diff(found.within(method, np.arange(1.0, 13.0))) >= 0).all()
        assert (np.diff(found.near_the_best(method, np.array([1.0, 1.5, 2.0, 4.0]))) >= 0).all()
    assert [path.name for path in draw_profiles(results, tmp_path)] == ["profiles.png"]
    assert profile(collect(_runs("gpbo", [[1.0]])), 0.05) is None


# ── past and target ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "spec",
    [
        ProblemSpec(family="branin"),
        ProblemSpec(family="alpine", sources=5, points=20, reverse=True),
        ProblemSpec(table="svm", sources=3, rows=20),
        ProblemSpec(table="svm", rows=None, sources=2, in_turn=True, repeats=True),
        ProblemSpec(table="switches"),
        ProblemSpec(family="hartmann3", spoilt=Scenario.NEGATED.value),
    ],
)
def test_a_problem_is_built_again_from_its_name(spec: ProblemSpec) -> None:
    """The name in a store says everything."""
    name = spec.build().name
    assert spec_of(name).build().name == name


def test_the_past_is_the_mean_of_the_nearest_rows() -> None:
    """Standardised values −1, 0, 1 at 0, 1 and 9, of which fewer than five are all; a constant source says nothing."""
    X, rows = torch.tensor([[0.2], [8.0]]).double(), torch.arange(7.0).double().unsqueeze(-1)
    y = torch.tensor([-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1.0]).double()
    z = y / y.std()
    torch.testing.assert_close(nearest_mean(X, rows, y), torch.stack([z[:5].mean(), z[2:].mean()]))
    assert nearest_mean(X, rows, torch.ones(7).double()).tolist() == [0.0, 0.0]


def test_rank_correlation() -> None:
    """One for any increasing function, −1 for a decreasing one, 0 with a constant."""
    a = torch.tensor([1.0, 2.0, 5.0, 9.0])
    assert spearman(a, a**3) == pytest.approx(1)
    assert spearman(a, -a) == pytest.approx(-1)
    assert spearman(a, torch.ones(4)) == 0.0


def test_spoilt_sources_are_less_alike() -> None:
    """Negated ones are as far below 0 as related ones are above; what cannot be built has no relation."""
    related = relations(ProblemSpec(table="svm", sources=3, rows=40).build().name, (0, 1), 5)
    negated = relations(ProblemSpec(table="svm", sources=3, rows=40, spoilt="negated").build().name, (0, 1), 5)
    for seed in (0, 1):
        assert related[seed].candidates == 300
        assert negated[seed].correlation == pytest.approx(-related[seed].correlation, abs=1e-9)
    assert related[0].correlation > 0.3
    assert relations("past[error,sources=2,rows=10]", (0,), 5) == {}
    assert relations("nowhere", (0,), 5) == {}


def test_gains_in_bins() -> None:
    """Bins are (low, high]; the mean gain of those inside stands with how many there are."""
    cells = binned(np.array([1.0, 3.0, 5.0]), np.array([0.0, 0.2, 0.31]), (-1.0, 0.0, 0.3, 1.0))
    assert cells == ("1.00 [1.00, 1.00] (1)", "3.00 [3.00, 3.00] (1)", "5.00 [5.00, 5.00] (1)")
    assert binned(np.empty(0), np.empty(0), (0.0, 1.0)) == ("",)


def test_the_gain_is_set_against_correlation_and_budget() -> None:
    """A regret ten times lower is a gain of 1; one evaluation of 300 rows is below 1 %."""
    name = ProblemSpec(table="svm", sources=3, rows=40).build().name
    runs = [*_runs("gpbo", [[0.1]] * 3, name), *_runs("shgp", [[0.01]] * 3, name)]
    by_correlation, by_budget = relation_sheets(collect(runs), "gpbo", [1])
    shown = [cell for cell in by_correlation.rows[0][2:] if cell]
    assert all(str(cell).startswith("1.00 [1.00, 1.00]") for cell in shown)
    assert by_budget.rows[0][:2] == ("SHGP", "1.00 [1.00, 1.00] (3)")
    on_functions = relation_sheets(collect([*_runs("gpbo", [[1.0]]), *_runs("shgp", [[0.1]])]), "gpbo", [1])
    assert [sheet.name for sheet in on_functions] == ["correlation"]
