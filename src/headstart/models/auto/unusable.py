"""Why a source says nothing: it is noise, constant, or too small for what it asks about."""

from __future__ import annotations

from enum import StrEnum

from headstart.data.dataset import Dataset
from headstart.data.units import spread_of
from headstart.models.auto.auto import AutoPrior

_ROWS_PER_INPUT = 5  # with less a source that is not noise often looks like it
_FEW_ROWS = 3  # with less, nothing can be left out and predicted from the others


class WhyUnusable(StrEnum):
    """Why a source says nothing about anything."""

    NOISE = "noise"
    LITTLE = "says little"
    CONSTANT = "constant"
    TOO_FEW = "too few rows"


def why_unusable(prior: AutoPrior, i: int) -> WhyUnusable | None:
    """Why source i says nothing; None where it does."""
    source = prior.sources[i]
    if bool(prior.gate.open[i]):
        return None
    if source.n < _FEW_ROWS:
        return WhyUnusable.TOO_FEW
    if float(spread_of(source.y, source.y.mean(-1))) == 0:
        return WhyUnusable.CONSTANT
    return WhyUnusable.LITTLE if says_little(source) else WhyUnusable.NOISE


def says_little(source: Dataset) -> bool:
    """Whether a source has too few rows for its inputs to show that it is more than noise, even if it is."""
    return source.n < _ROWS_PER_INPUT * (_count_inputs(source) + 1)


def _count_inputs(source: Dataset) -> int:
    """How many parameters a source recorded: a category is one, with its descriptors, which say nothing more of it.

    Descriptors stand right behind the levels that they describe; levels are several, and a row has one at most.
    """
    groups = [group for group in source.categories if not set(group) <= set(source.unseen)]
    grouped = {column for group in source.categories for column in group}
    ends = {group[-1] for group in groups}
    single = [len(g) > 1 and bool((source.X[..., list(g)] != 0).sum(-1).le(1).all()) for g in groups]
    levels = [g for g, one in zip(groups, single, strict=True) if one or g[0] - 1 not in ends]
    return source.d - len(grouped | set(source.unseen)) + len(levels)
