"""Columns that are proposed as ignored."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from headstart.errors import Message, Setting
from headstart.sources.column_guess import Proposal, propose
from headstart.sources.files.tables import read_table

ROWS = 10


def _proposed(
    folder: Path, name: str, cells: Sequence[object], *, behind: bool = False, **options: list[str]
) -> Proposal:
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
        ("Operator", ["Kim", "Ole"] * 5, "who did it is no setting"),
        ("Bearbeiter", ["Kim", "Ole"] * 5, "who did it is no setting"),
        ("comment", ["ok", "again"] * 5, "remarks are no setting"),
        ("Purity [%]", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("Reinheit", [90.5 + i for i in range(ROWS)], "by its name it is measured, not set"),
        ("T_sd", [0.5 + i / 10 for i in range(ROWS)], "by its name it is measured, not set"),
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
    assert "c 0.4 … 1.7, run 0.4 … 1.66" in proposal.remarks[0]
