"""The experiments as a page shows them: settings, cells to type into, what is expected, and what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.datastructures import FormData

from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.changes import OWN_ROW, CellPlace
from headstart.campaign.desk.words import cell as cell_text
from headstart.campaign.desk.words import percent, with_interval
from headstart.campaign.experiments import Experiment
from headstart.campaign.measured import ResultSlip
from headstart.sources.parameters import Kind
from headstart.web.jobs import RowOutlook


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
    expected: str = ""
    hint: str = ""
    choices: tuple[str, ...] = ()


@dataclass
class ShownRow:
    """A row of the table. ``fields`` are its settings where somebody changes them, by the parameter's name."""

    number: int
    state: str
    settings: list[tuple[str, Any]]
    cells: list[FieldShown]
    fields: dict[str, FieldShown] = field(default_factory=dict)
    within: str = ""
    rests: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Typed:
    """What somebody typed before something was wrong with it, or asked about it; ``edit`` are rows with settings."""

    cells: Mapping[CellPlace, str] = field(default_factory=dict)
    before: Mapping[CellPlace, str] = field(default_factory=dict)
    wrong: Mapping[CellPlace, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    edit: frozenset[int] = frozenset()
    right: frozenset[CellPlace] = frozenset()
    slips: Mapping[CellPlace, ResultSlip] = field(default_factory=dict)

    def answered(self, shown: FieldShown, place: CellPlace) -> FieldShown:
        """The field with what is wrong with it, or asked about it."""
        slip = self.slips.get(place)
        told = "" if slip is None else f"{slip.cell} is {slip.times:.0f} times the largest of all other results."
        return replace(
            shown,
            wrong=self.wrong.get(place, ""),
            asked=told and f"{told} Is it right, or has the decimal mark slipped?",
            meant="" if slip is None else f"{slip.meant:g}",
            right=place in self.right,
        )


def row_of(campaign: Campaign, e: Experiment, outlook: RowOutlook | None, typed: Typed) -> ShownRow:
    """An experiment with a cell for every result and standard error, and what is expected of it."""
    file, at = campaign.file, campaign.table.numbers.index(e.number)
    texts = dict(zip(campaign.table.columns, campaign.table.rows[at], strict=True))
    ranges = dict(zip((column.name for column in file.results), outlook.ranges, strict=True)) if outlook else {}
    labels = {column.name: column.label for column in file.results}
    labels |= {column.error: f"standard error of {column.name}" for column in file.results if column.error}
    cells = []
    for i, column in enumerate(file.measured_columns):
        shown = _field(f"r{e.number}.{i}", (e.number, column), labels[column], typed, texts.get(column, ""))
        r = ranges.get(column)
        if r is not None and column not in e.results:
            shown.expected = with_interval(r.median, r.low, r.high)
        cells.append(shown)
    row = ShownRow(e.number, e.state, [(p.name, e.values[p.name]) for p in file.parameters], cells)
    if e.number in typed.edit:
        for i, p in enumerate(file.parameters):
            if p.kind is not Kind.FIXED:
                there = texts.get(p.name, "") or cell_text(e.values[p.name])
                own = _field(f"s{e.number}.{i}", (e.number, p.name), p.label, typed, there)
                row.fields[p.name] = replace(own, choices=(*p.choices, *p.withdrawn) if p.is_text else ())
    if outlook is not None:
        row.within = percent(outlook.within)
        known = [(name, share) for name, share in outlook.shares if share >= 0.005]
        row.rests = [(name, percent(share)) for name, share in sorted(known, key=lambda each: -each[1])]
    return row


def _field(name: str, place: CellPlace, label: str, typed: Typed, there: str) -> FieldShown:
    shown = FieldShown(name, place[1], label, there, typed.cells.get(place, there))
    if place in typed.cells and typed.before.get(place, "") != there:
        shown.note = f"somebody else wrote {there or 'nothing'} here meanwhile"
    return typed.answered(shown, place)


def own_fields(campaign: Campaign, typed: Typed) -> list[FieldShown]:
    """The fields of an experiment of one's own."""
    fields = []
    for i, p in enumerate(campaign.file.parameters):
        if p.kind is not Kind.FIXED:
            hint = "" if p.is_text else f"{p.low:g} … {p.high:g}"
            choices = p.choices if p.is_text else ()
            text = typed.own.get(p.name, "")
            fields.append((p.name, FieldShown(f"p{i}", p.name, p.label, typed=text, hint=hint, choices=choices)))
    for i, column in enumerate(campaign.file.measured_columns):
        text = typed.own.get(column, "")
        fields.append((column, FieldShown(f"m{i}", column, column, typed=text, hint="if there is one")))
    return [typed.answered(shown, (OWN_ROW, name)) for name, shown in fields]


def typed_in(campaign: Campaign, form: FormData) -> Typed:
    """The cells that somebody changed: those that are not what the form was sent out with.

    Fields are called r3.0 (the first result of row 3), s3.0 (its first setting), p0 and m0 (those of one's own); o3.0
    and os3.0 are what stood there, and 'right' and 'meant' are answers: the field, and the number that is meant.
    """
    results, settings = campaign.file.measured_columns, [p.name for p in campaign.file.parameters]
    cells: dict[CellPlace, str] = {}
    before: dict[CellPlace, str] = {}
    edit, places = set(), {}
    for name, value in form.multi_items():
        row, dot, i = name[1:].partition(".")
        columns = {"r": results, "s": settings}.get(name[:1], ())
        if not (dot and row.isdigit() and i.isdigit() and int(i) < len(columns)):
            continue
        place = (int(row), columns[int(i)])
        was, text = str(form.get(f"{'o' if name[0] == 'r' else 'os'}{row}.{i}", "")), str(value).strip()
        places[name] = place
        if name[0] == "s":
            edit.add(place[0])
        if text != was:
            cells[place], before[place] = text, was
    own = {p.name: str(form.get(f"p{i}", "")).strip() for i, p in enumerate(campaign.file.parameters)}
    own |= {column: str(form.get(f"m{i}", "")).strip() for i, column in enumerate(results)}
    places |= {f"m{i}": (OWN_ROW, column) for i, column in enumerate(results)}
    right = set()
    for answer in form.getlist("right"):
        name, _, text = str(answer).partition(" ")
        place = places.get(name, (OWN_ROW, ""))
        if text and text == (own.get(place[1]) if name[:1] == "m" else cells.get(place)):  # it was typed anew else
            right.add(place)
    name, _, text = str(form.get("meant", "")).partition(" ")
    if name in places and name[:1] == "m":
        own[places[name][1]] = text
    elif name in places:
        cells[places[name]] = text
    return Typed(cells, before, {}, own, frozenset(edit), frozenset(right))
