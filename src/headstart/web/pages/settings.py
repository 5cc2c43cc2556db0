"""What a campaign is besides its columns: rules, what cells mean, where experiments are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from headstart.campaign.desk.changes import save_rules
from headstart.campaign.desk.history import digest, last_step
from headstart.campaign.file import TOML, CampaignFile
from headstart.campaign.init import CURRENT, CampaignPlan
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.reading import read_campaign_file
from headstart.errors import ChangedMeanwhileError, InputError, UnusableCellsError
from headstart.sources.files.cells import FAILED, MARK_KEY, MISSING, number
from headstart.web.desk import Desk
from headstart.web.pages.page import desk_of, go, render
from headstart.web.problems import for_the_page, tried

MARKS = {"": "as the files show", ",": "comma (1,5)", ".": "point (1.5)"}
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


def more_of(desk: Desk) -> MoreForm:
    """What the campaign says that is there already, or nothing."""
    old, _ = tried(lambda: read_campaign_file(desk.folder / TOML)) if desk.begun else (None, "")
    if old is None:
        return MoreForm()
    cells = [f"{text} = {told if isinstance(told, str) else f'{told:g}'}" for text, told in old.cells.items()]
    return MoreForm(
        str(old.cells.get(MARK_KEY, "")),
        "\n".join(line for line in cells if not line.startswith(f"{MARK_KEY} =")),
        "\n".join(rule.text for rule in old.rules),
        old.current,
        old=old,
    )


def more_in(form: FormData, before: MoreForm) -> MoreForm:
    """What was typed."""
    mark, cells, rules, current = (str(form.get(name, getattr(before, name))) for name in _FIELDS)
    if cell := str(form.get("right", ""))[:60]:  # a result that is said to be right
        cells = "\n".join(filter(None, (cells.strip(), f"{cell} = {cell.replace(',', '.')}")))
    current = current if current in before.kept_in else before.current
    return replace(before, mark=mark, cells=cells, rules=rules, current=current)


def wrong_rules(folder: Path, file: CampaignFile) -> str:
    """What is wrong with the rules, "" if they can be used."""
    _, wrong = tried(lambda: read_settings(folder, file, (), place="Rules"))
    return wrong


# ── the campaign that has begun ───────────────────────────────────────────────────────────────────────────────────


def show_settings(
    request: Request,
    typed: list[str] | None = None,
    wrong: Mapping[int, str] | None = None,
    told: str = "",
    status: int = 200,
) -> Response:
    """What ``headstart.toml`` says and how it was understood; rules can be changed."""
    desk = desk_of(request)
    raw = (desk.folder / TOML).read_bytes()
    file, problem = tried(lambda: read_campaign_file(desk.folder / TOML))
    now, other = tried(desk.now) if file is not None else (None, "")
    rules = typed if typed is not None else [*(rule.text for rule in file.rules), ""] if file is not None else []
    settings = now.campaign.settings if now is not None else None
    content = {
        "title": "The campaign",
        "told": told or for_the_page(problem or other),
        "text": raw.decode("utf-8", errors="replace"),
        "file": file,
        "rules": [(i, rule, (wrong or {}).get(i, "")) for i, rule in enumerate(rules)],
        "listed": len(settings.listed) if settings is not None else None,
        "described": {} if settings is None else {n: own.names for n, own in settings.descriptors.items()},
        "seen": digest(raw),
        "last": last_step(desk.folder),
    }
    return render(request, "begun.html", content, status=status)


def change_rules(request: Request, form: FormData) -> Response:
    """Save the rules; one that cannot be understood is told beside its field."""
    desk = desk_of(request)
    rules = [str(rule).strip() for rule in form.getlist("rule")][:50]
    typed = [*rules, *([""] if rules and rules[-1] else [])]
    try:
        with desk.changing:
            step = save_rules(desk.folder, str(form.get("seen", "")), rules, opening=desk.opening)
    except UnusableCellsError as error:
        wrong = {row: told for (row, _), told in error.cells.items()}
        return show_settings(request, typed, wrong, "Nothing was saved: a rule needs another look.", 422)
    except ChangedMeanwhileError as error:
        return show_settings(request, typed, {}, f"Somebody else was faster: {error}", 409)
    return go(request, "/begin", "Nothing was new." if step is None else f"Saved: {step.what}.")
