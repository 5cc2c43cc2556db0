"""What stands in several files of the repository is the same in all of them."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.integration.pages import ROOT, text_of

import headstart

PROJECT = tomllib.loads(text_of("pyproject.toml"))["project"]
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


@pytest.mark.parametrize("file", SETTINGS)
def test_settings_of_other_programs_can_be_read(file: str) -> None:
    """They are YAML, and hold something."""
    assert pytest.importorskip("yaml").safe_load(text_of(file))
