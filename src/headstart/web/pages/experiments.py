"""Experiments: what to try, what came out, and what somebody does about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.desk.changes import OwnRow, add_row, remove_row, save_results, say_right
from headstart.campaign.desk.contents import with_campaign
from headstart.campaign.desk.history import Step, last_step, steps_of, undo_step
from headstart.campaign.experiments import State
from headstart.campaign.measured import SlippedResultsError
from headstart.errors import ChangedMeanwhileError, InputError, UnusableCellsError
from headstart.web.desk import row_key
from headstart.web.pages.page import desk_of, go, posted, render
from headstart.web.pages.rows import Typed, own_fields, row_of, typed_in
from headstart.web.problems import for_the_page, tried, whole_number
from headstart.web.worker import DeskWork

_MOST_ASKED = 100
_SHOWN_STEPS = 20


def _page(
    request: Request, typed: Typed | None = None, told: str = "", status: int = 200, *, opened: int | None = None
) -> Response:
    """The page; with what was typed, and the row whose settings were just opened to be changed."""
    desk, typed = desk_of(request), typed or Typed()
    now = desk.now()
    campaign, learned = now.campaign, desk.learned(now)
    known = None if isinstance(learned, DeskWork) else learned
    found = desk.outlooks(now, known, [e.values for e in campaign.those(State.PENDING)]) if known else {}
    rows = [row_of(campaign, e, found.get(row_key(campaign, e.values)), typed) for e in campaign.experiments]
    own = with_campaign(known.fitted, campaign).remarks if known else ()
    content = {
        "title": "Experiments",
        "file": campaign.file,
        "seen": now.seen,
        "pending": [row for row in rows if row.state == State.PENDING],
        "others": [row for row in rows if row.state != State.PENDING][::-1],
        "best": getattr(campaign.best, "number", None),
        "limited": bool(campaign.file.limits),
        "work": learned if isinstance(learned, DeskWork) else None,
        "knows": known.fitted.knows if known else True,
        "own": own_fields(campaign, typed),
        "told": told,
        "opened": opened,
        "remarks": [for_the_page(remark) for remark in dict.fromkeys([*own, *campaign.remarks])],
        "steps": steps_of(desk.folder)[::-1][:_SHOWN_STEPS],
        "last": last_step(desk.folder),
        "outlook": desk.outlook(now),
    }
    return render(request, "experiments.html", content, status=status)


# ── what comes in ─────────────────────────────────────────────────────────────────────────────────────────────────


def show_again(request: Request, form: FormData, told: str) -> Response:
    """The page with what was typed, and why it was not taken."""
    typed = typed_in(desk_of(request).now().campaign, form)
    return _page(request, typed, told, 409)


def _save(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    typed = typed_in(desk.now().campaign, form)
    rows = {do: whole_number(str(form[do]), "The row", 1, 10**9) for do in ("edit", "failed", "remove") if do in form}
    if "edit" in rows:
        return _page(request, replace(typed, edit=typed.edit | {rows["edit"]}), opened=rows["edit"])
    seen, failed = str(form.get("seen", "")), [rows["failed"]] if "failed" in rows else []

    def change() -> Step | None:
        if "remove" in rows:
            return remove_row(desk.folder, seen, rows["remove"], opening=desk.opening)
        return save_results(desk.folder, seen, typed.cells, failed=failed, right=typed.right, opening=desk.opening)

    return _changed(request, replace(typed, own={}), change, "saved")


def _add(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    typed = typed_in(desk.now().campaign, form)
    right = [column for _, column in typed.right]

    def change() -> Step | None:
        return add_row(desk.folder, str(form.get("seen", "")), OwnRow(typed.own), right=right, opening=desk.opening)

    return _changed(request, Typed(own=typed.own, right=typed.right), change, "added")


def _changed(request: Request, typed: Typed, change: Callable[[], Step | None], done: str) -> Response:
    """The page after a change; or with what was typed, beside it what is wrong with it or asked about it."""
    try:
        with desk_of(request).changing:
            step = change()
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
    return go(request, "/experiments", "Nothing was new." if step is None else f"Saved: {step.what}.")


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
    number = whole_number(str(form.get("step", "")), "The step", 1, 10**6)
    with desk.changing:
        step = undo_step(desk.folder, number)
    return go(request, "/experiments" if desk.begun else "/begin", f"Undone: {step.what}.")


def _ask(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    n, wrong = tried(lambda: whole_number(str(form.get("n", "")), "The number of experiments", 1, _MOST_ASKED))
    if wrong:
        return _page(request, None, wrong, 422)
    if not desk.begun:
        raise InputError("There is no campaign yet. Begin one first.")
    return go(request, f"/job/{desk.ask(n).id}")


ROUTES = (
    Route("/experiments", _page),
    # a page that answers a form has the form's address, where its script, and whoever loads it again, looks for it
    Route("/experiments/save", partial(go, path="/experiments")),
    Route("/experiments/add", partial(go, path="/experiments")),
    Route("/experiments/save", posted(_save), methods=["POST"]),
    Route("/experiments/add", posted(_add), methods=["POST"]),
    Route("/experiments/right", posted(_right), methods=["POST"]),
    Route("/experiments/undo", posted(_undo), methods=["POST"]),
    Route("/experiments/ask", posted(_ask), methods=["POST"]),
)
