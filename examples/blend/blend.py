"""A made-up blend of which several things are measured: ``python blend.py`` writes the past campaigns anew.

Three parts add up to the whole, an oven has a temperature, and there are three catalysts. The strength is to be high,
the cost low, and the shrinkage at most 0.5 %. Each campaign has another batch of resin, which moves the best share and
temperature. Nobody measured the cost in the first campaign.
"""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path

CATALYSTS = {"tin": 1.0, "zinc": 0.85, "none": 0.7}
BATCHES = {"2023-batch-a": -0.08, "2024-batch-b": 0.05, "2025-batch-c": 0.0, "new": 0.02}
SETTINGS = ["resin", "hardener", "filler", "oven_C", "catalyst"]


def measured(
    draw: random.Random, batch: str, resin: float, hardener: float, filler: float, oven: float, catalyst: str
) -> tuple[float, float, float, float]:
    """Strength in MPa with its standard error, shrinkage in percent, and cost in euros per kilogram."""
    shift = BATCHES[batch]
    heat = math.exp(-(((oven - 90 - 40 * shift) / 40) ** 2))
    strength = 95 * math.exp(-6 * (resin - 0.5 - shift) ** 2 - 5 * (hardener - 0.3) ** 2) * heat * CATALYSTS[catalyst]
    error = draw.choice([0.5, 1.0, 4.0])  # the good machine, the other one, and a test by hand
    shrinkage = 0.1 + 0.9 * max(0.0, (oven - 70) / 50) ** 2 + 0.5 * filler + (0.2 if catalyst == "none" else 0.0)
    cost = 2.0 * resin + 6.0 * hardener + 0.5 * filler + (1.0 if catalyst == "tin" else 0.3)
    return (
        round(max(strength + draw.gauss(0, error), 0.0), 1),
        error,
        round(max(shrinkage + draw.gauss(0, 0.02), 0.0), 2),
        round(cost, 2),
    )


def drawn(draw: random.Random) -> tuple[float, float, float, int, str]:
    """Settings all over the ranges, the parts adding up to 1."""
    parts = [draw.expovariate(1) for _ in range(3)]
    resin, hardener = (round(part / sum(parts), 2) for part in parts[:2])
    return resin, hardener, round(1 - resin - hardener, 2), 5 * draw.randint(10, 26), draw.choice(list(CATALYSTS))


def main() -> None:
    """Write the past campaigns, 25 runs each."""
    folder = Path(__file__).parent / "past"
    for seed, batch in enumerate(list(BATCHES)[:3]):
        draw = random.Random(seed)
        header = [*SETTINGS, "strength_MPa", "strength_sd", "shrinkage_percent", "cost"]
        rows = []
        for _ in range(25):
            settings = drawn(draw)
            rows.append([*settings, *measured(draw, batch, *settings)])
        if seed == 0:
            header, rows = header[:-1], [row[:-1] for row in rows]
        with (folder / f"{batch}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main()
