"""``headstart init | suggest | status | plot``: a campaign in a folder of CSV files. Parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.campaign.desk.words import count
from headstart.cli.arguments import (
    LIMITS,
    FileOptions,
    FolderOptions,
    LearnOptions,
    command,
    elsewhere,
    error_columns,
    pairs,
)
from headstart.cli.output import say, show, with_options, working
from headstart.errors import InputError, Message

if TYPE_CHECKING:
    from headstart.campaign.campaign import Campaign
    from headstart.campaign.fitted import Fitted
    from headstart.campaign.suggestions import RowOutlook


@command
def init(
    objective: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The column with the result. Of several: COLUMN:maximize, repeated."),
    ],
    files: FileOptions,
    past: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAST.csv", help="The files of past campaigns: .csv, .xlsx, .ods, x.xlsx#Sheet2."),
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'A + B <= 100'", help="What all settings must keep; may be repeated.", rich_help_panel=LIMITS
        ),
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A list of settings: every suggestion is one of its rows.", rich_help_panel=LIMITS
        ),
    ] = None,
    descriptors: Annotated[
        list[str] | None,
        typer.Option(metavar="PARAMETER=FILE", help="Numbers that describe the categories of a parameter."),
    ] = None,
    error: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Standard errors of the result. Of several: RESULT=COLUMN, repeated."),
    ] = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="Another model than auto.", show_default=False)] = "",
    current: Annotated[
        str, typer.Option(metavar="FILE", help="The new table; current.xlsx makes it a workbook.")
    ] = "current.csv",
    folder: Annotated[
        Path, typer.Option(metavar="DIR", help="The campaign's folder.", show_default="this one")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write headstart.toml anew; current.csv stays.")] = False,
) -> None:
    """Begin a campaign: headstart.toml and current.csv from past files.

    headstart.toml says how the columns were understood, and why: look through it, and correct what is wrong.
    current.csv gets the new results. Past files are never changed. As in: headstart init past/*.csv --objective yield
    --maximize
    """
    from headstart.campaign.file import TOML
    from headstart.campaign.init import start_campaign
    from headstart.cli.campaign_tables import batch_in_words, parameters_table

    plan = files.plan(objective)
    described = pairs(descriptors, "descriptors", "PARAMETER=FILE")
    plan = replace(
        plan,
        errors=error_columns(error, plan.goals),
        rules=tuple(rule or ()),
        candidates=candidates,
        descriptors={name: Path(file) for name, file in described.items()},
        current=current,
        model=model,
    )
    started = start_campaign(files.of_sheet(past or ()), folder, plan, force=force)
    say(started.remarks, every=True)
    for column in started.file.results if len(started.file.results) > 1 else ():
        typer.echo(f"{column.label}: {column.aim}")
    show(parameters_table(started))
    for name, why in started.proposal.ignored.items():
        settings = why.settings if isinstance(why, Message) else ()
        typer.echo(with_options(Message(f"Not a parameter: {name} ({why}).", *settings)))
    if batch := batch_in_words(started):
        typer.echo(batch)
    table = folder / current
    typer.echo(f"Written: {folder / TOML}")
    kept = f"Kept: {table}, which has {count(started.kept_rows, 'row')}"
    typer.echo(kept if started.kept_rows else f"Written: {table}")
    typer.echo(f"Look through {folder / TOML}, then run: headstart suggest -n 4{elsewhere(folder)}")


@command
def suggest(
    *,
    number: Annotated[int, typer.Option("-n", "--number", metavar="N", help="How many experiments.")] = 1,
    options: LearnOptions,
) -> None:
    """Say what to try next, and append it to current.csv.

    The rows come without a result: do the experiments, type the results in, and ask again.
    """
    from headstart.campaign.campaign import append_experiments, open_campaign, require_closed
    from headstart.campaign.suggestions import next_experiments
    from headstart.sources.files.safe import alone_in

    if not 1 <= number <= 100:
        raise InputError(f"-n must be between 1 and 100, but it is {number}.")
    with alone_in(options.existing):
        campaign = open_campaign(options.folder)
        require_closed(campaign)
        fitted = fitted_campaign(campaign, options)
        with working("choosing what to try …", quiet=options.quiet):
            suggestions = next_experiments(fitted, number, seed=options.seed)
        first = campaign.table.next_row
        _tell(fitted, suggestions, range(first, first + number))
        sys.stdout.flush()  # what nobody could read is not written either
        written = append_experiments(campaign, [s.values for s in suggestions])
    names, path = campaign.file.measured_columns, campaign.table.path
    which = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
    copy = f"Written to {written}. Copy its rows into {path}"
    told = f"Appended to {path}" if written == campaign.table.file else copy
    typer.echo(f"{told}. Fill in the {which}, save it, and run this again.")


def _tell(fitted: Fitted, suggestions: Sequence[RowOutlook], rows: Sequence[int]) -> None:
    """Print the suggestions and what there is to say about them."""
    from headstart.campaign.best_past import best_past
    from headstart.campaign.check import explained, unusual_verdicts
    from headstart.cli.campaign_tables import best_past_table, suggestions_table

    file = fitted.campaign.file
    show(suggestions_table(fitted, suggestions, rows))
    if best := best_past(fitted):
        show(best_past_table(fitted, best))
        typer.echo("'Then' is what the past campaign measured there; expected is what a result would be now.")
    if fitted.knows:
        typer.echo("In brackets is a 95 % range: 19 of 20 results should lie in it.")
        if file.limits:
            limits = ", ".join(f"{column.name} {column.aim}" for column in file.limits)
            typer.echo(f"'Limits hold' is how probable it is that a result keeps all of them ({limits}).")
        typer.echo("'Rests on' says how much of what is known about the row comes from where.")
    else:
        typer.echo("Nothing is known about results yet, so the rows lie apart from each other, all over the ranges.")
    if fitted.campaign.batches_in_words:
        typer.echo(fitted.campaign.batches_in_words)
    if any(s.control for s in suggestions):
        typer.echo(
            "A control repeats a setting: knowing by how much this batch is shifted is worth more than a new one."
        )
    for sentence in dict.fromkeys(told for s in suggestions for told in fitted.never_run(s.values)):
        typer.echo(sentence)
    for own in fitted.outcomes:
        of = f", for {own.column.name}" if len(fitted.outcomes) > 1 else ""
        for source in unusual_verdicts(explained(own)):
            typer.echo(f"{source.name} is {source.verdict}{of}. {source.reason}")


@command
def status(options: LearnOptions) -> None:
    """Show the best so far, what is pending, and whether to go on.

    Also what each past file contributes, and what was decided about the columns.
    """
    from headstart.campaign.campaign import open_campaign
    from headstart.campaign.experiments import State
    from headstart.campaign.insight import own_shifts
    from headstart.campaign.suggestions import outlook_of
    from headstart.cli.campaign_tables import (
        best_in_words,
        best_without_shifts_in_words,
        contributions,
        front_table,
        noise_in_words,
        pending_table,
    )

    campaign = open_campaign(options.existing)
    fitted = fitted_campaign(campaign, options)
    file = campaign.file
    counts = {state: len(campaign.those(state)) for state in State}
    aims = "; ".join(f"{c.label}, to be {c.aim}" if c in file.goals else f"{c.label} {c.aim}" for c in file.results)
    told = ", ".join(f"{n} {state.value}" for state, n in counts.items() if n or state is State.FINISHED)
    typer.echo(f"{aims}: {told}")
    if len(file.goals) > 1 and campaign.front:
        show(front_table(campaign))
    elif best := best_in_words(campaign):
        typer.echo(best)
    if shifted := best_without_shifts_in_words(fitted):
        typer.echo(shifted)
    if campaign.batches_in_words:
        typer.echo(campaign.batches_in_words)
    for own in fitted.outcomes:
        if scatter := noise_in_words(fitted, own):
            typer.echo(scatter)
        of = f"{own.column.name}: " if len(fitted.outcomes) > 1 else ""
        for told in (sentence for one in own_shifts(own) for sentence in one.sentences(own.column.unit)):
            typer.echo(f"{of}{told}")
    if fitted.knows or campaign.past:
        show(contributions(fitted))
    for decision in fitted.decisions:
        typer.echo(f"{decision}")
    if pending := campaign.those(State.PENDING):
        show(pending_table(fitted, pending))
    else:
        typer.echo(f"Nothing is pending. Next: headstart suggest -n 4{elsewhere(options.folder)}")
    with working("looking ahead …", quiet=options.quiet):
        ahead = outlook_of(fitted, seed=options.seed)
    if ahead is not None:
        typer.echo(str(ahead))


@command
def plot(
    options: LearnOptions,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the pictures go.", show_default="plots in the folder")
    ] = None,
) -> None:
    """Draw progress, the prediction and what the past says.

    Slices of the prediction through the best row, the front where there are several objectives, and a picture of what
    each past campaign says.
    """
    from headstart.campaign.campaign import open_campaign
    from headstart.draw.campaign import draw_campaign

    fitted = fitted_campaign(open_campaign(options.existing), options)
    for path in draw_campaign(fitted, out or options.folder / "plots"):
        typer.echo(f"Picture: {path}")


def fitted_campaign(campaign: Campaign, options: FolderOptions, *, every: bool = False) -> Fitted:
    """The campaign's model, or another one by its name; remarks on the files go to the standard error."""
    with working(quiet=options.quiet) as told:
        from headstart.campaign.fitted import fit_campaign

        o = options if isinstance(options, LearnOptions) else LearnOptions(seed=options.seed)
        fitted = fit_campaign(campaign, seed=o.seed, model=o.model, jobs=o.jobs, device=o.device, told=told)
    say([*(f"{remark}." for remark in fitted.remarks), *campaign.remarks], every=every)
    return fitted
