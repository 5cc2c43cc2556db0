"""What the commands of a campaign are told, as people write it on a command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headstart.errors import InputError

if TYPE_CHECKING:
    from headstart.campaign.init import CampaignPlan
    from headstart.data.outcomes import Goal, Limit

MaximizeOption = Annotated[bool, typer.Option("--maximize", help="The result is to be high.", show_default=False)]
MinimizeOption = Annotated[bool, typer.Option("--minimize", help="The result is to be low.", show_default=False)]
ModelOption = Annotated[str | None, typer.Option(metavar="NAME", help="Another model than headstart.toml names.")]
FolderOption = Annotated[Path, typer.Option(help="The campaign's folder.", show_default="this one")]
SeedOption = Annotated[int, typer.Option(help="Equal seeds and equal files give equal results.")]
JobsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Processes that learn at once; -1: one for every processor.")
]
DeviceOption = Annotated[str | None, typer.Option(metavar="NAME", help="cuda: large past files on the GPU.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Do not show how far it is.", show_default=False)]
RenameOption = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Columns that are the same.")]
IgnoreOption = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that is no parameter.")]
CategoryOption = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Numbers that are only names.")]
SheetOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="The sheet of workbooks; of one alone runs.xlsx#NAME.")
]
CellOption = Annotated[
    list[str] | None,
    typer.Option(metavar="TEXT=MEANING", help="What a cell means: missing, failed or a number; decimal_mark=, too."),
]
ParameterOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=LOW..HIGH", help="What can be set, also NAME=A|B; or a column that is a parameter."),
]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(metavar="'COLUMN<=VALUE'", help="A result that only has to be good enough; may be repeated."),
]
DescriptorsOption = Annotated[
    list[str] | None,
    typer.Option(metavar="PARAMETER=FILE", help="Numbers that describe the categories of a parameter."),
]
ErrorOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Standard errors of the result; of several RESULT=COLUMN, repeated."),
]

_LIMIT = re.compile(r"(?P<name>.+?)\s*(?P<relation><=|>=|≤|≥|<|>)\s*(?P<value>[^<>≤≥=]+)")
_EXAMPLES = {"rename": "Temp=temperature", "descriptors": "solvent=solvents.csv", "cell": "n.d.=failed"}


def wanted(
    objectives: Sequence[str],
    maximize: bool | None,
    *,
    limits: Sequence[str] | None = None,
    errors: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
    candidates: Path | None = None,
    descriptors: Sequence[str] | None = None,
    rename: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    category: Sequence[str] | None = None,
    model: str | None = None,
    parameters: Sequence[str] | None = None,
    cells: Sequence[str] | None = None,
    current: str = "current.csv",
) -> CampaignPlan:
    """All of it together; ``maximize`` is the direction of an objective that does not say its own."""
    from headstart.campaign.init import CampaignPlan

    goals = tuple(_goal(text, maximize) for text in objectives)
    return CampaignPlan(
        goals,
        tuple(_limit(text) for text in limits or ()),
        _errors(errors or (), [goal.name for goal in goals]),
        tuple(rules or ()),
        candidates,
        {name: Path(file) for name, file in pairs(descriptors or (), "descriptors", "PARAMETER=FILE").items()},
        pairs(rename or ()),
        tuple(ignore or ()),
        tuple(category or ()),
        tuple(parameters or ()),
        _cells(cells or ()),
        current,
        model or "",
    )


def of_sheet(past: Sequence[Path], sheet: str | None) -> list[Path]:
    """The files, workbooks with the sheet that is to be read; one that names its own keeps it."""
    from headstart.sources.files.workbooks import WORKBOOKS

    if sheet is None:
        return list(past)
    if not any(path.suffix.lower() in WORKBOOKS for path in past):
        raise InputError(
            f"--sheet names {sheet!r}, but no file is a workbook without a sheet of its own. Leave it out."
        )
    return [Path(f"{path}#{sheet}") if path.suffix.lower() in WORKBOOKS else path for path in past]


def direction(maximize: bool, minimize: bool) -> bool | None:
    """Which way a result is to go; None where nobody says."""
    if maximize and minimize:
        raise InputError("--maximize and --minimize contradict each other. Leave one of them out.")
    return True if maximize else False if minimize else None


def _cells(texts: Sequence[str]) -> dict[str, str | float]:
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

    name, colon, way = (part.strip() for part in text.rpartition(":"))
    if colon and way.lower() in DIRECTIONS:
        return Goal(name, maximize=DIRECTIONS[way.lower()])
    if maximize is None:
        raise InputError(
            f"Say what {text!r} is to be: --maximize or --minimize, or with several --objective '{text}:maximize'."
        )
    return Goal(text.strip(), maximize=maximize)


def _limit(text: str) -> Limit:
    from headstart.data.outcomes import Limit
    from headstart.sources.files.cells import number

    found = _LIMIT.fullmatch(text.strip())
    value = None if found is None else number(found["value"])
    if found is None or value is None:
        raise InputError(f"--limit must be COLUMN<=VALUE or COLUMN>=VALUE, as in 'impurity<=0.5', but it is {text!r}.")
    name = found["name"].strip()
    return Limit(name, at_most=value) if found["relation"] in ("<=", "≤", "<") else Limit(name, at_least=value)


def _errors(texts: Sequence[str], goals: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, column = (part.strip() for part in text.partition("="))
        if not equals and len(texts) == 1:
            found[goals[0]] = text.strip()
        elif not (name and equals and column):
            raise InputError(f"--error must be RESULT=COLUMN, as in 'yield=yield_sd', but it is {text!r}.")
        else:
            found[name] = column
    return found


def pairs(texts: Sequence[str], option: str = "rename", form: str = "OLD=NEW") -> dict[str, str]:
    """What an option such as --rename was given, as old and new names."""
    found = {}
    for text in texts:
        # a meaning of a cell has no = in it, and the cell may
        old, equals, new = (
            part.strip() for part in (text.rpartition("=") if option == "cell" else text.partition("="))
        )
        if not (old and equals and new):
            raise InputError(f"--{option} must be {form}, as in --{option} '{_EXAMPLES[option]}', but it is {text!r}.")
        found[old] = new
    return found


def existing(folder: Path) -> Path:
    """The folder, or an ``InputError`` that says how to begin."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Begin a campaign with 'headstart init'.")
    return folder


def require_count(number: int) -> None:
    """Raise an ``InputError`` for a number of experiments that is none."""
    if not 1 <= number <= 100:
        raise InputError(f"-n must be between 1 and 100, but it is {number}.")


def require_seed(seed: int) -> None:
    """Raise an ``InputError`` for a seed that is none."""
    if seed < 0:
        raise InputError(f"seed must not be negative, but it is {seed}.")


def elsewhere(folder: Path) -> str:
    """The option that a command needs where the folder is not the present one."""
    return "" if folder == Path() else f" --folder {folder}"
