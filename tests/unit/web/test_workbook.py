"""A workbook that would lose something by being written, on the page."""

from __future__ import annotations

from pathlib import Path

from tests.integration.odd_files import ods_bytes
from tests.unit.campaign.campaigns import make
from tests.unit.web.pages import visiting, words


def test_the_page_says_that_a_workbook_is_only_read(tmp_path: Path) -> None:
    """In its remarks; suggestions are written beside it, and the page says where to look."""
    make(tmp_path)
    toml, current = tmp_path / "headstart.toml", tmp_path / "current.ods"
    current.write_bytes(ods_bytes([["x", "s", "y"], ["0.5", "u", "9"], ["0.25", "v", ""]]))
    toml.write_text('current = "current.ods"\n' + toml.read_text())
    before = current.read_bytes()
    with visiting(tmp_path, learning=True) as visitor:
        page = words(visitor.settled("/experiments"))
        assert "current.ods is only read, for writing into it would lose what only .ods files hold" in page
        answer = visitor.post("/experiments/ask", {"n": "2"}, of="/experiments")
        path = answer.url.path
        page = visitor.settled(path) if path.startswith("/job/") else answer.text
        assert "The workbook is only read, and the new rows are in a file beside it" in words(page)
    assert len((tmp_path / "current-next.csv").read_text("utf-8-sig").splitlines()) == 3
    assert current.read_bytes() == before
