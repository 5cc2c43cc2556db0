"""A campaign that is changed on its way: no row is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make, value

from headstart import InputError
from headstart.campaign.campaign import Campaign, open_campaign
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.suggestions import next_experiments

ROWS = "x,s,y\n" + "".join(f"{x},{s},{value(x, s)}\n" for x, s in ((0.3, "u"), (0.5, "v"), (0.9, "u"), (0.7, "v")))


def _changed(folder: Path, old: str, new: str, current: str = ROWS) -> Campaign:
    make(folder, current=current)
    toml = folder / "headstart.toml"
    text = toml.read_text()
    assert old in text
    toml.write_text(text.replace(old, new, 1))
    return open_campaign(folder)


def test_a_fixed_parameter_keeps_what_was_recorded(tmp_path: Path) -> None:
    """Rows with other values say what they say, in past files too; only its own value is suggested."""
    fixed = 'kind = "fixed"\nvalue = 0.5\n'
    campaign = _changed(tmp_path, 'kind = "float"\nlow = 0.0\nhigh = 1.0\n', fixed)
    assert [e.values["x"] for e in campaign.experiments] == [0.3, 0.5, 0.9, 0.7]
    fitted = fit_campaign(campaign)
    assert not any("looks like noise" in str(decision) for decision in fitted.decisions)
    far, near = fitted.first.expected([{"x": 0.05, "s": "u"}, {"x": 0.6, "s": "u"}]).median  # type: ignore[union-attr]
    assert near > far + 2
    assert {s.values["x"] for s in next_experiments(fitted, 2)} == {0.5}


def test_a_fixed_category_keeps_what_was_recorded(tmp_path: Path) -> None:
    """v is worse by 3, and known to be."""
    campaign = _changed(tmp_path, 'kind = "category"\nchoices = ["u", "v"]\n', 'kind = "fixed"\nvalue = "u"\n')
    fitted = fit_campaign(campaign)
    u, v = fitted.first.expected([{"x": 0.6, "s": "u"}, {"x": 0.6, "s": "v"}]).median  # type: ignore[union-attr]
    assert u > v + 1
    assert {s.values["s"] for s in next_experiments(fitted, 2)} == {"u"}


def test_a_fixed_parameter_need_not_be_in_the_table(tmp_path: Path) -> None:
    """Rows without it were run with its value, or with the one before."""
    current = "s,y\nu,3\nv,2\n"
    old = 'kind = "float"\nlow = 0.0\nhigh = 1.0\n'
    now = _changed(tmp_path, old, 'kind = "fixed"\nvalue = 0.5\n', current)
    assert [e.values["x"] for e in now.experiments] == [0.5, 0.5]
    before = _changed(tmp_path, old, 'kind = "fixed"\nvalue = 0.5\nbefore = 0.4\n', current)
    assert [e.values["x"] for e in before.experiments] == [0.4, 0.4]


def test_a_withdrawn_category_stays_as_evidence(tmp_path: Path) -> None:
    """It is never suggested, and a category that nobody named is still a slip."""
    campaign = _changed(tmp_path, 'choices = ["u", "v"]', 'choices = ["u", "w"]\nwithdrawn = ["v"]')
    assert [e.values["s"] for e in campaign.experiments] == ["u", "v", "u", "v"]
    fitted = fit_campaign(campaign)
    assert fitted.first.target.n == 4
    assert {s.values["s"] for s in next_experiments(fitted, 6)} <= {"u", "w"}
    with pytest.raises(InputError, match=r"'v' is none of the choices.*or to withdrawn if it is not to be suggested"):
        _changed(tmp_path, 'choices = ["u", "v"]', 'choices = ["u", "w"]')
    with pytest.raises(InputError, match=r"withdrawn in \[parameters\.s\] has 'u', which is one of the choices too"):
        _changed(tmp_path, 'choices = ["u", "v"]', 'choices = ["u", "v"]\nwithdrawn = ["u"]')


def test_rows_take_a_stated_value_of_a_parameter_that_was_added(tmp_path: Path) -> None:
    """In the new table and in past files; what has a value keeps it."""
    added = '[parameters.z]\nkind = "float"\nlow = 0.0\nhigh = 2.0\nbefore = 1.0\n\n[parameters.s]'
    current = ROWS.replace("x,s,y", "x,s,y,z").replace("\n0.9,u", ",\n0.9,u") + "0.2,u,2.2,1.5\n"
    campaign = _changed(tmp_path, "[parameters.s]", added, current)
    assert [e.values["z"] for e in campaign.experiments] == [1.0, 1.0, 1.0, 1.0, 1.5]
    fitted = fit_campaign(campaign)
    assert any("z: not recorded: 1.0 is filled in" in str(decision) for decision in fitted.decisions)
    assert 0 <= next_experiments(fitted, 1)[0].values["z"] <= 2


def test_a_narrowed_range_keeps_the_rows_outside(tmp_path: Path) -> None:
    """They count, with a remark, and are not suggested."""
    campaign = _changed(tmp_path, "low = 0.0\nhigh = 1.0", "low = 0.4\nhigh = 0.6")
    assert len(campaign.experiments) == 4
    fitted = fit_campaign(campaign)
    assert fitted.first.target.n == 4
    assert all(0.4 <= s.values["x"] <= 0.6 for s in next_experiments(fitted, 3))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("high = 1.0", 'high = 1.0\nbefore = "warm"', "before in [parameters.x] must be a number"),
        (
            'choices = ["u", "v"]',
            'choices = ["u", "v"]\nbefore = "w"',
            "before in [parameters.s] is 'w', which is",
        ),
        ("high = 1.0", 'high = 1.0\nwithdrawn = ["a"]', "withdrawn in [parameters.x] does not go with kind 'float'"),
    ],
)
def test_changes_that_cannot_be_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the line."""
    with pytest.raises(InputError) as caught:
        _changed(tmp_path, old, new)
    assert message in str(caught.value)
