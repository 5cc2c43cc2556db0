"""Whether AUTO does harm, and what it keeps: hand-made regrets whose verdicts are known."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
from tests.benchmarks.read.runs import run_of

from benchmarks.problems.adversarial import Scenario
from benchmarks.read.analysis import Results, collect
from benchmarks.read.safety import safety, scenario_of
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
    assert {name: row["within 0.10"] for name, row in rows.items()} == {"negated": "yes", "noise": "no", "scaled": ""}
    assert rows["negated"]["difference"] == pytest.approx(0.09)
    assert rows["negated"]["gpbo"] == pytest.approx(-1)
    assert rows["noise"]["gpbo"] == pytest.approx(-2)
    assert rows["noise"]["runs"] == 3
    assert len(harm.shown) == 3
    assert "+0.11 [+0.11, +0.11]" in next(row for row in harm.shown if row[0] == "noise")


@pytest.mark.parametrize(("own", "share", "verdict"), [(0.01, 1.0, "yes"), (10**-1.8, 0.8, "no"), (0.2, -0.301, "no")])
def test_what_is_kept_is_a_share_of_the_best_single_model_s_gain(own: float, share: float, verdict: str) -> None:
    """SHGP is ten times better than GPBO. AUTO's gain over its gain must be 0.9; variants of AUTO are no rivals."""
    gain = _sheets(_results({RELATED: {"gpbo": 0.1, "shgp": 0.01, "mhgp": 0.05, "auto-best": 1e-5, "auto": own}}))[
        "gain"
    ]
    (row,) = _rows(gain)
    expected = (math.log10(own) + 1) / -1
    assert row["kept"] == pytest.approx(expected)
    assert row["kept"] == pytest.approx(share, abs=1e-3)
    assert (row["best single"], row["at least 90 %"]) == ("shgp", verdict)
    assert gain.shown[0][-3:] == ("SHGP", f"{share:.0%}", verdict)


def test_where_nobody_gains_auto_should_lose_nothing() -> None:
    """There is no share then, but a verdict."""
    for own, verdict in ((0.1, "yes"), (0.11, "no")):
        (row,) = _rows(_sheets(_results({RELATED: {"gpbo": 0.1, "shgp": 0.3, "auto": own}}))["gain"])
        assert math.isnan(float(str(row["kept"])))
        assert row["at least 90 %"] == verdict


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
        assert (svm["table"], svm["auto"], svm["clearly worse"]) == (SVM, pytest.approx(0.1), "no")
        assert (xgboost["difference"], xgboost["clearly worse"]) == (pytest.approx(0.3), "yes")
        assert ranks["table"] == "mean rank"
        assert [ranks[m] for m in ("gpbo", "rgpe", "gc3p", "auto")] == [2.5, 2.25, 2.75, 2.5]
        assert "shgp" not in ranks


def test_a_rival_that_is_not_there_is_left_out() -> None:
    """Ranks are of those that all tables have; too few evaluations make no sheet."""
    regrets = {SVM: {"gpbo": 0.4, "rgpe": 0.2, "auto": 0.1}, XGBOOST: {"gpbo": 0.1, "auto": 0.4}}
    sheets = _sheets(_results(regrets, steps=12))
    assert list(sheets) == ["tables-10"]
    assert sheets["tables-10"].columns[:4] == ("table", "runs", "gpbo", "auto")
    *_, ranks = _rows(sheets["tables-10"])
    assert (ranks["gpbo"], ranks["auto"]) == (1.5, 1.5)


@pytest.mark.parametrize("missing", ["auto", "gpbo"])
def test_without_auto_or_gpbo_there_is_nothing_to_say(missing: str) -> None:
    """Then there is no sheet at all."""
    methods = {m: 0.1 for m in ("auto", "gpbo", "shgp") if m != missing}
    assert safety(_results({RELATED: methods, NEGATED: methods})) == ()


def test_a_single_model_may_be_missing_on_a_problem() -> None:
    """It has no number there, and the best is one of the others."""
    other = "branin[sources=1,points=40,noise=0.1]"
    regrets = {
        RELATED: {"gpbo": 0.1, "shgp": 0.01, "star": 0.05, "auto": 0.01},
        other: {"gpbo": 0.1, "star": 0.05, "auto": 0.05},
    }
    gain = _sheets(_results(regrets))["gain"]
    best = {row["problem"]: (row["best single"], row["shgp"]) for row in _rows(gain)}
    assert best[RELATED] == ("shgp", pytest.approx(-1))
    assert best[other][0] == "star"
    assert math.isnan(float(str(best[other][1])))
    assert "" in gain.shown[0]


@pytest.mark.parametrize("missing", ["auto", "gpbo"])
def test_a_table_without_auto_or_gpbo_is_left_out(missing: str) -> None:
    """The others are compared as if it were not there; with none left there is no sheet."""
    lone = {m: 0.1 for m in ("auto", "gpbo") if m != missing}
    sheet = _sheets(_results({SVM: {"gpbo": 0.1, "auto": 0.2}, XGBOOST: lone}))["tables-30"]
    svm, ranks = _rows(sheet)
    assert (svm["table"], svm["gpbo"], svm["auto"]) == (SVM, pytest.approx(0.1), pytest.approx(0.2))
    assert (ranks["gpbo"], ranks["auto"]) == (1, 2)
    assert safety(_results({XGBOOST: lone})) == ()
