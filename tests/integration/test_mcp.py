"""``headstart mcp``: an assistant works in a campaign's folder through the protocol's own client."""

from __future__ import annotations

import asyncio
import csv
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.command import INTERRUPTIBLE, assert_refused, invoke
from tests.integration.pages import ROOT, blocks
from tests.unit.campaign.campaigns import fingerprint, make, value

from headstart.sources.files.safe import alone_in

PAGE = "docs/mcp.md"


def test_without_the_package_it_says_which_extra_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, as every refusal is."""
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert_refused(invoke("mcp", tmp_path), "pip install 'headstart[mcp]'")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Before anything listens."""
    assert_refused(invoke("mcp", tmp_path / "nowhere"), "there is no such folder")


class Assistant:
    """What a client sees: the tools of a server that is a process of its own."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def says(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        (content,) = result.content
        assert not result.is_error, content.text
        return str(content.text)

    async def refuses(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        (content,) = result.content
        assert result.is_error, content.text
        assert content.text.count("\n") == 0
        return str(content.text)


def drive(folder: Path, work: Any) -> None:
    """Start the server over standard input and output, and do this work with it."""
    mcp = pytest.importorskip("mcp", reason="the protocol's package is not installed: pip install 'headstart[mcp]'")

    async def session() -> None:
        own = [*("-c", INTERRUPTIBLE, "mcp"), str(folder)]
        server = mcp.StdioServerParameters(command=sys.executable, args=own, env=dict(os.environ))
        async with mcp.Client(server) as client:
            await work(Assistant(client))

    asyncio.run(session())


@pytest.mark.slow
def test_an_assistant_runs_a_campaign(tmp_path: Path) -> None:
    """It asks what to try, writes results down, and hears the same words as somebody at the command line."""
    folder = make(tmp_path)

    async def work(own: Assistant) -> None:
        listed = await own.client.list_tools()
        assert [tool.name for tool in listed.tools] == ["check", "suggest", "record", "explain", "status"]
        assert all(tool.description for tool in listed.tools)
        told = await own.says("suggest", n=2)
        assert "2 experiments to try" in told
        assert "Fill in the column y" in told
        with (folder / "current.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["y"] for row in rows] == ["", ""]
        assert "Results were written into row 2." in await own.says(
            "record", row=2, cells={"y": value(float(rows[0]["x"]), rows[0]["s"])}
        )
        assert "Marked as failed: row 3." in await own.says("record", row=3, cells={}, failed=True)
        added = await own.says("record", cells={"x": 0.3, "s": "u", "y": value(0.3, "u")})
        assert "An own experiment was added." in added
        assert "Nothing is new." in await own.says("record", row=4, cells={"y": value(0.3, "u")})
        status = await own.says("status")
        assert "y, to be maximised: 2 finished, 1 failed" in status
        assert status == invoke("status", "--quiet", "--folder", folder).output.strip()
        explained = await own.says("explain")
        assert explained == invoke("check", "--quiet", "--folder", folder).output.strip()
        assert "a is " in explained
        compared = await own.says("check", past=["*.csv"], objective=["y"], maximize=True)
        assert "What the past campaigns say" in compared
        asked = {"x": 0.5, "s": "u", "y": 884}
        assert "If the decimal mark has slipped (8.84?)" in await own.refuses("record", cells=asked)
        assert "An own experiment was added." in await own.says("record", cells=asked, right=["y"])

    drive(folder, work)


@pytest.mark.slow
def test_what_cannot_be_is_an_error_of_one_line_and_changes_nothing(tmp_path: Path) -> None:
    """The line is that of the command line, the server goes on, and no file outside the folder is read."""
    (folder := tmp_path / "campaign").mkdir()
    make(folder, current="x,s,y\n0.3,u,\n")
    shutil.copy(folder / "a.csv", tmp_path / "outside.csv")
    before = fingerprint(folder)

    async def work(own: Assistant) -> None:
        assert "-n must be between 1 and 100, but it is 0." in await own.refuses("suggest", n=0)
        assert "there is no experiment in row 9" in await own.refuses("record", row=9, cells={"y": 1.0})
        assert "'high' is not a number" in await own.refuses("record", row=2, cells={"y": "high"})
        assert "'z' is no column of results" in await own.refuses("record", row=2, cells={"z": 1.0})
        for name in ("../outside.csv", str(tmp_path / "outside.csv"), "../*.csv"):
            told = await own.refuses("check", past=[name], objective=["y"])
            assert "outside the campaign's folder" in told
        for name in ("nothing.csv", "nothing/*.csv", ""):
            assert "headstart: " in await own.refuses("check", past=[name], objective=["y"])
        with alone_in(folder):
            assert "another headstart is working in this folder" in await own.refuses("suggest")
            assert "another headstart is working in this folder" in await own.refuses("record", row=2, cells={"y": 3.4})
        (folder / "headstart.toml").rename(folder / "away")
        assert "headstart.toml" in await own.refuses("suggest")
        (folder / "away").rename(folder / "headstart.toml")

    drive(folder, work)
    assert fingerprint(folder) == before


def test_the_page_shows_every_tool() -> None:
    """The page has a row for each of them, and a configuration that names the command."""
    from headstart.cli.mcp import FolderTools

    page = (ROOT / PAGE).read_text(encoding="utf-8")
    tools = [name for name, own in vars(FolderTools).items() if callable(own) and not name.startswith("_")]
    assert re.findall(r"^\| `(\w+)` ", page, re.MULTILINE) == tools
    assert '"args": ["mcp", ' in blocks(PAGE, "json")[0]
