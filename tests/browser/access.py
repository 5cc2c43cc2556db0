"""What a page owes to people who do not see it well, or at all, or have no mouse."""

from __future__ import annotations

from selenium.webdriver import Chrome, Keys
from tests.browser.browser import elements, theme

# AA asks for this much between text and what is behind it
CONTRAST = 4.5
MEASURE = """
const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (c) => { const [r, g, b] = c.map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const read = (text) => text.match(/[\\d.]+/g).map(Number);
const behind = (e) => { for (; e; e = e.parentElement) { const c = read(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
const found = [];
for (const e of document.querySelectorAll("main *, header *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!(own || e.matches("input, select")) || !e.checkVisibility() || e.closest("svg, option, .hidden")) continue;
  const [a, b] = [light(read(getComputedStyle(e).color).slice(0, 3)), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < arguments[0]) found.push(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
}
return found;
"""
UNNAMED = """
return [...document.querySelectorAll("img, svg, progress")].filter((e) =>
  !(e.getAttribute("aria-label") || e.alt || (e.labels && e.labels.length) || e.textContent.trim())
).map((e) => e.outerHTML);
"""
# Headers of tables say what they head, nothing jumps the queue of the Tab key, and no name is there twice
UNTIDY = """
const twice = [...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i);
const lost = [...document.querySelectorAll("[aria-describedby]")].flatMap((e) =>
  e.getAttribute("aria-describedby").split(" ").filter((id) => !document.getElementById(id)));
return [...document.querySelectorAll("th:not([scope]), [tabindex]:not([tabindex='0']):not([tabindex='-1'])")]
  .map((e) => e.outerHTML).concat(twice, lost);
"""
PLACE = "return [...document.querySelectorAll('*')].indexOf(document.activeElement)"


def accessible(browser: Chrome) -> None:
    """Contrast in both themes, a name for everything that can be used, headers with a scope, one first heading."""
    for name in ("light", "dark"):
        theme(browser, name)
        assert browser.execute_script(MEASURE, CONTRAST) == [], (browser.current_url, name)
    theme(browser, "light")
    assert browser.execute_script(UNNAMED) == []
    assert browser.execute_script(UNTIDY) == []
    fields = elements(browser, "input:not([type=hidden]), select, textarea, button:not([aria-hidden])")
    shown = [field for field in fields if field.is_displayed()]
    assert [field.get_attribute("outerHTML") for field in shown if not field.accessible_name.strip()] == []
    assert len(elements(browser, "h1")) == 1


def focus_follows_the_page(browser: Chrome, steps: int) -> int:
    """Press Tab so often: what has the focus stands ever later in the page. How many places it was at."""
    browser.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    places: list[int] = []
    for _ in range(steps):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        place = int(browser.execute_script(PLACE))
        if places and place <= places[0]:  # around, to the beginning
            break
        places.append(place)
    assert places == sorted(set(places)), browser.current_url
    return len(places)
