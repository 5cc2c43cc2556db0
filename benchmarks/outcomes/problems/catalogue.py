"""All problems with several outcomes or rules, by name."""

from __future__ import annotations

from benchmarks.outcomes.problems.pairs import PAIRS
from benchmarks.outcomes.problems.problem import OutcomeProblem
from benchmarks.outcomes.problems.ruled import RULED
from benchmarks.outcomes.problems.tables import TABLES
from headstart.errors import InputError

# Those that are judged by; the pairs are to try things out on
OUTCOME_PROBLEMS: dict[str, OutcomeProblem] = {**TABLES, **RULED}


def outcome_problem(name: str) -> OutcomeProblem:
    """The problem of that name."""
    known = {**OUTCOME_PROBLEMS, **PAIRS}
    if name in known:
        return known[name]
    raise InputError(f"There is no problem {name!r}. The known ones are {', '.join(known)}.")
