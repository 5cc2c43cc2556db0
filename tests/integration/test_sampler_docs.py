"""The page on Optuna says what is true."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from tests.integration.pages import blocks, execute

from headstart.sampler.sampler import TransferSampler

PAGE = "docs/optuna.md"

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


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
