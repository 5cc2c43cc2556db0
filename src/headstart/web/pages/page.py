"""What all pages share: the frame around them, where they go next, forms, and work that takes a while."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

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
_GONE = "Nothing is known of this work: the server was started anew. What was finished is in the folder."
_STATE = ("done", "error", "share", "doing")


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
    return RedirectResponse(f"{path}{'&' if '?' in path else '?'}said={ident}", 303)


def svg(request: Request, content: bytes) -> Response:
    """A picture, which a browser may keep if its address says which files it shows."""
    kept = {"cache-control": "private, max-age=86400"} if "v" in request.query_params else {}
    return Response(content, media_type="image/svg+xml", headers=kept)


def is_narrow(request: Request) -> bool:
    """Whether a picture is asked for as a telephone shows it."""
    return "narrow" in request.query_params


def waiting(request: Request, work: DeskWork, title: str = "") -> HTMLResponse:
    """The page of work that is not done yet, or went wrong; it comes back here by itself."""
    return render(request, "work.html", {"work": work, "title": title or work.what, "then": request.url.path})


def _show(request: Request) -> Response:
    """A page that renews itself, and goes on when the work is done."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is None:
        return render(request, "problem.html", {"told": _GONE, "title": "Not found"}, status=404)
    if work.done and not work.error:
        return go(request, work.then, work.result if isinstance(work.result, str) else "")
    return waiting(request, work)


def _state(request: Request) -> Response:
    """The same for the script."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is None:
        return JSONResponse({"done": True, "error": _GONE, "share": 0, "doing": "", "seconds": 0})
    return JSONResponse({name: getattr(work, name) for name in _STATE} | {"seconds": round(work.seconds)})


def _again(request: Request, form: FormData) -> Response:
    """Work that went wrong is forgotten; the page that needs it begins it anew."""
    work = desk_of(request).work(str(form.get("work", "")))
    if work is not None and work.error:
        desk_of(request).again(work)
    back = str(form.get("back", "/"))
    return go(request, back if back in ("/experiments", "/pictures", "/past", "/report") else "/")


ROUTES = (
    Route("/job/again", posted(_again), methods=["POST"]),
    Route("/job/{ident}", _show),
    Route("/job/{ident}/state", _state),
)
