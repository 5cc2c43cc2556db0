"""The next points to evaluate: where the acquisition function is best, for one problem or a whole batch in lockstep.

``suggest`` checks what it is given and chooses one point after the other; how a point is found is in ``decide.search``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition, AcquisitionValue
from headstart.decide.average import AveragedAcquisition, PlainAcquisition, Voice, voices
from headstart.decide.believed import Believed, opening
from headstart.decide.domain import Cube, Domain
from headstart.decide.fast.slopes import ROWS, AverageSlopes, means_at
from headstart.decide.pending import PendingAcquisition
from headstart.decide.search import Search
from headstart.errors import InputError
from headstart.gp.fit import Seed, generator_from
from headstart.models.posterior import TransferPosterior


@dataclass(frozen=True, slots=True)
class OneOutcome:
    """The quest for the minimum of one outcome: expected improvement, or a confidence bound."""

    posterior: TransferPosterior
    voices: tuple[Voice, ...]
    weights: Float[Tensor, "*b k"]
    kind: Acquisition
    beta: float

    @classmethod
    def of(cls, posterior: TransferPosterior, kind: Acquisition, beta: float) -> Self:
        """Of what a posterior predicts."""
        return cls(posterior, *voices(posterior.predictor), kind, beta)

    @property
    def observed(self) -> Float[Tensor, "*b n d"]:
        """The target's own inputs."""
        return self.posterior.train_inputs[0]

    @property
    def blind(self) -> Bool[Tensor, "*b"]:
        """Where no source is behind the posterior."""
        return self.posterior.blind

    @property
    def past_bests(self) -> Float[Tensor, "*b s d"]:
        """The best point of every source."""
        return self.posterior.past_bests

    def rank(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """The posterior mean."""
        return means_at(self.voices, self.weights, X)

    def allowed(self, X: Float[Tensor, "*b n d"], awaited: Float[Tensor, "*b p d"]) -> Believed | None:
        """Where the mixture expects something good enough (decide.believed)."""
        return Believed.among(self.posterior, self.voices, self.weights, X, awaited)

    def slopes(self, value: AcquisitionValue) -> AverageSlopes | None:
        """In closed form, for a single problem."""
        return AverageSlopes.of(value)

    def value(
        self, X: Float[Tensor, "*b n d"], awaited: Float[Tensor, "*b p d"], generator: torch.Generator
    ) -> AcquisitionValue:
        """The acquisition function; X are those that were looked at, where nothing is observed or awaited yet."""
        known = torch.cat([self.observed, awaited], dim=-2)
        every, weights = voices(self.posterior.deciding(known.shape[-2]))
        known = known if known.shape[-2] else X
        best_f = torch.stack([means_at(every, weights, part).amin(-1) for part in known.split(ROWS, dim=-2)]).amin(0)
        floor = self.posterior.floor
        best_f = best_f if floor is None else torch.maximum(best_f, floor)
        if awaited.shape[-2] == 0:
            kind, beta = opening(self.posterior, self.kind, self.beta)
            parts: tuple[AcquisitionValue, ...] = tuple(
                PlainAcquisition(voice, kind, best_f, beta, floor) for voice in every
            )
        else:
            kind = self.kind
            seed = int(torch.randint(2**62, (), generator=generator))  # the same draws whoever else counts
            parts = tuple(
                PendingAcquisition.of(
                    voice.predictor,
                    kind,
                    pending=awaited,
                    best_f=best_f,
                    beta=self.beta,
                    generator=generator_from(seed),
                    floor=floor,
                )
                for voice in every
            )
        return parts[0] if len(parts) == 1 else AveragedAcquisition(kind, parts, weights)


def suggest(
    posterior: TransferPosterior,
    *,
    domain: Domain | None = None,
    kind: Acquisition = Acquisition.LOG_EI,
    q: int = 1,
    pending: Float[Tensor, "*#b p d"] | None = None,
    avoid: Float[Tensor, "*#b k d"] | None = None,
    seed: Seed = 0,
    design_seeds: Sequence[Seed] | None = None,
    n_candidates: int = 512,
    n_starts: int = 4,
    beta: float = 3.0,
) -> Float[Tensor, "*out d"]:
    """The point of the domain where the acquisition function is highest, so the next one to evaluate: (*b, d).

    ``domain`` is the unit cube by default. ``n_candidates`` points are compared and the best ``n_starts`` polished;
    the result is never worse than any point looked at. Without a target observation (zero-shot) the value to improve
    on is the lowest posterior mean over those points. Equal seeds give equal points, and the units of the objective
    do not matter. A batch of problems gives one point each, up to rounding the one it gives alone.

    ``pending`` are points whose result is awaited: what they will probably teach is taken into account
    (``decide.pending``), and none of them is suggested again. ``q`` > 1 gives (*b, q, d), chosen one after the other,
    each of them pending for the next. A point of ``avoid`` is never returned either: without noise, give the finished
    ones. Fails when no other point is left. ``design_seeds``, one for each problem of a batch, lay out the first
    points of each in its own way; by default all are laid out alike.
    """
    quest = OneOutcome.of(posterior, kind, beta)
    observed = quest.observed
    domain = Cube(observed.shape[-1]) if domain is None else domain
    layouts = None if design_seeds is None else tuple(generator_from(own) for own in design_seeds)
    search = Search(quest, domain, n_candidates, n_starts, generator_from(seed), layouts)
    return next_points(search, q, pending, avoid)


def next_points(
    search: Search, q: int, pending: Float[Tensor, "*#b p d"] | None, avoid: Float[Tensor, "*#b k d"] | None
) -> Float[Tensor, "*out d"]:
    """The points of a search, chosen one after the other: (*b, d), or (*b, q, d) for q > 1."""
    if search.n_candidates < 1 or search.n_starts < 1 or q < 1:
        raise InputError(
            f"n_candidates, n_starts and q must be at least 1, but are {search.n_candidates}, {search.n_starts} and "
            f"{q}."
        )
    observed = search.quest.observed
    if search.domain.d != observed.shape[-1]:
        raise InputError(f"The domain has {search.domain.d} columns, but the model was fitted to {observed.shape[-1]}.")
    awaited = given_points(pending, "pending", observed)
    others = given_points(avoid, "avoid", observed)
    chosen: list[Tensor] = []
    for _ in range(q):
        chosen.append(search.next(awaited, torch.cat([awaited, others], dim=-2)))
        awaited = torch.cat([awaited, chosen[-1].unsqueeze(-2)], dim=-2)
    return chosen[0] if q == 1 else torch.stack(chosen, dim=-2)


def given_points(X: Tensor | None, name: str, observed: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b k d"]:
    """The points, for every problem of the batch; none is no rows."""
    if X is None:
        return observed[..., :0, :]
    batch, d = observed.shape[:-2], observed.shape[-1]
    if X.dim() < 2 or X.shape[-1] != d or X.shape[:-2] not in (torch.Size(), batch) or X.dtype != torch.float64:
        raise InputError(
            f"{name} must be float64 of shape (points, {d}), but it is {X.dtype} of shape {tuple(X.shape)}."
        )
    if not bool(X.isfinite().all()):
        raise InputError(f"{name} must be finite, but some entries are NaN or infinite.")
    return X.to(observed.device).expand(*batch, *X.shape[-2:])
