"""``make release`` builds nothing from a repository that is not ready, and says why."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.pages import PROJECT, REPOSITORY, ROOT

VERSION = PROJECT["version"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository that is ready."""
    (tmp_path / "scripts").mkdir()
    for name in ("pyproject.toml", "CHANGELOG.md", "scripts/release.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{VERSION}] - 2026-11-19\n", encoding="utf-8")
    _git(tmp_path, "init", "--quiet", "--initial-branch=main")
    _commit(tmp_path)
    return tmp_path


def test_a_repository_that_is_ready_is_told_what_is_left(checkout: Path) -> None:
    """Also where this commit has the tag already, and with an address as git writes it; what is left names the tag."""
    assert _said(checkout, "check") == ""
    _git(checkout, "tag", f"v{VERSION}")
    _git(checkout, "remote", "add", "origin", f"{REPOSITORY.replace('https://github.com/', 'git@github.com:')}.git")
    assert _said(checkout, "check", f"v{VERSION}") == ""
    (checkout / "dist").mkdir()
    (checkout / "dist/headstart.whl").write_bytes(b"0" * 2000)
    said = _said(checkout, "left")
    assert f"headstart {VERSION} is built and checked, in dist/: headstart.whl (2 kB)" in said
    assert f"git push origin main v{VERSION}" in said
    assert "git remote add" not in said


def test_a_repository_that_is_not_ready_is_refused(checkout: Path) -> None:
    """Everything that is wrong is said at once."""
    _git(checkout, "tag", f"v{VERSION}")
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n", encoding="utf-8")
    _commit(checkout)
    (checkout / "left-over.csv").write_text("x")
    _git(checkout, "remote", "add", "origin", "https://github.com/somebody/else.git")
    lines = _said(checkout, "check", "v9.9.9", code=1).splitlines()
    for line, part in zip(
        lines,
        (
            "?? left-over.csv. Commit it.",
            f"The tag is v9.9.9, but the version in pyproject.toml is {VERSION}",
            f"CHANGELOG.md begins with [Unreleased]: its first section has to be [{VERSION}] - ",
            f"v{VERSION} is the tag of another commit",
            "The repository is at https://github.com/somebody/else, but pyproject.toml, README.md and CITATION.cff say",
        ),
        strict=True,
    ):
        assert part in line


def test_a_folder_without_a_commit_is_refused(checkout: Path) -> None:
    """As an unpacked source archive is one."""
    shutil.rmtree(checkout / ".git")
    assert "no checkout" in _said(checkout, "check", code=1)


def _said(checkout: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, str(checkout / "scripts/release.py"), *arguments]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def _commit(checkout: Path) -> None:
    _git(checkout, "add", "--all")
    _git(checkout, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "All")


def _git(checkout: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=checkout, check=True)
