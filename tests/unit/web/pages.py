"""The page of a small campaign, asked directly."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

from httpx2 import Response
from starlette.testclient import TestClient

from headstart.web.app import make_app
from headstart.web.worker import DeskWork

HOST = "127.0.0.1:8421"
SAME = {"origin": f"http://{HOST}"}


class Visitor:
    """Somebody with a browser that sends what browsers send."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, **more: Any) -> Response:
        return self.client.get(path, **more)

    def post(self, path: str, data: dict[str, Any] | None = None, *, of: str = "", **more: Any) -> Response:
        """Send a form that the page ``of`` has, or that the path belongs to."""
        page = self.get(of or f"/{path.split('/')[1]}").text
        hidden = {name: value for name in ("token", "seen") if (value := field(page, name)) is not None}
        return self.client.post(path, data={**hidden, **(data or {})}, headers=SAME, **more)

    def settled(self, path: str) -> str:
        """The page once nothing is worked on for it."""
        end = time.monotonic() + 60
        while True:
            page = self.get(path).text
            work = re.search('data-work="([^"]+)"', page)
            if work is None:
                return page
            while not self.get(work[1]).json()["done"]:
                assert time.monotonic() < end
                time.sleep(0.05)


class Resting:
    """A worker that never gets to its work, for pages that need none."""

    def submit(self, work: DeskWork, on_end: Callable[[DeskWork], None]) -> None:
        """Nothing happens."""

    def stop(self) -> None:
        """Nothing to stop."""


@contextmanager
def visiting(folder: Path, *, learning: bool = False, **options: Any) -> Iterator[Visitor]:
    app = make_app(folder, apart=False, **options)
    if not learning:
        app.state.desk.worker.stop()
        app.state.desk.worker = Resting()
    try:
        with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=True) as client:
            yield Visitor(client)
    finally:
        app.state.desk.worker.stop()


def field(page: str, name: str) -> str | None:
    """The value of the first input of that name."""
    found = re.search(rf'<input[^>]*name="{re.escape(name)}"[^>]*>', page)
    value = found and re.search(r'value="([^"]*)"', found[0])
    return unescape(value[1]) if value else None


def words(page: str) -> str:
    """The page without its tags."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())
