"""The demonstration: a support vector machine is tuned with the head start of past tuning runs, and from scratch.

Both go through Optuna studies and ``TransferSampler``, trial by trial and run by run side by side. A run of either
differs from the next in its random numbers and in which trials of the past are known; the machine, its data and its
folds are the same in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import optuna
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.demo.svm import QUESTIONS, SPACE, SupportVectorMachine, known, past_runs
from headstart.errors import InputError
from headstart.models.family import FAMILY, model_named
from headstart.sampler.sampler import TransferSampler

if TYPE_CHECKING:
    from optuna import Study


class Start(Enum):
    """The two that are compared."""

    SCRATCH = "from scratch"
    HEAD_START = "head start"


@dataclass(frozen=True, slots=True)
class Demo:
    """Settings: ``runs`` of each kind on a data set; ``model`` learns from ``past_trials`` of each of the others."""

    data_set: str = "cancer"
    trials: int = 20
    runs: int = 5
    past_trials: int = 60
    model: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every setting, before any computation."""
        known(self.data_set)
        if not model_named(self.model).needs_sources:
            able = [name for name, model in FAMILY.items() if model.needs_sources]
            raise InputError(f"The model {self.model!r} uses no past data. The demo can use: {', '.join(able)}.")
        for name in ("trials", "runs", "past_trials"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(f"{name} must be at least 1, but it is {value}.")
        if self.seed < 0:
            raise InputError(f"seed must not be negative, but it is {self.seed}.")

    @property
    def model_name(self) -> str:
        """The model that learns from the past, in upper case."""
        return self.model.upper()

    @property
    def described(self) -> str:
        """The data set, and what is to be told from it."""
        return f"{self.data_set} ({QUESTIONS[self.data_set]})"

    @property
    def sources(self) -> tuple[str, ...]:
        """The data sets whose past tuning runs are known."""
        return tuple(name for name in QUESTIONS if name != self.data_set)

    def study(self, start: Start, run: int) -> Study:
        """A new study of a run."""
        seed = self.seed + run
        informed = start is Start.HEAD_START
        past = past_runs(self.data_set, trials=self.past_trials, seed=seed) if informed else []
        sampler = TransferSampler(past, model=self.model_name if informed else "gpbo", space=SPACE, seed=seed)
        return optuna.create_study(sampler=sampler, study_name=f"{start.value}, run {run + 1}")


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The lowest cross-validated error so far of both, run by run; ``best`` is the best configuration of all.

    An interrupted demonstration has as many trials as all runs had finished, and maybe none.
    """

    demo: Demo
    scratch: Float[Tensor, "runs trials"]
    head_start: Float[Tensor, "runs trials"]
    best: tuple[Start, dict[str, Any]] | None = None
    interrupted: bool = False

    @property
    def trials(self) -> int:
        """How many trials of every run are finished."""
        return self.scratch.shape[-1]

    @property
    def marks(self) -> tuple[int, ...]:
        """After how many trials to compare: 1, 3, 5, 10, 20 as far as they were reached, and the last."""
        return (*(mark for mark in (1, 3, 5, 10, 20) if mark < self.trials), self.trials)

    @property
    def medians(self) -> tuple[Float[Tensor, "trials"], Float[Tensor, "trials"]]:
        """The median error over runs, from scratch and with a head start."""
        return self.scratch.quantile(0.5, dim=0), self.head_start.quantile(0.5, dim=0)

    def trials_to_match(self) -> tuple[int, int | None]:
        """How many trials scratch and head start (None: never) need for the median error of scratch at the end."""
        scratch, head_start = self.medians
        there = head_start <= scratch[-1]
        matched = int(there.int().argmax()) + 1 if bool(there.any()) else None
        return int((scratch <= scratch[-1]).int().argmax()) + 1, matched

    def verdict(self) -> str:
        """What came out, in a sentence, whatever it is."""
        (scratch, head_start), goal = self.trials_to_match(), f"{self.medians[0][-1]:.2%}"
        if head_start is None:
            return (
                f"No head start this time: from scratch reached {goal} at trial {scratch}, "
                f"with the past {self.medians[1][-1]:.2%} is the best after {self.trials}."
            )
        if head_start > scratch:
            return f"No head start this time: {goal} took {scratch} trials from scratch, {head_start} with the past."
        if head_start == scratch:
            return f"No head start this time: {goal} took {scratch} trial{'s' * (scratch > 1)} in both cases."
        return f"{goal} took {scratch} trials from scratch, and {head_start} with the head start."


# Told after a trial: the kind of start, how many trials of all its runs are finished, the median of their best errors
OnTrial = Callable[[Start, int, float], None]


def run_demo(demo: Demo, on_trial: OnTrial = lambda *_: None) -> DemoResult:
    """Run it; ``on_trial`` is called after every trial. A keyboard interrupt ends it with what is there."""
    studies: dict[Start, list[Study]] = {start: [] for start in Start}
    interrupted = False
    try:
        machine = SupportVectorMachine.on(demo.data_set)
        for start in Start:
            studies[start] += (demo.study(start, run) for run in range(demo.runs))
        for trial in range(demo.trials):
            for run in range(demo.runs):
                for start in Start:
                    study = studies[start][run]
                    asked = study.ask(SPACE)
                    study.tell(asked, machine.error(**asked.params))
                    begun = studies[start][: run + 1 if trial == 0 else None]
                    best = torch.tensor([each.best_value for each in begun])
                    on_trial(start, trial * demo.runs + run + 1, best.quantile(0.5).item())
    except KeyboardInterrupt:
        interrupted = True
    scratch, head_start = (_errors(studies[start], demo.runs) for start in (Start.SCRATCH, Start.HEAD_START))
    finished = min(scratch.shape[-1], head_start.shape[-1])
    chosen = _best(studies, finished) if finished else None
    return DemoResult(demo, scratch[:, :finished], head_start[:, :finished], chosen, interrupted)


def _errors(studies: Sequence[Study], runs: int) -> Float[Tensor, "runs trials"]:
    """The best so far of every study, cut to the shortest."""
    trials = [study.get_trials(deepcopy=False) for study in studies]
    values = [[trial.value for trial in each if trial.value is not None] for each in trials]
    shortest = min(map(len, values)) if len(values) == runs else 0
    return torch.tensor([v[:shortest] for v in values], dtype=torch.float64).reshape(runs, shortest).cummin(-1).values


def _best(studies: dict[Start, list[Study]], trials: int) -> tuple[Start, dict[str, Any]]:
    """The configuration with the lowest error among the first so many trials of all runs."""
    every = [
        (trial.value, start, trial.params)
        for start, group in studies.items()
        for study in group
        for trial in study.get_trials(deepcopy=False)[:trials]
        if trial.value is not None
    ]
    _, start, params = min(every, key=lambda each: each[0])
    return start, params
