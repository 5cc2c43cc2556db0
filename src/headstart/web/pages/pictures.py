"""Pictures: drawn on the server; and slices through any point, which follow the mouse."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headstart.campaign.desk.words import percent, with_interval
from headstart.sources.parameters import Kind
from headstart.web.forms import tried
from headstart.web.pages.page import desk_of, render, waiting
from headstart.web.slices import HEIGHT, WIDTH, Frame, expected_at, panels_at, point_of, within_at
from headstart.web.worker import DeskWork

_TITLES = {
    "progress": "Progress",
    "front": "The front",
    "slices": "Prediction through the best point",
    "sources": "What each past campaign says by itself",
    "verdicts": "Verdicts on the past campaigns over time",
}


def _show(request: Request) -> Response:
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        return waiting(request, learned, "Pictures")
    drawn = desk.pictures(now)
    names = [] if isinstance(drawn, DeskWork) else list(drawn)
    content = {
        "title": "Pictures",
        "drawing": drawn if isinstance(drawn, DeskWork) else None,
        "pictures": [(name, _titled(name)) for name in names],
        "key": now.contents.key[:12],
        **_slices(request, now, learned),
    }
    return render(request, "pictures.html", content)


def _titled(name: str) -> str:
    kind, dash, of = name.partition("-")
    return f"{_TITLES.get(kind, kind)}{f': {of}' if dash else ''}"


def _slices(request: Request, now: Any, learned: Any) -> dict[str, Any]:
    fitted = desk_of(request).fitted(now, learned)
    asked = {key: value[:60] for key, value in request.query_params.items()}
    point, wrong = tried(lambda: point_of(fitted, asked, learned.reference))
    point = dict(learned.reference) if point is None else point
    parameters = [
        (i, p, asked.get(f"v{i}", "") if wrong else point[p.name])
        for i, p in enumerate(now.campaign.file.parameters)
        if p.kind is not Kind.FIXED
    ]
    return {
        "panels": learned.panels if point == dict(learned.reference) else panels_at(fitted, point),
        "frame": Frame(),
        "width": WIDTH,
        "height": HEIGHT,
        "parameters": parameters,
        "expected": [(label, with_interval(r.median, r.low, r.high)) for label, r in expected_at(fitted, point)],
        "within": percent(within_at(fitted, point)) if now.campaign.file.limits else "",
        "wrong": wrong,
        "is_reference": point == dict(learned.reference),
    }


def _fragment(request: Request) -> Response:
    """The slices alone, for the script."""
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        raise HTTPException(409, "It is being learnt from the files.")
    return render(request, "slices.html", _slices(request, now, learned))


def _predict(request: Request) -> Response:
    """What is expected of every outcome at a point, for the script: v0, v1 … are its values."""
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        return JSONResponse({"wrong": "It is being learnt from the files."}, 409)
    fitted = desk.fitted(now, learned)
    asked = {key: value[:60] for key, value in request.query_params.items()}
    point, wrong = tried(lambda: point_of(fitted, asked, learned.reference))
    if point is None:
        return JSONResponse({"wrong": wrong}, 422)
    found = expected_at(fitted, point)
    rows = [
        {"outcome": label, "text": with_interval(r.median, r.low, r.high), **_finite(r.median, r.low, r.high)}
        for label, r in found
    ]
    answer: dict[str, Any] = {"point": point, "expected": rows}
    if now.campaign.file.limits:
        answer["within"] = percent(within_at(fitted, point))
    return JSONResponse(answer)


def _finite(median: float, low: float, high: float) -> dict[str, float | None]:
    return {k: v if v == v else None for k, v in (("median", median), ("low", low), ("high", high))}


def _picture(request: Request) -> Response:
    desk = desk_of(request)
    drawn = desk.pictures(desk.now())
    name = request.path_params["name"]
    if isinstance(drawn, DeskWork) or name not in drawn:
        raise HTTPException(404)
    kept = {"cache-control": "private, max-age=86400"} if "v" in request.query_params else {}
    return Response(drawn[name], media_type="image/svg+xml", headers=kept)


ROUTES = (
    Route("/pictures", _show),
    Route("/pictures/slices", _fragment),
    Route("/pictures/predict", _predict),
    Route("/pictures/{name}.svg", _picture),
)
