"""What a search is after where several things are measured.

    one objective and limits    improvement on the best result within the limits × probability that all limits hold
    several objectives          what a point adds to the volume between the front and a reference point, × the same

What counts as a result is a point where every objective was measured. It is within the limits if what was measured
there says so; where a limited quantity was not measured, if its model expects so. The value of an objective is its
posterior mean, as for one outcome.

The *reference* is a point that nobody wants to be worse than. It lies a tenth beyond the worst values on the front of
what is expected over the domain, results included, where the limits are likely to hold, and no nearer than what nine
tenths of the domain are expected to be better than. Before there are any results that is what the sources say, and it
stays in step with the units and the range of every objective. By the front alone, one good result that beats all
others in everything left nothing worth having but its neighbourhood: on the network table the volume after 20 points
was .94 of the whole instead of .99, and on a reaction and three made-up pairs as much within the error.

Before any result is within the limits there is nothing to improve on but what is typical of the domain where they are
likely to hold, and the way there comes first: the gain counts only by its fourth root. Counted in full, it leads to
where the objective is good and the limits hardly hold (on small problems the first result within them came later by a
seventh); not counted at all, to where they hold most surely, however bad the objective is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.acquisition import AcquisitionValue
from headstart.decide.believed import is_careful
from headstart.decide.fast.slopes import ROWS, Slopes
from headstart.decide.front import Cells, reference_beyond
from headstart.decide.several.gain import log_within
from headstart.decide.several.members import Heard, Panel, draws_at
from headstart.decide.several.value import SeveralValue
from headstart.gp.fit import generator_from
from headstart.gp.threads import single_thread
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior

# How much the improvement counts, as a power, before any result is within the limits
_SHARE = 0.25
# Points are likely to be within the limits if that is at least so probable, compared with the most probable of all
_LIKELY = 0.5
# The reference is no better than this quantile of what is expected over the domain
_WORSE = 0.9
# As for one outcome (decide.believed): how far from the best to a typical value a point of a batch may be
_GOOD, _FURTHER = 0.2, 4


@dataclass(frozen=True, slots=True)
class Promising:
    """Which points are expected to be good enough in at least one objective."""

    heard: tuple[Heard, ...]
    limits: tuple[Float[Tensor, ""], ...]

    def __call__(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether a point may be at each row of X."""
        found = torch.zeros(X.shape[:-1], dtype=torch.bool)
        for own, limit in zip(self.heard, self.limits, strict=True):
            found = found | (own.means(X) <= limit)
        return found


@dataclass(frozen=True)
class SeveralOutcomes:
    """The quest over several outcomes, for one problem."""

    known: OutcomePosteriors

    @cached_property
    def observed(self) -> Float[Tensor, "n d"]:
        """Where anything was measured: the experiments of the first outcome, then those that only others have."""
        found: list[Tensor] = []
        for posterior in self.known.posteriors:
            found += [x for x in posterior.train_inputs[0] if not any(torch.equal(x, other) for other in found)]
        return torch.stack(found) if found else self.known.posteriors[0].train_inputs[0][:0]

    @property
    def blind(self) -> Bool[Tensor, ""]:
        """Whether no source is behind any outcome."""
        return torch.stack([posterior.blind for posterior in self.known.posteriors]).all()

    @property
    def past_bests(self) -> Float[Tensor, "s d"]:
        """The best points of every objective's sources, then those of the limits'."""
        return torch.cat([posterior.past_bests for posterior in self.known.posteriors], dim=-2)

    # ── results ───────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def results(self) -> Float[Tensor, "n d"]:
        """Where every objective was measured."""
        measured = [_is_row(self.observed, posterior.train_inputs[0]) for posterior in self.known.goals]
        return self.observed[torch.stack(measured).all(0)]

    @cached_property
    def limited(self) -> tuple[_Limited, ...]:
        """The limits of which anything is known: one that was never measured has nothing to say."""
        every = zip(self.known.limits, self.known.outcomes.limits, strict=True)
        return tuple(
            _Limited(own, limit.bound, Heard.of(own.predictor)) for own, limit in every if not bool(own.knows_nothing)
        )

    @cached_property
    def expecting(self) -> tuple[Heard, ...]:
        """All members of every objective."""
        return tuple(Heard.of(goal.predictor, goal.floor) for goal in self.known.goals)

    def _deciding(self, n: int) -> list[Heard]:
        """Those by whom point number n is chosen."""
        every = ((goal.deciding(n), own) for goal, own in zip(self.known.goals, self.expecting, strict=True))
        return [own if predictor is own.predictor else Heard.of(predictor, own.floor) for predictor, own in every]

    def holds(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether all limits hold at each row of X."""
        found = torch.ones(len(X), dtype=torch.bool)
        for limited in self.limited:
            found = found & limited.holds(X)
        return found

    def _likely(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Where the limits are likely to hold, compared with where they are most likely to: a tenth of X at least."""
        log_p = torch.zeros(len(X), dtype=torch.float64)
        for limited in self.limited:
            log_p = log_p + limited.log_within(X)
        return log_p >= torch.minimum(log_p.amax() + math.log(_LIKELY), log_p.quantile(0.9))

    # ── what a search asks ────────────────────────────────────────────────────────────────────────────────────────

    def rank(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value turned round, nothing being awaited."""
        value = self.value(X, X[:0], generator_from(0))
        slopes = value.slopes()
        with torch.no_grad(), single_thread():
            return -(value if slopes is None else slopes)(X)

    def slopes(self, value: AcquisitionValue) -> Slopes | None:
        """By surfaces, where all members have one."""
        return value.slopes() if isinstance(value, SeveralValue) else None

    def value(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"], generator: torch.Generator) -> SeveralValue:
        """The acquisition function; X are those that were looked at."""
        n = self.observed.shape[-2] + awaited.shape[-2]
        deciding = self._deciding(n)
        # what is awaited counts as what is expected of it
        results = torch.cat([self.results, awaited], dim=-2)
        results = results[self.holds(results)]
        looked_at = X[self._likely(X)]
        expected, typical = (
            torch.stack([own.reachable(own.means(at)) for own in deciding], dim=-1) for at in (results, looked_at)
        )
        outward = None
        if len(deciding) > 1:
            outward = [goal.way.outward for goal in self.known.goals]
            reference = self._reference(typical, expected)
        else:
            reference = expected.amin(0) if len(expected) else typical.quantile(0.5, dim=0)
        share = 1.0 if len(expected) else _SHARE
        bounds = tuple(limited.bound for limited in self.limited)
        limiting = [limited.heard for limited in self.limited]
        if len(awaited) == 0:
            cells = Cells.beyond([expected], reference, outward)
            goals, limits = ([Panel.of(own) for own in part] for part in (deciding, limiting))
            return SeveralValue(tuple(goals), cells, tuple(limits), bounds, share)
        drawn, within = ([draws_at(own.predictor, awaited, generator) for own in part] for part in (deciding, limiting))
        drawn = [own.reachable(y) for own, y in zip(deciding, drawn, strict=True)]
        holds = torch.ones_like(drawn[0], dtype=torch.bool)
        for y, bound in zip(within, bounds, strict=True):
            holds = holds & (y <= bound)
        fronts = [
            torch.cat([expected, torch.stack([y[q] for y in drawn], dim=-1)[holds[q]]]) for q in range(len(holds))
        ]
        goals, limits = (
            [Panel.of(own, awaited, y) for own, y in zip(part, draws, strict=True)]
            for part, draws in ((deciding, drawn), (limiting, within))
        )
        return SeveralValue(tuple(goals), Cells.beyond(fronts, reference, outward), tuple(limits), bounds, share)

    def _reference(self, typical: Float[Tensor, "n m"], expected: Float[Tensor, "r m"]) -> Float[Tensor, "m"]:
        """The reference of several objectives, in model units, found in the user's."""
        ways = [goal.way for goal in self.known.goals]
        looked_at, results = (
            torch.stack([way.outward(values[:, m]) for m, way in enumerate(ways)], dim=-1)
            for values in (typical, expected)
        )
        found = reference_beyond(torch.cat([looked_at, results]), looked_at.std(0, correction=0))
        found = torch.maximum(found, looked_at.quantile(_WORSE, dim=0))
        return torch.stack([way.inward(found[m : m + 1])[0] for m, way in enumerate(ways)])

    def allowed(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"]) -> Promising | None:
        """Where a point is expected to be good enough in at least one objective, among those where limits may hold.

        As for one outcome (decide.believed), and only once a result is within the limits.
        """
        goals, alone = self.known.goals, awaited.shape[-2] == 0
        if bool(torch.stack([goal.blind for goal in goals]).any()):
            return None
        if alone and not all(is_careful(goal) for goal in goals):
            return None
        if self.limited and not bool(self.holds(self.results).any()):
            return None
        further = (awaited.shape[-2] + 1) % _FURTHER == 0
        share = 1.0 if alone or further else _GOOD
        compared = X[self._likely(X)]
        limits = []
        for own in self.expecting:
            mean = own.means(compared)
            limits.append(mean.amin() + share * (mean.quantile(0.5) - mean.amin()))
        return Promising(self.expecting, tuple(limits))


@dataclass(frozen=True, slots=True)
class _Limited:
    """A quantity that must be at most ``limit``, in the user's units behind the sign."""

    posterior: TransferPosterior
    limit: float
    heard: Heard

    @property
    def bound(self) -> Float[Tensor, ""]:
        """The limit in model units."""
        return self.posterior.bound(self.limit)

    def holds(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether it holds at each row of X: as measured there, on average, or else as expected."""
        expected = self.heard.means(X)
        same = (X.unsqueeze(-2) == self.posterior.train_inputs[0]).all(-1).to(X)
        measured = (same @ self.posterior.train_targets) / same.sum(-1).clamp_min(1.0)
        return torch.where(same.any(-1), measured <= self.limit, expected <= self.bound)

    def log_within(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """How probable it is that it holds."""
        panel = Panel.of(self.heard)
        with torch.no_grad(), single_thread():
            parts = X.split(ROWS, dim=-2)
            seen = [panel.ask(part) if panel.surfaces is None else panel.look(part.numpy()) for part in parts]
            return torch.cat([log_within(own, self.bound)[0] for own in seen], dim=-1)


def _is_row(X: Float[Tensor, "n d"], rows: Float[Tensor, "k d"]) -> Bool[Tensor, "n"]:
    return (X.unsqueeze(-2) == rows).all(-1).any(-1)
