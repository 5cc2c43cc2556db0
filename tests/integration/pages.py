"""The pages that people read, and the code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


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
