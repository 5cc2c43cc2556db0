"""With what runs were made, and in how many hours of the clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.read.sheet import read_sheets
from benchmarks.reproduce import write_study
from benchmarks.store import Run, Store


def test_hours_in_which_processes_work_side_by_side_count_once(tmp_path: Path) -> None:
    """Two runs that overlap, one within them and one after a pause; runs of another commit have a row of their own."""
    spans = {"fig2": [(0.0, 3600.0), (1800.0, 5400.0)], "fig3": [(1900.0, 2000.0), (9000.0, 10800.0)]}
    for name, own in spans.items():
        runs = [
            Run("branin", "gpbo", seed, {}, provenance={"commit": "a", "began": begun, "ended": ended})
            for seed, (begun, ended) in enumerate(own)
        ]
        Store(tmp_path / name).append(runs)
    Store(tmp_path / "fig4").append([Run("branin", "gpbo", 0, {}, provenance={"commit": "b"})])
    (sheet,) = read_sheets(write_study(tmp_path / "out", tmp_path))
    rows = {row[0]: dict(zip(sheet.columns, row, strict=True)) for row in sheet.cells}
    assert (rows["a"]["runs"], rows["b"]["runs"]) == ("4", "1")
    assert float(rows["a"]["hours"]) == pytest.approx(2.0)
    assert rows["b"]["hours"] == ""
