"""What to click or to fill in on the page for the settings that a message names."""

from __future__ import annotations

from headstart.errors import Message

_CLICKS = {
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
    "parameter": "choose otherwise beside it",
    "rename": "choose so under 'the same as'",
}


def for_the_page(message: str) -> str:
    """A message or a remark, with what to click or to fill in to mend what it tells."""
    settings = message.settings if isinstance(message, Message) else ()
    clicks = dict.fromkeys(_CLICKS[one.name] for one in settings)
    return f"{message} ({', '.join(clicks)})" if clicks else str(message)
