"""The space of a new campaign: what somebody says of it, what a list of candidates or descriptors adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from headstart.errors import InputError
from headstart.sources.column_guess import Guess, Proposal
from headstart.sources.columns.frames import input_column
from headstart.sources.columns.span import outward
from headstart.sources.described import read_descriptors
from headstart.sources.files.readings import CellRules
from headstart.sources.files.tables import Table
from headstart.sources.parameters import Kind, Parameter, nearest, parameter_of_text


def told_parameters(texts: Sequence[str]) -> tuple[dict[str, Parameter], tuple[str, ...]]:
    """Parameters that somebody describes, as in ``T=20..120``, and columns that are only said to be some."""
    told = [parameter_of_text(text) for text in texts if "=" in text]
    names = [p.name for p in told] + [text.strip() for text in texts if "=" not in text]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--parameter names {name!r} twice.")
    return {p.name: p for p in told}, tuple(text.strip() for text in texts if "=" not in text)


def with_told(proposal: Proposal, told: Mapping[str, Parameter]) -> Proposal:
    """The parameters as they are described; those that no file knows come last."""
    reason = {"kind": "as told"}
    guesses = [Guess(told[g.parameter.name], reason) if g.parameter.name in told else g for g in proposal.guesses]
    known = [g.parameter.name for g in guesses]
    guesses += [Guess(p, reason) for name, p in told.items() if name not in known]
    return replace(
        proposal,
        guesses=tuple(guesses),
        ignored={name: why for name, why in proposal.ignored.items() if name not in told},
    )


def with_candidates(proposal: Proposal, table: Table) -> Proposal:
    """The parameters with ranges and choices that hold all candidates."""
    guesses = []
    for guess in proposal.guesses:
        p = guess.parameter
        if p.name not in table.columns:
            guesses.append(guess)
            continue
        values = input_column(table, p.name, [True] * len(table.rows), text=p.kind is Kind.CATEGORY).to_numpy()
        if p.kind is Kind.CATEGORY:
            choices = tuple(sorted({*p.choices, *values}))
            guesses.append(replace(guess, parameter=replace(p, choices=choices)))
            continue
        low, high = float(np.min(values)), float(np.max(values))
        on_step = all(p.on_step(value) for value in values) if p.step is not None else True
        if p.low <= low and high <= p.high and on_step:
            guesses.append(guess)
            continue
        low, high = outward(min(low, p.low), max(high, p.high), log=p.log and low > 0)
        whole = p.kind is Kind.INT and bool(np.all(values == np.round(values)))
        kind = Kind.INT if whole else Kind.FLOAT
        reasons = {**guess.reasons, "low": f"{guess.reasons.get('low', 'the data')}; and the candidates"}
        guesses.append(
            Guess(replace(p, low=low, high=high, kind=kind, log=p.log and low > 0, step=None), reasons, guess.run)
        )
    return replace(proposal, guesses=tuple(guesses))


def with_descriptors(
    proposal: Proposal, files: Mapping[str, Path], names: Mapping[str, str], rules: CellRules
) -> Proposal:
    """The parameters whose categories are described, with every category that is; ``names`` are the files' paths."""
    known = [guess.parameter.name for guess in proposal.guesses if guess.parameter.kind is Kind.CATEGORY]
    for name in files:
        if name not in known:
            raise InputError(f"--descriptors names {name!r}, which has no categories. {nearest(name, known)}")
    guesses = []
    for guess in proposal.guesses:
        p = guess.parameter
        if p.name in files:
            described = read_descriptors(files[p.name], p.name, p.choices, rules).categories
            choices = tuple(sorted({*p.choices, *map(str, described)}))
            p = replace(p, choices=choices, descriptors=names[p.name])
        guesses.append(replace(guess, parameter=p))
    return replace(proposal, guesses=tuple(guesses))
