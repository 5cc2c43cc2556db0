"""Pictures, past and report; predictions of any point; and how long a page takes."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from tests.unit.campaign.several import make_several, some_rows
from tests.unit.web.pages import Visitor, visiting, words

from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.suggestions import outlooks_at
from headstart.web.pages.reading import _listed

SETTINGS = [(0.2, 0.2, "u"), (0.5, 0.3, "u"), (0.4, 0.4, "v"), (0.3, 0.1, "u")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_several(tmp_path_factory.mktemp("several"), some_rows(SETTINGS) + "0.5,0.2,u,,,,\n")


@pytest.fixture(scope="module")
def visitor(folder: Path) -> Iterator[Visitor]:
    with visiting(folder, learning=True) as somebody:
        yield somebody


def test_pictures_are_svg_that_follows_the_theme(visitor: Visitor) -> None:
    """All pictures of the command line, and of two parameters at once; each readable, for both widths, no script."""
    page = visitor.settled("/pictures")
    shown = re.findall(r'src="(/pictures/[^"]+)"', page)
    assert {path.partition("?")[0][10:-4] for path in shown} == {
        *("slices/0", "slices/1", "slices/2", "contour", "progress", "front", "predicted", "importance"),
        *(f"{kind}-{name}" for kind in ("sources", "verdicts") for name in ("y", "cost", "dirt")),
    }
    narrow = re.findall(r'srcset="(/pictures/[^"]+)"', page)
    assert len(narrow) == len(shown)
    for path in ("/pictures/slices-y.svg", *map(unescape, shown), *map(unescape, narrow)):
        answer = visitor.get(path)
        root = ElementTree.fromstring(answer.content)
        assert root.tag.endswith("svg")
        assert b"prefers-color-scheme: dark" in answer.content
        assert b"<script" not in answer.content
        assert "style-src 'unsafe-inline'" in answer.headers["content-security-policy"]
    assert visitor.get("/pictures/nothing.svg").status_code == 404


def test_predictions_of_a_point_are_the_models(visitor: Visitor, folder: Path) -> None:
    """Median and 95 % range of a measurement of every outcome, to the digits shown, and how probably limits hold."""
    visitor.settled("/experiments")
    answer = visitor.get("/pictures/predict?v0=0,25&v1=0.3&v2=v").json()
    row = {"a": 0.25, "b": 0.3, "s": "v"}
    assert answer["point"] == row
    fitted = fit_campaign(open_campaign(folder))
    (outlook,) = outlooks_at(fitted, [row])
    for own, found in zip(fitted.outcomes, answer["expected"], strict=True):
        assert found["outcome"] == own.column.label
        X = own.alignment.space.encode([row])
        low, middle, high = sorted(own.sign * float(own.posterior.quantile(X, p)) for p in (0.025, 0.5, 0.975))
        shown = re.findall(r"-?\d+\.?\d*", found["text"])
        half = 0.5 * 10.0 ** -len(shown[0].partition(".")[2])
        assert len(shown) == 3
        assert high - low > 10 * half
        assert [float(text) for text in shown] == pytest.approx([middle, low, high], rel=0, abs=1.001 * half)
    assert answer["within"] == f"{100 * outlook.within:.0f} %"


def test_a_contour_is_of_what_is_asked_for(visitor: Visitor) -> None:
    """Any two parameters and any outcome; what makes no sense is the first two of the first."""
    visitor.settled("/experiments")
    plain, other, of = (visitor.get(f"/pictures/contour.svg?{q}").content for q in ("", "a=2&b=1", "a=0&b=1&o=2"))
    assert len({plain, other, of}) == 3
    for nonsense in ("a=x&b=99&o=-1", "a=0&b=0", "a=1000000000000000000000"):
        assert visitor.get(f"/pictures/contour.svg?{nonsense}").content == plain
    page = visitor.get("/pictures?a=2&b=1&o=1&v0=0.25").text
    assert re.search(r'<option value="2" selected>s</option>', page)
    assert "contour.svg?a=2&amp;b=1&amp;o=1&amp;v=" in page
    assert 'name="v0" value="0.25"' in page  # the point stays when two others are asked for
    assert visitor.get("/pictures/contour.svg?v0=abc").status_code == 422


@pytest.mark.parametrize("query", ["v0=abc", "v0=7", "v2=w", "v0=nan", "v1=1e999"])
def test_a_point_that_is_none_is_refused(visitor: Visitor, query: str) -> None:
    """In words, on the page and for the script."""
    visitor.settled("/experiments")
    answer = visitor.get(f"/pictures/predict?{query}")
    assert answer.status_code == 422
    assert answer.json()["wrong"]
    page = visitor.get(f"/pictures?{query}")
    assert page.status_code == 200
    assert 'role="alert"' in page.text


def _panels(svg: str) -> list[dict[str, Any]]:
    text = unquote(re.findall(r'data-panels="([^"]+)"', svg)[0])
    assert "NaN" not in text  # which browsers do not read
    found: list[dict[str, Any]] = json.loads(text)
    return found


def test_slices_go_through_the_point(visitor: Visitor) -> None:
    """A picture for every outcome, which moves with the point; the script is told where its panels are."""
    visitor.settled("/experiments")
    one, other = (visitor.get(f"/pictures/slices?v0={v}").text for v in ("0.1", "0.9"))
    pictures = [[unescape(path) for path in re.findall(r' src="([^"]+)"', page)] for page in (one, other)]
    assert [len(paths) for paths in pictures] == [3, 3]
    drawn = [[visitor.get(path).content for path in paths] for paths in pictures]
    assert all(a != b for a, b in zip(*drawn, strict=True))
    for path in (pictures[0][0], f"{pictures[0][0]}&narrow"):
        panels = _panels(visitor.get(path).text)
        assert [panel["axes"][0]["name"] for panel in panels] == ["v0", "v1", "v2"]
        for panel in panels:
            left, top, right, bottom = panel["box"]
            assert 0 < left < right < 1
            assert 0 < top < bottom < 1
        assert panels[0]["axes"][0]["range"] == [0, 1]
        assert panels[2]["axes"][0]["choices"] == ["u", "v"]
        assert all(len(panel["axes"]) == 1 for panel in panels)
        lefts = {panel["box"][0] for panel in panels}
        assert (len(lefts) == 1) == ("narrow" in path)  # one below the other
    (panel,) = _panels(visitor.get("/pictures/contour.svg?a=0&b=2").text)
    assert [axis["name"] for axis in panel["axes"]] == ["v0", "v2"]
    assert " style=" not in one
    assert visitor.get("/pictures/slices/3.svg").status_code == 404
    assert visitor.get("/pictures/slices/0.svg?v0=abc").status_code == 422


def test_the_past_page_has_a_verdict_and_a_reason_for_every_outcome(visitor: Visitor) -> None:
    """Also for an outcome that only one past file knows."""
    page = words(visitor.settled("/past"))
    for text in ("old", "older", "related", "Left out", "believed", "after 4 results"):
        assert text in page


def test_of_many_campaigns_a_table_names_a_few() -> None:
    """With how many more there are; six are all named."""
    assert _listed([]) == "–"
    assert _listed(list("abcdef")) == "a, b, c, d, e, f"
    assert _listed(list("abcdefg")) == "a, b, c, d, e and 2 more"


def test_the_report_says_everything_on_one_page(visitor: Visitor) -> None:
    """Goal, space, what was tried, the best, what was learnt, what the past was worth, and the versions."""
    page = words(visitor.settled("/report"))
    for text in (
        "to be maximised", "dirt: at most 2", "0 … 1", "a + b <= 1", "The best", "What was learnt", "scatters by",
        "What the past was worth", "4 finished, 1 pending, 0 failed", "headstart", "torch", "headstart.toml",
    ):  # fmt: skip
        assert text in page, text


@pytest.mark.slow
def test_a_page_takes_less_than_a_tenth_of_a_second(visitor: Visitor) -> None:
    """Of everything but learning and drawing; the median of five, on a machine that does other things too."""
    for path in ("/experiments", "/pictures", "/report"):
        visitor.settled(path)
    for path in ("/experiments", "/past", "/report", "/begin", "/pictures/progress.svg"):
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            assert visitor.get(path).status_code == 200
            times.append(time.perf_counter() - begin)
        assert statistics.median(times) < 0.2, (path, times)
