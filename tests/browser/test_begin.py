"""The beginning in a real browser: messy files are dropped or picked, and four clicks are enough."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from tests.browser.access import accessible, focus_follows_the_page
from tests.browser.browser import ROOT, Server, click, complaints, element, elements, go_to, settled, text_of, until
from tests.unit.campaign.campaigns import make
from tests.unit.sources.laboratory import SETS, LabSet
from tests.unit.sources.later_laboratories import LATER
from tests.unit.web.test_batches import days

MESSY = sorted((ROOT / "tests" / "integration" / "messy").iterdir())
CELL = "td.result input:not([type=hidden])"
COUNT = """
addEventListener("click", (event) => {
  if (event.isTrusted) sessionStorage.setItem("clicks", 1 + Number(sessionStorage.getItem("clicks")));
}, true);
addEventListener("keydown", () => sessionStorage.setItem("keys", 1 + Number(sessionStorage.getItem("keys"))), true);
"""
DRAG = """
const box = document.querySelector("[data-drop]"), data = new DataTransfer();
for (const [name, content] of arguments[0])
  data.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
const send = (kind) => box.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
const taken = [!send("dragenter"), !send("dragover"), box.classList.contains("over")];
send("drop");
return taken;
"""


@pytest.mark.parametrize("how", ["dropped", pytest.param("picked", marks=pytest.mark.slow)])
def test_three_messy_files_reach_a_suggestion_in_four_clicks(browser: Chrome, home: Path, how: str) -> None:
    """Title rows, units in cells, kelvin, hours, other spellings, a workbook: no command, and nothing to correct."""
    counting = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNT})["identifier"]
    server = Server(home)
    try:
        go_to(browser, server.address("/"))
        browser.execute_script("sessionStorage.clear()")
        if how == "dropped":
            files = [(path.name, base64.b64encode(path.read_bytes()).decode()) for path in MESSY]
            assert browser.execute_script(DRAG, files) == [True, True, True]
        else:
            element(browser, "#pick").send_keys("\n".join(map(str, MESSY)))
        until(lambda: elements(browser, ".columns"))
        assert [e.text for e in elements(browser, ".files li span:first-child")] == [path.name for path in MESSY]
        assert {path.name: path.read_bytes() for path in (home / "past").iterdir()} == {
            path.name: path.read_bytes() for path in MESSY
        }
        rows = {row.find_element(By.CSS_SELECTOR, "strong").text: row for row in elements(browser, ".columns .row")}
        assert "as high as possible, 0 … 100 %" in rows["Ausbeute [%]"].text
        assert "temperatur [K]" in rows["Temperatur [°C]"].text
        assert "40 … 120 °C, steps of 10" in rows["Temperatur [°C]"].text
        assert "--" not in str(element(browser, "main").get_attribute("innerText"))
        click(browser, "button[value=write]")
        until(lambda: "/experiments" in browser.current_url)
        click(browser, ".ask button")
        until(lambda: len(elements(browser, CELL)) == 4, 120)
        picking = 2 if how == "picked" else 1  # the button, and one in the browser's own window; or the drop itself
        assert int(browser.execute_script("return sessionStorage.getItem('clicks')")) + picking <= 4
        assert len((home / "current.csv").read_text().splitlines()) == 5
        assert not browser.execute_script("return sessionStorage.getItem('keys')")
        assert [line for line in complaints(browser) if "Content Security" in line or ".js" in line] == []
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", {"identifier": counting})
        server.kill()


def test_a_slip_is_asked_about_and_settings_are_changed_with_a_click(browser: Chrome, home: Path) -> None:
    """Beside the cell, with what was typed; and the Tab key goes through the page from top to bottom."""
    make(home, current="x,s,y\n0.1,u,1.5\n0.2,v,\n0.3,u,\n")
    server = Server(home)
    try:
        go_to(browser, server.address("/experiments"))
        settled(browser)
        element(browser, "[name='r3.0']").send_keys("884")
        element(browser, "[name='r4.0']").send_keys("7,5")
        click(browser, "#save")
        until(lambda: "Nothing was saved yet" in text_of(browser))
        asked = element(browser, "[name='r3.0']")
        assert asked.get_attribute("value") == "884"
        assert browser.switch_to.active_element == asked
        assert "88 times the largest" in element(browser, "#er3\\.0").text
        accessible(browser)
        click(browser, "button[name=meant]")
        until(lambda: "Saved" in text_of(browser))
        assert (home / "current.csv").read_text().endswith("0.2,v,8.84\n0.3,u,7.5\n")
        click(browser, "#row4 summary")
        click(browser, "#row4 button[name=edit]")
        until(lambda: elements(browser, "[name='s4.0']"))
        assert browser.switch_to.active_element == element(browser, "[name='s4.0']")
        accessible(browser)
        element(browser, "[name='s4.0']").clear()
        element(browser, "[name='s4.0']").send_keys("0,35")
        click(browser, "#row4 td.do button")
        until(lambda: "settings were corrected in row 4" in text_of(browser))
        assert (home / "current.csv").read_text().endswith("0.35,u,7.5\n")
        settled(browser)
        assert focus_follows_the_page(browser, 60) > 20
        go_to(browser, server.address("/begin"))
        element(browser, "#rule0").send_keys("x <= much")
        click(browser, ".rules button")
        until(lambda: elements(browser, "#e-rule0"))
        accessible(browser)
        assert focus_follows_the_page(browser, 30) > 5
        element(browser, "#rule0").clear()
        element(browser, "#rule0").send_keys("x <= 0.9")
        click(browser, ".rules button")
        until(lambda: "rules were changed" in text_of(browser))
        assert 'rule = "x <= 0.9"' in (home / "headstart.toml").read_text()
    finally:
        server.kill()


@pytest.mark.parametrize("own", [SETS[0], *(pytest.param(own, marks=pytest.mark.slow) for own in (*SETS[1:], *LATER))])
def test_from_three_files_of_a_laboratory_to_suggestions_in_three_clicks(
    browser: Chrome, home: Path, own: LabSet
) -> None:
    """Pick the files, begin, suggest: nothing is typed, and what is proposed fits on a screen, or nearly so."""
    (home.parent / "files").mkdir()
    files = own.write(home.parent / "files")
    server = Server(home)
    try:
        go_to(browser, server.address("/"))
        element(browser, "#pick").send_keys("\n".join(map(str, files)))
        until(lambda: elements(browser, ".columns"))
        accessible(browser)
        assert browser.execute_script("return document.documentElement.scrollHeight") < 1250
        click(browser, "button[value=write]")
        until(lambda: "/experiments" in browser.current_url)
        click(browser, ".ask button")
        until(lambda: len((home / "current.csv").read_text().splitlines()) == 5, 120)
        until(lambda: "New: rows" in text_of(browser))
        goal = next(header for header, quantity, _ in own.files[0].columns if quantity == own.goal[1:])
        assert goal in (home / "headstart.toml").read_text()
    finally:
        server.kill()


@pytest.mark.parametrize("shifted", [True, False])
def test_days_are_the_batch_unless_somebody_says_otherwise(browser: Chrome, home: Path, shifted: bool) -> None:
    """Nothing is touched, or 'not used' is chosen: headstart.toml says which."""
    for name, month in (("a.csv", 3), ("b.csv", 6)):
        (home.parent / name).write_bytes(days(month))
    server = Server(home)
    try:
        go_to(browser, server.address("/"))
        element(browser, "#pick").send_keys("\n".join(str(home.parent / name) for name in ("a.csv", "b.csv")))
        until(lambda: "batch: 6 days in 2 files, 4 rows each" in text_of(browser))
        if not shifted:
            click(browser, "[aria-label='change date']")
            click(browser, "[aria-label='date: what it is for'] option[value=ignore]")
            accessible(browser)
            click(browser, ".change[open] button[value=look]")
            until(lambda: "2 columns left out: date, who" in text_of(browser))
        click(browser, "button[value=write]")
        until(lambda: "/experiments" in browser.current_url)
        assert ('\nbatch = "date"' in (home / "headstart.toml").read_text()) is shifted
        header = (home / "current.csv").read_text().splitlines()[0]
        assert header == ("date,x,s,y" if shifted else "x,s,y")
    finally:
        server.kill()
