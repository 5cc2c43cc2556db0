"""Limits, thresholds and targets as people write them."""

from __future__ import annotations

import pytest

from headstart import InputError
from headstart.data.outcomes import Goal, Limit
from headstart.data.requirements import parse_requirement, required

COST, STRENGTH, PH = Goal("cost"), Goal("strength", maximize=True), Goal("pH")


def _read(*texts: str, **baseline: float) -> tuple[tuple[Goal, ...], tuple[Limit, ...]]:
    return required((COST, STRENGTH, PH), map(parse_requirement, texts), baseline.get)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("impurity <= 2", Limit("impurity", at_most=2)),
        ("impurity≤2", Limit("impurity", at_most=2)),
        ("2 >= impurity", Limit("impurity", at_most=2)),
        ("impurity < -1.5e-3", Limit("impurity", at_most=-0.0015)),
        ("turnover >= 20", Limit("turnover", at_least=20)),
        ("turnover at least 20", Limit("turnover", at_least=20)),
        ("side product at most 2", Limit("side product", at_most=2)),
        ("20 <= turnover", Limit("turnover", at_least=20)),
        ("6.5 <= acid <= 7.5", Limit("acid", 7.5, 6.5)),
        ("7.5 >= acid >= 6.5", Limit("acid", 7.5, 6.5)),
        ("Impurity [%] <= 0,5", Limit("Impurity [%]", at_most=0.5)),
        ("side product, total <= 3", Limit("side product, total", at_most=3)),
        ("'0' <= 3", Limit("0", at_most=3)),
        ("0 <= 3", Limit("0", at_most=3)),
        ('"a <= b" >= 3', Limit("a <= b", at_least=3)),
        ("impurity <= 2 * 3 / 4 + 1", Limit("impurity", at_most=2.5)),
    ],
)
def test_a_limit_is_read_as_it_is_written(text: str, limit: Limit) -> None:
    """On either side, in one line, with units, and in quotes."""
    assert _read(text)[1] == (limit,)


def test_of_an_objective_it_is_the_threshold_or_the_target() -> None:
    """In any order; the range around a target says how far from it is still of interest."""
    goals, limits = _read("6.5 <= pH <= 7.5", "cost <= 10", "strength >= 3", "pH = 7", "heat <= 1")
    assert goals == (
        Goal("cost", threshold=10),
        Goal("strength", maximize=True, threshold=3),
        Goal("pH", target=7, threshold=7.5),
    )
    assert limits == (Limit("heat", at_most=1),)
    assert _read("pH near 7")[0][2] == _read("pH ≈ 7")[0][2] == Goal("pH", target=7)
    assert _read("heat <= 2", "heat >= 1")[1] == (Limit("heat", at_most=2, at_least=1),)


def test_a_baseline_is_what_a_value_is_relative_to() -> None:
    """Its share and a number besides; it is asked for only where it is needed."""
    goals, limits = _read("cost <= 1.1 * baseline", "heat <= baseline + 2", cost=20, heat=-1)
    assert goals[0].threshold == pytest.approx(22)
    assert limits == (Limit("heat", at_most=1),)
    with pytest.raises(InputError, match="relative to a baseline, but no baseline has a result 'heat'"):
        _read("heat <= 0.9 * baseline", cost=20)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["heat != 2"], "'heat != 2' says nothing about a result"),
        (["impurity"], "'impurity' says nothing about a result. Write 'impurity <= 2'"),
        (["impurity <= much"], "says nothing about a result"),
        (["heat <= 1.1 * basline"], "a number, or a multiple of baseline, beside each sign"),
        (["<= 3"], "'<= 3' names no result"),
        (["1 <= 2 <= 3"], "says nothing"),
        (["6 <= acid >= 3"], "has two at least values"),
        (["6 <= acid = 7"], "both a target and a limit"),
        (
            ["cost >= 10"],
            "'cost' is minimised, and the worst value of it that is still of interest is written 'cost <=",
        ),
        (["1 <= strength <= 3"], "'strength' is maximised"),
        (["cost <= 3", "cost <= 4"], "has a threshold already, 3"),
        (["pH = 7", "pH = 8"], "has a target already, 7"),
        (["pH = 7", "pH <= 8"], "a range with 7 in its middle"),
        (["heat = 3"], "'heat' is no objective, so it cannot have a target"),
        (["heat <= 3", "heat <= 2"], "say the same of 'heat' twice"),
        (["8 <= heat <= 7"], "from a lower to a higher value"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_write(texts: list[str], message: str) -> None:
    """Each with the text."""
    with pytest.raises(InputError, match=message):
        _read(*texts)


def test_a_text_is_named_with_its_place_and_other_things_are_no_text() -> None:
    """The option or argument that it was given as."""
    with pytest.raises(InputError, match=r"^--limit: 'impurity' says"):
        parse_requirement("impurity", "--limit")
    with pytest.raises(InputError, match="limits: 3 is no text"):
        parse_requirement(3, "limits")  # type: ignore[arg-type]
