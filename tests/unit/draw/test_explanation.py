"""The pictures behind the verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headstart import InputError
from headstart.draw.explanation import draw_agreement, draw_verdicts
from headstart.models.auto.explanation import Explanation, Silence, SourceVerdict, Verdict
from headstart.models.auto.past_check import PastCheck


def _verdict(i: int, results: int) -> SourceVerdict:
    """Of many kinds, with a long name and one that looks like a formula."""
    name = ("$x_1$", "a campaign with a name that nobody wants to read in a picture", "short")[i % 3]
    history = tuple((n, 0.2 + 0.1 * n * (-1) ** i) for n in range(results + 1))
    interval = (-0.5 + 0.1 * i, 0.7) if results >= 4 else None
    kinds = tuple(Verdict)
    return SourceVerdict(
        f"{name} {i}", kinds[i % 3], "So it is.", 1.0, 0.1 * i, interval, history[-1][1], 0.2 * (i % 3), history
    )


def _explanation(n: int, results: int) -> Explanation:
    history = tuple((k, (0.5, 0.3 - 0.02 * k, 0.2 + 0.02 * k)) for k in range(results + 1))
    names = ("star", "chain", "plain")
    candidates, texts = dict(zip(names, history[-1][1], strict=True)), {name: f"It is {name}." for name in names}
    sources = tuple(_verdict(i, results) for i in range(n))
    return Explanation(sources, candidates, history, results, texts, texts, "plain")


def _check(n: int) -> PastCheck:
    silent = tuple((None, None, Silence.NOISE, Silence.CONSTANT, Silence.TOO_FEW)[i % 5] for i in range(n))
    matrix = np.linspace(-1, 1, n * n).reshape(n, n)
    matrix[[why is not None for why in silent]] = np.nan
    np.fill_diagonal(matrix, 1.0)
    verdicts = tuple(_verdict(i, 0) for i in range(n))
    return PastCheck(verdicts, (9,) * n, tuple(np.linspace(-1, 2, n)), (0.2,) * n, silent, matrix)


def _is_png(path: Path) -> bool:
    content = path.read_bytes()
    return content.startswith(b"\x89PNG") and len(content) > 8_000


@pytest.mark.parametrize("n", [1, 3, 14], ids=["one file", "a few", "too many for numbers in the matrix"])
def test_the_picture_of_past_files_is_drawn(tmp_path: Path, n: int) -> None:
    """Equal for equal files, in a folder that need not be there."""
    path = draw_agreement(_check(n), tmp_path / "new" / "plots")
    assert path == tmp_path / "new" / "plots" / "agreement.png"
    assert _is_png(path)
    before = path.read_bytes()
    assert draw_agreement(_check(n), path.parent).read_bytes() == before


@pytest.mark.parametrize(("n", "results"), [(1, 0), (3, 1), (8, 9)])
def test_the_picture_of_verdicts_is_drawn(tmp_path: Path, n: int, results: int) -> None:
    """Before the first result, too, and with more sources than there are colours."""
    path = draw_verdicts(_explanation(n, results), tmp_path)
    assert path == tmp_path / "verdicts.png"
    assert _is_png(path)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """With the name of the folder."""
    (tmp_path / "plots").touch()
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_verdicts(_explanation(1, 0), tmp_path / "plots")
    with pytest.raises(InputError, match="plots: the folder cannot be made"):
        draw_agreement(_check(1), tmp_path / "plots")
