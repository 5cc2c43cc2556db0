"""Work that takes a while: how far it is."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headstart.web.pages.page import desk_of, go, posted, render

_GONE = "Nothing is known of this work: the server was started anew. What was finished is in the folder."
_STATE = ("done", "error", "share", "doing")


def _show(request: Request) -> Response:
    """A page that renews itself, and goes on when the work is done."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is None:
        return render(request, "problem.html", {"told": _GONE, "title": "Not found"}, status=404)
    if work.done and not work.error:
        return go(request, work.then, work.result if isinstance(work.result, str) else "")
    return render(request, "work.html", {"work": work, "title": work.what, "then": f"/job/{work.id}"})


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
