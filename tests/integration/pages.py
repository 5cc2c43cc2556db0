"""The pages that people read, the code in them, and what the project says of itself."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Repository"]


def text_of(page: str) -> str:
    """A page by its path in the repository."""
    return (ROOT / page).read_text(encoding="utf-8")


def fenced(text: str, language: str = "python") -> list[str]:
    """The fenced blocks of that language in a text, in order."""
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def blocks(page: str, language: str = "python") -> list[str]:
    """Those of a page; there is at least one."""
    found = fenced(text_of(page), language)
    assert found, f"{page} has no block of {language}"
    return found


def execute(block: str, page: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a block defines, run in a fresh interpreter's namespace or after the blocks that gave ``names``."""
    names = {} if names is None else names
    exec(compile(block, page, "exec"), names)
    return names


def run_notebook(page: str) -> dict[str, Any]:
    """What the code cells of a notebook define, run one after the other."""
    names: dict[str, Any] = {}
    for cell in json.loads(text_of(page))["cells"]:
        if cell["cell_type"] == "code":
            execute("".join(cell["source"]), page, names)
    return names


def printed_tables(text: str) -> list[list[list[str]]]:
    """The tables of a text as the commands print them: the cells of the headings, then of every row."""
    lines = text.splitlines()
    found = []
    for i, line in enumerate(lines):
        if line.strip() and not line.strip("─ "):
            rows = [lines[i - 1]]
            for row in lines[i + 1 :]:
                if not row.strip():
                    break
                rows.append(row)
            found.append([re.split(r" {2,}", row.strip()) for row in rows])
    return found


def same_cell(shown: str, printed: str) -> bool:
    """Whether a page shows the cell that was printed; numbers may differ by a twentieth, as they do between machines.

    A cell that ends in '…' shows only the beginning.
    """
    if shown.endswith(", …"):
        shown, printed = shown[:-3], printed[: len(shown) - 3]
    number = r"[+-]?\d+(?:\.\d+)?"
    if re.sub(number, "0", shown) != re.sub(number, "0", printed):
        return False
    pairs = zip(re.findall(number, shown), re.findall(number, printed), strict=True)
    return all(abs(float(a) - float(b)) <= 0.05 * abs(float(b)) + _unit(a) for a, b in pairs)


def _unit(number: str) -> float:
    """What the last digit of a number counts."""
    return float(10 ** -len(number.partition(".")[2]))
