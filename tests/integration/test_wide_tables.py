"""Tables on a terminal: headings stay readable, however many columns there are."""

from __future__ import annotations

import io

import pytest
import rich.console

from headstart.cli.output import show, table

NAMES = [f"Parameter number {i} of the whole process [°C]" for i in range(12)]


def _shown(monkeypatch: pytest.MonkeyPatch, width: int | None, n: int, names: list[str]) -> list[str]:
    """The lines that are printed on a terminal of that width, or into a file."""
    out, of_rich = io.StringIO(), rich.console.Console

    def console(**options: int) -> rich.console.Console:
        own = {"width": width, "force_terminal": True} if width else {}
        return of_rich(file=out, color_system=None, **{**own, **options})  # type: ignore[arg-type]

    monkeypatch.setattr(rich.console, "Console", console)
    columns = ("row", *names, "rests on")
    rows = [(str(i + 2), *(f"{i}.{j}" for j in range(len(names))), "one campaign 59 %, another 41 %") for i in range(n)]
    show(table("Some experiments", columns, rows, left=("rests on",)))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("n", [1, 4, 30])
def test_a_wide_table_is_turned_and_divided(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """Every heading is whole, nothing is wider than the terminal, and every cell is there once, below its row."""
    lines = _shown(monkeypatch, 80, n, NAMES)
    assert max(map(len, lines)) <= 80
    heads = [line.split()[1:] for line in lines if line.startswith("row ")]
    assert [number for head in heads for number in head] == [str(i + 2) for i in range(n)]
    for j, name in enumerate(NAMES):
        found = [line.removeprefix(name).split() for line in lines if line.startswith(f"{name} ")]
        assert [cell for cells in found for cell in cells] == [f"{i}.{j}" for i in range(n)]
    assert lines.count("Some experiments") == 1


def test_a_narrow_table_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for every experiment."""
    lines = _shown(monkeypatch, 80, 3, ["a", "b"])
    assert [line.split()[:3] for line in lines[4:7]] == [["2", "0.0", "0.1"], ["3", "1.0", "1.1"], ["4", "2.0", "2.1"]]


def test_in_a_file_nothing_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide it is: a program may read it."""
    lines = _shown(monkeypatch, None, 3, NAMES)
    assert all(name in lines[2] for name in NAMES)
    assert lines[4].split()[0] == "2"
    assert lines[4].endswith("one campaign 59 %, another 41 %")
