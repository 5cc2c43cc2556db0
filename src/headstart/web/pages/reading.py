"""Past and Report: what to read."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import date
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.check import what_to_look_at
from headstart.campaign.desk.words import percent
from headstart.campaign.experiments import State
from headstart.campaign.fitted import THIS
from headstart.web.jobs import Judged, PastOf
from headstart.web.pages.page import desk_of, render, waiting
from headstart.web.pages.rows import standing_in_words
from headstart.web.worker import DeskWork

_VERSIONS = ("headstart", "torch", "botorch", "gpytorch", "numpy", "scipy", "optuna")
_LISTED = 5  # names of past campaigns in a cell


def past_rows(own: PastOf) -> list[dict[str, Any]]:
    """A row for every past campaign of an outcome, with what to look at; without results as it says itself."""
    if own.check is None:
        return []
    rows = []
    for i, s in enumerate((own.explanation or own.check).sources):
        agrees, contradicts = own.check.related(i)
        rows.append(
            {
                "name": s.name,
                "rows": s.rows,
                "verdict": str(s.verdict),
                "reason": s.explained,
                "weight": f"{s.weight:+.2f} ± {s.weight_sd:.2f}",
                "agrees": _listed(agrees),
                "contradicts": _listed(contradicts),
                "look": what_to_look_at(s, own.check.related(i)),
            }
        )
    return rows


def _listed(names: Sequence[str]) -> str:
    """The first few names: of 20 campaigns nobody reads the rest in a table."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED + 1 else ""
    return f"{', '.join(names[:_LISTED] if more else names)}{more}" or "–"


def _past(request: Request) -> Response:
    desk = desk_of(request)
    now = desk.now()
    judged = desk.judged(now)
    if isinstance(judged, DeskWork):
        return waiting(request, judged, "Past campaigns")
    content = {"title": "Past campaigns", "file": now.campaign.file, "outcomes": _outcomes(judged)}
    content["batches"] = now.campaign.batches_in_words
    return render(request, "past.html", content)


def _outcomes(judged: Judged) -> list[dict[str, Any]]:
    found = []
    for own in judged.past:
        told = own.explanation
        believed = [(told.meanings[name], percent(share)) for name, share in told.candidates.items()] if told else []
        n = told.n_observations if told else 0
        found.append({"name": own.outcome, "rows": past_rows(own), "believed": believed, "n": n, "shifts": own.shifts})
    return found


def _report(request: Request) -> Response:
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        return waiting(request, learned, "Report")
    judged = desk.judged(now)
    if isinstance(judged, DeskWork):
        return waiting(request, judged, "Report")
    drawn = desk.drawn(now)
    names = [] if isinstance(drawn, DeskWork) else [name for name in drawn.pictures if not name.startswith("sources")]
    (at_best,) = desk.outlooks(now, learned, [learned.reference]).values()
    labels = [column.label for column in now.campaign.file.results]
    content = {
        "title": "Report",
        "campaign": now.campaign,
        "file": now.campaign.file,
        "counts": {state.value: len(now.campaign.those(state)) for state in State},
        "best": now.campaign.best,
        "standing": partial(standing_in_words, now.campaign),
        "front": now.campaign.front if len(now.campaign.file.goals) > 1 else (),
        "outcomes": _outcomes(judged),
        "noise": [(name, *own) for name, own in zip(labels, judged.noise, strict=True) if own[0] == own[0]],
        "shares": [(n, percent(share)) for n, share in judged.reference_shares if share >= 0.005 or n == THIS],
        "expected": list(zip(labels, at_best.expected.values(), strict=True)),
        "outlook": str(learned.outlook or ""),
        "drawing": drawn if isinstance(drawn, DeskWork) else None,
        "pictures": names,
        "key": now.contents.key[:12],
        "remarks": list(dict.fromkeys(now.campaign.remarks)),
        "today": date.today().isoformat(),
        "versions": [(name, version(name)) for name in _VERSIONS],
        "python": platform.python_version(),
        "digests": now.contents.files,
    }
    return render(request, "report.html", content)


ROUTES = (Route("/past", _past), Route("/report", _report))
