"""When parameters are there: seen from rows, and kept to in the unit cube."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.data.conditions import Condition, learn_conditions
from headstart.data.space import Space
from headstart.decide.domain import Mixed
from headstart.errors import NoPlaceError
from headstart.gp.fit import generator_from

SPACE = {
    "model": CategoricalDistribution(["svm", "forest", "mlp"]),
    "C": FloatDistribution(1e-2, 1e2, log=True),
    "kernel": CategoricalDistribution(["linear", "rbf"]),
    "gamma": FloatDistribution(1e-3, 1.0, log=True),
    "depth": IntDistribution(1, 30),
    "layers": IntDistribution(1, 3),
    "units_2": IntDistribution(4, 64, log=True),
    "scale": CategoricalDistribution([True, False]),
}


def row(rng: random.Random) -> dict[str, Any]:
    """As a define-by-run objective would ask."""
    found: dict[str, Any] = {"scale": rng.random() < 0.5, "model": rng.choice(["svm", "forest", "mlp"])}
    if found["model"] == "svm":
        found |= {"C": 10 ** rng.uniform(-2, 2), "kernel": rng.choice(["linear", "rbf"])}
        if found["kernel"] == "rbf":
            found["gamma"] = 10 ** rng.uniform(-3, 0)
    elif found["model"] == "forest":
        found["depth"] = rng.randint(1, 30)
    else:
        found["layers"] = rng.randint(1, 3)
        if found["layers"] >= 2:
            found["units_2"] = rng.randint(4, 64)
    return found


def rows(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [row(rng) for _ in range(n)]


def allowed(found: dict[str, Any]) -> bool:
    expected = {"scale", "model"}
    expected |= {"svm": {"C", "kernel"}, "forest": {"depth"}, "mlp": {"layers"}}[found["model"]]
    expected |= {"gamma"} if found.get("kernel") == "rbf" else set()
    expected |= {"units_2"} if found.get("layers", 0) >= 2 else set()
    return set(found) == expected


def test_conditions_are_seen_from_the_rows() -> None:
    found = learn_conditions([rows(60)])
    assert set(found) == {"C", "kernel", "gamma", "depth", "layers", "units_2"}
    assert found["C"].parent == "model"
    assert set(found["C"].without) == {"forest", "mlp"}
    assert found["gamma"] == Condition("kernel", without=("linear",))
    assert found["units_2"] == Condition("layers", least=1.5)


def test_a_parameter_may_be_there_up_to_a_number() -> None:
    table = [{"layers": n} | ({"bias": 0.1 * n} if n <= 2 else {}) for n in (1, 2, 3, 4, 1, 3)]
    found = learn_conditions([table])
    assert found == {"bias": Condition("layers", most=2.5)}
    space = Space.of({"layers": SPACE["layers"], "bias": FloatDistribution(0, 1)}, conditions=found)
    decoded = space.decode(Mixed(space).uniform(30, generator_from(0)))
    assert {(r["layers"], "bias" in r) for r in decoded} == {(1, True), (2, True), (3, False)}


def test_tasks_that_never_have_a_parameter_say_nothing_about_it() -> None:
    without = [{name: v for name, v in r.items() if name not in ("model", "depth")} for r in rows(30, 1)]
    assert learn_conditions([rows(60), without])["depth"].parent == "model"
    # where every row has it, and the parent is no parameter, there is nothing to contradict
    only_svm = [{"C": 1.0, "scale": True} for _ in range(5)]
    assert learn_conditions([rows(60), only_svm])["C"].parent == "model"


def test_a_parameter_that_was_added_later_has_no_parent() -> None:
    later = [{"x": 0.1 * i, "n": i % 3} | ({"new": 1.0} if i > 4 else {}) for i in range(12)]
    assert learn_conditions([later]) == {"new": Condition()}


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_number_of_a_single_row_is_a_coincidence(lacking: int) -> None:
    table = [{"n": i} | ({} if i <= lacking else {"new": 1.0}) for i in range(12)]
    assert learn_conditions([table])["new"].parent == (None if lacking == 0 else "n")


def test_points_of_a_conditional_space_keep_to_it() -> None:
    space = Space.of(SPACE, conditions=learn_conditions([rows(60)]))
    domain = Mixed(space)
    generator = generator_from(0)
    X = domain.spread(200, generator)
    for points in (X, domain.uniform(100, generator), domain.near(X[:5], 20, generator), domain.exchanges(X[:9])):
        assert points is not None
        flat = points.reshape(-1, space.d)
        assert torch.allclose(space.snap(flat), flat, atol=1e-12)
        decoded = space.decode(flat)
        assert all(allowed(found) for found in decoded)
        assert torch.allclose(space.encode(decoded), flat, atol=1e-12)


def test_what_is_not_there_makes_no_difference() -> None:
    space = Space.of(SPACE, conditions=learn_conditions([rows(60)]))
    X = torch.rand(50, space.d, dtype=torch.float64, generator=generator_from(1))
    start = space.snap(X)
    still = space.resting(start)
    assert still is not None
    moved = torch.where(still, torch.rand_like(start), start)
    assert torch.equal(space.rested(moved), start)


def test_rows_lack_only_what_has_a_condition() -> None:
    space = Space.of({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)}, conditions={"y": Condition()})
    assert space.encode([{"x": 0.2}, {"x": 0.3, "y": 0.9}]).tolist() == [[0.2, 0.5], [0.3, 0.9]]
    assert space.decode(torch.tensor([[0.2, 0.5]], dtype=torch.float64)) == [{"x": 0.2, "y": 0.5}]
    with pytest.raises(NoPlaceError, match="no value for parameter 'x'"):
        space.encode([{"y": 0.2}])


def test_a_condition_on_a_parameter_that_is_gone_is_none() -> None:
    found = learn_conditions([rows(60)])
    space = Space.of({"depth": SPACE["depth"], "scale": SPACE["scale"]}, conditions=found)
    assert dict(space.conditions) == {"depth": Condition()}


def test_a_list_of_all_points_has_each_once() -> None:
    kinds = {"a": CategoricalDistribution(["p", "q"]), "n": IntDistribution(1, 3)}
    listing = Mixed(Space.of(kinds, conditions={"n": Condition("a", without=("q",))})).listing
    assert listing is not None
    assert len(listing) == 4


def test_a_parent_with_a_single_value_decides_once_and_for_all() -> None:
    kinds = {"a": CategoricalDistribution(["q"]), "n": IntDistribution(1, 3), "x": FloatDistribution(0, 1)}
    space = Space.of(kinds, conditions={"n": Condition("a", without=("q",))})
    assert space.decode(torch.full((1, space.d), 0.3, dtype=torch.float64)) == [{"a": "q", "x": 0.3}]


def test_a_parameter_that_is_absent_at_one_integer_is_not_suggested_there() -> None:
    """Rows with units at 1 and 3 layers and without them at 2 say so, and decoding keeps to it on any scale."""
    seen = [{"layers": n} | ({} if n == 2 else {"units": 8}) for n in (1, 2, 3)] * 4
    conditions = learn_conditions([seen])
    assert conditions["units"] == Condition("layers", without=(2,))
    for log in (False, True):
        layers = IntDistribution(1, 4, log=log)
        space = Space.of({"layers": layers, "units": IntDistribution(4, 64)}, conditions=conditions)
        points = space.decode(torch.linspace(0, 1, 41, dtype=torch.float64)[:, None].expand(-1, 2))
        assert {point["layers"] for point in points if "units" not in point} == {2}
        assert {point["layers"] for point in points if "units" in point} == {1, 3, 4}


def test_a_bad_value_of_a_conditional_parameter_is_named_with_its_row() -> None:
    """Rows that lack the parameter are counted as well."""
    space = Space.of({"n": IntDistribution(1, 3), "m": FloatDistribution(0, 1)}, conditions={"m": Condition("n", (2,))})
    with pytest.raises(NoPlaceError, match="Row 2: parameter 'm' = 'x' is not a number"):
        space.encode([{"n": 2}, {"n": 1, "m": 0.5}, {"n": 3, "m": "x"}])
