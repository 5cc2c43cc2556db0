"""``headstart``: the commands. An input that cannot be used gives one line and exit code 2, never a traceback."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from headstart import __version__
from headstart.cli.campaign import init, plot, status, suggest
from headstart.cli.check import check
from headstart.cli.demo import demo
from headstart.cli.mcp import mcp
from headstart.cli.serve import serve

# What typer raises where a call is not as it should be: its own copy of click's class, or click's
_UsageError: Any = typer.BadParameter.__bases__[0]


class Command(TyperCommand):
    """Shows its options under headings, where they have one."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options and those with headings of their own."""
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            name, text = parameter.get_help_record(ctx) or ("", "")
            if parameter.param_type_name == "argument":
                arguments.append(("Arguments", parameter.metavar or name, text))
            else:
                options.append((getattr(parameter, "rich_help_panel", None) or "Options", name, text))
        _write(formatter, [*arguments, *options])


class Commands(TyperGroup):
    """Shows the commands under headings, and says what is wrong with a call in one line, as all errors are said."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands under their headings, each with its first sentence, however long that is."""
        commands: list[tuple[str, Any]] = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        told = [(each.rich_help_panel, name, each.get_short_help_str(1000)) for name, each in commands]
        # A command without a heading has a placeholder of Typer's in its place
        _write(formatter, [(h if isinstance(h, str) else "Commands", name, text) for h, name, text in told])

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
            said = f"{error.format_message().rstrip('.')}.".replace("?.", "?")
            typer.echo(f"headstart: {said} See '{where} --help'.", err=True)
            sys.exit(2)
        except typer.Abort:
            typer.echo("headstart: interrupted.", err=True)
            sys.exit(130)
        sys.exit(code if isinstance(code, int) else 0)


def _write(formatter: Any, rows: Sequence[tuple[str, str, str]]) -> None:
    """Headings with names and what they mean, all in the same columns."""
    width = min(max(len(name) for _, name, _ in rows), 28)
    for heading in dict.fromkeys(heading for heading, _, _ in rows):
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(width), text) for each, name, text in rows if each == heading])


app = typer.Typer(
    name="headstart",
    cls=Commands,
    help="Bayesian optimisation that starts from what you already measured.",
    epilog="'headstart COMMAND --help' says more.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


# In the order of use, under what the help calls them
for heading, commands in {
    "See it work": (demo,),
    "A campaign in a folder": (check, init, suggest, status, plot),
    "The same elsewhere": (serve, mcp),
}.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=heading)(command)


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
