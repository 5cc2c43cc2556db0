"""The aim of a search over the outcomes that are measured: its incumbents, its front, and which points it excludes.

    one objective               improvement on the best result
    one objective and limits    improvement on the best result within the limits × probability that all limits hold
    several objectives          growth of the volume between the front and a reference point, × the same

The formula is that of decide.value, the numbers are in ``PLAIN_TUNING`` and ``AUTO_TUNING``. A result is a point where
every objective was measured; its value is the posterior mean. It is within the limits if what was measured there says
so, or, where a limited quantity was not measured, if its model expects so.

The *reference* of several objectives lies a tenth beyond the front of what is expected over the domain where the limits
are likely to hold, and no nearer than what nine tenths of the domain are expected to be better than. A threshold takes
its place where it is nearer: beyond it nothing is of interest. Of one objective it is the incumbent as long as no
result is better. Thresholds that nothing may reach together do not count. An objective with a target is a loss |y − t|
in the user's units, of which all of this is said.

Once a result is within the limits, a point at which they hold with less than the least probability is suggested only
if every point that is compared is such a one, and none with less than half the highest of them.

Before any result is within the limits the incumbent is what is expected where they are likely to hold: the lowest mean
before the first result, the median afterwards. The gain then counts only by its fourth root: counted in full, it leads
to where the limits hardly hold; not counted at all, to where they hold most surely, however bad the objective is there.

While results are awaited the value is averaged over draws of them. With one objective

    log E_y[ E[max(min(f*, y) − f(x), 0) | f(P) = y] ]      P the pending points, y ~ f(P)

is what x adds to the expected improvement of the whole batch, so that points chosen one after the other make up a batch
greedily. f* is no higher than what the mixture expects at P: a member that knows little would find much to improve on
in its own draws at P. A confidence bound needs one draw, the mean itself.

**Limit on the mean.** Expected improvement goes where something good cannot be excluded, and the least sure member of a
mixture often cannot exclude it where all others know it to be bad. So while results are few, and in a batch, points are
left out whose mean is further from the best than some share of the way to a typical one, the median over the points
that are compared (``_reach``). One point of a batch in four may be as far as a typical one: where the sources are
wrong, it finds out. With several objectives it is the distance from the front of what is expected that counts, in every
objective: were it enough to be good in one of them, the first points would all lie at the front's ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.outcomes import Goal
from headstart.decide.acquisition import Acquisition
from headstart.decide.front import Cells, front_of, reference_beyond
from headstart.decide.members import Members, Nearness
from headstart.decide.value import AimValue, Limits
from headstart.errors import InputError
from headstart.gp.fit import generator_from
from headstart.gp.threads import single_thread
from headstart.models.mixture import Predictor, in_batch_of_best
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

Filter: TypeAlias = Callable[[Float[Tensor, "n d"]], Bool[Tensor, "n"]]


@dataclass(frozen=True)
class Aim:
    """The objectives, the limited quantities with their upper limits, and the acquisition function, for one problem.

    ``wanted`` are the objectives' thresholds and targets. ``beta`` is that of a confidence bound, None for log expected
    improvement.
    """

    goals: tuple[TransferPosterior, ...]
    wanted: tuple[Goal, ...]
    limits: tuple[_Limited, ...] = ()
    others: tuple[TransferPosterior, ...] = ()  # limited quantities of which nothing is known
    beta: float | None = None
    least_probability: float = PLAIN_TUNING.least_probability

    @classmethod
    def of(
        cls,
        known: TransferPosterior | OutcomePosteriors,
        kind: Acquisition = Acquisition.LOG_EI,
        beta: float = 3.0,
    ) -> Aim:
        """Of what is known of one objective, or of all outcomes."""
        if not beta >= 0:
            raise InputError(f"beta is how much uncertainty attracts and must not be negative, but it is {beta}.")
        bound = beta if kind is Acquisition.LCB else None
        if isinstance(known, TransferPosterior):
            return cls((known,), (Goal("objective"),), beta=bound)
        if len(known.goals) > 1 and bound is not None:
            raise InputError(
                f"The acquisition function {kind.value!r} is one of a single objective, but there are "
                f"{len(known.goals)}: {', '.join(known.outcomes.names[: len(known.goals)])}. Use log expected "
                "improvement (Acquisition.LOG_EI, acquisition='logei'), or one objective with limits on the others."
            )
        every = [_Limited(own, limit.interval) for own, limit in zip(known.limits, known.outcomes.limits, strict=True)]
        silent = tuple(own.posterior for own in every if bool(own.posterior.knows_nothing))
        heard = tuple(own for own in every if not bool(own.posterior.knows_nothing))
        least = known.outcomes.least_probability
        least = PLAIN_TUNING.least_probability if least is None else least
        return cls(known.goals, known.outcomes.goals, heard, silent, bound, least)

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
        """The best point of every source of every objective; with a target none, for theirs are the lowest."""
        found = [goal.past_bests for goal, own in zip(self.goals, self.wanted, strict=True) if own.target is None]
        return torch.cat([self.goals[0].train_inputs[0][:0], *found], dim=-2)

    @cached_property
    def expected(self) -> tuple[Members, ...]:
        """The members of every objective's predictor."""
        return tuple(
            Members.of(_compared(goal), goal.floor)
            if own.target is None
            else Members.of(goal.predictor, near=Nearness(own.target, goal.way))
            for goal, own in zip(self.goals, self.wanted, strict=True)
        )

    def thresholds(self, X: Float[Tensor, "n d"]) -> list[Tensor | None]:
        """The losses of every objective's threshold, as its members compare them; none where they are out of reach.

        They are if no row of X and no result may keep all of them: below them all is uncertainty, and points would
        explore alone.
        """
        if all(goal.reference is None for goal in self.wanted):
            return [None] * len(self.wanted)
        found: list[Tensor | None] = []
        X = torch.cat([X, self.results], dim=-2)
        log_p = X.new_zeros(len(X))
        for goal, own, posterior in zip(self.wanted, self.expected, self.goals, strict=True):
            if goal.reference is None:
                found.append(None)
                continue
            at = posterior.train_targets.new_tensor([goal.reference])
            level = (at if own.near else posterior.way.inward(at))[0]
            found.append(level)
            log_p = log_p + own.log_below(level, X)
        likely = len(X) > 0 and float(log_p.amax()) >= math.log(PLAIN_TUNING.threshold_in_reach)
        return found if likely else [None] * len(found)

    def _means(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        return torch.stack([own.loss(own.means(X)) for own in self.expected], dim=-1)

    def losses(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        """What is expected of every objective at each row of X, as a loss."""
        means = self._means(X).unbind(-1)
        return torch.stack([own.reachable(mean) for own, mean in zip(self.expected, means, strict=True)], dim=-1)

    @property
    def outward(self) -> list[Callable[[Tensor], Tensor]]:
        """The maps of every objective's losses to the user's units."""
        every = zip(self.expected, self.goals, strict=True)
        return [posterior.way.outward if own.near is None else torch.clone for own, posterior in every]

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

    def log_within(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The logarithm of the probability that all limits hold at each row of X."""
        return torch.stack([X.new_zeros(len(X)), *(limit.log_within(X) for limit in self.limits)]).sum(0)

    def _likely(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Where the limits are likely to hold, compared with where they are most likely to: a tenth of X at least."""
        if not self.limits:
            return X.new_ones(len(X), dtype=torch.bool)
        log_p = self.log_within(X)
        return log_p >= torch.minimum(log_p.amax() + math.log(PLAIN_TUNING.likely_share), log_p.quantile(0.9))

    def rank(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The mean of the objective where the limits are likely to hold, or minus the value of several objectives.

        Near the points of lowest rank a search looks closer.
        """
        if len(self.goals) > 1:
            with single_thread():
                return -self.value(X, X[:0], generator_from(0))(X)
        (own,) = self.expected
        return own.loss(own.means(X)).masked_fill(~self._likely(X), torch.inf)

    def probability_limit(self, X: Float[Tensor, "n d"]) -> Filter | None:
        """Which points keep the limits with the least probability, or as far as any of X does; None for all."""
        if not self.limits or not len(self.within(self.results)):
            return None
        highest = float(self.log_within(X).amax())
        least = math.log(self.least_probability) if self.least_probability > 0 else -math.inf
        level = least if highest >= least else highest + math.log(PLAIN_TUNING.likely_share)
        return lambda X: self.log_within(X) >= level

    def mean_limit(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"]) -> Filter | None:
        """Which points are below the limit on the mean among the points X that are compared; None for no limit.

        There is none as long as all results are beyond the limits of outcomes.
        """
        if self.limits and len(self.results) and not len(self.within(self.results)):
            return None
        reach = [_reach(goal, len(awaited)) for goal in self.goals]
        shares = [share for share in reach if share is not None]
        if len(shares) < len(reach):
            return None
        means = self._means(torch.cat([X[self._likely(X)], awaited], dim=-2))
        front, typical = means[front_of(means)], means.quantile(0.5, dim=0)
        # all the way from the best of one objective is the median to the last bit
        limits = torch.lerp(front, typical + (front - means.amin(0)), means.new_tensor(shares))
        return lambda X: (self._means(X).unsqueeze(-2) <= limits).all(-1).any(-1)

    def value(self, X: Float[Tensor, "n d"], awaited: Float[Tensor, "p d"], generator: torch.Generator) -> AimValue:
        """The acquisition value of the next point after those awaited; X are the points that are compared."""
        goals = self.expected
        # a pending point counts as a result with the value that is expected of it
        results = self.within(torch.cat([self.results, awaited], dim=-2))
        share = 1.0 if len(results) or not self.limits else PLAIN_TUNING.gain_power_before_feasible
        given, limits, drawn, holds = self._given(goals, awaited, generator)
        if len(goals) > 1:
            expected, typical = self.losses(results), self.losses(X[self._likely(X)])
            draws = torch.stack([own.loss(y[0]) for own, y in zip(goals, drawn, strict=True)], dim=-1)
            fronts = [torch.cat([expected, y[holds[q]]]) for q, y in enumerate(draws)]
            cells = Cells.beyond(fronts, self._reference(typical, expected, self.thresholds(X)), self.outward)
            return AimValue(given, None, cells, limits, share)
        own = goals[0]
        y = own.loss(drawn[0]).masked_fill(~holds, torch.inf)
        if len(results):
            best = own.loss(own.means(results)).amin()
        else:
            means = own.loss(own.means(X[self._likely(X)]))
            best = means.quantile(0.5) if len(self.results) else means.amin()
        if (threshold := self.thresholds(X)[0]) is not None:
            best = torch.minimum(best, threshold)
        best_f = own.reachable(torch.cat([best.expand(*y.shape[:-1], 1), y], dim=-1).amin(-1))
        opening = self.goals[0].cautious and not len(self.goals[0].train_targets) and not len(awaited)
        beta = 0.0 if opening and self.beta is None else self.beta  # the lowest mean
        return AimValue(given, best_f.cpu().numpy(), None, limits, share, beta)

    def _given(
        self, goals: tuple[Members, ...], awaited: Float[Tensor, "p d"], generator: torch.Generator
    ) -> tuple[tuple[Members, ...], Limits, list[Float[Tensor, "k q p"]], Bool[Tensor, "q p"]]:
        """Goals and limits given draws of the awaited results, every goal's draws, and whether all limits hold in each.

        With several objectives all members have the draws of their mixture, and so they have of every limit.
        """
        p, several = len(awaited), len(goals) > 1
        bounds = [limit.ends for limit in self.limits]
        limits = [limit.members for limit in self.limits]
        if p == 0:
            none = [awaited.new_empty(len(own.functions), 1, 0) for own in goals]
            return goals, tuple(zip(limits, bounds, strict=True)), none, awaited.new_ones(1, 0, dtype=torch.bool)
        pairs = PLAIN_TUNING.pending_pairs_of_fronts if several else PLAIN_TUNING.pending_pairs
        pairs = 0 if self.beta is not None else pairs
        seed = int(torch.randint(2**62, (), generator=generator))

        def draws(i: int) -> Float[Tensor, "q p"]:
            """Standard normal numbers, each row with its opposite; independent of those of other outcomes."""
            half = torch.randn(pairs, p, generator=generator_from((seed + i) % 2**62), dtype=torch.float64)
            return torch.cat([half, -half]) if pairs else torch.zeros(1, p, dtype=torch.float64)

        holds = awaited.new_ones(max(2 * pairs, 1), p, dtype=torch.bool)
        for i, (low, high) in enumerate(bounds):
            limits[i], y = limits[i].given(awaited, draws(i + 1), alike=True)
            holds = holds & (low <= y[0]) & (y[0] <= high)
        first = len(limits) + 1 if several else 0
        found = [own.given(awaited, draws(first + i), alike=several) for i, own in enumerate(goals)]
        given = tuple(own for own, _ in found)
        return given, tuple(zip(limits, bounds, strict=True)), [y for _, y in found], holds

    def _reference(
        self, typical: Float[Tensor, "n m"], expected: Float[Tensor, "r m"], thresholds: list[Tensor | None]
    ) -> Float[Tensor, "m"]:
        """The reference of several objectives, as a loss, found in the user's units."""
        outward = self.outward
        looked_at, results = (
            torch.stack([out(values[:, m]) for m, out in enumerate(outward)], dim=-1) for values in (typical, expected)
        )
        found = reference_beyond(torch.cat([looked_at, results]), looked_at.std(0, correction=0))
        found = torch.maximum(found, looked_at.quantile(PLAIN_TUNING.reference_quantile, dim=0))
        inward = [
            value if own.near else posterior.way.inward(value.reshape(1))[0]
            for value, own, posterior in zip(found, self.expected, self.goals, strict=True)
        ]
        pairs = zip(inward, thresholds, strict=True)
        return torch.stack([own if least is None else torch.minimum(own, least) for own, least in pairs])


@dataclass(frozen=True)
class _Limited:
    """A quantity that must be in an interval, in the user's units behind the sign."""

    posterior: TransferPosterior
    interval: tuple[float, float]

    @cached_property
    def members(self) -> Members:
        """The members of its predictor."""
        return Members.of(self.posterior.predictor)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The interval in model units."""
        low, high = (end if math.isinf(end) else float(self.posterior.bound(end)) for end in self.interval)
        return low, high

    def holds(self, X: Float[Tensor, "n d"]) -> Bool[Tensor, "n"]:
        """Whether it holds at each row of X: as measured there, on average, or else as expected."""
        expected, (low, high), (least, most) = self.members.means(X), self.interval, self.ends
        same = (X.unsqueeze(-2) == self.posterior.train_inputs[0]).all(-1).to(X)
        measured = (same @ self.posterior.train_targets) / same.sum(-1).clamp_min(1.0)
        held = (low <= measured) & (measured <= high)
        return torch.where(same.any(-1), held, (least <= expected) & (expected <= most))

    def log_within(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The logarithm of the probability that it holds."""
        return self.members.log_between(self.ends, X, noisy=True)


def _compared(posterior: TransferPosterior) -> Predictor:
    """The predictor with the batch of its best result as the present one, where results are in batches.

    An improvement is a difference from the best result, whose level is then known: the shift of the present batch,
    which is part of both, makes neither of them uncertain.
    """
    predictor: Predictor = posterior.predictor
    return in_batch_of_best(predictor, PLAIN_TUNING.member_min_weight) if posterior.has_shifts else predictor


def _reach(posterior: TransferPosterior, n_awaited: int) -> float | None:
    """How far from the best to a typical value the next point may be, by one objective; None for any distance."""
    n, blind = posterior.train_inputs[0].shape[-2], bool(posterior.blind)
    if n_awaited:
        # results count too: points asked for one by one, always with as many awaited, would all explore, or none
        explores = (n + n_awaited + 1) % PLAIN_TUNING.batch_explores_every == 0
        return 1.0 if blind or explores else PLAIN_TUNING.batch_reach
    if blind or not posterior.cautious or n >= AUTO_TUNING.few_results:
        return None
    return AUTO_TUNING.first_points_reach if n < AUTO_TUNING.first_points else 1.0


def _is_row(X: Float[Tensor, "n d"], rows: Float[Tensor, "k d"]) -> Bool[Tensor, "n"]:
    return (X.unsqueeze(-2) == rows).all(-1).any(-1)
