"""The search for the point of a domain where an aim's acquisition value is highest, for one problem.

One search in three steps; the ``Domain`` says which points there are, so that another space changes nothing here:

    look around    points all over the domain, and points near those of the lowest rank (the posterior mean)
    compare        the acquisition value at all of them
    polish         L-BFGS-B from the best ones in the continuous columns, in turn with exchanges of discrete values

Where the points of the domain can be listed, comparing them all is the whole search. The first points of a target
without sources are laid out instead (decide.design).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.aim import Aim, Filter
from headstart.decide.design import are_among, design_point, design_size
from headstart.decide.domain import Domain
from headstart.decide.members import ROWS
from headstart.decide.value import AimValue
from headstart.errors import NoPointLeftError, NumericalError
from headstart.gp.lbfgs import Minimization
from headstart.gp.threads import single_thread
from headstart.tuning import PLAIN_TUNING

Array = NDArray[np.float64]
Which = NDArray[np.intp]

_GAIN = 1e-9  # a better value than before by no more than this is rounding
_WORST = 1e10  # the loss where the acquisition value is not a number
_PENALTY = 1e6  # subtracted from the value, a logarithm, of a point that fails a filter


@dataclass(frozen=True, slots=True)
class Search:
    """The settings that stay the same from one point of a batch to the next."""

    aim: Aim
    domain: Domain
    n_candidates: int
    n_starts: int
    generator: torch.Generator
    design_generator: torch.Generator

    def next_point(self, awaited: Float[Tensor, "p d"], taken: Float[Tensor, "k d"]) -> Float[Tensor, "d"]:
        """The best point that is not taken; the next of the design where nothing is known."""
        observed = self.aim.observed
        tried = torch.cat([observed, awaited], dim=-2)
        begun = len(observed) > 1 and len(tried) >= design_size(self.domain.inputs)
        return self._best(awaited, taken) if begun or not self.aim.blind else self._laid_out(tried, taken)

    def _laid_out(self, tried: Float[Tensor, "n d"], taken: Float[Tensor, "k d"]) -> Float[Tensor, "d"]:
        listing = self.domain.listing
        free = None if listing is None else listing[~are_among(listing, taken.cpu())]
        if listing is not None and free is not None and not len(free):
            raise _nothing_left(len(listing))
        past = self.aim.past_bests.cpu()
        return design_point(self.domain, tried.cpu(), self.design_generator, free=free, past=past).to(tried.device)

    def _best(self, awaited: Float[Tensor, "p d"], taken: Float[Tensor, "k d"]) -> Float[Tensor, "d"]:
        listing = self.domain.listing
        parts = self._look_around() if listing is None else (listing.to(taken.device),)
        found = torch.cat(parts)
        value = self.aim.value(found, awaited, self.generator)
        filters = (self.aim.mean_limit(found, awaited), self.aim.probability_limit(found))
        scored = _ScoredPoints(value, taken, tuple(own for own in filters if own is not None))
        with single_thread():
            values = scored(found)
            if listing is None:
                starts = _best_of_both(found, values, len(parts[0]), self.n_starts)
                found = torch.cat([_improve(scored, self.domain, starts), starts])
                values = scored(found)
            for _ in range(PLAIN_TUNING.search_rounds if listing is None else 0):
                if not bool(values.amax() == -torch.inf):
                    break
                more = self.domain.spread(ROWS, self.generator).to(found.device)
                found, values = torch.cat([found, more]), torch.cat([values, scored(more)])
        if bool(values.amax() == -torch.inf):
            raise _nothing_left(len(found))
        return found[values.argmax()]

    def _look_around(self) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"]]:
        """Points all over; the past bests, and points near the most promising of all of these and of the observed."""
        observed, domain, n = self.aim.observed, self.domain, self.n_candidates
        past = domain.snap(self.aim.past_bests)
        wide = domain.spread(n, self.generator).to(observed.device)
        known = torch.cat([wide, domain.snap(observed), past])
        rank = self.aim.rank(known)
        anchors = known[rank.topk(min(PLAIN_TUNING.search_anchors, len(rank)), largest=False).indices]
        per_anchor = max(1, int(PLAIN_TUNING.search_near_share * n / len(anchors)))
        return wide, torch.cat([anchors, past, domain.near(anchors, per_anchor, self.generator)])


@dataclass(frozen=True, slots=True)
class _ScoredPoints:
    """The acquisition value, lower by a penalty for every filter that a point fails, and −∞ where one is taken.

    Where no point passes all filters, the last one counts most.
    """

    value: AimValue
    taken: Float[Tensor, "k d"]
    filters: tuple[Filter, ...]

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        values = self.value(X)
        if not bool(values.isfinite().any()):
            raise NumericalError(
                "The acquisition function is finite at none of the points looked at. Look at the posterior there: its "
                "mean and variance should be finite, and its variance positive."
            )
        values = values.nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        for rank, passes in enumerate(self.filters, start=1):
            values = values - rank * _PENALTY * (~passes(X))
        return values.masked_fill(are_among(X, self.taken), -torch.inf)


def _nothing_left(n: int) -> NoPointLeftError:
    return NoPointLeftError(
        f"There is no point left to suggest: each of the {n} points looked at is pending or to be avoided. Wait for a "
        "result, widen the space, or allow finished points again by leaving them out of avoid."
    )


def _best_of_both(
    X: Float[Tensor, "n d"], values: Float[Tensor, "n"], n_wide: int, n_starts: int
) -> Float[Tensor, "k d"]:
    """The best ``n_starts`` points, half of them (where there are enough) from near the lowest means."""
    n_near = min(n_starts // 2, len(X) - n_wide)
    if n_near == 0:
        return X[values.topk(min(n_starts, len(X))).indices]
    best_wide = values[:n_wide].topk(min(n_starts - n_near, n_wide)).indices
    best_near = n_wide + values[n_wide:].topk(n_near).indices
    return X[torch.cat([best_wide, best_near])]


def _improve(scored: _ScoredPoints, domain: Domain, starts: Float[Tensor, "k d"]) -> Float[Tensor, "j d"]:
    """The starts polished; the best of them also with discrete values exchanged while that is any better."""
    before, points = starts, polish(scored.value, domain, starts)
    for _ in range(PLAIN_TUNING.search_rounds):
        moves = domain.exchanges(points)
        if moves is None:
            return points
        # a grid that was polished as if continuous may have lost by going back to its values
        pool = torch.cat([before.unsqueeze(-2), points.unsqueeze(-2), moves], dim=-2)
        values = scored(pool.flatten(0, 1)).unflatten(0, pool.shape[:2])
        best = values.amax(-1).topk(min(PLAIN_TUNING.search_kept, len(pool))).indices
        improved = values.amax(-1) > values[:, :2].amax(-1) + _GAIN
        before = pool[torch.arange(len(pool), device=pool.device), values.argmax(-1)][best]
        if not bool(improved[best].any()):
            return before
        points = polish(scored.value, domain, before)
    return torch.cat([before, points])


def polish(value: AimValue, domain: Domain, starts: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
    """The starts after L-BFGS-B in the domain's free columns, many runs in lockstep; inside rules, by their regions."""
    if len(domain.free) == 0:
        return starts
    now, columns = starts.cpu().numpy().copy(), domain.free.numpy()
    resting = domain.resting(starts)
    still = None if resting is None else resting.cpu().numpy()[:, columns]

    def objective(points: Array, which: Which) -> tuple[Array, Array]:
        X = now[which]
        X[:, columns] = points
        values, gradient = value.with_gradient(X)
        loss, slope = -values, -gradient[:, columns]
        if still is not None:  # a parameter that is not there changes nothing
            slope = np.where(still[which], 0.0, slope)
        bad = ~(np.isfinite(loss) & np.isfinite(slope).all(-1))
        return np.where(bad, _WORST, loss), np.where(bad[:, None], 0.0, slope)

    region, n = domain.region(starts), PLAIN_TUNING.search_iterations
    if region is not None:
        now[:, columns] = region.descend(objective, now[:, columns], max_iterations=n)
    else:
        box = np.zeros(len(columns)), np.ones(len(columns))
        run = Minimization(objective, now[:, columns], *box, max_iterations=n, ftol=1e-9, gtol=1e-6)
        now[:, columns] = run.run().x
    return domain.snap(torch.from_numpy(now).to(starts.device))
