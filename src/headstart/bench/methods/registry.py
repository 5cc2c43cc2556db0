"""The methods that are compared. Each is one line of ``METHODS``; a new one is a ``Method`` of its own.

A method is begun once per batch of problems (all seeds of a cell) and then asked for one point per problem and step.
The core minimises; the acquisition function is the paper's lower confidence bound unless asked otherwise.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.bench.methods.copula import GC3P
from headstart.bench.methods.prediction import Predicted, predicting
from headstart.bench.methods.rules import Rule, ask_candidates, pick
from headstart.bench.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.domain import Cube, Mixed
from headstart.decide.rows import suggest_row
from headstart.decide.suggest import suggest
from headstart.errors import InputError
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.family import FAMILY
from headstart.models.mixture import take_problems
from headstart.models.model import Prior, TransferModel
from headstart.models.posterior import TransferPosterior


@dataclass(frozen=True, slots=True)
class Settings:
    """What all methods of an experiment share.

    ``paper`` trains as the paper did (maximum likelihood, ten softplus starts, standardised residuals); otherwise the
    models' own defaults are used. ``random_first`` makes the first point random for every method, as the authors' code
    does; otherwise methods that know nothing begin with a design (decide.design). ``restarts`` and ``max_iterations``
    override those of the fit.
    """

    paper: bool = True
    acquisition: str = "lcb"
    beta: float = 3.0
    random_first: bool = False
    restarts: int | None = None
    max_iterations: int | None = None

    def applied_to(self, model: TransferModel) -> TransferModel:
        """The model with these settings."""
        model = model.paper() if self.paper else model
        fit = model.fit
        if self.restarts is not None:
            fit = replace(fit, restarts=self.restarts)
        if self.max_iterations is not None:
            fit = replace(fit, max_iterations=self.max_iterations)
        return model.using(fit=fit)


@dataclass(frozen=True, slots=True)
class Choice:
    """One point per problem: its inputs, its row where candidates are given, and how long fitting and choosing took.

    ``predicted`` says what the model thought of the result y (P,) before it was there: P(result ≤ y) and log p(y), in
    the units of y, not a number for problems whose point was chosen without a model. None where none was asked.
    """

    x: Float[Tensor, "P d"]
    row: Int[Tensor, "P"] | None
    fit_seconds: float
    acquisition_seconds: float
    predicted: Predicted | None = None


class Proposer(ABC):
    """A method at work on a batch of problems."""

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int]) -> None:
        self.instance, self.problem, self.seeds = instance, problem, tuple(seeds)
        self.domain: Cube | Mixed = Cube(instance.d) if instance.space is None else Mixed(instance.space)

    @abstractmethod
    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The next point of every problem, given what was measured; ``allowed`` are the rows not yet evaluated."""

    def at_random(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """A uniform point of every problem, from the stream of its seed: the same for every method."""
        generators = [stream(self.problem, seed, "random", target.n) for seed in self.seeds]
        if allowed is None:
            x = torch.cat([self.domain.uniform(1, g) for g in generators])
            return Choice(x.to(target.X.device), None, 0.0, 0.0)
        rows = [torch.multinomial(a.double().cpu(), 1, generator=g) for a, g in zip(allowed, generators, strict=True)]
        return self.at_row(torch.cat(rows).to(target.X.device))

    def at_row(self, row: Int[Tensor, "P"], fit_seconds: float = 0.0, acquisition_seconds: float = 0.0) -> Choice:
        """The choice of one row per problem."""
        assert self.instance.candidates is not None
        x = self.instance.candidates.X[torch.arange(len(row), device=row.device), row]
        return Choice(x, row, fit_seconds, acquisition_seconds)


class Method(ABC):
    """A named way of choosing points."""

    name: str

    @abstractmethod
    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn whatever can be learnt from the sources."""


class RandomSearch(Method):
    """A uniform point every time."""

    name = "random"

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:  # noqa: ARG002
        """There is nothing to learn."""

        class Random(Proposer):
            def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
                return self.at_random(target, allowed)

        return Random(instance, problem, seeds)


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
        self._located: Tensor | BeliefsAt | None = None
        if instance.candidates is not None:
            self._located = prior.locate(instance.candidates.X)

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
        k: int | None,
        rows: Int[Tensor, "r"] | None,
    ) -> Int[Tensor, "r"]:
        located, candidates = self._located, self.instance.candidates
        assert located is not None
        assert candidates is not None
        if k is not None and isinstance(located, BeliefsAt):  # one of AUTO's candidates, for some of the problems
            located = located.parts[k]
            located = located if rows is None else take_problems(located, rows, torch.Size([len(self.seeds)]))
        X, free = (candidates.X, allowed) if rows is None else (candidates.X[rows], allowed[rows])
        return suggest_row(
            posterior,
            X,
            free,
            located=located,
            categories=self.domain.categories,
            kind=self._kind,
            beta=self._settings.beta,
            design_seeds=self._layouts(n),
        )


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
    """A method of ``bench.methods.scratch``, which is loaded when it begins."""

    name: str

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Most of them learn nothing from the sources."""
        from headstart.bench.methods.scratch import begin

        return begin(self.name, instance, problem, seeds, settings)


METHODS: dict[str, Method] = {
    **{name.lower(): ModelMethod(name.lower(), model) for name, model in FAMILY.items()},
    "auto-drawn": ModelMethod("auto-drawn", FAMILY["AUTO"], Rule.DRAWN),
    "auto-best": ModelMethod("auto-best", FAMILY["AUTO"], Rule.BEST),
    "gc3p": CopulaMethod(),
    "random": RandomSearch(),
    **{name: Rival(name) for name in ("gpbo-0.1", "optuna-gp", "optuna-tpe", "botorch", "best-past", "ax-rule")},
}


def method(name: str) -> Method:
    """The method of that name."""
    if name.lower() not in METHODS:
        raise InputError(f"There is no method {name!r}. The known ones are {', '.join(METHODS)}.")
    return METHODS[name.lower()]
