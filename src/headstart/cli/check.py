"""``headstart check``: may the past be trusted? Of past files, or in a campaign's folder. Parse, call, print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.campaign.desk.words import count, percent
from headstart.cli.arguments import FileOptions, FolderOptions, command
from headstart.cli.campaign import fitted_campaign
from headstart.cli.output import say, show, table, working
from headstart.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from headstart.campaign.file import ResultColumn
    from headstart.campaign.fitted import FittedOutcome
    from headstart.campaign.init import CampaignPlan
    from headstart.models.auto.explanation import Explanation, SourceVerdict
    from headstart.models.batch_shifts import BatchShift, Shifts

_NATS = "(Nats: 0.7 more is as if every value had been twice as likely.)"


@command
def check(
    *,
    past: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAST.csv", help="Files of past campaigns; none: those of the folder's campaign."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="With files: the column with the result. Of several: repeated."),
    ] = None,
    files: FileOptions,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the pictures go.", show_default="plots in the folder")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List all remarks on the files.", show_default=False)] = False,
    options: FolderOptions,
) -> None:
    """Say which past campaigns can be trusted, and why.

    With files before the first experiment: headstart check past/*.csv --objective yield. Without files in a campaign's
    folder, after results of its own.
    """
    pictures = out or options.existing / "plots"
    if past:
        if not objective:
            raise InputError("Say which column of the files holds the result: --objective COLUMN.")
        _check_files(files.of_sheet(past), files.plan(objective, minimized=True), pictures, options, every=every)
    elif objective or files != FileOptions():
        raise InputError(
            "--objective, --limit, --rename, --ignore, --batch, --category, --parameter, --cell and --sheet go with "
            "past files: headstart check PAST.csv ... --objective COLUMN. Without files, headstart.toml in the folder "
            "says it all."
        )
    else:
        _check_folder(pictures, options, every=every)


def _check_files(
    past: Sequence[Path], plan: CampaignPlan, pictures: Path, options: FolderOptions, *, every: bool
) -> None:
    from headstart.campaign.init import look_at
    from headstart.cli.campaign_tables import batch_in_words

    looked = look_at(past, options.folder, plan)
    several = len(looked.file.results) > 1
    drawn, warned = [], []
    with working(quiet=options.quiet) as told:
        from headstart.campaign.check import align_files, learn_past
        from headstart.campaign.insight import named_shifts
        from headstart.draw.sources import draw_agreement
        from headstart.models.auto.explanation import check_past
        from headstart.sources.alignment import with_outliers

        found, shifts = [], []
        for name, aligned in align_files(looked).items():
            prior = learn_past(aligned, seed=options.seed, told=told)
            alignment = with_outliers(aligned, prior.outliers)
            warned += [f"{decision}." for decision in alignment.warnings]
            said = aligned.noting(report.note for report in prior.fit_reports).decisions[len(aligned.decisions) :]
            warned += [f"{decision}." for decision in said]
            found.append((name if several else "", check_past(prior)))
            sign = float(looked.file.outcomes[name].sign)
            shifts.append(named_shifts(found[-1][1].shifts, looked.file, alignment, sign))
            drawn.append(draw_agreement(found[-1][1], pictures, of=name if several else ""))
    say([*dict.fromkeys(warned), *looked.remarks], every=every)
    for (name, one), shifted, column in zip(found, shifts, looked.file.results, strict=True):
        show(_past_table(one, name))
        _say_verdicts(one.sources, one)
        _say_shifts(shifted, column, name, every=every)
    typer.echo(f"'Predicts itself' is each row predicted from the others, against a constant. {_NATS}")
    typer.echo(f"Parameters: {', '.join(p.name for p in looked.file.parameters)}")
    if batch := batch_in_words(looked):
        typer.echo(batch)
    for name, why in looked.proposal.ignored.items():
        typer.echo(f"Not a parameter: {name} ({why}).")
    for path in drawn:
        typer.echo(f"Picture: {path}")


def _check_folder(pictures: Path, options: FolderOptions, *, every: bool) -> None:
    from headstart.campaign.campaign import open_campaign
    from headstart.campaign.file import DEFAULT_MODEL, TOML
    from headstart.campaign.insight import own_shifts

    folder = options.folder
    if not (folder / TOML).exists():
        raise InputError(
            f"{folder / TOML}: there is no such file. Name past files, as in 'headstart check PAST.csv --objective "
            "COLUMN', or begin a campaign with 'headstart init'."
        )
    fitted = fitted_campaign(open_campaign(folder), options, every=every)
    if not fitted.campaign.past and not any(map(own_shifts, fitted.outcomes)):
        raise InputError(f"{folder}: the campaign has no past files, so there is nothing to check.")
    if (model := fitted.campaign.file.model.lower()) != DEFAULT_MODEL:
        say([f"The campaign's model is {model!r}. This is what {DEFAULT_MODEL!r}, which weighs its sources, says."])
    if fitted.campaign.batches_in_words:
        typer.echo(fitted.campaign.batches_in_words)
    drawn = [path for own in fitted.outcomes for path in _check_outcome(own, pictures, options.quiet, every=every)]
    if not fitted.campaign.past:
        return
    typer.echo(
        "Left out is how much worse results would have been predicted without it, and how much later the best had come."
    )
    typer.echo("A weight of 1 takes over all of a past campaign's shape, 0 none, below 0 turns it upside down.")
    for path in drawn:
        typer.echo(f"Picture: {path}")


def _check_outcome(own: FittedOutcome, pictures: Path, quiet: bool, *, every: bool) -> tuple[Path, ...]:
    """Print the verdicts on an outcome's sources, and what there is to say of shifts; the pictures behind them."""
    from headstart.campaign.insight import every_shift

    name = own.column.name if len(own.campaign.file.results) > 1 else ""
    with working(quiet=quiet) as told:
        from headstart.campaign.check import auto_prior
        from headstart.draw.sources import draw_agreement, draw_verdicts
        from headstart.models.auto.explanation import check_past, explain

        prior = auto_prior(own, told)
        if prior is None:
            typer.echo(f"No past file knows {own.column.name}: it is learnt from this campaign alone.")
            _say_shifts(every_shift(own, None), own.column, name, every=every)
            return ()
        found = check_past(prior)
        explanation = explain(prior, own.target)
        drawn = (draw_verdicts(explanation, pictures, of=name), draw_agreement(found, pictures, of=name))
    show(_verdict_table(explanation, name))
    _say_verdicts(explanation.sources, found)
    _say_shifts(every_shift(own, explanation), own.column, name, every=every)
    columns = ("candidate", "the new campaign is ...", "believed")
    believed = ((name, explanation.meanings[name], percent(share)) for name, share in explanation.candidates.items())
    show(table("How far the candidates are believed", columns, believed, left=columns[:2]))
    return drawn


def _past_table(found: Explanation, of: str) -> Table:
    several = len(found.names) > 1
    columns = ("campaign", "rows", "predicts itself", *(("agrees with", "contradicts") if several else ()), "verdict")
    rows = []
    for i, s in enumerate(found.sources):
        others = (", ".join(names) or "–" for names in found.related(i))
        rows.append((s.name, str(s.rows), _itself(s), *(others if several else ()), str(s.verdict)))
    left = ("campaign", "predicts itself", "agrees with", "contradicts", "verdict")
    return table(f"What the past campaigns say{of and f': {of}'}", columns, rows, left=left)


def _itself(source: SourceVerdict) -> str:
    from headstart.models.auto.explanation import WhyUnusable

    told = f"{source.informative:+.2f} ± {source.informative_error:.2f}"
    why = source.unusable
    return told if why is None else f"{told}: {why}" if why in (WhyUnusable.NOISE, WhyUnusable.LITTLE) else str(why)


def _verdict_table(explanation: Explanation, of: str) -> Table:
    from headstart.models.auto.explanation import Verdict

    silent = (Verdict.IGNORED, Verdict.UNTESTED)
    relations = ("related", "unrelated", "upside down")
    columns = ("campaign", "rows", "predicts itself", *relations, "left out", "weight", "verdict")
    rows = [
        (
            s.name,
            str(s.rows),
            _itself(s),
            *("–––" if s.verdict in silent else map(percent, s.relation)),
            "–" if math.isnan(s.gain) else f"{s.gain:+.2g}, {s.trials:+.0f} rows",
            f"{s.weight:+.2f} ± {s.weight_sd:.2f}",
            str(s.verdict),
        )
        for s in explanation.sources
    ]
    title = f"The past campaigns after {count(explanation.n_observations, 'result')} of this one{of and f': {of}'}"
    return table(title, columns, rows, left=("campaign", "predicts itself", "verdict"))


def _say_verdicts(verdicts: Sequence[SourceVerdict], past: Explanation) -> None:
    """The verdicts, and what to look at; ``past`` compares the campaigns with each other."""
    from headstart.campaign.check import what_to_look_at

    for i, s in enumerate(verdicts):
        typer.echo(f"{s.name} is {s.verdict}. {s.explained} {what_to_look_at(s, past.related(i))}".rstrip())


def _say_shifts(found: Sequence[Shifts], column: ResultColumn, of: str, *, every: bool) -> None:
    """How large shifts between batches are and which is odd; with ``every`` a table of all batches."""
    from headstart.campaign.fitted import THIS
    from headstart.models.batch_shifts import shifts_in_words

    for line in shifts_in_words(found, THIS, column.unit):
        typer.echo(f"{of}, {line}" if of else line)
    if every and found:
        columns = ("campaign", found[0].noun, f"{column.label} lies above the mean", "as far out by chance")
        rows = [(s.task, b.label, f"{b.shift:+.2g} ± {b.sd:.2g}", _chance(b)) for s in found for b in s.batches]
        show(table("Shifts between batches", columns, rows, left=("campaign", found[0].noun)))


def _chance(batch: BatchShift) -> str:
    told = "–" if math.isnan(batch.chance) else percent(batch.chance) if batch.chance >= 0.01 else "below 1 %"
    return f"{told}: odd" if batch.odd else told
