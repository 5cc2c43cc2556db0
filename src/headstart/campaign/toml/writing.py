"""``headstart.toml`` as it is first written, with a comment at every guess; and changed later in a few places.

A change leaves every other line as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from headstart.campaign.file import CampaignFile, ResultColumn
from headstart.campaign.toml.reading import TomlText, campaign_file_in
from headstart.data.outcomes import Goal
from headstart.data.ranges import even_in_ratio
from headstart.errors import InputError
from headstart.sources.column_guess import Guess, Proposal
from headstart.sources.parameters import MOST_USED, Kind, Parameter


def toml_text(campaign: CampaignFile, proposal: Proposal) -> str:
    """The whole file."""
    lines = [
        "# What this campaign optimises, and what it starts from. Everything below was guessed from the past files:",
        "# look through it and change what is wrong. 'headstart suggest' reads it anew every time.",
        "",
        *_settings(
            ("current", campaign.current, "the experiments of this campaign; fill in results there"),
            ("candidates", campaign.candidates or None, "every suggestion is one of its rows"),
            ("model", campaign.model, "it weighs the past campaigns by what they predict: see 'headstart check'"),
            ("max_rows", MOST_USED, "of a longer past file so many rows are used, the best among them"),
        ),
        "",
        '# Past campaigns, as paths from this folder. Their order matters to chains alone (model = "shgp", "bhgp",',
        '# "mhgp", "hgp"): there the one that is most like the new one stands last.',
        "past = [",
        *(f"    {_value(path)}," for path in campaign.past),
        "]",
        "",
        "# Columns of the past files that are not parameters. To make one a parameter, delete it here and add a table.",
        "ignore = [",
        *_commented([(f"    {_value(name)},", why) for name, why in proposal.ignored.items()]),
        "]",
    ]
    if campaign.batch and proposal.batch is not None:
        lines += [
            "",
            "# Results of one batch may be shifted together; what is expected is a result in the present one: today,",
            "# or the last in the table. Delete the line if they are not. Where shifts change slowly add drift = 30:",
            "# they are then alike over some 30 days.",
            *_settings(("batch", campaign.batch, proposal.batch.why)),
        ]
    if campaign.rename:
        lines += ["", "# Columns with another name in some past file: old = new.", "[rename]"]
        lines += [f"{_key(old)} = {_value(new)}" for old, new in campaign.rename.items()]
    if campaign.cells:
        lines += ["", "# What cells of the files mean, other than usual.", "[cells]"]
        lines += [f"{_key(text)} = {_value(meaning)}" for text, meaning in campaign.cells.items()]
    lines += [
        "",
        "# Results. An [objectives.NAME] is to be high, low or near a target = ...; up to four are weighed against",
        "# each other, each up to a threshold = ..., the worst value that is still of interest. What only",
        "# has to be good enough is a [limits.NAME] with at_most, at_least or both. error = COLUMN has the standard",
        "# error of every result, and low and high are values that no result can be beyond.",
    ]
    for column in campaign.results:
        lines += ["", *_result(column)]
    lines += [
        "",
        "# Parameters. Suggestions stay between low and high; past results outside still count.",
        '#   kind = "float" | "int" | "category" | "fixed" (with value = ...)',
        "#   step = 0.5 keeps suggestions on a grid, log = true makes ratios count instead of differences,",
        "#   values = [0.4, 0.8, 1.2] instead of low, high and step lets only these be suggested.",
    ]
    for guess in proposal.guesses:
        lines += ["", *_parameter(guess)]
    if campaign.rules:
        lines += ["", "# Rules that every suggestion keeps. Past results that break one still count."]
    for rule in campaign.rules:
        lines += ["", "[[rules]]", f"rule = {_value(rule)}"]
    return "\n".join(lines) + "\n"


def _result(column: ResultColumn) -> list[str]:
    outcome = column.outcome
    if isinstance(outcome, Goal):
        way = "maximize" if outcome.maximize else "minimize"
        first: list[tuple[str, Any, str]] = [
            ("direction", way if outcome.target is None else None, "or the reverse"),
            ("target", outcome.target, "as near to it as possible"),
            ("threshold", outcome.threshold, "the worst value that is still of interest"),
        ]
    else:
        first = [(key, getattr(outcome, key), "every good result keeps it") for key in ("at_most", "at_least")]
    return [
        f"[{'objectives' if isinstance(outcome, Goal) else 'limits'}.{_key(column.name)}]",
        *_settings(
            *first,
            ("unit", column.unit, "for tables and pictures"),
            ("error", column.error or None, "the column of standard errors"),
            ("low", outcome.low, "a percentage: no result can be lower"),
            ("high", outcome.high, "or higher"),
        ),
    ]


def _parameter(guess: Guess) -> list[str]:
    p, whole = guess.parameter, guess.parameter.kind is Kind.INT
    ends = (p.low, p.high, p.step) if p.kind in (Kind.INT, Kind.FLOAT) and not p.values else (None, None, None)
    low, high, step = (None if end is None else int(end) if whole else float(end) for end in ends)
    why = {"descriptors": "numbers that describe them: alike is near", **guess.reasons}
    settings = {
        "kind": p.kind.value,
        "choices": p.choices or None,
        "descriptors": p.descriptors or None,
        "value": p.value if p.kind is Kind.FIXED else None,
        "values": p.values or None,
        "low": low,
        "high": high,
        "log": p.log if p.log or even_in_ratio(p.values) else None,
        "step": step,
        "unit": None if p.kind is Kind.CATEGORY else p.unit,
    }
    told = ((key, value, why.get(key, "")) for key, value in settings.items())
    return [f"[parameters.{_key(p.name)}]", *_settings(*told)]


def _settings(*settings: tuple[str, Any, str]) -> list[str]:
    """Keys, values and comments as lines; a value None is left out."""
    return _commented([(f"{key} = {_value(value)}", why) for key, value, why in settings if value is not None])


def _commented(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Lines with their comments in one column."""
    width = max((len(line) for line, comment in lines if comment and len(line) < 44), default=0)
    return [f"{line:<{width}}  # {comment}" if comment else line for line, comment in lines]


def _value(value: str | float | Sequence[str]) -> str:
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


_BOM = "\ufeff"
_HEADER = re.compile(r"\s*\[")
_RULE = re.compile(r"""(\s*rule\s*=\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*')(\s*(?:\#.*)?)""")

_REST = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'#])*?(\s*(?:\#.*)?)"""  # a value of one line, and the comment behind it


def with_told_cells(raw: bytes, path: Path, told: Mapping[str, float]) -> bytes:
    """The file with more lines in its table [cells], which is added where it has none."""
    lines, newline = _lines(raw)
    before = _understood(lines, path)
    new = [f"{_value(text)} = {value!r}" for text, value in told.items()]
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
        if i < len(before.rules) and wanted == before.rules[i]:
            continue
        end = next((k for k in range(head + 1, len(changed)) if _HEADER.match(changed[k])), len(changed))
        if not wanted:
            del changed[head:end]
            continue
        for k in range(head + 1, end):
            if found := _RULE.fullmatch(changed[k]):
                changed[k] = f"{found[1]}{_value(wanted)}{found[2]}"
    for wanted in rules[len(heads) :]:
        changed += ["", "[[rules]]", f"rule = {_value(wanted)}"] if wanted else []
    return _checked(changed, newline, path, replace(before, rules=tuple(filter(None, rules))), "[[rules]]")


def with_ranges(raw: bytes, path: Path, parameters: Sequence[Parameter]) -> bytes:
    """The file with the ranges, steps and choices of these parameters, which are those that it has."""
    lines, newline = _lines(raw)
    before = _understood(lines, path)
    wanted = []
    for old, new in zip(before.parameters, parameters, strict=True):
        keys = ("values", "log") if old.values else ("low", "high", "step", "choices", "withdrawn")
        told = {key: getattr(new, key) for key in keys}
        told = {key: value for key, value in told.items() if repr(value) != repr(getattr(old, key))}
        for key, value in told.items():
            lines = _with_key(lines, path, f"parameters.{new.name}", key, int(value) if _whole(new, value) else value)
        wanted.append(replace(old, **told))
    return _checked(lines, newline, path, replace(before, parameters=tuple(wanted)), "[parameters]")


def without_batch(raw: bytes, path: Path) -> bytes:
    """The file without a column of batches, which is ignored then, and without the drift of shifts."""
    lines, newline = _lines(raw)
    before = _understood(lines, path)
    for key in ("batch", "drift"):
        lines = _with_key(lines, path, "", key, None)
    lists = [k for k, line in enumerate(lines) if re.fullmatch(r"ignore\s*=\s*\[\s*", line)]  # of one name a line
    for k in lists:
        lines.insert(k + 1, f"    {_value(before.batch)},")
    ignored = (*(before.batch for _ in lists), *before.ignore)
    return _checked(lines, newline, path, replace(before, batch="", drift=None, ignore=ignored), "batch")


def _whole(p: Parameter, value: Any) -> bool:
    return p.kind is Kind.INT and isinstance(value, float) and value == int(value)


def _with_key(lines: Sequence[str], path: Path, table: str, key: str, value: Any) -> list[str]:
    """The lines with another value of a key in a table, or above all, with its comment; without the key for nothing."""
    head = TomlText(path, "\n".join(lines)).line("", table) or len(lines) if table else 0
    end = next((k for k in range(head, len(lines)) if _HEADER.match(lines[k])), len(lines))
    found = {k: match for k in range(head, end) if (match := re.fullmatch(rf"(\s*{key}\s*=\s*){_REST}", lines[k]))}
    if value is None or value == ():
        return [line for k, line in enumerate(lines) if k not in found]
    if found:
        return [f"{found[k][1]}{_value(value)}{found[k][2]}" if k in found else line for k, line in enumerate(lines)]
    last = max((k for k in range(head, end) if lines[k].strip()), default=head - 1)
    return [*lines[: last + 1], f"{key} = {_value(value)}", *lines[last + 1 :]]


def _lines(raw: bytes) -> tuple[list[str], str]:
    text = raw.decode("utf-8")
    return text.splitlines(), "\r\n" if "\r\n" in text else "\n"


def _understood(lines: Sequence[str], path: Path) -> CampaignFile:
    return campaign_file_in("\n".join(lines).removeprefix(_BOM), path)


def _checked(lines: Sequence[str], newline: str, path: Path, wanted: CampaignFile, what: str) -> bytes:
    """The lines, if they say what they are to say and nothing else has changed: a table can be written in many ways."""
    with suppress(InputError):
        if _understood(lines, path) == wanted:
            return (newline.join(lines) + newline).encode()
    raise InputError(f"{path}: {what} is written in a way that cannot be changed from here. Edit the file itself.")
