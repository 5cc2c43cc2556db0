"""Categories that are described by numbers, in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.init import CampaignPlan, start_campaign
from headstart.campaign.suggestions import next_experiments
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal

FILE = "s,size,charge\nu,1.0,0\nv,5.0,1\nw,1.2,0\n"


def _described(folder: Path, content: str = FILE, *, told: str = '"kinds.csv"', choices: str = '"u", "v", "w"') -> Path:
    """w was never run, and is much like u."""
    make(folder)
    toml = (folder / "headstart.toml").read_text().replace('"u", "v"]', f"{choices}]\ndescriptors = {told}")
    (folder / "headstart.toml").write_text(toml)
    (folder / "kinds.csv").write_text(content)
    return folder


def test_a_category_that_was_never_run_is_expected_to_be_like_its_neighbours(tmp_path: Path) -> None:
    """Nearer to u, its neighbour, than to v; and it is named."""
    fitted = fit_campaign(open_campaign(_described(tmp_path)))
    found = fitted.first.expected([{"x": 0.6, "s": s} for s in "uvw"])
    assert found is not None
    u, v, w = found.median
    assert abs(w - u) < abs(w - v)
    (told,) = fitted.never_run({"x": 0.6, "s": "w"})
    assert told.startswith("s w was never run: it is placed by its size and charge")
    assert fitted.never_run({"x": 0.6, "s": "u"}) == ()
    assert {s.values["s"] for s in next_experiments(fitted, 6)} <= {"u", "v", "w"}


def test_columns_of_the_past_files_describe_too(tmp_path: Path) -> None:
    """They are no parameters of their own, and need not be in every file."""
    _described(tmp_path, told='["size"]', choices='"u", "v"')
    lines = (tmp_path / "a.csv").read_text().splitlines()
    sizes = ["size", *("1.0" if ",u," in line else "5.0" for line in lines[1:])]
    (tmp_path / "a.csv").write_text("\n".join(f"{a},{b}" for a, b in zip(lines, sizes, strict=True)) + "\n")
    campaign = open_campaign(tmp_path)
    assert campaign.settings.descriptors["s"].names == ("size",)
    assert not any("'size'" in remark for remark in campaign.remarks)
    assert fit_campaign(campaign).first.expected([{"x": 0.6, "s": "u"}]) is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("s,size\nu,1\nv,5\n", "kinds.csv: s = 'w' is not described"),
        ("s,size\nu,1\nv,5\nw,big\n", "kinds.csv, row 4, column 'size'"),
        ("s,size\nu,1\nv,5\nw,\n", "kinds.csv, row 4, column 'size'"),
        ("s,size\nu,1\nv,5\nw,2\nu,3\n", "kinds.csv, row 5, column 'size': 'u' has 3, but 1 in"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str, message: str) -> None:
    """File, row, column and remedy."""
    with pytest.raises(InputError) as caught:
        open_campaign(_described(tmp_path, content))
    assert message in str(caught.value)


def test_only_categories_can_be_described(tmp_path: Path) -> None:
    """A number is what it is."""
    make(tmp_path)
    toml = (tmp_path / "headstart.toml").read_text().replace("high = 1.0", 'high = 1.0\ndescriptors = "kinds.csv"')
    (tmp_path / "headstart.toml").write_text(toml)
    with pytest.raises(InputError, match=r"descriptors in \[parameters\.x\] does not go with kind 'float'"):
        open_campaign(tmp_path)


def test_a_campaign_begins_with_every_category_that_is_described(tmp_path: Path) -> None:
    """So that those that were never run can be suggested."""
    make(tmp_path)
    (tmp_path / "kinds.csv").write_text(FILE)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    plan = CampaignPlan((Goal("y", maximize=True),), descriptors={"s": tmp_path / "kinds.csv"})
    started = start_campaign(files, tmp_path, plan, force=True)
    (s,) = (p for p in started.file.parameters if p.name == "s")
    assert (s.choices, s.descriptors) == (("u", "v", "w"), "kinds.csv")
    assert read_campaign_file(tmp_path / "headstart.toml") == started.file
    plan = CampaignPlan((Goal("y", maximize=True),), descriptors={"x": tmp_path / "kinds.csv"})
    with pytest.raises(InputError, match="descriptors names 'x', which has no categories"):
        start_campaign(files, tmp_path, plan, force=True)
