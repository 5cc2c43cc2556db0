"""A hook for ProperDocs: what the pages link to outside ``docs``, as the site shows it.

In the repository ``[the comparison](../results/compare/compare.md)`` is a link. The site has no such page, so there it
reads: the comparison (`results/compare/compare.md`). A path that does not exist fails the build. CONTRIBUTING.md is a
page of the site as well, and links to it stay links; a picture outside ``docs`` that a page shows is on the site, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from properdocs.exceptions import PluginError
from properdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
_ALSO = {  # in the repository, and on the site
    "CONTRIBUTING.md": "contributing.md",
    "results/compare/profiles-tables.png": "compare-profiles.png",
}
_LEAVING = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]+)\]\(\.\./(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, *, config: Any) -> Files:
    """With what is elsewhere in the repository; links of a page at its root into ``docs`` are links to neighbours."""
    for theirs, ours in _ALSO.items():
        if ours.endswith(".md"):
            content = (ROOT / theirs).read_text(encoding="utf-8").replace("](docs/", "](")
            files.append(File.generated(config, ours, content=content))
        else:
            files.append(File.generated(config, ours, abs_src_path=str(ROOT / theirs)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """The page as the site shows it."""

    def shown(link: re.Match[str]) -> str:
        text, path = link["text"], link["path"]
        if path in _ALSO:
            return f"{link['picture']}[{text}]({_ALSO[path]}{link['anchor'] or ''})"
        if link["picture"]:
            raise PluginError(f"{page.file.src_uri}: {path} is not on the site. Enter it in scripts/site_hooks.py.")
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri}: there is no {path} in the repository to link to.")
        if path.endswith(text.strip("`")) or path.startswith(text.strip("`")):
            return f"`{path}`"
        return f"{text} (`{path}`)"

    return _LEAVING.sub(shown, markdown)
