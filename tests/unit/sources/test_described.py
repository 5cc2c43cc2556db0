"""Descriptors from files and from past tasks, and what is said of a category that was never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from headstart import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.errors import InputError
from headstart.sources.alignment import align
from headstart.sources.described import descriptors_in_tasks, never_run, read_descriptors
from headstart.sources.raw import RawTask

CHOICES = ("toluene", "THF", "DMSO")
FILE = "solvent;polarity;donor\ntoluene;0,1;0,1\nTHF;0,2;20\nDMF;0,4;26,6\nDMSO;0,45;29,8\n"
SPACE: Any = {"solvent": Choices(CHOICES), "T": FloatRange(20, 100)}


def written(folder: Path, text: str, encoding: str = "utf-8-sig") -> Path:
    path = folder / "solvents.csv"
    path.write_bytes(text.encode(encoding))
    return path


def test_a_file_of_descriptors_is_read_as_laboratories_write_it(tmp_path: Path) -> None:
    """Semicolons, decimal commas, a mark at the beginning; more categories than there are choices."""
    found = read_descriptors(written(tmp_path, FILE), "solvent", CHOICES)
    assert found.names == ("polarity", "donor")
    assert found.categories == ("toluene", "THF", "DMF", "DMSO")
    assert found.row("DMSO") == (0.45, 29.8)


def test_cells_of_descriptors_mean_what_they_mean_in_any_file(tmp_path: Path) -> None:
    """A unit, thousands and a sign; it is remarked on, and the parameter's name may be in another case."""
    text = "Solvent,bp [°C],price\nTHF,66 °C,1 200\nDMSO,462.15 K,~900\ntoluene,111,950\n"
    found = read_descriptors(written(tmp_path, text), "solvent", CHOICES)
    assert found.row("THF") == (66, 1200)
    assert found.row("DMSO") == pytest.approx((189, 900))
    assert any("(row 3: '462.15 K') is converted from K to °C" in remark for remark in found.remarks)


def test_categories_of_a_file_are_the_choices_that_they_stand_for(tmp_path: Path) -> None:
    """The text 3 is the number 3; where no column has the parameter's name it is the first."""
    found = read_descriptors(written(tmp_path, "which,size\n3,1\n4,2\n5,9\n"), "sieve", (3, 4))
    assert found.categories == (3, 4, "5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE.replace("DMSO;0,45;29,8\n", ""), r"solvents\.csv: solvent = 'DMSO' is not described"),
        (FILE + "THF;1;2\n", r"row 6, column 'polarity': 'THF' has 1, but 0.2 in .*solvents\.csv, row 3"),
        (FILE.replace("26,6", "high"), r"row 4, column 'donor': 'high' is not a number. Descriptors are numbers"),
        (FILE.replace("26,6", ""), r"row 4, column 'donor': an empty cell is not a value. Fill it in"),
        (FILE.replace("DMF;", ";"), r"row 4, column 'solvent': an empty cell is not a value"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_row(tmp_path: Path, text: str, message: str) -> None:
    """And with the column."""
    with pytest.raises(InputError, match=message):
        read_descriptors(written(tmp_path, text), "solvent", CHOICES)


def task(name: str, **columns: Any) -> RawTask:
    rows = pd.DataFrame(columns)
    return RawTask(
        name, rows, np.arange(len(rows), dtype=float), origin=f"{name}.csv", numbers=tuple(range(2, len(rows) + 2))
    )


PAST = (
    task("a", solvent=["toluene", "THF", "THF"], polarity=[0.1, 0.2, None], T=[20.0, 30.0, 40.0]),
    task("b", solvent=["DMSO", "DMF", "THF"], polarity=["0.45", 0.4, 0.2], T=[20.0, 30.0, 40.0]),
    task("c", T=[20.0, 30.0]),
)


def test_columns_of_past_tasks_describe_categories() -> None:
    """Every value that a category has; empty cells and tasks without the column say nothing."""
    found = descriptors_in_tasks(PAST, "solvent", ["polarity"], CHOICES)
    assert found.categories == ("toluene", "THF", "DMSO", "DMF")
    assert [found.row(c) for c in ("toluene", "THF", "DMSO", "DMF")] == [(0.1,), (0.2,), (0.45,), (0.4,)]


@pytest.mark.parametrize(
    ("tasks", "columns", "message"),
    [
        (
            [task("a", solvent=["THF", "DMF"], p=[1.0, 2.0]), task("b", solvent=["DMF", "THF"], p=[2.0, 1.5])],
            ["p"],
            r"b\.csv, row 3, column 'p': 'THF' has 1\.5, but 1 in a\.csv, row 2",
        ),
        ([task("a", solvent=["THF", "DMF"], p=[1.0, "x"])], ["p"], r"a\.csv, row 3, column 'p': 'x' is not a number"),
        ([task("a", solvent=["THF", "DMF"], p=[1.0, 2.0])], ["q"], "'q' is to describe solvent, but no past task"),
        ([task("a", solvent=["THF", "DMF"], p=[1.0, 2.0])], ["p"], "The past tasks: solvent = 'toluene' is not descr"),
        (
            [task("a", solvent=list(CHOICES), p=[1.0, 2.0, 3.0]), task("b", solvent=list(CHOICES), q=[1.0, None, 2.0])],
            ["p", "q"],
            "solvent = 'THF' has no q in any past task",
        ),
    ],
)
def test_columns_that_do_not_describe_are_told_with_their_row(
    tasks: list[RawTask], columns: list[str], message: str
) -> None:
    """What varies for one category is a setting, not a description."""
    with pytest.raises(InputError, match=message):
        descriptors_in_tasks(tasks, "solvent", columns, CHOICES)


def test_alignment_places_categories_at_their_descriptors() -> None:
    """Those that are no choices too; the describing columns are no parameters, and no noise."""
    own = descriptors_in_tasks(PAST, "solvent", ["polarity"], CHOICES)
    found = align(PAST[:2], SPACE, descriptors={"solvent": own})
    assert found.space.described == ((4,),)
    assert found.datasets[0].categories == found.space.categories == ((0, 1, 2, 3), (4,))
    at = {c: float(x[0]) for c, x in zip(own.categories, own.points(own.categories), strict=True)}
    assert found.datasets[1].X[:, 4].tolist() == [at["DMSO"], at["DMF"], at["THF"]]
    assert not found.warnings
    assert "polarity: it describes solvent, and is no parameter of its own" in "\n".join(map(str, found.decisions))


def test_a_category_of_a_source_without_descriptors_is_named_with_its_file() -> None:
    """It has no place among the others."""
    own = Descriptors.of({c: {"polarity": float(i)} for i, c in enumerate(CHOICES)}, "solvent")
    with pytest.raises(InputError, match=r"b\.csv: solvent = 'DMF' has no descriptors"):
        align(PAST[:2], SPACE, descriptors={"solvent": own})


def test_a_category_that_was_never_run_is_named_with_its_neighbours() -> None:
    """By what it was placed, and between or next to which known ones; one that was run anywhere is not."""
    rows = {"toluene": 0.1, "THF": 0.2, "DMSO": 0.45, "DMF": 0.4}
    own = Descriptors.of({c: {"polarity": p, "donor number": 10 * p} for c, p in rows.items()}, "solvent")
    past = task("a", solvent=["toluene", "DMF", "toluene"], T=[20.0, 30.0, 40.0])
    found = align([past, PAST[2]], SPACE, descriptors={"solvent": own})
    said = never_run(found.space, {"solvent": "THF", "T": 20}, found.datasets)
    assert said == (
        "solvent THF was never run: it is placed by its polarity and donor number between toluene and DMF.",
    )
    beyond = never_run(found.space, {"solvent": "DMSO", "T": 20}, found.datasets)
    assert "nearest to DMF and toluene" in beyond[0]
    assert never_run(found.space, {"solvent": "toluene", "T": 20}, found.datasets) == ()
    here = Dataset(found.space.encode([{"solvent": "THF", "T": 30}]), [1.0])
    assert never_run(found.space, {"solvent": "THF", "T": 20}, [*found.datasets, here]) == ()
    alone = never_run(found.space, {"solvent": "THF", "T": 20}, found.datasets[1:])
    assert alone == ("solvent THF was never run, nor was any other.",)
    plain = align([past], SPACE)
    assert "nothing is known of it" in never_run(plain.space, {"solvent": "THF", "T": 20}, plain.datasets)[0]
