"""Pictures: those of the command line, and slices and contours through any point; numbers follow who points at them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headstart.campaign.desk.contents import with_campaign
from headstart.campaign.desk.words import percent, with_interval
from headstart.campaign.experiments import unusual
from headstart.campaign.suggestions import outlooks_at
from headstart.draw.insight import contour_figure
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.sources.files.cells import number
from headstart.sources.parameters import Kind, Parameter
from headstart.web.desk import Snapshot, svg_to_point_at
from headstart.web.jobs import Learned
from headstart.web.pages.page import desk_of, is_narrow, render, svg, waiting
from headstart.web.problems import tried
from headstart.web.worker import DeskWork

_TITLES = {
    "progress": "Progress",
    "front": "The front",
    "predicted": "Predicted against measured",
    "importance": "Which parameters matter",
    "sources": "What each past campaign says by itself",
    "verdicts": "Verdicts on the past campaigns over time",
}


def _show(request: Request) -> Response:
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        return waiting(request, learned, "Pictures")
    drawn = desk.drawn(now)
    parts = [] if isinstance(drawn, DeskWork) else [(name, *name.partition("-")) for name in drawn.pictures]
    content = {
        "title": "Pictures",
        "drawing": drawn if isinstance(drawn, DeskWork) else None,
        # slices are shown already, through any point
        "pictures": [(name, _TITLES[kind] + (of and f": {of}")) for name, kind, _, of in parts if kind in _TITLES],
        "key": now.contents.key[:12],
        **_slices(request, now, learned),
    }
    content |= {"contour": _contour_of(request, now, learned)}
    return render(request, "pictures.html", content)


def _fitted(request: Request) -> tuple[Snapshot, Learned]:
    """The models, for the script and the pictures in a page: they are asked for where there are some."""
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        raise HTTPException(409, "It is being learnt from the files.")
    return now, learned


def _point(request: Request, now: Snapshot, learned: Learned) -> dict[str, Any]:
    """The reference point with other values, named v0, v1 … by the parameters' places; a comma is fine."""
    asked = request.query_params
    texts = ((p, asked.get(f"v{i}", "").strip()[:60]) for i, p in enumerate(now.campaign.file.parameters))
    changed = {p.name: _value(p, text) for p, text in texts if text and p.kind is not Kind.FIXED}
    return {**learned.reference, **changed}


def _value(p: Parameter, text: str) -> Any:
    if p.is_text:
        if text not in p.choices:
            raise InputError(f"{p.name}: {text!r} is none of the choices ({', '.join(p.choices)}).")
        return text
    value = number(text, ".")
    why = "is no number" if value is None else unusual(p, value)
    if value is None or why:
        raise InputError(f"{p.name}: {text!r} {why}; it may be {p.span}.")
    return round(value) if p.kind is Kind.INT else value


@single_thread()
def _expected(now: Snapshot, learned: Learned, point: Mapping[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """What a measurement of every outcome is expected to be at a point, and how probably limits hold."""
    file, (found,) = now.campaign.file, outlooks_at(learned.fitted, [point])
    told = [(c.label, with_interval(*r)) for c, r in zip(file.results, found.expected.values(), strict=True)]
    return told, percent(found.within) if file.limits else ""


def _slices(request: Request, now: Snapshot, learned: Learned) -> dict[str, Any]:
    point, wrong = tried(lambda: _point(request, now, learned))
    point = dict(learned.reference) if point is None else point
    reference = point == learned.reference
    parameters = [(i, p) for i, p in enumerate(now.campaign.file.parameters) if p.kind is not Kind.FIXED]
    typed = {i: request.query_params.get(f"v{i}", "")[:60] if wrong else point[p.name] for i, p in parameters}
    expected, within = _expected(now, learned, point)
    return {
        "slices": [own.column.label for own in learned.fitted.outcomes if own.knows],
        "query": {"v": now.contents.key[:12]} | ({} if reference else {f"v{i}": point[p.name] for i, p in parameters}),
        "parameters": [(i, p, typed[i]) for i, p in parameters],
        "expected": expected,
        "within": within,
        "wrong": wrong,
        "is_reference": reference,
    }


def _fragment(request: Request) -> Response:
    """The slices alone, for the script."""
    return render(request, "slices.html", _slices(request, *_fitted(request)))


def _predict(request: Request) -> Response:
    """What is expected of every outcome at a point, for the script: v0, v1 … are its values."""
    now, learned = _fitted(request)
    point, wrong = tried(lambda: _point(request, now, learned))
    if point is None:
        return JSONResponse({"wrong": wrong}, 422)
    expected, within = _expected(now, learned, point)
    rows = [{"outcome": label, "text": text} for label, text in expected]
    return JSONResponse({"point": point, "expected": rows, "within": within})


def _picture(request: Request) -> Response:
    desk = desk_of(request)
    drawn = desk.drawn(desk.now())
    name = request.path_params["name"]
    if isinstance(drawn, DeskWork) or name not in drawn.pictures:
        raise HTTPException(404)
    return svg(request, (drawn.narrow if is_narrow(request) else drawn.pictures)[name])


def _slices_picture(request: Request) -> Response:
    now, learned = _fitted(request)
    found = desk_of(request).slices(now, learned, _point(request, now, learned), narrow=is_narrow(request))
    if request.path_params["i"] >= len(found):
        raise HTTPException(404)
    return svg(request, found[request.path_params["i"]])


def _contour_of(request: Request, now: Snapshot, learned: Learned) -> dict[str, Any] | None:
    """Which two parameters, a and b, and which outcome, o, are asked for; the first two before that.

    None where there are no two parameters, or nothing is known.
    """
    parameters = [(i, p) for i, p in enumerate(now.campaign.file.parameters) if p.kind is not Kind.FIXED]
    outcomes = [(i, own) for i, own in enumerate(learned.fitted.outcomes) if own.knows]
    if len(parameters) < 2 or not outcomes:
        return None
    places, asked = [i for i, _ in parameters], request.query_params
    chosen = [int(text) if (text := asked.get(name, "")).isdecimal() else -1 for name in ("a", "b", "o")]
    a, b = (i if i in places else places[k] for k, i in enumerate(chosen[:2]))
    b = b if b != a else next(i for i in places if i != a)
    o = chosen[2] if chosen[2] in [i for i, _ in outcomes] else outcomes[0][0]
    return {"parameters": parameters, "outcomes": outcomes, "a": a, "b": b, "o": o}


def _contour(request: Request) -> Response:
    """The prediction over two parameters, drawn when it is asked for."""
    now, learned = _fitted(request)
    chosen, point = _contour_of(request, now, learned), _point(request, now, learned)
    if chosen is None:
        raise HTTPException(404)
    fitted = with_campaign(learned.fitted, now.campaign)
    across, up = (now.campaign.file.parameters[chosen[which]] for which in ("a", "b"))
    options: dict[str, Any] = {"best": point == learned.reference, "narrow": is_narrow(request)}
    with single_thread():
        figure = contour_figure(fitted, fitted.outcomes[chosen["o"]], (across.name, up.name), point, **options)
        return svg(request, svg_to_point_at(figure, now.campaign, [(across, up)]))


ROUTES = (
    Route("/pictures", _show),
    Route("/pictures/slices", _fragment),
    Route("/pictures/slices/{i:int}.svg", _slices_picture),
    Route("/pictures/predict", _predict),
    Route("/pictures/contour.svg", _contour),
    Route("/pictures/{name}.svg", _picture),
)
