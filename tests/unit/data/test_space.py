"""Named parameters and their place in the unit cube."""

from __future__ import annotations

import math
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart import InputError
from headstart.data.ranges import Choices, DiscreteNumbers, Distribution, FloatRange, IntRange, has_single_value
from headstart.data.space import Space

CATEGORIES: tuple[Any, ...] = (None, True, False, 1, 2.5, "a", "b", 0, math.inf)
ANY = st.one_of(st.floats(-2.0, 3.0), st.sampled_from([-math.inf, math.inf, -1e300, 1e300, 0.0, 1.0]))


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    """Any distribution of every kind, single-valued ones included."""
    kind = draw(st.sampled_from(["float", "log", "step", "int", "int log", "int step", "listed", "categorical"]))
    whole = st.integers(0, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna shortens a range that its step does not divide, and says so
        match kind:
            case "float":
                low = draw(st.floats(-1e6, 1e6))
                return FloatDistribution(low, low + draw(st.one_of(st.just(0.0), st.floats(1e-3, 1e6))))
            case "log":
                low = draw(st.floats(1e-12, 1e6))
                return FloatDistribution(low, low * draw(st.floats(1.0, 1e9)), log=True)
            case "step":
                low, step = draw(st.integers(-50, 50)) / 10, draw(st.sampled_from([0.1, 0.25, 0.3, 1.0, 7.0]))
                return FloatDistribution(low, low + step * draw(whole) + draw(st.floats(0, 0.05)), step=step)
            case "int":
                low = draw(st.integers(-1000, 1000))
                return IntDistribution(low, low + draw(whole))
            case "int log":
                low = draw(st.integers(1, 100))
                return IntDistribution(low, low + draw(st.one_of(whole, st.integers(0, 10**7))), log=True)
            case "int step":
                low = draw(st.integers(-1000, 1000))
                return IntDistribution(low, low + draw(whole), step=draw(st.integers(1, 9)))
            case "listed":
                every = st.one_of(st.integers(-1000, 1000), st.integers(-50, 5000).map(lambda v: v / 10))
                return DiscreteNumbers(tuple(draw(st.lists(every, min_size=1, max_size=30))))
            case _:
                return CategoricalDistribution(
                    draw(st.lists(st.sampled_from(CATEGORIES), min_size=1, max_size=5, unique_by=repr))
                )


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """One to five parameters of which at least one can be chosen."""
    found = draw(st.lists(distributions(), min_size=1, max_size=5))
    return Space.of({"last": FloatDistribution(0, 1)} | {f"p{i}": d for i, d in enumerate(found)})


def points(space: Space) -> st.SearchStrategy[torch.Tensor]:
    rows = st.lists(st.lists(ANY, min_size=space.d, max_size=space.d), min_size=1, max_size=4)
    return rows.map(lambda values: torch.tensor(values, dtype=torch.float64))


def _is_inside(distribution: Distribution, value: Any) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return any(type(value) is type(c) and value == c for c in distribution.choices)
    if isinstance(distribution, DiscreteNumbers):
        return any(value is v for v in distribution.values)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    right_type = type(value) is (int if isinstance(distribution, IntDistribution) else float)
    return right_type and math.isfinite(value) and distribution._contains(distribution.to_internal_repr(value))


@given(st.data())
def test_no_point_of_the_real_numbers_leaves_the_space(data: st.DataObject) -> None:
    """Whatever X holds, inside the cube, outside it or infinite, its values are ones Optuna accepts, types included."""
    space = data.draw(spaces())
    for row in space.decode(data.draw(points(space))):
        assert list(row) == list(space.names)
        for name, distribution in space.distributions.items():
            assert _is_inside(distribution, row[name]), (name, distribution, row[name])


@given(st.data())
def test_snapping_is_decoding_and_encoding(data: st.DataObject) -> None:
    """The two agree to the last bit, so that a suggestion recognises its own values when they come back."""
    space = data.draw(spaces())
    X = data.draw(points(space))
    snapped = space.snap(X)
    assert torch.equal(snapped, space.encode(space.decode(X)))
    assert bool(((snapped >= 0) & (snapped <= 1)).all())


@given(st.data())
def test_values_survive_the_cube(data: st.DataObject) -> None:
    """decode(encode(values)) gives the values back: grids and categories exactly, other floats up to rounding."""
    space = data.draw(spaces())
    rows = space.decode(data.draw(points(space)))
    for before, after in zip(rows, space.decode(space.encode(rows)), strict=True):
        for axis in space.axes:
            if axis.count is None:
                assert after[axis.name] == pytest.approx(before[axis.name], rel=1e-9, abs=1e-9)
            else:
                assert type(after[axis.name]) is type(before[axis.name])
                assert after[axis.name] == before[axis.name]


@given(st.data())
def test_a_batch_snaps_like_its_rows(data: st.DataObject) -> None:
    """Leading dimensions are carried along."""
    space = data.draw(spaces())
    X = data.draw(points(space))
    together = space.snap(torch.stack([X, 1 - X]))
    assert torch.equal(together, torch.stack([space.snap(X), space.snap(1 - X)]))


@given(distributions().filter(lambda d: not isinstance(d, CategoricalDistribution) and not has_single_value(d)))
def test_the_values_of_a_grid_are_where_their_coordinates_say(distribution: Distribution) -> None:
    """The grid lists every value once, in order."""
    space = Space.of({"x": distribution})
    (axis,) = space.axes
    if axis.count is None or axis.count > 10_000:
        return
    values = [row["x"] for row in space.decode(axis.grid())]
    assert len(values) == axis.count
    assert values == sorted(set(values))
    assert torch.equal(axis.grid(), space.encode([{"x": v} for v in values]))


@pytest.mark.parametrize(
    ("distribution", "values"),
    [
        (IntDistribution(-2, 2), [-2, -1, 0, 1, 2]),
        (IntDistribution(10, 40, step=10), [10, 20, 30, 40]),
        (FloatDistribution(0.1, 0.7, step=0.1), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]),
    ],
)
def test_every_value_of_a_grid_owns_an_equal_share(distribution: BaseDistribution, values: list[float]) -> None:
    """Cut into as many cells as there are values, [0, 1] gives each its cell; floats come out as they are written."""
    space, k = Space.of({"x": distribution}), len(values)
    cuts = torch.linspace(0, 1, 1000 * k + 1, dtype=torch.float64)[:-1] + 0.5 / (1000 * k)
    found = [row["x"] for row in space.decode(cuts.unsqueeze(-1))]
    assert found == [v for v in values for _ in range(1000)]


@pytest.mark.parametrize(
    ("listed", "grid"),
    [
        (DiscreteNumbers((0.4, 0.8, 1.2, 1.6)), FloatRange(0.4, 1.6, step=0.4)),
        (DiscreteNumbers((3, 1, 2)), IntRange(1, 3)),
    ],
)
def test_a_list_with_equal_gaps_is_a_grid(listed: DiscreteNumbers, grid: Distribution) -> None:
    """Its values have the places of the grid's, and so have numbers outside and between."""
    a, b = Space.of({"x": listed}), Space.of({"x": grid})
    torch.testing.assert_close(a.axes[0].grid(), b.axes[0].grid(), rtol=0, atol=1e-15)
    rows = [{"x": v} for v in (-1.0, 0.5, 1.1, 7.0)]
    torch.testing.assert_close(a.encode(rows), b.encode(rows), rtol=0, atol=1e-14)


def test_discrete_numbers_lie_as_far_apart_as_they_are() -> None:
    """By value, or by its log; the ends are where those of a grid of as many values are."""
    (even, ratios) = Space.of({"a": DiscreteNumbers((1, 2, 10)), "b": DiscreteNumbers((1, 10, 1000))}).axes
    assert (even.log, ratios.log) == (True, True)
    assert DiscreteNumbers((1, 2, 10), log=False).log is False
    (axis,) = Space.of({"x": DiscreteNumbers((1, 2, 10), log=False)}).axes
    torch.testing.assert_close(axis.grid()[:, 0], torch.tensor([1 / 6, 1 / 6 + 2 / 27, 5 / 6], dtype=torch.float64))
    torch.testing.assert_close(ratios.grid()[:, 0], torch.tensor([1 / 6, 1 / 6 + 2 / 9, 5 / 6], dtype=torch.float64))
    assert axis.value(axis.place([5.9, 6.1, -4, 99])) == [2, 10, 1, 10]
    assert ratios.value(ratios.place([99, 101])) == [10, 1000]


@pytest.mark.parametrize(
    ("values", "log"),
    [
        ((16, 32, 64, 128), True),
        ((0.2, 0.4, 0.8, 1.6), True),
        ((0.4, 0.8, 1.2, 1.6), False),
        ((0, 1, 10, 100), False),
        ((1, 2, 5, 10), True),
        ((1, 100), False),
        ((4, 8, 12), False),
        ((-1, 1, 10), False),
    ],
)
def test_the_scale_of_a_list_is_the_one_on_which_it_is_more_even(values: tuple[float, ...], log: bool) -> None:
    """Unless somebody says which one it is; with a value at or below 0 it is that of differences."""
    assert DiscreteNumbers(values).log is log


def test_a_listed_value_comes_back_as_it_was_given() -> None:
    """Neither its type nor its object changes, whatever the order and the company."""
    given_values = (128.0, 16, 64, 32.5)
    (axis,) = Space.of({"x": DiscreteNumbers(given_values)}).axes
    assert [id(v) for v in axis.value(axis.grid())] == [id(v) for v in sorted(given_values)]


def test_an_integer_on_a_log_axis_owns_what_lies_within_a_half() -> None:
    """Its share is log(v + ½) − log(v − ½), and the whole numbers fill the axis."""
    space = Space.of({"x": IntDistribution(1, 8, log=True)})
    total = math.log(8.5) - math.log(0.5)
    edge = 0.0
    for v in range(1, 9):
        after = edge + (math.log(v + 0.5) - math.log(v - 0.5)) / total
        ends = torch.tensor([[edge + 1e-9], [after - 1e-9]], dtype=torch.float64)
        assert [row["x"] for row in space.decode(ends)] == [v, v]
        edge = after
    assert edge == pytest.approx(1.0)


def test_the_table_of_coordinates() -> None:
    """Each kind of parameter has the coordinate that the module's table gives it."""
    space = Space.of(
        {
            "float": FloatDistribution(-1, 3),
            "log": FloatDistribution(0.01, 100, log=True),
            "int": IntDistribution(0, 4),
            "step": FloatDistribution(0, 1, step=0.5),
            "int log": IntDistribution(1, 8, log=True),
            "only": IntDistribution(7, 7),
            "kind": CategoricalDistribution(["a", None, 3]),
        }
    )
    row = {"float": 0.0, "log": 1.0, "int": 3, "step": 0.5, "int log": 2, "only": 7, "kind": None}
    on_log_axis = math.log(2 / 0.5) / math.log(8.5 / 0.5)
    expected = torch.tensor([[0.25, 0.5, 0.7, 0.5, on_log_axis, 0.0, math.sqrt(0.5), 0.0]], dtype=torch.float64)
    torch.testing.assert_close(space.encode([row]), expected)
    assert space.d == 8
    assert space.decode(expected) == [row | {"log": pytest.approx(1.0)}]


def test_what_lies_outside_stays_on_the_ruler() -> None:
    """Numbers outside the range, or between grid values, are encoded where they are and decoded inside."""
    space = Space.of(
        {"a": FloatDistribution(0, 2), "b": FloatDistribution(1, 100, log=True), "c": IntDistribution(1, 4)}
    )
    X = space.encode([{"a": -2.0, "b": 1e4, "c": 7}, {"a": 3, "b": 0.1, "c": 2.5}])
    torch.testing.assert_close(X, torch.tensor([[-1.0, 2.0, 1.625], [1.5, -0.5, 0.5]], dtype=torch.float64))
    assert space.decode(X)[0] == {"a": 0.0, "b": 100.0, "c": 4}


def test_levels_of_sources_are_known_but_never_suggested() -> None:
    """An extra level has a column of its own, and decodes to one of the space's own categories."""
    space = Space.of({"k": CategoricalDistribution(["a", "b"])}, extra_levels={"k": ["c", "a"]})
    assert space.axes[0].levels == ("a", "b", "c")
    X = space.encode([{"k": "c"}, {"k": "b"}])
    own = 1 / math.sqrt(2)
    assert X.tolist() == [[0.0, 0.0, own], [0.0, own, 0.0]]
    assert [row["k"] for row in space.decode(X)][1] == "b"
    assert space.decode(X)[0]["k"] in ("a", "b")
    assert space.snap(X).shape == (2, 3)
    assert space.axes[0].grid().tolist() == [[own, 0.0, 0.0], [0.0, own, 0.0]]


def test_two_levels_are_as_far_apart_as_the_ends_of_a_range() -> None:
    """Any two levels of a category are at distance 1, however many there are."""
    for k in (2, 3, 7):
        X = Space.of({"k": CategoricalDistribution(range(k))}).axes[0].grid()
        torch.testing.assert_close(torch.pdist(X), torch.ones(k * (k - 1) // 2, dtype=torch.float64))


def test_the_columns_of_categories_are_known() -> None:
    """Those of every categorical parameter together; one with a single value has none."""
    space = Space.of(
        {
            "x": FloatDistribution(0, 1),
            "k": CategoricalDistribution("abc"),
            "only": CategoricalDistribution("a"),
            "n": IntDistribution(0, 4),
            "two": CategoricalDistribution([True, False]),
        }
    )
    assert space.categories == ((1, 2, 3), (5, 6))
    assert Space.of({"x": FloatDistribution(0, 1)}).categories == ()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (FloatRange(-1, 3), FloatDistribution(-1, 3)),
        (FloatRange(0.01, 100, log=True), FloatDistribution(0.01, 100, log=True)),
        (FloatRange(0, 1, step=0.1), FloatDistribution(0, 1, step=0.1)),
        (IntRange(0, 4), IntDistribution(0, 4)),
        (IntRange(1, 8, log=True), IntDistribution(1, 8, log=True)),
        (IntRange(10, 40, step=10), IntDistribution(10, 40, step=10)),
        (Choices(("a", None, 3)), CategoricalDistribution(["a", None, 3])),
    ],
)
def test_our_own_ranges_are_encoded_like_optunas(ours: Any, theirs: BaseDistribution) -> None:
    """Values, their types and their coordinates are the same."""
    a, b = Space.of({"x": ours}), Space.of({"x": theirs})
    assert (a.d, a.axes[0].count, a.categories) == (b.d, b.axes[0].count, b.categories)
    X = torch.rand(20, a.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = b.decode(X)
    assert a.decode(X) == rows
    assert [type(row["x"]) for row in a.decode(X)] == [type(row["x"]) for row in rows]
    assert torch.equal(a.encode(rows), b.encode(rows))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FloatRange(1, 0), "low ≤ high, but it is 1.0 … 0.0"),
        (lambda: FloatRange(0, math.inf), "finite"),
        (lambda: FloatRange(0, 1, log=True), "begin above 0"),
        (lambda: FloatRange(0, 1, step=0.3), "by 0.3"),
        (lambda: FloatRange(1, 2, log=True, step=1.0), "both log and a step"),
        (lambda: IntRange(1, 4, log=True, step=3), "both log and a step"),
        (lambda: IntRange(0, 1.5), "must have integers"),  # type: ignore[arg-type]
        (lambda: Choices(()), "no choices"),
        (lambda: DiscreteNumbers(()), "no values"),
        (lambda: DiscreteNumbers((1, True)), "one is True"),
        (lambda: DiscreteNumbers((1, math.nan)), "one is nan"),
        (lambda: DiscreteNumbers(("a",)), "one is 'a'"),  # type: ignore[arg-type]
        (lambda: DiscreteNumbers((0, 1), log=True), "above 0, but one is 0"),
    ],
)
def test_a_range_that_is_none_is_refused(make: Callable[[], Any], message: str) -> None:
    """Where it is made, saying what is wrong with it."""
    with pytest.raises(InputError, match=message):
        make()


def test_our_own_ranges_need_no_optuna() -> None:
    """A space of them is made, and used both ways, where Optuna cannot be imported."""
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from headstart.data.ranges import Choices, FloatRange\n"
        "from headstart.data.space import Space\n"
        "space = Space.of({'x': FloatRange(0, 2), 'k': Choices('ab')}, extra_levels={'k': 'c'})\n"
        "print(space.decode(space.encode([{'x': 1.0, 'k': 'b'}])))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[{'x': 1.0, 'k': 'b'}]"


def test_a_single_category_has_columns_once_sources_know_others() -> None:
    """What sources measured elsewhere is then told apart from the one category there is to suggest."""
    space = Space.of({"k": CategoricalDistribution(["a"])}, extra_levels={"k": ["b"]})
    assert space.d == 2
    assert space.axes[0].count == 1
    assert space.decode(space.encode([{"k": "b"}])) == [{"k": "a"}]


def test_numbers_of_another_type_are_the_same_category() -> None:
    """A table that turned 1 into 1.0, or into a NumPy number, still means 1; True keeps a level of its own."""
    space = Space.of({"k": CategoricalDistribution([1, True, "1"])}, extra_levels={"k": [1.0, 7.0]})
    assert space.axes[0].levels == (1, True, "1", 7.0)
    rows = [{"k": v} for v in (1.0, np.int64(1), True, "1", np.float64(7))]
    assert space.encode(rows).argmax(-1).tolist() == [0, 0, 1, 2, 3]


def test_nan_and_none_can_be_categories() -> None:
    """Optuna allows them, and they are found again."""
    space = Space.of({"k": CategoricalDistribution([None, math.nan, 1.0])})
    back = space.decode(space.encode([{"k": float("nan")}, {"k": None}]))
    assert math.isnan(back[0]["k"])
    assert back[1]["k"] is None


def test_no_rows_are_no_rows() -> None:
    """An empty table has the space's columns."""
    space = Space.of({"x": FloatDistribution(0, 1), "k": CategoricalDistribution("ab")})
    assert space.encode([]).shape == (0, 3)
    assert space.decode(space.encode([])) == []


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"k": "a"}, "Row 1 has no value for parameter 'x'.*x, k"),
        ({"x": None, "k": "a"}, "Row 1: parameter 'x' = None is not a number"),
        ({"x": math.nan, "k": "a"}, "'x' = nan is not a number"),
        ({"x": "3", "k": "a"}, "'x' = '3' is not a number"),
        ({"x": 0.0, "k": "a"}, "'x' = 0.0 has no place on a log axis"),
        ({"x": 1.0, "k": "z"}, "Row 1: parameter 'k' = 'z' is none of its categories \\('a', 'b'\\)"),
    ],
)
def test_a_value_that_fits_nowhere_is_named(row: dict[str, Any], message: str) -> None:
    """The message gives row, parameter, value and what would do."""
    space = Space.of({"x": FloatDistribution(1, 10, log=True), "k": CategoricalDistribution(["a", "b"])})
    with pytest.raises(InputError, match=message):
        space.encode([{"x": 1.0, "k": "a"}, row])


def test_a_number_beyond_all_reach_is_refused() -> None:
    """A coordinate that would be infinite is not one."""
    with pytest.raises(InputError, match=r"1e\+300 is too far outside 0.0 … 1e-300"):
        Space.of({"x": FloatDistribution(0, 1e-300)}).encode([{"x": 1e300}])


@pytest.mark.parametrize(
    ("parameters", "extra", "message"),
    [
        ({}, {}, "no parameters"),
        ({"x": FloatDistribution(1, 1), "k": CategoricalDistribution(["a"])}, {}, "nothing to choose.*x, k"),
        ({"x": FloatDistribution(0, math.inf)}, {}, "'x' must have a finite range"),
        ({"x": FloatDistribution(math.nan, 1)}, {}, "'x' must have a finite range"),
        ({"x": (0, 1)}, {}, "'x' must have one of Optuna's.*a tuple"),
        ({"x": FloatDistribution(0, 1)}, {"x": ["a"]}, "'x', which is no categorical"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(parameters: Any, extra: Any, message: str) -> None:
    """The message names the parameter."""
    with pytest.raises(InputError, match=message):
        Space.of(parameters, extra_levels=extra)


def test_points_that_are_not_points_are_refused() -> None:
    """NaN is nowhere, and the number of columns is the space's."""
    space = Space.of({"x": FloatDistribution(0, 1)})
    with pytest.raises(InputError, match="NaN"):
        space.decode(torch.tensor([[math.nan]], dtype=torch.float64))
    with pytest.raises(InputError, match="1 columns"):
        space.snap(torch.zeros(3, 2, dtype=torch.float64))


def test_a_space_is_a_value() -> None:
    """Two spaces of the same parameters are equal, and one can be a key."""
    first, second = (Space.of({"x": FloatDistribution(0, 1), "k": CategoricalDistribution("ab")}) for _ in range(2))
    assert first.d == 3
    assert first == second
    assert {first: 1}[second] == 1


def test_a_range_too_narrow_for_its_logs_is_a_single_value() -> None:
    """Where the logs of both ends are the same number there is nothing to choose."""
    high = math.nextafter(9.0, 10.0)
    space = Space.of({"x": FloatDistribution(9.0, high, log=True), "y": FloatDistribution(0, 1)})
    assert space.d == 1
    assert space.decode(torch.tensor([[0.5]], dtype=torch.float64)) == [{"x": 9.0, "y": 0.5}]
    assert space.axes[0].count == 1


def test_wide_integers_stay_inside() -> None:
    """Beyond what float64 can count, values are still integers of the range."""
    space = Space.of({"x": IntDistribution(0, 10**18), "y": IntDistribution(1, 10**18, log=True)})
    X = torch.tensor([[1.0, 1.0], [0.3, 0.999999], [0.0, 0.0]], dtype=torch.float64)
    for row in space.decode(X):
        for name, distribution in space.distributions.items():
            assert _is_inside(distribution, row[name])


def test_columns_of_numbers_and_their_coordinates_are_those_of_single_values() -> None:
    """Axis.numbers and Axis.coordinates agree with value and place for every kind of number."""
    distributions: dict[str, Distribution] = {
        "float": FloatRange(-2, 3),
        "log": FloatRange(1e-4, 10, log=True),
        "step": FloatRange(0, 1, step=0.1),
        "int": IntRange(-3, 9, step=3),
        "int log": IntRange(1, 100, log=True),
    }
    u = torch.linspace(0, 1, 41, dtype=torch.float64)
    for axis in Space.of(distributions).axes:
        values = axis.value(u.unsqueeze(-1))
        torch.testing.assert_close(axis.numbers(u), torch.tensor(values, dtype=torch.float64), rtol=1e-12, atol=1e-12)
        outside = [*values, 200.5]
        found = axis.coordinates(torch.tensor(outside, dtype=torch.float64))
        torch.testing.assert_close(found, axis.place(outside).squeeze(-1), rtol=0, atol=1e-12)
