"""``headstart.toml`` is changed in a few places, and every other line of it stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headstart.campaign.file import CampaignFile, RuleLine
from headstart.campaign.toml.keys import TomlText
from headstart.campaign.toml.reading import campaign_file_in
from headstart.errors import InputError

_BOM = "\ufeff"
_HEADER = re.compile(r"\s*\[")
_RULE = re.compile(r"""(\s*rule\s*=\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*')(\s*(?:\#.*)?)""")


def with_told_cells(raw: bytes, path: Path, told: Mapping[str, float]) -> bytes:
    """The file with more lines in its table [cells], which is added where it has none."""
    lines, newline = _lines(raw)
    before = _understood(lines, path)
    new = [f"{json.dumps(text, ensure_ascii=False)} = {value!r}" for text, value in told.items()]
    line = TomlText(path, "\n".join(lines)).line("", "cells")
    changed = [*lines[:line], *new, *lines[line:]] if line else [*lines, "", "[cells]", *new]
    return _checked(changed, newline, path, replace(before, cells={**before.cells, **told}), "[cells]")


def with_rules(raw: bytes, path: Path, rules: Sequence[str]) -> bytes:
    """The file with these rules instead of those that it has; each takes the place of one, and "" takes one out."""
    lines, newline = _lines(raw)
    before = _understood(lines, path)
    heads = [line - 1 for line in TomlText(path, "\n".join(lines)).lines_of("rules")]
    changed = list(lines)
    for i, head in reversed(list(enumerate(heads))):
        wanted = rules[i] if i < len(rules) else ""
        if i < len(before.rules) and wanted == before.rules[i].text:
            continue
        end = next((k for k in range(head + 1, len(changed)) if _HEADER.match(changed[k])), len(changed))
        if not wanted:
            del changed[head:end]
            continue
        for k in range(head + 1, end):
            if found := _RULE.fullmatch(changed[k]):
                changed[k] = f"{found[1]}{json.dumps(wanted, ensure_ascii=False)}{found[2]}"
    for wanted in rules[len(heads) :]:
        changed += ["", "[[rules]]", f"rule = {json.dumps(wanted, ensure_ascii=False)}"] if wanted else []
    kept = tuple(RuleLine(text) for text in rules if text)
    return _checked(changed, newline, path, replace(before, rules=kept), "[[rules]]")


def _lines(raw: bytes) -> tuple[list[str], str]:
    text = raw.decode("utf-8")
    return text.splitlines(), "\r\n" if "\r\n" in text else "\n"


def _understood(lines: Sequence[str], path: Path) -> CampaignFile:
    return campaign_file_in("\n".join(lines).removeprefix(_BOM), path)


def _checked(lines: Sequence[str], newline: str, path: Path, wanted: CampaignFile, what: str) -> bytes:
    """The lines, if they say what they are to say and nothing else has changed: a table can be written in many ways."""
    told = f"{path}: {what} is written in a way that cannot be changed from here. Edit the file itself."
    try:
        tomllib.loads("\n".join(lines).removeprefix(_BOM))
    except tomllib.TOMLDecodeError as error:
        raise InputError(told) from error
    if _understood(lines, path) != wanted:
        raise InputError(told)
    return (newline.join(lines) + newline).encode()
