"""From where blocks pay: what is measured, and how well the rule in use chooses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.gpu.factorisation import FactorTimes, main, measure


def cell(n: int, batch: int, **gains: float) -> FactorTimes:
    """A cell in which the library takes 10 ms, and every block so many times less."""
    blocks = {int(block[1:]): (1.0, 10.0 / gain) for block, gain in gains.items()}
    return FactorTimes(n, batch, (4.0, 10.0), blocks, 0.0)


def test_a_cell_says_what_the_rule_takes_in_units_of_the_best_way() -> None:
    """One matrix is the library's; a block that was not measured is stood for by the nearest that was."""
    assert cell(512, 1, b64=2.0).chosen is None
    assert cell(512, 1, b64=2.0).regret == pytest.approx(2.0)
    assert cell(512, 500, b32=2.0, b96=4.0).chosen in (32, 96)
    assert cell(512, 500, b64=2.0, b128=4.0).chosen == 64
    assert cell(512, 500, b64=2.0, b128=4.0).regret == pytest.approx(2.0)
    assert cell(512, 500, b64=0.5).regret == pytest.approx(2.0)


def test_the_rule_chooses_well_in_all_that_was_measured() -> None:
    """In no cell of the published measurement does it take a quarter more than the best way."""
    record = json.loads((Path(__file__).parents[4] / "results" / "factorisation.json").read_text())
    for kept in record["cells"]:
        times = {int(block): tuple(both) for block, both in kept["blocks"].items()}
        own = FactorTimes(kept["n"], kept["batch"], tuple(kept["library"]), times, kept["apart"])
        assert own.regret < 1.25, own
        assert own.apart < 1e-11


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
    """One JSON object with the cells, and a line of each."""
    out = tmp_path / "folder" / "factorisation.json"
    main(["--device", "cpu", "--quick", "--seconds", "0.3", "--out", str(out)])
    record = json.loads(out.read_text())
    assert record["cells"]
    assert len(capsys.readouterr().out.splitlines()) == len(record["cells"])
