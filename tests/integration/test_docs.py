"""The site says what is true: it builds without a warning, its links and names lead somewhere, its recipes run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.pages import ROOT, execute, fenced, text_of

import headstart

SOURCE = ROOT / "src" / "headstart"
PAGES = sorted(
    str(p.relative_to(ROOT)) for p in (*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("examples/*.md"))
)
UNWANTED = ("utils.py", "helpers.py", "common.py")  # said not to be there
HOWTO = "docs/howto.md"
SECTIONS = [section.partition("\n") for section in re.split(r"^## ", text_of(HOWTO), flags=re.M)[1:]]
RECIPES = {heading: fenced(section) for heading, _, section in SECTIONS}


def test_the_site_builds_without_a_warning_and_has_every_public_name(tmp_path: Path) -> None:
    """``properdocs build --strict`` succeeds, loads nothing from elsewhere, and the API page has all of ``__all__``."""
    command = [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    reference = (tmp_path / "site" / "api.html").read_text(encoding="utf-8")
    missing = [name for name in headstart.__all__ if f'id="headstart.{name}"' not in reference]
    assert not missing
    assert "Inputs X (*b, n, d)" in reference  # a shape, not an emphasis
    for page in (tmp_path / "site").glob("*.html"):
        loaded = re.findall(
            r'(?:src|href)="((?:https?:)?//[^"]+\.(?:js|css|woff2?))"', page.read_text(encoding="utf-8")
        )
        assert not loaded, page.name


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("make") is None or shutil.which("git") is None, reason="needs make and git")
def test_versions_of_the_site_stand_side_by_side(tmp_path: Path) -> None:
    """``make docs-version`` adds the site of this version to the branch gh-pages; older ones stay, ``latest`` moves."""
    pytest.importorskip("mike")
    for path in ROOT.iterdir():
        if path.name not in (".git", "site", "properdocs.yml"):
            (tmp_path / path.name).symlink_to(path)
    shutil.copy(ROOT / "properdocs.yml", tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "index.md").write_text("# An older version")
    configuration = "{site_name: headstart, theme: materialx, docs_dir: old, use_directory_urls: false}"
    (tmp_path / "old.yml").write_text(configuration)
    programs = Path(sys.executable).parent
    someone = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **someone, "PATH": f"{programs}:{os.environ['PATH']}"}

    def told(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    told("git", "init", "--quiet")
    told("git", "commit", "--quiet", "--allow-empty", "--message", "the beginning")
    told("mike", "deploy", "--config-file", "old.yml", "0.0", "latest")
    told("make", "docs-version", f"BIN={programs}", "STAMP=")
    now = headstart.__version__.rpartition(".")[0]
    listed = json.loads(told("git", "show", "gh-pages:versions.json"))
    assert {one["version"]: one["aliases"] for one in listed} == {"0.0": [], now: ["latest"]}
    assert "An older version" in told("git", "show", "gh-pages:0.0/index.html")
    assert told("git", "show", "gh-pages:latest") == now  # a link to the folder
    assert "latest/" in told("git", "show", "gh-pages:index.html")
    assert re.search(r'"version": ?\{"provider": ?"mike"\}', told("git", "show", f"gh-pages:{now}/index.html"))


def test_every_link_leads_to_a_file_of_the_repository() -> None:
    """Pages are also read where they lie, so a relative link is the path of a file."""
    nowhere = []
    for page in PAGES:
        prose = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            path = link.split("#")[0]
            if path and not re.match(r"[a-z]+:", path) and not ((ROOT / page).parent / path).exists():
                nowhere.append(f"{page} links to {link}")
    assert nowhere == []


@pytest.mark.parametrize(
    "page",
    ["CONTRIBUTING.md", *(f"docs/{page}.md" for page in ("architecture", "decisions", "errata", "models", "index"))],
)
def test_every_module_and_name_that_a_page_cites_exists(page: str) -> None:
    """A page that says ``name`` in ``module.py`` is right about both."""
    text = " ".join(text_of(page).split())
    for path in set(re.findall(r"`([\w/.-]+\.py)`", text)):
        assert _files(path) or path in UNWANTED, f"{page} names {path}"
    cited = re.findall(r"((?:`[\w.]+`(?:, | and |, and ))*`[\w.]+`) in `([\w/.-]+\.py)`", text)
    for names, path in cited:
        for name in re.findall(r"`([\w.]+)`", names):
            own = name.split(".")[-1]
            pattern = rf"^\s*(?:def|class) {own}\b|^\s*{own}\b[^=\n]* = |^\s*{own}: "
            assert any(re.search(pattern, file.read_text(encoding="utf-8"), re.M) for file in _files(path)), (
                f"{name} in {path}"
            )


def _files(path: str) -> list[Path]:
    return [ROOT / path] if (ROOT / path).is_file() else [*SOURCE.rglob(path), *(ROOT / "benchmarks").rglob(path)]


def test_every_fact_that_is_cited_is_among_the_errata() -> None:
    """Where a docstring says ERRATA, fact 3, the page on the errata has it under that number."""
    files = [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    cited = re.findall(r"ERRATA, facts? (\d)(?: and (\d))?|[Ff]acts? (\d)(?: and (\d))?(?: of ERRATA|:)", text)
    numbers = {number for found in cited for number in found if number}
    assert numbers
    assert numbers <= set(re.findall(r"^### Fact (\d):", text_of("docs/errata.md"), re.M))


def test_there_is_one_recipe_under_every_heading() -> None:
    """So that none is left out of what is executed below."""
    assert [heading for heading, found in RECIPES.items() if len(found) != 1] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning")
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_runs(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be pasted into a fresh interpreter."""
    monkeypatch.chdir(tmp_path)
    (block,) = RECIPES[recipe]
    assert execute(block, HOWTO)
