"""What takes a while: learning from the files, choosing experiments, drawing, comparing past campaigns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.campaign.campaign import Campaign, require_closed
from headstart.campaign.check import align_files, auto_prior, learn_past
from headstart.campaign.desk.changes import add_suggestions
from headstart.campaign.desk.contents import PastKept, contents_of, evidence_of, with_campaign
from headstart.campaign.desk.history import digest
from headstart.campaign.experiments import State
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.init import Looked
from headstart.campaign.suggestions import (
    Range,
    next_experiments,
    noise_of,
    outlook_of,
    ranges_at,
    reference_point,
    rests_on,
)
from headstart.draw.campaign import campaign_figures
from headstart.draw.explanation import agreement_figure, verdicts_figure
from headstart.draw.looks import named
from headstart.errors import ChangedMeanwhileError
from headstart.gp.threads import single_thread
from headstart.models.auto.explanation import Explanation, check_past, explain
from headstart.web.slices import SlicePanel, panels_at
from headstart.web.svg import themed
from headstart.web.worker import Report, WorkerMemory

_ATTEMPTS = 3
RowKey = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RowOutlook:
    """What is expected of a row: every outcome in order, how probably limits hold, and what that rests on."""

    ranges: tuple[Range, ...]
    within: float
    shares: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PastOf:
    """What the past says about one outcome; None where no past file knows it."""

    outcome: str
    check: Explanation | None
    explanation: Explanation | None


@dataclass(frozen=True, slots=True)
class Learned:
    """What a folder's files say, as far as there are results: the models, and what takes long to ask of them."""

    evidence: str
    fitted: Fitted
    rows: Mapping[RowKey, RowOutlook]
    reference: Mapping[str, Any]
    panels: tuple[SlicePanel, ...]  # slices through the reference point


@dataclass(frozen=True, slots=True)
class Judged:
    """What the past is worth and whether it pays to go on, which takes longer than a suggestion."""

    evidence: str
    past: tuple[PastOf, ...]
    reference_shares: tuple[tuple[str, float], ...]
    noise: tuple[tuple[float, int], ...]
    outlook: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The rows that were appended, and what was learnt on the way if the server does not have it yet."""

    numbers: tuple[int, ...]
    rows: Mapping[RowKey, RowOutlook]
    evidence: str
    learned: Learned | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Past campaigns before there is a campaign: for each outcome its name, the comparison and a picture of it."""

    outcomes: tuple[tuple[str, Explanation, bytes], ...]


@dataclass(frozen=True, slots=True)
class DrawnPictures:
    """SVG by name, for light and dark, and the digest of the files it shows."""

    key: str
    pictures: Mapping[str, bytes]


def row_key(campaign: Campaign, values: Mapping[str, Any]) -> RowKey:
    """The settings of a row, without other columns."""
    return tuple((p.name, values[p.name]) for p in campaign.file.parameters)


@single_thread()
def outlooks(fitted: Fitted, rows: Sequence[Mapping[str, Any]]) -> dict[RowKey, RowOutlook]:
    """What is expected of every row."""
    if not rows:
        return {}
    expected = zip(*(ranges_at(own, rows) for own in fitted.outcomes), strict=True)
    parts = zip(rows, expected, fitted.probability_within(rows).tolist(), rests_on(fitted, rows), strict=True)
    return {row_key(fitted.campaign, row): RowOutlook(tuple(each), p, shares) for row, each, p, shares in parts}


@dataclass(frozen=True, slots=True)
class Learn:
    """Learn from the folder's files."""

    folder: Path

    def run(self, report: Report, memory: WorkerMemory) -> Learned:
        """What they say; kept for the next job."""
        return _learned(self.folder, report, memory)[2]


@dataclass(frozen=True, slots=True)
class Judge:
    """Find out what the past is worth."""

    folder: Path

    def run(self, report: Report, memory: WorkerMemory) -> Judged:
        """The verdicts, the scatter, and the outlook."""
        _, _, learned = _learned(self.folder, lambda share, doing: report(0.4 * share, doing), memory)
        return _judged(learned, lambda share, doing: report(0.4 + 0.6 * share, doing), memory)


@dataclass(frozen=True, slots=True)
class Ask:
    """Choose n experiments and append them. ``known`` is what the server has learnt already."""

    folder: Path
    n: int
    known: str = ""
    seed: int = 0

    def run(self, report: Report, memory: WorkerMemory) -> Asked:
        """Where results come in meanwhile it begins anew with them."""
        for attempt in range(_ATTEMPTS):
            _, campaign, learned = _learned(self.folder, lambda share, doing: report(0.6 * share, doing), memory)
            require_closed(campaign)
            fitted = with_campaign(learned.fitted, campaign)
            report(0.6, f"choosing {self.n} experiment{'' if self.n == 1 else 's'}")
            suggestions = next_experiments(fitted, self.n, seed=self.seed)
            report(0.95, "writing them into the table")
            try:
                seen, chosen = str(digest(campaign.table.raw)), [s.values for s in suggestions]
                numbers = add_suggestions(self.folder, seen, chosen, opening=memory["past"].opened)
            except ChangedMeanwhileError:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            rows = {
                row_key(campaign, s.values): RowOutlook(tuple(s.expected.values()), s.within, s.shares)
                for s in suggestions
            }
            own = None if learned.evidence == self.known else learned
            return Asked(numbers, rows, learned.evidence, own)
        raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class Draw:
    """Draw the campaign's pictures."""

    folder: Path

    def run(self, report: Report, memory: WorkerMemory) -> DrawnPictures:
        """Progress, slices, the front, sources and verdicts."""
        key, campaign, learned = _learned(self.folder, lambda share, doing: report(0.4 * share, doing), memory)
        judged = _judged(learned, lambda share, doing: report(0.4 + 0.2 * share, doing), memory)
        report(0.6, "drawing")
        with single_thread():
            figures = campaign_figures(with_campaign(learned.fitted, campaign))
            several = len(judged.past) > 1
            for own in judged.past:
                if own.explanation is not None:
                    of = own.outcome if several else ""
                    figures[named("verdicts", of)] = verdicts_figure(own.explanation, of=of)
        drawn = {}
        for i, (name, figure) in enumerate(figures.items()):
            report(0.6 + 0.4 * i / len(figures), f"drawing {name}")
            drawn[name] = themed(figure)
        return DrawnPictures(key, drawn)


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare past campaigns before anything is written."""

    looked: Looked

    def run(self, report: Report, memory: WorkerMemory) -> Compared:  # noqa: ARG002 — jobs have one shape
        """A comparison and a picture for every outcome."""
        aligned = align_files(self.looked)
        found = []
        for i, (name, alignment) in enumerate(aligned.items()):
            report(i / len(aligned), f"comparing past campaigns: {name}")
            if not alignment.datasets:
                continue
            with single_thread():
                check = check_past(learn_past(alignment))
            of = name if len(aligned) > 1 else ""
            found.append((name, check, themed(agreement_figure(check, of=of))))
        return Compared(tuple(found))


def _learned(folder: Path, report: Report, memory: WorkerMemory) -> tuple[str, Campaign, Learned]:
    report(0.0, "reading the files")
    contents = contents_of(folder)
    campaign = memory.setdefault("past", PastKept()).opened(folder)
    evidence = evidence_of(campaign, contents.besides)
    kept: Learned | None = memory.get("learned")
    if kept is not None and kept.evidence == evidence:
        return contents.key, campaign, kept
    n = sum(len(task.rows) for task in campaign.past)
    own = sum(1 for e in campaign.experiments if e.results)
    report(0.1, f"learning from {n} past and {own} present results")
    fitted = fit_campaign(campaign, told=lambda now: report(0.1 + 0.6 * now.share, str(now)))
    report(0.8, "predicting what is pending")
    reference = reference_point(fitted)
    learned = Learned(
        evidence,
        fitted,
        outlooks(fitted, [e.values for e in campaign.those(State.PENDING)]),
        reference,
        tuple(panels_at(fitted, reference)),
    )
    memory["learned"] = learned
    return contents.key, campaign, learned


def _judged(learned: Learned, report: Report, memory: WorkerMemory) -> Judged:
    kept: Judged | None = memory.get("judged")
    if kept is not None and kept.evidence == learned.evidence:
        return kept
    fitted, past = learned.fitted, []
    for i, own in enumerate(fitted.outcomes):
        report(0.8 * i / len(fitted.outcomes), f"asking what the past is worth for {own.column.name}")
        past.append(_past_of(fitted, i))
    report(0.8, "looking ahead")
    judged = Judged(
        learned.evidence,
        tuple(past),
        rests_on(fitted, [learned.reference])[0],
        tuple(noise_of(outcome, learned.reference) for outcome in fitted.outcomes),
        _outlook(fitted),
    )
    memory["judged"] = judged
    return judged


@single_thread()
def _past_of(fitted: Fitted, i: int) -> PastOf:
    own = fitted.outcomes[i]
    prior = auto_prior(own)
    if prior is None:
        return PastOf(own.column.name, None, None)
    return PastOf(own.column.name, check_past(prior), explain(prior, own.target))


def _outlook(fitted: Fitted) -> str:
    ahead = outlook_of(fitted)
    return "" if ahead is None else str(ahead)
