"""Training time against the number of source points, next to the complexity the paper states for it.

One training step is one evaluation of the target's log likelihood with its gradient. What depends on the sources
comes in two parts:

    set-up       once per target data set: the sources' beliefs at the target's inputs (nothing for joint models)
    evaluation   once per step of the optimiser

The paper times the two together ("one single step of gradient ascent", N_t = 100, Hartmann-6), so ``total`` is what
is drawn and fitted. Source hyperparameters are given, not fitted: they do not change the time of a step.

The models take turns and the median over the rounds is reported. A slope is that of log seconds against log N_s over
the larger half of the sizes; beside it stands the slope that the stated complexity has over the same sizes, which is
below its exponent as long as N_t counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from benchmarks.problems.problem import stream
from benchmarks.problems.synthetic import HARTMANN6
from benchmarks.read.sheet import Cellular, Sheet
from benchmarks.read.styles import style
from benchmarks.store import Run
from benchmarks.timing.measurement import Figures, Timing
from headstart.data.dataset import Dataset
from headstart.gp.evidence import Evidence, GaussianEvidence
from headstart.gp.hyperparameters import GPParams, Starts
from headstart.models.chain.beliefs import Beliefs, NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.family import BHGP, HGP, MHGP, MTGP, MTKGP, SHGP, WSGP
from headstart.models.joint.joint import Joint
from headstart.models.sequential import Sequential

N_TARGET = 100
SIZES = (30, 60, 120, 250, 500, 1000, 2000, 4000)
QUICK_SIZES = (30, 60, 120, 250)
ROUNDS = 7  # as in the paper


@dataclass(frozen=True, slots=True)
class Complexity:
    """A row of the paper's table: training of the target, in words and as a count of operations up to a factor."""

    text: str
    exponent: int
    operations: Callable[[float, float], float]


def _joint(s: float, t: float) -> float:
    return (t + s) ** 3


def _covariance(s: float, t: float) -> float:
    return t**3 + t**2 * s + t * s**2


STATED: dict[str, Complexity] = {
    "gpbo": Complexity("N_t³", 0, lambda _, t: t**3),
    "mhgp": Complexity("N_t³ + N_t N_s", 1, lambda s, t: t**3 + t * s),
    "shgp": Complexity("N_t³ + N_t² N_s + N_t N_s²", 2, _covariance),
    "bhgp": Complexity("N_t³ + N_t² N_s + N_t N_s²", 2, _covariance),
    "hgp": Complexity("(N_t + N_s)³", 3, _joint),
    "wsgp": Complexity("(N_t + N_s)³", 3, _joint),
    "mtkgp": Complexity("(N_t + N_s)³", 3, _joint),
    "mtgp": Complexity("(N_t + N_s)³", 3, _joint),
}
_SEQUENTIAL: dict[str, Sequential] = {"mhgp": MHGP, "shgp": SHGP, "bhgp": BHGP}
_JOINT: dict[str, Joint] = {"hgp": HGP, "wsgp": WSGP, "mtkgp": MTKGP, "mtgp": MTGP}


@dataclass(frozen=True, slots=True)
class StepTiming:
    """Median CPU seconds of a training step of one model at one N_s, and their quartiles."""

    model: str
    n_source: int
    setup: float
    evaluation: float
    total: float
    low: float
    high: float


def step_timings(sizes: Sequence[int], rounds: int) -> list[Timing]:
    """A timing of all models per size."""
    return [Timing(f"training step, {n}", partial(measure_steps, n, rounds)) for n in sizes]


def measure_steps(n_source: int, rounds: int) -> Figures:
    """Median CPU seconds of set-up, evaluation and both, and the quartiles of both, of every model."""
    seconds: dict[str, list[tuple[float, float]]] = {model: [] for model in STATED}
    with torch.inference_mode():
        for round_ in range(-1, rounds):  # the first one warms up
            source, target = _task(n_source, round_, "source"), _task(N_TARGET, round_, "target")
            for model, begin in {model: _steps(model, source, target) for model in STATED}.items():
                times = _timed(begin)
                if round_ >= 0:
                    seconds[model].append(times)
    found = {}
    for model, every in seconds.items():
        setup, evaluation = np.array(every).T
        low, total, high = np.quantile(setup + evaluation, (0.25, 0.5, 0.75))
        medians = {"setup": np.median(setup), "evaluation": np.median(evaluation), "total": total}
        found[model] = {name: float(value) for name, value in {**medians, "low": low, "high": high}.items()}
    return found


def timings_of(runs: Iterable[Run]) -> tuple[StepTiming, ...]:
    """What was measured, from the store."""
    return tuple(
        StepTiming(run.method, int(run.problem.partition(", ")[2]), **{k: v[0] for k, v in run.traces.items()})
        for run in sorted(runs, key=lambda run: int(run.problem.partition(", ")[2]))
    )


def _task(n: int, round_: int, name: str) -> Dataset:
    """Standardised noisy data of a random function of the Hartmann-6 family."""
    generator = stream("complexity", round_, name)
    X = torch.rand(n, HARTMANN6.d, generator=generator, dtype=torch.float64)
    y = HARTMANN6.evaluate(HARTMANN6.sample(1, generator)[0], X)
    y = y + HARTMANN6.noise_std * torch.randn(n, generator=generator, dtype=torch.float64)
    return Dataset(X, (y - y.mean()) / y.std(correction=0), name)


def _steps(model: str, source: Dataset, target: Dataset) -> Callable[[], Evidence]:
    """What is done before the first evaluation, as a function; what was done when the sources were learnt is not."""
    if model == "gpbo":
        return partial(_plain, NoBeliefs(torch.Size()), None, target)
    if model in _SEQUENTIAL:
        sequential = _SEQUENTIAL[model]
        params = GPParams.of(lengthscale=[0.7] * source.d, outputscale=1.0, noise_var=0.01)
        nothing = NoBeliefs(torch.Size())
        layer = Layer.observe(nothing, params, source, kernel=sequential.kernel, propagation=sequential.propagation)
        return partial(_plain, layer.as_beliefs(), sequential.propagation, target)
    joint = _JOINT[model].paper()
    return lambda: joint.evidence([source, target])


def _plain(below: Beliefs, propagation: Propagation | None, target: Dataset) -> GaussianEvidence:
    """What ``models.chain.fitting.fit_layer`` does before it fits."""
    at = below.at(target.X)
    C = below.cov(at, at)[None] if propagation is Propagation.EXACT else None
    r = (target.y - at.mean)[None]
    return GaussianEvidence(target.X[None], r, C, kernel=SHGP.paper().kernel, residual=False, free_offset=False)


def _timed(begin: Callable[[], Evidence]) -> tuple[float, float]:
    """CPU seconds of the set-up and of one evaluation; a clock that ticks slowly is given several."""
    evidence = begin()
    theta = evidence.layout.starts(Starts.PRIOR, 1, torch.Generator().manual_seed(0))
    items = torch.zeros(1, dtype=torch.int64)
    return _repeated(begin), _repeated(lambda: evidence.evaluate(theta, items))


def _repeated(work: Callable[[], object], at_least: float = 0.02) -> float:
    """CPU seconds of the work, which is repeated until that many were used."""
    begin = time.process_time()
    repeats = 0
    while True:
        work()
        repeats += 1
        used = time.process_time() - begin
        if used >= at_least:
            return used / repeats


def slopes(timings: Sequence[StepTiming], model: str) -> tuple[float, float]:
    """The slope of log seconds in log N_s over the larger half of the sizes, and that of the stated complexity."""
    of_model = sorted((t for t in timings if t.model == model), key=lambda t: t.n_source)
    upper = of_model[-max(2, (len(of_model) + 1) // 2) :]
    if len(upper) < 2:
        return float("nan"), float("nan")
    x = np.log([t.n_source for t in upper])
    measured = np.polyfit(x, np.log([t.total for t in upper]), 1)[0]
    operations = STATED[model].operations
    stated = np.polyfit(x, np.log([operations(t.n_source, N_TARGET) for t in upper]), 1)[0]
    return float(measured), float(stated)


def _row(timings: Sequence[StepTiming], last: StepTiming) -> tuple[Cellular, ...]:
    stated = STATED[last.model]
    measured, expected = slopes(timings, last.model)
    ours = (style(last.model).label, stated.text, stated.exponent)
    return *ours, round(expected, 2) + 0.0, round(measured, 2) + 0.0, last.total, last.evaluation


def complexity_sheets(timings: Sequence[StepTiming]) -> tuple[Sheet, Sheet]:
    """The slopes beside the paper's complexities, and the seconds they were fitted to."""
    last = max(t.n_source for t in timings)
    final = [t for t in timings if t.n_source == last]
    table = Sheet(
        name="complexity",
        title=f"Training of the target, N_t = {N_TARGET}",
        columns=("model", "stated", "exponent", "slope_stated", "slope", f"seconds_{last}", f"evaluation_{last}"),
        rows=tuple(_row(timings, timing) for timing in final),
        note="slope: of log CPU seconds against log N_s over the larger half of the sizes; slope_stated: that of the "
        f"stated operations over the same sizes. Seconds at N_s = {last}: a step with its set-up, and an evaluation "
        "alone, which is what every further step costs.",
    )
    seconds = Sheet(
        name="training-seconds",
        title="CPU seconds of a training step",
        columns=("model", "n_source", "setup", "evaluation", "total", "total_low", "total_high"),
        rows=tuple((t.model, t.n_source, t.setup, t.evaluation, t.total, t.low, t.high) for t in timings),
        note="Medians; low and high are the quartiles of the total.",
    )
    return table, seconds
