"""A run: a model chooses 15 points of a campaign with shifts, and is told of its batches or not.

    method      model   the batches of the results are
    *-named     AUTO    given to the model, which fits the size of their shifts
    *-ignored   GPBO    not given
    *-centred   …       not given, but from every result the mean of its batch is taken, and that of all put back

Shifts that are known can be taken away, and then batches do not matter: what could be gained at most is what
``ignored`` does with shifts of size 0, in every way. GPBO does not see the past, so for it only the target drifts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmarks.batches.problems import FUNCTIONS, STEPS, TABLES, Campaign, Drift, campaign, centred, source_data
from benchmarks.problems.shared_tables import SHARED, is_here
from benchmarks.queue import Unit
from benchmarks.store import Run, RunKey, provenance, rounded, settings_key
from headstart.data.dataset import Dataset
from headstart.decide.domain import Candidates
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.models.auto.auto import AutoPrior
from headstart.models.batch_shifts import Shifts, shifts_of_posterior, shifts_of_source
from headstart.models.family import AUTO, GPBO, RGPE
from headstart.models.model import TransferModel

MODELS: dict[str, TransferModel] = {"auto": AUTO, "gpbo": GPBO, "rgpe": RGPE}
TREATMENTS = ("named", "ignored", "centred")
METHODS = ("auto-named", "auto-ignored", "auto-centred", "gpbo-named", "gpbo-ignored", "gpbo-centred")
_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class BatchUnit(Unit):
    """One run. ``drift`` is empty without shifts and batches, where every way is the same.

    ``regret`` is that of the best point so far and ``traces`` have, after every result,

        recommended   the regret of the point with the lowest posterior mean among those that were measured
        held          whether the 95 % range that was stated of this result before it came held it; None where none was
        width         that of the range, in standard deviations of the noise
        first         whether it was the first one of a new batch
        control       whether its point had a result of an earlier batch
        tau           the size of shifts in the same unit, and the ends of its 95 % range, as told by ``explain``

    and ``sources`` is that of every source.
    """

    problem: str
    method: str
    drift: str
    size: float
    seed: int
    steps: int = STEPS

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the run that will come of it."""
        return {"drift": self.drift, "size": self.size, "steps": self.steps}

    def left(self, done: set[RunKey]) -> BatchUnit | None:
        """All of it, or nothing."""
        return None if (self.problem, self.method, self.seed, settings_key(self.settings)) in done else self

    def run(self, device: str) -> list[Run]:
        """All results of the campaign, one after the other."""
        with single_thread():
            found = _run(self, campaign(self.problem, self.seed, self.steps))
        return [replace(found, provenance=provenance(device))]

    def __str__(self) -> str:
        drift = f"{self.drift} drifts by {self.size:g}" if self.drift else "no shifts"
        return f"{self.problem}, {self.method}, {drift}, seed {self.seed}"


def _run(unit: BatchUnit, of: Campaign) -> Run:
    name, _, treatment = unit.method.partition("-")
    in_past = unit.drift in (Drift.PAST, Drift.BOTH)
    in_target = unit.drift in (Drift.TARGET, Drift.BOTH)
    levels = of.domain.categories
    sources = [source_data(s, unit.size * in_past, levels, treatment if in_past else "ignored") for s in of.sources]
    begin = time.process_time()
    prior = MODELS[name].anywhere().learn([] if name == "gpbo" else sources, seed=0)
    learn_seconds = time.process_time() - begin
    domain, d = of.domain, of.domain.d
    X, y = torch.empty(0, d, dtype=torch.float64), torch.empty(0, dtype=torch.float64)
    batch = of.batch if in_target else torch.zeros_like(of.batch)
    values: list[float] = []
    traces: dict[str, list[Any]] = {name: [] for name in ("recommended", "held", "width", "first", "control", "tau")}
    seconds: list[tuple[float, float]] = []
    for step in range(unit.steps + 1):
        n = step if step < unit.steps else step - 1  # the batch that is predicted, in the end the last one
        given, level = y, 0.0
        if treatment == "centred" and in_target and step:
            given = centred(y, batch[:step])
            mine = batch[:step] == batch[n]
            level = float(y[mine].mean() - y.mean()) if bool(mine.any()) else 0.0
        target = Dataset(X, given, categories=levels)
        if treatment == "named" and in_target:
            target = replace(target, batch=batch[:step], present=batch[n])
        begin = time.process_time()
        posterior = prior.condition(target, seed=step)
        fitted = time.process_time()
        if step:
            best = int(posterior.predict(X)[0].argmin())
            traces["recommended"].append((values[best] - of.minimum) / of.scale)
            traces["tau"].append(shift_size(shifts_of_posterior(posterior), of.noise_std))
        if step == unit.steps:
            break
        looked_at = time.process_time()
        x = suggest(posterior, domain=domain, avoid=X if isinstance(domain, Candidates) else None, seed=step)
        seconds.append((fitted - begin, time.process_time() - looked_at))
        result = of.measured(x, step, unit.size * in_target)
        held, width = None, None
        if not bool(posterior.knows_nothing):
            low, high = (float(end) + level for end in posterior.interval(x.unsqueeze(0), _LEVEL))
            held, width = low <= result <= high, (high - low) / of.noise_std
        traces["held"].append(held)
        traces["width"].append(width if width is None else rounded([width])[0])
        traces["first"].append(of.changes(step))
        traces["control"].append(bool((x == X).all(-1).any()))
        values.append(float(of.f(x.unsqueeze(0))[0]))
        X, y = torch.cat([X, x.unsqueeze(0)]), torch.cat([y, torch.tensor([result], dtype=torch.float64)])
    lowest = torch.tensor(values, dtype=torch.float64).cummin(0).values
    traces["recommended"] = rounded(traces["recommended"])
    traces["sources"] = source_shift_sizes(prior, [s.noise_std for s in of.sources])
    return Run(
        problem=unit.problem,
        method=unit.method,
        seed=unit.seed,
        settings=unit.settings,
        y=rounded(y.tolist()),
        value=rounded(values),
        regret=rounded(((lowest - of.minimum) / of.scale).tolist()),
        fit_seconds=rounded(a for a, _ in seconds),
        acquisition_seconds=rounded(b for _, b in seconds),
        learn_seconds=learn_seconds,
        traces=traces,
    )


def shift_size(found: Shifts | None, noise_std: float) -> list[float] | None:
    """τ in standard deviations of the noise, and the ends of its 95 % range, as they are told; None without batches."""
    return None if found is None else rounded(value / noise_std for value in (found.size, found.low, found.high))


def source_shift_sizes(prior: Any, noise_stds: Sequence[float]) -> list[list[float] | None]:
    """The same of every source that AUTO learnt on its own."""
    if not isinstance(prior, AutoPrior):
        return []
    alone, each = prior.alone, zip(prior.alone.layers, prior.sources, noise_stds, strict=True)
    return [
        shift_size(shifts_of_source(layer, source, alone.known, prior.warp, source.name), noise_std)
        for layer, source, noise_std in each
    ]


def batch_problems() -> tuple[str, ...]:
    """The functions, and the tables that are there."""
    return (*FUNCTIONS, *(name for name in TABLES if is_here(name)))


def batch_units(
    problems: Sequence[str],
    methods: Sequence[str],
    drifts: Sequence[str],
    sizes: Sequence[float],
    seeds: int,
    steps: int = STEPS,
) -> Iterator[BatchUnit]:
    """Seed by seed, all cells: whoever stops early has equally many runs of each."""
    for name in problems:
        if name not in FUNCTIONS and name not in SHARED:
            raise InputError(f"There is no problem {name!r}. The known ones are {', '.join((*FUNCTIONS, *SHARED))}.")
    for method in methods:
        model, _, treatment = method.partition("-")
        if model not in MODELS or treatment not in TREATMENTS:
            raise InputError(f"There is no method {method!r}. The known ones are {', '.join(METHODS)}.")
    for drift in drifts:
        if drift not in set(Drift):
            raise InputError(f"There is no drift {drift!r}. The known ones are {', '.join(Drift)}.")
    if wrong := [size for size in sizes if not 0 <= size < float("inf")]:
        raise InputError(f"A size of shifts is a number of noise levels from 0 on, but it is {wrong[0]:g}.")
    for seed in range(seeds):
        for problem in problems:
            for method in methods:
                for drift, size in _cells(method, drifts, sizes):
                    yield BatchUnit(problem, method, drift, float(size), seed, steps)


def _cells(method: str, drifts: Sequence[str], sizes: Sequence[float]) -> Iterator[tuple[str, float]]:
    model, _, treatment = method.partition("-")
    if treatment == "ignored":
        yield "", 0.0  # without shifts all ways are one, and the one in which shifts are known
    for drift in drifts if model != "gpbo" else (Drift.TARGET.value,):
        yield from ((drift, size) for size in sizes if size or treatment != "ignored")
