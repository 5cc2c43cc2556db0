"""How the rows of Experiments are shown: what is expected as numbers and bars, settings in words, and as a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headstart.campaign.campaign import Campaign
from headstart.campaign.desk.words import cell, with_interval
from headstart.campaign.experiments import Experiment, State
from headstart.campaign.suggestions import RowOutlook
from headstart.data.outcomes import Goal, Standing
from headstart.sources.files.names import split_unit
from headstart.sources.files.tables import FileLayout, write_rows
from headstart.sources.parameters import Kind, Parameter

# Letters of all settings beside each other, above which they stand in one cell, so that no table is wider than a screen
_MOST_LETTERS = 56
_LETTERS_BETWEEN = 2  # two columns


@dataclass(frozen=True, slots=True)
class Bar:
    """What is expected, on a scale from 0 to 100 that all rows share: median, ends, and the best so far or the limit.

    ``mark`` is None where there is nothing to compare with.
    """

    low: float
    middle: float
    high: float
    mark: float | None

    @property
    def width(self) -> float:
        """From end to end; what is certain is a line too."""
        return max(self.high - self.low, 1.0)


@dataclass(frozen=True, slots=True)
class Bars:
    """The scale of every outcome: its ends, and what is compared with."""

    scales: Mapping[str, tuple[float, float, float | None]]

    @classmethod
    def of(cls, campaign: Campaign, outlooks: Iterable[RowOutlook]) -> Bars:
        """From the lowest to the highest of all that is expected, the best so far and the limit among them."""
        found, every = {}, list(outlooks)
        for column in campaign.file.results:
            own, best = column.outcome, campaign.best
            mark = (best.results.get(own.name) if best else None) if isinstance(own, Goal) else own.ends[-1]
            ends = [x for outlook in every for x in outlook.expected[own.name] if not math.isnan(x)]
            ends += [] if mark is None else [mark]
            found[own.name] = (min(ends), max(ends), mark) if ends else (0.0, 0.0, mark)
        return cls(found)

    def told(self, name: str, outlook: RowOutlook) -> tuple[str, Bar | None]:
        """What is expected of an outcome in numbers, and the bar; None where nothing is known."""
        expected, (low, high, mark) = outlook.expected[name], self.scales[name]
        text = with_interval(*expected)
        if math.isnan(expected.median) or not low < high:
            return text, None

        def share(x: float) -> float:
            return round(100 * (x - low) / (high - low), 2)

        marked = None if mark is None else share(mark)
        return text, Bar(share(expected.low), share(expected.median), share(expected.high), marked)


def settable(campaign: Campaign) -> list[Parameter]:
    """What a row has besides results: the batch, as a text, where the table has a column for it, and the settings."""
    batch = campaign.file.batch
    own = [Parameter(batch, Kind.CATEGORY)] if batch and batch in campaign.table.columns else []
    return [*own, *campaign.file.parameters]


def values_of(campaign: Campaign, e: Experiment) -> dict[str, Any]:
    """The settings of an experiment, and its batch as the file writes it, in an empty cell's place that above it."""
    at, batch = campaign.table.numbers.index(e.number), campaign.file.batch
    cells = campaign.table.cells(batch)[: at + 1] if batch in campaign.table.columns else []
    return {batch: next(filter(None, reversed(cells)), ""), **e.values}


def fits(campaign: Campaign) -> bool:
    """Whether there is room for a column for every setting."""
    letters, rows = 0, [values_of(campaign, e) for e in campaign.experiments]
    for p in settable(campaign):
        words = [*p.label.split(), *p.choices, *(cell(row[p.name]) for row in rows)]
        letters += max(map(len, words)) + _LETTERS_BETWEEN
    return letters <= _MOST_LETTERS


def settings_in_words(campaign: Campaign, experiment: Experiment) -> str:
    """75 °C · 0.1 mol/L · DMF; a number without a unit has its name."""
    told = []
    for p in campaign.file.parameters:
        value = cell(experiment.values[p.name])
        told.append(value if p.is_text else f"{value} {p.unit}" if p.unit else f"{split_unit(p.name)[0]} {value}")
    return " · ".join(told)


def standing_in_words(campaign: Campaign, experiment: Experiment) -> str:
    """Where a finished experiment lies with regard to the limits, if that is not within."""
    standing = campaign.standing(experiment)
    return "" if standing is Standing.WITHIN or experiment.state is not State.FINISHED else str(standing)


def table_text(campaign: Campaign, outlooks: Mapping[int, RowOutlook]) -> bytes:
    """All experiments as CSV: row, state, batch, settings, results and their errors, and what is expected of open rows.

    A decimal comma goes with semicolons, as in the campaign's own file.
    """
    file, mark = campaign.file, campaign.table.layout.mark or campaign.mark
    names = [p.name for p in settable(campaign)]
    expected = [f"expected {c.name}{end}" for c in file.results for end in ("", " from", " to")]
    limits = ["limits hold"] if file.limits else []
    lines: list[list[Any]] = [["row", "state", *names, *file.measured_columns, *expected, *limits]]
    for e in campaign.experiments:
        results = {**e.results, **{c.error: e.errors[c.name] for c in file.results if c.error and c.name in e.errors}}
        own = values_of(campaign, e)
        line: list[Any] = [e.number, e.state.value, *(own[name] for name in names)]
        line += [results.get(name, "") for name in file.measured_columns]
        outlook = outlooks.get(e.number)
        for column in file.results:
            known = outlook is not None and column.name not in e.results
            expects = outlook.expected[column.name] if outlook is not None and known else ()
            line += [float(f"{x:.6g}") if not math.isnan(x) else "" for x in expects] or [""] * 3
        line += ([round(outlook.within, 4)] if outlook is not None else [""]) if limits else []
        lines.append(line)
    layout = FileLayout(";" if mark == "," else ",", mark, newline="\r\n")
    return b"\xef\xbb\xbf" + write_rows(layout, lines).encode()
