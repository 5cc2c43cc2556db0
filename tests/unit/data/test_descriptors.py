"""Numbers that describe categories: as data, and as coordinates of a space."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import tensor

from headstart.data.conditions import Condition
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.errors import InputError

SOLVENTS: dict[Any, dict[str, Any]] = {
    "toluene": {"polarity": 0.1, "donor": 0.1},
    "THF": {"polarity": 0.2, "donor": 20.0},
    "DMF": {"polarity": 0.4, "donor": 26.6},
    "DMSO": {"polarity": 0.45, "donor": 29.8},
}


def test_descriptors_are_rows_of_numbers() -> None:
    """By the categories' names; equal ones have one hash."""
    found = Descriptors.of(SOLVENTS, "solvent")
    assert found.names == ("polarity", "donor")
    assert found.categories == tuple(SOLVENTS)
    assert found.row("DMF") == (0.4, 26.6)
    assert found.row("water") is None
    assert hash(found) == hash(Descriptors.of(SOLVENTS, "solvent"))


def test_a_constant_column_is_left_out_with_a_remark() -> None:
    """And so are equal rows told, which the columns of the names keep apart."""
    rows = {c: {**r, "colour": 3.0} for c, r in SOLVENTS.items()} | {"twin": {**SOLVENTS["DMF"], "colour": 3.0}}
    found = Descriptors.of(rows, "solvent")
    assert found.names == ("polarity", "donor")
    assert "colour of solvent is the same for all categories" in found.remarks[0]
    assert "'DMF' and 'twin' of solvent have equal descriptors" in found.remarks[1]
    space = Space.of({"solvent": Choices(tuple(rows))}, descriptors={"solvent": found})
    X = space.encode([{"solvent": c} for c in rows])
    assert torch.cdist(X, X).fill_diagonal_(9.0).min() >= 1 - 1e-12
    assert [r["solvent"] for r in space.decode(X)] == list(rows)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": {"p": 1.0}}, "at least two categories"),
        ({"a": {"p": 1.0}, "b": {"p": None}}, "'p' of 'b' is None, which is not a number"),
        ({"a": {"p": 1.0}, "b": {"p": float("nan")}}, "'p' of 'b' is nan"),
        ({"a": {"p": 1.0}, "b": {"p": True}}, "'p' of 'b' is True"),
        ({"a": {"p": 1.0}, "b": {"p": "high"}}, "'p' of 'b' is 'high', which is not a number"),
        ({"a": {"p": 1.0}, "b": {"q": 1.0}}, "'q' of 'a' is missing|'p' of 'b' is missing"),
        ({"a": {"p": 1.0}, "b": {"p": 1.0}}, "no column tells the categories apart"),
    ],
)
def test_descriptors_that_describe_nothing_are_refused(table: Any, message: str) -> None:
    """With the category and the column."""
    with pytest.raises(InputError, match=message):
        Descriptors.of(table, "solvent")


def _space(descriptors: Descriptors | None = None, **more: Any) -> Space:
    own = Descriptors.of(SOLVENTS, "solvent") if descriptors is None else descriptors
    return Space.of(
        {"solvent": Choices(("DMF", "toluene", "THF")), "T": FloatRange(20, 100)}, descriptors={"solvent": own}, **more
    )


def test_coordinates_are_the_names_and_the_descriptors() -> None:
    """1/√2 in the own column; descriptors by their range, divided by the largest distance, around the middle."""
    space = _space(extra_levels={"solvent": ["DMSO"]})
    X = space.encode([{"solvent": s, "T": 20} for s in ("DMF", "toluene", "THF", "DMSO")])
    assert space.d == 4 + 2 + 1
    assert space.categories == ((0, 1, 2, 3), (4, 5))
    assert space.described == ((4, 5),)
    torch.testing.assert_close(X[:, :4], 0.5**0.5 * torch.eye(4, dtype=torch.float64))
    raw = tensor([[0.4, 26.6], [0.1, 0.1], [0.2, 20.0], [0.45, 29.8]])
    unit = (raw - raw.amin(0)) / (raw.amax(0) - raw.amin(0))
    torch.testing.assert_close(torch.cdist(X[:, 4:6], X[:, 4:6]), torch.cdist(unit, unit) / 2**0.5)
    assert float(torch.cdist(X[:, 4:6], X[:, 4:6]).amax()) == pytest.approx(1.0)
    assert bool(((X >= 0) & (X <= 1)).all())
    fewer = _space().encode([{"solvent": "THF", "T": 20}])
    assert torch.equal(fewer[0, 3:5], X[2, 4:6]), "what only sources know does not move the others"


def test_a_category_without_descriptors_is_refused() -> None:
    """With its name, and those that are known."""
    with pytest.raises(InputError, match=r"solvent = 'water' has no descriptors: there are those of 'toluene'"):
        _space(extra_levels={"solvent": ["water"]})
    with pytest.raises(InputError, match="'T', which is no categorical parameter"):
        Space.of({"T": FloatRange(0, 1), "s": Choices((1, 2))}, descriptors={"T": Descriptors.of(SOLVENTS)})


def test_without_descriptors_nothing_changes() -> None:
    """An empty mapping is none."""
    distributions: Any = {"solvent": Choices(("DMF", "toluene", "THF")), "T": FloatRange(20, 100)}
    assert Space.of(distributions, descriptors={}) == Space.of(distributions)
    assert Space.of(distributions).described == ()


def test_a_single_category_has_no_columns() -> None:
    """There is nothing to choose, whatever describes it."""
    space = Space.of(
        {"solvent": Choices(("DMF",)), "T": FloatRange(0, 1)}, descriptors={"solvent": Descriptors.of(SOLVENTS)}
    )
    assert space.d == 1
    assert (space.categories, space.described) == ((), ())


def test_conditions_on_a_described_category_are_seen_from_its_names() -> None:
    """However large its descriptors are; what is not there rests."""
    space = Space.of(
        {"solvent": Choices(tuple(SOLVENTS)), "water": FloatRange(0, 1)},
        descriptors={"solvent": Descriptors.of(SOLVENTS)},
        conditions={"water": Condition("solvent", without=("toluene", "THF"))},
    )
    rows: list[dict[str, Any]] = [{"solvent": "toluene"}, {"solvent": "THF"}, {"solvent": "DMSO", "water": 0.25}]
    X = space.encode(rows)
    assert space.present(X)[:, 1].tolist() == [False, False, True]
    assert space.decode(X) == rows
    resting = Space.of(
        {"a": Choices((1, 2)), "solvent": Choices(tuple(SOLVENTS))},
        descriptors={"solvent": Descriptors.of(SOLVENTS)},
        conditions={"solvent": Condition("a", without=(1,))},
    )
    assert resting.encode([{"a": 1}])[0, 2:].tolist() == [0.0] * 4 + [0.5] * 2


def test_neighbours_are_the_nearest_known_ones() -> None:
    """Between two of them, or beyond all."""
    own = Descriptors.of(SOLVENTS, "solvent")
    nearest, between = own.neighbours("THF", ["toluene", "DMSO"])
    assert set(nearest) == {"toluene", "DMSO"}
    assert between
    assert own.neighbours("DMSO", ["toluene", "THF", "DMF", "unknown"]) == (("DMF", "THF"), False)
    assert own.neighbours("DMF", ["DMF"]) == ((), False)


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_described_space_takes_every_point_to_a_category(data: st.DataObject) -> None:
    """Encoding and decoding is the identity; snapping keeps to the choices, and once is enough."""
    k, n = data.draw(st.integers(1, 4)), data.draw(st.integers(2, 6))
    rows = data.draw(st.lists(st.lists(NUMBERS, min_size=k, max_size=k), min_size=n + 1, max_size=n + 1))
    if not any(max(column) - min(column) > 1e-3 for column in zip(*rows, strict=True)):
        return
    own = Descriptors.of({f"c{i}": {f"d{j}": v for j, v in enumerate(row)} for i, row in enumerate(rows)}, "c")
    space = Space.of(
        {"T": FloatRange(0, 1), "c": Choices(tuple(f"c{i}" for i in range(n)))},
        extra_levels={"c": [f"c{n}"]},
        descriptors={"c": own},
    )
    every = [{"T": 0.5, "c": f"c{i}"} for i in range(n)]
    X = space.encode(every)
    assert space.decode(X) == every
    assert torch.equal(space.snap(X), X)
    anywhere = torch.rand(20, space.d, generator=torch.Generator().manual_seed(n), dtype=torch.float64) * 1.4 - 0.2
    snapped = space.snap(anywhere)
    assert torch.equal(space.snap(snapped), snapped)
    assert torch.equal(space.encode(space.decode(anywhere)), snapped)
    grid = next(axis for axis in space.axes if axis.name == "c").grid()
    assert bool((torch.cdist(snapped[:, 1:], grid).amin(-1) < 1e-9).all())
    assert len(grid) == n
