"""Columns that are proposed as ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from headstart.errors import Message, Setting
from headstart.sources.column_guess import Proposal, propose
from headstart.sources.files.tables import Table, read_table
from headstart.sources.roles import what_counts

ROWS = 10


def _proposed(folder: Path, name: str, cells: Sequence[object], *, behind: bool = False, **options: Any) -> Proposal:
    head = f"T,y,{name}" if behind else f"T,{name},y"
    rows = [f"{20 + i},{50.5 + i},{cell}" if behind else f"{20 + i},{cell},{50.5 + i}" for i, cell in enumerate(cells)]
    path = folder / "a.csv"
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return propose([read_table(path)], ["y"], **options)


@pytest.mark.parametrize(
    ("name", "cells", "why"),
    [
        ("Additiv", ["", "ok"] * 2 + [""] * 6, "only 2 of 10 rows have it"),
        ("started", [f"2024-03-{i + 1:02d}" for i in range(ROWS)], "dates are no parameters"),
        ("Operator", ["Kim"] * ROWS, "who did it is no setting"),
        ("Bearbeiter", ["Kim"] * ROWS, "who did it is no setting"),
        ("comment", ["ok", "again"] * 5, "remarks are no setting"),
        ("Purity [%]", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("Reinheit", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("T_sd", [0.5 + i / 10 for i in range(ROWS)], "by its name it is measured, not set"),
        ("purity HPLC [area%]", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("Reinheit (HPLC) [%]", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("Kosten [€/kg]", [9.51 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("cost per batch", [9.51 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("cube", list(range(1201, 1201 + ROWS)), "it only counts the rows"),
        ("Versuch Nr", [7, 3, 1, 9, 10, 2, 4, 5, 6, 8], "it only counts the rows"),
    ],
)
def test_what_is_no_setting_is_no_parameter(tmp_path: Path, name: str, cells: list[object], why: str) -> None:
    """With the reason."""
    proposal = _proposed(tmp_path, name, cells)
    assert why in proposal.ignored[name]
    assert [g.parameter.name for g in proposal.guesses] == ["T"]


def test_what_looks_measured_says_how_it_becomes_a_parameter(tmp_path: Path) -> None:
    """By name, or behind the result with values that hardly occur twice; telling so makes it one."""
    cells: list[object] = [0.1 * i + 0.07 * (i % 3) for i in range(ROWS)]
    ignored = _proposed(tmp_path, "Turbidity", cells, behind=True).ignored
    why = ignored["Turbidity"]
    assert isinstance(why, Message)
    assert why.settings == (Setting("parameter", "Turbidity"), Setting("limit", "Turbidity>=VALUE"))
    assert "Turbidity" not in _proposed(tmp_path, "Turbidity", cells).ignored
    told = _proposed(tmp_path, "Turbidity", cells, behind=True, parameters=["Turbidity"])
    assert "Turbidity" in [g.parameter.name for g in told.guesses]


def test_steps_and_ranges_say_what_they_rest_on(tmp_path: Path) -> None:
    """A step keeps to what was run; a range that is rounded outward says so."""
    proposal = _proposed(tmp_path, "c", [0.4, 0.8, 1.2, 1.6] * 2 + [0.4, 0.8])
    c = next(g for g in proposal.guesses if g.parameter.name == "c")
    assert (c.parameter.low, c.parameter.high, c.parameter.step) == (0.4, 1.6, 0.4)
    proposal = _proposed(tmp_path, "c", [0.43, 0.81, 1.27, 1.66] * 2 + [0.4, 0.8])
    c = next(g for g in proposal.guesses if g.parameter.name == "c")
    assert c.parameter.step is None
    assert c.reasons["low"] == "the data: 0.4 … 1.66, rounded outward"
    assert "c 0.4 … 1.7 (so far 0.4 … 1.66)" in proposal.remarks[0]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("solvent purity [%]", [95, 99.5] * 5),  # two grades
        ("target yield [%]", [61.5 + 2.3 * i for i in range(ROWS)]),
        ("seed [%]", [0.5 + 0.3 * i for i in range(ROWS)]),  # what has a unit counts no rows
        ("T set", list(range(40, 40 + ROWS))),
    ],
)
def test_a_setting_may_be_called_almost_as_a_result(tmp_path: Path, name: str, cells: list[object]) -> None:
    """Where its values repeat, where it says what is wanted, and where it has a unit."""
    assert name in [g.parameter.name for g in _proposed(tmp_path, name, cells).guesses]


def _three(folder: Path, head: str, cell: Callable[[str, int], object]) -> list[Table]:
    found = []
    for n in range(3):
        rows = [",".join(str(cell(name, 12 * n + i)) for name in head.split(",")) for i in range(12)]
        path = folder / f"{n}.csv"
        path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
        found.append(read_table(path))
    return found


def _cell(name: str, i: int) -> object:
    """Settings on a few levels, all else as it is measured."""
    return 40 + 5 * (i * 7 % 4) if name in ("T", "A", "B") else 10.17 + 3.31 * (i * 11 % 37)


def test_what_stands_beside_the_result_and_never_repeats_is_asked_about(tmp_path: Path) -> None:
    """A result of a name that nobody knows; not a concentration, and nothing where settings do not repeat either."""
    tables = _three(tmp_path, "T,A,conc,foaming,yield", _cell)
    asked = [str(r) for r in propose(tables, ["yield"]).remarks if "Look at it" in r]
    assert [r.split(" is taken")[0] for r in asked] == ["Look at it: 'foaming'"]
    assert not any("Look at it" in r for r in propose(tables, ["yield"], parameters=["foaming"]).remarks)
    tables = _three(tmp_path, "x,v,w,foaming,yield", _cell)
    assert not any("Look at it" in r for r in propose(tables, ["yield"]).remarks)


def test_what_others_are_measured_beside_counts_only_if_nothing_stands_behind(tmp_path: Path) -> None:
    """Porosity before an unknown last column does not count for sure, and does where it is the last."""
    counting = what_counts(_three(tmp_path, "T,A,B,porosity,grip", _cell))
    assert counting is not None
    assert (counting.name, counting.maximize, counting.sure) == ("grip", None, False)
    counting = what_counts(_three(tmp_path, "T,A,grip,B,porosity", _cell))
    assert counting is not None
    assert (counting.name, counting.maximize, counting.sure) == ("porosity", False, True)
