"""The page in a real browser: from picking the files to the printed report, and whatever goes wrong on the way."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select
from tests.browser.access import accessible
from tests.browser.browser import (
    ROOT,
    Server,
    click,
    complaints,
    element,
    elements,
    go_to,
    open_browser,
    settled,
    text_of,
    until,
)
from tests.unit.campaign.campaigns import make

PAST = ROOT / "examples" / "past"
CELL = "td.result input:not([type=hidden])"

# What reaches beyond the right edge of the window
BEYOND = """
return [...document.querySelectorAll("main *, header *")].filter((e) => e.checkVisibility()
  && !e.closest(".hidden, .skip") && e.getBoundingClientRect().right > innerWidth + 1)
  .map((e) => e.outerHTML.slice(0, 90));
"""


class Served:
    """A folder with a server that outlives the tests: the files are the only state, so each writes its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = Server(folder)

    def begin(self, current: str) -> tuple[Path, Server]:
        shutil.rmtree(self.folder / ".headstart", ignore_errors=True)
        return make(self.folder, current=current), self.server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served") / "campaign"
    folder.mkdir()
    both = Served(folder)
    yield both
    both.server.kill()


def _darkest(browser: Chrome, media: dict[str, object]) -> float:
    """How light the ink of the first picture is, from 0 to 255: the colour in it that is farthest from its ground."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", **media})
    picture = element(browser, "img.picture")
    browser.execute_script("arguments[0].scrollIntoView()", picture)
    grey = np.asarray(Image.open(io.BytesIO(picture.screenshot_as_png)).convert("L"), dtype=float)
    ground = float(np.median(grey))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    return float(grey.flat[int(np.abs(grey - ground).argmax())])


def test_a_campaign_from_picking_the_files_to_the_printed_report(browser: Chrome, home: Path) -> None:
    """Six clicks to the first suggestion; results typed, failed, added, undone; pictures, past, report as PDF."""
    server = Server(home)
    try:
        go_to(browser, server.address("/"))
        element(browser, "#pick").send_keys("\n".join(map(str, sorted(PAST.glob("*.csv")))))  # picking is enough
        until(lambda: elements(browser, ".columns"))
        accessible(browser)
        Select(element(browser, '[aria-label="T [°C]: the same as"]')).select_by_visible_text("temperature_C")
        click(browser, "button[value=compare]")
        until(lambda: elements(browser, "#part table"), 60)
        assert "agrees with" in text_of(browser)
        click(browser, "button[value=write]")
        until(lambda: "/experiments" in browser.current_url)
        assert (home / "headstart.toml").exists()
        click(browser, ".ask button")
        until(lambda: len(elements(browser, CELL)) == 4, 60)
        assert "New: rows 2, 3, 4, 5." in text_of(browser)
        settled(browser)
        assert "2023-amide-a" in element(browser, "tr.past").text  # the best past settings, below the open rows
        click(browser, "#row2 summary")
        assert "rests on" in text_of(browser)
        cells = elements(browser, CELL)
        cells[0].send_keys("71,5", Keys.ARROW_DOWN)
        browser.switch_to.active_element.send_keys("64")
        cells[2].send_keys("80.25", Keys.ENTER)  # Enter saves
        until(lambda: "Saved" in text_of(browser))
        click(browser, "#row5 summary")
        click(browser, "#row5 button[name=failed]")
        until(lambda: "marked as failed" in text_of(browser))
        rows = (home / "current.csv").read_text().splitlines()
        assert [row.rsplit(",", 1)[1] for row in rows[1:]] == ["71.5", "64", "80.25", "failed"]
        click(browser, "form[action='/experiments/undo'] button")
        until(lambda: "Undone" in text_of(browser))
        assert (home / "current.csv").read_text().splitlines()[-1].endswith(",")
        for name, value in (("p0", "85"), ("p1", "60"), ("p2", "0,11"), ("m0", "78")):
            element(browser, f"#{name}").send_keys(value)
        click(browser, ".own button:not(.hidden)")
        until(lambda: "own experiment was added" in text_of(browser))
        settled(browser)
        accessible(browser)
        go_to(browser, server.address("/pictures"))
        settled(browser)
        until(lambda: len(elements(browser, "img.picture")) >= 4)
        sizes = "return [...document.images].map((i) => i.complete && i.naturalWidth > 100)"
        until(lambda: all(browser.execute_script(sizes)))
        accessible(browser)
        slices = element(browser, "img.slices")
        before = element(browser, "[data-readout]").text
        panel = panels_of(str(slices.get_attribute("src")))[0]
        left, top, right, bottom = panel["box"]  # from the middle of the picture to a place in the first panel
        there = ((left + 0.75 * (right - left) - 0.5), (top + bottom) / 2 - 0.5)
        place = [round(share * slices.size[side]) for share, side in zip(there, ("width", "height"), strict=True)]
        ActionChains(browser).move_to_element_with_offset(slices, *place).perform()
        until(lambda: element(browser, "[data-readout]").text != before)
        ActionChains(browser).move_to_element_with_offset(slices, *place).click().perform()
        low, high = panel["axes"][0]["ends"]
        expected = pytest.approx(low + 0.75 * (high - low), abs=0.02 * (high - low))
        until(lambda: float(str(element(browser, "#v0").get_attribute("value"))) == expected)
        assert "v0=" in browser.current_url
        until(lambda: all(browser.execute_script(sizes)))
        go_to(browser, server.address("/past"))
        settled(browser)
        assert "2023-amide-a" in text_of(browser)
        accessible(browser)
        go_to(browser, server.address("/report"))
        settled(browser)
        accessible(browser)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        assert _darkest(browser, {"features": []}) < 90  # ink on a light page
        assert _darkest(browser, {"features": dark}) > 90  # light ink
        assert _darkest(browser, {"media": "print", "features": dark}) < 90  # paper is light whatever the theme
        printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})["data"])
        assert printed.startswith(b"%PDF")
        assert len(printed) > 20_000
        assert [line for line in complaints(browser) if "Content Security" in line or ".js" in line] == []
    finally:
        server.kill()


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_cut_off_and_the_field_for_a_result_is_in_sight(browser: Chrome, served: Served, width: int) -> None:
    """At the width of a screen and of a telephone: no page is wider, and on that a row's field comes first."""
    _, server = served.begin("x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("/begin", "/experiments", "/pictures", "/past", "/report"):
            go_to(browser, server.address(path))
            settled(browser)
            for summary in elements(browser, ".rows summary"):
                browser.execute_script("arguments[0].parentElement.open = true", summary)
            assert browser.execute_script(BEYOND) == [], path
            if path == "/experiments":
                field, setting = (element(browser, f"#row3 {what}") for what in ("[name='r3.0']", "td.setting"))
                assert (field.location["y"] < setting.location["y"]) == (width < 500)
                pictures = "return [...document.images].map((i) => i.currentSrc.includes('narrow'))"
                assert all(narrow == (width < 500) for narrow in browser.execute_script(pictures))
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_finger_reads_and_moves_slices_and_contours(browser: Chrome, served: Served) -> None:
    """A drag shows the numbers under it, in sight; a tap goes there, in the narrow pictures of a telephone."""
    _, server = served.begin("x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n")
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def touch(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y} for x, y in places]
        browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def tap(what: str, across: float, up: float, arrived: Callable[[], bool]) -> None:
        """Again where nothing came of it, as a person does: a browser takes a tap soon after a drag for its end."""

        def once() -> bool:
            if not arrived():
                touch("touchStart", place_in(element(browser, what), across, up))
                touch("touchEnd")
                time.sleep(2)
            return arrived()

        until(once)

    def place_in(picture: WebElement, across: float, up: float) -> tuple[float, float]:
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", picture)
        box = browser.execute_script("return arguments[0].getBoundingClientRect().toJSON()", picture)
        left, top, right, bottom = panels_of(str(picture.get_attribute("currentSrc")))[0]["box"]
        return (
            box["x"] + box["width"] * (left + across * (right - left)),
            box["y"] + box["height"] * (bottom - up * (bottom - top)),
        )

    try:
        go_to(browser, server.address("/pictures"))
        settled(browser)
        picture = element(browser, "#slices img.slices")
        until(lambda: browser.execute_script("return arguments[0].naturalWidth > 0", picture))
        readout = element(browser, "#slices [data-readout]")
        before = readout.text
        x, y = place_in(picture, 0.3, 0.5)
        touch("touchStart", (x, y))
        for step in range(1, 6):
            touch("touchMove", (x + 10 * step, y))
        until(lambda: readout.text != before)
        assert browser.execute_script("return arguments[0].getBoundingClientRect().top", readout) >= 0
        touch("touchEnd")
        until(lambda: readout.text == before)  # what is below the readout stands where it stood
        slices = "#slices img.slices"
        tap(slices, 0.8, 0.5, lambda: float(str(element(browser, "#v0").get_attribute("value"))) > 0.7)
        assert float(str(element(browser, "#v0").get_attribute("value"))) == pytest.approx(0.8, abs=0.06)
        loaded = "return [...document.querySelectorAll('img.slices')].every((i) => i.complete && i.naturalWidth > 0)"
        until(lambda: browser.execute_script(loaded))
        tap("[data-contour] img.slices", 0.3, 0.1, lambda: browser.current_url.endswith("#two"))
        assert float(str(element(browser, "#v0").get_attribute("value"))) == pytest.approx(0.3, abs=0.06)
        assert element(browser, "#v1").get_attribute("value") == "u"
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def panels_of(address: str) -> list[dict[str, Any]]:
    """Where the panels of a picture are, as it says itself."""
    with urlopen(address) as answer:
        found = re.search('data-panels="([^"]+)"', answer.read().decode())
    assert found
    panels: list[dict[str, Any]] = json.loads(unquote(found[1]))
    return panels


def test_what_is_wrong_stands_beside_its_cell_with_what_was_typed(browser: Chrome, served: Served) -> None:
    """A text, a number that could be two; and leaving with unsaved cells is asked about."""
    home, server = served.begin("x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n")
    go_to(browser, server.address("/experiments"))
    element(browser, "[name='r3.0']").send_keys("about 3")
    element(browser, "[name='r4.0']").send_keys("1,234")
    click(browser, "#save")
    until(lambda: "Nothing was saved" in text_of(browser))
    wrong = elements(browser, "[aria-invalid]")
    assert [cell.get_attribute("value") for cell in wrong] == ["about 3", "1,234"]
    assert browser.switch_to.active_element == wrong[0]
    told = element(browser, "#" + str(wrong[0].get_attribute("aria-describedby")).replace(".", "\\."))
    assert "is not a number" in told.text
    assert (home / "current.csv").read_text().endswith("0.2,v,\n0.3,u,\n")
    accessible(browser)
    element(browser, "[name='r3.0']").send_keys("!")
    leaving = "const e = new Event('beforeunload', { cancelable: true }); dispatchEvent(e); return e.defaultPrevented"
    assert browser.execute_script(leaving)  # the browser asks first
    go_to(browser, server.address("/nowhere"))
    assert "no such page" in text_of(browser)
    (home / "current.csv").write_text("x,s,y\n0.1,u,oops\n")
    go_to(browser, server.address("/experiments"))
    assert "row 2, column 'y': 'oops'" in text_of(browser)


def test_two_windows_at_once_and_a_server_that_is_killed_and_started_again(browser: Chrome, served: Served) -> None:
    """Who is second is told and loses nothing; a page from before the crash is shown again with what was typed."""
    home, server = served.begin("x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n")
    first = browser.current_window_handle
    go_to(browser, server.address("/experiments"))
    browser.switch_to.new_window("tab")
    second = browser.current_window_handle
    go_to(browser, server.address("/experiments"))
    element(browser, "[name='r3.0']").send_keys("9")
    click(browser, "#save")
    until(lambda: "Saved" in text_of(browser))
    browser.switch_to.window(first)
    element(browser, "[name='r3.0']").send_keys("8")
    element(browser, "[name='r4.0']").send_keys("7")
    click(browser, "#save")
    until(lambda: "Somebody else was faster" in text_of(browser))
    assert element(browser, "[name='r3.0']").get_attribute("value") == "8"
    assert "somebody else wrote 9 here" in text_of(browser)
    assert (home / "current.csv").read_text().endswith("0.2,v,9\n0.3,u,\n")
    click(browser, "#save")
    until(lambda: "Saved" in text_of(browser))
    assert (home / "current.csv").read_text().endswith("0.2,v,8\n0.3,u,7\n")
    element(browser, "[name='r4.0']").send_keys(",5")
    port = server.port
    server.kill()
    assert not list(home.glob("*.tmp"))
    served.server = Server(home, port=port)
    click(browser, "#save")
    until(lambda: "started anew" in text_of(browser))
    assert element(browser, "[name='r4.0']").get_attribute("value") == "7,5"
    click(browser, "#save")
    until(lambda: "Saved" in text_of(browser))
    assert (home / "current.csv").read_text().endswith("0.3,u,7.5\n")
    browser.switch_to.window(second)
    browser.close()
    browser.switch_to.window(first)


def test_without_a_script_everything_but_the_mouse_works(tmp_path: Path, served: Served) -> None:
    """Plain forms and pages that renew themselves."""
    home, server = served.begin("x,s,y\n0.1,u,1.5\n0.2,v,\n")
    plain = open_browser(tmp_path / "plain", script=False)
    try:
        go_to(plain, server.address("/experiments"))
        element(plain, "[name='r3.0']").send_keys("2,5")
        element(plain, "#save").click()
        until(lambda: "Saved" in text_of(plain))
        element(plain, ".ask button").click()
        until(lambda: "New: rows" in text_of(plain), 60)
        assert len((home / "current.csv").read_text().splitlines()) == 7
        go_to(plain, server.address("/pictures"))
        until(lambda: elements(plain, "#v0"), 60)
        element(plain, "#v0").clear()
        element(plain, "#v0").send_keys("0.9")
        element(plain, "#point button").click()
        until(lambda: "v0=0.9" in plain.current_url)
        address = str(element(plain, "img.slices").get_attribute("src"))
        assert "v0=0.9" in address
        with urlopen(address) as answer:
            assert answer.headers["content-type"] == "image/svg+xml"
    finally:
        plain.quit()
