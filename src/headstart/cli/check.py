"""``headstart check``: may the past be trusted? Of past files, or in a campaign's folder. Parse, call, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.cli.campaign import FolderOption, SeedOption, existing, fitted_campaign, pairs, require_seed, working
from headstart.cli.output import errors_in_one_line, say
from headstart.cli.tables import percent, show, table
from headstart.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from headstart.models.auto.explanation import Explanation, SourceVerdict
    from headstart.models.auto.past_check import PastCheck

__all__ = ["check"]

_NATS = "(Nats: 0.7 more is as if every value had been twice as likely.)"


def check(
    past: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PAST.csv...", help="Files of past campaigns; none: those of the folder's campaign."),
    ] = None,
    objective: Annotated[str | None, typer.Option(help="With files: the column with the result.")] = None,
    maximize: Annotated[
        bool,
        typer.Option(
            "--maximize/--minimize", help="As for init: bad results are seen less closely.", show_default=False
        ),
    ] = False,
    rename: Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Columns that are the same.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no parameter.")] = None,
    category: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Numbers that are only names.")] = None,
    folder: FolderOption = Path(),
    out: Annotated[
        Path | None, typer.Option(help="Where the picture goes.", show_default="plots in the folder")
    ] = None,
    seed: SeedOption = 0,
) -> None:
    """Say which past campaigns can be trusted, and why: before the first experiment, or in a campaign's folder."""
    with errors_in_one_line():
        require_seed(seed)
        pictures = out or existing(folder) / "plots"
        if past:
            if objective is None:
                raise InputError("Say which column of the files holds the result: --objective COLUMN.")
            _check_files(
                past,
                folder,
                pictures,
                objective=objective,
                maximize=maximize,
                rename=pairs(rename or ()),
                ignore=tuple(ignore or ()),
                category=tuple(category or ()),
                seed=seed,
            )
        else:
            if objective is not None or rename or ignore or category:
                raise InputError(
                    "--objective, --rename, --ignore and --category go with past files: headstart check PAST.csv ... "
                    "--objective COLUMN. Without files, headstart.toml in the folder says it all."
                )
            _check_folder(folder, pictures, seed)


def _check_files(
    past: Sequence[Path],
    folder: Path,
    pictures: Path,
    *,
    objective: str,
    maximize: bool,
    rename: dict[str, str],
    ignore: tuple[str, ...],
    category: tuple[str, ...],
    seed: int,
) -> None:
    from headstart.campaign.init import look_at

    looked = look_at(
        past, folder, objective=objective, maximize=maximize, rename=rename, ignore=ignore, categories=category
    )
    with working():
        from headstart.campaign.check import align_files, learn_past
        from headstart.draw.explanation import draw_agreement
        from headstart.models.auto.past_check import check_past
        from headstart.sources.extremes import with_outliers

        alignment = align_files(looked)
        prior = learn_past(alignment, seed=seed)
        alignment, found = with_outliers(alignment, prior), check_past(prior)
        picture = draw_agreement(found, pictures)
    say([*(f"{d}." for d in alignment.warnings), *looked.remarks])
    show(_past_table(found))
    _say_verdicts(found.verdicts)
    _say_contradictions(found)
    typer.echo(f"'Predicts itself' is each row predicted from the others, against a constant. {_NATS}")
    typer.echo(f"Parameters: {', '.join(p.name for p in looked.file.parameters)}")
    for name, why in looked.proposal.ignored.items():
        typer.echo(f"Not a parameter: {name} ({why}).")
    typer.echo(f"Picture: {picture}")


def _check_folder(folder: Path, pictures: Path, seed: int) -> None:
    from headstart.campaign.campaign import open_campaign
    from headstart.campaign.file import DEFAULT_MODEL, TOML

    if not (folder / TOML).exists():
        raise InputError(
            f"{folder / TOML}: there is no such file. Name past files, as in 'headstart check PAST.csv --objective "
            "COLUMN', or begin a campaign with 'headstart init'."
        )
    fitted = fitted_campaign(open_campaign(folder), seed)
    with working():
        from headstart.campaign.check import auto_prior
        from headstart.draw.explanation import draw_agreement, draw_verdicts
        from headstart.models.auto.explanation import explain
        from headstart.models.auto.past_check import check_past

        prior = auto_prior(fitted)
        found = check_past(prior)
        explanation = explain(prior, fitted.target)
        drawn = (draw_verdicts(explanation, pictures), draw_agreement(found, pictures))
    if (model := fitted.campaign.file.model.lower()) != DEFAULT_MODEL:
        say([f"The campaign's model is {model!r}. This is what {DEFAULT_MODEL!r}, which weighs its sources, says."])
    show(_verdict_table(explanation, found))
    _say_verdicts(explanation.sources)
    if explanation.n_observations == 0:
        _say_contradictions(found)
    columns = ("candidate", "the new campaign is ...", "believed")
    believed = ((name, explanation.meanings[name], percent(share)) for name, share in explanation.candidates.items())
    show(table("How far the candidates are believed", columns, believed, left=columns[:2]))
    typer.echo(f"A gain is how much better the campaign's results were predicted before they were seen. {_NATS}")
    typer.echo("A weight of 1 takes over all of a past campaign's shape, 0 none, below 0 turns it upside down.")
    for path in drawn:
        typer.echo(f"Picture: {path}")


# ── tables and sentences ──────────────────────────────────────────────────────────────────────────────────────────


def _past_table(found: PastCheck) -> Table:
    several = len(found.names) > 1
    columns = ("campaign", "rows", "predicts itself", *(("agrees with", "contradicts") if several else ()), "verdict")
    rows = []
    for i, verdict in enumerate(found.verdicts):
        others = (", ".join(names) or "–" for names in (found.agrees(i), found.contradicts(i)))
        rows.append(
            (verdict.name, str(found.rows[i]), _itself(found, i), *(others if several else ()), str(verdict.verdict))
        )
    left = ("campaign", "predicts itself", "agrees with", "contradicts", "verdict")
    return table("What the past campaigns say", columns, rows, left=left)


def _itself(found: PastCheck, i: int) -> str:
    from headstart.models.auto.explanation import Silence

    told = f"{found.gains[i]:+.2f} ± {found.errors[i]:.2f}"
    why = found.silent[i]
    return told if why is None else f"{told}: {why}" if why in (Silence.NOISE, Silence.LITTLE) else str(why)


def _verdict_table(explanation: Explanation, found: PastCheck) -> Table:
    n = explanation.n_observations
    columns = ("campaign", "rows", "predicts itself", "gain per result", "95 % interval", "weight", "verdict")
    rows = [
        (
            s.name,
            str(found.rows[i]),
            _itself(found, i),
            "–" if s.interval is None else f"{s.gain:+.2f}",
            "–" if s.interval is None else f"{s.interval[0]:+.2f} to {s.interval[1]:+.2f}",
            f"{s.weight:+.2f} ± {s.weight_sd:.2f}",
            str(s.verdict),
        )
        for i, s in enumerate(explanation.sources)
    ]
    title = f"The past campaigns after {n} result{'' if n == 1 else 's'} of this one"
    return table(title, columns, rows, left=("campaign", "predicts itself", "verdict"))


def _say_verdicts(verdicts: Sequence[SourceVerdict]) -> None:
    for s in verdicts:
        typer.echo(f"{s.name} is {s.verdict}. {s.reason}")


def _say_contradictions(found: PastCheck) -> None:
    """What to look at where campaigns show the reverse of each other."""
    for i, name in enumerate(found.names):
        others = found.contradicts(i)
        if len(others) > len(found.agrees(i)):
            typer.echo(
                f"{name} shows the reverse of {', '.join(others)}. Look whether its result counts the other way round, "
                "or two columns are swapped; left as it is, it is turned round or ignored once results show it."
            )
