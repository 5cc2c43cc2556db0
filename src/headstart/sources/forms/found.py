"""``Found``: a past task that was found but not read yet, and ``Wanted``: what of it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from headstart.sources.forms.errors import ErrorNames
from headstart.sources.raw import RawTask


@dataclass(frozen=True)
class Wanted:
    """The objectives that somebody named, none if nobody did.

    ``of_this_one`` says that they were named for this source alone: then the source must have them. A name that is
    meant for all sources does not concern one that has a single objective anyhow, and of several names a source may
    lack some. ``errors`` are where the standard errors of the results are, ``constraints`` the columns of tables with
    values that must not be above 0, by key.
    """

    objectives: tuple[str, ...] = ()
    of_this_one: bool = False
    errors: ErrorNames = field(default_factory=ErrorNames)
    constraints: Mapping[str, str] = field(default_factory=dict)

    @property
    def objective(self) -> str | None:
        """The one that counts; None where nobody named one, or several."""
        return self.objectives[0] if len(self.objectives) == 1 else None


@dataclass(frozen=True)
class Found:
    """A source's name, known before its rows are, and how to read it.

    ``read`` raises an ``UnusableSourceError`` where there is nothing to learn from, and any other ``InputError`` where
    the call is mistaken.
    """

    name: str
    read: Callable[[Wanted], RawTask]
