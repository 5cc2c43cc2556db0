"""The page as an ASGI application: its addresses, and what happens when something goes wrong."""

from __future__ import annotations

import secrets
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from headstart.campaign.desk.words import cell, count, with_interval
from headstart.campaign.measured import SlippedResultsError
from headstart.errors import HeadstartError
from headstart.web.desk import Desk
from headstart.web.guard import Guard
from headstart.web.pages import begin, experiments, page, pictures, reading
from headstart.web.pages.page import StaleFormError, render
from headstart.web.problems import for_the_page, in_words
from headstart.web.worker import Worker

_HERE = Path(__file__).parent


def make_app(
    folder: Path, *, host: str = "127.0.0.1", port: int = 8421, token: str = "", apart: bool = True
) -> Starlette:
    """The application for a folder. ``apart=False`` works in a thread instead of a process."""
    routes = [
        Route("/", _home),
        *begin.ROUTES,
        *experiments.ROUTES,
        *pictures.ROUTES,
        *reading.ROUTES,
        *page.ROUTES,
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            SlippedResultsError: experiments.ask_about,
            HeadstartError: _problem,
            OSError: _problem,
            StaleFormError: _stale,
            HTTPException: _missing,
        },
    )
    app.add_middleware(Guard, host=host, port=port, token=token)
    app.state.desk = Desk(folder, Worker(apart=apart))
    app.state.form_token = secrets.token_urlsafe(24)
    app.state.said = {}
    templates = FileSystemLoader(_HERE / "templates")
    pages = Environment(
        loader=templates, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.filters["cell"] = cell
    pages.globals |= {"count": count, "with_interval": with_interval}
    app.state.pages = pages
    return app


def _home(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    return RedirectResponse("/experiments" if desk.begun else "/begin", 303)


def _problem(request: Request, error: Exception) -> Response:
    """What is somebody's to mend, in a sentence; nothing was changed."""
    content = {"told": for_the_page(in_words(error)), "title": "That did not work"}
    return render(request, "problem.html", content, status=422)


def _stale(request: Request, error: Exception) -> Response:
    assert isinstance(error, StaleFormError)
    told = "The server was started anew since this page was opened. Nothing was changed: look at it, and send it again."
    if request.url.path in ("/experiments/save", "/experiments/add"):
        return experiments.show_again(request, error.form, told)
    return render(request, "problem.html", {"told": told, "title": "Please send that again"}, status=409)


def _missing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return render(request, "problem.html", {"told": "There is no such page.", "title": "Not found"}, status=404)
    return HTMLResponse(str(error.detail), error.status_code)
