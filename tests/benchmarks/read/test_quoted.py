"""README and docs say what ``results/`` has, and a quotation that cannot be followed says where it stands."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.read.analysis import Cell, Results, published, series
from benchmarks.read.quoted import quotations, renew
from benchmarks.read.sheet import Sheet, read_sheets, write_series, write_sheets
from headstart.errors import InputError

ROOT = Path(__file__).parents[3]
SHEETS = (
    Sheet(
        "a",
        "Regret of all",
        ("method", "after", "mean", "x|y"),
        (("auto", 1, "0.2 ± 0.1", "-3"), ("rgpe", 1, 1e-5, "")),
    ),
    Sheet("b", "Ranks", ("method", "1", "5"), (("auto", "1.5 [1, 2]", "-0.5 [-1, 0]"), ("rgpe", "2", "3"))),
)
TABLE = """<!-- {kind}: one/table.md :: Rank :: {{row}} :: {{column}}
rows: ours = auto;
  rgpe
columns: after; 1; five = 5 -->
{inside}<!-- /{kind} -->
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two sheets and two runs, and a README that quotes nothing."""
    write_sheets(SHEETS, tmp_path / "results" / "one", name="table", heading="All")
    for folder, factor in (("one", 1.0), ("two", 10.0)):
        regret = factor * np.array([[4.0, 2.0, 1.0], [2.0, 2.0, 1.0]])
        cells = [
            Cell("branin[sources=1]", m, (0, 1), k * regret, *2 * (np.ones(2),))
            for m, k in (("gpbo", 1), ("auto", 0.1))
        ]
        write_series(series(Results(tuple(cells))), tmp_path / "results" / folder)
    (tmp_path / "README.md").write_text("")
    return tmp_path


def _quoted(root: Path, text: str) -> str:
    (found,) = (quotation.found for quotation in quotations(text, Path("README.md"), root / "results"))
    return found


def test_readme_and_docs_say_what_results_has() -> None:
    """``python -m benchmarks docs`` has nothing to write: run it where this fails."""
    assert renew(ROOT, write=False) == ()


def test_a_changed_digit_is_found_and_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One digit of the README's first quoted table is enough for ``docs --check`` to fail; without it is written."""
    shutil.copytree(ROOT / "results", tmp_path / "results", ignore=shutil.ignore_patterns("*.png"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    wrong = readme.replace("| headstart, AUTO | 1.6", "| headstart, AUTO | 1.5")
    assert wrong != readme
    (tmp_path / "README.md").write_text(wrong, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["docs", "--check"])
    line = readme[: readme.index("<!-- results:")].count("\n") + 1
    assert told.exit_code == 1
    assert told.output == f"README.md, line {line}\n1 quotations differ.\n"
    assert CliRunner().invoke(app, ["docs"]).exit_code == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == readme
    assert CliRunner().invoke(app, ["docs", "--check"]).exit_code == 0


def test_a_table_has_the_labels_and_cells_that_its_comment_names(root: Path) -> None:
    """Rows and columns have their labels; a minus is a minus; ``values`` leave out what follows the number."""
    head = "\n| after | 1 | five |\n| --- | ---: | ---: |\n"
    whole = f"{head}| ours | 1.5 [1, 2] | −0.5 [−1, 0] |\n| rgpe | 2 | 3 |\n"
    assert _quoted(root, TABLE.format(kind="results", inside="old")) == whole
    assert _quoted(root, TABLE.format(kind="values", inside="")) == f"{head}| ours | 1.5 | −0.5 |\n| rgpe | 2 | 3 |\n"


def test_a_sentence_has_its_numbers_in_a_row(root: Path) -> None:
    """A row may be named by several of its first cells; 1e-05 keeps its hyphen."""
    assert (
        _quoted(root, "It has <!-- values: one/table.md :: Ranks :: auto :: {1, 5} --><!-- /values -->.")
        == "1.5 and −0.5"
    )
    text = "And <!-- results: one/table.md :: Regret :: {auto, rgpe} & 1 ::\nmean --><!-- /results -->."
    assert _quoted(root, text) == "0.2 ± 0.1 and 1e-05"


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("one/runs.csv.gz :: branin[sources=1] :: AUTO :: 3", "0.1 ± 0 (0.1)"),
        ("one/runs.csv.gz :: branin[sources=1] against GPBO :: AUTO & 3 :: log10 regret", "−1.00 [−1.00, −1.00]"),
        ("one/runs.csv.gz without auto :: branin[sources=1] against two :: GPBO & 1 :: win/tie/loss", "2/0/0"),
    ],
)
def test_sheets_of_runs_are_computed(root: Path, address: str, found: str) -> None:
    """Means, differences to a method and differences to the same method elsewhere, as the benchmark has them."""
    assert _quoted(root, f"It is <!-- results: {address} --><!-- /results -->.") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x <!-- results: one/table.md :: Ranks :: auto :: 1 -->2", "is alone"),
        ("x <!-- results: one/table.md :: Ranks :: auto :: 1 -->2<!-- /values -->", "is alone"),
        ("x <!-- /results -->", "is alone"),
        ("x <!-- results: one/none.md :: Ranks :: auto :: 1 -->2<!-- /results -->", "no file 'one/none.md'"),
        ("x <!-- results: one/table.md :: R :: auto :: 1 -->2<!-- /results -->", "Regret of all; Ranks"),
        ("x <!-- results: one/table.md :: Ranks :: star :: 1 -->2<!-- /results -->", "begin with 'star'"),
        ("x <!-- results: one/table.md :: Ranks :: auto :: 7 -->2<!-- /results -->", "column be '7'"),
        ("x <!-- results: one/table.md :: Ranks :: auto -->2<!-- /results -->", "FILE :: SHEET :: ROW :: COLUMN"),
        ("x <!-- results: one/runs.csv.gz :: alpine :: AUTO :: 1 -->2<!-- /results -->", "not 'alpine'"),
        (
            "x <!-- results: one/runs.csv.gz :: branin[sources=1] against us :: AUTO :: 1 -->2<!-- /results -->",
            "'us' is neither",
        ),
        ("<!-- results: one/table.md :: Ranks :: auto :: 1 -->2<!-- /results -->", "begins a line"),
    ],
)
def test_what_cannot_be_followed_says_where_it_is(root: Path, text: str, said: str) -> None:
    """An ``InputError`` names the page, the line and what is wrong."""
    (root / "README.md").write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^README\.md, line 3: ") as error:
        renew(root, write=True)
    assert said in str(error.value)


def test_a_table_may_have_cells_that_are_not_there(root: Path) -> None:
    """They are errors unless the comment says what is shown instead."""
    text = TABLE.format(kind="results", inside="").replace("  rgpe", "  star")
    with pytest.raises(InputError, match="begin with 'star'"):
        _quoted(root, text)
    assert _quoted(root, text.replace("columns:", "absent: –\ncolumns:")).endswith("| star | – | – |\n")


def test_what_is_written_is_read_again(root: Path) -> None:
    """``read_sheets`` and ``published`` undo ``write_sheets`` and ``write_series``."""
    found = read_sheets(root / "results" / "one" / "table.md")
    assert [(s.title, s.columns, s.cells) for s in found] == [(s.title, s.columns, s.cells) for s in SHEETS]
    cells = published(root / "results" / "one" / "runs.csv.gz").on("branin[sources=1]")
    assert np.array_equal(cells["auto"].regret, [[0.4, 0.2, 0.1], [0.2, 0.2, 0.1]])
