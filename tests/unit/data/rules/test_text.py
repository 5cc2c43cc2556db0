"""Rules as people write them."""

from __future__ import annotations

import pytest

from headstart import Choices, FloatRange, InputError, IntRange, Space
from headstart.data.rules.rule import Clause, FixedValue, Forbidden, LinearRule, OnSteps, Relation, SettingRule
from headstart.data.rules.text import parse_rule

SPACE = Space.of(
    {
        "A": FloatRange(0, 100),
        "B": FloatRange(0, 100),
        "C": FloatRange(0, 1),
        "T [°C]": FloatRange(20, 200),
        "temperature": IntRange(0, 250),
        "learning-rate": FloatRange(1e-4, 1, log=True),
        "solvent": Choices(("toluene", "ethyl acetate", 7, None)),
    }
)
AT_MOST, AT_LEAST, EQUAL = Relation.AT_MOST, Relation.AT_LEAST, Relation.EQUAL
HOT = Clause("temperature", Relation.ABOVE, 180.0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("2*A + B <= 100", LinearRule((("A", 2.0), ("B", 1.0)), AT_MOST, 100.0)),
        ("A + B + C = 1", LinearRule((("A", 1.0), ("B", 1.0), ("C", 1.0)), EQUAL, 1.0)),
        ("A>=B", LinearRule((("A", 1.0), ("B", -1.0)), AT_LEAST, 0.0)),
        ("-A + 0.5 B - 3 ≤ 2·A/4", LinearRule((("A", -1.5), ("B", 0.5)), AT_MOST, 3.0)),
        ("A*2 - -B == .5e1", LinearRule((("A", 2.0), ("B", 1.0)), EQUAL, 5.0)),
        ("'T [°C]' + A >= 30", LinearRule((("T [°C]", 1.0), ("A", 1.0)), AT_LEAST, 30.0)),
        ("3 <= A", LinearRule((("A", -1.0),), AT_MOST, -3.0)),
        ("`learning-rate` <= 0.1", LinearRule((("learning-rate", 1.0),), AT_MOST, 0.1)),
        ("2*A = 80", FixedValue("A", 40.0)),
        ("temperature = 80", FixedValue("temperature", 80.0)),
        ("solvent = toluene", FixedValue("solvent", "toluene")),
        ('solvent == "ethyl acetate"', FixedValue("solvent", "ethyl acetate")),
        ("solvent = 7", FixedValue("solvent", 7)),
        ("solvent != None", Forbidden((Clause("solvent", EQUAL, None),))),
        ("forbid: temperature > 180 and solvent = toluene", Forbidden((HOT, Clause("solvent", EQUAL, "toluene")))),
        (
            "not (temperature > 180 and solvent ≠ toluene)",
            Forbidden((HOT, Clause("solvent", Relation.OTHER, "toluene"))),
        ),
        ("forbid temperature > 180 and A <= -1", Forbidden((HOT, Clause("A", AT_MOST, -1.0)))),
        ("t in steps of 5", OnSteps("T [°C]", 5.0, 20.0)),  # without its unit
        (
            "solvent in (toluene, 'ethyl acetate')",
            Forbidden(
                (
                    Clause("solvent", Relation.OTHER, "toluene"),
                    Clause("solvent", Relation.OTHER, "ethyl acetate"),
                )
            ),
        ),
        (
            "temperature <= 180 or solvent = toluene",
            Forbidden((HOT, Clause("solvent", Relation.OTHER, "toluene"))),
        ),
        ("'T [°C]' in steps of 5", OnSteps("T [°C]", 5.0, 20.0)),
        ("A in steps of 0.5 from 0.25", OnSteps("A", 0.5, 0.25)),
    ],
)
def test_a_rule_is_read(text: str, rule: SettingRule) -> None:
    """And its own sentence says the same again."""
    assert parse_rule(text, SPACE) == rule
    assert parse_rule(str(rule), SPACE) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"Rule '', character 1: there is nothing. Write a rule"),
        ("A + B", "character 6: expected a relation, but there is the end. Write <="),
        ("A + temprature <= 1", "character 5: there is no parameter 'temprature'. Did you mean temperature"),
        ("learning-rate <= 1", "no parameter 'learning'. Did you mean 'learning-rate'"),
        ("A + xyz <= 1", "no parameter 'xyz'. The known ones are A, B, C, 'T"),
        ("2*(A + B) <= 1", "character 3: brackets cannot be used in a sum. Write 2"),
        ("A < B", "character 3: a linear rule has <=, >= or =, not '<'"),
        ("A <= 0,5", "character 7: a comma means nothing there. Write decimals with a point"),
        ("A <= 1 <= B", "character 8: there is a second relation. Write two rules"),
        ("A * B <= 1", "'A' is multiplied by 'B'"),
        ("A + solvent <= 1", "'solvent' has categories, which cannot be added up"),
        ("A / 0 <= 1", "divided by 0"),
        ("A + <= 3", "expected a parameter or a number, but there is '<='"),
        ("A - A <= 0", "no parameter is left in it"),
        ("A ? 3", r"character 3: '\?' means nothing there. Put names with such characters in quotes"),
        ("A <= 3 bar", "character 8: 'bar'|expected '\\+' or the end, but there is 'bar'|no parameter 'bar'"),
        ("solvent = water", "character 11: 'water' is no category of 'solvent' .toluene"),
        ("solvent > toluene", "categories, which have no order. Use = or ≠"),
        ("solvent in steps of 2", "categories, which have no steps"),
        ("A in step 5", "expected 'steps of', but there is 'step'. Write A in steps of 5"),
        ("A in steps of x", "expected a number, but there is 'x'"),
        ("A in steps of 0", "step of 'A' must be a number above 0"),
        ("forbid: 3 > A", "expected a parameter, but there is '3'"),
        ("forbid: temperature > 180 or A > 1", "'or' cannot stand in what is forbidden. Write a rule for each"),
        ("not temperature > 180", r"expected '\(' after not"),
        ("not (temperature > 180", r"expected 'and' or '\)', but there is the end"),
        ("forbid: temperature > hot", "expected a number, but there is 'hot'"),
        ("A = 300", "'A' may have 0 … 100, but 300 is none of them"),
        ("temperature = 80.5", "0 … 250 by 1, but 80.5 is none of them"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    """With the text, the place and a remedy."""
    with pytest.raises(InputError, match=message):
        parse_rule(text, SPACE)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("solvent in (toluene, 7)", [True, True, False, True]),
        ("temperature <= 100 or solvent = toluene", [True, True, True, False]),
    ],
)
def test_lists_and_alternatives_keep_what_they_say(text: str, kept: list[bool]) -> None:
    """Row by row."""
    rows = [("toluene", 150), ("toluene", 50), ("ethyl acetate", 50), (7, 150)]
    rule = parse_rule(text, SPACE)
    assert [rule.holds({"solvent": solvent, "temperature": t}) for solvent, t in rows] == kept


def test_a_name_without_its_unit_must_mean_one_parameter() -> None:
    """And no hint has quotes that a shell executes."""
    space = Space.of({"T [°C]": FloatRange(0, 1), "T [K]": FloatRange(0, 1), "flow_mL": FloatRange(0, 1)})
    assert parse_rule("flow <= 0.5", space).parameters == ("flow_mL",)
    with pytest.raises(InputError, match="there is no parameter 'T'") as caught:
        parse_rule("T <= 0.5", space)
    assert "`" not in str(caught.value)
