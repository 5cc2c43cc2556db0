"""The text of ``headstart.toml``: where a key stands, which keys there are, and what their values must be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.errors import InputError
from headstart.sources.parameters import nearest

# What a value must be, as a message says it
TEXT, WHOLE, TEXTS, TABLE = "a text in quotation marks", "a whole number", "a list of texts", "a table"
NUMBER, SWITCH, VALUE, LIST = "a number", "true or false", "a number or a text", "a list"
TEXT_OR_TEXTS = "a text in quotation marks or a list of texts"


@dataclass(frozen=True, slots=True)
class TomlText:
    """The file as text, from which messages take the line that they name."""

    path: Path
    text: str

    def fail(self, message: str, key: str, table: str = "") -> InputError:
        """The error with the line that the key stands in."""
        line = self.line(key, table)
        return InputError(f"{self.path}{f', line {line}' if line else ''}: {message}")

    def line(self, key: str, table: str) -> int | None:
        """The line of a key in a table, or of the table itself."""
        inside = ""
        for i, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[\s*(.+?)\s*\]\s*(#.*)?$", line):
                inside = header[1].replace('"', "").replace("'", "")
                if not key and inside == table:
                    return i
            elif key and inside == table and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return i
        return self.line("", f"{table}.{key}" if table else key) if key else None

    def lines_of(self, array: str) -> list[int]:
        """The lines of the headers [[array]]."""
        header = re.compile(rf"\s*\[\[\s*{re.escape(array)}\s*\]\]")
        return [i for i, line in enumerate(self.text.splitlines(), start=1) if header.match(line)]

    def check(self, data: Mapping[str, Any], keys: Mapping[str, str], table: str) -> None:
        """Every key known, every value of its type, or an ``InputError``."""
        where = f" in [{table}]" if table else ""
        for key, value in data.items():
            if key not in keys:
                raise self.fail(f"unknown key {key!r}{where}. {nearest(key, keys)}", key, table)
            if not _fits(value, keys[key]):
                raise self.fail(f"{key}{where} must be {keys[key]}, but it is {value!r}.", key, table)


def _fits(value: Any, what: str) -> bool:
    texts = isinstance(value, list) and all(isinstance(v, str) for v in value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        TEXT: isinstance(value, str),
        WHOLE: isinstance(value, int) and not isinstance(value, bool),
        NUMBER: number,
        VALUE: number or isinstance(value, str),
        SWITCH: isinstance(value, bool),
        TABLE: isinstance(value, dict),
        TEXTS: texts,
        TEXT_OR_TEXTS: texts or isinstance(value, str),
        LIST: isinstance(value, list),
    }
    return fits[what]
