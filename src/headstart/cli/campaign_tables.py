"""The tables and sentences that the commands of a campaign print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headstart.campaign.desk.words import cell, count, percent, with_interval
from headstart.cli.output import table

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
        more = ", log" if p.log else f", steps of {p.step:g}" if p.step is not None else ""
        limits = ", ".join(p.choices) or f"{p.low:g} … {p.high:g}{more}"
        rows.append((p.name, p.kind.value, limits, p.unit, guess.reasons.get("kind", "")))
    return table("Parameters", columns, rows, left=columns)


def suggestions_table(fitted: Fitted, suggestions: Sequence[RowOutlook], numbers: Sequence[int]) -> Table:
    """What to try, what is expected of every outcome, and what that rests on."""
    file, more = fitted.campaign.file, fitted.campaign.settings.more_columns
    title = f"{count(len(suggestions), 'experiment')} to try"
    limited = ("limits hold",) if file.limits else ()
    known = any(own.knows for own in fitted.outcomes[len(fitted.goals) :])
    results = [f"expected {column.label}" for column in file.results]
    columns = ("row", *more, *(p.label for p in file.parameters), *results, *limited, "rests on")
    rows = (
        (
            str(number),
            *(cell(s.values[name]) for name in more),
            *(cell(s.values[p.name]) for p in file.parameters),
            *(with_interval(*r) for r in s.expected.values()),
            *((percent(s.within) if known else "not known yet",) if limited else ()),
            _rests_on(s, fitted),
        )
        for number, s in zip(numbers, suggestions, strict=True)
    )
    return table(title, columns, rows, left=("rests on", *more))


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
    return ", ".join([*notes, *([f"moved: {', '.join(one.moved)}"] if one.moved else [])])


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


def best_in_words(campaign: Campaign) -> str:
    """The best result of one objective, or that there is none within the limits; "" before there are results."""
    file = campaign.file
    goal, best = file.goals[0], campaign.best
    if best is None:
        any_result = campaign.measured(goal.name)
        limits = " and ".join(f"{column.name} {column.aim}" for column in file.limits)
        return f"No result is within the limits yet ({limits})." if any_result else ""
    others = "".join(
        f", {column.name} {best.results[column.name]:g}{_unit(column.unit)}"
        for column in file.limits
        if column.name in best.results
    )
    known = f"{best.results[goal.name]:g}{_unit(goal.unit)}{others} in row {best.number}"
    within = " within the limits" if file.limits else ""
    settings = ", ".join(f"{p.name} {cell(best.values[p.name])}" for p in file.parameters)
    return f"Best so far{within}: {known}: {settings}"


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
    where = "the best point" if fitted.campaign.best is not None else "the most promising past point"
    told = f"at {where} the model takes results{of} to scatter by {scatter:.2g}{unit}"
    return f"No experiment was repeated; {told}."


def contributions(fitted: Fitted) -> Table:
    """What every campaign has, and its share in what is known about the best point."""
    from headstart.campaign.fitted import THIS
    from headstart.campaign.suggestions import outlooks_at, reference_point

    campaign, file = fitted.campaign, fitted.campaign.file
    shares = dict(outlooks_at(fitted, [reference_point(fitted)])[0].shares)
    where = "best point" if campaign.best is not None else "most promising past point"
    columns = ("campaign", "results used", *(f"best {column.label}" for column in file.goals), "share")
    rows = []
    for name in [*(task.name for task in campaign.past), THIS]:
        values = [_values(own, name) for own in fitted.outcomes]
        best = (
            f"{(max if own.column.more_is_better else min)(each):g}" if each else "–"
            for own, each in zip(fitted.goals, values, strict=False)
        )
        rows.append((name, str(max(map(len, values))), *best, percent(shares[name])))
    return table(f"What is known about the {where}", columns, rows, left=("campaign",))


def _values(own: FittedOutcome, name: str) -> list[float]:
    """The results of an outcome that a campaign has, as measured."""
    from headstart.campaign.fitted import THIS

    if name == THIS:
        return [float(y) for y in own.values]
    return next(((own.sign * data.y).tolist() for data in own.alignment.datasets if data.name == name), [])


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
