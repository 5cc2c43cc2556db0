"""Pasts of which it is known what each source is, and how verdicts on them are counted."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.store import Run
from benchmarks.verdicts.pasts import Truth, family_past, generator, spoilt
from benchmarks.verdicts.report import Judged, judged, share, verdict_sheet
from benchmarks.verdicts.runs import CHECKING, CHOOSING, STEPS, VerdictUnit, verdict_units
from headstart.models.auto.explanation import Verdict


def test_the_truth_is_a_rank_correlation_over_all_and_over_the_better_half() -> None:
    """What agrees among bad values alone is neither related nor unrelated."""
    x = np.linspace(0, 1, 200)
    assert Truth.of(x**3, x) is Truth.RELATED
    assert Truth.of(-x, x) is Truth.REVERSED
    assert Truth.of(generator("noise").normal(size=200), x) is Truth.UNRELATED
    assert Truth.of(np.abs(x - 0.35), x) is Truth.BETWEEN
    assert Truth.of(np.ones(200), x) is Truth.UNRELATED


def test_sources_are_spoilt_in_a_known_way() -> None:
    """Negated, replaced by another smooth function in the same units, or in another order."""
    x = np.linspace(0, 1, 200)[:, None]
    y = 5 + 3 * x[:, 0]
    pool = (x, y, y)
    as_it_is, truth = spoilt(y, x, "as it is", pool, generator(1))
    assert as_it_is is y
    assert truth is Truth.RELATED
    turned, truth = spoilt(y, x, "upside down", pool, generator(1))
    assert np.array_equal(turned, -y)
    assert truth is Truth.REVERSED
    other, _ = spoilt(y, x, "unrelated", pool, generator(1))
    assert (other.mean(), other.std()) == pytest.approx((y.mean(), y.std()))
    assert np.abs(np.diff(other)).max() < 0.1 * np.ptp(other)
    mixed, truth = spoilt(y, x, "shuffled", pool, generator(1))
    assert sorted(mixed) == sorted(y)
    assert truth is Truth.UNRELATED


def test_a_past_is_its_own_however_often_it_is_drawn() -> None:
    """Equal seeds give equal sources; no problem chosen on is checked on."""
    one, again, other = family_past("branin", 3), family_past("branin", 3), family_past("branin", 4)
    assert [s.y.tolist() for s in one.sources] == [s.y.tolist() for s in again.sources]
    assert one.truths == again.truths
    assert one.sources[0].y.tolist() != other.sources[0].y.tolist()
    assert not set(CHOOSING) & set(CHECKING)


def test_a_verdict_is_wrong_if_it_says_something_else() -> None:
    """To say nothing is neither right nor wrong, nor is anything that is said of what lies between."""
    assert Judged(Truth.RELATED, Verdict.UNRELATED).wrong
    assert Judged(Truth.UNRELATED, Verdict.REVERSED).wrong
    assert Judged(Truth.REVERSED, Verdict.RELATED).wrong
    assert not Judged(Truth.REVERSED, Verdict.REVERSED).wrong
    assert not Judged(Truth.BETWEEN, Verdict.RELATED).wrong
    assert Judged(Truth.UNRELATED, Verdict.IGNORED).decided
    for verdict in (Verdict.UNKNOWN, Verdict.UNTESTED):
        assert not Judged(Truth.RELATED, verdict).decided
        assert not Judged(Truth.RELATED, verdict).wrong


def test_the_sheet_counts() -> None:
    """A row per group and number of results, with Wilson's intervals."""
    truth = ["related", "related", "upside down", "unrelated", "between"]
    traces = {"truth": truth} | {
        f"after {n}": ["related", "not known yet", "upside down", "related", "unrelated"] for n in (5, 10, 20)
    }
    run = Run(problem="branin", method="auto", seed=0, settings={}, traces=traces)
    assert sum(one.decided for one in judged([run], 10)) == 4
    rows = {(row[0], row[1]): row[2:] for row in verdict_sheet([run]).rows}
    assert set(rows) == {(name, n) for name in ("chosen on", "all") for n in (5, 10, 20)}
    runs, sources, decided, wrong, related, turned, unrelated = rows["chosen on", 10]
    assert (runs, sources) == (1, 5)
    assert [str(cell).split()[0] for cell in (decided, wrong, related, turned, unrelated)] == [
        *("80.0", "25.0", "50.0", "100.0", "0.0")
    ]
    assert f"{share([True] * 5 + [False] * 5):.1f}" == "50.0 [23.7, 76.3]"


def test_a_unit_is_done_once() -> None:
    """With twenty points, and verdicts after five, ten and twenty of them."""
    (unit,) = verdict_units(["forrester"], 1)
    (run,) = unit.run("cpu")
    assert len(run.traces["truth"]) == len(run.traces["after 5"]) == len(run.traces["after 20"])
    assert run.settings == {"steps": STEPS}
    assert unit.left({run.key}) is None
    assert unit.left(set()) is unit
    assert VerdictUnit("forrester", 1).left({run.key}) is not None
