"""The tables and sentences that the commands of a campaign print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headstart.campaign.desk.words import cell, count, percent, with_interval
from headstart.cli.output import table
from headstart.data.outcomes import Standing

if TYPE_CHECKING:
    from rich.table import Table

    from headstart.campaign.best_past import PastBest
    from headstart.campaign.campaign import Campaign
    from headstart.campaign.experiments import Experiment
    from headstart.campaign.fitted import Fitted, FittedOutcome
    from headstart.campaign.init import Looked
    from headstart.campaign.suggestions import RowOutlook

_NAMED = 4  # past campaigns that a suggestion names; more are counted


def parameters_table(looked: Looked) -> Table:
    """What the columns of the past files were taken for."""
    columns = ("column", "kind", "range", "unit", "")
    rows = []
    for guess in looked.proposal.guesses:
        p = guess.parameter
        rows.append((p.name, p.kind.value, p.span, p.unit, guess.reasons.get("kind", "")))
    return table("Parameters", columns, rows, left=columns)


def batch_in_words(looked: Looked) -> str:
    """Which column of past files was taken for the batch and how to say otherwise, "" if none."""
    guess = looked.proposal.batch
    if guess is None:
        return ""
    more = "" if guess.why.startswith("as told") else " If they are not: --batch none, or --batch COLUMN."
    return f"Batch: {guess.name} ({guess.why}). Results of one batch may be shifted together.{more}"


def suggestions_table(fitted: Fitted, suggestions: Sequence[RowOutlook], numbers: Sequence[int]) -> Table:
    """What to try, what is expected of every outcome, and what that rests on."""
    file, more = fitted.campaign.file, fitted.campaign.settings.more_columns
    title = f"{count(len(suggestions), 'experiment')} to try"
    limited = ("limits hold",) if file.limits else ()
    known = any(own.knows for own in fitted.outcomes[len(fitted.goals) :])
    results = [f"expected {column.label}" for column in file.results]
    present = fitted.campaign.batches.cell
    batch = (file.batch,) if present != "" and file.batch not in more else ()
    columns = ("row", *batch, *more, *(p.label for p in file.parameters), *results, *limited, "rests on")
    rows = (
        (
            f"{number} (control)" if s.control else str(number),
            *(cell(present) for _ in batch),
            *(cell(s.values[name]) for name in more),
            *(cell(s.values[p.name]) for p in file.parameters),
            *(with_interval(*r) for r in s.expected.values()),
            *((percent(s.within) if known else "not known yet",) if limited else ()),
            _rests_on(s, fitted),
        )
        for number, s in zip(numbers, suggestions, strict=True)
    )
    return table(title, columns, rows, left=("rests on", *batch, *more))


def best_past_table(fitted: Fitted, best: Sequence[PastBest]) -> Table:
    """The best past settings: what was measured there then, and what is expected of them now."""
    file, campaign = fitted.campaign.file, fitted.campaign
    limited = ("limits hold",) if file.limits else ()
    then = [f"{column.label} then" for column in file.results]
    now = [f"expected {column.label}" for column in file.results]
    notes = [_noted(one, campaign) for one in best]
    noted = ("note",) if any(notes) else ()
    columns = ("past campaign", *(p.label for p in file.parameters), *then, *now, *limited, *noted)
    rows = (
        (
            one.campaign,
            *(cell(one.now.values[p.name]) for p in file.parameters),
            *(one.told(column.name) for column in file.results),
            *(with_interval(*r) for r in one.now.expected.values()),
            *((percent(one.now.within),) if limited else ()),
            *((note,) if noted else ()),
        )
        for one, note in zip(best, notes, strict=True)
    )
    return table("The best past settings", columns, rows, left=("past campaign", "note"))


def _noted(one: PastBest, campaign: Campaign) -> str:
    """Where these settings stand in the campaign already, and what differs from those that were run."""
    number = one.row_in(campaign)
    notes = [f"row {number}"] if number is not None else []
    notes += [f"moved: {', '.join(one.moved)}"] if one.moved else []
    return ", ".join([*notes, *([one.unknown_limits] if one.unmeasured else [])])


def _rests_on(suggestion: RowOutlook, fitted: Fitted) -> str:
    from headstart.campaign.fitted import THIS

    if not any(own.target.n for own in fitted.outcomes) and suggestion.shares[-1][1] == 1.0:
        return "nothing yet"
    *past, own = [(name, share) for name, share in suggestion.shares if share >= 0.005 or name == THIS]
    if len(past) > _NAMED:
        past = sorted(past, key=lambda pair: -pair[1])
        rest = past[_NAMED - 1 :]
        past = [*past[: _NAMED - 1], (f"{len(rest)} others", sum(share for _, share in rest))]
    named = [*past, own] if own[1] >= 0.005 else past
    return ", ".join(f"{name} {percent(share)}" for name, share in named)


def pending_table(fitted: Fitted, pending: Sequence[Experiment]) -> Table:
    """What is awaited, and what is expected of it; results that are there already as they are."""
    from headstart.campaign.suggestions import outlooks_at

    file = fitted.campaign.file
    columns = ("row", *(p.label for p in file.parameters), *(f"expected {column.label}" for column in file.results))
    rows = (
        (
            str(e.number),
            *(cell(e.values[p.name]) for p in file.parameters),
            *(f"measured: {e.results[n]:g}" if n in e.results else with_interval(*r) for n, r in own.expected.items()),
        )
        for e, own in zip(pending, outlooks_at(fitted, [e.values for e in pending]), strict=True)
    )
    return table("Pending", columns, rows)


def front_table(campaign: Campaign) -> Table:
    """The results that are best in some way, the best of the first objective first."""
    file = campaign.file
    first = file.outcomes.goals[0]
    front = sorted(campaign.front, key=lambda e: first.loss(e.results[first.name]))
    columns = ("row", *(column.label for column in file.results), *(p.label for p in file.parameters))
    rows = (
        (
            str(e.number),
            *(f"{e.results[column.name]:g}" if column.name in e.results else "–" for column in file.results),
            *(cell(e.values[p.name]) for p in file.parameters),
        )
        for e in front
    )
    return table(f"The front: {count(len(front), 'result')} that no other beats in everything", columns, rows)


def best_without_shifts_in_words(fitted: Fitted) -> str:
    """Which row is expected to be the best in the present batch, "" where that is the best result."""
    from headstart.campaign.suggestions import best_without_shifts

    found, file = best_without_shifts(fitted), fitted.campaign.file
    if found is None:
        return ""
    best, expected = found
    settings = ", ".join(f"{p.name} {cell(best.values[p.name])}" for p in file.parameters)
    told = f"{with_interval(*expected)}{_unit(file.goals[0].unit)}"
    return f"With shifts between batches taken away row {best.number} is expected to be the best: {told}: {settings}"


def best_in_words(campaign: Campaign) -> str:
    """The best result of one objective that is known to be within the limits, or why there is none.

    "" before there are results.
    """
    file = campaign.file
    goal, best = file.goals[0], campaign.best
    if best is None:
        return campaign.why_no_best if campaign.measured(goal.name) else ""
    others = "".join(
        f", {column.name} {best.results[column.name]:g}{_unit(column.unit)}"
        for column in file.limits
        if column.name in best.results
    )
    known = f"{best.results[goal.name]:g}{_unit(goal.unit)}{others} in row {best.number}"
    within = " within the limits" if file.limits else ""
    settings = ", ".join(f"{p.name} {cell(best.values[p.name])}" for p in file.parameters)
    loss, name = goal.outcome.loss, goal.name
    unknown = [e for e in campaign.with_goals(Standing.UNKNOWN) if loss(e.results[name]) < loss(best.results[name])]
    more = f"\nBetter, but not known to be within them: {campaign.unmeasured_limits(unknown)}." if unknown else ""
    return f"Best so far{within}: {known}: {settings}{more}"


def noise_in_words(fitted: Fitted, own: FittedOutcome) -> str:
    """How much results scatter, "" where nothing is known."""
    from headstart.campaign.suggestions import noise_of, reference_point

    scatter, repeats = noise_of(own, reference_point(fitted))
    unit = _unit(own.column.unit)
    of = f" of {own.column.name}" if len(fitted.outcomes) > 1 else ""
    if repeats:
        return (
            f"Repeated experiments{of} scatter by {scatter:.2g}{unit} (standard deviation, {count(repeats, 'repeat')})."
        )
    if not own.knows:
        return ""
    where = "the best point" if fitted.campaign.best is not None else "the most promising point so far"
    told = f"at {where} the model takes results{of} to scatter by {scatter:.2g}{unit}"
    return f"No experiment was repeated; {told}."


def contributions(fitted: Fitted) -> Table:
    """What every campaign has, its best results within the limits, and its share in what is known of the best point."""
    from headstart.campaign.best_past import best_result, past_runs
    from headstart.campaign.fitted import THIS
    from headstart.campaign.suggestions import outlooks_at, reference_point

    campaign, file = fitted.campaign, fitted.campaign.file
    shares = dict(outlooks_at(fitted, [reference_point(fitted)])[0].shares)
    where = "best point" if campaign.best is not None else "most promising point so far"
    columns = ("campaign", "results used", *(f"best {column.label}" for column in file.goals), "share")
    measured: dict[str, list[tuple[Mapping[str, float], Standing]]] = {}
    for run in past_runs(fitted):
        measured.setdefault(run.campaign, []).append((run.measured, run.standing))
    measured[THIS] = [(e.results, campaign.standing(e)) for e in campaign.experiments]
    rows = []
    for name in [*(task.name for task in campaign.past), THIS]:
        used = max(len(_values(own, name)) for own in fitted.outcomes)
        best = (best_result(measured.get(name, ()), goal) for goal in file.outcomes.goals)
        rows.append((name, str(used), *map(_best_told, best), percent(shares[name])))
    return table(f"What is known about the {where}", columns, rows, left=("campaign",))


def _best_told(found: tuple[float, Standing] | None) -> str:
    if found is None:
        return "–"
    value, standing = found
    return f"{value:g}" if standing is Standing.WITHIN else f"{value:g} ({standing})"


def _values(own: FittedOutcome, name: str) -> list[float]:
    """The results of an outcome that a campaign has, as measured."""
    from headstart.campaign.fitted import THIS

    if name == THIS:
        return [float(y) for y in own.values]
    return next(((own.sign * data.y).tolist() for data in own.alignment.datasets if data.name == name), [])


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
