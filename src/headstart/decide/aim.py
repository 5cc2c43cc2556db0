"""The aim of a search over the outcomes that are measured, for one problem.

    one objective               improvement on the best result
    one objective and limits    improvement on the best result within the limits × probability that all limits hold
    several objectives          growth of the volume between the front and a reference point, × the same

A result is a point where every objective was measured. It is within the limits if what was measured there says so;
where a limited quantity was not measured, if its model expects so. The value of an objective is its posterior mean. The
formula is that of decide.value: a limit that can never bind changes nothing.

The *reference* of several objectives lies a tenth beyond the worst values on the front of what is expected over the
domain, results included, where the limits are likely to hold, and no nearer than what nine tenths of the domain are
expected to be better than. Before there are any results that is what the sources say, and it follows the units and the
range of every objective. By the front alone, one good result that beats all others in everything left nothing to gain
but in its neighbourhood: on the network table the volume after 20 points was .94 of the whole instead of .99, and on a
reaction and three made-up pairs as much within the error.

Before any result is within the limits there is nothing to improve on but what is expected where they are likely to
hold: the lowest mean before the first result, the median afterwards. The way to the limits comes first: the gain counts
only by its fourth root. Counted in full, it leads to where the objective is good and the limits hardly hold (on small
problems the first result within them came later by a seventh); not counted at all, to where they hold most surely,
however bad the objective is there.

While results are awaited the value is averaged over draws of them. With one objective

    log E_y[ E[max(min(f*, y) − f(x), 0) | f(P) = y] ]      P the pending points, y ~ f(P)

is what x adds to the expected improvement of the whole batch, so that points chosen one after the other make up a batch
greedily. f* is no higher than what the mixture expects at P: a member that knows little would find much to improve on
in its own draws at P, and a batch would go where no other member expects anything. A confidence bound needs one draw,
the mean itself: the mean of the draws' means is the mean as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition, log_within, require_beta
from headstart.decide.front import Cells, reference_beyond
from headstart.decide.limits import MeanLimit, mean_limit, opening
from headstart.decide.members import AwaitedResults, Members, OutcomeFunction, standard_draws
from headstart.decide.value import AimValue
from headstart.errors import InputError
from headstart.gp.fit import generator_from
from headstart.gp.threads import single_thread
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.tuning import PLAIN_TUNING


@dataclass(frozen=True)
class Aim:
    """The objectives, the limited quantities with their upper limits in the user's units, and how they are sought."""

    goals: tuple[TransferPosterior, ...]
    limits: tuple[_Limited, ...] = ()
    others: tuple[TransferPosterior, ...] = ()  # limited quantities of which nothing is known
    kind: Acquisition = Acquisition.LOG_EI
    beta: float = 3.0

    @classmethod
    def of(
        cls,
        known: TransferPosterior | OutcomePosteriors,
        kind: Acquisition = Acquisition.LOG_EI,
        beta: float = 3.0,
    ) -> Aim:
        """Of what is known of one objective, or of all outcomes."""
        require_beta(beta)
        if isinstance(known, TransferPosterior):
            return cls((known,), kind=kind, beta=beta)
        if len(known.goals) > 1 and kind is not Acquisition.LOG_EI:
            raise InputError(
                f"The acquisition function {kind.value!r} is one of a single objective, but there are "
                f"{len(known.goals)}: {', '.join(known.outcomes.names[: len(known.goals)])}. Use log expected "
                "improvement (Acquisition.LOG_EI, acquisition='logei'), or one objective with limits on the others."
            )
        every = [_Limited(own, limit.bound) for own, limit in zip(known.limits, known.outcomes.limits, strict=True)]
        heard = tuple(own for own in every if not bool(own.posterior.knows_nothing))
        silent = tuple(own.posterior for own in every if bool(own.posterior.knows_nothing))
        return cls(known.goals, heard, silent, kind, beta)

    @property
    def _posteriors(self) -> tuple[TransferPosterior, ...]:
        return (*self.goals, *(limit.posterior for limit in self.limits), *self.others)

    @cached_property
    def observed(self) -> Float[Tensor, "n d"]:
        """Where anything was measured: the experiments of the first outcome, then those that only others have."""
        found = self.goals[0].train_inputs[0]
        for posterior in self._posteriors[1:]:
            X = posterior.train_inputs[0]
            found = torch.cat([found, X[~_is_row(X, found)]])
        return found

    @property
    def blind(self) -> bool:
        """Whether no source is behind any outcome."""
        return all(bool(posterior.blind) for posterior in self._posteriors)

    @property
    def past_bests(self) -> Float[Tensor, "s d"]:
        """The best point of every source of every objective."""
        return torch.cat([goal.past_bests for goal in self.goals], dim=-2)

    @cached_property
    def expected(self) -> tuple[Members, ...]:
        """The members of every objective's predictor."""
        return tuple(Members.of(goal.predictor, goal.floor) for goal in self.goals)

    def _deciding(self, n: int) -> list[Members]:
        """The members by which point number n is chosen."""
        every = ((goal.deciding(n), own) for goal, own in zip(self.goals, self.expected, strict=True))
        return [own if predictor is own.predictor else Members.of(predictor, own.floor) for predictor, own in every]

    # ── results and limits ────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def results(self) -> Float[Tensor, "n d"]:
        """Where every objective was measured."""
        found = self.observed
        for goal in self.goals if len(self._posteriors) > 1 else ():
            found = found[_is_row(found, goal.train_inputs[0])]
        return found

    def within(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
        """Those rows of X where all limits hold."""
        for limit in self.limits:
            X = X[limit.holds(X)]
        return X

    def _likely(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "k d"]:
        """Those rows of X where the limits are likely to hold."""
        return X[self._are_likely(X)] if self.limits else X

    def _are_likely(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Where the limits are likely to hold, compared with where they are most likely to: a tenth of X at least."""
        log_p = torch.stack([limit.log_within(X) for limit in self.limits]).sum(0)
        return log_p >= torch.minimum(log_p.amax() + math.log(PLAIN_TUNING.likely_share), log_p.quantile(0.9))

    # ── what a search asks ────────────────────────────────────────────────────────────────────────────────────────

    def rank(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The mean of the objective where the limits are likely to hold, or minus the value of several objectives.

        Near the points of lowest rank a search looks closer.
        """
        if len(self.goals) > 1:
            with single_thread():
                return -self.value(X, X[:0], generator_from(0))(X)
        mean = self.expected[0].means(X)
        return mean.masked_fill(~self._are_likely(X), torch.inf) if self.limits else mean

    def mean_limit(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"]) -> MeanLimit | None:
        """The careful limit among the points X that are compared; None for none.

        As long as all results are beyond the limits there is none: the way to them comes first.
        """
        if self.limits and len(self.results) and not len(self.within(self.results)):
            return None
        return mean_limit(self.goals, self.expected, self._likely(X), awaited)

    def value(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"], generator: torch.Generator) -> AimValue:
        """The acquisition value of the next point after those awaited; X are the points that are compared."""
        deciding = self._deciding(len(self.observed) + len(awaited))
        # a pending point counts as a result with the value that is expected of it
        results = self.within(torch.cat([self.results, awaited], dim=-2))
        share = 1.0 if len(results) or not self.limits else PLAIN_TUNING.gain_power_before_feasible
        if len(self.goals) > 1:
            return self._volume(deciding, results, self._likely(X), awaited, generator, share)
        (own,) = deciding
        if len(results):
            best = own.means(results).amin()
        else:
            means = own.means(self._likely(X))
            best = means.quantile(0.5) if len(self.results) else means.amin()
        best, bounds = own.reachable(best), tuple(float(limit.bound) for limit in self.limits)
        if len(awaited) == 0:
            kind, beta = opening(self.goals[0], self.kind, self.beta)
            best_f = best.expand(len(own.members), 1).cpu().numpy()
            limits = tuple(limit.members.now() for limit in self.limits)
            return AimValue((own.now(),), best_f, None, limits, bounds, share, kind, beta)
        pairs = 0 if self.kind is Acquisition.LCB else PLAIN_TUNING.pending_pairs
        seed = int(torch.randint(2**62, (), generator=generator))
        limits, holds = self._given_limits(awaited, pairs, seed)
        e = standard_draws(pairs, len(awaited), generator_from(seed))  # the same for every member
        parts = [AwaitedResults.of(member.predictor, awaited) for member in own.members]
        y = [part.draws(e) for part in parts]
        lowest = torch.stack([draws.masked_fill(~holds, torch.inf).amin(-1) for draws in y])
        best_f = own.reachable(torch.minimum(best, lowest)).cpu().numpy()
        return AimValue((own.given(parts, y),), best_f, None, limits, bounds, share, self.kind, self.beta)

    def _given_limits(
        self, awaited: Float[Tensor, "p d"], pairs: int, seed: int
    ) -> tuple[tuple[OutcomeFunction, ...], Bool[Tensor, "q p"]]:
        """The limited outcomes given draws of the awaited results, and whether all limits hold in every draw."""
        functions, holds = [], torch.ones(max(2 * pairs, 1), len(awaited), dtype=torch.bool, device=awaited.device)
        for i, limit in enumerate(self.limits):
            function, y = _given(limit.members, awaited, standard_draws(pairs, len(awaited), _stream(seed, i + 1)))
            functions.append(function)
            holds = holds & (y <= limit.bound)
        return tuple(functions), holds

    def _volume(
        self,
        deciding: list[Members],
        results: Float[Tensor, "r d"],
        likely: Float[Tensor, "n d"],
        awaited: Float[Tensor, "p d"],
        generator: torch.Generator,
        share: float,
    ) -> AimValue:
        """The value of several objectives."""
        outward = [goal.way.outward for goal in self.goals]
        expected, typical = (
            torch.stack([own.reachable(own.means(at)) for own in deciding], dim=-1) for at in (results, likely)
        )
        reference, bounds = self._reference(typical, expected), tuple(float(limit.bound) for limit in self.limits)
        if len(awaited) == 0:
            goals, limits = ([own.now() for own in part] for part in (deciding, [own.members for own in self.limits]))
            cells = Cells.beyond([expected], reference, outward)
            return AimValue(tuple(goals), None, cells, tuple(limits), bounds, share)
        seed, n_limits = int(torch.randint(2**62, (), generator=generator)), len(self.limits)
        pairs = PLAIN_TUNING.pending_pairs_of_fronts
        limited, holds = self._given_limits(awaited, pairs, seed)
        found, drawn = [], []
        for i, own in enumerate(deciding):
            e = standard_draws(pairs, len(awaited), _stream(seed, n_limits + i + 1))
            function, y = _given(own, awaited, e)
            found.append(function)
            drawn.append(own.reachable(y))
        fronts = [torch.cat([expected, y[holds[q]]]) for q, y in enumerate(torch.stack(drawn, dim=-1))]
        return AimValue(tuple(found), None, Cells.beyond(fronts, reference, outward), limited, bounds, share)

    def _reference(self, typical: Float[Tensor, "n m"], expected: Float[Tensor, "r m"]) -> Float[Tensor, "m"]:
        """The reference of several objectives, in model units, found in the user's."""
        ways = [goal.way for goal in self.goals]
        looked_at, results = (
            torch.stack([way.outward(values[:, m]) for m, way in enumerate(ways)], dim=-1)
            for values in (typical, expected)
        )
        found = reference_beyond(torch.cat([looked_at, results]), looked_at.std(0, correction=0))
        found = torch.maximum(found, looked_at.quantile(PLAIN_TUNING.reference_quantile, dim=0))
        return torch.stack([way.inward(found[m : m + 1])[0] for m, way in enumerate(ways)])


@dataclass(frozen=True)
class _Limited:
    """A quantity that must be at most ``limit``, in the user's units behind the sign."""

    posterior: TransferPosterior
    limit: float

    @cached_property
    def members(self) -> Members:
        """The members of its predictor."""
        return Members.of(self.posterior.predictor)

    @cached_property
    def bound(self) -> Float[Tensor, ""]:
        """The limit in model units."""
        return self.posterior.bound(self.limit)

    def holds(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether it holds at each row of X: as measured there, on average, or else as expected."""
        expected = self.members.means(X)
        same = (X.unsqueeze(-2) == self.posterior.train_inputs[0]).all(-1).to(X)
        measured = (same @ self.posterior.train_targets) / same.sum(-1).clamp_min(1.0)
        return torch.where(same.any(-1), measured <= self.limit, expected <= self.bound)

    def log_within(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The logarithm of the probability that it holds."""
        function, bound = self.members.now(), float(self.bound)
        with single_thread():
            mean, var = function.predict(X.cpu().numpy())
        value, *_ = log_within(mean, var[:, None], bound=bound, noise_var=function.noise_var[:, None, None])
        every = torch.from_numpy(value[:, 0] + np.log(function.weights)[:, None])
        return torch.logsumexp(every, dim=0).to(X.device)


def _given(
    own: Members, awaited: Float[Tensor, "p d"], e: Float[Tensor, "q p"]
) -> tuple[OutcomeFunction, Float[Tensor, "q p"]]:
    """The members given the same draws of the awaited results: those of the mixture as a normal distribution."""
    y = own.reachable(AwaitedResults.of(own.predictor, awaited).draws(e))
    parts = [AwaitedResults.of(member.predictor, awaited) for member in own.members]
    return own.given(parts, [y] * len(parts)), y


def _stream(seed: int, i: int) -> torch.Generator:
    """Draws that are independent of those of other outcomes."""
    return generator_from((seed + i) % 2**62)


def _is_row(X: Float[Tensor, "n d"], rows: Float[Tensor, "k d"]) -> Bool[Tensor, "n"]:
    return (X.unsqueeze(-2) == rows).all(-1).any(-1)
