"""headstart.toml."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from headstart import InputError
from headstart.campaign.file import CampaignFile
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal
from headstart.sources.parameters import Kind, Parameter

GOOD = """
past = ["past/a.csv"]

[objectives.yield]
direction = "maximize"
[parameters.T]
kind = "float"
low = 20
high = 120.0

[parameters."n [1]"]
kind = "int"
low = 1
high = 9
step = 2

[parameters.c]
kind = "float"
low = 1e-3
high = 1.0
log = true
unit = "mol/L"

[parameters.solvent]
kind = "category"
choices = ["DMF", 3]

[parameters.p]
kind = "fixed"
value = 5
"""


def _read(folder: Path, text: str) -> CampaignFile:
    path = folder / "headstart.toml"
    path.write_text(text, encoding="utf-8")
    return read_campaign_file(path)


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    """Every kind of parameter, and what need not be said."""
    file = _read(tmp_path, GOOD)
    assert [column.outcome for column in file.results] == [Goal("yield", maximize=True)]
    assert (file.past, file.current, file.rules, file.candidates) == (("past/a.csv",), "current.csv", (), "")
    assert (file.model, file.max_rows, file.ignore) == ("auto", 2000, ())
    assert [p.name for p in file.parameters] == ["T", "n [1]", "c", "solvent", "p"]
    assert [p.distribution() for p in file.parameters] == [
        FloatDistribution(20, 120),
        IntDistribution(1, 9, step=2),
        FloatDistribution(1e-3, 1.0, log=True),
        CategoricalDistribution(("DMF", "3")),
        CategoricalDistribution((5,)),
    ]


def test_a_byte_order_mark_is_no_trouble(tmp_path: Path) -> None:
    """Windows' Notepad writes one."""
    assert _read(tmp_path, "\ufeff" + GOOD).results[0].name == "yield"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("high = 120.0", "hihg = 120.0", "line 9: unknown key 'hihg' in [parameters.T]. Did you mean 'high'?"),
        ("past = [", "pats = [", "line 2: unknown key 'pats'. Did you mean 'past'?"),
        ('[objectives.yield]\ndirection = "maximize"', "", "there is no objective. Add [objectives.yield]"),
        (
            '"maximize"',
            '"up"',
            "line 5: direction in [objectives.yield] must be 'maximize' or 'minimize', but it is 'up'",
        ),
        ("low = 20", "low = 120", "line 8: low in [parameters.T]: 120 is not below 120. Widen"),
        ("low = 20", "low = 200", "line 8: low in [parameters.T]: 200 is not below 120. Swap them"),
        ("low = 20", 'low = "20"', "line 8: low in [parameters.T] must be a finite number, but it is '20'"),
        ("low = 20", "low = nan", "low in [parameters.T] must be a finite number"),
        ("low = 20\n", "", "low in [parameters.T] is missing: kind 'float' needs low and high"),
        ("low = 1e-3", "low = 0", "low in [parameters.c]: A log scale needs a lower end above 0, but it is 0"),
        ("log = true", "log = true\nstep = 0.1", "step in [parameters.c]: A step goes with no log scale"),
        (
            "step = 2",
            "step = 20",
            "step in [parameters.n [1]]: A step must be positive and within the range",
        ),
        (
            "step = 2",
            "step = 1.5",
            "step in [parameters.n [1]]: Whole numbers need whole ends and a whole step",
        ),
        ("value = 5", "low = 5", "value in [parameters.p] is missing"),
        ("value = 5", "value = 5\nlow = 1", "low in [parameters.p] does not go with kind 'fixed'"),
        ('"DMF", 3', '"DMF"', "choices in [parameters.solvent] must be two or more different values"),
        ('kind = "category"', 'kind = "categorical"', "kind in [parameters.solvent] must be one of float, int"),
        ("objectives.yield", "objectives.T", "line 4: 'T' is the objective and cannot be a parameter too"),
        ("past = [", 'ignore = ["c"]\npast = [', "'c' is a parameter and cannot be ignored too"),
        ("past = [", 'batch = "c"\npast = [', "line 2: 'c' is a parameter and cannot be the batch too. Delete one"),
        ("past = [", 'batch = "yield"\npast = [', "line 2: 'yield' is a result and cannot be the batch too"),
        ("past = [", 'ignore = ["d"]\nbatch = "d"\npast = [', "line 3: 'd' is in ignore and cannot be the batch too"),
        ("past = [", "batch = 3\npast = [", "line 2: batch must be a text in quotation marks"),
        ("past = [", "drift = 30\npast = [", 'line 2: drift needs the column: batch = "COLUMN"'),
        ("past = [", 'batch = "d"\ndrift = 0\npast = [', "line 3: drift must be above 0, but it is 0"),
        ("past = [", "jobs = true\npast = [", "line 2: jobs must be a whole number"),
        ("past = [", "max_rows = 0\npast = [", "line 2: max_rows must be at least 1"),
        ('"past/a.csv"', '"current.csv"', "the current file cannot be a past one too"),
        ("[parameters.p]", "[fill]\nq = 3\n[parameters.p]", "fill gives a value for 'q', which is no parameter"),
        ("low = 20", "low = 20,5", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """With the line where it stands, and what would be right."""
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        _read(tmp_path, GOOD.replace(old, new, 1))
    assert "headstart.toml" in str(caught.value)
    assert message in str(caught.value)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    """The command line and the page each add how."""
    with pytest.raises(InputError, match=r"no such file\. Begin a campaign first"):
        read_campaign_file(tmp_path / "headstart.toml")


def test_values_are_rounded_to_what_somebody_can_set() -> None:
    """About three digits of the range, or of the value on a log scale, and never beyond the limits."""
    assert Parameter("T", Kind.FLOAT, low=20, high=120).rounded(87.31234) == 87.3
    assert Parameter("T", Kind.FLOAT, low=0.123454, high=0.2).rounded(0.1512345) == 0.15123
    assert Parameter("T", Kind.FLOAT, low=0.123454, high=0.2).rounded(0.123454) == 0.123454  # 0.12345 is below low
    assert Parameter("c", Kind.FLOAT, low=1e-5, high=1, log=True).rounded(0.000123456) == 0.000123
    assert Parameter("n", Kind.INT, low=1, high=10_000).rounded(1234) == 1234
    assert Parameter("s", Kind.CATEGORY, choices=("a", "b")).rounded("a") == "a"
