"""What a method of the benchmark is: begun once per batch of problems, then asked for one point per problem and step.

The core minimises; the acquisition function is the paper's lower confidence bound unless the settings say otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.domain import Candidates, Cube, Mixed
from headstart.decide.suggest import suggest
from headstart.models.model import TransferModel
from headstart.models.posterior import TransferPosterior

# From results y (P,), one per problem, to P(result ≤ y) and log p(y), both (P,) and in the units of y
Predicted = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True)
class Settings:
    """What all methods of an experiment share.

    ``paper`` trains as the paper did (maximum likelihood, ten softplus starts, standardised residuals); otherwise the
    models' own defaults are used. ``restarts`` and ``max_iterations`` override those of the fit.
    """

    paper: bool = True
    acquisition: str = "lcb"
    beta: float = 3.0
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

    def best_rows(
        self,
        posterior: TransferPosterior,
        allowed: Bool[Tensor, "P M"],
        *,
        kind: Acquisition,
        beta: float,
        seed: int = 0,
    ) -> Int[Tensor, "P"]:
        """The row that ``suggest`` chooses among the allowed ones, in every problem."""
        assert self.instance.candidates is not None
        found = []
        for problem in range(len(allowed)):
            left = allowed[problem].nonzero().squeeze(-1)
            X = self.instance.candidates.X[problem, left]
            shelf = Candidates(X, self.domain.categories, self.domain.described)
            design = [stream(self.problem, self.seeds[problem], "design", seed)]
            x = suggest(posterior.problem(problem), domain=shelf, kind=kind, beta=beta, seed=seed, design_seeds=design)
            found.append(left[(x == X).all(-1).nonzero()[0, 0]])
        return torch.stack(found)


class Method(ABC):
    """A named way of choosing points."""

    name: str

    @abstractmethod
    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn whatever can be learnt from the sources."""


def predicting(posterior: TransferPosterior, x: Float[Tensor, "P d"], blind: Bool[Tensor, "P"] | None) -> Predicted:
    """What the posterior says about results at x, one point per problem; nothing for problems that are ``blind``."""

    def predicted(y: Float[Tensor, "P"]) -> tuple[Float[Tensor, "P"], Float[Tensor, "P"]]:
        X, y = x.unsqueeze(-2), y.unsqueeze(-1)
        with torch.no_grad():
            pit, log_density = posterior.cdf(X, y).squeeze(-1), posterior.log_density(X, y).squeeze(-1)
        if blind is None:
            return pit, log_density
        return pit.masked_fill(blind, torch.nan), log_density.masked_fill(blind, torch.nan)

    return predicted
