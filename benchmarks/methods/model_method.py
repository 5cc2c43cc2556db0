"""A model of the family with an acquisition function, as a method of the benchmark."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Bool
from torch import Tensor

from benchmarks.methods.method import Choice, Method, Proposer, Settings, predicting
from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.models.model import Prior, TransferModel


@dataclass(frozen=True)
class ModelMethod(Method):
    """A model of the family with an acquisition function."""

    name: str
    model: TransferModel

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn the sources, all problems at once."""
        prior = settings.applied_to(self.model).learn(instance.sources, seed=0)
        return ModelProposer(prior, settings, instance, problem, seeds)


class ModelProposer(Proposer):
    """A model at work: conditioned on the results so far, and asked where its acquisition function is best."""

    def __init__(
        self, prior: Prior, settings: Settings, instance: Instance, problem: str, seeds: Sequence[int]
    ) -> None:
        super().__init__(instance, problem, seeds)
        self._prior, self._settings, self._kind = prior, settings, Acquisition(settings.acquisition)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The best point of every problem."""
        n, beta = target.n, self._settings.beta
        begin = time.process_time()
        posterior = self._prior.condition(target, seed=n)
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
