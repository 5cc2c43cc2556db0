"""The door: who may ask, who may change, and how much at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.campaign.campaigns import fingerprint, make
from tests.unit.web.pages import HOST, SAME, field, visiting

from headstart.web.guard import MOST_BODY, MOST_UPLOAD

ROWS = "x,s,y\n0.1,u,1.5\n0.2,v,\n"
CHANGES = [
    "/begin/files", "/begin/remove", "/begin/columns", "/experiments/save", "/experiments/add", "/experiments/undo",
    "/experiments/right", "/begin/rules", "/begin/ranges",
    "/experiments/ask", "/job/again",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path, current=ROWS)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:9", "evil.example:8421", "127.0.0.1", ""])
def test_another_name_for_this_machine_is_not_answered(folder: Path, host: str) -> None:
    """A page elsewhere whose name is made to point here sees nothing."""
    with visiting(folder) as visitor:
        assert visitor.get("/experiments", headers={"host": host}).status_code == 421
        assert visitor.get("/experiments", headers={"host": "localhost:8421"}).status_code == 200


@pytest.mark.parametrize("path", CHANGES)
def test_a_change_that_does_not_come_from_a_page_of_this_server_is_refused(folder: Path, path: str) -> None:
    """Another origin, none at all, a null one, or a form without the token: nothing is changed."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        token = field(visitor.get("/experiments").text, "token")
        data = {"token": str(token), "n": "1", "step": "1", "r3.0": "5"}
        others: list[dict[str, str]] = [
            {"origin": "http://evil.example"}, {"origin": "null"}, {}, {"sec-fetch-site": "cross-site"},
            {"origin": "http://127.0.0.1:9999"}, {"origin": f"ftp://{HOST}"},
        ]  # fmt: skip
        for headers in others:
            assert visitor.client.post(path, data=data, headers=headers).status_code == 403, headers
        for wrong in ("", "x" * 32):
            answer = visitor.client.post(path, data={**data, "token": wrong}, headers=SAME)
            assert answer.status_code == 409
        looked = visitor.client.get(
            path, follow_redirects=False
        )  # a look changes nothing, and goes to the page at most
        assert looked.status_code in (303, 404, 405)
        assert visitor.client.put("/experiments", headers=SAME).status_code == 405
    assert fingerprint(folder) == before


def test_every_answer_says_what_a_browser_may_do_with_it(folder: Path) -> None:
    """No script or style but the page's own files, no frame, no sniffing, and nothing is kept by others."""
    with visiting(folder) as visitor:
        for path in ("/experiments", "/static/desk.js", "/nowhere", "/begin"):
            headers = visitor.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"
        assert visitor.get("/experiments").headers["cache-control"] == "no-store"
        page = visitor.get("/experiments").text
        assert " style=" not in page
        assert "<script>" not in page
        assert " onclick" not in page


def test_beyond_this_machine_the_token_is_needed_once(folder: Path) -> None:
    """The address brings it, a cookie keeps it, and the address of the page does not show it."""
    with visiting(folder, host="0.0.0.0", token="a-long-secret-token") as visitor:
        assert visitor.get("/experiments").status_code == 403
        assert visitor.get("/experiments?token=wrong").status_code == 403
        assert visitor.client.post("/experiments/ask", headers=SAME).status_code == 403
        first = visitor.get("/experiments?token=a-long-secret-token&said=1", follow_redirects=False)
        assert (first.status_code, first.headers["location"]) == (303, "/experiments?said=1")
        cookie = first.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert visitor.get("/experiments").status_code == 200
        assert visitor.post("/experiments/save", {"r3.0": "5"}).status_code == 200
        assert "0.2,v,5" in (folder / "current.csv").read_text()


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/pictures/../x.svg"]
)
def test_no_path_leads_out(folder: Path, path: str) -> None:
    """Neither plain nor encoded."""
    with visiting(folder) as visitor:
        answer = visitor.get(path)
        assert answer.status_code in (404, 303, 200)
        assert "make_app" not in answer.text


def test_bodies_are_bounded(folder: Path) -> None:
    """By what they say, and by what they are."""
    before = fingerprint(folder)
    with visiting(folder) as visitor:
        token = str(field(visitor.get("/experiments").text, "token"))
        huge = {"content-length": str(MOST_BODY + 1), "content-type": "application/x-www-form-urlencoded", **SAME}
        assert visitor.client.post("/experiments/save", content=b"x", headers=huge).status_code == 413
        huge["content-length"] = "-1"
        assert visitor.client.post("/experiments/save", content=b"x", headers=huge).status_code == 413

        def parts() -> object:
            yield f"token={token}&r3.0=".encode()
            for _ in range(3 * MOST_BODY // 65536):
                yield b"1" * 65536

        kind = {"content-type": "application/x-www-form-urlencoded", **SAME}
        assert visitor.client.post("/experiments/save", content=parts(), headers=kind).status_code == 413  # type: ignore[arg-type]
        many = {"token": token} | {f"f{i}": "x" for i in range(25_000)}
        assert visitor.client.post("/experiments/save", data=many, headers=SAME).status_code == 400
        sent = {"content-length": str(MOST_UPLOAD + 1), **SAME}
        assert visitor.client.post("/begin/files", content=b"x", headers=sent).status_code == 413
    assert fingerprint(folder) == before
