"""A line of the speed benchmark's table, and the likelihoods that its fits reached."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

# Nats; optimisers that stop by a tolerance end so far apart in one optimum
SAME_OPTIMUM = 1e-3


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """log p(y) at the end of our fits less that of the rival's from the same starts, over data sets."""

    data_sets: int
    higher: int
    lower: int
    median: float
    worst: float
    equal_or_better_on_all: bool

    @classmethod
    def compared(cls, ours: list[float], theirs: list[float]) -> Likelihoods:
        """One number of each per data set."""
        gains = [a - b for a, b in zip(ours, theirs, strict=True)]
        lower = sum(gain < -SAME_OPTIMUM for gain in gains)
        higher = sum(gain > SAME_OPTIMUM for gain in gains)
        return cls(len(gains), higher, lower, median(gains), min(gains), equal_or_better_on_all=lower == 0)

    def __str__(self) -> str:
        """On how many data sets the likelihood is equal or better, and by how much."""
        equal = self.data_sets - self.higher - self.lower
        verdict = "on all" if self.equal_or_better_on_all else f"on {self.data_sets - self.lower} of"
        return (
            f"log p equal or better {verdict} {self.data_sets} data sets ({equal} equal, {self.higher} higher, "
            f"{self.lower} lower), median {self.median:+.4f}, worst {self.worst:+.4f}"
        )


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was timed, milliseconds per engine, ratios, and what the fits reached."""

    what: str
    size: str
    milliseconds: dict[str, float]
    ratio: float | None
    required: float | None
    note: str = ""
    log_p: Likelihoods | None = None

    @property
    def reached(self) -> bool | None:
        """Whether the ratio is what the project asks for."""
        if self.ratio is None or self.required is None:
            return None
        return self.ratio >= self.required
