"""What the advice to stop is worth, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.ending import stopping
from headstart import TransferPosterior
from headstart.decide.stopping import Advice, Outlook, outlook
from headstart.decide.suggest import suggest


def test_a_run_ends_ten_evaluations_after_it_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gain counts from then on; what was expected is in standard deviations of the noise."""
    asked = []

    def told_at_ten(posterior: object, seed: int) -> Outlook:
        found = outlook(posterior, seed=seed)  # type: ignore[arg-type]
        asked.append(found.results)
        monkeypatch.setattr(Outlook, "advice", Advice.UNLIKELY if found.results >= 10 else Advice.GO_ON)
        return found

    monkeypatch.setattr(stopping, "outlook", told_at_ten)
    points = torch.arange(20, dtype=torch.float64).unsqueeze(-1) / 25  # the function is lowest at the end of them
    monkeypatch.setattr(stopping, "suggest", lambda _, seed: points[seed])
    problem = SyntheticProblem("forrester", n_sources=1, noise=0.5)
    run = stopping.run_until_told(problem, 0, past=False)
    assert asked == [8, 10]
    assert run.told == 10
    assert run.expected > 0
    function = problem.draw([0], 1).function
    assert function is not None
    values = function(points.unsqueeze(0))[0]
    gained, early = (float(values[:n].min() - values[n : n + 10].min()) / 0.5 for n in (10, 8))
    assert gained > 0
    assert run.gained == pytest.approx(gained)
    assert run.early == pytest.approx(early)


def test_a_run_that_is_never_told_has_no_gain_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It ends after the longest time, and the table says how many were told."""
    monkeypatch.setattr(Outlook, "advice", Advice.GO_ON)
    monkeypatch.setattr(stopping, "_LONGEST", 22)
    monkeypatch.setattr(stopping, "_EVERY", 10)
    done: list[int] = []

    def counted(posterior: TransferPosterior, seed: int) -> torch.Tensor:
        done.append(seed)
        return suggest(posterior, seed=seed)

    monkeypatch.setattr(stopping, "suggest", counted)
    monkeypatch.setattr(stopping, "_PROBLEMS", (("forrester", 0.5),))
    run = stopping.run_until_told(SyntheticProblem("forrester", n_sources=1, noise=0.5), 1, past=False)
    assert done == list(range(22))
    assert run.told is None
    assert np.isnan(run.gained)
    assert run.early >= 0
    monkeypatch.setattr(stopping, "_SOURCES", 1)
    stopping.main(1, tmp_path / "stopping.md")
    written = (tmp_path / "stopping.md").read_text()
    assert "| forrester | none | 0 of 1 | – | – | – | – | " in written
