"""Forms as they come in: bounded, with the token that only a page of this process has."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from headstart.campaign.measured import SlippedResultsError
from headstart.errors import HeadstartError, InputError, message_of

_MOST_FIELDS = 20_000
_MOST_FILES = 200

# What was typed, by the field's name
Taken = FormData


class StaleFormError(Exception):
    """A form of a page that another process made: it was open while the server was started anew."""

    def __init__(self, form: FormData) -> None:
        super().__init__("the form is older than the server")
        self.form = form


def posted(handle: Callable[[Request, Taken], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of forms that have this process's token."""

    async def answer(request: Request) -> Response:
        # as a context, so that the temporary files of an upload are gone afterwards
        async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=1024 * 1024) as form:
            given = str(form.get("token", ""))
            if not secrets.compare_digest(given.encode(), request.app.state.form_token.encode()):
                raise StaleFormError(form)
            return await run_in_threadpool(handle, request, form)

    return answer


def whole_number(text: str, what: str, low: int, high: int) -> int:
    """The number in a field, or an ``InputError``."""
    bare = text.strip()
    if not (bare.isascii() and bare.isdigit() and low <= int(bare) <= high):
        raise InputError(f"{what} must be a whole number between {low} and {high}, but it is {text!r}.")
    return int(bare)


def tried(do: Callable[[], Any]) -> tuple[Any, str]:
    """What it gives and "", or None and what is wrong, in words."""
    try:
        return tried_but_slips(do)
    except SlippedResultsError as error:
        return None, message_of(error)


def tried_but_slips(do: Callable[[], Any]) -> tuple[Any, str]:
    """The same; but a result that somebody has to be asked about is an error still."""
    try:
        return do(), ""
    except SlippedResultsError:
        raise
    except HeadstartError as error:
        return None, message_of(error)
    except OSError as error:
        return None, f"{error.filename or 'A file'}: {error.strerror or error}."
