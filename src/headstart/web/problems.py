"""What is wrong, in words, and what to click or to fill in on the page to mend it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headstart.errors import HeadstartError, Message, message_of

_CLICKS = {
    "batch": "choose another batch, or none",
    "begin": "begin one on the page Begin",
    "candidates": "the list of candidates",
    "category": "choose the kind 'category'",
    "cells": "say it under 'What cells mean' on the page Begin, or with a click on Yes",
    "current": "choose it under 'Experiments are kept in'",
    "descriptors": "give a file of descriptors",
    "error": "choose 'standard error of …'",
    "force": "then 'write headstart.toml'",
    "ignore": "choose 'not used'",
    "limit": "choose otherwise beside it",
    "number": "ask for fewer",
    "objective": "choose 'result: maximise' or 'result: minimise' beside it",
    "parameter": "choose otherwise beside it",
    "rename": "choose so under 'the same as'",
}


def for_the_page(message: str) -> str:
    """A message or a remark, with what to click or to fill in to mend what it tells."""
    settings = message.settings if isinstance(message, Message) else ()
    clicks = dict.fromkeys(_CLICKS[one.name] for one in settings)
    return f"{message} ({', '.join(clicks)})" if clicks else str(message)


def in_words(error: Exception) -> Message:
    """What an error says to whoever can mend it."""
    if isinstance(error, HeadstartError):
        return message_of(error)
    if isinstance(error, OSError):
        return Message(f"{error.filename or 'A file'}: {error.strerror or error}.")
    return Message(f"This went wrong inside headstart: {type(error).__name__}: {error}")


def tried(do: Callable[[], Any], *, but: tuple[type[Exception], ...] = ()) -> tuple[Any, str]:
    """What it gives and "", or None and what is wrong, in words; ``but`` are errors that somebody else answers."""
    try:
        return do(), ""
    except but:
        raise
    except (HeadstartError, OSError) as error:
        return None, in_words(error)
