"""headstart.toml with several results, limits, rules and candidates."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.several import TOML, make_several

from headstart import InputError
from headstart.campaign.campaign import open_campaign
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal, Limit


def test_objectives_limits_errors_and_rules_are_read(tmp_path: Path) -> None:
    """Objectives first, with the column of their errors; rules with their lines."""
    make_several(tmp_path)
    file = read_campaign_file(tmp_path / "headstart.toml")
    assert [column.outcome for column in file.results] == [
        Goal("y", maximize=True),
        Goal("cost"),
        Limit("dirt", at_most=2.0),
    ]
    assert [column.error for column in file.results] == ["y_sd", "", ""]
    assert [column.aim for column in file.results] == ["maximised", "minimised", "at most 2"]
    assert (file.rules, file.rule_lines) == (("a + b <= 1", "forbid: a > 0.8 and s = v"), (29, 33))
    assert file.measured_columns == ("y", "y_sd", "cost", "dirt")


AS_TEXT = TOML.replace("[limits.dirt]\nat_most = 2.0\n", "").replace(
    "past = [",
    """limits = ["1 <= dirt <= 1.5 * baseline", "y >= 3", "cost = 7"]
least_probability = 0.5
baseline = {dirt = 2}
past = [""",
)


def test_thresholds_targets_and_ranges_are_read_as_keys_and_as_people_write_them(tmp_path: Path) -> None:
    """Both ways say the same; what is relative to a baseline is a number then."""
    keys = TOML.replace("at_most = 2.0", "at_least = 1\nat_most = 3").replace('direction = "minimize"', "target = 7")
    keys = keys.replace('direction = "maximize"', 'direction = "maximize"\nthreshold = 3')
    expected = [Goal("y", maximize=True, threshold=3), Goal("cost", target=7), Limit("dirt", at_least=1, at_most=3)]
    for text in (keys, AS_TEXT):
        make_several(tmp_path, toml=text)
        file = read_campaign_file(tmp_path / "headstart.toml")
        assert [column.outcome for column in file.results] == expected
        assert [column.aim for column in file.results] == ["maximised, at least 3", "near 7", "between 1 and 3"]
    assert file.outcomes.least_probability == 0.5
    make_several(tmp_path, toml=AS_TEXT.replace("baseline = {dirt = 2}", ""))
    with pytest.raises(InputError, match=r"line 2: '1 <= dirt <= 1.5 \* baseline' is relative to a baseline"):
        read_campaign_file(tmp_path / "headstart.toml")


MORE = """
[objectives.third]
direction = "minimize"

[objectives.fourth]
direction = "minimize"

[objectives.fifth]
direction = "minimize"

[limits.dirt]"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("past = [", 'objective = "y"\npast = [', "line 2: unknown key 'objective'. Did you mean 'objectives'?"),
        ('direction = "minimize"', "", "[objectives.cost] must be 'maximize' or 'minimize': it is missing"),
        ('direction = "minimize"', 'direction = "up"', "line 10: direction in [objectives.cost] must be"),
        (
            "[limits.dirt]",
            "[limits.cost]",
            "line 12: 'cost' is an objective and has a limit too. The worst value of an objective that is still of",
        ),
        ("\n[limits.dirt]", MORE, "at most 4 objectives can be weighed against each other, but there are 5"),
        ("at_most = 2.0", "", "line 12: [limits.dirt] needs at_most, at_least or both"),
        ("at_most = 2.0", "at_most = 2.0\nat_least = 3.0", "line 12: The limit on 'dirt' must be from a lower to a"),
        (
            'direction = "minimize"',
            'direction = "minimize"\ntarget = 3',
            "[objectives.cost] has a target and a direction",
        ),
        ('direction = "minimize"', 'threshold = "3"', "threshold in [objectives.cost] must be a finite number"),
        ("past = [", "least_probability = 2\npast = [", "least_probability must be from 0 to below 1, but it is 2"),
        ("past = [", 'baseline = {cost = "3"}\npast = [', "cost in [baseline] must be a finite number, but it is '3'"),
        ("at_most = 2.0", 'at_most = "2"', "line 13: at_most in [limits.dirt] must be a finite number, but it is '2'"),
        ("at_most = 2.0", "at_most = inf", "at_most in [limits.dirt] must be a finite number"),
        ("at_most = 2.0", "at_most = 2.0\nlow = 3", "at_most in [limits.dirt] lies outside low and high"),
        ("at_most = 2.0", "at_most = 2.0\nlow = 3\nhigh = 1", "low in [limits.dirt] is 3, which is not below high = 1"),
        ("at_most = 2.0", "atmost = 2.0", "line 13: unknown key 'atmost' in [limits.dirt]. Did you mean 'at_most'?"),
        ('error = "y_sd"', 'error = "a"', "line 7: 'a' cannot be the error of 'y' and a parameter or a result too"),
        ('error = "y_sd"', 'error = "cost"', "'cost' cannot be the error of 'y' and a parameter or a result too"),
        ("[limits.dirt]", "[limits.a]", "line 12: 'a' is a result and cannot be a parameter too"),
        ("past = [", 'ignore = ["y_sd"]\npast = [', "'y_sd' is a result and cannot be ignored too"),
        ("past = [", 'equal_rows = "same"\npast = [', "line 2: equal_rows must be 'copies' or 'repeats'"),
        (
            "past = [",
            'candidates = "current.csv"\npast = [',
            "line 2: the current file cannot be the list of candidates",
        ),
        ('rule = "a + b <= 1"', 'regel = "a + b <= 1"', 'line 29: a rule is a table [[rules]] with rule = "A + B'),
        ("why =", "because =", "line 29: unknown key 'because' in [[rules]]"),
        ('why = "there is no more room"', "why = 3", "line 29: why must be a text in quotation marks, but it is 3"),
        (
            "a + b <= 1",
            "a + c <= 1",
            "headstart.toml, line 29: rule 'a + c <= 1', character 5: there is no parameter 'c'",
        ),
        ("a + b <= 1", "a + s <= 1", "line 29: rule 'a + s <= 1': 's' has categories, which cannot be"),
        ("s = v", "s = w", "line 33: rule 'forbid: a > 0.8 and s = w', character 25: 'w' is no category of 's'"),
        ("a + b <= 1", "a + b >= 3", "headstart.toml: No setting of the space keeps the rule"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the line where it stands, and what would be right."""
    assert old in TOML
    make_several(tmp_path, toml=TOML.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        open_campaign(tmp_path)
    assert "headstart.toml" in str(caught.value)
    assert message in str(caught.value)
