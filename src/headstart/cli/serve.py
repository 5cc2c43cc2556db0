"""``headstart serve``: a page for a campaign's folder. Parse, call, print."""

from __future__ import annotations

import secrets
import socket
from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.arguments import command
from headstart.errors import InputError, MissingExtraError

_SHORTEST = 12  # letters of a token


@command
def serve(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The campaign's folder.", show_default="this one")
    ] = Path(),
    port: Annotated[int, typer.Option(metavar="N", help="Where it listens; 0 takes a free one.")] = 8421,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Who may reach it: this machine alone, unless told otherwise.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the address must carry.",
            show_default="a random one beyond this machine, else none",
        ),
    ] = None,
) -> None:
    """Show the folder's campaign as a page in the browser.

    From the first files to the report, all of it can be done there.
    """
    try:
        import python_multipart  # noqa: F401, Starlette asks for it only when a form comes
        import uvicorn

        from headstart.web.app import make_app
        from headstart.web.guard import is_local
    except ImportError as error:
        if error.name is None or error.name.startswith("headstart"):
            raise
        raise MissingExtraError(f"The page needs {error.name}: pip install 'headstart[web]'.") from error
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder. Create it first; the page begins the campaign in it.")
    if not 0 <= port <= 65535:
        raise InputError(f"--port must be between 0 and 65535, but it is {port}.")
    if token is not None and (len(token) < _SHORTEST or not token.isascii() or not token.isprintable()):
        raise InputError(f"--token must have at least {_SHORTEST} plain letters, or leave it out for a random one.")
    door = token or ("" if is_local(host) else secrets.token_urlsafe(24))
    try:
        listening = socket.create_server((host, port), family=socket.getaddrinfo(host, port)[0][0])
    except OSError as error:
        raise InputError(
            f"{host}:{port} cannot be listened on: {error.strerror or error}. Choose another --port, or --host."
        ) from error
    port = listening.getsockname()[1]
    app = make_app(folder, host=host, port=port, token=door)
    name = f"[{host}]" if ":" in host else host
    typer.echo(f"Open http://{name}:{port}/{f'?token={door}' if door else ''}")
    typer.echo(f"The folder is {folder.resolve()}. Ctrl-C ends it; nothing is lost, for all is in the folder.")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2))
    app.state.desk.warm()
    try:
        with listening:
            server.run(sockets=[listening])
    except KeyboardInterrupt:
        typer.echo("\nEnded.")
    finally:
        app.state.desk.worker.stop()
