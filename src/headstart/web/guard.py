"""Who may ask, and who may change something: the door of the page.

- Only names of this machine are answered (a page elsewhere cannot make its own name point here).
- Beyond this machine nobody gets in without the token, which the first address carries and a cookie keeps.
- A change comes from a page of this server alone: its origin says so, and so does the form's own token (``forms``).
- Bodies are bounded; answers say what a browser may do with them.
"""

from __future__ import annotations

import secrets
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_UPLOAD = 64 * 1024 * 1024
MOST_BODY = 2 * 1024 * 1024
UPLOADS = "/begin/files"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_WHOLE_NETWORK = ("0.0.0.0", "::", "")  # told by the user, and then a token is needed
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A picture is a document of its own: it has styles in it, and may do nothing else
_PICTURE = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


def is_local(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host in _LOCAL


class Guard:
    """Lets through what may pass. ``token`` "" asks for none."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str = "") -> None:
        self.app = app
        names = _LOCAL if is_local(host) else () if host in _WHOLE_NETWORK else (host,)
        written = [f"[{name}]" if ":" in name else name for name in names]
        self.hosts = {f"{name}:{port}" for name in written} | ({*written} if port == 80 else set())
        self.token = token
        self.cookie = f"headstart-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        most = MOST_UPLOAD if scope["path"] == UPLOADS else MOST_BODY
        refusal = self._refusal(scope, Headers(scope=scope), most)
        await (refusal or self.app)(scope, _bounded(receive, most), _marked(send))

    def _refusal(self, scope: Scope, headers: Headers, most: int) -> Response | None:
        host, length = headers.get("host", ""), headers.get("content-length", "0")
        if self.hosts and host.lower() not in self.hosts:
            return PlainTextResponse("This address is not served here.", 421)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if self.token:
            given = dict(query).get("token", "")
            if given and secrets.compare_digest(given.encode(), self.token.encode()):
                rest = urlencode([(key, value) for key, value in query if key != "token"])
                answer = RedirectResponse(scope["path"] + (f"?{rest}" if rest else ""), 303)
                answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
                return answer
            kept = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
            if not secrets.compare_digest(kept.encode(), self.token.encode()):
                return PlainTextResponse(
                    "This page needs the token that 'headstart serve' printed: open the whole address.", 403
                )
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET and POST.", 405)
        if scope["method"] == "POST" and not _same_origin(headers, host):
            return PlainTextResponse("A change must come from a page of this server. Nothing was changed.", 403)
        if not length.isdigit() or int(length) > most:
            told = f"That is too much: at most {most // 1024**2} MB at once. Nothing was changed."
            return PlainTextResponse(told, 413)
        return None


def _same_origin(headers: Headers, host: str) -> bool:
    """Whether a page of this very server sends it, as the browser says; one that says nothing is not believed."""
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() == host.lower() and urlsplit(origin).scheme in ("http", "https")
    return headers.get("sec-fetch-site") == "same-origin"


def _bounded(receive: Receive, most: int) -> Receive:
    got = 0

    async def counted() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > most:
            raise HTTPException(413, "That is too much at once. Nothing was changed.")
        return message

    return counted


def _marked(send: Send) -> Send:
    async def marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for key, value in _HEADERS.items():
                headers[key] = value
            picture = headers.get("content-type", "").startswith("image/svg")
            headers["content-security-policy"] = _PICTURE if picture else _POLICY
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return marked
