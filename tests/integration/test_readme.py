"""The README says what is true: its Python code runs, and its make targets exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.OptimizationWarning")
def test_the_code_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Every Python block can be pasted into a fresh interpreter, and the optimisation in it finds something good."""
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    best = float(re.findall(r"best of 5: (-?[\d.]+)", capsys.readouterr().out)[0])
    assert best < -0.12  # the minimum is −0.152; one random point in fifty is below −0.12


def test_the_make_targets_in_the_readme_exist() -> None:
    """A newcomer who types what the README says gets no 'No rule to make target'."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
