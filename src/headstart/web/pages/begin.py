"""Begin: past files are dropped, columns are looked at and corrected, and the campaign is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.desk.beginning import (
    MOST_FILES,
    SUFFIXES,
    UploadedFile,
    add_past,
    begin,
    past_files,
    remove_past,
    with_parameters,
)
from headstart.campaign.desk.history import digest, last_step
from headstart.campaign.file import TOML
from headstart.campaign.init import Looked
from headstart.campaign.measured import ResultSlip, SlippedResultsError
from headstart.errors import ChangedMeanwhileError, InputError
from headstart.sources.files.tables import Table
from headstart.web.desk import Desk
from headstart.web.jobs import Compared, PastOf
from headstart.web.pages.columns import KINDS, ROLES, ColumnForm, forms_in, forms_of, parameters_in, plan_of
from headstart.web.pages.page import desk_of, go, posted, render
from headstart.web.pages.reading import past_rows
from headstart.web.pages.settings import MoreForm, change_rules, more_in, more_of, show_settings, wrong_rules
from headstart.web.problems import for_the_page, tried
from headstart.web.worker import DeskWork


def _show(request: Request) -> Response:
    desk = desk_of(request)
    if desk.begun and "anew" not in request.query_params:
        return show_settings(request)
    return _page(request)


def _page(
    request: Request,
    columns: list[ColumnForm] | None = None,
    told: str = "",
    status: int = 200,
    *,
    more: MoreForm | None = None,
    compare: bool = False,
) -> Response:
    """The page; with columns as somebody corrected them, or as they are guessed."""
    desk = desk_of(request)
    told_more = _understood(more_of(desk) if more is None else more)
    slips: Sequence[ResultSlip] = ()
    files, problems = _tables(desk)
    tables = [table for _, table in files if table is not None]
    looked: Looked | None = None
    shown: list[ColumnForm] = []
    if tables and not problems:
        shown = columns or forms_of(tables)
        try:
            found, wrong = tried(lambda: _look(desk, shown, told_more), but=(SlippedResultsError,))
        except SlippedResultsError as error:
            found, wrong, slips = None, "A result lies far outside anything seen: is it right?", error.slips
        looked, shown = found or (None, shown)
        if wrong and not told:
            told, status = wrong, status if columns is None else 422
        if looked is not None and (bad := wrong_rules(desk.folder, looked.file)):
            told_more = replace(told_more, wrong={**told_more.wrong, "rules": for_the_page(bad)})
    ready = looked is not None and not told_more.wrong and not any(c.wrong for c in shown)
    work = desk.compare(looked) if looked is not None and compare and ready else None
    content = {
        "title": "Begin",
        "files": [(path.name, len(table.rows) if table else 0) for path, table in files],
        "problems": [for_the_page(problem) for problem in problems],
        "columns": [replace(c, said=for_the_page(c.said)) for c in shown],
        "more": told_more,
        "slips": list({slip.cell: slip for slip in slips}.values()),
        "several": len(tables) > 1,
        "roles": ROLES,
        "kinds": KINDS,
        "told": for_the_page(told),
        "remarks": [for_the_page(remark) for remark in looked.remarks] if looked is not None else [],
        "ready": ready,
        "work": work,
        "anew": desk.begun,
        "seen": digest(_toml(desk)) or "",
        "suffixes": ",".join(SUFFIXES),
        "most": MOST_FILES,
        "last": last_step(desk.folder),
    }
    return render(request, "begin.html", content, status=status)


def _understood(more: MoreForm) -> MoreForm:
    """With what is wrong with what cells are said to mean."""
    _, wrong = tried(more.meaning)
    return replace(more, wrong={"cells": wrong}) if wrong else replace(more, wrong={})


def _tables(desk: Desk) -> tuple[list[tuple[Path, Table | None]], list[str]]:
    files: list[tuple[Path, Table | None]] = []
    problems = []
    for path in past_files(desk.folder):
        table, wrong = tried(partial(desk.table, path))
        files.append((path, table))
        problems += [wrong] if wrong else []
    return files, problems


def _look(desk: Desk, columns: Sequence[ColumnForm], more: MoreForm) -> tuple[Looked, list[ColumnForm]]:
    """What the campaign would be, and the columns with what was understood."""
    plan = more.plan(plan_of(columns), desk.folder)
    looked = desk.looked(past_files(desk.folder), plan)
    parameters, shown = parameters_in(columns, looked)
    return with_parameters(looked, parameters), shown


def _toml(desk: Desk) -> bytes | None:
    path = desk.folder / TOML
    return path.read_bytes() if path.exists() else None


# ── what comes in ─────────────────────────────────────────────────────────────────────────────────────────────────


def _upload(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    sent = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    if not sent:
        return _page(request, told="No file was chosen.", status=422)
    if len(sent) > MOST_FILES:
        return _page(request, told=f"{len(sent)} files at once are too many: at most {MOST_FILES}.", status=422)
    files = [UploadedFile(str(part.filename), part.file.read()) for part in sent]
    with desk.changing:
        _, wrong = tried(lambda: add_past(desk.folder, files))
    if wrong:
        return _page(request, told=f"Nothing was added: {wrong}", status=422)
    return go(request, "/begin?anew" if desk.begun else "/begin")


def _remove(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    with desk.changing:
        step = remove_past(desk.folder, str(form.get("file", "")))
    return go(request, "/begin", "" if desk.begun else f"Done: {step.what}.")


def _columns(request: Request, form: FormData) -> Response:
    """Look again with what was typed, compare the past campaigns, or write the campaign."""
    desk = desk_of(request)
    files, _ = _tables(desk)
    tables = [table for _, table in files if table is not None]
    if not tables:
        raise InputError("There are no past files yet. Drop some first.")
    columns = forms_in(form, forms_of(tables))
    more = more_in(form, more_of(desk))
    if "right" in form:
        more = more.with_right(str(form["right"])[:60])
    if form.get("do") != "write":
        return _page(request, columns, more=more, compare=form.get("do") == "compare")
    more = _understood(more)
    try:
        found, wrong = tried(lambda: _look(desk, columns, more), but=(SlippedResultsError,))
    except SlippedResultsError:
        return _page(request, columns, status=422, more=more)
    if wrong:
        return _page(request, columns, wrong, 422, more=more)
    looked, shown = found
    if any(c.wrong for c in shown) or wrong_rules(desk.folder, looked.file):
        return _page(request, columns, "Nothing was written: some fields need another look.", 422, more=more)
    try:
        with desk.changing:
            begin(desk.folder, looked, seen=str(form.get("seen", "")) or None)
    except ChangedMeanwhileError as error:
        return _page(request, columns, f"Somebody else was faster: {error}", 409, more=more)
    return go(request, "/experiments", f"{TOML} was written. Ask for the first experiments.")


def _agreement(request: Request) -> Response:
    """How far past campaigns agree; a page of its own, or a part of one for the script."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is None:
        raise HTTPException(404)
    if not work.done or work.error:
        return render(request, "work.html", {"work": work, "title": work.what, "then": request.url.path})
    outcomes = [
        {"name": name, "rows": past_rows(PastOf(name, check, None)), "picture": i}
        for i, (name, check, _) in enumerate(_compared(work).outcomes)
    ]
    return render(request, "agreement.html", {"title": "Do they agree?", "outcomes": outcomes, "ident": work.id})


def _agreement_picture(request: Request) -> Response:
    work = desk_of(request).work(request.path_params["ident"])
    i: Any = request.path_params["i"]
    if work is None or not work.done or work.error or i >= len(_compared(work).outcomes):
        raise HTTPException(404)
    return Response(_compared(work).outcomes[i][2], media_type="image/svg+xml")


def _compared(work: DeskWork) -> Compared:
    if not isinstance(work.result, Compared):
        raise HTTPException(404)
    return work.result


ROUTES = (
    Route("/begin", _show),
    Route("/begin/rules", partial(go, path="/begin")),
    Route("/begin/columns", partial(go, path="/begin")),
    Route("/begin/rules", posted(change_rules), methods=["POST"]),
    Route("/begin/files", posted(_upload), methods=["POST"]),
    Route("/begin/remove", posted(_remove), methods=["POST"]),
    Route("/begin/columns", posted(_columns), methods=["POST"]),
    Route("/begin/agreement/{ident}", _agreement),
    Route("/begin/agreement/{ident}/{i:int}.svg", _agreement_picture),
)
