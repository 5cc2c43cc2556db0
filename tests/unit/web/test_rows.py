"""How rows are shown: the opening picture, bars with their numbers, past settings, and the table as a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import make
from tests.unit.campaign.several import make_several, some_rows
from tests.unit.web.pages import Visitor, visiting, words

from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Range
from headstart.campaign.suggestions import RowOutlook
from headstart.web.pages.rows import Bars, fits, settings_in_words

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n"
SEVERAL = [(0.2, 0.2, "u"), (0.5, 0.3, "u"), (0.4, 0.4, "v"), (0.3, 0.1, "u")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("rows"), current=ROWS)


@pytest.fixture(scope="module")
def visitor(folder: Path) -> Iterator[Visitor]:
    with visiting(folder, learning=True) as somebody:
        somebody.settled("/experiments")
        yield somebody


def test_a_bar_is_a_share_of_the_scale_of_all_rows(folder: Path) -> None:
    """From the lowest end of all rows to the highest, the best so far among them."""
    outlooks = [RowOutlook({}, {"y": Range(*numbers)}, 1.0, ()) for numbers in ((4.0, 2.0, 6.0), (8.0, 7.0, 11.5))]
    bars = Bars.of(open_campaign(folder), outlooks)  # whose best is 1.5
    text, bar = bars.told("y", outlooks[0])
    assert text == "4.0 (2.0 … 6.0)"
    assert bar is not None
    assert (bar.low, bar.middle, bar.high, bar.mark) == (5.0, 25.0, 45.0, 0.0)
    assert bar.width == 40.0
    unknown = RowOutlook({}, {"y": Range(*[float("nan")] * 3)}, 1.0, ())
    assert Bars.of(open_campaign(folder), [unknown]).told("y", unknown) == ("not known yet", None)


def test_every_bar_has_its_numbers_beside_it_and_no_style_of_its_own(visitor: Visitor) -> None:
    """Open rows and past settings alike; the page's policy allows no style attributes."""
    page = visitor.get("/experiments").text
    bars = re.findall(r'<svg class="bar".*?</svg><span class="figures">([^<]+)</span>', page, flags=re.DOTALL)
    assert len(bars) == 2 + 3
    assert all(re.fullmatch(r"-?[\d.]+ \(-?[\d.]+ … -?[\d.]+\)", text) for text in bars)
    assert " style=" not in page


def test_the_page_opens_with_a_picture_for_both_widths(visitor: Visitor) -> None:
    """The same picture as that of the command line; narrower for a telephone."""
    page = visitor.get("/experiments").text
    narrow = unescape(re.findall(r'srcset="(/experiments/progress.svg[^"]+)"', page)[0])
    wide = unescape(re.findall(r'src="(/experiments/progress.svg[^"]+)"', page)[0])
    assert page.index("progress.svg") < page.index("To do")
    widths = []
    for path in (narrow, wide):
        answer = visitor.get(path)
        assert answer.headers["content-type"] == "image/svg+xml"
        widths.append(float(re.findall(r'<svg[^>]* width="([\d.]+)pt"', answer.text)[0]))
    assert widths[0] < 300 < widths[1]


def test_the_best_past_settings_can_be_tried_again(tmp_path: Path) -> None:
    """They stand below the open rows with what was measured then; one click makes a row of them."""
    home = make(tmp_path, current=ROWS)
    with visiting(home, learning=True) as visitor:
        page = words(visitor.settled("/experiments"))
        past = page[page.index("past 0.542 u") : page.index("Green rows")]
        assert "9.992 in a" in past
        form = {"past": "0"}
        evidence = re.findall(r'name="evidence" value="([^"]+)"', visitor.get("/experiments").text)[0]
        stale = visitor.post("/experiments/again", {**form, "evidence": "old"}, of="/experiments")
        assert stale.status_code == 409
        answer = visitor.post("/experiments/again", {**form, "evidence": evidence}, of="/experiments")
        assert "Saved: row 5 has past settings." in answer.text
        assert (home / "current.csv").read_text() == f"{ROWS}0.542,u,\n"
        assert "the settings of row 5" in words(visitor.get("/experiments").text)
        nothing = visitor.post("/experiments/again", {"past": "7", "evidence": evidence}, of="/experiments")
        assert nothing.status_code == 409


def test_the_table_can_be_downloaded_with_what_is_expected(tmp_path: Path) -> None:
    """Every experiment with its state, results and errors; open rows with medians, ranges, and limits."""
    home = make_several(tmp_path, some_rows(SEVERAL) + "0.5,0.2,u,,,12.5,\n")
    with visiting(home, learning=True) as visitor:
        visitor.settled("/experiments")
        answer = visitor.get("/experiments/table.csv")
        assert "attachment" in answer.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert [row["row"] for row in rows] == ["2", "3", "4", "5", "6"]
    assert rows[0]["y_sd"] == "0.5"
    assert (rows[0]["state"], rows[0]["expected y"]) == ("finished", "")
    last = rows[-1]
    assert (last["state"], last["y"], last["cost"], last["expected cost"]) == ("pending", "", "12.5", "")
    low, middle, high = (float(last[f"expected y{end}"]) for end in (" from", "", " to"))
    assert low < middle < high
    assert 0 <= float(last["limits hold"]) <= 1


def test_a_decimal_comma_stays_one_in_the_table(tmp_path: Path) -> None:
    """With semicolons between the cells."""
    home = make(tmp_path, current="x;s;y\n0,1;u;1,5\n")
    with visiting(home) as visitor:
        text = visitor.get("/experiments/table.csv").content.decode("utf-8-sig")
    assert text.splitlines()[1] == "2;finished;0,1;u;1,5;;;"


def test_many_settings_share_a_cell(tmp_path: Path) -> None:
    """So that no table is wider than a screen; numbers without a unit have their names in words."""
    campaign = open_campaign(make_several(tmp_path, some_rows(SEVERAL)))
    assert fits(campaign)
    assert settings_in_words(campaign, campaign.experiments[0]) == "a 0.2 · b 0.2 · u"
    toml = tmp_path / "headstart.toml"
    more = "".join(f'[parameters.one_more_of_many_{i}]\nkind = "fixed"\nvalue = {i}\n' for i in range(4))
    toml.write_text(toml.read_text().replace("[[rules]]", f"{more}\n[[rules]]", 1))
    assert not fits(open_campaign(tmp_path))
    with visiting(tmp_path) as visitor:
        assert '<dl class="chips">' in visitor.get("/experiments").text
