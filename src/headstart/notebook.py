"""What a notebook shows: tables and paragraphs in HTML, with every text escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any


def html_table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table; notebooks would put its words to the right."""
    cells = [("th", heads), *(("td", row) for row in rows)]
    left = "style='text-align: left'"
    lines = ("".join(f"<{tag} {left}>{html.escape(str(cell))}</{tag}>" for cell in row) for tag, row in cells)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def html_lines(text: str) -> str:
    """A paragraph with the lines of the text."""
    return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"


def html_report(text: str) -> str:
    """The text as it is, with its indentation."""
    return f"<pre>{html.escape(text)}</pre>"
