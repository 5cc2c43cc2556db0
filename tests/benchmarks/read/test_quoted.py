"""README and docs say what ``results/`` has, and a quotation that cannot be followed says where it stands."""

from __future__ import annotations

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
REGRET = np.array([[4.0, 2.0, 1.0], [2.0, 2.0, 1.0]])
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
rows: ours = AUTO;
  rgpe
columns: after; 1; five = 5 -->
old<!-- /{kind} -->
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with two sheets, and runs in two folders."""
    write_sheets(SHEETS, tmp_path / "results" / "one", name="table", heading="All")
    for folder, factor in (("one", 1.0), ("two", 10.0)):
        factors = {"gpbo": factor, "auto": 0.1 * factor}
        cells = [Cell("branin[x=1]", m, (0, 1), k * REGRET, *2 * (np.ones(2),)) for m, k in factors.items()]
        write_series(series(Results(tuple(cells))), tmp_path / "results" / folder)
    return tmp_path


def _found(root: Path, text: str) -> str:
    (quotation,) = quotations(text, Path("README.md"), root / "results")
    return quotation.found


def test_readme_and_docs_say_what_results_has() -> None:
    """Where this fails, ``python -m benchmarks docs`` writes them anew."""
    assert renew(ROOT, write=False) == ()


def test_a_changed_digit_is_found_and_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``docs --check`` fails with one wrong digit in the README's table and names its line; ``docs`` rights it."""
    (tmp_path / "results").symlink_to(ROOT / "results")
    right = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = tmp_path / "README.md"
    readme.write_text(right.replace("| headstart, AUTO | 1.6", "| headstart, AUTO | 1.5"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["docs", "--check"])
    assert told.exit_code == 1
    line = right[: right.index("<!-- results:")].count("\n") + 1
    assert told.output == f"README.md, line {line}\n1 quotations differ.\n"
    assert CliRunner().invoke(app, ["docs"]).exit_code == 0
    assert readme.read_text(encoding="utf-8") == right
    assert CliRunner().invoke(app, ["docs", "--check"]).exit_code == 0


def test_a_table_has_the_labels_and_cells_that_its_comment_names(root: Path) -> None:
    """A minus is a minus; ``values`` leave out what follows the number; a row that is absent may be said to be."""
    head = "\n| after | 1 | five |\n| --- | ---: | ---: |\n"
    whole = f"{head}| ours | 1.5 [1, 2] | −0.5 [−1, 0] |\n| rgpe | 2 | 3 |\n"
    assert _found(root, TABLE.format(kind="results")) == whole
    assert _found(root, TABLE.format(kind="values")) == f"{head}| ours | 1.5 | −0.5 |\n| rgpe | 2 | 3 |\n"
    other = TABLE.format(kind="results").replace("  rgpe", "  star").replace("columns:", "absent: –\ncolumns:")
    assert _found(root, other).endswith("| star | – | – |\n")


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("one/table.md :: Regret :: {auto, rgpe} & 1 ::\nmean", "0.2 ± 0.1 and 1e-05"),
        ("one/table.md :: Ranks :: auto :: {1, 5, 1}", "1.5 [1, 2], −0.5 [−1, 0] and 1.5 [1, 2]"),
        ("one/runs.csv.gz :: branin[x=1] :: AUTO :: 3", "0.1 ± 0 (0.1)"),
        ("one/runs.csv.gz :: branin[x=1] against GPBO :: AUTO & 3 :: log10 regret", "−1.00 [−1.00, −1.00]"),
        ("one/runs.csv.gz without auto :: branin[x=1] against two :: GPBO & 1 :: win/tie/loss", "2/0/0"),
    ],
)
def test_a_sentence_has_its_numbers_in_a_row(root: Path, address: str, found: str) -> None:
    """They are of a sheet, or of one that is computed of runs: means, and differences to a method or a folder."""
    assert _found(root, f"It is <!-- results: {address} -->old<!-- /results -->.") == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x <!-- results: one/table.md :: Ranks :: auto :: 1 -->2", "is alone"),
        ("x <!-- results: one/table.md :: Ranks :: auto :: 1 -->2<!-- /values -->", "is alone"),
        ("x <!-- resluts: one/table.md :: Ranks :: auto :: 1 -->2<!-- /results -->", "is alone"),
        ("x <!-- results: one/none.md :: Ranks :: auto :: 1 -->2<!-- /results -->", "no file 'one/none.md'"),
        ("x <!-- results: one/table.md :: R :: auto :: 1 -->2<!-- /results -->", "Regret of all; Ranks"),
        ("x <!-- results: one/table.md :: Ranks :: star :: 1 -->2<!-- /results -->", "begin with 'star'"),
        ("x <!-- results: one/table.md :: Ranks :: auto :: 7 -->2<!-- /results -->", "column be '7'"),
        ("x <!-- results: one/table.md :: Ranks :: auto -->2<!-- /results -->", "FILE :: SHEET :: ROW :: COLUMN"),
        ("x <!-- results: one/runs.csv.gz :: alpine :: AUTO :: 1 -->2<!-- /results -->", "not 'alpine'"),
        (
            "x <!-- results: one/runs.csv.gz :: branin[x=1] against us :: AUTO :: 1 -->2<!-- /results -->",
            "'us' is neither",
        ),
        ("<!-- results: one/table.md :: Ranks :: auto :: 1 -->2<!-- /results -->", "begins a line"),
        (TABLE.format(kind="results").replace("five", "1"), "the same label"),
    ],
)
def test_what_cannot_be_followed_says_where_it_is(root: Path, text: str, said: str) -> None:
    """An ``InputError`` names the page, the line and what is wrong."""
    (root / "README.md").write_text(f"# Title\n\n{text}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^README\.md, line 3: ") as error:
        renew(root, write=True)
    assert said in str(error.value)


def test_what_is_written_is_read_again(root: Path) -> None:
    """``read_sheets`` and ``published`` undo ``write_sheets`` and ``write_series``."""
    found = read_sheets(root / "results" / "one" / "table.md")
    assert [(s.title, s.columns, s.cells) for s in found] == [(s.title, s.columns, s.cells) for s in SHEETS]
    cells = published(root / "results" / "one" / "runs.csv.gz").on("branin[x=1]")
    assert np.allclose(cells["auto"].regret, 0.1 * REGRET)
