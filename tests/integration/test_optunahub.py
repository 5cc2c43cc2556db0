"""The package for OptunaHub: it passes the checks of the registry, and works as it is loaded from there."""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from tests.integration.pages import ROOT, execute, fenced, text_of

from headstart.sampler.sampler import TransferSampler

REGISTRY = ROOT / "optunahub" / "package"
NAME = "samplers/headstart_transfer"
PACKAGE = REGISTRY / NAME
README = f"optunahub/package/{NAME}/README.md"

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def _ruff(*arguments: str, source: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ruff", *arguments], input=source, cwd=ROOT, capture_output=True, text=True, check=False
    )


def _loaded(name: str, path: Path) -> ModuleType:
    """A module of the package, with the name and in the way of ``optunahub.load_local_module``."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """optunahub, whose packages are those of the folder in place of those of the registry."""
    optunahub = pytest.importorskip("optunahub")
    local = functools.partial(optunahub.load_local_module, registry_root=str(REGISTRY))
    monkeypatch.setattr(optunahub, "load_module", local)
    before = set(sys.modules)
    yield optunahub
    for name in set(sys.modules) - before:
        if name.startswith("optunahub_registry"):
            del sys.modules[name]


def test_the_package_has_what_the_registry_asks_for() -> None:
    """The files; no binary one but pictures, which are small and which the page shows."""
    files = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert files == {
        *("LICENSE", "README.md", "__init__.py", "sampler.py", "example.py", "figure.py", "requirements.txt"),
        *("images/thumbnail.png", "tests/test_transfer_sampler.py"),
    }
    assert (PACKAGE / "images" / "thumbnail.png").stat().st_size < 60_000
    assert "](images/thumbnail.png " in text_of(README)
    assert "<COPYRIGHT HOLDER>" not in text_of(f"optunahub/package/{NAME}/LICENSE")


def test_the_head_of_the_page_has_all_fields() -> None:
    """Texts and lists of texts, the license by its full name, and the tag of the category."""
    _, head, _ = text_of(README).split("---\n", 2)
    found = yaml.safe_load(head)
    assert list(found) == ["author", "title", "description", "tags", "optuna_versions", "license"]
    assert all(isinstance(found[name], str) for name in ("author", "title", "description", "license"))
    assert all(isinstance(one, str) for name in ("tags", "optuna_versions") for one in found[name])
    assert found["license"] == "MIT License"
    assert "sampler" in found["tags"]
    assert len(found["optuna_versions"]) > 0


def test_the_page_has_the_headings_of_the_template() -> None:
    """In its order; the classes are a list, and the example is one block."""
    parts = re.split(r"^## (.*)$", text_of(README), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert list(sections) == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert sections["APIs"].strip().startswith("- `TransferSampler(")
    assert len(fenced(sections["Example"])) == 1
    assert f"https://hub.optuna.org/{NAME}/requirements.txt" in sections["Installation"]


def test_the_page_has_every_argument_with_its_default() -> None:
    """The signature is the sampler's own, and each argument has a line."""
    text = text_of(README)
    (shown,) = re.findall(r"^- `TransferSampler(\(.*\))`$", text, flags=re.MULTILINE)
    (function,) = ast.parse(f"def f{shown}: ...").body
    assert isinstance(function, ast.FunctionDef)
    given = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    options = {own.arg: ast.literal_eval(value) for own, value in given if value is not None}
    first = {function.args.args[0].arg: ast.literal_eval(function.args.defaults[0])}
    own = inspect.signature(TransferSampler).parameters
    assert first | options == {name: one.default for name, one in own.items()}
    assert re.findall(r"^  - `(\w+)`: ", text, flags=re.MULTILINE) == [*first, *options]


def test_the_code_keeps_the_rules_of_the_registry() -> None:
    """By the configuration beside it, which forbids what the registry forbids: several imports from one module."""
    for arguments in (("check",), ("format", "--check")):
        found = _ruff(*arguments, "optunahub")
        assert found.returncode == 0, found.stdout
    assert "0 files" not in _ruff("format", "--check", "optunahub").stdout
    bad = _ruff(
        "check", "--stdin-filename", f"{PACKAGE}/new.py", "-", source="from os import sep, path\nprint(sep, path)\n"
    )
    assert "I001" in bad.stdout


def test_the_page_is_formatted_as_the_registry_formats_it() -> None:
    """mdformat with its plugin for the head of a page changes nothing."""
    mdformat = pytest.importorskip("mdformat")
    pytest.importorskip("mdformat_frontmatter")
    assert mdformat.text(text_of(README), extensions={"frontmatter"}) == text_of(README)


def test_the_package_gives_the_sampler_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaded under the name that OptunaHub gives it."""
    name = f"optunahub_registry.package.{NAME.replace('/', '.')}"
    for one in (name, f"{name}.sampler"):
        monkeypatch.setitem(sys.modules, one, ModuleType(one))  # so that both are gone after the test
        monkeypatch.delitem(sys.modules, one)
    assert _loaded(name, PACKAGE / "__init__.py").TransferSampler is TransferSampler


@pytest.mark.slow
def test_the_examples_run(hub: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """That of the page and the program, which print what was learnt from the past."""
    (block,) = fenced(text_of(README))
    names = execute(block, README)
    assert type(names["sampler"]).__name__ == "TransferSampler"
    execute((PACKAGE / "example.py").read_text(), "example.py", {"__name__": "__main__"})
    assert capsys.readouterr().out.count("last year: 50 of 50 rows used") == 2


@pytest.mark.slow
def test_the_picture_can_be_drawn_again(hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the program in the package, here with fewer runs."""
    program = _loaded("optunahub_registry.figure", PACKAGE / "figure.py")
    for name, number in (("N_PAST", 5), ("N_TRIALS", 10), ("N_RUNS", 2)):
        monkeypatch.setattr(program, name, number)
    program.main(tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_tests_of_the_package_pass() -> None:
    """As the registry runs them: from its root."""
    pytest.importorskip("optunahub")
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", f"package/{NAME}"],
        cwd=REGISTRY.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout
