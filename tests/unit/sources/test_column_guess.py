"""What columns are taken for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headstart import InputError
from headstart.errors import Message, Setting
from headstart.sampler.space import known_space
from headstart.sources.column_guess import Proposal, find_result, outward, propose, spans_log
from headstart.sources.files.tables import Table, read_table
from headstart.sources.parameters import Kind, Parameter
from headstart.sources.raw import RawTask


def _tables(folder: Path, *contents: str) -> list[Table]:
    paths = [folder / f"{'abc'[i]}.csv" for i in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(content, encoding="utf-8")
    return [read_table(path) for path in paths]


def _column(name: str, values: list[object]) -> str:
    rows = "\n".join(f"{value},{i % 7},{i}.5" for i, value in enumerate(values))
    return f"{name},other,y\n{rows}\n"


def _proposed(folder: Path, name: str, values: list[object], **options: Any) -> Proposal:
    return propose(_tables(folder, _column(name, values)), ["y"], **options)


def _guessed(folder: Path, name: str, values: list[object]) -> Parameter:
    return next(g.parameter for g in _proposed(folder, name, values).guesses if g.parameter.name == name)


def test_numbers_get_a_range_around_the_data(tmp_path: Path) -> None:
    """Rounded outward, with the unit of the column's name."""
    p = _guessed(tmp_path, "pressure [bar]", [1.13, 2.5, 4.87, 3.3])
    assert (p.kind, p.low, p.high, p.log, p.unit) == (Kind.FLOAT, 1.0, 5.0, False, "bar")


def test_a_positive_range_does_not_reach_down_to_zero(tmp_path: Path) -> None:
    """Unless the data do."""
    assert _guessed(tmp_path, "t", [5, 60, 90, 120]).low == 5
    assert _guessed(tmp_path, "t", [0, 60, 90, 120]).low == 0


def test_whole_numbers_stay_whole(tmp_path: Path) -> None:
    """With whole limits."""
    p = _guessed(tmp_path, "temperature_C", [22, 35, 118, 60])
    assert (p.kind, p.low, p.high, p.unit) == (Kind.INT, 20, 120, "°C")


def test_wide_skewed_positive_columns_get_a_log_scale(tmp_path: Path) -> None:
    """Two decades and most values at the lower end; evenly spread ones do not, nor do those with a zero."""
    skewed = _guessed(tmp_path, "c", [0.0013, 0.01, 0.013, 0.1, 0.87])
    assert (skewed.log, skewed.low, skewed.high) == (True, 0.001, 1.0)
    assert not _guessed(tmp_path, "c", [0.5, 40.5, 60.5, 80.5, 100.5]).log
    assert not _guessed(tmp_path, "c", [0, 0.01, 0.013, 0.1, 0.87]).log


def test_few_texts_are_a_category_and_many_are_remarks(tmp_path: Path) -> None:
    """Remarks are left out with the reason."""
    assert _guessed(tmp_path, "solvent", ["DMF", "MeCN", "DMF", "none"]).choices == ("DMF", "MeCN", "none")
    ignored = _proposed(tmp_path, "sample", [f"remark {i}" for i in range(10)]).ignored
    assert ignored["sample"] == "10 different texts in 10 rows look like remarks"


def test_columns_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    """Constants, counters and what the user names."""
    assert _proposed(tmp_path, "p", [5, 5, 5]).ignored["p"] == "it is 5 in every row"
    assert _proposed(tmp_path, "gas", ["Ar", "Ar", "Ar"]).ignored["gas"] == "it is 'Ar' in every row"
    assert _proposed(tmp_path, "Run No.", [4, 5, 6]).ignored["Run No."] == "it only counts the rows"
    assert _proposed(tmp_path, "x", [1, 2, 4], ignore=["x"]).ignored["x"] == "left out as told"
    assert _guessed(tmp_path, "rpm", [1, 2, 3]).kind is Kind.INT  # no counter by its name


def test_numbers_can_be_declared_a_category(tmp_path: Path) -> None:
    """Each number is then a name."""
    (guess, _) = _proposed(tmp_path, "lot", [3, 1, 3, 1], categories=["lot"]).guesses
    assert guess.parameter.choices == ("1", "3")


def test_a_parameter_of_some_files_says_so(tmp_path: Path) -> None:
    """It is proposed all the same."""
    tables = _tables(tmp_path, "x,p,y\n1,2,3\n2,3,4\n", "x,y\n1,2\n4,4\n")
    guess = next(g for g in propose(tables, ["y"]).guesses if g.parameter.name == "p")
    assert guess.reasons["kind"] == "whole numbers in every row; only recorded in a.csv"


def test_a_column_of_dashes_is_one_that_the_file_does_not_have(tmp_path: Path) -> None:
    """Where another file has numbers."""
    tables = _tables(tmp_path, "x,p,y\n1,2,3\n2,3,4\n", "x,p,y\n1,-,2\n4,-,4\n")
    guess = next(g for g in propose(tables, ["y"]).guesses if g.parameter.name == "p")
    assert guess.parameter.kind is Kind.INT
    assert guess.reasons["kind"] == "whole numbers in every row; only recorded in a.csv"


def test_names_and_categories_that_look_alike_are_remarked_on(tmp_path: Path) -> None:
    """They may be the same thing."""
    tables = _tables(
        tmp_path, "Temp,s,x,y\n1,dmf,1,3\n2,DMF,2,4\n1,THF,1,3\n2,THF,2,3\n", "temperature,x,y\n1,2,2\n4,3,4\n"
    )
    told = next(r for r in propose(tables, ["y"]).remarks if "never occur together" in r)
    assert told.startswith("'Temp' (a.csv) and 'temperature' (b.csv)")
    assert isinstance(told, Message)
    assert told.settings[0] == Setting("rename", "temperature=Temp")
    assert _guessed(tmp_path, "s", ["DMF", "dmf", "THF", "THF", "DMF"]).choices == ("DMF", "THF")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (["x,z,y\n1,1,2\n2,2,3\n", "u,v,y\n1,2,3\n2,3,4\n"], "a.csv has no parameter in common with the other files"),
        (["x,y\n1,2\n2,3\n", "x,y\na,2\nb,3\n"], "b.csv, row 2, column 'x': 'a' is text, but in"),
        (["x,y\n1,2\n1,3\n"], "no column besides 'y' varies, so there is nothing to choose (x: it is 1 in every row)"),
        (["x,y\n1,\n2,n/a\n"], "a.csv: no row has a result in column 'y'"),
        (["x,y\n"], "a.csv has a header but no rows"),
    ],
)
def test_files_that_do_not_go_together_are_refused(tmp_path: Path, contents: list[str], message: str) -> None:
    """With the file's name and what to do."""
    with pytest.raises(InputError) as caught:
        propose(_tables(tmp_path, *contents), ["y"])
    assert message in str(caught.value)


def test_the_objective_is_found_under_other_spellings(tmp_path: Path) -> None:
    """By its name without the unit; a file that has none is named with its columns."""
    tables = _tables(tmp_path, "x,yield_percent\n1,2\n", "x,Yield [%]\n1,2\n")
    assert find_result(tables, "yield") == ("yield_percent", {"Yield [%]": "yield_percent"})
    with pytest.raises(
        InputError, match=r"a\.csv: there is no column 'cost'\. The known ones are 'x', 'yield_percent'\."
    ):
        find_result(tables, "cost")
    with pytest.raises(InputError, match="Did you mean 'yield_percent'"):
        find_result(tables, "yeild_percent")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.booleans())
def test_a_range_rounded_outward_holds_the_data(low: float, span: float, log: bool) -> None:
    """And is not much wider: an eighth of the span at each end, or a factor of 2.5."""
    low = abs(low) + 1e-3 if log else low
    high = low + span
    bottom, top = outward(low, high, log=log)
    slack = 1e-9 * max(abs(low), abs(high))
    assert bottom <= low + slack
    assert top >= high - slack
    if log:
        assert bottom >= low / 2.5 - slack
        assert top <= high * 2.5 + slack
    else:
        assert bottom >= low - 0.125 * span - slack
        assert top <= high + 0.125 * span + slack


@pytest.mark.parametrize(
    ("values", "log"),
    [
        (np.geomspace(1e-3, 10, 9), True),
        (np.geomspace(1, 100, 9), True),
        (np.geomspace(1, 50, 9), False),
        (np.linspace(1e-3, 10, 9), False),
        (np.array([0.0, 1e-3, 1e-2, 10.0]), False),
        (np.array([5.0, 5.0]), False),
        (np.array([5.0]), False),
    ],
)
def test_one_rule_says_what_looks_like_a_log_axis(values: NDArray[np.float64], log: bool) -> None:
    """To a campaign's folder and to the sampler's first trial alike."""
    assert spans_log(values) is log
    rows = pd.DataFrame({"x": values})
    (guess,) = known_space([RawTask("a", rows, np.zeros(len(values)), None, "a")]).values()
    assert guess.log is log  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "once", "values", "log"),
    [
        ("nose radius [mm]", [0.2, 0.4, 0.8, 1.6], (0.2, 0.4, 0.8, 1.6), True),
        ("d / µm", [50, 80, 200, 250], (50, 80, 200, 250), False),
        ("batch_size", [16, 32, 64, 128], (16, 32, 64, 128), True),
        ("units", [8, 16, 32], (8, 16, 32), True),
        ("particle size", [0.25, 0.5, 1.0], (0.25, 0.5, 1.0), True),
        # even gaps are a grid, which is suggested alike
        ("nose radius [mm]", [0.4, 0.8, 1.2, 1.6], (), False),
        # what is set as one likes, however few values were tried
        ("T [°C]", [20, 50, 60, 100], (), False),
        ("conc [mol/L]", [0.05, 0.1, 0.2, 0.4], (), False),
        ("time [min]", [10, 20, 40, 80], (), False),
        ("pH", [3, 5, 7, 10], (), False),
        ("learning_rate", [0.001, 0.01, 0.1], (), True),
        # many values, or two
        ("d [mm]", [1, 2, 4, 8, 9, 11, 14], (), False),
        ("d [mm]", [1, 4], (), False),
    ],
)
def test_few_uneven_values_again_and_again_are_sizes(
    tmp_path: Path, name: str, once: list[object], values: tuple[float, ...], log: bool
) -> None:
    """Of lengths, what is called a size, and whole numbers that double; the reason and the way back are told."""
    found = _proposed(tmp_path, name, once * 6)
    guess = next(g for g in found.guesses if g.parameter.name == name)
    p = guess.parameter
    assert (p.values, p.log) == (values, log)
    remarks = [r for r in found.remarks if "was only ever" in r]
    if values:
        assert "exist in sizes" in guess.reasons["kind"]
        assert f"only these {len(values)} in {6 * len(once)} rows" in guess.reasons["values"]
        assert isinstance(remarks[0], Message)
        assert remarks[0].settings == (Setting("parameter", f"{name}={values[0]:g}..{values[-1]:g}"),)
    else:
        assert not remarks


def test_values_that_are_seldom_or_in_one_file_alone_are_no_sizes(tmp_path: Path) -> None:
    """Each must come again, and no file may have one of its own."""
    assert not _guessed(tmp_path, "d [mm]", [1, 2, 4, 8] * 4).values
    assert not _guessed(tmp_path, "d [mm]", [*[1, 2, 4] * 8, 8]).values
    texts = [_column("d [mm]", [1, 2, 4] * 6), _column("d [mm]", [1, 2, 4, 8] * 6)]
    found = propose(_tables(tmp_path, *texts), ["y"])
    assert not any(g.parameter.values for g in found.guesses)
    texts = [_column("d [mm]", [1, 2, 4, 8] * 6), _column("d [mm]", [8, 4, 2, 1] * 6)]
    found = propose(_tables(tmp_path, *texts), ["y"])
    assert next(g for g in found.guesses if g.parameter.name == "d [mm]").parameter.values == (1, 2, 4, 8)
