"""``Found``: a past task that was found but not read yet, and ``Wanted``: which of its objectives is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headstart.sources.raw import RawTask

__all__ = ["Found", "Wanted"]


@dataclass(frozen=True)
class Wanted:
    """The objective that somebody named, None if nobody did.

    ``of_this_one`` says that it was named for this source alone: then the source must have it. A name that is meant for
    all sources does not concern one that has a single objective anyhow.
    """

    objective: str | None = None
    of_this_one: bool = False


@dataclass(frozen=True)
class Found:
    """A source's name, known before its rows are, and how to read it.

    ``read`` raises an ``UnusableSourceError`` where there is nothing to learn from, and any other ``InputError`` where
    the call is mistaken.
    """

    name: str
    read: Callable[[Wanted], RawTask]
