"""Past and Report: what to read."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.desk.words import percent
from headstart.campaign.experiments import State
from headstart.campaign.fitted import THIS
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict, WhyUnusable
from headstart.web.desk import Desk, Snapshot
from headstart.web.jobs import Judged, Learned, PastOf
from headstart.web.pages.page import desk_of, render, waiting
from headstart.web.worker import DeskWork

_VERSIONS = ("headstart", "torch", "botorch", "gpytorch", "numpy", "scipy", "optuna")


@dataclass(frozen=True, slots=True)
class PastRow:
    """A past campaign and what became of it; ``look`` is what to look at, "" where all is well."""

    name: str
    rows: int
    verdict: str
    reason: str
    weight: str
    agrees: str
    contradicts: str
    look: str


def past_rows(own: PastOf) -> list[PastRow]:
    """The past campaigns of an outcome; before there are results, as they say themselves."""
    if own.check is None:
        return []
    verdicts = own.explanation.sources if own.explanation is not None else own.check.sources
    return [_past_row(own.check, i, verdict) for i, verdict in enumerate(verdicts)]


def _past_row(check: Explanation, i: int, verdict: SourceVerdict) -> PastRow:
    agrees, contradicts = check.related(i)
    return PastRow(
        verdict.name,
        verdict.rows,
        str(verdict.verdict),
        verdict.reason.replace("the target", "this campaign"),
        f"{verdict.weight:+.2f} ± {verdict.weight_sd:.2f}",
        ", ".join(agrees) or "–",
        ", ".join(contradicts) or "–",
        _look(verdict, reverse=len(contradicts) > len(agrees)),
    )


def _look(verdict: SourceVerdict, *, reverse: bool) -> str:
    """What to look at when a campaign is ignored, small, or upside down."""
    if verdict.upside_down or reverse:
        return (
            "It shows the reverse of the others or of this campaign: look whether its result counts the other way "
            "round (loss instead of yield), or two columns are swapped."
        )
    if verdict.unusable is WhyUnusable.TOO_FEW:
        return f"{verdict.rows} rows are too few to judge it by. Add the rest of its rows, if there are any."
    if verdict.unusable is WhyUnusable.LITTLE:
        return (
            f"{verdict.rows} rows for so many parameters say little on their own: that is no fault of theirs. Only "
            "its best point is tried. More rows, or fewer parameters, would make it count."
        )
    if verdict.unusable is WhyUnusable.CONSTANT:
        return "All of its results are the same: look whether the right column was taken for the result."
    if verdict.unusable is WhyUnusable.NOISE:
        return (
            "Its results do not follow from its settings: look for a slip of the decimal mark, a swapped column, "
            "another unit, or something that mattered and was not recorded."
        )
    if verdict.verdict is not Verdict.USED:
        return (
            "It says something else than this campaign's results: look whether it was really the same process, and the "
            "same way of measuring."
        )
    return ""


def _past(request: Request) -> Response:
    desk = desk_of(request)
    now = desk.now()
    judged = desk.judged(now)
    if isinstance(judged, DeskWork):
        return waiting(request, judged, "Past campaigns")
    content = {"title": "Past campaigns", "file": now.campaign.file, "outcomes": _outcomes(judged)}
    return render(request, "past.html", content)


def _outcomes(judged: Judged) -> list[dict[str, Any]]:
    found = []
    for own in judged.past:
        believed = []
        if own.explanation is not None:
            shares = own.explanation.candidates
            believed = [(own.explanation.meanings[name], percent(share)) for name, share in shares.items()]
        n = own.explanation.n_observations if own.explanation is not None else 0
        found.append({"name": own.outcome, "rows": past_rows(own), "believed": believed, "n": n})
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
    pictures = desk.pictures(now)
    names = [] if isinstance(pictures, DeskWork) else [name for name in pictures if not name.startswith("sources")]
    content = {
        "title": "Report",
        "campaign": now.campaign,
        "file": now.campaign.file,
        "counts": {state.value: len(now.campaign.those(state)) for state in State},
        "best": now.campaign.best,
        "front": now.campaign.front if len(now.campaign.file.goals) > 1 else (),
        "outcomes": _outcomes(judged),
        "noise": _noise(now, judged),
        "shares": [(n, percent(share)) for n, share in judged.reference_shares if share >= 0.005 or n == THIS],
        "reference": learned.reference,
        "expected": _at_reference(desk, now, learned),
        "outlook": judged.outlook,
        "drawing": pictures if isinstance(pictures, DeskWork) else None,
        "pictures": names,
        "key": now.contents.key[:12],
        "remarks": list(dict.fromkeys(now.campaign.remarks)),
        "today": date.today().isoformat(),
        "versions": [(name, version(name)) for name in _VERSIONS],
        "python": platform.python_version(),
        "digests": now.contents.files,
    }
    return render(request, "report.html", content)


def _noise(now: Snapshot, judged: Judged) -> list[tuple[str, float, int]]:
    names = [column.label for column in now.campaign.file.results]
    return [(name, sd, n) for name, (sd, n) in zip(names, judged.noise, strict=True) if sd == sd]


def _at_reference(desk: Desk, now: Snapshot, learned: Learned) -> list[tuple[str, Any]]:
    row = next(iter(desk.outlooks(now, learned, [learned.reference]).values()), None)
    return [] if row is None else list(zip((c.label for c in now.campaign.file.results), row.ranges, strict=True))


ROUTES = (Route("/past", _past), Route("/report", _report))
