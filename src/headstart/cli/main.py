"""``headstart``: the commands. An input that cannot be used gives one line and exit code 2, never a traceback."""

from __future__ import annotations

from typing import Annotated

import typer

from headstart import __version__
from headstart.cli.bench import bench
from headstart.cli.campaign import init, plot, status, suggest
from headstart.cli.check import check
from headstart.cli.demo import demo
from headstart.cli.reproduce import reproduce
from headstart.cli.serve import serve

__all__ = ["app"]

app = typer.Typer(
    name="headstart",
    help="Bayesian optimisation that starts from what you already measured.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


app.add_typer(bench)
for command in (demo, reproduce, init, suggest, status, plot, check, serve):
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
