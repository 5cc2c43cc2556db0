"""The page on Optuna and the folder for OptunaHub say what is true."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
from tests.integration.pages import ROOT, blocks, execute

from headstart.sampler.sampler import TransferSampler

PAGE = "docs/optuna.md"
HUB = ROOT / "optunahub" / "package" / "samplers" / "headstart_transfer"

pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.mark.slow
def test_the_code_in_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its blocks run one after the other, the head start is there, and the report is the one that is shown."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(PAGE):
        execute(block, PAGE, names)
    printed = capsys.readouterr().out
    first, best = re.findall(r"first trial: ([\d.]+), best of 8: ([\d.]+)", printed)[0]
    assert float(first) < 0.5  # one random trial in twenty is
    assert float(best) < 0.05
    (shown,) = blocks(PAGE, "text")
    assert shown in printed


def test_every_argument_is_shown_once_with_an_example() -> None:
    """In the block of the section, which runs with the others, each with a comment."""
    (block,) = [block for block in blocks(PAGE) if "warn_independent_sampling" in block]
    (call,) = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call) and len(node.keywords) > 9]
    shown = [keyword.arg for keyword in call.keywords]
    arguments = list(inspect.signature(TransferSampler).parameters)
    assert sorted(map(str, shown)) == sorted(arguments[1:])
    lines = block.splitlines()
    assert all("  # " in lines[keyword.lineno - 1] for keyword in call.keywords)


def test_the_folder_for_optunahub_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the files and the heading that the registry asks for, and gives the package's own sampler."""
    assert {path.name for path in HUB.iterdir() if path.is_file()} == {
        *("README.md", "LICENSE", "__init__.py", "sampler.py", "example.py", "requirements.txt")
    }
    heading = dict(
        line.split(": ", 1) for line in (HUB / "README.md").read_text().split("---\n")[1].strip().splitlines()
    )
    assert set(heading) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in heading["tags"]
    ast.parse((HUB / "example.py").read_text())
    spec = importlib.util.spec_from_file_location("hub_package", HUB / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "hub_package", module)
    spec.loader.exec_module(module)
    assert module.TransferSampler is TransferSampler
