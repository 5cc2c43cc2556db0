"""``headstart init | suggest | status | plot``: a campaign in a folder of CSV files. Parse, call, print."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart.cli.output import errors_in_one_line, say
from headstart.cli.tables import cell, count, percent, show, table, with_interval
from headstart.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from headstart.campaign.campaign import Campaign, Experiment
    from headstart.campaign.file import CampaignFile
    from headstart.campaign.init import Started
    from headstart.campaign.model import Fitted, Suggestion

__all__ = [
    "FolderOption",
    "SeedOption",
    "existing",
    "fitted_campaign",
    "init",
    "pairs",
    "plot",
    "require_seed",
    "status",
    "suggest",
    "working",
]

FolderOption = Annotated[Path, typer.Option(help="The campaign's folder.", show_default="this one")]
SeedOption = Annotated[int, typer.Option(help="Equal seeds and equal files give equal results.")]


def init(
    past: Annotated[list[Path], typer.Argument(metavar="PAST.csv...", help="The files of past campaigns.")],
    objective: Annotated[str, typer.Option(help="The column with the result.")],
    maximize: Annotated[
        bool | None, typer.Option("--maximize/--minimize", help="Whether the result is to be high or low.")
    ] = None,
    rename: Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Columns that are the same.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no parameter.")] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Numbers that are only names.")] = None,
    folder: FolderOption = Path(),
    force: Annotated[bool, typer.Option("--force", help="Write headstart.toml anew; current.csv stays.")] = False,
) -> None:
    """Look at past files and begin a campaign: headstart.toml and current.csv."""
    with errors_in_one_line():
        from headstart.campaign.init import start_campaign

        if maximize is None:
            raise InputError(f"Say what {objective!r} is to be: --maximize or --minimize.")
        started = start_campaign(
            past,
            folder,
            objective=objective,
            maximize=maximize,
            rename=pairs(rename or ()),
            ignore=tuple(ignore or ()),
            categories=tuple(category or ()),
            force=force,
        )
        say(started.remarks, at_most=None)
        show(_parameters(started))
        for name, why in started.proposal.ignored.items():
            typer.echo(f"Not a parameter: {name} ({why}).")
        typer.echo(f"Written: {started.toml}")
        kept = f"Kept: {started.current}, which has {count(started.kept_rows, 'row')}"
        typer.echo(kept if started.kept_rows else f"Written: {started.current}")
        typer.echo(f"Look through {started.toml}, then run: headstart suggest -n 4{_elsewhere(folder)}")


def suggest(
    number: Annotated[int, typer.Option("-n", "--number", help="How many experiments.")] = 1,
    folder: FolderOption = Path(),
    seed: SeedOption = 0,
) -> None:
    """Say what to try next, and append it to current.csv as rows without a result."""
    with errors_in_one_line():
        from headstart.campaign.campaign import append_experiments, open_campaign, require_closed
        from headstart.campaign.check import explained, unusual_verdicts
        from headstart.campaign.model import next_experiments
        from headstart.sources.files.safe import alone_in
        from headstart.sources.files.tables import read_table

        _require_count(number)
        with alone_in(existing(folder)):
            campaign = open_campaign(folder)
            require_closed(campaign)
            fitted = fitted_campaign(campaign, seed)
            suggestions = next_experiments(fitted, number, seed=seed)
            append_experiments(campaign, [s.values for s in suggestions])
            rows = read_table(campaign.table.path).numbers[-number:]
        show(_suggestions(fitted, suggestions, rows))
        file = campaign.file
        if fitted.knows:
            typer.echo("In brackets is a 95 % range: 19 of 20 results should lie in it.")
            typer.echo("'Rests on' says how much of what is known about the row comes from where.")
        else:
            typer.echo(
                "Nothing is known about results yet, so the rows lie apart from each other, all over the ranges."
            )
        for source in unusual_verdicts(explained(fitted)):
            typer.echo(f"{source.name} is {source.verdict}. {source.reason}")
        typer.echo(
            f"Appended to {campaign.table.path}. Fill in the column {file.objective}, save it, and run this again."
        )


def status(folder: FolderOption = Path(), seed: SeedOption = 0) -> None:
    """Show progress, the best so far, pending rows, and what the past files contribute."""
    with errors_in_one_line():
        from headstart.campaign.campaign import State, open_campaign
        from headstart.campaign.model import noise_of

        fitted = fitted_campaign(open_campaign(existing(folder)), seed)
        campaign, file = fitted.campaign, fitted.campaign.file
        counts = {state: len(campaign.those(state)) for state in State}
        typer.echo(
            f"{file.label}, to be {'maximised' if file.maximize else 'minimised'}: "
            + ", ".join(f"{n} {state.value}" for state, n in counts.items() if n or state is State.FINISHED)
        )
        unit = f" {file.unit}" if file.unit else ""
        if (best := campaign.best) is not None:
            typer.echo(f"Best so far: {best.result:g}{unit} in row {best.number}: {_settings(file, best.values)}")
        scatter, repeats = noise_of(fitted)
        if repeats:
            of = f"standard deviation, {count(repeats, 'repeat')}"
            typer.echo(f"Repeated experiments scatter by {scatter:.2g}{unit} ({of}).")
        elif fitted.knows:
            where = "the best point" if best is not None else "the most promising past point"
            told = f"at {where} the model takes results to scatter by {scatter:.2g}{unit}"
            typer.echo(f"No experiment was repeated; {told}.")
        if fitted.knows or campaign.past:
            show(_contributions(fitted))
        for decision in fitted.alignment.decisions:
            typer.echo(f"{decision}")
        if pending := campaign.those(State.PENDING):
            show(_pending(fitted, pending))
        else:
            typer.echo(f"Nothing is pending. Next: headstart suggest -n 4{_elsewhere(folder)}")


def plot(
    folder: FolderOption = Path(),
    out: Annotated[Path | None, typer.Option(help="Where the pictures go.", show_default="plots in the folder")] = None,
    seed: SeedOption = 0,
) -> None:
    """Draw progress, slices of the prediction, and what each past campaign says."""
    with errors_in_one_line():
        from headstart.campaign.campaign import open_campaign
        from headstart.draw.campaign import draw_campaign

        fitted = fitted_campaign(open_campaign(existing(folder)), seed)
        for path in draw_campaign(fitted, out or folder / "plots"):
            typer.echo(f"Picture: {path}")


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────


def pairs(renames: Sequence[str]) -> dict[str, str]:
    """What --rename was given, as old and new names."""
    found = {}
    for text in renames:
        old, equals, new = (part.strip() for part in text.partition("="))
        if not (old and equals and new):
            raise InputError(f"--rename must be OLD=NEW, as in --rename 'Temp=temperature', but it is {text!r}.")
        found[old] = new
    return found


def existing(folder: Path) -> Path:
    """The folder, or an ``InputError`` that says how to begin."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Begin a campaign with 'headstart init'.")
    return folder


def _require_count(number: int) -> None:
    if not 1 <= number <= 100:
        raise InputError(f"-n must be between 1 and 100, but it is {number}.")


def require_seed(seed: int) -> None:
    """Raise an ``InputError`` for a seed that is none."""
    if seed < 0:
        raise InputError(f"seed must not be negative, but it is {seed}.")


def _elsewhere(folder: Path) -> str:
    return "" if folder == Path() else f" --folder {folder}"


def fitted_campaign(campaign: Campaign, seed: int) -> Fitted:
    """The campaign's model; remarks on the files go to the standard error."""
    require_seed(seed)
    with working():
        from headstart.campaign.model import fit_campaign

        fitted = fit_campaign(campaign, seed=seed)
    say([*(f"{r}." for r in (*fitted.remarks, *fitted.alignment.warnings)), *campaign.remarks])
    return fitted


@contextmanager
def working() -> Iterator[None]:
    """A sign of life on a terminal, while one thread works: small matrices lose by threading."""
    from rich.console import Console

    with Console(stderr=True).status("learning from the past campaigns …"):
        from headstart.gp.threads import single_thread

        with single_thread():
            yield


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _settings(file: CampaignFile, values: Mapping[str, Any]) -> str:
    return ", ".join(f"{p.name} {cell(values[p.name])}" for p in file.parameters)


def _parameters(started: Started) -> Table:
    columns = ("column", "kind", "range", "unit", "")
    rows = []
    for guess in started.proposal.guesses:
        p = guess.parameter
        limits = ", ".join(p.choices) or f"{p.low:g} … {p.high:g}{', log' if p.log else ''}"
        rows.append((p.name, p.kind.value, limits, p.unit, guess.reasons.get("kind", "")))
    return table("Parameters", columns, rows, left=columns)


def _suggestions(fitted: Fitted, suggestions: Sequence[Suggestion], numbers: Sequence[int]) -> Table:
    file = fitted.campaign.file
    title = f"{count(len(suggestions), 'experiment')} to try"
    columns = ("row", *(p.label for p in file.parameters), f"expected {file.label}", "rests on")
    rows = (
        (
            str(number),
            *(cell(s.values[p.name]) for p in file.parameters),
            with_interval(s.expected, s.low, s.high),
            _rests_on(s, fitted),
        )
        for number, s in zip(numbers, suggestions, strict=True)
    )
    return table(title, columns, rows, left=("rests on",))


def _rests_on(suggestion: Suggestion, fitted: Fitted) -> str:
    if fitted.target.n == 0 and suggestion.shares[-1][1] == 1.0:
        return "nothing yet"
    return ", ".join(f"{name} {percent(share)}" for name, share in suggestion.shares if share >= 0.005)


def _pending(fitted: Fitted, pending: Sequence[Experiment]) -> Table:
    file = fitted.campaign.file
    found = fitted.expected([e.values for e in pending], measured=True)
    told = zip(found.median, found.low, found.high, strict=True) if found else [(math.nan,) * 3] * len(pending)
    columns = ("row", *(p.label for p in file.parameters), f"expected {file.label}")
    rows = (
        (str(e.number), *(cell(e.values[p.name]) for p in file.parameters), with_interval(*numbers))
        for e, numbers in zip(pending, told, strict=True)
    )
    return table("Pending", columns, rows)


def _contributions(fitted: Fitted) -> Table:
    from headstart.campaign.model import THIS, reference_point
    from headstart.models.auto.reasons import shares

    campaign, file = fitted.campaign, fitted.campaign.file
    pick = max if file.maximize else min
    point = reference_point(fitted)
    X = fitted.alignment.space.encode([point])
    *past, own = shares(fitted.prior, fitted.posterior, X)[0].tolist()
    where = "best point" if campaign.best is not None else "most promising past point"
    columns = ("campaign", "results used", f"best {file.label}", "share")
    rows = [
        (data.name, str(data.n), f"{pick((fitted.sign * data.y).tolist()):g}", percent(share))
        for data, share in zip(fitted.alignment.datasets, past, strict=True)
    ]
    best = f"{campaign.best.result:g}" if campaign.best is not None else "–"
    rows.append((THIS, str(fitted.target.n), best, percent(own)))
    return table(f"What is known about the {where}", columns, rows, left=("campaign",))
