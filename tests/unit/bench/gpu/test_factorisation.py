"""From where blocks pay: what is measured, and what it speaks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headstart.bench.gpu.factorisation import FactorTimes, main, measure, suggested


def cell(n: int, batch: int, **gains: float) -> FactorTimes:
    """A cell in which the library takes 10 ms, and every block so many times less."""
    blocks = {int(block[1:]): (1.0, 10.0 / gain) for block, gain in gains.items()}
    return FactorTimes(n, batch, (4.0, 10.0), blocks, 0.0)


def test_the_block_is_the_best_where_all_have_room_and_pays_from_where_it_stays_faster() -> None:
    """A size at which blocks are faster by chance, below one where they are not, does not count."""
    cells = [
        cell(64, 1, b32=1.5),
        cell(128, 1, b32=0.5, b64=0.9),
        cell(512, 1, b32=1.1, b64=1.4),
        cell(1024, 1, b32=1.5, b64=2.0),
        cell(64, 10, b32=0.9),
        cell(128, 10, b32=2.0, b64=1.5),
        cell(512, 10, b32=2.0, b64=4.0),
    ]
    assert suggested(cells) == {"block": 64, "from_alone": 512, "from_several": 128}


def test_blocks_that_never_pay_are_not_suggested() -> None:
    """Neither for one matrix nor for several."""
    assert suggested([cell(512, 1, b64=0.9), cell(512, 10, b64=1.0)]) == {
        "block": 64,
        "from_alone": None,
        "from_several": None,
    }
    assert suggested([])["block"] is None


def test_a_cell_has_both_times_of_every_block_that_has_room_and_equal_inverses() -> None:
    """Blocks as large as the matrix are none; the two inverses agree to rounding."""
    cells = list(measure((20, 40), (1, 3), (8, 32), device="cpu", seconds=2.0))
    assert {(c.n, c.batch): tuple(c.blocks) for c in cells} == {
        (20, 1): (8,),
        (20, 3): (8,),
        (40, 1): (8, 32),
        (40, 3): (8, 32),
    }
    assert all(0 <= c.apart < 1e-12 for c in cells)
    assert all(c.library[1] > 0 for c in cells)


def test_the_program_stops_in_time_and_writes_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object with the cells, and what they speak for on the last line."""
    out = tmp_path / "folder" / "factorisation.json"
    main(["--device", "cpu", "--quick", "--seconds", "0.3", "--out", str(out)])
    record = json.loads(out.read_text())
    assert record["cells"]
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == record["suggested"]
