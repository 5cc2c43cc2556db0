"""How much each number of ``headstart.tuning`` matters: runs with it halved and doubled, paired with unchanged runs.

python -m benchmarks sensitivity FOLDER [--data TABLES] [--jobs 16] [--minutes 9] [--runs 8] [--only WORD]

A variant is one number of ``AUTO_TUNING`` or ``PLAIN_TUNING``, halved or doubled. AUTO runs with all of them, GPBO with
those of ``PLAIN_TUNING``, on function families and on the development tables, by the product's own path (``learn``,
``condition``, ``suggest``). The difference of log₁₀ regret to the run of the same problem and seed with unchanged
numbers is averaged over problems × seeds; below 0 the variant is better. Every run is a line of ``FOLDER/runs.jsonl``,
from which an interrupted program goes on; runs of another commit do not count. Seeds are done one after the other for
all variants, and a variant that changed no run of the first seed is not run again.

Modules may read a number when they are imported, so a variant is set in a fresh process before anything else of
headstart is imported: this module imports ``headstart.tuning`` alone, everything else inside functions.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headstart import tuning

if TYPE_CHECKING:
    from benchmarks.problems.problem import Problem
    from benchmarks.read.sheet import Interval

SCHEMA = 1
MARKS = (5, 10, 20)  # evaluations after which runs are compared
BOUND = 0.1  # differences of log₁₀ regret within ± this are none
MODELS = {"AUTO_TUNING": ("AUTO",), "PLAIN_TUNING": ("AUTO", "GPBO"), "": ("AUTO", "GPBO")}
_SHARES = {"share", "shares", "belief", "weight", "balance", "probability", "quantile", "level", "correlation"}
_PARTS = 4  # processes for one variant and seed: each takes a second to start, which is half a run
_PRELOADED = ["torch", "botorch", "numba", "pandas", "scipy.optimize"]

Record = dict[str, Any]


def scaled(value: Any, factor: float, name: str) -> Any:
    """The number times the factor: tuples as a whole, whole numbers rounded and at least 1, shares below 1."""
    if isinstance(value, tuple):
        return tuple(scaled(part, factor, name) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    new = float(f"{value * factor:.12g}")
    return 0.99 if value < 1 <= new and _SHARES & set(name.split("_")) else new


@dataclasses.dataclass(frozen=True)
class Variant:
    """One number of ``headstart.tuning`` with another value; without a section nothing is changed."""

    section: str = ""
    number: str = ""
    before: Any = None
    value: Any = None

    @property
    def key(self) -> str:
        """What stands in the records: the number with its value."""
        return f"{self.section}.{self.number}={self.value}" if self.section else "unchanged"

    def set(self) -> None:
        """Replace the section in this process, into which nothing that reads it may have been imported."""
        late = [m for m in sys.modules if m.startswith(("headstart.gp.", "headstart.models.", "headstart.decide."))]
        if late:
            raise RuntimeError(f"{late[0]} may have read headstart.tuning before it is changed.")
        if self.section:
            changed = dataclasses.replace(getattr(tuning, self.section), **{self.number: self.value})
            setattr(tuning, self.section, changed)


def variants(only: str = "") -> Iterator[Variant]:
    """Every number whose name has the word, halved and doubled where that is another value."""
    for section in ("AUTO_TUNING", "PLAIN_TUNING"):
        for name, before in dataclasses.asdict(getattr(tuning, section)).items():
            for value in (scaled(before, 0.5, name), scaled(before, 2.0, name)):
                if only in name and value != before:
                    yield Variant(section, name, before, value)


def log_regrets(problem: Problem, model: str, seed: int, steps: int) -> list[float]:
    """A run's log₁₀ regret at the marks; no row of a table is evaluated twice."""
    import torch

    from benchmarks.read.comparison import floor_of
    from headstart import Candidates, Cube, Dataset, Mixed, suggest
    from headstart.gp.threads import single_thread
    from headstart.models.family import model_named

    instance = problem.draw([seed], steps)
    rows, space = instance.candidates, instance.space
    levels = () if space is None else space.categories
    data, values = Dataset.empty(instance.d, categories=levels), []
    free = None if rows is None else rows.real[0].clone()
    with single_thread():
        prior = model_named(model).learn([s.with_data(s.X[0], s.y[0]) for s in instance.sources])
        for n in range(steps):
            domain: Candidates | Cube | Mixed = Cube(instance.d) if space is None else Mixed(space)
            if rows is not None:
                domain = Candidates(rows.X[0][free], levels)
            x = suggest(prior.condition(data, seed=n), domain=domain, seed=1000 * seed + n)
            if rows is not None and free is not None:
                row = int((free & (rows.X[0] == x).all(-1)).nonzero()[0])
                free[row], value = False, rows.values[0, row]
            else:
                assert instance.function is not None
                value = instance.function(x.reshape(1, 1, -1))[0, 0]
            values.append(value)
            data = data.with_point(x, value + instance.noise[0, n])
    regret = (torch.stack(values).cummin(0).values - instance.minimum[0]) / instance.scale[0]
    logs = regret.clamp_min(floor_of(problem.name)).log10().tolist()
    return [logs[n - 1] for n in MARKS if n <= steps]


@dataclasses.dataclass(frozen=True)
class RunUnit:
    """A variant on some problems with one seed, in a process of its own that begins no run after ``until``."""

    variant: Variant
    path: Path  # all problems, pickled: unpickling them imports what the variant must come before
    which: Sequence[int]
    seed: int
    steps: int
    until: float

    def run(self) -> list[Record]:
        """The records of its runs: log₁₀ regrets, or what went wrong."""
        self.variant.set()
        problems, found = pickle.loads(self.path.read_bytes()), []
        for problem, model in ((problems[i], model) for i in self.which for model in MODELS[self.variant.section]):
            if time.time() >= self.until:
                break
            record: Record = {"model": model, "problem": problem.name, "seed": self.seed}
            try:
                record["log_regret"] = log_regrets(problem, model, self.seed, self.steps)
            except Exception as error:  # a value that breaks a model is a finding
                record["error"] = f"{type(error).__name__}: {error}"[:200]
            found.append(record)
        return found


def development_problems() -> list[Problem]:
    """Functions, sources that mislead, many small sources, and the development tables that are there."""
    from benchmarks.problems.shared_tables import SHARED, is_here
    from benchmarks.run.experiment import ProblemSpec

    of = [ProblemSpec(family=name) for name in ("forrester", "branin", "coupling", "roasting")]
    of += [ProblemSpec(family=name, sources=3, points=40) for name in ("hartmann3", "hartmann6")]
    of += [ProblemSpec(family="hartmann3", sources=2, spoilt=way) for way in ("negated", "noise")]
    of += [ProblemSpec(family="alpine", sources=5, points=20), ProblemSpec(table="svm", sources=10, rows=30)]
    of += [ProblemSpec(table="adaboost", sources=40, rows=12), ProblemSpec(table="random_forest", rows=30)]
    tables = ("direct_arylation", "mlp_lcbench", "deepar_forecasts", "x264_encoder", "aryl_halides", "suzuki_reizman")
    of += [ProblemSpec(table=name, sources=2) for name in tables]
    return [spec.build() for spec in of if spec.table not in SHARED or is_here(spec.table)]


def run(
    wanted: Sequence[Variant],
    problems: Sequence[Problem],
    path: Path,
    *,
    jobs: int,
    minutes: float,
    runs: int,
    steps: int,
) -> None:
    """Run what the file does not hold yet, seed by seed, for so many minutes."""
    from benchmarks.store import append_lines, commit

    until = time.time() + 60 * minutes
    for problem in problems:
        problem.draw(range(runs), steps)  # minima of functions are searched for once, and go along
    context = get_context("forkserver")  # processes begin with the libraries imported, and nothing of headstart
    context.set_forkserver_preload(_PRELOADED)
    with tempfile.TemporaryDirectory() as folder, context.Pool(jobs, maxtasksperchild=1) as pool:
        pickled = Path(folder) / "problems.pkl"
        pickled.write_bytes(pickle.dumps(list(problems)))
        for seed in range(runs):
            records = read(path)
            done = {(r["variant"], r["problem"]) for r in records if r["seed"] == seed}
            tried = [v for v in wanted if seed == 0 or any(any(map(any, pairs(records, v, m))) for m in MODELS[""])]
            units = []
            for variant in (Variant(), *tried):
                left = [i for i, problem in enumerate(problems) if (variant.key, problem.name) not in done]
                parts = (left[k::_PARTS] for k in range(_PARTS))
                units += [RunUnit(variant, pickled, part, seed, steps, until) for part in parts if part]
            for unit, found in zip(units, pool.imap(RunUnit.run, units), strict=True):
                head = {"schema": SCHEMA, "commit": commit(), "variant": unit.variant.key}
                append_lines(path, ({**head, **record} for record in found))


def read(path: Path) -> list[Record]:
    """The records of this commit."""
    from benchmarks.store import commit, read_lines

    return [record for _, record in read_lines(path, SCHEMA)[0] if record["commit"] == commit()]


def pairs(records: Sequence[Record], variant: Variant, model: str) -> list[list[float]]:
    """Differences of log₁₀ regret at the marks, variant − unchanged, of every problem and seed that both have."""
    ours, theirs = (
        {
            (r["problem"], r["seed"]): r["log_regret"]
            for r in records
            if r["variant"] == key and r["model"] == model and "log_regret" in r
        }
        for key in (variant.key, Variant().key)
    )
    return [[a - b for a, b in zip(ours[k], theirs[k], strict=True)] for k in ours if k in theirs]


def verdict(found: Sequence[Interval]) -> str:
    """What the intervals at all marks say."""
    if all(i.low == i.high == 0 for i in found):
        return "changes nothing"
    if all(i.low >= -BOUND and i.high <= BOUND for i in found):
        return "no difference"
    said = ["worse"] * any(i.low > 0 for i in found) + ["better"] * any(i.high < 0 for i in found)
    return " and ".join(said) or "unclear"


def report(wanted: Sequence[Variant], records: Sequence[Record]) -> list[str]:
    """A Markdown table with a row per variant and model, and the numbers that made no difference either way."""
    import numpy as np

    from benchmarks.read.comparison import mean_interval

    columns = ("number", "value", "tried", "model", "pairs", "changed", *(f"after {n}" for n in MARKS), "verdict")
    lines = [
        "log₁₀ regret − that with unchanged numbers: means, 95 % intervals over problems × seeds. No difference: all "
        f"intervals are within ±{BOUND:g}. By chance one interval in twenty excludes 0 where there is none.",
        "",
        f"| {' | '.join(columns)} |",
        "| --- " * len(columns) + "|",
    ]
    same = dict.fromkeys((v.number for v in wanted), True)
    for variant, model in ((v, m) for v in wanted for m in MODELS[v.section]):
        found = np.array(pairs(records, variant, model))
        means = [mean_interval(column) for column in found.T]
        errors = [r["error"] for r in records if (r["variant"], r["model"]) == (variant.key, model) and "error" in r]
        said = errors[0] if errors else verdict(means) if means else "not run"
        same[variant.number] &= said in ("no difference", "changes nothing")
        changed = int(found.any(-1).sum()) if means else 0
        shown = [f"{i.value:+.3f} ({i.low:+.3f} to {i.high:+.3f})" for i in means]
        shown += ["–"] * (len(MARKS) - len(shown))
        cells = (variant.number, variant.before, variant.value, model, len(found), changed, *shown, said)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return [*lines, "", f"No difference from half to double: {', '.join(n for n, s in same.items() if s) or 'none'}."]


def measure(
    folder: Path,
    *,
    data: str | None = None,
    jobs: int | None = None,
    minutes: float = 9.0,
    runs: int = 8,
    steps: int = max(MARKS),
    only: str = "",
) -> list[str]:
    """Run for some minutes what is not done yet; the table of all that is, which is also written beside the runs.

    ``data`` is the folder of the shared tables, where HEADSTART_DATA does not name it; ``only`` numbers whose name has
    this word.
    """
    if data:
        os.environ["HEADSTART_DATA"] = data
    wanted, path = list(variants(only)), folder / "runs.jsonl"
    if minutes > 0:
        workers = jobs or os.cpu_count() or 1
        run(wanted, development_problems(), path, jobs=workers, minutes=minutes, runs=runs, steps=steps)
    lines = report(wanted, read(path))
    (folder / "table.md").write_text("\n".join(lines) + "\n")
    return lines
