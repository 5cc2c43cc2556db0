"""Units in column names."""

from __future__ import annotations

import pytest

from headstart.sources.files.names import meant_by, plain, split_unit, with_unit


@pytest.mark.parametrize(
    ("column", "base", "unit"),
    [
        ("temperature [°C]", "temperature", "°C"),
        ("Pressure (bar)", "Pressure", "bar"),
        ("temperature / K", "temperature", "K"),
        ("time_min", "time", "min"),
        ("yield_percent", "yield", "%"),
        ("concentration_M", "concentration", "mol/L"),
        ("flow rate ml", "flow rate", "mL"),
        ("learning_rate", "learning_rate", ""),
        ("min", "min", ""),
        ("x_1", "x_1", ""),
        ("T in °C", "T", "°C"),
        ("Temp. °C", "Temp.", "°C"),
        ("temperature_C", "temperature", "°C"),
        ("Dauer in h", "Dauer", "h"),
        ("Konzentration mmol/L", "Konzentration", "mmol/L"),
        ("yield, %", "yield", "%"),
        ("yield in percent", "yield", "%"),
        ("temperature C", "temperature", "°C"),
        ("time h", "time", "h"),
        ("speed_mm_s", "speed", "mm/s"),
        ("cooling_rate_K_min", "cooling_rate", "K/min"),
        ("cement_kg_m3", "cement", "kg/m3"),
        ("seed density 1e6/mL", "seed density", "1e6/mL"),
        ("ratio C/N", "ratio C/N", ""),
        ("feed_rate_mL_h", "feed_rate", "mL/h"),
        ("cat_loading_molpct", "cat_loading", "mol%"),
        ("catalyst A", "catalyst A", ""),
        ("vitamin C", "vitamin C", ""),
        ("percentage in mix", "percentage in mix", ""),
        ("solvent, dry", "solvent, dry", ""),
        ("a_b_c", "a_b_c", ""),
    ],
)
def test_units_are_found_in_names(column: str, base: str, unit: str) -> None:
    """In brackets, behind a slash, or as a last word that is a unit."""
    assert split_unit(column) == (base, unit)


def test_spellings_of_a_name_agree_without_their_units() -> None:
    """Case, separators and units do not count."""
    assert plain("Yield [%]") == plain("yield_percent") == plain("yield")
    assert plain("flow rate") != plain("flow")


def test_a_label_says_the_unit_once() -> None:
    """Whether the column's name has it or the user added it."""
    assert with_unit("time_min", "min") == "time [min]"
    assert with_unit("temperature [°C]", "°C") == "temperature [°C]"
    assert with_unit("temperature", "°C") == "temperature [°C]"
    assert with_unit("solvent", "") == "solvent"


def test_a_name_means_the_column_of_that_very_name_or_those_spelled_alike() -> None:
    """Case and spaces do not matter, unless both spellings are asked for; a result may lack its unit too."""
    columns = ["T [°C]", "Yield", "yield", "p bar"]
    assert meant_by(["t [°c]", "p  BAR"], columns) == {"T [°C]": "t [°c]", "p bar": "p  BAR"}
    assert meant_by(["yield"], columns) == {"yield": "yield"}
    assert meant_by(["YIELD"], columns) == {"Yield": "YIELD", "yield": "YIELD"}
    assert meant_by(["Yield", "YIELD"], ["yield"]) == {"yield": "YIELD"}
    assert meant_by(["T"], columns) == {}
    assert meant_by(["T"], columns, alike=plain) == {"T [°C]": "T"}
