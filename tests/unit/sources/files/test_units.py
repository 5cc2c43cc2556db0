"""Units: spellings, and what one is in another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.sources.files.units import canonical_unit, converted, converts, spelled_plainly


@pytest.mark.parametrize(
    ("value", "unit", "into", "expected"),
    [
        (0.0, "°C", "K", 273.15),
        (373.15, "K", "°C", 100.0),
        (212.0, "°F", "°C", 100.0),
        (-40.0, "°C", "°F", -40.0),
        (1.5, "h", "min", 90.0),
        (1.0, "atm", "mbar", 1013.25),
        (1.0, "bar", "psi", 14.5037737730),
        (760.0, "torr", "atm", 1.0),
        (2.0, "g", "mg", 2000.0),
        (60.0, "rpm", "Hz", 1.0),
        (1.0, "A/dm2", "mA/cm2", 10.0),
        (2.0, "kg/m3", "g/L", 2.0),
        (3.0, "L/h", "mL/min", 50.0),
        (5.0, "K/min", "°C/min", 5.0),
        (9.0, "°F/min", "K/min", 5.0),
        (300.0, "mPa·s", "mPa s", 300.0),
    ],
)
def test_known_conversions(value: float, unit: str, into: str, expected: float) -> None:
    """By their definitions."""
    assert converts(unit, into)
    assert converted(value, unit, into) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("unit", "into"), [("g", "%"), ("K", "min"), ("%", "wt%"), ("mol", "mol/L"), ("%", "ppm"),
                                            ("K/min", "°C"), ("g/g", "mg"), ("mg/g", "1")])  # fmt: skip
def test_other_units_are_not_converted(unit: str, into: str) -> None:
    """A mass is no share."""
    assert not converts(unit, into)


@given(st.floats(-1e4, 1e4), st.sampled_from([("°C", "°F"), ("h", "s"), ("bar", "psi"), ("µm", "m")]))
def test_there_and_back_is_the_same(value: float, units: tuple[str, str]) -> None:
    """To the digits that anybody writes."""
    there = converted(value, *units)
    assert converted(there, *reversed(units)) == pytest.approx(value, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "unit"),
    [("°C", "°C"), ("° c", "°C"), ("deg C", "°C"), ("Minuten", "min"), ("MIN", "min"), ("Min.", "min"), ("M", "mol/L"),
     ("mM", "mmol/L"), ("mm", "mm"), ("μm", "µm"), ("ul", "µL"), ("Std", "h"), ("u/min", "rpm"), ("apples", ""),
     ("", ""), ("MM", ""), ("kg/m³", "kg/m3"), ("kg m-3", "kg/m3"), ("mL·min⁻¹", "mL/min"), ("mg / ml", "mg/mL"),
     ("mol l−1", "mol/L"), ("µL/min", "µL/min"), ("mm/U", "mm/rev"), ("mg/g", ""), ("M/min", "")],
)  # fmt: skip
def test_spellings(text: str, unit: str) -> None:
    """Capitals count where they tell units apart."""
    assert canonical_unit(text) == unit


@pytest.mark.parametrize(("text", "other"), [("mAh/cm²", "mAh cm^-2"), ("U/mL", "U / mL"), ("€/m³", "€/m3")])
def test_unknown_units_are_compared_however_they_are_set(text: str, other: str) -> None:
    """A raised digit, a negative power and a stroke say the same."""
    assert spelled_plainly(text) == spelled_plainly(other)
    assert converts(spelled_plainly(text), spelled_plainly(other))
