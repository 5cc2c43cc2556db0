"""How many verdicts are decided, and how many of them are wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.read.sheet import Interval, Sheet
from benchmarks.store import Run
from benchmarks.verdicts.pasts import Truth
from benchmarks.verdicts.runs import CHECKING, CHOOSING, MARKS, tuning_names
from headstart.models.auto.explanation import Verdict

_RIGHT = {Truth.RELATED: Verdict.RELATED, Truth.REVERSED: Verdict.REVERSED, Truth.UNRELATED: Verdict.UNRELATED}
_OPEN = (Verdict.UNKNOWN, Verdict.UNTESTED)


class Judged(NamedTuple):
    """What a source is, and what was said of it."""

    truth: Truth
    verdict: Verdict

    @property
    def decided(self) -> bool:
        """Whether anything was said of it; that a source does not predict itself is said, too."""
        return self.verdict not in _OPEN

    @property
    def wrong(self) -> bool:
        """Whether it was called something else than what it is; that it says nothing of itself is never wrong."""
        return self.decided and self.verdict not in (Verdict.IGNORED, _RIGHT.get(self.truth, self.verdict))


def judged(runs: Sequence[Run], after: int) -> list[Judged]:
    """All sources of these runs after so many results."""
    return [
        Judged(Truth(truth), Verdict(verdict))
        for run in runs
        for truth, verdict in zip(run.traces["truth"], run.traces[f"after {after}"], strict=True)
    ]


def verdict_sheet(runs: Sequence[Run]) -> Sheet:
    """A row for every group of problems and number of results."""
    tuned = tuning_names()
    groups = {
        "chosen on": [run for run in runs if run.problem in CHOOSING],
        "checked on": [run for run in runs if run.problem in CHECKING],
        "of these, tuning": [run for run in runs if run.problem in CHECKING and run.problem in tuned],
        "all": list(runs),
    }
    rows: list[tuple[str | int | float, ...]] = []
    for name, own in groups.items():
        for after in MARKS if own else ():
            every = judged(own, after)
            known = [one for one in every if one.truth is not Truth.BETWEEN]
            each = [[one.verdict is _RIGHT[truth] for one in known if one.truth is truth] for truth in _RIGHT]
            shares = [[one.decided for one in every], [one.wrong for one in known], *each]
            rows.append((name, after, len(own), len(every), *(f"{share(which):.1f}" for which in shares)))
    return Sheet(
        name="verdicts",
        title="Verdicts on sources",
        columns=(
            *("problems", "results", "runs", "sources", "decided, %", "wrong, %"),
            *("related, named", "upside down, named", "unrelated, named"),
        ),
        rows=tuple(rows),
        note="In brackets is Wilson's 95 % interval. Wrong are those of which it is known what they are, and something "
        "else was said. Sources between related and unrelated count among those that are decided alone.",
    )


def share(which: Sequence[bool]) -> Interval:
    """The share of true ones in %, with Wilson's interval."""
    n, z = len(which), 1.96
    if n == 0:
        return Interval(math.nan, math.nan, math.nan)
    p = sum(which) / n
    middle, scale = (p + z * z / (2 * n)), 1 + z * z / n
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return Interval(100 * p, 100 * max(0.0, (middle - half) / scale), 100 * min(1.0, (middle + half) / scale))
