"""Rules that contradict each other."""

from __future__ import annotations

from dataclasses import replace

from headstart.data.rules.rule import SettingRule
from headstart.decide.ruled.pieces import Pieces
from headstart.errors import NoSettingError


def require_possible(pieces: Pieces) -> None:
    """Raise a ``NoSettingError`` with rules that contradict each other, none of which can be spared, if any do."""
    if _any(pieces, pieces.rules):
        return
    needed = list(pieces.rules)
    for rule in pieces.rules:
        fewer = [other for other in needed if other is not rule]
        if not _any(pieces, tuple(fewer)):
            needed = fewer
    given = " with " + ", ".join(f"{name} = {value}" for name, value in pieces.pinned.items()) if pieces.pinned else ""
    if len(needed) == 1:
        raise NoSettingError(f"No setting of the space{given} keeps the rule {str(needed[0])!r}. Change or remove it.")
    raise NoSettingError(
        f"No setting of the space{given} keeps all of these rules: {'; '.join(map(str, needed))}. Change or remove one."
    )


def _any(pieces: Pieces, rules: tuple[SettingRule, ...]) -> bool:
    """Whether some setting keeps these rules; categories are looked through until one has a piece."""
    own = pieces if rules == pieces.rules else replace(pieces, rules=rules, _known={}, _pieces={}, _blocks={})
    return own.any
