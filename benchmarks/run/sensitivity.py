"""How much each number of ``headstart.tuning`` matters: runs with it halved and doubled, paired with unchanged runs.

A variant is one number of ``AUTO_TUNING`` or ``PLAIN_TUNING``, halved or doubled. AUTO runs with all of them, GPBO with
those of ``PLAIN_TUNING``, on function families and on the development tables. The difference of log₁₀ regret to the run
of the same problem and seed with unchanged numbers is averaged over problems × seeds; below 0 the variant is better.
Runs of another commit do not count. Seeds are done one after the other for all variants, and a variant that changed no
run of the first seed is not run again.

Modules may read a number when they are imported, so a variant is set in a fresh process before anything else of
headstart is imported: this module imports nothing that reads ``headstart.tuning``, except inside functions.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from benchmarks.queue import Unit
from benchmarks.store import Run, RunKey, commit, provenance, settings_key
from headstart import tuning

if TYPE_CHECKING:
    from benchmarks.read.sheet import Cellular, Interval, Sheet

MARKS = (5, 10, 20)  # evaluations after which runs are compared
BOUND = 0.1  # differences of log₁₀ regret within ± this are none
MODELS = {"AUTO_TUNING": ("auto",), "PLAIN_TUNING": ("auto", "gpbo"), "": ("auto", "gpbo")}
_SHARES = {"share", "shares", "belief", "weight", "balance", "probability", "quantile", "level", "correlation"}
Specs = Mapping[str, Mapping[str, Any]]  # the arguments of a ``ProblemSpec`` by the name of its problem


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
    def settings(self) -> dict[str, Any]:
        """What stands in its runs: the number with its value, and the commit of the program."""
        return {"variant": f"{self.section}.{self.number}={self.value}", "commit": commit()}

    def set(self) -> None:
        """Replace the section in this process, into which nothing that reads it may have been imported."""
        read = [name for name, module in sys.modules.items() if module is not tuning and _has_read_tuning(module)]
        if read:
            raise RuntimeError(f"{read[0]} may have read headstart.tuning before it is changed.")
        if self.section:
            changed = dataclasses.replace(getattr(tuning, self.section), **{self.number: self.value})
            setattr(tuning, self.section, changed)


def _has_read_tuning(module: Any) -> bool:
    own = vars(module).values() if getattr(module, "__name__", "").startswith("headstart.") else ()
    return any(value is getattr(tuning, section) for value in own for section in ("AUTO_TUNING", "PLAIN_TUNING"))


def variants(only: str = "") -> Iterator[Variant]:
    """Every number whose name has the word, halved and doubled where that is another value."""
    for section in ("AUTO_TUNING", "PLAIN_TUNING"):
        for name, before in dataclasses.asdict(getattr(tuning, section)).items():
            for value in (scaled(before, 0.5, name), scaled(before, 2.0, name)):
                if only in name and value != before:
                    yield Variant(section, name, before, value)


def development_specs() -> Specs:
    """Functions, sources that mislead, many small sources, and the development tables that are there."""
    from benchmarks.problems.shared_tables import SHARED, is_here
    from benchmarks.run.experiment import ProblemSpec

    of: list[dict[str, Any]] = [{"family": name} for name in ("forrester", "branin", "coupling", "roasting")]
    of += [{"family": name, "sources": 3, "points": 40} for name in ("hartmann3", "hartmann6")]
    of += [{"family": "hartmann3", "sources": 2, "spoilt": way} for way in ("negated", "noise")]
    of += [{"family": "alpine", "sources": 5, "points": 20}, {"table": "svm", "sources": 10, "rows": 30}]
    of += [{"table": "adaboost", "sources": 40, "rows": 12}, {"table": "random_forest", "rows": 30}]
    tables = ("direct_arylation", "mlp_lcbench", "deepar_forecasts", "x264_encoder", "aryl_halides", "suzuki_reizman")
    of += [{"table": name, "sources": 2} for name in tables]
    there = [own for own in of if own.get("table") not in SHARED or is_here(own["table"])]
    return {ProblemSpec(**own).build().name: own for own in there}


@dataclasses.dataclass(frozen=True)
class VariantUnit(Unit):
    """A variant on some problems with one seed, in a process of its own."""

    variant: Variant
    problems: Specs
    seed: int
    steps: int

    def left(self, done: set[RunKey]) -> VariantUnit | None:
        """The problems without runs of all its models."""
        models, key = MODELS[self.variant.section], settings_key({**self.variant.settings, "steps": self.steps})
        problems = {
            name: own
            for name, own in self.problems.items()
            if any((name, model, self.seed, key) not in done for model in models)
        }
        return dataclasses.replace(self, problems=problems) if problems else None

    def run(self, device: str) -> list[Run]:
        """A run per problem and model; without regrets, and with what went wrong as its label, where one failed."""
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            return fresh.submit(_runs, self.variant, self.problems, self.seed, self.steps, device).result()

    def __str__(self) -> str:
        return f"{self.variant.number or 'unchanged'} = {self.variant.value}, seed {self.seed}"


def _runs(variant: Variant, problems: Specs, seed: int, steps: int, device: str) -> list[Run]:
    variant.set()
    from benchmarks.methods.method import Settings
    from benchmarks.run.experiment import ProblemSpec
    from benchmarks.run.runner import run_batch

    found, how = [], {**variant.settings, "steps": steps}
    own = Settings(paper=False, acquisition="log_ei")
    for (name, spec), model in ((item, model) for item in problems.items() for model in MODELS[variant.section]):
        try:
            (run,) = run_batch(ProblemSpec(**spec).build(), model, [seed], steps=steps, settings=own, device=device)
            found.append(dataclasses.replace(run, settings=how))
        except Exception as error:  # a value that breaks a model is a finding
            label = f"{type(error).__name__}: {error}"[:200]
            found.append(Run(name, model, seed, how, label, provenance=provenance(device)))
    return found


def units_of(seed: int, wanted: Sequence[Variant], problems: Specs, runs: Sequence[Run], steps: int) -> list[Unit]:
    """What is to be run with this seed: the unchanged numbers, and the variants that changed some run so far."""
    tried = [v for v in wanted if seed == 0 or any(any(map(any, pairs(runs, v, model))) for model in MODELS[""])]
    return [VariantUnit(variant, problems, seed, steps) for variant in (Variant(), *tried)]


def pairs(runs: Sequence[Run], variant: Variant, model: str) -> list[list[float]]:
    """Differences of log₁₀ regret at the marks, variant − unchanged, of every problem and seed that both have."""
    from benchmarks.read.comparison import log_regret

    ours, theirs = (
        {
            (run.problem, run.seed): log_regret(
                run.problem, [run.regret[n - 1] for n in MARKS if n <= len(run.regret)]
            ).tolist()
            for run in runs
            if own.settings.items() <= run.settings.items() and run.method == model and run.regret
        }
        for own in (variant, Variant())
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


def sensitivity_sheet(wanted: Sequence[Variant], runs: Sequence[Run]) -> Sheet:
    """A row per variant and model, and the numbers that made no difference either way."""
    import numpy as np

    from benchmarks.read.comparison import mean_interval
    from benchmarks.read.sheet import Sheet

    rows: list[tuple[Cellular, ...]] = []
    same = dict.fromkeys((v.number for v in wanted), True)
    for variant, model in ((v, m) for v in wanted for m in MODELS[v.section]):
        found = np.array(pairs(runs, variant, model))
        means = [mean_interval(column) for column in found.T]
        own = [run for run in runs if run.method == model and variant.settings.items() <= run.settings.items()]
        failed = [run.label for run in own if not run.regret]
        said = failed[0] if failed else verdict(means) if means else "not run"
        same[variant.number] &= said in ("no difference", "changes nothing")
        changed = int(found.any(-1).sum()) if means else 0
        shown = [f"{mean:+.3f}" for mean in means] + ["–"] * (len(MARKS) - len(means))
        what = (variant.number, str(variant.before), str(variant.value), model)
        rows.append((*what, len(found), changed, *shown, said))
    return Sheet(
        name="sensitivity",
        title="log₁₀ regret − that with unchanged numbers",
        columns=("number", "value", "tried", "model", "pairs", "changed", *(f"after {n}" for n in MARKS), "verdict"),
        rows=tuple(rows),
        note=f"Means, 95 % intervals over problems × seeds. No difference: all intervals are within ±{BOUND:g}. By "
        "chance one interval in twenty excludes 0 where there is none. No difference from half to double: "
        f"{', '.join(n for n, s in same.items() if s) or 'none'}.",
    )
