"""Columns of different files that are the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from headstart.sources.files.tables import Table, read_table
from headstart.sources.roles import measured_rank, what_counts
from headstart.sources.same import SameColumn, same_columns
from headstart.sources.terms import likeness, meanings_of, words_of


def _tables(folder: Path, *contents: str) -> list[Table]:
    for i, content in enumerate(contents):
        (folder / f"{'abc'[i]}.csv").write_text(content, encoding="utf-8")
    return [read_table(folder / f"{'abc'[i]}.csv") for i in range(len(contents))]


def _same(folder: Path, *contents: str, **options: object) -> dict[str, SameColumn]:
    found, conflicts = same_columns(_tables(folder, *contents), **options)  # type: ignore[arg-type]
    assert not conflicts
    return {one.name: one for one in found}


def test_words_of_names() -> None:
    """Without units, with German compounds taken apart; one letter keeps its case."""
    assert words_of("Reaktionszeit [min]") == ["reaktion", "zeit"]
    assert words_of("Gesamtflussrate [mL/min]") == ["gesamt", "fluss", "rate"]
    assert words_of("T / °C") == ["T"]
    assert meanings_of("reaction time (h)") == meanings_of("Reaktionszeit")
    assert meanings_of("T in °C") == ("temperature",)
    assert meanings_of("t [min]") == ("time",)


def test_the_likeness_of_names_counts_both_ways() -> None:
    """(Σ best of a + Σ best of b) / (|a| + |b|): one of one word in one of two is two thirds."""
    assert likeness(("curing", "temperature"), ("temperature",)) == pytest.approx(2 / 3)
    assert likeness(("bed", "temperature"), ("nozzle", "temperature")) == pytest.approx(1 / 2)
    assert likeness(("x",), ("z",)) == 0


def test_names_units_and_values_say_what_is_the_same(tmp_path: Path) -> None:
    """Spelled, abbreviated and translated, in other units; a symbol is understood with its unit."""
    found = _same(
        tmp_path,
        "Temperature [°C],Concentration [mol/L],y\n40,0.1,1\n90,0.5,2\n",
        "T / °C,concentration (mmol/L),y\n50,100,1\n80,600,2\n",
        "Temperatur in K,Konz. [M],y\n320,0.2,1\n360,0.4,2\n",
    )
    assert found["Temperature [°C]"].others == ("T / °C", "Temperatur in K")
    assert found["Concentration [mol/L]"].others == ("concentration (mmol/L)", "Konz. [M]")
    assert "mmol/L is converted to mol/L" in found["Concentration [mol/L]"].reason("concentration (mmol/L)")
    assert not any(one.doubtful for one in found.values())


def test_two_columns_of_one_file_are_never_the_same(tmp_path: Path) -> None:
    """Each has its own partner, by its other words and by where its values lie."""
    found = _same(
        tmp_path,
        "nozzle temperature [°C],bed temperature [°C],y\n200,50,1\n240,90,2\n",
        "Bed T [°C],Nozzle T [°C],y\n60,210,1\n80,230,2\n",
    )
    assert found["nozzle temperature [°C]"].others == ("Nozzle T [°C]",)
    assert found["bed temperature [°C]"].others == ("Bed T [°C]",)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("T [°C],y\n40,1\n90,2\n", "t [min],y\n50,1\n80,2\n"),  # a temperature, and a time
        ("solvent,y\nDMF,1\nTHF,2\n", "solvent amount,y\n5,1\n6,2\n"),  # a text, and a number
        ("width,y\n1,1\n2,2\n", "torque,y\n1,1\n2,2\n"),
    ],
)
def test_what_is_something_else_is_not_the_same(tmp_path: Path, first: str, second: str) -> None:
    """By its unit, its kind, or its name."""
    assert not _same(tmp_path, first, second)


def test_what_somebody_should_look_at_is_doubtful(tmp_path: Path) -> None:
    """A unit that only one of the names has, other words, and what is only left over."""
    found = _same(tmp_path, "T [°C],x,y\n40,1,1\n90,2,2\n", "temperature,x,y\n50,1,1\n80,2,2\n")
    assert found["T [°C]"].doubtful
    assert "does not say its unit, but its values are like those in °C" in found["T [°C]"].reason("temperature")
    assert not _same(tmp_path, "T [°C],x,y\n40,1,1\n90,2,2\n", "temperature,x,y\n313,1,1\n363,2,2\n")
    found = _same(
        tmp_path,
        "T [°C],x,y\n40,1,1\n90,2,2\n",
        "temperature [°C],x,y\n50,1,1\n80,2,2\n",
        "Temperatur,x,y\n50,1,1\n80,2,2\n",
    )
    assert found["T [°C]"].in_doubt == ("Temperatur",)  # and not the one that is sure
    found = _same(tmp_path, "oven [°C],x,y\n40,1,1\n90,2,2\n", "Vorlauf [°C],x,y\n50,1,1\n80,2,2\n")
    assert found["oven [°C]"].doubtful


def test_columns_that_are_told_are_compared_with_none(tmp_path: Path) -> None:
    """And a column is called as somebody calls it."""
    files = "Temperature [°C],y\n40,1\n90,2\n", "T / °C,y\n50,1\n80,2\n"
    assert not _same(tmp_path, *files, apart=["T / °C"])
    assert _same(tmp_path, *files, prefer=["T / °C"])["T / °C"].others == ("Temperature [°C]",)


def test_what_counts_is_found_by_its_name_wherever_it_stands(tmp_path: Path) -> None:
    """First or last; and nothing that is to be low is proposed to be high."""
    for header, name, maximize in (
        ("yield_percent,T,purity", "yield_percent", True),
        ("T,Ausbeute in %,x", "Ausbeute in %", True),
        ("lr,train_loss,val_loss", "val_loss", False),
        ("T,x,cycle time [s]", "cycle time [s]", False),
        ("T,x,total cost", "total cost", False),
    ):
        rows = "".join(
            f"{20 + 7.3 * i:.1f},{1 + (i * 3) % 8 + i / 100},{50 + (i * 5) % 9 + i / 50}\n" for i in range(9)
        )
        found = what_counts(_tables(tmp_path, f"{header}\n{rows}"))
        assert found is not None
        assert (found.name, found.maximize) == (name, maximize)
    assert measured_rank("temperature") is None


def test_a_result_that_no_name_tells_is_the_column_that_looks_measured(tmp_path: Path) -> None:
    """Doubtful, and nobody says whether it is to be high."""
    rows = "".join(f"{20 + 10 * (i % 3)},{1.03 + i * i / 7:.3f},{i % 4}\n" for i in range(9))
    found = what_counts(_tables(tmp_path, f"a,b,c\n{rows}"))
    assert found is not None
    assert (found.name, found.maximize, found.sure) == ("b", None, False)


def test_units_that_are_set_otherwise_are_the_same(tmp_path: Path) -> None:
    """A raised digit, a product with or without its mark, a ratio of units that convert; Glukose is glucose."""
    found = _same(
        tmp_path,
        "cement [kg/m³],slurry viscosity [mPa·s],Kühlrate [K/min],Glukose [g/L],y\n220,800,0.5,2,1\n480,6000,2,12,2\n",
        "cement (kg/m3),slurry viscosity (mPa s),cooling rate (°C/min),glucose (mg/mL),y\n"
        "240,900,0.6,3,1\n460,5000,1.9,11,2\n",
    )
    assert {name: one.others for name, one in found.items()} == {
        "cement [kg/m³]": ("cement (kg/m3)",),
        "slurry viscosity [mPa·s]": ("slurry viscosity (mPa s)",),
        "Kühlrate [K/min]": ("cooling rate (°C/min)",),
        "Glukose [g/L]": ("glucose (mg/mL)",),
    }


def test_numbers_without_a_unit_are_matched_where_no_other_is_left(tmp_path: Path) -> None:
    """Half of the name in common, and values alike: to be looked at."""
    found = _same(
        tmp_path,
        "Flottenverhältnis,speed [rpm],y\n5,100,1\n20,300,2\n",
        "liquor ratio,speed [rpm],y\n6,120,1\n18,310,2\n",
    )
    assert found["Flottenverhältnis"].others == ("liquor ratio",)
    assert found["Flottenverhältnis"].doubtful
