"""The methods that are compared. Each is one line of ``METHODS``; a new one is a ``Method`` of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from benchmarks.methods.copula import GC3P
from benchmarks.methods.method import Choice, Method, Proposer, Settings
from benchmarks.methods.model_method import ModelMethod
from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.models.family import FAMILY


class RandomSearch(Method):
    """A uniform point every time."""

    name = "random"

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:  # noqa: ARG002
        """There is nothing to learn."""

        class Random(Proposer):
            def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
                return self.at_random(target, allowed)

        return Random(instance, problem, seeds)


class CopulaMethod(Method):
    """GC3P: Gaussian copula regression with a parametric prior (Salinas et al. 2020), with its own acquisition rule."""

    name = "gc3p"
    n_candidates = 10_000

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:  # noqa: ARG002
        """Train the network on the sources."""
        prior = GC3P().learn(instance.sources, seed=tuple(seeds))
        n_candidates = self.n_candidates

        class Copula(Proposer):
            def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
                begin = time.process_time()
                if allowed is None:
                    generators = [stream(problem, seed, "candidates", target.n) for seed in self.seeds]
                    draws = [self.domain.uniform(n_candidates, g) for g in generators]
                    X = torch.stack(draws).to(target.X.device)
                    free = torch.ones(X.shape[:2], dtype=torch.bool, device=X.device)
                    row = prior.suggest(target, X, free, seed=self.seeds)
                    x = X[torch.arange(len(row), device=row.device), row]
                    return Choice(x, None, time.process_time() - begin, 0.0)
                assert self.instance.candidates is not None
                row = prior.suggest(target, self.instance.candidates.X, allowed, seed=self.seeds)
                return self.at_row(row, time.process_time() - begin)

        return Copula(instance, problem, seeds)


@dataclass(frozen=True)
class Rival(Method):
    """A method of ``methods.scratch`` or ``methods.transfer_rivals``, which is loaded when it begins."""

    name: str

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Most of them learn nothing from the sources."""
        from benchmarks.methods import scratch, transfer_rivals

        if self.name in TRANSFER_RIVALS:
            return transfer_rivals.begin(self.name, instance, problem, seeds)
        return scratch.begin(self.name, instance, problem, seeds, settings)


@dataclass(frozen=True)
class Again(ModelMethod):
    """The same model on the same tasks with other random numbers: a negative control, whose difference must be 0."""

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn the sources; points are drawn from streams of its own."""
        return super().begin(instance, f"{problem}, again", seeds, settings)


TRANSFER_RIVALS = ("botorch-mtgp", "ax", "baybe")


METHODS: dict[str, Method] = {
    **{name.lower(): ModelMethod(name.lower(), model) for name, model in FAMILY.items()},
    "gc3p": CopulaMethod(),
    "random": RandomSearch(),
    "gpbo-again": Again("gpbo-again", FAMILY["GPBO"]),
    **{name: Rival(name) for name in ("optuna-gp", "optuna-tpe", "botorch", "best-past", *TRANSFER_RIVALS)},
}


def method(name: str) -> Method:
    """The method of that name."""
    if name.lower() not in METHODS:
        raise InputError(f"There is no method {name!r}. The known ones are {', '.join(METHODS)}.")
    return METHODS[name.lower()]
