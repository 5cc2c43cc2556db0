"""A model of the family with an acquisition function, as a method of the benchmark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from benchmarks.methods.blocked import BlockedOnGPU
from benchmarks.methods.method import Choice, Method, Proposer, Settings, predicting
from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.models.device import moved
from headstart.models.model import Prior, TransferModel
from headstart.models.posterior import TransferPosterior


@dataclass(frozen=True)
class ModelMethod(Method):
    """A model of the family with an acquisition function. It is fitted on ``device``, and asked on the CPU.

    A GPU looks for the next points of fifty problems in five seconds, a core of the processor in a quarter of one.
    """

    name: str
    model: TransferModel
    device: str = "cpu"

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn the sources, all problems at once."""
        with self.fitting():
            prior = settings.applied_to(self.model).learn(moved(instance.sources, self.device), seed=0)
        return ModelProposer(self, prior, settings, instance, problem, seeds)

    def fitting(self) -> AbstractContextManager[object]:
        """How fits are made on its device."""
        return nullcontext() if self.device == "cpu" else BlockedOnGPU()

    def conditioned(self, prior: Prior, target: Dataset) -> TransferPosterior:
        """The posterior, on the CPU."""
        if self.device == "cpu":
            return prior.condition(target, seed=target.n)
        with self.fitting():
            return moved(prior.condition(moved(target, self.device), seed=target.n), "cpu")


class ModelProposer(Proposer):
    """A model at work: conditioned on the results so far, and asked where its acquisition function is best."""

    def __init__(
        self,
        method: ModelMethod,
        prior: Prior,
        settings: Settings,
        instance: Instance,
        problem: str,
        seeds: Sequence[int],
    ) -> None:
        super().__init__(instance, problem, seeds)
        self._method = method
        self._prior, self._settings, self._kind = prior, settings, Acquisition(settings.acquisition)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The best point of every problem."""
        n, beta = target.n, self._settings.beta
        begin = time.process_time()
        posterior = self._method.conditioned(self._prior, target)
        fitted = time.process_time()
        if allowed is None:
            # where nothing is known, the first points of every problem are laid out by the stream of its seed
            layouts = [stream(self.problem, seed, "design", n) for seed in self.seeds]
            row, x = (
                None,
                suggest(posterior, domain=self.domain, kind=self._kind, seed=n, beta=beta, design_seeds=layouts),
            )
        else:
            row = self.best_rows(posterior, allowed, kind=self._kind, beta=beta, seed=n)
            x = self.at_row(row).x
        seconds = (fitted - begin, time.process_time() - fitted)
        return Choice(x, row, *seconds, predicting(posterior, x, posterior.knows_nothing))
