"""A real browser, and a real server beside it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

CHROMIUM = shutil.which("chromium") or ""
DRIVER = shutil.which("chromedriver") or ""
ROOT = Path(__file__).parents[2]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-dev-shm-usage", "--window-size=1280,1000",
)  # fmt: skip
START = "from headstart.cli.main import app\nif __name__ == '__main__':\n    app()\n"


class Server:
    """``headstart serve`` as a process of its own."""

    def __init__(self, folder: Path, *, port: int = 0) -> None:
        script = folder.parent / "start.py"
        script.write_text(START)
        command = [sys.executable, str(script), "serve", str(folder), "--port", str(port)]
        threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **threads, "PYTHONPATH": source}
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line
        self.port = int(found[1])
        until(self._answers)

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def open_browser(profile: Path, *, script: bool = True) -> Chrome:
    """A fresh browser without a past of its own."""
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if not script:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options=options, service=Service(DRIVER))


def until(what: Callable[[], Any], seconds: float = 40.0) -> Any:
    """What it gives as soon as it gives something."""
    end = time.monotonic() + seconds
    while True:
        try:
            found = what()
        except Exception:
            if time.monotonic() > end:
                raise
            found = None
        if found or time.monotonic() > end:
            assert found, "it did not happen in time"
            return found
        time.sleep(0.1)


def element(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, selector)


def click(browser: Chrome, selector: str) -> None:
    """Click as soon as it can be: a page that learns moves what stands below what it says."""

    def clicked() -> bool:
        element(browser, selector).click()
        return True

    until(clicked)


def elements(browser: Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements(By.CSS_SELECTOR, selector)


def text_of(browser: Chrome) -> str:
    return element(browser, "main").text


def complaints(browser: Chrome) -> list[str]:
    """What the browser's console has against the page: scripts that fail, policies that are broken."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def theme(browser: Chrome, name: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": name}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def go_to(browser: Chrome, address: str) -> None:
    """Open an address, whatever is left behind."""
    browser.get(address)
    with suppress(NoAlertPresentException):
        browser.switch_to.alert.accept()


def settled(browser: Chrome) -> None:
    """Wait until nothing is worked on for the page."""
    until(lambda: not elements(browser, "[data-work]"), 120)
