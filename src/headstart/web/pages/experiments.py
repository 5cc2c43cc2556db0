"""Experiments: what to try, what came out, and what somebody does about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.best_past import PastBest
from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.changes import (
    OWN_ROW,
    CellPlace,
    add_row,
    add_suggestions,
    remove_row,
    save_results,
    say_right,
)
from headstart.campaign.desk.contents import with_campaign
from headstart.campaign.desk.history import Step, last_step, steps_of, undo_step
from headstart.campaign.desk.words import cell as cell_text
from headstart.campaign.desk.words import percent
from headstart.campaign.experiments import Experiment, State
from headstart.campaign.file import ResultColumn
from headstart.campaign.fitted import THIS
from headstart.campaign.measured import ResultSlip, SlippedResultsError
from headstart.campaign.suggestions import RowOutlook
from headstart.draw.canvas import themed_svg
from headstart.draw.progress import progress_figure
from headstart.errors import (
    ChangedMeanwhileError,
    InputError,
    NoBatchError,
    UnlistedSettingsError,
    UnusableCellsError,
)
from headstart.gp.threads import single_thread
from headstart.sources.parameters import Kind
from headstart.web.desk import Desk, Snapshot, row_key
from headstart.web.jobs import Learned
from headstart.web.pages.page import desk_of, go, is_narrow, posted, render, svg
from headstart.web.pages.rows import (
    Bar,
    Bars,
    fits,
    settable,
    settings_in_words,
    standing_in_words,
    table_text,
    values_of,
)
from headstart.web.problems import for_the_page, tried
from headstart.web.worker import DeskWork

_MOST_ASKED = 100
_SHOWN_STEPS = 20
_CELL = re.compile(r"([rs](?P<row>\d+)\.|[pm])(?P<column>\d+)")


@dataclass
class FieldShown:
    """A cell to type into: what the file has, what was typed, what is wrong with it, and what is asked about it."""

    name: str
    column: str
    label: str
    there: str = ""
    typed: str = ""
    wrong: str = ""
    note: str = ""
    asked: str = ""  # a question that has yes and no for an answer
    meant: str = ""  # what it is if the answer is no
    right: bool = False  # it was answered with yes
    hint: str = ""
    choices: tuple[str, ...] = ()


@dataclass
class ShownOutcome:
    """An outcome of a row: its cells to type into, and what is expected of it, in numbers and as a bar."""

    column: ResultColumn
    cells: list[FieldShown] = field(default_factory=list)
    expected: str = ""
    bar: Bar | None = None
    then: str = ""  # what was measured of past settings


@dataclass
class ShownRow:
    """A row of the table. ``fields`` are its settings where somebody changes them, by the parameter's name."""

    number: int | None  # None of past settings
    state: str
    settings: list[tuple[str, Any]]
    outcomes: list[ShownOutcome]
    fields: dict[str, FieldShown] = field(default_factory=dict)
    within: str = ""
    rests: list[tuple[str, str]] = field(default_factory=list)
    note: str = ""
    standing: str = ""  # with regard to the limits, where that is not within
    again: bool = False  # whether past settings can be tried again


@dataclass(frozen=True)
class Typed:
    """What somebody typed before something was wrong with it, or asked about it; ``edit`` are rows with settings."""

    cells: Mapping[CellPlace, str] = field(default_factory=dict)
    before: Mapping[CellPlace, str] = field(default_factory=dict)
    wrong: Mapping[CellPlace, str] = field(default_factory=dict)
    edit: frozenset[int] = frozenset()
    right: frozenset[CellPlace] = frozenset()
    slips: Mapping[CellPlace, ResultSlip] = field(default_factory=dict)
    unlisted: UnlistedSettingsError | None = None

    def part(self, *, own: bool) -> Typed:
        """What was typed into an experiment of one's own, or into the rows of the file."""
        return replace(self, cells={place: text for place, text in self.cells.items() if (place[0] == OWN_ROW) == own})


def _row_of(campaign: Campaign, e: Experiment, outlook: RowOutlook | None, bars: Bars, typed: Typed) -> ShownRow:
    """An experiment with a cell for every result and standard error, and what is expected of it."""
    file, at = campaign.file, campaign.table.numbers.index(e.number)
    texts = dict(zip(campaign.table.columns, campaign.table.rows[at], strict=True))
    outcomes, i = [], 0
    for column in file.results:
        shown = ShownOutcome(column)
        if outlook is not None and column.name not in e.results:
            shown.expected, shown.bar = bars.told(column.name, outlook)
        for name, label in ((column.name, column.label), (column.error, f"standard error of {column.name}")):
            if name:
                place = (e.number, name)
                shown.cells.append(_field(f"r{e.number}.{i}", place, label, typed, texts.get(name, "")))
                i += 1
        outcomes.append(shown)
    values = values_of(campaign, e)
    settings = [(p.name, values[p.name]) for p in settable(campaign)]
    row = ShownRow(e.number, e.state, settings, outcomes, standing=standing_in_words(campaign, e))
    row.note = "control" if e.state is State.PENDING and campaign.is_control(e) else ""
    if e.number in typed.edit:
        for i, p in enumerate(settable(campaign)):
            if p.kind is not Kind.FIXED:
                there = texts.get(p.name, "") or cell_text(values[p.name])
                choices = (*p.choices, *p.withdrawn) if p.is_text else ()
                place = (e.number, p.name)
                row.fields[p.name] = _field(f"s{e.number}.{i}", place, p.label, typed, there, choices=choices)
    return row if outlook is None else _with_outlook(row, outlook)


def _with_outlook(row: ShownRow, outlook: RowOutlook) -> ShownRow:
    known = [(name, share) for name, share in outlook.shares if share >= 0.005]
    rests = [(name, percent(share)) for name, share in sorted(known, key=lambda each: -each[1])]
    return replace(row, within=percent(outlook.within), rests=rests)


def _past_row(campaign: Campaign, one: PastBest, bars: Bars) -> ShownRow:
    """Past settings: what was measured there then, and what is expected of them now."""
    outcomes = []
    for column in campaign.file.results:
        expected, bar = bars.told(column.name, one.now)
        outcomes.append(ShownOutcome(column, [], expected, bar, one.told(column.name)))
    number = one.row_in(campaign)
    notes = [f"moved: {', '.join(one.moved)}"] if one.moved else []
    if one.unmeasured:
        notes.append(one.unknown_limits)
    if number is not None:
        notes.append(f"the settings of row {number}")
    settings = [(p.name, one.now.values.get(p.name, "")) for p in settable(campaign)]
    row = ShownRow(None, one.campaign, settings, outcomes, note="; ".join(notes), again=number is None)
    return _with_outlook(row, one.now)


def _field(name: str, place: CellPlace, label: str, typed: Typed, there: str = "", **more: Any) -> FieldShown:
    """The field with what was typed into it, what is wrong with that, and what is asked about it."""
    slip = typed.slips.get(place)
    asked, meant = "", ""
    if slip is not None:
        far = f"{slip.cell} is {slip.times:.0f} times the largest of all other results."
        asked, meant = f"{far} Is it right, or has the decimal mark slipped?", f"{slip.meant:g}"
    elif typed.unlisted is not None and place in typed.unlisted.cells:
        asked, meant = f"{typed.unlisted.cells[place]} Is it right?", f"{typed.unlisted.nearest[place]:g}"
    meanwhile = place in typed.cells and typed.before.get(place, "") != there
    return FieldShown(
        name,
        place[1],
        label,
        there,
        typed.cells.get(place, there),
        typed.wrong.get(place, ""),
        note=f"somebody else wrote {there or 'nothing'} here meanwhile" if meanwhile else "",
        asked=asked,
        meant=meant,
        right=place in typed.right,
        **more,
    )


def _own_fields(campaign: Campaign, typed: Typed) -> list[FieldShown]:
    """The fields of an experiment of one's own."""
    fields, present = [], cell_text(campaign.batches.cell) and f"{campaign.batches.cell} if it is left empty"
    for i, p in enumerate(settable(campaign)):
        if p.kind is not Kind.FIXED:
            more: dict[str, Any] = {"choices": p.choices} if p.choices else {"hint": p.span or present}
            fields.append(_field(f"p{i}", (OWN_ROW, p.name), p.label, typed, **more))
    for i, column in enumerate(campaign.file.measured_columns):
        fields.append(_field(f"m{i}", (OWN_ROW, column), column, typed, hint="if there is one"))
    return fields


def _typed_in(campaign: Campaign, form: FormData) -> Typed:
    """The cells that somebody changed: those that are not what the form was sent out with.

    Fields are called r3.0 (the first result of row 3), s3.0 (its first setting), p0 and m0 (those of one's own); o3.0
    and os3.0 are what stood there, and 'right' and 'meant' are answers: the field, and the number that is meant.
    """
    results, settings = campaign.file.measured_columns, [p.name for p in settable(campaign)]
    cells: dict[CellPlace, str] = {}
    before: dict[CellPlace, str] = {}
    edit, places, right = set(), {}, set()
    for name, value in form.multi_items():
        columns = settings if name[:1] in ("s", "p") else results
        found = _CELL.fullmatch(name)
        if found is None or int(found["column"]) >= len(columns):
            continue
        place = places[name] = (int(found["row"] or OWN_ROW), columns[int(found["column"])])
        was, text = str(form.get(f"o{name.removeprefix('r')}", "")), str(value).strip()
        if name[0] == "s":
            edit.add(place[0])
        if text != was:
            cells[place], before[place] = text, was
    for answer in form.getlist("right"):
        name, _, text = str(answer).partition(" ")
        if name in places and text and text == cells.get(places[name]):  # it was typed anew else
            right.add(places[name])
    name, _, text = str(form.get("meant", "")).partition(" ")
    if name in places:
        cells[places[name]] = text
    return Typed(cells, before, {}, frozenset(edit), frozenset(right))


def _page(
    request: Request, typed: Typed | None = None, told: str = "", status: int = 200, *, opened: int | None = None
) -> Response:
    """The page; with what was typed, and the row whose settings were just opened to be changed."""
    desk, typed = desk_of(request), typed or Typed()
    now = desk.now()
    campaign, learned = now.campaign, desk.learned(now)
    known = None if isinstance(learned, DeskWork) else learned
    pending = campaign.those(State.PENDING)
    found = desk.outlooks(now, known, [e.values for e in pending]) if known else {}
    past = known.past if known else ()
    bars = Bars.of(campaign, [*found.values(), *(one.now for one in past)])
    outlooks = {e.number: found.get(row_key(campaign, e.values)) for e in pending}
    rows = [_row_of(campaign, e, outlooks.get(e.number), bars, typed) for e in campaign.experiments]
    own = with_campaign(known.fitted, campaign).remarks if known else ()
    content = {
        "title": "Experiments",
        "file": campaign.file,
        "settable": settable(campaign),
        "batches": campaign.batches_in_words,
        "seen": now.seen,
        "key": now.contents.key[:12],
        "pending": [row for row in rows if row.state == State.PENDING],
        "others": [row for row in rows if row.state != State.PENDING][::-1],
        "past": [_past_row(campaign, one, bars) for one in past],
        "evidence": now.evidence,
        "columns": fits(campaign),
        "several": len(campaign.file.measured_columns) > 1,
        "best": campaign.best,
        "best_settings": settings_in_words(campaign, campaign.best) if campaign.best else "",
        "why_no_best": campaign.why_no_best,
        "limited": bool(campaign.file.limits),
        "work": learned if isinstance(learned, DeskWork) else None,
        "knows": known.fitted.knows if known else True,
        "from_past": _from_past(now, known, desk) if known else [],
        "own": _own_fields(campaign, typed),
        "told": told,
        "opened": opened,
        "remarks": [for_the_page(remark) for remark in dict.fromkeys([*own, *campaign.remarks])],
        "steps": steps_of(desk.folder)[::-1][:_SHOWN_STEPS],
        "last": last_step(desk.folder),
        "outlook": known.outlook if known else None,
    }
    return render(request, "experiments.html", content, status=status)


def _from_past(now: Snapshot, known: Learned, desk: Desk) -> list[tuple[str, str]]:
    """How much of what is known about the best point comes from the past: in all, and from each campaign."""
    (at_best,) = desk.outlooks(now, known, [known.reference]).values()
    past = sorted((each for each in at_best.shares if each[0] != THIS), key=lambda each: -each[1])
    if not past:
        return []
    return [("", percent(sum(share for _, share in past))), *((n, percent(x)) for n, x in past if x >= 0.005)]


def _progress(request: Request) -> Response:
    """The picture that the page opens with."""
    desk = desk_of(request)
    now = desk.now()
    learned = desk.learned(now)
    if isinstance(learned, DeskWork):
        raise HTTPException(409, "It is being learnt from the files.")
    with single_thread():
        fitted = with_campaign(learned.fitted, now.campaign)
        return svg(request, themed_svg(progress_figure(fitted, narrow=is_narrow(request))))


def _table(request: Request) -> Response:
    """The table of the page as a file that a spreadsheet program opens: with what is expected of open rows."""
    desk = desk_of(request)
    now = desk.now()
    campaign, learned = now.campaign, desk.learned(now)
    known = None if isinstance(learned, DeskWork) else learned
    open_ = campaign.those(State.PENDING)
    outlooks = desk.outlooks(now, known, [e.values for e in open_]) if known else {}
    found = {e.number: outlooks[key] for e in open_ if (key := row_key(campaign, e.values)) in outlooks}
    headers = {"content-disposition": 'attachment; filename="experiments.csv"'}
    return Response(table_text(campaign, found), media_type="text/csv; charset=utf-8", headers=headers)


def show_again(request: Request, form: FormData, told: str) -> Response:
    """The page with what was typed, and why it was not taken."""
    typed = _typed_in(desk_of(request).now().campaign, form)
    return _page(request, typed, told, 409)


def _save(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    typed = _typed_in(desk.now().campaign, form).part(own=False)
    rows = {do: _whole_number(str(form[do]), "The row", 1, 10**9) for do in ("edit", "failed", "remove") if do in form}
    if "edit" in rows:
        return _page(request, replace(typed, edit=typed.edit | {rows["edit"]}), opened=rows["edit"])
    seen, failed = str(form.get("seen", "")), [rows["failed"]] if "failed" in rows else []

    def change() -> Step | None:
        if "remove" in rows:
            return remove_row(desk.folder, seen, rows["remove"], opening=desk.opening)
        return save_results(desk.folder, seen, typed.cells, failed=failed, right=typed.right, opening=desk.opening)

    return _changed(request, typed, change, "saved")


def _add(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    typed = _typed_in(desk.now().campaign, form).part(own=True)
    row, right = {column: text for (_, column), text in typed.cells.items()}, [c for _, c in typed.right]

    def change() -> Step | None:
        return add_row(desk.folder, str(form.get("seen", "")), row, right=right, opening=desk.opening)

    return _changed(request, typed, change, "added")


def _again(request: Request, form: FormData) -> Response:
    """One of the best past settings becomes a row to do."""
    desk = desk_of(request)
    now = desk.now()
    learned, which = desk.learned(now), str(form.get("past", ""))
    past = () if isinstance(learned, DeskWork) or form.get("evidence") != now.evidence else learned.past
    if not (which.isascii() and which.isdecimal() and int(which) < len(past)):
        return _page(request, None, "The files have changed since you opened the page. Look at what is new.", 409)
    row = past[int(which)].now.values

    def change() -> str:
        numbers = add_suggestions(desk.folder, str(form.get("seen", "")), [row], opening=desk.opening)
        return f"row {numbers[0]} has past settings" if numbers else "the row is in a file beside the workbook"

    return _changed(request, Typed(), change, "added")


def _changed(request: Request, typed: Typed, change: Callable[[], Step | str | None], done: str) -> Response:
    """The page after a change; or with what was typed, beside it what is wrong with it or asked about it."""
    try:
        with desk_of(request).changing:
            step = change()
    except UnlistedSettingsError as error:
        return _page(request, replace(typed, unlisted=error), f"Nothing was {done} yet: is a setting right?", 422)
    except NoBatchError as error:
        return _page(request, typed, f"Nothing was {done}: {error}", 422)
    except UnusableCellsError as error:
        n = len(error.cells)
        told = f"Nothing was {done}: {n} cell{' needs' if n == 1 else 's need'} another look."
        return _page(request, replace(typed, wrong=error.cells), told, 422)
    except SlippedResultsError as error:
        current = desk_of(request).now().campaign.table.path
        elsewhere = [for_the_page(slip.message) for slip in error.slips if slip.path != current]
        slips = {(slip.row, slip.column): slip for slip in error.slips if slip.path == current}
        told = " ".join([f"Nothing was {done} yet: a result lies far outside anything seen.", *elsewhere])
        return _page(request, replace(typed, slips=slips), told, 422)
    except ChangedMeanwhileError:
        told = f"Somebody else was faster: the table has changed since you opened it. Nothing of yours was {done} yet. "
        return _page(request, typed, f"{told}Look at what is new, then send it again.", 409)
    what = step.what if isinstance(step, Step) else step
    return go(request, "/experiments", "Nothing was new." if what is None else f"Saved: {what}.")


def ask_about(request: Request, error: Exception) -> Response:
    """A folder whose files have a result far outside anything seen, which nobody has been asked about yet."""
    assert isinstance(error, SlippedResultsError)
    questions = {slip.cell: slip for slip in error.slips}
    content = {"title": "Is that right?", "slips": list(questions.values())}
    return render(request, "slips.html", content, status=422)


def _right(request: Request, form: FormData) -> Response:
    """Cells of the files are said to be right."""
    desk = desk_of(request)
    cell = str(form.get("cell", ""))
    try:
        desk.now()
    except SlippedResultsError as error:
        told = {slip.cell: slip.value for slip in error.slips if slip.cell == cell}
        if told:
            with desk.changing:
                step = say_right(desk.folder, told)
            return go(request, "/experiments", f"Saved: {step.what}.")
    raise InputError(f"Nobody is asked about {cell[:60]!r} any more. Look at the experiments.")


def _undo(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    number = _whole_number(str(form.get("step", "")), "The step", 1, 10**6)
    with desk.changing:
        step = undo_step(desk.folder, number)
    return go(request, "/experiments" if desk.begun else "/begin", f"Undone: {step.what}.")


def _ask(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    n, wrong = tried(lambda: _whole_number(str(form.get("n", "")), "The number of experiments", 1, _MOST_ASKED))
    if wrong:
        return _page(request, None, wrong, 422)
    if not desk.begun:
        raise InputError("There is no campaign yet. Begin one first.")
    return go(request, f"/job/{desk.ask(n).id}")


def _whole_number(text: str, what: str, low: int, high: int) -> int:
    """The number in a field, or an ``InputError``."""
    bare = text.strip()
    if not (bare.isascii() and bare.isdigit() and low <= int(bare) <= high):
        raise InputError(f"{what} must be a whole number between {low} and {high}, but it is {text!r}.")
    return int(bare)


ROUTES = (
    Route("/experiments", _page),
    Route("/experiments/progress.svg", _progress),
    Route("/experiments/table.csv", _table),
    Route("/experiments/again", partial(go, path="/experiments")),
    Route("/experiments/again", posted(_again), methods=["POST"]),
    # a page that answers a form has the form's address, where its script, and whoever loads it again, looks for it
    Route("/experiments/save", partial(go, path="/experiments")),
    Route("/experiments/add", partial(go, path="/experiments")),
    Route("/experiments/save", posted(_save), methods=["POST"]),
    Route("/experiments/add", posted(_add), methods=["POST"]),
    Route("/experiments/right", posted(_right), methods=["POST"]),
    Route("/experiments/undo", posted(_undo), methods=["POST"]),
    Route("/experiments/ask", posted(_ask), methods=["POST"]),
)
