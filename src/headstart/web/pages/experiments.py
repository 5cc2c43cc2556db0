"""Experiments: what to try, what came out, and what somebody does about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.changes import OwnRow, add_row, remove_row, save_results
from headstart.campaign.desk.history import last_step, steps_of, undo_step
from headstart.campaign.desk.words import percent, with_interval
from headstart.campaign.experiments import Experiment, State
from headstart.errors import ChangedMeanwhileError, InputError, UnusableCellsError
from headstart.sources.parameters import Kind
from headstart.web.desk import Desk, Snapshot
from headstart.web.forms import Taken, posted, tried, whole_number
from headstart.web.jobs import Learned, RowOutlook, row_key
from headstart.web.pages.page import desk_of, go, render
from headstart.web.worker import DeskWork

__all__ = ["ROUTES", "show_again"]

_MOST_ASKED = 100
_SHOWN_STEPS = 20


@dataclass
class ResultCell:
    """A result to type: what the file has, what was typed, and what is wrong with it."""

    name: str
    column: str
    label: str
    there: str
    typed: str
    wrong: str = ""
    note: str = ""
    expected: str = ""


@dataclass
class ShownRow:
    """A row of the table."""

    number: int
    state: str
    settings: list[tuple[str, Any]]
    cells: list[ResultCell]
    within: str = ""
    rests: list[tuple[str, str]] = field(default_factory=list)
    best: bool = False
    fresh: bool = False


@dataclass(frozen=True)
class Typed:
    """What somebody typed before something was wrong with it."""

    cells: Mapping[tuple[int, str], str] = field(default_factory=dict)
    before: Mapping[tuple[int, str], str] = field(default_factory=dict)
    wrong: Mapping[tuple[int, str], str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def _show(request: Request) -> Response:
    return _page(request)


def _page(request: Request, typed: Typed | None = None, told: str = "", status: int = 200) -> Response:
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    work = learned if isinstance(learned, DeskWork) else None
    known = None if isinstance(learned, DeskWork) else learned
    rows = _rows(desk, now, known, typed or Typed())
    pending = [row for row in rows if row.state == State.PENDING]
    content = {
        "title": "Experiments",
        "file": now.campaign.file,
        "seen": now.seen,
        "pending": pending,
        "others": [row for row in rows if row.state != State.PENDING][::-1],
        "limited": bool(now.campaign.file.limits),
        "work": work,
        "knows": known.fitted.knows if known else True,
        "own": _own_fields(now.campaign, typed or Typed()),
        "told": told,
        "remarks": _remarks(desk, now, known),
        "steps": steps_of(desk.folder)[::-1][:_SHOWN_STEPS],
        "last": last_step(desk.folder),
        "outlook": desk.outlook(now),
    }
    return render(request, "experiments.html", content, status=status)


def _remarks(desk: Desk, now: Snapshot, known: Learned | None) -> list[str]:
    own = list(desk.fitted(now, known).remarks) if known else []
    return list(dict.fromkeys([*own, *now.campaign.remarks]))


def _rows(desk: Desk, now: Snapshot, known: Learned | None, typed: Typed) -> list[ShownRow]:
    campaign = now.campaign
    pending = campaign.those(State.PENDING)
    found = desk.outlooks(now, known, [e.values for e in pending]) if known else {}
    best = campaign.best
    texts = {
        (row, column): text
        for row, cells in zip(campaign.table.numbers, campaign.table.rows, strict=True)
        for column, text in zip(campaign.table.columns, cells, strict=True)
    }
    return [_row(campaign, e, found.get(row_key(campaign, e.values)), typed, texts, best) for e in campaign.experiments]


def _row(
    campaign: Campaign,
    e: Experiment,
    outlook: RowOutlook | None,
    typed: Typed,
    texts: Mapping[tuple[int, str], str],
    best: Experiment | None,
) -> ShownRow:
    file = campaign.file
    cells = []
    ranges = dict(zip((column.name for column in file.results), outlook.ranges, strict=True)) if outlook else {}
    labels = {column.name: column.label for column in file.results}
    for i, column in enumerate(file.measured_columns):
        place = (e.number, column)
        there = texts.get(place, "")
        shown = typed.cells.get(place, there)
        cell = ResultCell(
            f"r{e.number}.{i}", column, labels.get(column, column), there, shown, typed.wrong.get(place, "")
        )
        if place in typed.cells and typed.before.get(place, "") != there:
            cell.note = f"somebody else wrote {there or 'nothing'} here meanwhile"
        r = ranges.get(column)
        if r is not None and column not in e.results:
            cell.expected = with_interval(r.median, r.low, r.high)
        cells.append(cell)
    row = ShownRow(e.number, e.state, [(p.label, e.values[p.name]) for p in file.parameters], cells)
    row.best = best is not None and best.number == e.number
    if outlook is not None:
        row.within = percent(outlook.within)
        known = [(name, share) for name, share in outlook.shares if share >= 0.005]
        row.rests = [(name, percent(share)) for name, share in sorted(known, key=lambda each: -each[1])]
    return row


def _own_fields(campaign: Campaign, typed: Typed) -> list[dict[str, Any]]:
    fields = []
    for i, p in enumerate(campaign.file.parameters):
        if p.kind is Kind.FIXED:
            continue
        fields.append(
            {
                "name": f"p{i}",
                "label": p.label,
                "choices": p.choices if p.is_text else (),
                "hint": "" if p.is_text else f"{p.low:g} … {p.high:g}",
                "typed": typed.own.get(p.name, ""),
                "wrong": typed.wrong.get((0, p.name), ""),
            }
        )
    for i, column in enumerate(campaign.file.measured_columns):
        wrong = typed.wrong.get((0, column), "")
        fields.append(
            {
                "name": f"m{i}",
                "label": column,
                "choices": (),
                "hint": "if there is one",
                "wrong": wrong,
                "typed": typed.own.get(column, ""),
            }
        )
    return fields


# ── what comes in ─────────────────────────────────────────────────────────────────────────────────────────────────


def _typed_in(campaign: Campaign, form: Taken) -> Typed:
    """The cells that somebody changed: those that are not what the form was sent out with."""
    columns = campaign.file.measured_columns
    cells, before = {}, {}
    for name, value in form.multi_items():
        row, dot, i = name[1:].partition(".")
        if name[:1] == "r" and dot and row.isdigit() and i.isdigit() and int(i) < len(columns):
            was, text = str(form.get(f"o{row}.{i}", "")), str(value).strip()
            if text != was:
                cells[int(row), columns[int(i)]] = text
                before[int(row), columns[int(i)]] = was
    own = {p.name: str(form.get(f"p{i}", "")) for i, p in enumerate(campaign.file.parameters)}
    own |= {column: str(form.get(f"m{i}", "")) for i, column in enumerate(columns)}
    return Typed(cells, before, {}, own)


def show_again(request: Request, form: Taken, told: str) -> Response:
    """The page with what was typed, and why it was not taken."""
    typed = _typed_in(desk_of(request).now().campaign, form)
    return _page(request, typed, told, 409)


def _save(request: Request, form: Taken) -> Response:
    desk = desk_of(request)
    campaign = desk.now().campaign
    typed = _typed_in(campaign, form)
    failed = [whole_number(str(form["failed"]), "The row", 1, 10**9)] if "failed" in form else []
    seen = str(form.get("seen", ""))
    try:
        with desk.changing:
            if "remove" in form:
                row = whole_number(str(form["remove"]), "The row", 1, 10**9)
                step = remove_row(desk.folder, seen, row, opening=desk.opening)
            else:
                step = save_results(desk.folder, seen, typed.cells, failed=failed, opening=desk.opening)
    except UnusableCellsError as error:
        kept = Typed(typed.cells, typed.before, error.cells)
        n = len(error.cells)
        return _page(request, kept, f"Nothing was saved: {n} cell{' needs' if n == 1 else 's need'} another look.", 422)
    except ChangedMeanwhileError:
        told = "Somebody else was faster: the table has changed since you opened it. Nothing of yours was saved yet. "
        return _page(request, typed, f"{told}Look at what is new, then save again.", 409)
    return go(request, "/experiments", "Nothing was new." if step is None else f"Saved: {step.what}.")


def _add(request: Request, form: Taken) -> Response:
    desk = desk_of(request)
    typed = _typed_in(desk.now().campaign, form)
    try:
        with desk.changing:
            step = add_row(desk.folder, str(form.get("seen", "")), OwnRow(typed.own), opening=desk.opening)
    except UnusableCellsError as error:
        return _page(request, Typed(own=typed.own, wrong=error.cells), "The experiment was not added.", 422)
    except ChangedMeanwhileError:
        told = "Somebody else was faster: the table has changed since you opened it. Look at it, then add yours again."
        return _page(request, Typed(own=typed.own), told, 409)
    return go(request, "/experiments", f"Saved: {step.what if step else ''}.")


def _undo(request: Request, form: Taken) -> Response:
    desk = desk_of(request)
    number = whole_number(str(form.get("step", "")), "The step", 1, 10**6)
    with desk.changing:
        step = undo_step(desk.folder, number)
    return go(request, "/experiments" if desk.begun else "/begin", f"Undone: {step.what}.")


def _ask(request: Request, form: Taken) -> Response:
    desk = desk_of(request)
    n, wrong = tried(lambda: whole_number(str(form.get("n", "")), "The number of experiments", 1, _MOST_ASKED))
    if wrong:
        return _page(request, None, wrong, 422)
    if not desk.begun:
        raise InputError("There is no campaign yet. Begin one first.")
    return go(request, f"/job/{desk.ask(n).id}")


ROUTES = (
    Route("/experiments", _show),
    Route("/experiments/save", posted(_save), methods=["POST"]),
    Route("/experiments/add", posted(_add), methods=["POST"]),
    Route("/experiments/undo", posted(_undo), methods=["POST"]),
    Route("/experiments/ask", posted(_ask), methods=["POST"]),
)
