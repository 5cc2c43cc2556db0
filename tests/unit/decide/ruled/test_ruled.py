"""The points of a space that keep rules about the settings."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.problems import generator
from tests.unit.decide.ruled.domains import DOMAINS, MIXTURE, REACTION, SUM, TEN
from tests.unit.decide.ruled.random_rules import broken, offered, random_domain, suggested

from headstart import DiscreteNumbers, FloatRange, InputError, IntRange, Mixed, NoSettingError, Space
from headstart.data.conditions import Condition
from headstart.decide.ruled.ruled import Ruled

EVERYWHERE = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())


@EVERYWHERE
def test_every_point_that_is_offered_keeps_the_rules(domain: Ruled) -> None:
    """Those all over, near others, nearest to some, exchanged, listed and laid out at first."""
    for where, X in offered(domain, seed=0, n=50).items():
        assert broken(domain, X) == [], where
        assert bool((domain.snap(X) == X).all() or (domain.snap(X) - X).abs().max() < 1e-12), where
        assert bool(((X >= 0) & (X <= 1)).all())


@EVERYWHERE
def test_the_verdict_on_points_is_that_of_each_rule(domain: Ruled) -> None:
    """For points of the space that break rules as for those that keep them."""
    X = torch.cat([domain.spread(30, generator()), Mixed(domain.space).spread(200, generator())])
    each = [all(rule.holds(row) for rule in domain.rules) for row in domain.space.decode(X)]
    assert domain._kept(X).tolist() == each


@given(seed=st.integers(0, 2**32 - 1))
def test_no_point_of_a_random_space_breaks_a_random_rule(seed: int) -> None:
    """Floats, logs, whole numbers, steps, categories and conditions; linear, forbidden, fixed and stepped."""
    domain = random_domain(seed)
    for where, X in offered(domain, seed).items():
        assert broken(domain, X) == [], where


@given(seed=st.integers(0, 2**32 - 1))
def test_no_suggestion_in_a_random_space_breaks_a_random_rule(seed: int) -> None:
    """Though most of the results known, and the one awaited, do."""
    domain = random_domain(seed)
    assert broken(domain, suggested(domain, seed)) == []


def test_points_are_spread_over_a_mixture() -> None:
    """As uniformly as a Dirichlet distribution: every part of a mixture of ten is a tenth on average."""
    X = DOMAINS["mixture"].spread(2000, generator())
    torch.testing.assert_close(X.mean(0), torch.full((10,), 0.1).double(), atol=0.007, rtol=0)
    torch.testing.assert_close(X.std(0), torch.full((10,), 0.0905).double(), atol=0.007, rtol=0)


def test_points_near_others_are_near() -> None:
    """In a mixture too, and none is the same."""
    domain = DOMAINS["mixture"]
    anchors = domain.spread(3, generator())
    near = domain.near(anchors, 40, generator()).reshape(40, 3, 10)
    apart = (near - anchors).abs().amax(-1)
    assert 0.002 < float(apart.mean()) < 0.15


def test_a_whole_mixture_is_reached() -> None:
    """Of 231 mixtures in steps of 5 % each is listed; of whole numbers with other factors all are walked to."""
    grid = Ruled(Space.of({name: FloatRange(0, 1, step=0.05) for name in "ABC"}), ["A + B + C = 1"])
    listing = grid.listing
    assert listing is not None
    assert len(listing) == 231
    domain = DOMAINS["coefficients"]
    listing = domain.listing
    assert listing is None  # 41³ combinations before the rule is asked
    found = {tuple(row.values()) for row in domain.space.decode(domain.spread(3000, generator()))}
    every = {(a, b, c) for a in range(41) for b in range(41) for c in range(18) if 3 * a + 5 * b + 7 * c == 120}
    assert found == every


def test_a_fixed_parameter_and_steps_leave_a_list() -> None:
    """Whatever is continuous without the rules."""
    domain = Ruled(REACTION, ["T in steps of 100 from 50", "p = 1", "n = 7", "catalyst = Ni"])
    listing = domain.listing
    assert listing is not None
    rows = {(row["T"], row["solvent"]) for row in domain.space.decode(listing)}
    assert rows == {(t, s) for t in (50, 150, 250) for s in ("toluene", "water", "DMF")}


def test_a_rule_is_about_rows_that_have_its_parameters() -> None:
    """The others are free of it."""
    space = Space.of(
        {"layers": IntRange(1, 3), "a": FloatRange(0, 1), "b": FloatRange(0, 1)},
        conditions={"b": Condition("layers", least=2)},
    )
    rows = Ruled(space, ["a + b <= 0.3"]).space.decode(Ruled(space, ["a + b <= 0.3"]).spread(300, generator()))
    alone = [row["a"] for row in rows if "b" not in row]
    assert max(alone) > 0.9
    assert all(row["a"] + row["b"] <= 0.3 + 1e-9 for row in rows if "b" in row)
    assert 50 < len(alone) < 250


def test_a_pinned_value_stays() -> None:
    """Even one outside the range, and the rules count it."""
    domain = Ruled(MIXTURE, [SUM], pinned={"A": 0.75})
    X = domain.spread(20, generator())
    assert bool((X[:, 0] == 0.75).all())
    torch.testing.assert_close(X.sum(-1), torch.ones(20).double())
    with pytest.raises(NoSettingError, match=r"with A = 1\.5 keeps the rule"):
        Ruled(MIXTURE, [SUM], pinned={"A": 1.5})


def test_a_mixture_is_rounded_inside_the_rules() -> None:
    """The same rules with steps take a point to values with three digits that still add up, a step away at most."""
    X = DOMAINS["mixture"].spread(20, generator())
    rounded = Ruled(MIXTURE, [SUM, *(f"{name} in steps of 0.001" for name in TEN)]).snap(X)
    assert float((rounded - X).abs().max()) < 0.001
    torch.testing.assert_close((1000 * rounded).round() / 1000, rounded, rtol=0, atol=1e-12)
    torch.testing.assert_close(rounded.sum(-1), torch.ones(20).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("rules", "named", "spared"),
    [
        (
            ["A + B >= 1.5", "C = 0.3", "A <= 0.5", "B <= 0.7", "D >= E"],
            ["A + B ≥ 1.5", "A ≤ 0.5", "B ≤ 0.7"],
            ["C = 0.3", "D − E"],
        ),
        ([SUM, "A + B + C >= 1.2"], ["A + B + C ≥ 1.2", "= 1"], []),
        (["A + B >= 3"], ["the rule 'A + B ≥ 3'"], []),
        (["A in steps of 0.3 from 0.1", "A = 0.5"], ["A in steps of 0.3", "A = 0.5"], []),
        (["A in steps of 0.5", "B in steps of 0.5", "A + B = 0.7"], ["A + B = 0.7"], []),
    ],
)
def test_rules_that_contradict_each_other_are_named(rules: list[str], named: list[str], spared: list[str]) -> None:
    """Those that do, and no other one."""
    with pytest.raises(NoSettingError, match="No setting of the space") as error:
        Ruled(MIXTURE, rules)
    assert all(rule in str(error.value) for rule in named)
    assert not any(rule in str(error.value) for rule in spared)


def test_categories_that_contradict_each_other_are_named() -> None:
    """A category that is forbidden altogether cannot be fixed."""
    rules: list[Any] = ["solvent = toluene", "forbid: solvent = toluene and T >= 20", "catalyst = Pd"]
    with pytest.raises(NoSettingError, match=r"solvent = toluene; not \(solvent = toluene and T ≥ 20\)\."):
        Ruled(REACTION, rules)


def test_a_rule_on_an_unknown_parameter_is_refused() -> None:
    """As text and as data."""
    with pytest.raises(InputError, match=r"no parameter 'solvnt'\. Did you mean solvent"):
        Ruled(REACTION, ["forbid: T > 100 and solvnt = water"])


def test_rules_about_a_list_leave_some_of_its_values() -> None:
    """One alone, one with another parameter, steps; every value that is left is met."""
    space = Space.of({"r": DiscreteNumbers((0.2, 0.4, 0.8, 1.6)), "v": FloatRange(50, 300)})
    ruled = Ruled(space, ["r <= 0.8"])
    assert {row["r"] for row in space.decode(ruled.uniform(64, generator(0)))} == {0.2, 0.4, 0.8}
    assert {row["r"] for row in space.decode(ruled.snap(torch.rand(64, 2, dtype=torch.float64)))} == {0.2, 0.4, 0.8}
    ruled = Ruled(space, ["r in steps of 0.4 from 0"])
    assert {row["r"] for row in space.decode(ruled.uniform(64, generator(0)))} == {0.4, 0.8, 1.6}
    ruled = Ruled(space, ["forbid: r > 0.8 and v > 200"])
    rows = space.decode(ruled.uniform(256, generator(0)))
    assert {row["r"] for row in rows} == {0.2, 0.4, 0.8, 1.6}
    assert max(row["v"] for row in rows if row["r"] == 1.6) <= 200 < max(row["v"] for row in rows)
    with pytest.raises(NoSettingError, match=r"r ≥ 1\.7"):
        Ruled(space, ["r >= 1.7"])
    with pytest.raises(InputError, match=r"'r' may have 0.2, 0.4, 0.8, 1.6, but 0.5 is none"):
        Ruled(space, ["r = 0.5"])


def test_a_whole_mixture_with_lists_is_reached() -> None:
    """Every combination of listed values that the sum leaves, and no other one; from one to the next by exchanges."""
    lists = {"A": (0, 5, 10, 40), "B": (1, 3, 30, 60)}
    space = Space.of({**{name: DiscreteNumbers(values) for name, values in lists.items()}, "C": FloatRange(20, 65)})
    ruled = Ruled(space, ["A + B + C = 100"])
    possible = {(a, b) for a in lists["A"] for b in lists["B"] if 20 <= 100 - a - b <= 65}
    rows = space.decode(ruled.uniform(512, generator(0)))
    assert {(row["A"], row["B"]) for row in rows} == possible
    assert all(row["A"] + row["B"] + row["C"] == pytest.approx(100) for row in rows)
    start = ruled.snap(space.encode([{"A": 10, "B": 30, "C": 60}]))
    moves = ruled.exchanges(start)
    assert moves is not None
    assert {(row["A"], row["B"]) for row in space.decode(moves[0])} >= {(5, 30), (40, 30), (10, 60)}


def test_sums_of_lists_that_no_setting_keeps_are_refused() -> None:
    """Though the ends of the lists leave room for the sum."""
    space = Space.of({"A": DiscreteNumbers((1, 2, 4)), "B": DiscreteNumbers((10, 20, 40)), "C": FloatRange(0, 1)})
    with pytest.raises(NoSettingError, match=r"A \+ B = 33"):
        Ruled(space, ["A + B = 33"])
    assert Ruled(space, ["A + B + C = 33"], {"A": 3, "B": 29.5}).spread(1, generator(0)).shape == (1, 3)
    with pytest.raises(NoSettingError):
        Ruled(space, ["A + B + C = 33"])
