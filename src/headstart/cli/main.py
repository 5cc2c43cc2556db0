"""``headstart``: the commands. An input that cannot be used gives one line and exit code 2, never a traceback."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headstart import __version__
from headstart.cli.campaign import init, plot, status, suggest
from headstart.cli.check import check
from headstart.cli.demo import demo
from headstart.cli.mcp import mcp
from headstart.cli.serve import serve

# What typer raises where a call is not as it should be: its own copy of click's class, or click's
_UsageError: Any = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """Says what is wrong with a call in one line, as all other errors are said."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command that was asked for."""
        if not kwargs.get("standalone_mode", True):
            return super().main(*args, **kwargs)
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except _UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                typer.echo(error.format_message())
                sys.exit(2)
            where = error.ctx.command_path if error.ctx is not None else "headstart"
            typer.echo(f"headstart: {error.format_message().rstrip('.')}. See '{where} --help'.", err=True)
            sys.exit(2)
        except typer.Abort:
            typer.echo("headstart: interrupted.", err=True)
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)


app = typer.Typer(
    name="headstart",
    cls=Commands,
    help="Bayesian optimisation that starts from what you already measured.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


for command in (demo, init, suggest, status, plot, check, serve, mcp):
    app.command()(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headstart {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Bayesian optimisation that starts from what you already measured."""
