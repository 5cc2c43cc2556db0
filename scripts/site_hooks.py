"""A hook for MkDocs: links that leave ``docs`` become the path of the file in the repository.

In the repository ``[the comparison](../results/tables/compare.md)`` is a link. The site has no such page, so there it
reads: the comparison (`results/tables/compare.md`). A path that does not exist fails the build.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]
_LEAVING = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page as the site shows it."""

    def shown(link: re.Match[str]) -> str:
        text, path = link["text"], link["path"]
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri}: there is no {path} in the repository to link to.")
        if path.endswith(text.strip("`")) or path.startswith(text.strip("`")):
            return f"`{path}`"
        return f"{text} (`{path}`)"

    return _LEAVING.sub(shown, markdown)
