"""Runs of problems with several outcomes, limits or rules: the problems by name, and one run of a method."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import torch

from benchmarks.outcomes.agreed import AGREED, AgreedProblem
from benchmarks.outcomes.methods import method_compared
from benchmarks.outcomes.problems import TABLES, OutcomeProblem
from benchmarks.outcomes.ruled import RULED
from benchmarks.queue import Unit
from benchmarks.store import Run, RunKey, provenance, rounded, settings_key
from headstart.errors import InputError
from headstart.gp.threads import single_thread

OUTCOME_PROBLEMS: dict[str, OutcomeProblem] = {problem.name: problem for problem in (*TABLES, *RULED, *AGREED)}


def outcome_problem(name: str) -> OutcomeProblem:
    """The problem of that name."""
    if name in OUTCOME_PROBLEMS:
        return OUTCOME_PROBLEMS[name]
    raise InputError(f"There is no problem {name!r}. The known ones are {', '.join(OUTCOME_PROBLEMS)}.")


def fits(problem: str, method: str) -> bool:
    """Whether the method is another one there: some spoil sources, and some say thresholds in another way."""
    one = outcome_problem(problem)
    if isinstance(one, AgreedProblem):
        return not method_compared(method).spoils(one)
    return method not in ("headstart-unsaid", "headstart-limited")


@dataclass(frozen=True, slots=True)
class OutcomeUnit(Unit):
    """One run."""

    problem: str
    method: str
    seed: int
    steps: int

    def __post_init__(self) -> None:
        """Check the names before anything runs."""
        outcome_problem(self.problem)
        method_compared(self.method)

    def left(self, done: set[RunKey]) -> OutcomeUnit | None:
        """All of it, or nothing."""
        key = (self.problem, self.method, self.seed, settings_key({"steps": self.steps}))
        return None if key in done else self

    def run(self, device: str) -> list[Run]:
        """Evaluation by evaluation. Draws belong to problem and seed; spoilt sources change nothing else.

        ``traces`` are the measures after every evaluation (outcomes.measures); y is what was seen of every outcome.
        """
        with warnings.catch_warnings(), single_thread():
            warnings.simplefilter("ignore")
            return [self._run(device)]

    def _run(self, device: str) -> Run:
        problem, method = outcome_problem(self.problem), method_compared(self.method)
        instance = problem.draw(self.seed, self.steps, method.spoils(problem))
        begun = time.process_time()
        searcher = method.begin(instance, (self.problem, self.seed))
        learnt = time.process_time() - begun
        X = torch.empty(0, instance.space.d, dtype=torch.float64)
        seen = {name: torch.empty(0, dtype=torch.float64) for name in instance.outcomes.names}
        seconds = []
        for step in range(self.steps):
            begun = time.process_time()
            x = searcher.next(X, seen)
            seconds.append(time.process_time() - begun)
            X = torch.cat([X, instance.nearest(x, X).unsqueeze(0)])
            found = instance.evaluate(X[-1:])
            seen = {name: torch.cat([y, found[name] + instance.noise[name][step]]) for name, y in seen.items()}
        curves = instance.yardstick.curves(instance.inward(instance.evaluate(X)))
        data = {} if problem.fingerprint is None else {"data": problem.fingerprint}
        return Run(
            problem=self.problem,
            method=self.method,
            seed=self.seed,
            settings={"steps": self.steps},
            label=instance.label,
            x=[rounded(row) for row in X.tolist()],
            acquisition_seconds=rounded(seconds),
            learn_seconds=learnt,
            provenance={**provenance(device), **data},
            traces={
                **{name: rounded(curve) for name, curve in curves.items()},
                **{f"seen {name}": rounded(y.tolist()) for name, y in seen.items()},
            },
        )

    def __str__(self) -> str:
        return f"{self.problem}, {self.method}, seed {self.seed}"
