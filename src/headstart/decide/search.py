"""The search for the point where the acquisition function is best, for one problem or a whole batch in lockstep.

One search in three steps; the ``Domain`` says which points there are, so that another space changes nothing here:

    look around    points all over the domain, and points near the lowest posterior means
    compare        the acquisition function at all of them
    polish         L-BFGS-B from the best ones in what is continuous, in turn with exchanges of what is not

For a single problem the search goes over surfaces (decide.fast.slopes), which are the same up to rounding. Where the
points of the domain can be listed, comparing them all is the whole search. The first points of a target of which nobody
knows anything are laid out instead (decide.design).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.decide.acquisition import AcquisitionValue
from headstart.decide.believed import UNBELIEVED
from headstart.decide.design import design_point, design_size
from headstart.decide.domain import Domain, Searchable
from headstart.decide.fast.slopes import ROWS, Slopes
from headstart.decide.polish import polish
from headstart.errors import NoPointLeftError, NumericalError
from headstart.gp.threads import single_thread

# Points near the lowest posterior means: around how many of them, and their share
_ANCHORS = 4
_NEAR_SHARE = 4  # one near point for so many points all over the domain
_ROUNDS = 4  # of polishing and exchanging; the first one nearly always settles it
_KEPT = 2  # so many points go into the later rounds
_GAIN = 1e-9  # a better value than before by no more than this is rounding
_SAME = 1e-6  # points whose coordinates all differ by less are the same
_MORE = 8  # further looks around a finite domain whose points all seem to be used up


class Allowed(Protocol):
    """Where a point may be."""

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n"]:
        """Whether it may be at each row of X."""
        ...


class Quest(Protocol):
    """What a search is after: of one outcome (decide.suggest), or of several (decide.several)."""

    @property
    def observed(self) -> Float[Tensor, "*b n d"]:
        """Where there are results."""
        ...

    @property
    def blind(self) -> Bool[Tensor, "*b"]:
        """Where nothing but the target's own results is known."""
        ...

    @property
    def past_bests(self) -> Float[Tensor, "*b s d"]:
        """The best points of the sources."""
        ...

    def rank(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """What is expected at every row of X, the lower the better: near the lowest a search looks closer."""
        ...

    def value(
        self, X: Float[Tensor, "*b n d"], awaited: Float[Tensor, "*b p d"], generator: torch.Generator
    ) -> AcquisitionValue:
        """The acquisition function; X are those that were looked at."""
        ...

    def slopes(self, value: AcquisitionValue) -> Slopes | None:
        """The same function in the form in which it is quick to climb, if it has one."""
        ...

    def allowed(self, X: Float[Tensor, "*b n d"], awaited: Float[Tensor, "*b p d"]) -> Allowed | None:
        """Where the next point may be, X being those that are compared; None if anywhere."""
        ...


@dataclass(frozen=True, slots=True)
class _Judge:
    """The acquisition function, except that a point already taken is the worst, as is one where it is not a number."""

    value: AcquisitionValue
    taken: Float[Tensor, "*b k d"]
    slopes: Slopes | None = None  # the same function, for a search
    allowed: Allowed | None = None

    def __call__(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        return self._judged(self.value, X)

    def roughly(self, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        """By the slopes where there are any: the same up to rounding, and quicker."""
        return self._judged(self.value if self.slopes is None else self.slopes, X)

    def _judged(self, value: AcquisitionValue, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
        with torch.no_grad():
            values = torch.cat([value(part) for part in X.split(ROWS, dim=-2)], dim=-1)
        if not bool(values.isfinite().any(-1).all()):
            raise NumericalError(
                "The acquisition function is finite at none of the points looked at. Look at the posterior there: its "
                "mean and variance should be finite, and its variance positive."
            )
        values = values.nan_to_num(nan=-torch.inf, neginf=-torch.inf)
        if self.allowed is not None:
            values = values - UNBELIEVED * (~self.allowed(X))
        return values.masked_fill(self._is_taken(X), -torch.inf) if self.taken.shape[-2] else values

    def _is_taken(self, X: Float[Tensor, "*b n d"]) -> Bool[Tensor, "*b n"]:
        return _are_taken(X, self.taken)


@dataclass(frozen=True, slots=True)
class Search:
    """What stays the same from one point of a batch of q to the next."""

    quest: Quest
    domain: Domain
    n_candidates: int
    n_starts: int
    generator: torch.Generator
    layouts: tuple[torch.Generator, ...] | None

    def next(self, awaited: Float[Tensor, "*b p d"], taken: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b d"]:
        """The best point that is not taken; the next of the design where nothing is known."""
        observed = self.quest.observed
        tried = torch.cat([observed, awaited], dim=-2)
        begun = observed.shape[-2] > 1 and tried.shape[-2] >= design_size(self.domain.inputs)
        blind = self.quest.blind & (not begun)
        if not bool(blind.any()):
            return self._best(awaited, taken)
        laid_out = self._laid_out(tried, taken)
        return laid_out if bool(blind.all()) else torch.where(blind.unsqueeze(-1), laid_out, self._best(awaited, taken))

    def _laid_out(self, tried: Float[Tensor, "*b n d"], taken: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b d"]:
        batch, listing = tried.shape[:-2], self.domain.listing()
        generators = self.layouts or (self.generator,)
        found = []
        parts = (tried, taken, self.quest.past_bests)
        for i, (known, used, past) in enumerate(
            zip(*(part.flatten(0, -3) if batch else [part] for part in parts), strict=True)
        ):
            free = None
            if listing is not None:
                free = ~_are_taken(listing, used.cpu())
                if not bool(free.any()):
                    raise self._nothing_left(len(listing))
            generator = generators[i % len(generators)]
            found.append(design_point(self.domain, known.cpu(), generator, free=free, past=past.cpu()))
        return torch.stack(found).to(tried.device).reshape(*batch, -1)

    def _best(self, awaited: Float[Tensor, "*b p d"], taken: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b d"]:
        listing = self.domain.listing()
        if listing is not None:
            X = listing.to(taken.device).expand(*taken.shape[:-2], *listing.shape)
            value = self.quest.value(X, awaited, self.generator)
            with single_thread():
                values = _Judge(value, taken, allowed=self.quest.allowed(X, awaited))(X)
            if bool((values.amax(-1) == -torch.inf).any()):
                raise self._nothing_left(len(listing))
            return _best(X, values)
        assert isinstance(self.domain, Searchable)
        wide, near = self._look_around(self.domain)
        X = torch.cat([wide, near], dim=-2)
        value = self.quest.value(X, awaited, self.generator)
        judge = _Judge(value, taken, self.quest.slopes(value), self.quest.allowed(X, awaited))
        with single_thread():
            values = judge.roughly(X)
            starts = _best_of_both(X, values, wide.shape[-2], self.n_starts)
            polished = _improve(judge, self.domain, starts)
            if judge.slopes is None:
                everything = torch.cat([polished, X], dim=-2)
                values = torch.cat([judge(polished), values], dim=-1)
            else:  # the best of all points looked at are among the starts
                everything = torch.cat([polished, starts], dim=-2)
                values = judge.roughly(everything)
            for _ in range(_MORE):
                if not bool((values.amax(-1) == -torch.inf).any()):
                    return _best(everything, values)
                more = self.domain.spread(ROWS, self.generator).to(X.device).expand(*X.shape[:-2], -1, -1)
                everything, values = torch.cat([everything, more], dim=-2), torch.cat([values, judge(more)], dim=-1)
        raise self._nothing_left(everything.shape[-2])

    def _look_around(self, domain: Searchable) -> tuple[Float[Tensor, "*b n d"], Float[Tensor, "*b m d"]]:
        """Points all over, and points near the most promising of those, the observed and the past bests.

        The past bests are always among them.
        """
        observed, n = self.quest.observed, self.n_candidates
        past = domain.snap(self.quest.past_bests)
        wide = domain.spread(n, self.generator).to(observed.device)
        wide = wide.expand(*observed.shape[:-2], *wide.shape)
        known = torch.cat([wide, domain.snap(observed), past], dim=-2)
        mean = self.quest.rank(known)
        anchors = _rows(known, mean.topk(min(_ANCHORS, mean.shape[-1]), largest=False).indices)
        per_anchor = max(1, n // (_NEAR_SHARE * anchors.shape[-2]))
        return wide, torch.cat([anchors, past, domain.near(anchors, per_anchor, self.generator)], dim=-2)

    def _nothing_left(self, n: int) -> NoPointLeftError:
        return NoPointLeftError(
            f"There is no point left to suggest: each of the {n} points looked at is pending or to be avoided. Wait "
            "for a result, widen the space, or allow finished points again by leaving them out of avoid."
        )


def _are_taken(X: Float[Tensor, "*b n d"], taken: Float[Tensor, "*b k d"]) -> Bool[Tensor, "*b n"]:
    if taken.shape[-2] == 0:
        return torch.zeros(X.shape[:-1], dtype=torch.bool, device=X.device)
    return torch.cdist(X, taken, p=torch.inf).amin(-1) < _SAME


def _rows(X: Float[Tensor, "*b n d"], index: Int[Tensor, "*b k"]) -> Float[Tensor, "*b k d"]:
    """The rows of X that ``index`` names, problem by problem."""
    return X.gather(-2, index.unsqueeze(-1).expand(*index.shape, X.shape[-1]))


def _best(X: Float[Tensor, "*b n d"], values: Float[Tensor, "*b n"]) -> Float[Tensor, "*b d"]:
    return _rows(X, values.argmax(-1).unsqueeze(-1)).squeeze(-2)


def _best_of_both(
    X: Float[Tensor, "*b n d"], values: Float[Tensor, "*b n"], n_wide: int, n_starts: int
) -> Float[Tensor, "*b k d"]:
    """The best ``n_starts`` points, half of them (where there are enough) from near the lowest means."""
    n_near = min(n_starts // 2, X.shape[-2] - n_wide)
    best_wide = values[..., :n_wide].topk(min(n_starts - n_near, n_wide)).indices
    best_near = n_wide + values[..., n_wide:].topk(n_near).indices
    return _rows(X, torch.cat([best_wide, best_near], dim=-1))


def _improve(judge: _Judge, domain: Searchable, starts: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b j d"]:
    """The starts polished; the best of them also with discrete values exchanged while that is any better."""
    before, points = starts, polish(judge.value, judge.slopes, domain, starts)
    for _ in range(_ROUNDS):
        moves = domain.exchanges(points)
        if moves is None:
            return points
        # a grid that was polished as if continuous may have lost by going back to its values
        pool = torch.cat([before.unsqueeze(-2), points.unsqueeze(-2), moves], dim=-2)
        values = judge.roughly(pool.flatten(-3, -2)).unflatten(-1, pool.shape[-3:-1])
        best = values.amax(-1).topk(min(_KEPT, pool.shape[-3])).indices
        improved = values.amax(-1) > values[..., :2].amax(-1) + _GAIN
        index = values.argmax(-1)[..., None, None].expand(*values.shape[:-1], 1, pool.shape[-1])
        before = _rows(pool.gather(-2, index).squeeze(-2), best)
        if not bool(improved.gather(-1, best).any()):
            return before
        points = polish(judge.value, judge.slopes, domain, before)
    return torch.cat([before, points], dim=-2)
