"""What all pages share: the frame around them, where they go next, and the forms that they take."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from headstart.web.desk import Desk
from headstart.web.worker import DeskWork

_MOST_FIELDS = 20_000
_MOST_FILES = 200
_SAID = 100  # sentences that are kept for the pages that are going to say them
_TABS = (
    ("/begin", "Begin"),
    ("/experiments", "Experiments"),
    ("/pictures", "Pictures"),
    ("/past", "Past"),
    ("/report", "Report"),
)


class StaleFormError(Exception):
    """A form of a page that another process made: it was open while the server was started anew."""

    def __init__(self, form: FormData) -> None:
        super().__init__("the form is older than the server")
        self.form = form


def posted(handle: Callable[[Request, FormData], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of forms, bounded, with the token that only a page of this process has."""

    async def answer(request: Request) -> Response:
        # as a context, so that the temporary files of an upload are gone afterwards
        async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=1024 * 1024) as form:
            given = str(form.get("token", ""))
            if not secrets.compare_digest(given.encode(), request.app.state.form_token.encode()):
                raise StaleFormError(form)
            return await run_in_threadpool(handle, request, form)

    return answer


def desk_of(request: Request) -> Desk:
    """The desk that the application serves."""
    desk: Desk = request.app.state.desk
    return desk


def render(request: Request, template: str, content: Mapping[str, Any], *, status: int = 200) -> HTMLResponse:
    """The template in its frame."""
    desk = desk_of(request)
    frame = {
        "tabs": _TABS if desk.begun else _TABS[:1],
        "here": request.url.path,
        "folder": desk.folder.resolve().name,
        "token": request.app.state.form_token,
        "said": request.app.state.said.get(request.query_params.get("said", ""), ""),
    }
    return HTMLResponse(request.app.state.pages.get_template(template).render({**frame, **content}), status)


def go(request: Request, path: str, said: str = "") -> Response:
    """On to another page, which says what happened: by a number, so that no address can put words into the page."""
    if not said:
        return RedirectResponse(path, 303)
    kept: dict[str, str] = request.app.state.said
    while len(kept) >= _SAID:
        kept.pop(next(iter(kept)))
    ident = secrets.token_urlsafe(6)
    kept[ident] = said
    return RedirectResponse(f"{path}?said={ident}", 303)


def waiting(request: Request, work: DeskWork, title: str) -> HTMLResponse:
    """The page of work that is not done yet, or went wrong; it comes back here by itself."""
    return render(request, "work.html", {"work": work, "title": title, "then": request.url.path})
