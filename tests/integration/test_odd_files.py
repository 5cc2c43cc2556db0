"""Generated odd files: no traceback, no number misread in silence, no change on a refusal.

HEADSTART_ODD_FILES=2000 makes so many of them.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from tests.integration.odd_files import HEADERS, OddFile, write_odd_file
from tests.unit.campaign.campaigns import fingerprint

from headstart import InputError
from headstart.campaign.init import CampaignPlan, Looked, look_at, start_campaign
from headstart.data.outcomes import Goal
from headstart.sources.files.cells import number as number_of

FILES = int(os.environ.get("HEADSTART_ODD_FILES", "150"))
PLAN = CampaignPlan((Goal("yield", maximize=True),))


def _begin(folder: Path, path: Path) -> Looked | str:
    try:
        return start_campaign([path], folder, PLAN)
    except InputError as error:
        return str(error)


def _misread(odd: OddFile, folder: Path, columns: list[str]) -> list[str]:
    """The cells that were read as another number than they mean."""
    (table,) = look_at([odd.path], folder, PLAN).tables
    wrong = []
    for row, number in enumerate(table.numbers):
        for column in columns:
            meaning = odd.truth.get(number, {}).get(column)
            cell = table.rows[row][table.columns.index(column)]
            value = number_of(cell, table.layout.mark)
            if value is None:
                continue  # no result, or a row without one
            if not isinstance(meaning, float) or abs(value - meaning) > 1e-6 * max(1.0, abs(meaning)):
                wrong.append(f"{odd.path.name}, row {number}, {column}: {value!r} for {meaning!r}")
    return wrong


def test_odd_files_are_read_right_or_refused(tmp_path: Path) -> None:
    """A number is what it means or is asked about; a refusal names the file and leaves the folder as it was."""
    seen: Counter[str] = Counter()
    wrong = []
    for seed in range(FILES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        odd = write_odd_file(folder, seed)
        before = fingerprint(folder)
        started = _begin(folder, odd.path)
        if isinstance(started, str):
            seen["refused"] += 1
            assert all(odd.path.name in line for line in started.splitlines()), started
            assert fingerprint(folder) == before
            continue
        seen["damaged" if odd.damaged else "read"] += 1
        if not odd.damaged:
            names = [p.name for p in started.file.parameters if p.name in HEADERS and not p.is_text]
            wrong += _misread(odd, folder, [*names, "yield [%]"])
    assert wrong == []
    assert seen["read"] >= FILES / 4
    assert seen["refused"] >= FILES / 10
