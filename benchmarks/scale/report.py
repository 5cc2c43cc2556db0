"""What was measured of how it grows, as tables: for the terminal, and for docs/scale.md.

``python -m benchmarks.scale.report`` writes the tables of results/scale.json and results/gpu.json into
docs/scale.md, each between its two marks; where results/scale-before.json has the same case, what it took before stands
beside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.scale.plan import MOST_SLOPE, ScaleCase

MARKS = ("<!-- measured: begin -->", "<!-- measured: end -->")
GPU_MARKS = ("<!-- on a GPU: begin -->", "<!-- on a GPU: end -->")

Record = dict[str, Any]

# Measures that are shown, in words and with their unit, in the order of the table
_WORDS = {
    "learn": ("learn", "s"),
    "suggest": ("a suggestion", "s"),
    "further": ("the next suggestion", "s"),
    "first": ("all results at once", "s"),
    "mean": ("a new result, on average", "s"),
    "most": ("a new result, at most", "s"),
    "memory": ("memory", "MB"),
    "mean_error": ("mean, largest error", "sd"),
    "sd_error": ("sd, largest error", "sd"),
    "regret": ("regret", ""),
}
_TITLES = {
    "learn": "One source of so many rows",
    "many": "So many sources",
    "target": "A long target",
    "resume": "A study that is resumed with so many trials",
    "exact": "Error against the exact posterior, in its standard deviations",
    "regret": "Regret on Hartmann-6, so many source points, 15 evaluations",
    "slope": "How learning grows",
}
_WITH_MEMORY = ("learn", "many", "target")
_COLUMNS = ("size", "model", "what", "measured", "before", "asked", "")


@dataclass(frozen=True, slots=True)
class ScaleLine:
    """One measure of one case, in words; ``reached`` is None where nothing is asked for."""

    part: str
    size: str
    model: str
    what: str
    measured: str
    before: str = ""
    asked: str = ""
    reached: bool | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """As they are shown."""
        mark = {True: "reached", False: "missed", None: ""}[self.reached]
        return self.size, self.model, self.what, self.measured, self.before, self.asked, mark


def _interval(values: Sequence[float]) -> str:
    """The mean and its standard error."""
    mean = sum(values) / len(values)
    if len(values) < 2:
        return _figure(mean)
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return f"{_figure(mean)} ± {math.sqrt(variance / len(values)):.2g} ({len(values)} runs)"


def _figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}" if abs(value) < 10 else f"{value:.1f}"


def _value(record: Record | None, measure: str) -> str:
    if record is None:
        return ""
    found = record["measures"].get(measure)
    if found is None:
        return str(record["ended"]) if measure == _missing(record) else ""
    if measure == "regret":
        return _interval(record["measures"]["regrets"])
    unit = _WORDS[measure][1]
    return f"{_figure(found)} {unit}".strip()


def _missing(record: Record) -> str | None:
    """The first measure that it was ended before, if it was."""
    wanted = {
        "learn": ("learn", "suggest", "further"),
        "many": ("learn", "suggest", "further"),
        "target": ("first", "mean"),
        "resume": ("first", "mean"),
        "exact": ("mean_error",),
        "regret": ("regret",),
    }[record["part"]]
    wanted = wanted[:1] if record["model"] == "botorch" else wanted
    return next((name for name in wanted if name not in record["measures"]), None) if record["ended"] else None


def lines_of(cases: Iterable[Record], before: Iterable[Record] = ()) -> Iterator[ScaleLine]:
    """Every measure of every case, then the exponents."""
    cases, earlier = list(cases), {record["name"]: record for record in before}
    for record in cases:
        case = ScaleCase(record["part"], record["size"], record["model"], record["limit"])
        for measure, (words, unit) in _WORDS.items():
            if measure not in record["measures"] and measure != _missing(record):
                continue
            if measure == "memory" and case.part not in _WITH_MEMORY:
                continue
            asked, found = case.asked(measure), record["measures"].get(measure)
            yield ScaleLine(
                part=case.part,
                size=case.size.replace("x", " × "),
                model=case.model.upper() if case.model != "botorch" else "BoTorch, one fit",
                what=words,
                measured=_value(record, measure),
                before=_value(earlier.get(case.name), measure),
                asked="" if asked is None else f"≤ {asked:g} {unit}".strip(),
                reached=None if asked is None else found is not None and found <= asked,
            )
    yield from _against_exact(cases)
    for part, most in MOST_SLOPE.items():
        for model in ("auto", "shgp", "botorch"):
            found, old = slope(cases, part, model), slope(list(earlier.values()), part, model)
            if found is None:
                continue
            ours = model != "botorch"
            yield ScaleLine(
                part="slope",
                size="to 5000 rows" if part == "learn" else "10 to 100 sources",
                model=model.upper() if ours else "BoTorch, one fit",
                what="exponent",
                measured=f"{found:.2f}",
                before="" if old is None else f"{old:.2f}",
                asked=f"≤ {most:g}" if ours else "",
                reached=found <= most if ours else None,
            )


def _against_exact(cases: Sequence[Record]) -> Iterator[ScaleLine]:
    """SHGP's regret less that with every row in every fit, run by run, with twice its standard error."""
    runs = {record["model"]: record["measures"].get("regrets", []) for record in cases if record["part"] == "regret"}
    pairs = list(zip(runs.get("shgp", []), runs.get("exact", []), strict=False))
    if len(pairs) < 2:
        return
    gaps = [ours - exact for ours, exact in pairs]
    mean = sum(gaps) / len(gaps)
    within = 2 * math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1) / len(gaps))
    size = next(record["size"] for record in cases if record["part"] == "regret")
    shown = f"{mean:+.2g} ± {within:.2g} ({len(gaps)} runs)"
    yield ScaleLine("regret", size, "SHGP − EXACT", "regret, run by run", shown, "", "0 within ±", abs(mean) <= within)


def slope(cases: Sequence[Record], part: str, model: str) -> float | None:
    """The slope of log seconds of learning in log rows (to 5000), or in log sources (of 100 rows); None below two."""
    points = []
    for record in cases:
        if record["part"] != part or record["model"] != model or "learn" not in record["measures"]:
            continue
        sources, rows = ScaleCase(part, record["size"], model, 0).numbers
        if part == "learn" and rows <= 5000:
            points.append((math.log(rows), math.log(record["measures"]["learn"])))
        if part == "many" and sources <= 100:
            points.append((math.log(sources), math.log(record["measures"]["learn"])))
    if len(points) < 2:
        return None
    centre = sum(x for x, _ in points) / len(points)
    spread = sum((x - centre) ** 2 for x, _ in points)
    return sum((x - centre) * y for x, y in points) / spread


def as_tables(cases: Iterable[Record], before: Iterable[Record] = ()) -> Iterator[Table]:
    """A table for every part, for people."""
    lines = list(lines_of(cases, before))
    for part, title in _TITLES.items():
        own = [line for line in lines if line.part == part]
        if not own:
            continue
        table = Table(title=title, title_justify="left")
        for column in _COLUMNS:
            table.add_column(column, overflow="fold")
        for line in own:
            colour = {True: "green", False: "red", None: "default"}[line.reached]
            *cells, mark = line.cells
            table.add_row(*cells, f"[{colour}]{mark}[/{colour}]" if mark else "")
        yield table


def as_markdown(cases: Iterable[Record], before: Iterable[Record] = ()) -> str:
    """The same for the documentation, a row for every case."""
    parts, lines = [], list(lines_of(cases, before))
    for part, title in _TITLES.items():
        rows: dict[tuple[str, str], dict[str, str]] = {}
        for line in (line for line in lines if line.part == part):
            rows.setdefault((line.size, line.model), {})[line.what] = _in_a_cell(line)
        if rows:
            columns = list(dict.fromkeys(what for row in rows.values() for what in row))
            table = [("size", "model", *columns), ("---",) * (2 + len(columns))]
            table += [(*case, *(row.get(what, "") for what in columns)) for case, row in rows.items()]
            parts.append("\n".join(["### " + title, "", *("| " + " | ".join(row) + " |" for row in table)]))
    return "\n\n".join(parts)


def _in_a_cell(line: ScaleLine) -> str:
    """``3.9 s (was 73 s; ≤ 4 s: reached)``."""
    notes = [f"was {line.before}"] if line.before else []
    if line.reached is not None:
        notes.append(f"{line.asked}: {'reached' if line.reached else '**missed**'}")
    return line.measured + (f" ({'; '.join(notes)})" if notes else "")


def _between(page: str, marks: tuple[str, str], text: str) -> str:
    """The page with the text between its two marks, which stay."""
    head, _, rest = page.partition(marks[0])
    return f"{head}{marks[0]}\n\n{text}\n\n{marks[1]}{rest.partition(marks[1])[2]}"


def written(page: str, results: Path) -> str:
    """The page with the tables of these results; what was not measured stays as it is."""
    if (results / "scale.json").exists():
        cases = json.loads((results / "scale.json").read_text())["cases"]
        old = results / "scale-before.json"
        before = json.loads(old.read_text())["cases"] if old.exists() else []
        page = _between(page, MARKS, as_markdown(cases, before))
    if (results / "gpu.json").exists():
        page = _between(page, GPU_MARKS, gpu_markdown(json.loads((results / "gpu.json").read_text())))
    return page


def gpu_markdown(record: Record) -> str:
    """Runs per GPU-second of every experiment, and what the paper's study takes."""
    lines = [
        "| experiment | runs | GPU-hours | runs per GPU-second | cells measured |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for name, own in record["experiments"].items():
        speed = "" if own["runs_per_gpu_second"] is None else _figure(own["runs_per_gpu_second"])
        hours, of = _figure(own["gpu_seconds"] / 3600), f"{own['measured']} of {own['cells']}"
        lines.append(f"| {name} | {own['runs']:,} | {hours} | {speed} | {of} |")
    paper, jobs = record["paper"], record["jobs"]
    one = "one process" if jobs == 1 else f"{jobs} processes"
    unknown = f" {paper['cells_unknown']} cells are not counted: nothing was measured of their methods."
    lines += [
        "",
        f"{'All' if paper['complete'] else 'Not all, but'} {paper['runs']:,} runs of the paper's experiments, at its "
        "numbers of runs: "
        f"**{_figure(paper['gpu_hours'])} GPU-hours** ({record['provenance']['hardware']}, {one}). "
        f"{paper['share_measured']:.0%} of that are cells of which learning and two steps were timed; the others are "
        f"taken to cost what the next larger one of their method does. The paper states {paper['cpu_hours']:,} "
        "CPU-hours for all it ran, early debugging and evaluations included."
        + (unknown if paper["cells_unknown"] else ""),
    ]
    return "\n".join(lines)


def main(results: Path = Path("results"), page: Path = Path("docs/scale.md")) -> None:
    """Write the tables into the page."""
    page.write_text(written(page.read_text(), results))


if __name__ == "__main__":
    main()
