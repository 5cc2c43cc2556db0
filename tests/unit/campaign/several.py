"""A campaign of which several things are measured, on disk, for tests."""

from __future__ import annotations

import random
from pathlib import Path

TOML = """
past = ["old.csv", "older.csv"]

[objectives.y]
direction = "maximize"
unit = "%"
error = "y_sd"

[objectives.cost]
direction = "minimize"

[limits.dirt]
at_most = 2.0

[parameters.a]
kind = "float"
low = 0.0
high = 1.0

[parameters.b]
kind = "float"
low = 0.0
high = 1.0

[parameters.s]
kind = "category"
choices = ["u", "v"]

[[rules]]
rule = "a + b <= 1"
why = "there is no more room"

[[rules]]
rule = "forbid: a > 0.8 and s = v"
"""
HEADER = "a,b,s,y,y_sd,cost,dirt\n"


def measured(a: float, b: float, s: str, shift: float = 0.0) -> tuple[float, float, float]:
    """y is highest at a = 0.6 + shift, b = 0.3, with u; b costs; dirt comes from a."""
    y = 50 - 80 * (a - 0.6 - shift) ** 2 - 60 * (b - 0.3) ** 2 - (8 if s == "v" else 0)
    return round(y, 3), round(10 + 40 * b + 10 * a, 3), round(5 * a**2 + (0.5 if s == "v" else 0), 3)


def make_several(folder: Path, current: str = HEADER, toml: str = TOML) -> Path:
    """Two past files, of which only one knows the cost, and some rows break the rules."""
    draw = random.Random(0)
    for name, shift in (("old", 0.05), ("older", -0.05)):
        rows = []
        for _ in range(15):
            a, b, s = round(draw.random(), 2), round(draw.random(), 2), draw.choice("uv")
            y, cost, dirt = measured(a, b, s, shift)
            rows.append([a, b, s, y, 0.5, cost, dirt] if name == "old" else [a, b, s, y, dirt])
        header = "a,b,s,y,y_sd,cost,dirt" if name == "old" else "a,b,s,y,dirt"
        text = "\n".join([header, *(",".join(map(str, row)) for row in rows)])
        (folder / f"{name}.csv").write_text(text + "\n", encoding="utf-8")
    (folder / "headstart.toml").write_text(toml, encoding="utf-8")
    (folder / "current.csv").write_text(current, encoding="utf-8")
    return folder


def some_rows(settings: list[tuple[float, float, str]]) -> str:
    """Finished rows of ``current.csv``."""
    rows = []
    for a, b, s in settings:
        y, cost, dirt = measured(a, b, s)
        rows.append(f"{a},{b},{s},{y},0.5,{cost},{dirt}\n")
    return HEADER + "".join(rows)
