"""What stands in several files of the repository is the same in all of them."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest
from tests.integration.pages import PROJECT, REPOSITORY, ROOT, text_of

import headstart

README = "README.md"
SETTINGS = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *ROOT.glob(".github/**/*.yml"))
)


@pytest.mark.parametrize(
    ("page", "written"),
    [("CITATION.cff", r"^version: (\S+)$"), ("docs/paper.md", r"headstart, version (\d+\.\d+\.\d+)\.")],
)
def test_a_citation_names_the_version(page: str, written: str) -> None:
    """The file for programs and the sentence for people name the version of ``pyproject.toml``."""
    assert re.findall(written, text_of(page), re.MULTILINE) == [PROJECT["version"]]


def test_the_package_says_the_version_of_the_project() -> None:
    """It stands in the package, too, which need not be installed to be asked."""
    assert headstart.__version__ == PROJECT["version"]


def test_the_citation_is_of_the_project() -> None:
    """Its authors, licence and keywords are the project's."""
    cited = pytest.importorskip("yaml").safe_load(text_of("CITATION.cff"))
    assert cited["authors"] == PROJECT["authors"]
    assert (cited["license"], cited["keywords"]) == (PROJECT["license"], PROJECT["keywords"])
    assert cited["repository-code"] == REPOSITORY


def test_the_newest_release_in_the_changelog_is_the_version() -> None:
    """What comes after it is unreleased; releases have a date, and the newest stands first."""
    sections = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    released = sections[1:] if sections[0] == "[Unreleased]" else sections
    titles = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d{2}-\d{2})", section) for section in released]
    dated = [((*map(int, found.groups()[:3]),), date.fromisoformat(found[4])) for found in titles if found]
    assert len(dated) == len(released), released
    assert ".".join(map(str, dated[0][0])) == PROJECT["version"]
    assert dated == sorted(dated, reverse=True)


def test_the_readme_works_wherever_it_is_shown() -> None:
    """A package index has no folder beside it: its links lead into the repository, to what is there; it stays short."""
    text = text_of(README)
    links = re.findall(r"\]\(<?([^)>\s]+)|^\[[^\]]+\]:\s*<?(\S+?)>?$|(?:href|src)=\"([^\"]+)\"", text, re.MULTILINE)
    found = ["".join(link) for link in links]
    assert len(found) > 5
    assert not [link for link in found if not link.startswith("https://")]
    for link in (*found, *PROJECT["urls"].values()):
        if link.startswith(f"{REPOSITORY}/") and link != PROJECT["urls"]["Issues"]:
            kind, branch, path = link.removeprefix(f"{REPOSITORY}/").partition("#")[0].split("/", 2)
            assert branch == "main", link
            assert {"blob": Path.is_file, "raw": Path.is_file, "tree": Path.is_dir}[kind](ROOT / path), link
    assert len(text.splitlines()) <= 120


@pytest.mark.parametrize("file", SETTINGS)
def test_settings_of_other_programs_can_be_read(file: str) -> None:
    """They are YAML, and hold something."""
    assert pytest.importorskip("yaml").safe_load(text_of(file))
