"""Remedies that name an option of the command line, with what does the same on the page."""

from __future__ import annotations

import re

# Whole phrases first, then the options that are left: what does the same, by the option's name
_PHRASES = (
    (r"; make it a parameter with --parameter '.*?', a result with --limit '.*?'", "; choose otherwise beside it"),
    (r"; make it a parameter with --parameter '.*?'", "; choose otherwise beside it"),
    (r"run again with --rename '.*?'( \(init: [^)]*\))?", "choose so under 'the same as'"),
    (r"call it so with --rename '.*?'", "choose it under 'the same as' for the column that is"),
    (r"Give one of them another name with --rename, or leave", "Choose otherwise under 'the same as', or leave"),
    (r"[Mm]ake one with 'headstart init [^']*'", "begin one on the page Begin"),
    (r"or say what can be set, as in --parameter .*?\.$", "or drop them on the page."),
    (r"say so with \"[^\"]*\" = \S+ in \[cells\] of headstart\.toml \(init: --cell\)", "say so with a click on Yes"),
    (r"say it once with decimal_mark = .*? \(init: --cell '.*?'\)", "choose it under 'Decimal mark' on the page Begin"),
    (r", ask for fewer with -n,", ", ask for fewer,"),
    (r"Edit it, or write it anew with --force", "Edit it, or write it anew"),
)
_OPTIONS = {
    "candidates": "the list of candidates",
    "category": "the kind 'category'",
    "cell": "'What cells mean'",
    "current": "'Experiments are kept in'",
    "descriptors": "a file of descriptors",
    "error": "'standard error of …'",
    "force": "'write headstart.toml'",
    "ignore": "'not used'",
    "device": "device in headstart.toml",
    "jobs": "jobs in headstart.toml",
    "limit": "'result: at most …' or 'at least …'",
    "model": "model in headstart.toml",
    "objective": "'result: maximise' or 'minimise'",
    "maximize": "'result: maximise'",
    "minimize": "'result: minimise'",
    "parameter": "'parameter (can be set)'",
    "rename": "'the same as'",
    "rule": "'Rules'",
}
_OPTION = re.compile(r"--([a-z]+)\b(?: '[^']*')?")


def for_the_page(text: str) -> str:
    """A message or a remark, with what to click where it names an option of the command line."""
    for phrase, instead in _PHRASES:
        text = re.sub(phrase, instead, text)
    text = re.sub(r" \(init: [^)]*\)", "", text)
    return _OPTION.sub(lambda found: _OPTIONS.get(found[1], found[0]), text)
