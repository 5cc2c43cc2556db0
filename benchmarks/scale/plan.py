"""What is measured of how it grows, and what is asked for. Nothing heavy is loaded here.

    part       sizes                                   measures
    learn      one source of so many rows              learn; suggest: the first suggestion, with 20 results
    many       so many sources of so many rows         the same; further: the suggestion after one more result
    target     so many results, one source of 100      first: all of them at once; mean and most of new ones after that
    resume     a study of so many trials, as Optuna's  first suggestion, mean of those after it
    exact      one source of so many rows              error against the exact posterior at equal hyperparameters
    regret     Hartmann-6, 2000 source points          regret after 15 evaluations; with every row in every fit: exact

Seconds are CPU seconds of one thread, and memory the most that the process held, in MB of 10⁶ bytes: ``over`` is what
is beyond that of a process in which everything is loaded and a small problem was solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PARTS = ("learn", "many", "target", "resume", "exact", "regret")

# What is asked for: the case without its model, then the measure
ASKED: dict[tuple[str, str], float] = {
    ("learn/2000", "learn"): 4.0,
    ("learn/5000", "learn"): 15.0,
    ("learn/20000", "learn"): 60.0,
    ("learn/20000", "memory"): 2000.0,
    ("many/100x100", "learn"): 8.0,
    ("many/100x100", "suggest"): 0.5,
    ("many/100x100", "memory"): 800.0,
    ("many/1000x50", "learn"): 90.0,
    ("many/1000x50", "suggest"): 2.0,
    ("target/1000", "mean"): 1.0,
    ("target/1000", "most"): 5.0,
    ("exact/2000", "mean_error"): 0.02,
    ("exact/2000", "sd_error"): 0.02,
    ("exact/5000", "mean_error"): 0.02,
    ("exact/5000", "sd_error"): 0.02,
}
MOST_SLOPE = {"learn": 2.2, "many": 1.2}  # exponents of the seconds of learning in rows, and in sources

_MODELS = ("auto", "shgp")
_QUICK = {"learn": ("200", "400"), "many": ("2x30", "4x30"), "target": ("40",), "resume": ("20",), "exact": ("200",)}
_SIZES = {
    "learn": ("500", "1000", "2000", "5000", "20000"),
    "many": ("10x100", "30x100", "100x100", "1000x50"),
    "target": ("200", "500", "1000"),
    "resume": ("500", "800"),
    "exact": ("2000", "5000"),
}
_LIMITS = {"learn": 240, "many": 300, "target": 300, "resume": 240, "exact": 240, "regret": 1200}  # CPU seconds


@dataclass(frozen=True, slots=True)
class ScaleCase:
    """One process: a part, a size in words and a model; it is given up after so many CPU seconds."""

    part: str
    size: str
    model: str
    limit: int

    @property
    def name(self) -> str:
        """``learn/2000/auto``."""
        return f"{self.part}/{self.size}/{self.model}"

    @property
    def numbers(self) -> tuple[int, int]:
        """How many sources, and rows of each (or results, or trials)."""
        sources, times, rows = self.size.partition("x")
        return (int(sources), int(rows)) if times else (1, int(sources))

    def asked(self, measure: str) -> float | None:
        """What is asked of a measure, if anything is; nothing is asked of others' programs."""
        return None if self.model == "botorch" else ASKED.get((f"{self.part}/{self.size}", measure))


def all_cases(*, quick: bool = False, exact_regret: bool = False) -> Iterator[ScaleCase]:
    """The cases in the order of the table. ``exact_regret``: also what every row in every fit would give, for hours."""
    sizes = _QUICK if quick else _SIZES
    for part in PARTS[:-1]:
        for size in sizes[part]:
            models = ("shgp",) if part == "exact" else ("auto",) if part == "resume" else _MODELS
            if part == "learn" and int(size) <= 2000:
                models = (*models, "botorch")
            for model in models:
                yield ScaleCase(part, size, model, _LIMITS[part])
    for model in ("gpbo", "shgp", "auto", *(("exact",) if exact_regret else ())):
        yield ScaleCase(
            "regret", "100" if quick else "2000", model, _LIMITS["regret"] * (10 if model == "exact" else 1)
        )
