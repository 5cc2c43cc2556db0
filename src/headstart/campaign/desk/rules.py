"""The rules about the settings are changed in ``headstart.toml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from headstart.campaign.campaign import open_campaign
from headstart.campaign.desk.changes import Opening
from headstart.campaign.desk.history import Step, digest, make_step
from headstart.campaign.file import TOML, RuleLine
from headstart.campaign.settings import read_settings
from headstart.campaign.toml.editing import with_rules
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.errors import ChangedMeanwhileError, HeadstartError, UnusableCellsError
from headstart.sources.files.safe import alone_in


def save_rules(folder: Path, seen: str, rules: Sequence[str], *, opening: Opening = open_campaign) -> Step | None:
    """Write the rules instead of those that are there, "" for one that is taken out; None if nothing is new.

    ``seen`` is the digest of the ``headstart.toml`` that whoever typed them looked at. Rules that cannot be used are an
    ``UnusableCellsError`` by their places.
    """
    path = folder / TOML
    with alone_in(folder):
        campaign = opening(folder)
        old = path.read_bytes()
        if digest(old) != seen:
            raise ChangedMeanwhileError(f"{path} was changed by somebody else meanwhile; nothing was written.")
        file, described = campaign.file, campaign.settings.descriptors
        space = Space.of({p.name: p.distribution() for p in file.parameters}, descriptors=described)
        wrong: dict[tuple[int, str], str] = {}
        for i, rule in enumerate(rules):
            try:
                if rule:
                    parse_rule(rule, space)
            except HeadstartError as error:
                wrong[i, "rule"] = str(error)
        if wrong:
            raise UnusableCellsError(wrong)
        kept = tuple(RuleLine(rule) for rule in rules if rule)
        if kept == file.rules:
            return None
        read_settings(
            folder, replace(file, rules=kept), campaign.past, place="The rules"
        )  # whether any setting keeps all
        return make_step(folder, f"rules were changed: {len(kept)} now", {TOML: (old, with_rules(old, path, rules))})
