"""A parameter with a list of values in the files of a campaign."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.file import TOML
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.init import CampaignPlan, start_campaign
from headstart.campaign.suggestions import next_experiments
from headstart.campaign.toml.reading import read_campaign_file
from headstart.campaign.toml.writing import with_ranges
from headstart.data.outcomes import Goal
from headstart.data.ranges import DiscreteNumbers
from headstart.draw.slices import slice_along
from headstart.sources.parameters import Kind, Parameter, parameter_of_text

RANGE = "low = 0.0\nhigh = 1.0"


def _listed(folder: Path, values: str = "values = [0.8, 0.1, 0.2, 0.4]", current: str = "x,s,y\n") -> Path:
    """The small campaign, in which x has a list of values."""
    make(folder, current=current)
    toml = folder / TOML
    toml.write_text(toml.read_text(encoding="utf-8").replace(RANGE, values), encoding="utf-8")
    return folder


def _x(folder: Path, values: str) -> Parameter:
    return read_campaign_file(_listed(folder, values) / TOML).parameters[0]


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("values = [0.8, 0.1, 0.2, 0.4]", DiscreteNumbers((0.1, 0.2, 0.4, 0.8), log=True)),
        ("values = [0.8, 0.1, 0.2, 0.4]\nlog = false", DiscreteNumbers((0.1, 0.2, 0.4, 0.8), log=False)),
        ("values = [1, 2, 4.5, 6]", DiscreteNumbers((1.0, 2.0, 4.5, 6.0), log=False)),
    ],
)
def test_the_scale_is_found_unless_it_is_said(tmp_path: Path, text: str, distribution: DiscreteNumbers) -> None:
    """The values are sorted, and even in ratio or in difference."""
    assert _x(tmp_path, text).distribution() == distribution


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("values = []", "values in [parameters.x] must be two or more different numbers, but there are none"),
        ("values = [1, 1.0]", "values in [parameters.x]: Two different numbers are needed at least, but they are 1."),
        ('values = [1, "2"]', "values in [parameters.x] must be a list of finite numbers, but it is [1, '2']"),
        ("values = [1, 2]\nstep = 1", "step in [parameters.x] does not go with values"),
        ("values = [1, 2]\nlow = 0", "low in [parameters.x] does not go with values"),
        ("values = [0, 1, 10]\nlog = true", "A log scale needs a lower end above 0, but it is 0"),
    ],
)
def test_a_list_that_cannot_be_is_named(tmp_path: Path, text: str, message: str) -> None:
    """With its line."""
    with pytest.raises(InputError, match=r"headstart.toml, line \d+: ") as caught:
        _x(tmp_path, text)
    assert message in str(caught.value)


def test_whole_numbers_and_categories_with_a_list(tmp_path: Path) -> None:
    """Whole numbers have whole values; a category has choices instead."""
    toml = (_listed(tmp_path) / TOML).read_text(encoding="utf-8")
    path = tmp_path / TOML
    path.write_text(toml.replace('kind = "float"', 'kind = "int"'), encoding="utf-8")
    with pytest.raises(InputError, match=r"values .*Whole numbers need whole values, but it is 0\.1"):
        read_campaign_file(path)
    path.write_text(toml.replace('choices = ["u", "v"]', 'choices = ["u", "v"]\nvalues = [1, 2]'), encoding="utf-8")
    with pytest.raises(InputError, match=r"values .*does not go with kind 'category'"):
        read_campaign_file(path)


def test_only_listed_values_are_suggested(tmp_path: Path) -> None:
    """Several at once, from past rows none of which has one of them; and under rules."""
    campaign = open_campaign(_listed(tmp_path))
    assert {0.1, 0.2, 0.4, 0.8}.isdisjoint(v for task in campaign.past for v in task.rows["x"])
    found = next_experiments(fit_campaign(campaign), 4)
    assert {row.values["x"] for row in found} <= {0.1, 0.2, 0.4, 0.8}
    toml = tmp_path / TOML
    toml.write_text(toml.read_text(encoding="utf-8") + '\n[[rules]]\nrule = "x <= 0.3"\n', encoding="utf-8")
    found = next_experiments(fit_campaign(open_campaign(tmp_path)), 4)
    assert {row.values["x"] for row in found} <= {0.1, 0.2}


def test_a_row_with_another_value_counts_and_is_remarked_on(tmp_path: Path) -> None:
    """It may be a slip; one of the list is not."""
    campaign = open_campaign(_listed(tmp_path, current="x,s,y\n0.5,u,9\n0.4,u,8\n"))
    assert [e.values["x"] for e in campaign.experiments] == [0.5, 0.4]
    (remark,) = [r for r in campaign.remarks if "none of the values" in r]
    assert "row 2, column 'x': 0.5 is none of the values 0.1, 0.2, 0.4, 0.8. It counts" in remark


def test_a_candidate_with_another_value_is_refused(tmp_path: Path) -> None:
    """As one between steps is."""
    folder = _listed(tmp_path)
    (folder / "list.csv").write_text("x,s\n0.4,u\n0.5,v\n", encoding="utf-8")
    toml = folder / TOML
    toml.write_text('candidates = "list.csv"\n' + toml.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(InputError, match=r"row 3, column 'x': 0.5 is none of the values 0.1, 0.2, 0.4, 0.8"):
        open_campaign(folder)


def test_pictures_have_the_listed_values_alone() -> None:
    """Whatever number of places is asked for."""
    p = Parameter("x", Kind.FLOAT, values=(0.4, 0.1, 0.2))
    assert slice_along(p, {"x": 0.1}, 100).values == [0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    ("text", "kind", "values", "log"),
    [
        ("r [mm]=0.2|0.4|0.8|1.6", Kind.FLOAT, (0.2, 0.4, 0.8, 1.6), True),
        ("r=0,4|0,8|1,2", Kind.FLOAT, (0.4, 0.8, 1.2), False),
        ("n = 1 | 2 | 4", Kind.INT, (1, 2, 4), True),
    ],
)
def test_numbers_with_bars_between_them_are_a_list(text: str, kind: Kind, values: tuple[float], log: bool) -> None:
    """On the command line and on the page; with the word they are categories."""
    p = parameter_of_text(text)
    assert (p.kind, p.values, p.log, p.choices) == (kind, values, log, ())
    p = parameter_of_text(f"{text} category")
    assert (p.kind, len(p.choices), p.values) == (Kind.CATEGORY, len(values), ())


def test_a_list_is_written_and_read_again(tmp_path: Path) -> None:
    """With its scale and its unit, from the command line's own words."""
    plan = CampaignPlan((Goal("y", maximize=True),), parameters=("r [mm]=0.2|0.4|0.8|1.6", "n=1|2|3", "v=1|10|11"))
    start_campaign([], tmp_path, plan)
    text = (tmp_path / TOML).read_text(encoding="utf-8")
    assert 'values = [0.2, 0.4, 0.8, 1.6]\nlog = true\nunit = "mm"' in text
    parameters = read_campaign_file(tmp_path / TOML).parameters
    assert [(p.kind, p.values, p.log) for p in parameters] == [
        (Kind.FLOAT, (0.2, 0.4, 0.8, 1.6), True),
        (Kind.INT, (1, 2, 3), False),
        (Kind.INT, (1, 10, 11), False),
    ]


@pytest.mark.parametrize("scale", ["", "log = true\n", "log = false  # as it was\n"])
def test_a_list_that_is_changed_later_has_the_scale_of_the_new_values(tmp_path: Path, scale: str) -> None:
    """Whether the file says which one it is or not, everything else staying as it is."""
    path = _listed(tmp_path, f"values = [0.4, 0.8, 1.2, 1.6]  # sizes\n{scale}") / TOML
    (old, other) = read_campaign_file(path).parameters
    new = Parameter("x", Kind.FLOAT, values=(0.4, 0.8, 1.6), log=True)
    path.write_bytes(with_ranges(path.read_bytes(), path, [new, other]))
    assert read_campaign_file(path).parameters == (new, other)
    assert "values = [0.4, 0.8, 1.6]  # sizes" in path.read_text(encoding="utf-8")
    path.write_bytes(with_ranges(path.read_bytes(), path, [Parameter("x", Kind.FLOAT, values=old.values), other]))
    assert read_campaign_file(path).parameters[0].log is False
