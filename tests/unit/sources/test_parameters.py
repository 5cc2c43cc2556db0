"""Parameters as people describe them."""

from __future__ import annotations

from dataclasses import fields

import pytest

from headstart.sources.parameters import Kind, Parameter


@pytest.mark.parametrize(
    "parameter",
    [
        Parameter("s", Kind.CATEGORY, choices=("u", "v")),
        Parameter("p", Kind.FIXED, value=3.0),
        Parameter("T", Kind.FLOAT, low=20.0, high=80.0),
    ],
    ids=lambda parameter: parameter.kind.value,
)
def test_a_parameter_equals_itself_field_by_field(parameter: Parameter) -> None:
    """As Python compares from 3.13 on: by that it is seen whether a change of a file is the one that was wanted."""
    assert [one.name for one in fields(parameter) if getattr(parameter, one.name) != getattr(parameter, one.name)] == []
    assert parameter.wrong is None
