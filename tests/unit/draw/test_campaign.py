"""The pictures of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make, value

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.model import fit_campaign
from headstart.draw.campaign import draw_campaign

SOME = "x,s,y\n" + "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9))


@pytest.mark.parametrize("current", ["x,s,y\n", SOME + "0.6,v,\n"], ids=["no results yet", "some results"])
def test_the_pictures_are_drawn(tmp_path: Path, current: str) -> None:
    """Three PNG files, equal for equal folders, in a folder that need not be there."""
    fitted = fit_campaign(open_campaign(make(tmp_path, current=current)))
    paths = draw_campaign(fitted, tmp_path / "new" / "plots")
    assert [path.name for path in paths] == ["progress.png", "slices.png", "sources.png"]
    first = [path.read_bytes() for path in paths]
    assert all(content.startswith(b"\x89PNG") and len(content) > 10_000 for content in first)
    assert [path.read_bytes() for path in draw_campaign(fitted, tmp_path / "new" / "plots")] == first


def test_before_anything_is_known_only_progress_is_drawn(tmp_path: Path) -> None:
    """There is nothing to predict from."""
    make(tmp_path, current="x,s,y\n0.6,v,\n")
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    fitted = fit_campaign(open_campaign(tmp_path))
    assert [path.name for path in draw_campaign(fitted, tmp_path / "plots")] == ["progress.png"]


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Before anything is drawn."""
    fitted = fit_campaign(open_campaign(make(tmp_path)))
    (tmp_path / "plots").touch()
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_campaign(fitted, tmp_path / "plots")
