"""A model of the family with an acquisition function, as a method of the benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from benchmarks.methods.method import Choice, Method, Proposer, Settings
from benchmarks.methods.prediction import predicting
from benchmarks.methods.rules import Rule, ask_candidates, pick
from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.model import Prior, TransferModel
from headstart.models.posterior import TransferPosterior


@dataclass(frozen=True)
class ModelMethod(Method):
    """A model of the family with an acquisition function; ``rule`` says how AUTO's candidates are used."""

    name: str
    model: TransferModel
    rule: Rule = Rule.AVERAGED

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn the sources, all problems at once."""
        prior = settings.applied_to(self.model).learn(instance.sources, seed=0)
        return ModelProposer(prior, settings, instance, problem, seeds, rule=self.rule)


class ModelProposer(Proposer):
    """A model at work: conditioned on the results so far, and asked where its acquisition function is best."""

    def __init__(
        self,
        prior: Prior,
        settings: Settings,
        instance: Instance,
        problem: str,
        seeds: Sequence[int],
        *,
        rule: Rule = Rule.AVERAGED,
    ) -> None:
        super().__init__(instance, problem, seeds)
        self._prior, self._rule, self._settings = prior, rule, settings
        self._kind = Acquisition(settings.acquisition)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The best point of every problem, or a random first one where that is the experiment's setting."""
        if target.n == 0 and self._settings.random_first:
            return self.at_random(target, allowed)
        return self.ask(target, allowed)[1]

    def ask(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> tuple[TransferPosterior, Choice]:
        """The model given the results so far, and the point that it chooses."""
        begin = time.process_time()
        posterior = self._prior.condition(target, seed=target.n)
        fitted = time.process_time()
        if allowed is None:
            x, row = self._for_all(posterior, partial(self._point, target.n)), None
        else:
            row = self._for_all(posterior, partial(self._row, target.n, allowed))
            x = self.at_row(row).x
        seconds = (fitted - begin, time.process_time() - fitted)
        return posterior, Choice(x, row, *seconds, predicting(posterior, x, posterior.knows_nothing))

    def _for_all(self, posterior: TransferPosterior, ask: Callable[..., Tensor]) -> Tensor:
        """One answer per problem; with AUTO from a candidate that is drawn by the stream of the problem's seed."""
        if not isinstance(posterior, AutoPosterior) or self._rule is Rule.AVERAGED:
            return ask(posterior, None, None)
        n = posterior.train_inputs[0].shape[-2]
        draws = [torch.rand((), generator=stream(self.problem, seed, "candidate", n)) for seed in self.seeds]
        return ask_candidates(posterior, pick(posterior, self._rule, torch.stack(draws).double()), ask)

    def _layouts(self, n: int) -> list[torch.Generator]:
        """How the first points are laid out where nothing is known: in every problem by the stream of its seed."""
        return [stream(self.problem, seed, "design", n) for seed in self.seeds]

    def _point(self, n: int, posterior: TransferPosterior, _: int | None, __: Tensor | None) -> Tensor:
        settings = self._settings
        return suggest(
            posterior,
            domain=self.domain,
            kind=self._kind,
            seed=n,
            beta=settings.beta,
            design_seeds=self._layouts(n),
        )

    def _row(
        self,
        n: int,
        allowed: Bool[Tensor, "P M"],
        posterior: TransferPosterior,
        _: int | None,
        rows: Int[Tensor, "r"] | None,
    ) -> Int[Tensor, "r"]:
        return self.best_rows(posterior, allowed, kind=self._kind, beta=self._settings.beta, seed=n, rows=rows)
