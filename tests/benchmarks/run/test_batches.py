"""What a first batch is worth."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.batches import batch_regrets, main


def test_a_batch_has_eight_regrets_none_below_zero_and_the_same_again() -> None:
    """Regrets are differences to the lowest value there is, and equal seeds give equal batches."""
    problem = SyntheticProblem("forrester")
    found = batch_regrets(problem, "SHGP", 3)
    assert found.shape == (8,)
    assert bool((found > -1e-9).all())
    assert np.array_equal(found, batch_regrets(problem, "SHGP", 3))


def test_the_table_has_a_row_per_problem(tmp_path: Path, monkeypatch) -> None:
    """Written as it grows: what was done before an interruption is there."""
    monkeypatch.setattr("benchmarks.run.batches._FAMILIES", ("forrester", "alpine"))
    main(2, tmp_path / "batches.md")
    rows = (tmp_path / "batches.md").read_text().splitlines()
    assert [row.split("|")[1].strip() for row in rows[4:]] == ["forrester", "alpine"]
