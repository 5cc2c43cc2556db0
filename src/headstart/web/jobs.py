"""What takes a while: learning from the files, choosing experiments, drawing, comparing past campaigns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headstart.campaign.best_past import PastBest, best_past
from headstart.campaign.campaign import Campaign, require_closed
from headstart.campaign.check import align_files, auto_prior, learn_past
from headstart.campaign.desk.changes import add_suggestions
from headstart.campaign.desk.contents import PastKept, contents_of, evidence_of, with_campaign
from headstart.campaign.desk.history import digest
from headstart.campaign.fitted import THIS, Fitted, fit_campaign
from headstart.campaign.init import Looked
from headstart.campaign.insight import every_shift
from headstart.campaign.suggestions import (
    RowOutlook,
    next_experiments,
    noise_of,
    outlook_of,
    outlooks_at,
    reference_point,
)
from headstart.decide.stopping import Outlook
from headstart.draw.campaign import campaign_figures
from headstart.draw.canvas import themed_svg
from headstart.draw.looks import named
from headstart.draw.sources import agreement_figure, plot_sources
from headstart.errors import ChangedMeanwhileError
from headstart.gp.threads import single_thread
from headstart.models.auto.explanation import Explanation, check_past, explain
from headstart.models.batch_shifts import shifts_in_words
from headstart.web.worker import Report, WorkerMemory

RowKey = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class PastOf:
    """What the past says about one outcome, None where no past file knows it; and sentences on shifts of batches."""

    outcome: str
    check: Explanation | None = None
    explanation: Explanation | None = None
    shifts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learned:
    """The models of a folder's files: ``key`` is the evidence, ``reference`` the best point, ``rows`` asked so far.

    ``outlook`` says whether it pays to go on, and is None before there is a result.
    """

    key: str
    fitted: Fitted
    reference: Mapping[str, Any]
    past: tuple[PastBest, ...] = ()
    outlook: Outlook | None = None
    rows: dict[RowKey, RowOutlook] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """What the past is worth, which takes longer than a suggestion."""

    key: str
    past: tuple[PastOf, ...]
    reference_shares: tuple[tuple[str, float], ...]
    noise: tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class DrawnPictures:
    """SVG by name, for light and dark, and ``narrow`` for a telephone; ``key`` is the digest of the files it shows."""

    key: str
    pictures: Mapping[str, bytes]
    narrow: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Compared:
    """Past campaigns before there is a campaign: for each outcome the comparison and a picture of it."""

    outcomes: tuple[tuple[PastOf, bytes], ...]


def learn(folder: Path, report: Report, memory: WorkerMemory) -> Learned:
    """Learn from the folder's files."""
    return _learned(folder, report, memory)[2]


def judge(folder: Path, report: Report, memory: WorkerMemory) -> Judged:
    """Find out what the past is worth and how much results scatter."""
    _, _, learned = _learned(folder, _part(report, 0.0, 0.4), memory)
    return _judged(learned, _part(report, 0.4, 1.0), memory)


def ask(folder: Path, n: int, report: Report, memory: WorkerMemory, attempts: int = 3) -> str:
    """Choose n experiments and append them; where results come in meanwhile begin anew with them."""
    _, campaign, learned = _learned(folder, _part(report, 0.0, 0.6), memory)
    require_closed(campaign)
    report(0.6, f"choosing {n} experiment{'' if n == 1 else 's'}")
    suggestions = next_experiments(with_campaign(learned.fitted, campaign), n)
    report(0.95, "writing them into the table")
    try:
        seen, chosen = str(digest(campaign.table.raw)), [s.values for s in suggestions]
        numbers = add_suggestions(folder, seen, chosen, opening=memory["past"].opened)
    except ChangedMeanwhileError:
        if attempts == 1:
            raise
        return ask(folder, n, report, memory, attempts - 1)
    if not numbers:
        return "The workbook is only read, and the new rows are in a file beside it: see the remarks."
    return f"New: row{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}."


def draw(folder: Path, report: Report, memory: WorkerMemory) -> DrawnPictures:
    """Draw what the command line draws, and verdicts, for both widths."""
    key, campaign, learned = _learned(folder, _part(report, 0.0, 0.4), memory)
    judged = _judged(learned, _part(report, 0.4, 0.6), memory)
    fitted = with_campaign(learned.fitted, campaign)
    every: list[dict[str, bytes]] = []
    for narrow in (False, True):
        begun = 0.8 if narrow else 0.6
        report(begun, "drawing")
        with single_thread():
            figures = campaign_figures(fitted, narrow=narrow)
            for own in judged.past:
                if own.explanation is not None:
                    of = own.outcome if len(judged.past) > 1 else ""
                    figures[named("verdicts", of)] = plot_sources(own.explanation, of=of, narrow=narrow)
        drawn = {}
        for i, (name, figure) in enumerate(figures.items()):
            report(begun + 0.2 * i / len(figures), f"drawing {name}")
            drawn[name] = themed_svg(figure)
        every.append(drawn)
    return DrawnPictures(key, *every)


def compare(looked: Looked, report: Report, _: WorkerMemory) -> Compared:
    """Compare past campaigns before anything is written: a comparison and a picture for every outcome."""
    aligned = align_files(looked)
    found = []
    for i, (name, alignment) in enumerate(aligned.items()):
        report(i / len(aligned), f"comparing past campaigns: {name}")
        if not alignment.datasets:
            continue
        with single_thread():
            check = check_past(learn_past(alignment))
        svg = themed_svg(agreement_figure(check, of=name if len(aligned) > 1 else ""))
        found.append((PastOf(name, check), svg))
    return Compared(tuple(found))


def _part(report: Report, begin: float, end: float) -> Report:
    """Reports of a part of the work."""
    return lambda share, doing: report(begin + (end - begin) * share, doing)


def _learned(folder: Path, report: Report, memory: WorkerMemory) -> tuple[str, Campaign, Learned]:
    report(0.0, "reading the files")
    contents = contents_of(folder)
    campaign = memory.setdefault("past", PastKept()).opened(folder)
    evidence = evidence_of(campaign, contents.besides)
    kept: Learned | None = memory.get("learned")
    if kept is None or kept.key != evidence:
        n = sum(len(task.rows) for task in campaign.past)
        own = sum(1 for e in campaign.experiments if e.results)
        report(0.1, f"learning from {n} past and {own} present results")
        fitted = fit_campaign(campaign, told=lambda now: report(0.1 + 0.8 * now.share, str(now)))
        report(0.9, "looking ahead")
        with single_thread():
            past = best_past(fitted)
        kept = memory["learned"] = Learned(evidence, fitted, reference_point(fitted), past, outlook_of(fitted))
    return contents.key, campaign, kept


def _judged(learned: Learned, report: Report, memory: WorkerMemory) -> Judged:
    kept: Judged | None = memory.get("judged")
    if kept is not None and kept.key == learned.key:
        return kept
    fitted, past = learned.fitted, []
    for i, own in enumerate(fitted.outcomes):
        name = own.column.name
        report(0.8 * i / len(fitted.outcomes), f"asking what the past is worth for {name}")
        with single_thread():
            prior = auto_prior(own)
            check, told = (None, None) if prior is None else (check_past(prior), explain(prior, own.target))
            shifts = shifts_in_words(every_shift(own, told), THIS, own.column.unit)
        past.append(PastOf(name, check, told, tuple(shifts)))
    report(0.8, "asking how much results scatter")
    kept = memory["judged"] = Judged(
        learned.key,
        tuple(past),
        outlooks_at(fitted, [learned.reference])[0].shares,
        tuple(noise_of(outcome, learned.reference) for outcome in fitted.outcomes),
    )
    return kept
