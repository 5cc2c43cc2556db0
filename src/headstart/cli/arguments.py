"""What the commands of a campaign are told, as people write it on a command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from headstart.cli.output import errors_in_one_line
from headstart.errors import InputError

if TYPE_CHECKING:
    from headstart.campaign.init import CampaignPlan
    from headstart.data.outcomes import Goal

_EXAMPLES = {
    "rename": "Temp=temperature",
    "descriptors": "solvent=solvents.csv",
    "cell": "n.d.=failed",
    "error": "yield=yield_sd",
}


# Headings of the help
_COLUMNS = "What the files hold; all but --sheet and --batch may be repeated"
LIMITS = "What must hold"


@dataclass(frozen=True)
class FolderOptions:
    """Where a campaign is, and how its models are learnt."""

    folder: Annotated[Path, typer.Option(metavar="DIR", help="The campaign's folder.", show_default="this one")] = (
        Path()
    )
    seed: Annotated[int, typer.Option(metavar="N", help="Equal seeds and equal files give equal results.")] = 0
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.", show_default=False)] = False

    def __post_init__(self) -> None:
        """Raise an ``InputError`` for a seed that is none."""
        if self.seed < 0:
            raise InputError(f"seed must not be negative, but it is {self.seed}.")

    @property
    def existing(self) -> Path:
        """The folder, or an ``InputError`` that says how to begin."""
        if not self.folder.is_dir():
            raise InputError(f"{self.folder}: there is no such folder. Begin a campaign with 'headstart init'.")
        return self.folder


@dataclass(frozen=True)
class LearnOptions(FolderOptions):
    """The same, and what ``headstart.toml`` says of the learning otherwise."""

    model: Annotated[str | None, typer.Option(metavar="NAME", help="Another model than headstart.toml names.")] = None
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Processes that learn at once; -1: all processors.")] = (
        None
    )
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="cuda: learn from large past files on the GPU.")
    ] = None


@dataclass(frozen=True)
class FileOptions:
    """What past files hold."""

    maximize: Annotated[bool, typer.Option("--maximize", help="The result is to be high.", show_default=False)] = False
    minimize: Annotated[bool, typer.Option("--minimize", help="The result is to be low.", show_default=False)] = False
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'COLUMN<=VALUE'",
            help="What a result must keep, also '6<=COLUMN<=7'; may be repeated.",
            rich_help_panel=LIMITS,
        ),
    ] = None
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE:ROW",
            help="The row that 'baseline' means in a limit; also COLUMN=VALUE.",
            rich_help_panel=LIMITS,
        ),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The sheet of workbooks; of a single one runs.xlsx#NAME.", rich_help_panel=_COLUMNS
        ),
    ] = None
    batch: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="The day, lot or instrument whose rows may be shifted together; none: there is no such.",
            rich_help_panel=_COLUMNS,
        ),
    ] = ""
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Two names of one column.", rich_help_panel=_COLUMNS),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column that is no parameter.", rich_help_panel=_COLUMNS),
    ] = None
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column whose numbers are only names.", rich_help_panel=_COLUMNS),
    ] = None
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW..HIGH",
            help="What can be set, also 'NAME=A|B'; or a column that is a parameter.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None
    cell: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT=MEANING",
            help="What a cell means: missing, failed or a number; also decimal_mark=, or decimal_mark=.",
            rich_help_panel=_COLUMNS,
        ),
    ] = None

    def plan(self, objectives: Sequence[str], *, minimized: bool = False) -> CampaignPlan:
        """All of it; an objective that does not say its direction is ``minimized``, or an ``InputError``."""
        from headstart.campaign.init import CampaignPlan
        from headstart.data.requirements import parse_requirement

        if self.maximize and self.minimize:
            raise InputError("--maximize and --minimize contradict each other. Leave one of them out.")
        maximize = True if self.maximize else False if self.minimize or minimized else None
        return CampaignPlan(
            tuple(_goal(text, maximize) for text in objectives),
            tuple(parse_requirement(text, "--limit") for text in self.limit or ()),
            baseline=tuple(self.baseline or ()),
            rename=pairs(self.rename, "rename", "OLD=NEW"),
            ignore=tuple(self.ignore or ()),
            batch=self.batch.strip(),
            categories=tuple(self.category or ()),
            parameters=tuple(self.parameter or ()),
            cells=_cells(self.cell),
        )

    def of_sheet(self, past: Sequence[Path]) -> list[Path]:
        """The files, workbooks with the sheet that is to be read; one that names its own keeps it."""
        from headstart.sources.files.workbooks import WORKBOOKS

        books = [path for path in past if path.suffix.lower() in WORKBOOKS]
        if self.sheet is not None and not books:
            raise InputError(
                f"--sheet names {self.sheet!r}, but no file is a workbook without a sheet of its own. Leave it out."
            )
        return [Path(f"{path}#{self.sheet}") if self.sheet and path in books else path for path in past]


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command for typer: a parameter whose type is one of the classes above stands for the options in it."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if isinstance(hint, type) and is_dataclass(hint)}
    parameters = []
    for name, own in inspect.signature(function).parameters.items():
        more = inspect.signature(groups[name]).parameters.items() if name in groups else [(name, own)]
        types = get_type_hints(groups[name], include_extras=True) if name in groups else hints
        parameters += [p.replace(kind=p.KEYWORD_ONLY, annotation=types[each]) for each, p in more]

    def run(**told: Any) -> None:
        with errors_in_one_line():
            for name, group in groups.items():
                told[name] = group(**{one.name: told.pop(one.name) for one in fields(group)})
            function(**told)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def pairs(texts: Sequence[str] | None, option: str, form: str) -> dict[str, str]:
    """What an option such as --rename was given, as old and new names."""
    found = {}
    for text in texts or ():
        # a meaning of a cell has no = in it, and the cell may
        parts = text.rpartition("=") if option == "cell" else text.partition("=")
        old, equals, new = (part.strip() for part in parts)
        if not (old and equals and new):
            raise InputError(f"--{option} must be {form}, as in --{option} '{_EXAMPLES[option]}', but it is {text!r}.")
        found[old] = new
    return found


def error_columns(texts: Sequence[str] | None, goals: Sequence[Goal]) -> dict[str, str]:
    """The columns of standard errors by their results: what --error was given."""
    if texts and len(texts) == 1 and "=" not in texts[0]:
        return {goals[0].name: texts[0].strip()}
    return pairs(texts, "error", "RESULT=COLUMN")


def _cells(texts: Sequence[str] | None) -> dict[str, str | float]:
    from headstart.sources.files.cells import MARK_KEY, number, wrong_meaning

    found: dict[str, str | float] = {}
    for text, meaning in pairs(texts, "cell", "TEXT=MEANING").items():
        value = None if text == MARK_KEY else number(meaning)
        found[text] = meaning if value is None else value
        if why := wrong_meaning(text, found[text]):
            raise InputError(f"--cell: {why.replace('[cells] says', 'it is')}")
    return found


def _goal(text: str, maximize: bool | None) -> Goal:
    from headstart.campaign.toml.reading import DIRECTIONS
    from headstart.data.outcomes import Goal
    from headstart.data.requirements import parse_requirement, required

    if "=" in text and (told := parse_requirement(text, "--objective")).near is not None:  # as in pH = 7
        ((goal,), _) = required([Goal(told.name)], [told])
        return goal
    name, colon, way = (part.strip() for part in text.rpartition(":"))
    if colon and way.lower() in DIRECTIONS:
        return Goal(name, maximize=DIRECTIONS[way.lower()])
    if maximize is None:
        raise InputError(
            f"Say what {text!r} is to be: --maximize or --minimize, or with several --objective '{text}:maximize'."
        )
    return Goal(text.strip(), maximize=maximize)


def elsewhere(folder: Path) -> str:
    """The option that a command needs where the folder is not the present one."""
    return "" if folder == Path() else f" --folder {folder}"
