"""``headstart init | suggest | status | plot``: a campaign in a folder of CSV files. Parse, call, print."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.campaign.desk.words import count
from headstart.cli.arguments import (
    CategoryOption,
    CellOption,
    DescriptorsOption,
    DeviceOption,
    ErrorOption,
    FolderOption,
    IgnoreOption,
    JobsOption,
    LimitOption,
    MaximizeOption,
    MinimizeOption,
    ModelOption,
    ParameterOption,
    QuietOption,
    RenameOption,
    SeedOption,
    SheetOption,
    direction,
    elsewhere,
    existing,
    of_sheet,
    require_count,
    require_seed,
    wanted,
)
from headstart.cli.output import errors_in_one_line, how_far, say, with_options
from headstart.cli.tables import in_plain_words, show
from headstart.errors import Message

if TYPE_CHECKING:
    from headstart.campaign.campaign import Campaign
    from headstart.campaign.fitted import Fitted
    from headstart.campaign.suggestions import Suggestion
    from headstart.models.learning import OnProgress


def init(
    objective: Annotated[
        list[str],
        typer.Option(metavar="COLUMN", help="The column with the result; of several COLUMN:maximize, repeated."),
    ],
    past: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAST.csv...", help="The files of past campaigns: .csv, .xlsx, .ods, x.xlsx#Sheet2."),
    ] = None,
    maximize: MaximizeOption = False,
    minimize: MinimizeOption = False,
    limit: LimitOption = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="'A + B <= 100'", help="What must hold for the settings; may be repeated."),
    ] = None,
    candidates: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A list of settings: every suggestion is one of its rows.")
    ] = None,
    descriptors: DescriptorsOption = None,
    error: ErrorOption = None,
    rename: RenameOption = None,
    ignore: IgnoreOption = None,
    category: CategoryOption = None,
    model: ModelOption = None,
    parameter: ParameterOption = None,
    cell: CellOption = None,
    sheet: SheetOption = None,
    current: Annotated[
        str, typer.Option(metavar="FILE", help="The new table; current.xlsx makes it a workbook.")
    ] = "current.csv",
    folder: FolderOption = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write headstart.toml anew; current.csv stays.")] = False,
) -> None:
    """Look at past files and begin a campaign: headstart.toml and current.csv."""
    with errors_in_one_line():
        from headstart.campaign.init import start_campaign
        from headstart.cli.campaign_tables import parameters_table

        what = wanted(
            objective,
            direction(maximize, minimize),
            limits=limit,
            errors=error,
            rules=rule,
            candidates=candidates,
            descriptors=descriptors,
            rename=rename,
            ignore=ignore,
            category=category,
            model=model,
            parameters=parameter,
            cells=cell,
            current=current,
        )
        started = start_campaign(of_sheet(past or (), sheet), folder, what, force=force)
        say(started.remarks, at_most=None)
        for column in started.file.results if len(started.file.results) > 1 else ():
            typer.echo(f"{column.label}: {column.aim}")
        show(parameters_table(started))
        for name, why in started.proposal.ignored.items():
            settings = why.settings if isinstance(why, Message) else ()
            typer.echo(with_options(Message(f"Not a parameter: {name} ({why}).", *settings)))
        typer.echo(f"Written: {started.toml}")
        kept = f"Kept: {started.current}, which has {count(started.kept_rows, 'row')}"
        typer.echo(kept if started.kept_rows else f"Written: {started.current}")
        typer.echo(f"Look through {started.toml}, then run: headstart suggest -n 4{elsewhere(folder)}")


def suggest(
    number: Annotated[int, typer.Option("-n", "--number", help="How many experiments.")] = 1,
    model: ModelOption = None,
    folder: FolderOption = Path(),
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    device: DeviceOption = None,
    quiet: QuietOption = False,
) -> None:
    """Say what to try next, and append it to current.csv as rows without a result."""
    with errors_in_one_line():
        from headstart.campaign.campaign import append_experiments, open_campaign, require_closed
        from headstart.campaign.suggestions import next_experiments
        from headstart.sources.files.safe import alone_in

        require_count(number)
        with alone_in(existing(folder)):
            campaign = open_campaign(folder)
            require_closed(campaign)
            fitted = fitted_campaign(campaign, seed, model, jobs=jobs, device=device, quiet=quiet)
            with working("choosing what to try …", quiet=quiet):
                suggestions = next_experiments(fitted, number, seed=seed)
            first = campaign.table.next_row
            _tell(fitted, suggestions, range(first, first + number))
            sys.stdout.flush()  # what nobody could read is not written either
            written = append_experiments(campaign, [s.values for s in suggestions])
        names = campaign.file.measured_columns
        which = f"column{'s' if len(names) > 1 else ''} {', '.join(names)}"
        path = campaign.table.path
        told = (
            f"Appended to {path}"
            if written == campaign.table.file
            else f"Written to {written}. Copy its rows into {path}"
        )
        typer.echo(f"{told}. Fill in the {which}, save it, and run this again.")


def _tell(fitted: Fitted, suggestions: Sequence[Suggestion], rows: Sequence[int]) -> None:
    """Print the suggestions and what there is to say about them."""
    from headstart.campaign.check import explained, unusual_verdicts
    from headstart.cli.campaign_tables import suggestions_table

    file = fitted.campaign.file
    show(suggestions_table(fitted, suggestions, rows))
    if fitted.knows:
        typer.echo("In brackets is a 95 % range: 19 of 20 results should lie in it.")
        if file.limits:
            limits = ", ".join(f"{column.name} {column.aim}" for column in file.limits)
            typer.echo(f"'Limits hold' is how probable it is that a result keeps all of them ({limits}).")
        typer.echo("'Rests on' says how much of what is known about the row comes from where.")
    else:
        typer.echo("Nothing is known about results yet, so the rows lie apart from each other, all over the ranges.")
    for sentence in dict.fromkeys(told for s in suggestions for told in fitted.never_run(s.values)):
        typer.echo(sentence)
    for own in fitted.outcomes:
        of = f", for {own.column.name}" if len(fitted.outcomes) > 1 else ""
        for source in unusual_verdicts(explained(own)):
            typer.echo(f"{source.name} is {source.verdict}{of}. {in_plain_words(source.reason)}")


def status(
    model: ModelOption = None,
    folder: FolderOption = Path(),
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    device: DeviceOption = None,
    quiet: QuietOption = False,
) -> None:
    """Show progress, the best so far, pending rows, what the past files contribute, and whether to go on."""
    with errors_in_one_line():
        from headstart.campaign.campaign import open_campaign
        from headstart.campaign.experiments import State
        from headstart.campaign.suggestions import outlook_of
        from headstart.cli.campaign_tables import (
            best_in_words,
            contributions,
            front_table,
            noise_in_words,
            pending_table,
        )

        opened = open_campaign(existing(folder))
        fitted = fitted_campaign(opened, seed, model, jobs=jobs, device=device, quiet=quiet)
        campaign, file = fitted.campaign, fitted.campaign.file
        counts = {state: len(campaign.those(state)) for state in State}
        aims = "; ".join(f"{c.label}, to be {c.aim}" if c in file.goals else f"{c.label} {c.aim}" for c in file.results)
        told = ", ".join(f"{n} {state.value}" for state, n in counts.items() if n or state is State.FINISHED)
        typer.echo(f"{aims}: {told}")
        if len(file.goals) > 1 and campaign.front:
            show(front_table(campaign))
        elif best := best_in_words(campaign):
            typer.echo(best)
        for own in fitted.outcomes:
            if scatter := noise_in_words(fitted, own):
                typer.echo(scatter)
        if fitted.knows or campaign.past:
            show(contributions(fitted))
        for decision in fitted.decisions:
            typer.echo(f"{decision}")
        if pending := campaign.those(State.PENDING):
            show(pending_table(fitted, pending))
        else:
            typer.echo(f"Nothing is pending. Next: headstart suggest -n 4{elsewhere(folder)}")
        with working("looking ahead …", quiet=quiet):
            ahead = outlook_of(fitted, seed=seed)
        if ahead is not None:
            typer.echo(str(ahead))


def plot(
    folder: FolderOption = Path(),
    out: Annotated[Path | None, typer.Option(help="Where the pictures go.", show_default="plots in the folder")] = None,
    model: ModelOption = None,
    seed: SeedOption = 0,
    jobs: JobsOption = None,
    device: DeviceOption = None,
    quiet: QuietOption = False,
) -> None:
    """Draw progress, slices of the prediction, the front of several objectives, and what each past campaign says."""
    with errors_in_one_line():
        from headstart.campaign.campaign import open_campaign
        from headstart.draw.campaign import draw_campaign

        opened = open_campaign(existing(folder))
        fitted = fitted_campaign(opened, seed, model, jobs=jobs, device=device, quiet=quiet)
        for path in draw_campaign(fitted, out or folder / "plots"):
            typer.echo(f"Picture: {path}")


def fitted_campaign(
    campaign: Campaign,
    seed: int,
    model: str | None = None,
    *,
    jobs: int | None = None,
    device: str | None = None,
    quiet: bool = False,
) -> Fitted:
    """The campaign's model, or another one by its name; remarks on the files go to the standard error."""
    require_seed(seed)
    with working(quiet=quiet) as told:
        from headstart.campaign.fitted import fit_campaign

        fitted = fit_campaign(campaign, seed=seed, model=model, jobs=jobs, device=device, told=told)
    say([*(f"{remark}." for remark in fitted.remarks), *campaign.remarks])
    return fitted


@contextmanager
def working(doing: str = "learning from the past campaigns …", *, quiet: bool = False) -> Iterator[OnProgress]:
    """A sign of life on a terminal, while one thread works: small matrices lose by threading.

    Whoever is told how far it is shows it there as soon as it takes over two seconds.
    """
    with how_far(doing, quiet=quiet) as told:
        from headstart.gp.threads import round_alike, single_thread

        round_alike()
        with single_thread():
            yield told
