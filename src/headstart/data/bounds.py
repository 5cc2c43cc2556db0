"""``Bounds``: the values that a result can have at all, such as 0 to 100 %.

The model is fitted as if there were no bounds, and what it predicts beyond one is either at the bound or before it:

- Some result was at the bound (``Seen``), such as a yield of 0 %: a measurement is min(max(f + noise, low), high), and
  all probability beyond the bound lies at the bound itself.
- None ever was: the bound is approached (``SoftBounds``).

0 is a bound, in one way or the other, of results none of which was on its other side (``Support``).

Means, variances and draws of f are cut off at given bounds in either case: the mean is, with f = g(z), z ~ N(μ, s²) in
mapped units, a = (g⁻¹(low) − μ)/s and b = (g⁻¹(high) − μ)/s

    E = low Φ(a) + ∫ₐᵇ g(μ + s u) φ(u) du + high (1 − Φ(b))

and the variance likewise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import FEW, LARGEST
from headstart.errors import InputError

if TYPE_CHECKING:
    from headstart.data.warp import Warp

_FAR = 8.5  # standard deviations: what lies beyond is below rounding
_NODES = 48
_TINY = 1e-100
_SLACK = 1e-9  # of the bounds' size, for values that were rounded on their way


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and the highest possible value, in the user's units; infinite where there is none."""

    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, low: float | None, high: float | None, name: str) -> Bounds | None:
        """The bounds given for a result, None where there are none; an ``InputError`` where they make no sense."""
        for value in (low, high):
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            if value is not None and not number:
                raise InputError(f"A bound of {name!r} must be a number, but it is {value!r}. Leave it out for none.")
        if low is None and high is None:
            return None
        if low is not None and high is not None and low >= high:
            raise InputError(f"The bounds of {name!r} must be a lower and a higher one, but they are {low} and {high}.")
        return cls(-math.inf if low is None else float(low), math.inf if high is None else float(high))

    def signed(self, sign: int) -> Bounds:
        """The bounds of sign · y."""
        return self if sign > 0 else Bounds(-self.high, -self.low)

    def __str__(self) -> str:
        """In words: between 0 and 100."""
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return f"at least {self.low:g}" if math.isinf(self.high) else f"between {self.low:g} and {self.high:g}"

    @property
    def slack(self) -> float:
        """What a value may be off by that was rounded on its way."""
        return _SLACK * max((abs(v) for v in (self.low, self.high) if math.isfinite(v)), default=0.0)

    def clip(self, y: Tensor) -> Tensor:
        """Values beyond a bound moved to the bound."""
        return y.clamp(self.low, self.high)

    def require(self, y: Float[Tensor, "*b n"], what: str) -> None:
        """Raise an ``InputError`` that names the first row, counted from 0, whose value is out of bounds."""
        beyond = ((y - self.clip(y)).abs() > self.slack).nonzero()
        if len(beyond):
            row, value = int(beyond[0, -1]), float(y[tuple(beyond[0])])
            raise InputError(
                f"{what}, row {row} (counted from 0): the value {value:g} is outside its bounds, for it is "
                f"{self}. Correct the value, leave out the row, or widen the bounds."
            )

    def moments(
        self, mean: Float[Tensor, "*c n"], var: Float[Tensor, "*c n"], warp: Warp | None
    ) -> tuple[Float[Tensor, "*c n"], Float[Tensor, "*c n"]]:
        """Mean and variance in the user's units of what is normal in mapped units and cut off at the bounds."""
        sd = var.clamp_min(_TINY**2).sqrt()
        ends = []
        for bound in (self.low, self.high):
            at = torch.full_like(mean[..., :1], bound)
            ends.append(((at if warp is None else warp.inward(at)) - mean) / sd)
        a, b = (end.clamp(-_FAR, _FAR) for end in ends)
        nodes, weights = (torch.from_numpy(part).to(mean) for part in np.polynomial.legendre.leggauss(_NODES))
        half = 0.5 * (b - a)
        u = (0.5 * (a + b)).unsqueeze(-2) + half.unsqueeze(-2) * nodes.unsqueeze(-1)
        w = half.unsqueeze(-2) * weights.unsqueeze(-1) * (-0.5 * u.square()).exp() / math.sqrt(2 * math.pi)
        inner = (mean.unsqueeze(-2) + sd.unsqueeze(-2) * u).flatten(-2)
        values = self.clip(inner if warp is None else warp.outward(inner)).unflatten(-1, u.shape[-2:])
        below, above = torch.special.ndtr(ends[0]), torch.special.ndtr(-ends[1])
        masses = [(p, v) for p, v in ((below, self.low), (above, self.high)) if math.isfinite(v)]
        # the nodes' masses are the inside up to 1e-9: where nearly all of it is there, a large mean would show that
        inside = torch.special.ndtr(b) - torch.special.ndtr(a)
        w = w * (inside / w.sum(-2).clamp_min(_TINY)).unsqueeze(-2)
        first = (w * values).sum(-2) + sum((p * v for p, v in masses), start=torch.zeros_like(mean))
        second = (w * (values - first.unsqueeze(-2)).square()).sum(-2)
        second = second + sum((p * (v - first).square() for p, v in masses), start=torch.zeros_like(mean))
        return first, second


@dataclass(frozen=True, slots=True)
class Seen:
    """The lowest and the highest of all results so far, those of the sources included, and how many they are."""

    lowest: Float[Tensor, "*b"]
    highest: Float[Tensor, "*b"]
    n: int

    @classmethod
    def of(cls, tasks: Sequence[Dataset], before: Self | None = None) -> Self | None:
        """Of the results of these tasks and of those ``before``; None where there are none."""
        some = [task.y for task in tasks if task.n]
        if not some:
            return before
        low, high = ([y.amin(-1) for y in some], [y.amax(-1) for y in some])
        if before is not None:
            low, high = [*low, before.lowest], [*high, before.highest]
        n = sum(y.shape[-1] for y in some) + (0 if before is None else before.n)
        return cls(torch.stack(low).amin(0), torch.stack(high).amax(0), n)


@dataclass(frozen=True, slots=True)
class Support:
    """Where results can be, in the user's units: cut off at low and high, and approaching the others; else infinite.

    A bound that is given cuts off. It is approached as well while no result was at it. Results that were all positive,
    or all negative, approach 0 where no bound is given, and 0 cuts off where some were 0; unless there are few.
    """

    low: Float[Tensor, "*b"]
    high: Float[Tensor, "*b"]
    low_approached: Float[Tensor, "*b"]
    high_approached: Float[Tensor, "*b"]

    @classmethod
    def of(cls, bounds: Bounds | None, seen: Seen | None, like: Float[Tensor, "*b"]) -> Support:
        """From the bounds that are given and the results so far; ``like`` has the shape of the batch."""
        given, nowhere = Bounds() if bounds is None else bounds, torch.full_like(like, torch.inf)
        low, high = (torch.full_like(like, end) for end in (given.low, given.high))
        if seen is None:
            return cls(low, high, -nowhere, nowhere)
        # the upper side is the lower one of −1 times all
        above = _side(given, seen)
        below = _side(given.signed(-1), Seen(-seen.highest, -seen.lowest, seen.n))
        return cls(above[0], -below[0], above[1], -below[1])


def _side(given: Bounds, seen: Seen) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"]]:
    """The lower bound that cuts off, and the one that is approached."""
    nowhere = torch.full_like(seen.lowest, -torch.inf)
    if math.isfinite(given.low):
        reached = seen.lowest <= given.low + given.slack
        return torch.full_like(nowhere, given.low), torch.where(reached, nowhere, given.low)
    if seen.n < FEW:
        return nowhere, nowhere
    reached = (seen.lowest == 0) & (seen.highest > 0)
    return torch.where(reached, 0.0, nowhere), torch.where(seen.lowest > 0, 0.0, nowhere)


@dataclass(frozen=True, slots=True)
class SoftBounds:
    """A monotone map u → v of all numbers onto those between two bounds, which are approached exponentially.

        v = u                                   low + r ≤ u ≤ high − r
        v = low + r exp((u − low)/r − 1)        u < low + r, and likewise within the reach r of the upper bound

    v and its slope are continuous. Bounds that are not there are as good as infinite.
    """

    low: Float[Tensor, "*c #m"]
    high: Float[Tensor, "*c #m"]
    reach: Float[Tensor, "*c m"]

    @classmethod
    def between(
        cls, low: Float[Tensor, "*c #m"], high: Float[Tensor, "*c #m"], reach: Float[Tensor, "*c m"]
    ) -> SoftBounds:
        """Of bounds that may be infinite; each of two reaches to their middle at most."""
        low, high = low.clamp_min(-LARGEST), high.clamp_max(LARGEST)
        return cls(low, high, torch.minimum(reach, 0.5 * high - 0.5 * low))

    def outward(self, u: Float[Tensor, "*#c #m"]) -> Float[Tensor, "*c m"]:
        """v of any u."""
        above, below = (u - self.low) / self.reach, (self.high - u) / self.reach
        v = torch.where(above < 1, self.low + self.reach * (above.clamp_max(1.0) - 1).exp(), u)
        return torch.where(below < 1, self.high - self.reach * (below.clamp_max(1.0) - 1).exp(), v)

    def inward(self, v: Float[Tensor, "*#c #m"]) -> tuple[Float[Tensor, "*c m"], Float[Tensor, "*c m"]]:
        """u of v and log du/dv; at a bound and beyond it u is as good as infinite, and there is no density."""
        above, below = (v - self.low) / self.reach, (self.high - v) / self.reach
        log_above, log_below = (side.clamp(_TINY, 1.0).log() for side in (above, below))
        u = torch.where(above < 1, self.low + self.reach * (1 + log_above), v)
        u = torch.where(below < 1, self.high - self.reach * (1 + log_below), u)
        inside = (above > 0) & (below > 0)
        return u, torch.where(inside, -log_above - log_below, torch.full_like(u, -torch.inf))
