"""``Strategy``: the model, the acquisition function and what counts as used, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.decide.acquisition import Acquisition
from headstart.decide.domain import Candidates, Domain
from headstart.decide.suggest import suggest
from headstart.errors import InputError, NoPointLeftError
from headstart.gp.fit import generator_from
from headstart.models.device import CPU, ComputeDevice
from headstart.models.family import GPBO, model_named
from headstart.models.model import TransferModel
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.sampler.trials import SeenTrials

# What is known of the one outcome of a study, or of all of them
Known: TypeAlias = TransferPosterior | OutcomePosteriors

_ACQUISITIONS = {"logei": Acquisition.LOG_EI, "ucb": Acquisition.LCB}
_MAX_ASKING = 8  # so many workers that ask at the same moment are taken into account
_SAME_EXPERIMENT = 1e-3  # of the unit cube
_ELSEWHERE = 512

# Points that are polished: as many as in the benchmarks, which more would not improve
_STARTS = 4


@dataclass(frozen=True)
class Strategy:
    """How the next point is chosen; ``deterministic`` says that repeating a finished one is a waste."""

    model: TransferModel
    acquisition: Acquisition
    beta: float
    deterministic: bool
    device: ComputeDevice = CPU

    @classmethod
    def of(
        cls,
        model: str | TransferModel,
        acquisition: str | Acquisition,
        *,
        beta: float,
        deterministic: bool,
        device: ComputeDevice = CPU,
    ) -> Strategy:
        """By names, or by the objects themselves."""
        return cls(_model(model).anywhere(), _acquisition(acquisition), float(beta), deterministic, device)

    def model_for(self, sources: Sequence[Dataset]) -> TransferModel:
        """The model, or one that starts from scratch if it needs sources and none is left."""
        return self.model if sources or not self.model.needs_sources else GPBO.anywhere()

    def tries_once(self, domain: Domain) -> bool:
        """Whether what was tried is not to be tried again as long as there is anything else."""
        return self.deterministic or isinstance(domain, Candidates)

    def choose(self, known: Known, domain: Domain, seen: SeenTrials, *, seed: int) -> Float[Tensor, "d"]:
        """The best point that is neither awaited nor (without noise) known; if all points are, the best of them.

        Trials that ask at this moment are assumed to take the best points, and this one the next best. Where all that
        is left to gain lies next to a point that is awaited, the most promising one elsewhere is taken. Of a list, what
        was tried is not tried again as long as there are others.
        """
        x = self._best(known, domain, seen, seed)
        if how_often(x.unsqueeze(0), seen.pending).item() == 0:
            return x
        X = domain.X if isinstance(domain, Candidates) else domain.spread(_ELSEWHERE, generator_from(seed))
        free = how_often(X, seen.pending) == 0
        if not bool(free.any()):
            return x
        first = known.posteriors[0] if isinstance(known, OutcomePosteriors) else known
        mean, var = first.predict(X[free])
        return X[free][(mean - self.beta * var.sqrt()).argmin()]

    def ask(
        self,
        known: Known,
        domain: Domain,
        *,
        seed: int,
        q: int = 1,
        pending: Float[Tensor, "p d"] | None = None,
        avoid: Float[Tensor, "k d"] | None = None,
    ) -> Float[Tensor, "*out d"]:
        """The next points by what is known of the one outcome, or of all of them."""

        def search(on: Known, device: str) -> Float[Tensor, "*out d"]:
            return suggest(
                on,
                domain=domain,
                kind=self.acquisition,
                q=q,
                pending=None if pending is None else pending.to(device),
                avoid=None if avoid is None else avoid.to(device),
                seed=seed,
                n_starts=_STARTS,
                beta=self.beta,
            ).cpu()

        return self.device.searching(known, search)

    def _best(self, known: Known, domain: Domain, seen: SeenTrials, seed: int) -> Float[Tensor, "d"]:
        q = 1 + min(seen.asking, _MAX_ASKING)
        pending, finished = seen.pending, seen.target.X if self.tries_once(domain) else seen.target.X[:0]
        attempts = [(q, pending, finished), (1, pending, finished), (1, pending, finished[:0]), (1, pending[:0], None)]
        for count, awaited, avoid in attempts:
            try:
                found = self.ask(known, domain, q=count, pending=awaited, avoid=avoid, seed=seed)
            except NoPointLeftError:  # every point of a finite space is used up: repeat one
                if avoid is None:
                    raise
            else:
                return found.reshape(-1, domain.d)[-1]
        raise AssertionError("the last attempt either returns or raises")


def how_often(X: Float[Tensor, "n d"], points: Float[Tensor, "p d"]) -> Int[Tensor, "n"]:
    """How many of the points are the same experiment as a row of X for all practical purposes."""
    return (torch.cdist(X, points, p=torch.inf) < _SAME_EXPERIMENT).sum(-1)


def _model(model: str | TransferModel) -> TransferModel:
    if isinstance(model, str):
        return model_named(model)
    if not isinstance(model, TransferModel):
        raise InputError(f"model must be a name or a headstart model such as SHGP, but it is {model!r}.")
    return model


def _acquisition(kind: str | Acquisition) -> Acquisition:
    if isinstance(kind, Acquisition):
        return kind
    if kind not in _ACQUISITIONS:
        raise InputError(f"acquisition must be one of {', '.join(_ACQUISITIONS)}, but it is {kind!r}.")
    return _ACQUISITIONS[kind]
