"""The two files that begin a campaign."""

from __future__ import annotations

import csv
from pathlib import Path

from headstart.campaign.init import CampaignPlan, Looked, start_campaign
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal
from headstart.sources.parameters import Kind

NAMES = ["T [°C]", "a.b", 'say "hi"', "x = y", "it's", "#3", "c\\d"]


def _started(folder: Path, **options: object) -> Looked:
    with (folder / "past.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["run", *NAMES, "solvent", "c", "note", "yield [%]"])
        for i in range(8):
            texts = ['"quoted"' if i % 2 else "plain", 10.0 ** -(i / 2) * 1.5, f"remark number {i}"]
            writer.writerow([i + 1, *(i * k + k / 3 for k in range(1, len(NAMES) + 1)), *texts, 50 + i])
    return start_campaign([folder / "past.csv"], folder, CampaignPlan((Goal("yield"),), **options))  # type: ignore[arg-type]


def test_what_is_written_is_what_was_found(tmp_path: Path) -> None:
    """Whatever the columns are called; and it is read back equal."""
    started = _started(tmp_path)
    assert read_campaign_file(tmp_path / "headstart.toml") == started.file
    assert [(c.name, c.unit, c.outcome.sign) for c in started.file.results] == [("yield [%]", "%", 1)]
    assert [p.name for p in started.file.parameters] == [*NAMES, "solvent", "c"]
    assert started.file.ignore == ("run", "note")
    solvent, c = started.file.parameters[-2:]
    assert (solvent.kind, solvent.choices) == (Kind.CATEGORY, ('"quoted"', "plain"))
    assert (c.log, c.low, c.high) == (True, 0.0002, 2.0)


def test_every_guess_has_its_reason_in_the_file(tmp_path: Path) -> None:
    """As a comment on the line."""
    _started(tmp_path)
    lines = (tmp_path / "headstart.toml").read_text(encoding="utf-8").splitlines()
    for start, comment in [
        ("low = 0.0002", "# the data: 0.000474342 … 1.5, rounded outward"),
        ("log = true", "# spans 3.5 decades"),
        ('unit = "°C"', "# from the column's name"),
        ('    "note",', "# remarks are no setting"),
        ('direction = "minimize"', "# or the reverse"),
    ]:
        assert any(line.startswith(start) and line.endswith(comment) for line in lines), start


def test_the_new_table_has_the_header_alone(tmp_path: Path) -> None:
    """Parameters first, the result last, and the past file's layout."""
    _started(tmp_path)
    with (tmp_path / "current.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [[*NAMES, "solvent", "c", "yield [%]"]]
    assert (tmp_path / "current.csv").read_bytes().endswith(b"\r\n")


def test_renamed_columns_are_in_the_file(tmp_path: Path) -> None:
    """So that past files can stay as they are."""
    started = _started(tmp_path, rename={"a.b": "flow"}, ignore=("it's",))
    assert started.file.rename == {"a.b": "flow"}
    assert read_campaign_file(tmp_path / "headstart.toml") == started.file
    assert '"a.b" = "flow"\n' in (tmp_path / "headstart.toml").read_text(encoding="utf-8")
