"""A run: AUTO chooses 20 points with such a past, and says of every source what it is after 5, 10 and 20 of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmarks.methods.scratch import quietly
from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.shared_tables import SHARED, is_here
from benchmarks.problems.synthetic import FAMILIES
from benchmarks.queue import Unit
from benchmarks.store import Run, RunKey, provenance, settings_key
from benchmarks.verdicts.pasts import Past, Truth, family_past, table_past
from headstart.data.dataset import Dataset
from headstart.decide.domain import Candidates
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.auto.explanation import Explanation, explain
from headstart.models.family import AUTO
from headstart.models.model import Prior

STEPS = 20
MARKS = (5, 10, 20)
# The numbers behind the verdicts were chosen on the former; tables whose tasks have rows in common, and all functions
CHOOSING = (
    *("forrester", "branin", "hartmann6", "coupling"),
    *("mlp_hpobench", "aryl_halides", "text_classifiers", "gpu_dedispersion"),
    *("svm", "forest", "logistic", "elastic-net", "gaussian-process", "diverging-sgd", "classifier-choice"),
)
CHECKING = (
    *("alpine", "alpine_c", "hartmann3", "turning", "roasting"),
    *("direct_arylation", "oer_catalysts", "laser_graphene", "x264_encoder", "mlp_lcbench"),
    *("neighbours", "boosted-trees", "pipeline", "kernel-ridge", "boosted-regression", "svm-kernels"),
)
_SETTINGS: dict[str, Any] = {"steps": STEPS}


@dataclass(frozen=True, slots=True)
class VerdictUnit(Unit):
    """The 20 points that AUTO chooses for the target of a past, and its verdicts on the sources after some of them.

    The traces are "truth", what the sources are, and "after 5", "after 10" and "after 20", what was said of them.
    """

    problem: str
    seed: int

    def left(self, done: set[RunKey]) -> VerdictUnit | None:
        """All of it, or nothing."""
        return None if (self.problem, "auto", self.seed, settings_key(_SETTINGS)) in done else self

    def run(self, device: str) -> list[Run]:
        """A run of the sampler with its default settings, or of the steps that it consists of."""
        with single_thread(), quietly():
            truths, explained = (_tuned if self.problem in tuning_names() else _chosen)(self.problem, self.seed)
        traces: dict[str, list[Any]] = {"truth": [str(truth) for truth in truths]}
        traces |= {f"after {n}": [str(s.verdict) for s in explained[n].sources] for n in MARKS}
        found = Run(problem=self.problem, method="auto", seed=self.seed, settings=_SETTINGS, traces=traces)
        return [replace(found, provenance=provenance(device))]

    def __str__(self) -> str:
        return f"{self.problem}, seed {self.seed}"


def _tuned(problem: str, seed: int) -> tuple[tuple[Truth, ...], dict[int, Explanation]]:
    from benchmarks.verdicts.tuned import tuned_past

    past = tuned_past(problem, seed)
    study = past.study()
    study.optimize(past.objective, n_trials=STEPS)
    return past.truths, {n: past.sampler().explain(past.study(study.trials[:n])) for n in MARKS}


def _chosen(problem: str, seed: int) -> tuple[tuple[Truth, ...], dict[int, Explanation]]:
    past = (family_past if problem in {**FAMILIES, **LABORATORY} else table_past)(problem, seed)
    prior = AUTO.anywhere().learn(past.sources, seed=0)
    target = points_of(past, prior)
    return past.truths, {n: explain(prior, target.head(n)) for n in MARKS}


def tuning_names() -> tuple[str, ...]:
    """The tuning problems, where Optuna and scikit-learn are there."""
    try:
        from benchmarks.tuning.problems import PROBLEMS
    except ImportError:
        return ()
    return tuple(PROBLEMS)


def points_of(past: Past, prior: Prior) -> Dataset:
    """Points chosen one after the other, none of a table twice."""
    target, domain = Dataset.empty(past.sources[0].d), past.domain
    for step in range(STEPS):
        x = suggest(prior.condition(target, seed=step), domain=domain, seed=step).unsqueeze(0)
        target = Dataset(torch.cat([target.X, x]), torch.cat([target.y, past.evaluate(x)]))
        if isinstance(domain, Candidates):
            domain = Candidates(domain.X[(x != domain.X).any(-1)], domain.categories)
    return target


def verdict_units(problems: Sequence[str], seeds: int) -> Iterator[VerdictUnit]:
    """Seed by seed, all problems: whoever stops early has equally many runs of each."""
    for seed in range(seeds):
        for name in problems:
            if name in (*FAMILIES, *LABORATORY, *tuning_names()) or (name in SHARED and is_here(name)):
                yield VerdictUnit(name, seed)
