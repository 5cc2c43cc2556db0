"""The tables on the pages are those that the commands on them print, in every row and column."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from tests.integration.command import invoke
from tests.integration.pages import ROOT, printed_tables, same_cell, text_of


def _steps(page: str) -> list[tuple[str, str]]:
    """The console blocks of the page, each with the text up to the next one."""
    parts = re.split(r"```console\n(.*?)```", text_of(page), flags=re.DOTALL)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "tables"), [("docs/folder.md", 1), ("docs/folder-more.md", 1), ("docs/safety.md", 1)])
def test_the_page_shows_what_is_printed(
    page: str, tables: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many rows, the same headings and words, and numbers that agree."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    compared = 0
    for console, text in _steps(page):
        printed = ""
        for line in console.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            if program == "cd":
                monkeypatch.chdir(arguments[0])
                continue
            given = [str(p) for a in arguments for p in (sorted(Path().glob(a)) if "*.csv" in a else [a])]
            result = invoke(*given)
            assert result.exit_code == 0, result.output
            printed = result.stdout
        for shown, there in zip(printed_tables(text), printed_tables(printed), strict=False):
            assert len(shown) == len(there), printed
            for row, own in zip(shown, there, strict=True):
                assert len(row) == len(own), f"{row}\n{own}"
                assert [pair for pair in zip(row, own, strict=True) if not same_cell(*pair)] == []
            compared += 1
        if compared == tables:
            break
    assert compared == tables
    assert sum(len(printed_tables(text)) for _, text in _steps(page)) == tables


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("77 (0 … 100)", "78 (0 … 100)", True),
        ("77 (0 … 100)", "77 (10 … 100)", False),
        ("2023-amide-a 59 %, …", "2023-amide-a 60 %, 2024-amide-b 13 %", True),
        ("2023-amide-a 59 %, …", "2024-amide-b 60 %, 2024-amide-b 13 %", False),
        ("DMF", "THF", False),
        ("0.106", "0.11", True),
        ("0.106", "0.157", False),
        ("-14", "14", False),
    ],
)
def test_cells_are_compared(shown: str, printed: str, same: bool) -> None:
    """Words exactly, numbers nearly."""
    assert same_cell(shown, printed) is same
