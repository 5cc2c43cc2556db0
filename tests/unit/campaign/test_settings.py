"""What may be suggested: rules, lists of candidates, and values that somebody can set."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.unit.campaign.several import HEADER, TOML, make_several

from headstart import InputError
from headstart.campaign.campaign import Campaign, open_campaign
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Mixed
from headstart.decide.ruled.ruled import Ruled

MIXTURE = TOML.replace('rule = "a + b <= 1"', 'rule = "a + b + c = 1"').replace(
    "[parameters.s]", '[parameters.c]\nkind = "float"\nlow = 0.0\nhigh = 1.0\n\n[parameters.s]'
)
LIST = "well,a,b,s\nA1,0.1,0.2,u\nA2,0.3,0.2,v\nB1,0.9,0.05,u\n"


def _with_list(folder: Path, content: str = LIST) -> Campaign:
    make_several(folder, toml='candidates = "shelf.csv"\n' + TOML)
    (folder / "shelf.csv").write_text(content, encoding="utf-8")
    return open_campaign(folder)


def _space(campaign: Campaign) -> Space:
    return Space.of({p.name: p.distribution() for p in campaign.file.parameters})


def test_the_domain_is_that_of_the_ranges_the_rules_or_the_list(tmp_path: Path) -> None:
    """And nothing else."""
    ruled = open_campaign(make_several(tmp_path))
    assert isinstance(ruled.settings.domain(_space(ruled)), Ruled)
    free = open_campaign(make_several(tmp_path, toml=TOML[: TOML.index("[[rules]]")]))
    assert isinstance(free.settings.domain(_space(free)), Mixed)
    listed = _with_list(tmp_path)
    domain = listed.settings.domain(_space(listed))
    assert isinstance(domain, Candidates)
    assert len(domain.listing) == 3
    assert listed.settings.more_columns == ("well",)


def test_candidates_that_break_a_rule_are_left_out(tmp_path: Path) -> None:
    """0.9 + 0.3 is above 1."""
    campaign = _with_list(tmp_path, LIST + "B2,0.9,0.3,u\n")
    assert [row["well"] for row in campaign.settings.listed] == ["A1", "A2", "B1"]
    with pytest.raises(InputError, match=r"headstart\.toml: None of the 1 candidates keeps all rules \(a"):
        _with_list(tmp_path, "well,a,b,s\nB2,0.9,0.3,u\n")


def test_a_candidate_is_its_row_of_the_list(tmp_path: Path) -> None:
    """With the columns that are no parameters, for whoever goes to the shelf."""
    campaign = _with_list(tmp_path)
    space = _space(campaign)
    X = campaign.settings.domain(space).listing
    assert X is not None
    assert [campaign.settings.settable(space, x, ())["well"] for x in X] == ["A1", "A2", "B1"]
    near = campaign.settings.domain(space).snap(space.encode([{"a": 0.28, "b": 0.25, "s": "v"}]))
    assert campaign.settings.settable(space, near[0], ())["well"] == "A2"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            LIST + "B2,1.5,0.1,u\n",
            "shelf.csv, row 5, column 'a': 1.5 lies outside 0 … 1. Change [parameters.a]",
        ),
        (LIST + "B2,0.5,0.1,w\n", "shelf.csv, row 5, column 's': 'w' is none of the choices. The known ones are"),
        (LIST + "B2,,0.1,u\n", "shelf.csv, row 5, column 'a': an empty cell is not a value. Fill it in"),
        (LIST + "B2,warm,0.1,u\n", "shelf.csv, row 5, column 'a': 'warm' is not a number"),
        ("well,a,s\nA1,0.1,u\n", "shelf.csv: there is no column 'b'. Its columns are 'well', 'a', 's'. The list needs"),
        ("well,a,b,s\n", "shelf.csv has a header but no rows: there is nothing to choose"),
    ],
)
def test_a_list_that_cannot_be_used_is_named(tmp_path: Path, content: str, message: str) -> None:
    """File, row, column and remedy."""
    with pytest.raises(InputError) as caught:
        _with_list(tmp_path, content)
    assert message in str(caught.value)


def test_cells_of_a_list_mean_what_they_mean_in_any_file(tmp_path: Path) -> None:
    """A decimal comma, a sign, another case; it is remarked on, and what means nothing is named with its row."""
    campaign = _with_list(tmp_path, 'well,A,b,s\nA1,"0,1",~0.2,U\nA2,0.3,0.2,v\n')
    first, second = campaign.settings.listed
    assert (first["well"], first["a"], first["b"], first["s"]) == ("A1", 0.1, 0.2, "u")
    assert (second["a"], second["s"]) == (0.3, "v")
    told = " ".join(campaign.remarks)
    assert "shelf.csv, column 'b' (row 2: '~0.2') is read without the '~'" in told
    assert "column 's' (row 2: 'U') is taken for 'u'" in told
    with pytest.raises(InputError, match=r"shelf\.csv, row 2, column 'a': '0\.1 apples' is not a number\. Write the"):
        _with_list(tmp_path, "a,b,s\n0.1 apples,0.2,u\n0.2,0.2,u\n")


def test_a_candidate_between_the_steps_is_named(tmp_path: Path) -> None:
    """It could not be suggested."""
    toml = 'candidates = "shelf.csv"\n' + TOML.replace("high = 1.0", "high = 1.0\nstep = 0.1", 1)
    make_several(tmp_path, toml=toml)
    (tmp_path / "shelf.csv").write_text("a,b,s\n0.3,0.15,u\n0.25,0.1,u\n")
    with pytest.raises(InputError, match=r"row 3, column 'a': 0\.25 is not on steps of 0\.1 from 0 on"):
        open_campaign(tmp_path)


def test_rounded_values_keep_the_rules(tmp_path: Path) -> None:
    """Three numbers that add up to 1 do so with the digits that are written, and repeats get more digits."""
    campaign = open_campaign(make_several(tmp_path, HEADER.replace("b,", "b,c,"), MIXTURE))
    space = _space(campaign)
    domain = campaign.settings.domain(space)
    assert isinstance(domain, Ruled)
    X = domain.spread(20, torch.Generator().manual_seed(0))
    taken: list[dict[str, object]] = []
    for x in X:
        row = campaign.settings.settable(space, x, taken)
        again = campaign.settings.settable(space, x, [row])
        assert again != row
        for each in (row, again):
            assert campaign.settings.broken(each) is None
        assert abs(row["a"] + row["b"] + row["c"] - 1) < 1e-12
        assert all(row[name] == round(row[name], 3) for name in "abc")
        assert all(abs(row[name] - space.decode(x.unsqueeze(0))[0][name]) < 2e-3 for name in "abc")
        taken.append(row)


def test_a_row_is_moved_inside_the_rules_with_one_value_as_it_is(tmp_path: Path) -> None:
    """For slices: c follows a; no setting has a = 0.9 with v."""
    campaign = open_campaign(make_several(tmp_path, HEADER.replace("b,", "b,c,"), MIXTURE))
    space, settings = _space(campaign), campaign.settings
    row = settings.kept(space, {"a": 0.6, "b": 0.3, "c": 0.4, "s": "u"}, "a")
    assert row is not None
    assert row["a"] == pytest.approx(0.6)
    assert settings.broken(row) is None
    assert settings.kept(space, {"a": 0.2, "b": 0.3, "c": 0.5, "s": "u"}, "a") == {
        "a": 0.2,
        "b": 0.3,
        "c": 0.5,
        "s": "u",
    }
    forced = settings.kept(space, {"a": 0.9, "b": 0.0, "c": 0.1, "s": "v"}, "a")
    assert forced is None or forced["s"] == "u"
