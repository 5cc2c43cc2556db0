"""A made-up reaction, and the past campaigns of the laboratory that ran it: ``python reaction.py`` writes them anew.

The yield is a product of what a chemist would expect: the reaction needs heat and time, suffers when both are too
much, needs a certain concentration, and likes one solvent more than another. Each campaign has another substrate,
which shifts the best temperature and concentration; results scatter by 1.5 percentage points.
"""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from pathlib import Path

SOLVENTS = {"DMF": 1.0, "MeCN": 0.92, "THF": 0.75, "toluene": 0.55}
SCATTER = 1.5


@dataclass(frozen=True)
class Substrate:
    """What the substrate shifts: the best temperature in °C, the best concentration in mol/L, the highest yield."""

    temperature: float
    concentration: float
    highest: float


SUBSTRATES = {
    "amide-a": Substrate(78, 0.11, 88),
    "amide-b": Substrate(92, 0.20, 93),
    "amide-c": Substrate(70, 0.06, 84),
    "amide-d": Substrate(83, 0.14, 91),  # the new one
}


def true_yield(substrate: str, temperature: float, time: float, concentration: float, solvent: str) -> float:
    """The yield in percent, without scatter."""
    s = SUBSTRATES[substrate]
    heat = math.exp(-0.5 * ((temperature - s.temperature) / 24) ** 2)
    dose = math.exp(-0.5 * (math.log10(concentration / s.concentration) / 0.7) ** 2)
    converted = 1 - math.exp(-time / 22)
    decomposed = 1 / (1 + math.exp((temperature + 0.25 * time - s.temperature - 52) / 9))
    return s.highest * heat * dose * converted * decomposed * SOLVENTS[solvent]


def measured_yield(draw: random.Random, *settings: object) -> float:
    """The yield as the laboratory would report it."""
    return round(min(max(true_yield(*settings) + draw.gauss(0, SCATTER), 0.0), 100.0), 1)  # type: ignore[arg-type]


def past_campaign(
    substrate: str, seed: int, runs: int = 22, repeats: int = 3
) -> list[tuple[float, float, float, str, float]]:
    """Runs all over the ranges, and some of the better ones repeated."""
    draw = random.Random(seed)
    rows = []
    for _ in range(runs):
        settings = (
            5.0 * draw.randint(8, 24),
            5.0 * draw.randint(1, 24),
            float(f"{10 ** draw.uniform(-2.3, 0.2):.2g}"),
            draw.choice(list(SOLVENTS)),
        )
        rows.append((*settings, measured_yield(draw, substrate, *settings)))
    best = sorted(rows, key=lambda row: -row[-1])[:repeats]
    return rows + [(*row[:4], measured_yield(draw, substrate, *row[:4])) for row in best]


def write(path: Path, header: list[str], rows: list[list[str]], delimiter: str, *, excel: bool = False) -> None:
    """A CSV file, as plain programs write it or as Excel does in large parts of Europe."""
    with path.open("w", encoding="utf-8-sig" if excel else "utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n" if excel else "\n")
        writer.writerows([header, *rows])


def main() -> None:
    """Write the past campaigns: three files that differ in layout and in the name of a column, as files do."""
    folder = Path(__file__).parent / "past"
    names = ["run", "temperature_C", "time_min", "concentration_M", "solvent", "yield_percent"]
    for substrate, year in (("amide-a", 2023), ("amide-b", 2024), ("amide-c", 2025)):
        rows = [
            [str(n), f"{t:g}", f"{m:g}", f"{c:g}", solvent, f"{y:g}"]
            for n, (t, m, c, solvent, y) in enumerate(past_campaign(substrate, seed=year), start=1)
        ]
        path, header, excel = folder / f"{year}-{substrate}.csv", list(names), year == 2024
        if excel:
            rows = [[cell.replace(".", ",") for cell in row] for row in rows]
        if year == 2025:
            header[1] = "T [°C]"
        write(path, header, rows, ";" if excel else ",", excel=excel)


if __name__ == "__main__":
    main()
