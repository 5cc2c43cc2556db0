"""A small campaign on disk, for tests."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

TOML = """
past = ["a.csv", "b.csv"]
ignore = ["run"]

[objectives.y]
direction = "{direction}"

[parameters.x]
kind = "float"
low = 0.0
high = 1.0

[parameters.s]
kind = "category"
choices = ["u", "v"]
"""


def value(x: float, s: str, shift: float = 0.0) -> float:
    """Highest, 10, at x = 0.6 + shift with u."""
    return round(10 * math.exp(-12 * (x - 0.6 - shift) ** 2) - (3 if s == "v" else 0), 3)


def make(folder: Path, *, direction: str = "maximize", current: str = "x,s,y\n") -> Path:
    """Two past files of a dozen rows, one in the manner of Excel, and a ``current.csv``."""
    sign = 1 if direction == "maximize" else -1
    for name, shift, excel in (("a", -0.05, False), ("b", 0.05, True)):
        rows = [
            (i + 1, round((i + 0.5) / 12, 3), "uv"[i % 2], sign * value((i + 0.5) / 12, "uv"[i % 2], shift))
            for i in range(12)
        ]
        text = "\n".join(",".join(map(str, row)) for row in rows)
        text = text.replace(",", ";").replace(".", ",") if excel else text
        header = "run,x,s,y".replace(",", ";" if excel else ",")
        (folder / f"{name}.csv").write_text(f"{header}\n{text}\n", encoding="utf-8-sig" if excel else "utf-8")
    (folder / "headstart.toml").write_text(TOML.format(direction=direction), encoding="utf-8")
    (folder / "current.csv").write_bytes(current.encode())
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of the folder and its content, to see that nothing changed."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }
