"""How a rule names a parameter of its space."""

from __future__ import annotations

import difflib
import re

from headstart.data.axis import Axis
from headstart.data.space import Space
from headstart.errors import UnknownParameterError

_PLAIN = re.compile(r"[^\W\d]\w*")
_WORDS = ("and", "forbid", "from", "in", "not", "of", "steps")


def axis_named(space: Space, name: str, where: object) -> Axis:
    """The parameter of this name; an ``UnknownParameterError`` that says where it was named, and what may be meant."""
    for axis in space.axes:
        if axis.name == name:
            return axis
    lower = {known.lower(): known for known in space.names}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    hint = (
        f"Did you mean {shown_name(lower[close[0]])}?"
        if close
        else f"The parameters are {', '.join(map(shown_name, space.names))}."
    )
    raise UnknownParameterError(f"{where}: there is no parameter {name!r}. {hint}")


def shown_name(name: str) -> str:
    """The name as a rule has to be written: in quotes unless it is a plain word."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else f"`{name}`"
