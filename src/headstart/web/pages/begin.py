"""Begin: past files are dropped, columns and rules are looked at and corrected, and the campaign is written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headstart.campaign.desk import beginning
from headstart.campaign.desk.changes import drop_batch, save_ranges, save_rules
from headstart.campaign.desk.history import Step, digest, last_step
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.init import CURRENT, CampaignPlan, Looked, look_at, take_columns
from headstart.campaign.measured import ResultSlip, SlippedResultsError
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.reading import read_campaign_file
from headstart.data.outcomes import Goal
from headstart.errors import ChangedMeanwhileError, HeadstartError, InputError, Message, UnusableCellsError
from headstart.sources.files.cells import FAILED, MARK_KEY, MISSING, number
from headstart.sources.files.tables import Table
from headstart.web.desk import Desk
from headstart.web.jobs import Compared, PastOf
from headstart.web.pages.columns import (
    KINDS,
    ROLES,
    ColumnForm,
    forms_in,
    forms_of,
    parameters_in,
    plan_of,
    ranges_in,
    with_roles,
)
from headstart.web.pages.page import desk_of, go, posted, render, waiting
from headstart.web.pages.reading import past_rows
from headstart.web.problems import for_the_page, in_words, tried
from headstart.web.worker import DeskWork

_log = logging.getLogger(__name__)
_MARKS = {"": "as the files show", ",": "comma (1,5)", ".": "point (1.5)"}
_FIELDS = ("mark", "cells", "rules", "current")
_KEPT_IN = (CURRENT, "current.xlsx")


@dataclass(frozen=True)
class MoreForm:
    """What was typed besides the columns; ``wrong`` by field. ``old`` is the campaign that is written anew."""

    mark: str = ""
    cells: str = ""
    rules: str = ""
    current: str = CURRENT
    wrong: Mapping[str, str] = field(default_factory=dict)
    old: CampaignFile | None = None

    @property
    def kept_in(self) -> tuple[str, ...]:
        """The files that experiments can be kept in."""
        return tuple(dict.fromkeys((self.current, *_KEPT_IN)))

    @property
    def used(self) -> bool:
        """Whether anything in it is not as it is usually."""
        return bool(self.mark or self.cells or self.rules or self.wrong or self.current != CURRENT)

    def meaning(self) -> dict[str, Any]:
        """What cells mean, as a table [cells] has it; an ``InputError`` names the line."""
        found: dict[str, Any] = {MARK_KEY: self.mark} if self.mark in (".", ",") else {}
        for line in filter(None, map(str.strip, self.cells.splitlines())):
            text, equals, told = (part.strip() for part in line.rpartition("="))
            value = told if told in (MISSING, FAILED) else number(told, ".")
            if not (equals and text) or value is None:
                raise InputError(f"{line!r} is not understood: write the cell, =, and missing, failed or a number.")
            found[text] = value
        return found

    def plan(self, columns: CampaignPlan, folder: Path) -> CampaignPlan:
        """The plan of the columns with the rest; lists and descriptors are those of the campaign before."""
        old = self.old
        described = {} if old is None else {p.name: p.descriptors for p in old.parameters}
        return replace(
            columns,
            cells=self.meaning(),
            rules=tuple(filter(None, map(str.strip, self.rules.splitlines()))),
            current=self.current,
            model="" if old is None else old.model,
            candidates=folder / old.candidates if old is not None and old.candidates else None,
            descriptors={name: folder / file for name, file in described.items() if isinstance(file, str) and file},
        )


def _more_of(desk: Desk) -> MoreForm:
    """What the campaign says that is there already, or nothing."""
    old, _ = tried(lambda: read_campaign_file(desk.folder / TOML)) if desk.begun else (None, "")
    if old is None:
        return MoreForm()
    cells = [f"{text} = {told if isinstance(told, str) else f'{told:g}'}" for text, told in old.cells.items()]
    return MoreForm(
        str(old.cells.get(MARK_KEY, "")),
        "\n".join(line for line in cells if not line.startswith(f"{MARK_KEY} =")),
        "\n".join(old.rules),
        old.current,
        old=old,
    )


def _more_in(form: FormData, before: MoreForm) -> MoreForm:
    """What was typed."""
    mark, cells, rules, current = (str(form.get(name, getattr(before, name))) for name in _FIELDS)
    if cell := str(form.get("right", ""))[:60]:  # a result that is said to be right
        cells = "\n".join(filter(None, (cells.strip(), f"{cell} = {cell.replace(',', '.')}")))
    current = current if current in before.kept_in else before.current
    return replace(before, mark=mark, cells=cells, rules=rules, current=current)


@dataclass(frozen=True)
class OwnForm:
    """A campaign without past files as it was typed: what can be set, one in a line, and what counts."""

    space: str = ""
    goal: str = ""
    way: str = "maximise"

    def plan(self) -> CampaignPlan:
        """What is asked for; an ``InputError`` says what is missing."""
        lines = tuple(filter(None, map(str.strip, self.space.splitlines())))
        if not lines or not self.goal.strip():
            raise InputError("Say what can be set, one in a line such as T [°C] = 20..120, and what counts.")
        if wrong := next((line for line in lines if "=" not in line), None):
            raise InputError(f"{wrong!r} is not understood: write it as T [°C] = 20..120 or solvent = DMF|THF.")
        return CampaignPlan((Goal(self.goal.strip(), maximize=self.way != "minimise"),), parameters=lines)


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
    sent: bool = False  # whether somebody has seen what is proposed

    @property
    def tables(self) -> list[Table]:
        """The files that can be read."""
        return [table for _, table in self.files if table is not None]

    @property
    def ready(self) -> bool:
        """Whether the campaign can be written."""
        return self.looked is not None and not self.more.wrong and not any(c.wrong for c in self.columns)


def _beginning(desk: Desk, form: FormData | None = None) -> Beginning:
    found = Beginning([], [], [], _more_of(desk))
    for path in beginning.past_files(desk.folder):
        table, wrong = _survived(partial(desk.table, path), f"{path.name} cannot be read")
        found.files.append((path, table))
        found.problems += [wrong] if wrong else []
    if found.problems or not found.tables:
        return found
    found.columns = forms_of(found.tables)
    found.sent = form is not None
    if form is not None:
        found.columns, found.more = forms_in(form, found.columns), _more_in(form, found.more)
    _, wrong = tried(found.more.meaning)
    found.more = replace(found.more, wrong={"cells": wrong} if wrong else {})
    try:
        _, found.wrong = _survived(lambda: _look(desk, found), "", but=(SlippedResultsError,))
    except SlippedResultsError as error:
        found.wrong, found.slips = "A result lies far outside anything seen: is it right?", error.slips
    return found


def _survived(do: Callable[[], Any], what: str, *, but: tuple[type[Exception], ...] = ()) -> tuple[Any, str]:
    """As ``tried``, but no error at all ends the page: the file behind it can be taken out there."""
    try:
        return tried(do, but=but)
    except but:
        raise
    except Exception as error:
        _log.exception("a past file cannot be used")
        return None, Message(f"{what}: {in_words(error)}" if what else in_words(error))


def _look(desk: Desk, found: Beginning) -> None:
    """Find what the campaign would be, and what was understood of the columns."""
    proposed, _ = tried(lambda: plan_of(found.columns, sent=False))  # what is wrong is told below
    found.columns = with_roles(found.columns, take_columns(found.tables, proposed or CampaignPlan()))
    plan = found.more.plan(plan_of(found.columns, sent=found.sent), desk.folder)
    looked = desk.looked(beginning.past_files(desk.folder), plan)
    parameters, found.columns = parameters_in(found.columns, looked)
    found.looked = looked = beginning.with_parameters(looked, parameters)
    _, wrong = tried(lambda: read_settings(desk.folder, looked.file, (), place="Rules"))
    if wrong:
        found.more = replace(found.more, wrong={**found.more.wrong, "rules": for_the_page(wrong)})


def _show(request: Request) -> Response:
    begun = desk_of(request).begun and "anew" not in request.query_params
    return _show_settings(request) if begun else _page(request)


def _page(
    request: Request,
    found: Beginning | None = None,
    told: str = "",
    status: int = 200,
    *,
    compare: bool = False,
    own: OwnForm | None = None,
) -> Response:
    """The page, of what was typed or of what is guessed."""
    desk = desk_of(request)
    found = _beginning(desk) if found is None else found
    looked, toml = found.looked, desk.folder / TOML
    sections = _sections(found.columns)
    content = {
        "title": "Begin",
        "files": [(path.name, len(table.rows) if table else 0) for path, table in found.files],
        "problems": [for_the_page(problem) for problem in found.problems],
        "columns": [replace(c, said=for_the_page(c.said)) for c in found.columns],
        "sections": sections,
        "place": {c.name: i for i, c in enumerate(found.columns)},
        "shown": [found.columns[i].name for part, places in sections.items() if part != "same" for i in places],
        "own": own or OwnForm(),
        "more": found.more,
        "slips": list({slip.cell: slip for slip in found.slips}.values()),
        "several": len(found.tables) > 1,
        "roles": ROLES,
        "kinds": KINDS,
        "marks": _MARKS,
        "told": for_the_page(told or found.wrong),
        "remarks": [for_the_page(remark) for remark in looked.remarks] if looked is not None else [],
        "work": desk.compare(looked) if looked is not None and compare and found.ready else None,
        "anew": desk.begun,
        "seen": digest(toml.read_bytes()) if desk.begun else "",
        "suffixes": ",".join(beginning.SUFFIXES),
        "most": beginning.MOST_FILES,
        "last": last_step(desk.folder),
    }
    return render(request, "begin.html", content, status=status)


def _sections(columns: Sequence[ColumnForm]) -> dict[str, list[int]]:
    """The places of the columns by what they are for; those that are another one's are shown beside that."""
    found: dict[str, list[int]] = {"settings": [], "counts": [], "doubtful": [], "out": [], "same": []}
    for i, c in enumerate(columns):
        if c["same"] not in ("", "-"):
            found["same"].append(i)
        elif c["role"] == "ignore":
            found["doubtful" if c.doubt else "out"].append(i)
        else:
            found["settings" if c["role"] in ("parameter", "batch") else "counts"].append(i)
    return found


def _upload(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    sent = [part for part in form.getlist("files") if isinstance(part, UploadFile) and part.filename]
    if not sent or len(sent) > beginning.MOST_FILES:
        too_many = f"{len(sent)} files at once are too many: at most {beginning.MOST_FILES}."
        return _page(request, told=too_many if sent else "No file was chosen.", status=422)
    files = [(str(part.filename), part.file.read()) for part in sent]
    with desk.changing:
        _, wrong = tried(lambda: beginning.add_past(desk.folder, files))
    if wrong:
        return _page(request, told=f"Nothing was added: {wrong}", status=422)
    return go(request, "/begin?anew" if desk.begun else "/begin")


def _remove(request: Request, form: FormData) -> Response:
    desk = desk_of(request)
    with desk.changing:
        step = beginning.remove_past(desk.folder, str(form.get("file", "")))
    return go(request, "/begin?anew" if desk.begun else "/begin", f"Done: {step.what}.")


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
            beginning.begin(desk.folder, found.looked, seen=str(form.get("seen", "")) or None)
    except ChangedMeanwhileError as error:
        return _page(request, found, f"Somebody else was faster: {error}", 409)
    return go(request, "/experiments", f"{TOML} was written. Ask for the first experiments.")


def _own(request: Request, form: FormData) -> Response:
    """Begin a campaign without past files."""
    desk = desk_of(request)
    own = OwnForm(*(str(form.get(name, ""))[:5000] for name in ("space", "goal", "way")))
    seen = str(form.get("seen", "")) or None
    with desk.changing:
        _, wrong = tried(lambda: beginning.begin(desk.folder, look_at((), desk.folder, own.plan()), seen=seen))
    if wrong:
        return _page(request, told=wrong, status=422, own=own)
    return go(request, "/experiments", f"{TOML} was written. Ask for the first experiments.")


def _agreement(request: Request) -> Response:
    """How far past campaigns agree; a page of its own, or a part of one for the script."""
    work = desk_of(request).work(request.path_params["ident"])
    if work is not None and (not work.done or work.error):
        return waiting(request, work)
    found = enumerate(_compared(work))
    outcomes = [{"name": own.outcome, "rows": past_rows(own), "picture": i} for i, (own, _) in found]
    ident = request.path_params["ident"]
    return render(request, "agreement.html", {"title": "Do they agree?", "outcomes": outcomes, "ident": ident})


def _agreement_picture(request: Request) -> Response:
    found, i = _compared(desk_of(request).work(request.path_params["ident"])), request.path_params["i"]
    if i >= len(found):
        raise HTTPException(404)
    return Response(found[i][1], media_type="image/svg+xml")


def _compared(work: DeskWork | None) -> tuple[tuple[PastOf, bytes], ...]:
    if work is None or not isinstance(work.result, Compared):
        raise HTTPException(404)
    return work.result.outcomes


def _show_settings(
    request: Request,
    typed: list[tuple[str, str]] | None = None,
    told: str = "",
    status: int = 200,
    ranges: Sequence[ColumnForm] | None = None,
) -> Response:
    """What ``headstart.toml`` says; rules and ranges can be changed there, shown as ``typed`` with what is wrong."""
    desk = desk_of(request)
    raw = (desk.folder / TOML).read_bytes()
    file, problem = tried(lambda: read_campaign_file(desk.folder / TOML))
    now, other = _survived(desk.now, "") if file is not None else (None, "")
    rules = [(rule, "") for rule in file.rules] + [("", "")] if file is not None else []
    settings = now.campaign.settings if now is not None else None
    if ranges is None:
        ranges = [] if file is None else [c for _, c in ranges_in({}, file.parameters)]
    content = {
        "title": "The campaign",
        "ranges": ranges,
        "told": told or for_the_page(problem or other),
        "text": raw.decode("utf-8", errors="replace"),
        "file": file,
        "rules": [(i, *rule) for i, rule in enumerate(rules if typed is None else typed)],
        "listed": len(settings.listed) if settings is not None else None,
        "described": {} if settings is None else {n: own.names for n, own in settings.descriptors.items()},
        "batches": now.campaign.batches_in_words if now is not None else "",
        "seen": digest(raw),
        "last": last_step(desk.folder),
    }
    return render(request, "begun.html", content, status=status)


def _change_rules(request: Request, form: FormData) -> Response:
    """Save the rules; one that cannot be understood is told beside its field."""
    desk = desk_of(request)
    rules = [str(rule).strip() for rule in form.getlist("rule")][:50]
    typed = [(rule, "") for rule in (*rules, *([""] if rules and rules[-1] else []))]
    try:
        with desk.changing:
            step = save_rules(desk.folder, str(form.get("seen", "")), rules, opening=desk.opening)
    except UnusableCellsError as error:
        wrong = {row: told for (row, _), told in error.cells.items()}
        typed = [(rule, wrong.get(i, "")) for i, (rule, _) in enumerate(typed)]
        return _show_settings(request, typed, "Nothing was saved: a rule needs another look.", 422)
    except ChangedMeanwhileError as error:
        return _show_settings(request, typed, f"Somebody else was faster: {error}", 409)
    return _saved(request, step)


def _change_ranges(request: Request, form: FormData) -> Response:
    """Save ranges, steps and choices, or that there is no batch; a number that is none is told beside its field."""
    desk = desk_of(request)
    found = ranges_in(form, read_campaign_file(desk.folder / TOML).parameters)
    shown = [c for _, c in found]
    if any(c.wrong for c in shown):
        return _show_settings(request, told="Nothing was saved: a range needs another look.", status=422, ranges=shown)
    try:
        with desk.changing:
            seen, parameters = str(form.get("seen", "")), [p for p, _ in found]
            change = drop_batch if "batch" in form else partial(save_ranges, parameters=parameters)
            step = change(desk.folder, seen, opening=desk.opening)
    except ChangedMeanwhileError as error:
        return _show_settings(request, told=f"Somebody else was faster: {error}", status=409, ranges=shown)
    except HeadstartError as error:
        return _show_settings(request, told=for_the_page(str(error)), status=422, ranges=shown)
    return _saved(request, step)


def _saved(request: Request, step: Step | None) -> Response:
    return go(request, "/begin", "Nothing was new." if step is None else f"Saved: {step.what}.")


ROUTES = (
    Route("/begin", _show),
    Route("/begin/rules", partial(go, path="/begin")),
    Route("/begin/columns", partial(go, path="/begin")),
    Route("/begin/rules", posted(_change_rules), methods=["POST"]),
    Route("/begin/ranges", partial(go, path="/begin")),
    Route("/begin/ranges", posted(_change_ranges), methods=["POST"]),
    Route("/begin/files", posted(_upload), methods=["POST"]),
    Route("/begin/own", partial(go, path="/begin")),
    Route("/begin/own", posted(_own), methods=["POST"]),
    Route("/begin/remove", posted(_remove), methods=["POST"]),
    Route("/begin/columns", posted(_columns), methods=["POST"]),
    Route("/begin/agreement/{ident}", _agreement),
    Route("/begin/agreement/{ident}/{i:int}.svg", _agreement_picture),
)
