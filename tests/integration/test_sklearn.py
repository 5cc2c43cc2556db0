"""The page on scikit-learn: a search with cross-validation that begins with what earlier ones found."""

from __future__ import annotations

from typing import Any

import pytest
from tests.integration.pages import blocks, execute

PAGE = "docs/sklearn.md"


@pytest.mark.slow
@pytest.mark.usefixtures("quiet_optuna")
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore:.optuna.terminator. module has been deprecated:FutureWarning")
def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks, one after the other, and no trial with a past is wasted."""
    pytest.importorskip("optuna_integration", reason="it is not installed: pip install 'optuna-integration[sklearn]'")
    names: dict[str, Any] = {}
    for block in blocks(PAGE):
        execute(block, PAGE, names)
        found = [trial.value for trial in names["search"].trials_]
        assert max(found) > 0.965  # of 100 trials without a past 0.979
        assert sum(found) / len(found) > 0.93  # of random ones 0.82
    assert "load_wine: " in capsys.readouterr().out
