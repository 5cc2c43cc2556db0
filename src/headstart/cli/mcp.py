"""``headstart mcp``: a campaign's folder as a server of the Model Context Protocol. Parse, call, answer."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headstart import __version__
from headstart.cli import campaign as commands
from headstart.cli import check as checking
from headstart.cli.arguments import command
from headstart.cli.output import errors_in_one_line
from headstart.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from mcp.server import MCPServer  # type: ignore[import-not-found,unused-ignore]

    from headstart.campaign.desk.history import Step

_ABOUT = (
    "A campaign of experiments in a folder. suggest says what to try next and appends it to the table of experiments; "
    "record writes the results of its rows; status shows how it goes, and explain what the past campaigns are worth."
)


@command
def mcp(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The campaign's folder.", show_default="this one")
    ] = Path(),
) -> None:
    """Let an assistant work in the folder.

    A server of the Model Context Protocol, over standard input and output.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Begin a campaign with 'headstart init'.")
    server = make_server(folder)
    try:
        server.run("stdio")
    except KeyboardInterrupt:
        typer.echo("Ended.", err=True)


def make_server(folder: Path) -> MCPServer[Any]:
    """A server with the tools over this folder; a ``MissingExtraError`` without the protocol's package."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise MissingExtraError("The server needs mcp, version 2: pip install 'headstart[mcp]'.") from error
    server: MCPServer[Any] = MCPServer("headstart", instructions=_ABOUT, version=__version__, log_level="WARNING")
    own = FolderTools(folder)
    for tool in (own.check, own.suggest, own.record, own.explain, own.status):
        server.add_tool(tool, structured_output=False)
    return server


@dataclass(frozen=True)
class FolderTools:
    """What an assistant may do in a folder: each tool says what a command would print, or is its one-line error."""

    folder: Path
    _turn: threading.Lock = field(default_factory=threading.Lock)  # what is printed belongs to one call at a time

    def check(self, past: list[str], objective: list[str], maximize: bool = False) -> str:
        """Say which past files can be trusted, and why, before a campaign begins.

        Args:
            past: Tables inside the campaign's folder, such as "past/march.csv", or patterns such as "past/*.csv".
            objective: The column with the result; of several results "column:maximize" or "column:minimize" each.
            maximize: Whether the result is to be high.
        """

        def run() -> None:
            files = [path for name in past for path in self._files(name)]
            _call(checking.check, folder=self.folder, past=files, objective=objective, maximize=maximize)

        return self._printed(run)

    def suggest(self, n: int = 1) -> str:
        """Say what to try next, and append it to the table of experiments as rows without a result.

        Args:
            n: How many experiments.
        """
        return self._printed(lambda: _call(commands.suggest, folder=self.folder, number=n))

    def record(
        self,
        cells: dict[str, int | float | str],
        row: int | None = None,
        failed: bool = False,
        right: list[str] | None = None,
    ) -> str:
        """Write what was measured into a row that was suggested, or an experiment of one's own as a new row.

        Args:
            cells: Values by the names of their columns: results, and settings that were set otherwise than suggested;
                of a new row all of its settings.
            row: The number of the row, as ``suggest`` and ``status`` show it; without one a new row is added.
            failed: Whether the experiment of the row gave no result at all.
            right: Columns whose value is right though it was asked whether it is.
        """
        return self._printed(lambda: _record(self.folder, cells, row, failed=failed, right=right or []))

    def explain(self) -> str:
        """Say what each past campaign is worth to this one, why, and which candidates of the model are believed."""
        return self._printed(lambda: _call(checking.check, folder=self.folder))

    def status(self) -> str:
        """Show progress, the best so far, pending rows, what the past files contribute, and whether to go on."""
        return self._printed(lambda: _call(commands.status, folder=self.folder))

    def _files(self, name: str) -> list[Path]:
        """The files of the folder that a name or a pattern means; one that means none is a file that is not there."""
        pattern = "*" in name and not Path(name).is_absolute()
        found = (sorted(self.folder.glob(name)) if pattern else []) or [self.folder / name]
        for path in found:
            if not path.resolve().is_relative_to(self.folder.resolve()):
                raise InputError(f"{path} lies outside the campaign's folder. Copy it into the folder first.")
        return found

    def _printed(self, run: Callable[[], None]) -> str:
        """What is printed, remarks first; a refusal is a ``ToolError`` with the line that the command line has."""
        from mcp.server.mcpserver.exceptions import ToolError  # type: ignore[import-not-found,unused-ignore]

        with self._turn, redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as remarks:
            try:
                with errors_in_one_line():
                    run()
            except typer.Exit as refusal:
                raise ToolError(remarks.getvalue().strip()) from refusal
        return f"{remarks.getvalue()}{printed.getvalue()}".strip()


def _call(function: Callable[..., None], **told: Any) -> None:
    """A command with these options, the others as they are where nobody gives them."""
    options = {name: own.default for name, own in inspect.signature(function).parameters.items()}
    function(**{**options, "quiet": True, **told})


def _record(
    folder: Path, cells: dict[str, int | float | str], row: int | None, *, failed: bool, right: list[str]
) -> None:
    """Write the cells into the table as it is now, and print what was done."""
    from headstart.campaign.campaign import open_campaign
    from headstart.campaign.desk.changes import add_row, save_results
    from headstart.campaign.desk.history import digest

    typed = {column: str(value) for column, value in cells.items()}
    seen = str(digest(open_campaign(folder).table.raw))
    step: Step | None
    if row is None:
        step = add_row(folder, seen, typed, right=right)
    else:
        places = {(row, column): text for column, text in typed.items()}
        marked = [(row, column) for column in right]
        step = save_results(folder, seen, places, failed=[row] if failed else [], right=marked)
    typer.echo("Nothing is new." if step is None else f"{step.what[0].upper()}{step.what[1:]}.")
