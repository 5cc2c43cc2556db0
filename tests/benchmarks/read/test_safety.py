"""Whether AUTO does harm, and what it keeps: hand-made regrets whose verdicts are known."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.benchmarks.read.runs import run_of

from benchmarks.problems.adversarial import Scenario
from benchmarks.read.analysis import Results, collect
from benchmarks.read.safety import safety, scenario_of, spoilt
from benchmarks.read.sheet import Sheet

RELATED = "hartmann6[sources=1,points=120,noise=0.1]"
NEGATED = "hartmann6[negated,sources=1,points=120,noise=0.1]"
NOISE = "alpine[noise,sources=1,points=20,noise=0.1]"
SCALED = "alpine[scaled,sources=1,points=20,noise=0.1]"
SVM, XGBOOST = "svm_sklearn[sources=10,rows=60]", "xgboost[sources=8,rows=60]"


def _results(regrets: Mapping[str, Mapping[str, float]], *, steps: int = 30, runs: int = 3) -> Results:
    """Methods whose regret is the same after every evaluation and in every run."""
    return collect(
        [
            run_of(problem, method, seed, [regret] * steps)
            for problem, methods in regrets.items()
            for method, regret in methods.items()
            for seed in range(runs)
        ]
    )


def _sheets(results: Results) -> dict[str, Sheet]:
    return {sheet.name: sheet for sheet in safety(results)}


def _rows(sheet: Sheet) -> list[dict[str, object]]:
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]


@pytest.mark.parametrize("scenario", Scenario)
def test_the_scenario_is_in_the_name(scenario: Scenario) -> None:
    """It is the first word in the brackets; without one the sources are related, also where the noise is a number."""
    word = "" if scenario is Scenario.RELATED else f"{scenario.value},"
    assert scenario_of(f"branin[{word}sources=1,points=40,noise=0.1]") is scenario
    assert scenario_of("past[error,sources=2,rows=10]") is Scenario.RELATED
    assert scenario_of("branin") is Scenario.RELATED


def test_only_runs_with_misleading_sources_are_published_with_the_report() -> None:
    """The others are published by the comparison."""
    results = _results({RELATED: {"gpbo": 1.0, "auto": 1.0}, NEGATED: {"gpbo": 1.0}, SVM: {"auto": 1.0}})
    assert spoilt(results).problems == (NEGATED,)


def test_harm_is_tolerated_up_to_a_tenth_of_an_order_of_magnitude() -> None:
    """10 ** 0.09 times GPBO's regret is within, 10 ** 0.11 times is not; of scaled sources it is not asked."""
    harm = _sheets(
        _results(
            {
                NEGATED: {"gpbo": 0.1, "auto": 0.1 * 10**0.09},
                NOISE: {"gpbo": 0.01, "auto": 0.01 * 10**0.11},
                SCALED: {"gpbo": 0.1, "auto": 1.0},
            }
        )
    )["harm"]
    rows = {str(row["scenario"]): row for row in _rows(harm)}
    assert {name: row["at most 0.10"] for name, row in rows.items()} == {"negated": "yes", "noise": "no", "scaled": ""}
    assert rows["negated"]["AUTO − GPBO"] == "+0.09 [+0.09, +0.09]"
    assert (rows["negated"]["GPBO"], rows["noise"]["GPBO"], rows["noise"]["runs"]) == ("-1.00", "-2.00", 3)


@pytest.mark.parametrize(("own", "share", "verdict"), [(0.01, 1.0, "yes"), (10**-1.8, 0.8, "no"), (0.2, -0.301, "no")])
def test_what_is_kept_is_a_share_of_the_best_single_model_s_gain(own: float, share: float, verdict: str) -> None:
    """SHGP is ten times better than GPBO. AUTO's gain over its gain must be 0.9."""
    gain = _sheets(_results({RELATED: {"gpbo": 0.1, "shgp": 0.01, "mhgp": 0.05, "auto": own}}))["gain"]
    assert gain.rows[0][-3:] == ("SHGP", f"{share:.0%}", verdict)


@pytest.mark.parametrize(("own", "shown"), [(0.01, "1.00 of 1.00 (100%)"), (10**-1.8, "**0.80 of 1.00 (80%)**")])
def test_what_is_kept_is_told_after_several_evaluations(own: float, shown: str) -> None:
    """Equal regrets after every evaluation give equal shares; one that clearly falls short of 90 % is bold."""
    kept = _sheets(_results({RELATED: {"gpbo": 0.1, "shgp": 0.01, "mhgp": 0.05, "auto": own}}))["kept"]
    assert kept.rows == (("Hartmann-6", 3, shown, shown, shown, shown),)


def test_where_nobody_gains_auto_should_lose_nothing() -> None:
    """There is no share then, but a verdict."""
    for own, verdict in ((0.1, "yes"), (0.11, "no")):
        gain = _sheets(_results({RELATED: {"gpbo": 0.1, "shgp": 0.3, "auto": own}}))["gain"]
        assert gain.rows[0][-2:] == ("", verdict)


def test_tables_have_means_ranks_and_a_verdict() -> None:
    """Ranks are of the means of each table, ties shared; AUTO is clearly worse where the interval is above 0."""
    sheets = _sheets(
        _results(
            {
                SVM: {"gpbo": 0.4, "rgpe": 0.2, "gc3p": 0.2, "auto": 0.1, "shgp": 0.0},
                XGBOOST: {"gpbo": 0.1, "rgpe": 0.2, "gc3p": 0.3, "auto": 0.4, "shgp": 0.0},
            }
        )
    )
    assert set(sheets) == {"tables-10", "tables-30"}
    for sheet in sheets.values():
        svm, xgboost, ranks = _rows(sheet)
        assert (svm["table"], svm["AUTO"], svm["clearly worse"]) == ("SVM", "0.1000", "no")
        assert (xgboost["AUTO − GPBO"], xgboost["clearly worse"]) == ("+0.3000 [+0.3000, +0.3000] (3)", "yes")
        assert ranks["table"] == "mean rank"
        assert [ranks[m] for m in ("GPBO", "RGPE", "GC3P", "AUTO")] == ["2.50", "2.25", "2.75", "2.50"]
        assert "SHGP" not in ranks


def test_a_rival_that_is_not_there_is_left_out() -> None:
    """Ranks are of those that all tables have; too few evaluations make no sheet."""
    regrets = {SVM: {"gpbo": 0.4, "rgpe": 0.2, "auto": 0.1}, XGBOOST: {"gpbo": 0.1, "auto": 0.4}}
    sheets = _sheets(_results(regrets, steps=12))
    assert list(sheets) == ["tables-10"]
    assert sheets["tables-10"].columns[:4] == ("table", "runs", "GPBO", "AUTO")
    *_, ranks = _rows(sheets["tables-10"])
    assert (ranks["GPBO"], ranks["AUTO"]) == ("1.50", "1.50")


@pytest.mark.parametrize("missing", ["auto", "gpbo"])
def test_without_auto_or_gpbo_there_is_nothing_to_say(missing: str) -> None:
    """Then there is no sheet at all; a table without one of them is left out."""
    methods = {m: 0.1 for m in ("auto", "gpbo", "shgp") if m != missing}
    assert safety(_results({RELATED: methods, NEGATED: methods})) == ()
    sheet = _sheets(_results({SVM: {"gpbo": 0.1, "auto": 0.2}, XGBOOST: methods}))["tables-30"]
    assert [row[0] for row in sheet.rows] == ["SVM", "mean rank"]


def test_a_single_model_may_be_missing_on_a_problem() -> None:
    """It has no number there, and the best is one of the others."""
    other = "branin[sources=1,points=40,noise=0.1]"
    regrets = {
        RELATED: {"gpbo": 0.1, "shgp": 0.01, "star": 0.05, "auto": 0.01},
        other: {"gpbo": 0.1, "star": 0.05, "auto": 0.05},
    }
    best = {row["problem"]: (row["best single"], row["SHGP"]) for row in _rows(_sheets(_results(regrets))["gain"])}
    assert best == {"Hartmann-6": ("SHGP", "-1.00"), "Branin": ("STAR", "")}
