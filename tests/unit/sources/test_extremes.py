"""What is said about results that lie far from all others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.campaign.campaigns import make, value
from typer.testing import CliRunner

from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.suggestions import noise_of, reference_point
from headstart.cli.main import app
from headstart.draw.campaign import draw_campaign
from headstart.sources.alignment import infinite_in_words
from headstart.sources.raw import finite


def _spoilt(folder: Path, slips: dict[int, str], own: str = "") -> Path:
    """Some results of a.csv, by row of the file, and one more row of current.csv."""
    rows = "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.2, 0.3, 0.5, 0.7, 0.9))
    make(folder, current=f"x,s,y\n{rows}{own}")
    lines = (folder / "a.csv").read_text().splitlines()
    for number, result in slips.items():
        lines[number - 1] = ",".join([*lines[number - 1].split(",")[:-1], result])
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    return folder


def _fitted(folder: Path) -> Fitted:
    return fit_campaign(open_campaign(folder))


def test_nothing_is_said_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    """Ordinary results are no outliers."""
    fitted = _fitted(_spoilt(tmp_path, {}))
    assert fitted.first.alignment.warnings == ()
    assert fitted.first.remarks == ()
    assert not fitted.first.outliers.any()


def test_outliers_are_said_with_file_and_row(tmp_path: Path) -> None:
    """On either side, in the user's units and direction; for the campaign's own results as for past ones."""
    folder = _spoilt(tmp_path, {4: "-1e9", 6: "-3e9", 9: "7e8"}, own="0.6,v,-1e6\n")
    fitted = _fitted(folder)
    (past,), file = fitted.first.alignment.warnings, folder / "a.csv"
    assert str(past) == (
        f"a: 2 of 12 results lie far from all others ({file}, row 6: -3e+09, row 4: -1e+09): they count "
        f"as little worse than the rest; 1 of 12 results lies far from all others ({file}, row 9: 7e+08): it "
        "counts as little better than the rest"
    )
    (own,) = fitted.first.remarks
    assert own == (
        f"{folder / 'current.csv'}: 1 of 6 results lies far from all others (row 7: -1e+06): it counts as little worse "
        "than the rest"
    )


@pytest.mark.parametrize("command", ["status", "suggest", "check", "plot"])
def test_every_command_shows_them(tmp_path: Path, command: str) -> None:
    """On the standard error."""
    folder = _spoilt(tmp_path, {4: "-1e9"}, own="0.6,v,-1e6\n")
    result = CliRunner().invoke(app, [command, "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    assert "a.csv, row 4: -1e+09): it counts as little worse than the rest." in result.stderr
    assert "current.csv: 1 of 6 results lies far from all others (row 7: -1e+06)" in result.stderr


def test_checking_files_shows_them(tmp_path: Path) -> None:
    """Before there is a campaign."""
    folder = _spoilt(tmp_path, {4: "-1e9"})
    arguments = ["check", str(folder / "a.csv"), str(folder / "b.csv"), "--objective", "y", "--maximize"]
    result = CliRunner().invoke(app, [*arguments, "--folder", str(folder)])
    assert result.exit_code == 0, result.output
    assert "a.csv, row 4: -1e+09): it counts as little worse than the rest." in result.stderr


def test_outliers_decide_neither_the_scatter_nor_the_pictures(tmp_path: Path) -> None:
    """A slip in a repeated experiment does not make all results uncertain."""
    fitted = _fitted(_spoilt(tmp_path, {4: "-1e9"}, own="0.3,u,-1e6\n0.3,u,3.6\n0.5,u,\n"))
    assert fitted.first.outliers.tolist() == [False] * 5 + [True, False]
    assert noise_of(fitted.first, reference_point(fitted))[0] < 1
    assert [len(y) for _, y in fitted.first.ordinary_past] == [11, 12]
    assert len(draw_campaign(fitted, tmp_path / "plots")) == 5


def test_infinite_values_become_the_extreme_finite_ones() -> None:
    """NaN stays, and where nothing is finite nothing is known."""
    found = finite(np.array([1.0, np.inf, np.nan, -np.inf, 3.0]))
    assert found.tolist() == pytest.approx([1, 3, np.nan, 1, 3], nan_ok=True)
    assert np.isnan(finite(np.array([np.inf, -np.inf]))).all()
    assert infinite_in_words([1.0, np.inf]) == ("1 of 2 results are infinite and count as the worst or best finite one")
    assert infinite_in_words([1.0, 2.0]) == ""
