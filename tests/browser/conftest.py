"""The browser that all tests share, and a folder for each; without Chromium they are left out, and say so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from tests.browser.browser import CHROMIUM, DRIVER, open_browser


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    if not (CHROMIUM and DRIVER) and os.environ.get("HEADSTART_BROWSER") != "required":
        pytest.skip("Chromium and its driver are not installed: apt-get install chromium chromium-driver")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    opened = open_browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.quit()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "campaign"
    folder.mkdir()
    return folder
