"""Begin: past files are dropped, columns are looked at and corrected, and the campaign is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

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
from headstart.web.pages.page import desk_of, go, posted, render, waiting
from headstart.web.pages.reading import past_rows
from headstart.web.pages.settings import MARKS, MoreForm, change_rules, more_in, more_of, show_settings, wrong_rules
from headstart.web.problems import for_the_page, tried


@dataclass
class Beginning:
    """The past files with their columns, guessed or as somebody corrected them, and the campaign that they make."""

    files: list[tuple[Path, Table | None]]
    problems: list[str]  # of files that cannot be read
    columns: list[ColumnForm]
    more: MoreForm
    looked: Looked | None = None
    wrong: str = ""
    slips: Sequence[ResultSlip] = ()

    @property
    def tables(self) -> list[Table]:
        """The files that can be read."""
        return [table for _, table in self.files if table is not None]

    @property
    def ready(self) -> bool:
        """Whether the campaign can be written."""
        return self.looked is not None and not self.more.wrong and not any(c.wrong for c in self.columns)


def _beginning(desk: Desk, form: FormData | None = None) -> Beginning:
    found = Beginning([], [], [], more_of(desk))
    for path in past_files(desk.folder):
        table, wrong = tried(partial(desk.table, path))
        found.files.append((path, table))
        found.problems += [wrong] if wrong else []
    if found.problems or not found.tables:
        return found
    found.columns = forms_of(found.tables)
    if form is not None:
        found.columns, found.more = forms_in(form, found.columns), more_in(form, found.more)
    _, wrong = tried(found.more.meaning)
    found.more = replace(found.more, wrong={"cells": wrong} if wrong else {})
    try:
        _, found.wrong = tried(lambda: _look(desk, found), but=(SlippedResultsError,))
    except SlippedResultsError as error:
        found.wrong, found.slips = "A result lies far outside anything seen: is it right?", error.slips
    return found


def _look(desk: Desk, found: Beginning) -> None:
    """Find what the campaign would be, and what was understood of the columns."""
    plan = found.more.plan(plan_of(found.columns), desk.folder)
    looked = desk.looked(past_files(desk.folder), plan)
    parameters, found.columns = parameters_in(found.columns, looked)
    found.looked = with_parameters(looked, parameters)
    if wrong := wrong_rules(desk.folder, found.looked.file):
        found.more = replace(found.more, wrong={**found.more.wrong, "rules": for_the_page(wrong)})


def _show(request: Request) -> Response:
    desk = desk_of(request)
    if desk.begun and "anew" not in request.query_params:
        return show_settings(request)
    return _page(request)


def _page(
    request: Request, found: Beginning | None = None, told: str = "", status: int = 200, *, compare: bool = False
) -> Response:
    """The page, of what was typed or of what is guessed."""
    desk = desk_of(request)
    found = _beginning(desk) if found is None else found
    looked, toml = found.looked, desk.folder / TOML
    content = {
        "title": "Begin",
        "files": [(path.name, len(table.rows) if table else 0) for path, table in found.files],
        "problems": [for_the_page(problem) for problem in found.problems],
        "columns": [replace(c, said=for_the_page(c.said)) for c in found.columns],
        "more": found.more,
        "slips": list({slip.cell: slip for slip in found.slips}.values()),
        "several": len(found.tables) > 1,
        "roles": ROLES,
        "kinds": KINDS,
        "marks": MARKS,
        "told": for_the_page(told or found.wrong),
        "remarks": [for_the_page(remark) for remark in looked.remarks] if looked is not None else [],
        "work": desk.compare(looked) if looked is not None and compare and found.ready else None,
        "anew": desk.begun,
        "seen": digest(toml.read_bytes()) if desk.begun else "",
        "suffixes": ",".join(SUFFIXES),
        "most": MOST_FILES,
        "last": last_step(desk.folder),
    }
    return render(request, "begin.html", content, status=status)


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
    found = _beginning(desk, form)
    if not found.tables:
        raise InputError("There are no past files yet. Drop some first.")
    if form.get("do") != "write":
        return _page(request, found, status=422 if found.wrong else 200, compare=form.get("do") == "compare")
    if found.looked is None or not found.ready:
        return _page(request, found, found.wrong or "Nothing was written: some fields need another look.", 422)
    try:
        with desk.changing:
            begin(desk.folder, found.looked, seen=str(form.get("seen", "")) or None)
    except ChangedMeanwhileError as error:
        return _page(request, found, f"Somebody else was faster: {error}", 409)
    return go(request, "/experiments", f"{TOML} was written. Ask for the first experiments.")


def _agreement(request: Request) -> Response:
    """How far past campaigns agree; a page of its own, or a part of one for the script."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is None:
        raise HTTPException(404)
    if not work.done or work.error:
        return waiting(request, work, work.what)
    found = enumerate(_compared(request).outcomes)
    outcomes = [
        {"name": name, "rows": past_rows(PastOf(name, check, None)), "picture": i} for i, (name, check, _) in found
    ]
    return render(request, "agreement.html", {"title": "Do they agree?", "outcomes": outcomes, "ident": work.id})


def _agreement_picture(request: Request) -> Response:
    outcomes, i = _compared(request).outcomes, request.path_params["i"]
    if i >= len(outcomes):
        raise HTTPException(404)
    return Response(outcomes[i][2], media_type="image/svg+xml")


def _compared(request: Request) -> Compared:
    work = desk_of(request).work(request.path_params["ident"])
    if work is None or not isinstance(work.result, Compared):
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
