"""``Warp``: a monotone map of outputs, learnt from the data, behind which they are more like normal ones.

Losses, times, and yields near 100 % have a long tail on one side, which a Gaussian process takes for the shape of the
function. So outputs enter a model through

    z = (y − centre) / spread        every task around its own median, in units of its own spread (by quartiles)
    w = ((1 + z)^λ − 1)/λ            z ≥ 0      (Yeo and Johnson 2000; log(1 + z) for λ = 0)
    w = −((1 − z)^(2−λ) − 1)/(2 − λ) z < 0

with one λ in [0, 1] for all tasks of a problem, the most probable one given that every task's w are normal with a mean
and a variance of its own and that λ ~ N(1, ½²); λ = 1 changes nothing. So a tail of bad (high) values is shortened.

Values far from the median, m spreads away, are moved closer, in the order they were in and without a jump:

    bad     m > F = ``outlier_fence``    to F + log(1 + log(1 + m − F))    an outlier, such as a penalty
    good    m > G = ``good_fence``       to G + log(1 + m − G)

The differences of good values are what the search is for: where results are alike nearly everywhere, as a score that is
mostly 0, the successes lie many spreads away, and twice as far is still better by log 2. Taken as they are they would
be all that a model sees. Only a single good value is an outlier as a bad one is, one beyond F *reaches*: the reach is
the distance from the median to the second best value, or the spread if that is larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from numpy.polynomial.hermite_e import hermegauss
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import FEW, LARGEST, ROUNDING, robust_spread, weighted_quantile
from headstart.tuning import PLAIN_TUNING

_POWERS = 41  # values of λ that are compared
_TINY = 1e-9  # λ below this is 0
_NODES = 20  # of the quadrature of means and variances
_SQUARABLE = 1e140


@dataclass(frozen=True, slots=True)
class Warp:
    """The map of one task, or of that of each problem of a batch.

    ``known_spread`` is the spread of a typical source in mapped units, 0 where there is none, and ``known_reach`` the
    longest reach of a source; outliers are told by these or by the task's own, whichever are larger. ``level_var`` is
    the variance of the tasks' levels, in spreads².
    """

    centre: Float[Tensor, "*b"]
    spread: Float[Tensor, "*b"]
    power: Float[Tensor, "*b"]
    known_spread: Float[Tensor, "*b"]
    known_reach: Float[Tensor, "*b"]
    level_var: Float[Tensor, "*b"]

    @classmethod
    def of_sources(cls, sources: Sequence[Dataset]) -> tuple[tuple[Warp, ...], Warp]:
        """The maps of the sources, and that of a target without results: the median of the sources'."""
        centres = torch.stack([source.y.quantile(0.5, dim=-1) for source in sources])
        spreads = torch.stack([robust_spread(source.y) for source in sources])
        typical = spreads.masked_fill(spreads <= 0, torch.nan).nanmedian(0).values
        typical = torch.where(typical > 0, typical, torch.ones_like(typical))
        few = torch.tensor([source.n < FEW for source in sources], device=typical.device)
        few = few.reshape(-1, *([1] * typical.dim()))
        spreads = torch.where((spreads > 0) & ~few, spreads, typical)
        power = _most_probable([_standard(s.y, c, r) for s, c, r in zip(sources, centres, spreads, strict=True)])
        nothing = torch.zeros_like(typical)
        maps = [cls(c, r, power, nothing, nothing, nothing) for c, r in zip(centres, spreads, strict=True)]
        mapped = [m.inward(s.y) for m, s in zip(maps, sources, strict=True)]
        spread_inside = [robust_spread(w, rounding=m._rounding) for m, w in zip(maps, mapped, strict=True)]
        known, reach = torch.stack(spread_inside).quantile(0.5, dim=0), torch.stack(list(map(_reach, mapped))).amax(0)
        centre = centres.quantile(0.5, dim=0)
        apart = ((centres - centre) / typical).square().sum(0)
        level_var = (apart + PLAIN_TUNING.level_var) / len(sources)
        target = cls(centre, typical, power, known, reach, level_var)
        return tuple(replace(m, known_spread=known, known_reach=reach) for m in maps), target

    @classmethod
    def of_target(cls, target: Dataset) -> Warp:
        """The map of a target without sources, from its own values; the identity while there are few.

        Points that lie together count as one: a map made for the values of the place where a search spends most of its
        points would blow up their noise.
        """
        nothing = target.y.new_zeros(target.batch_shape)
        if target.n < FEW:
            return cls(nothing, nothing + 1, nothing + 1, nothing, nothing, nothing)
        counts = 1 / (torch.cdist(target.X, target.X, p=torch.inf) < PLAIN_TUNING.together_within).to(target.y).sum(-1)
        centre, spread = weighted_quantile(target.y, counts, 0.5), robust_spread(target.y, counts=counts)
        spread = torch.where(spread > 0, spread, torch.ones_like(spread))
        z, inside = _standard(target.y, centre, spread)
        warp = cls(centre, spread, _most_probable([(z, counts * inside)]), nothing, nothing, nothing)
        w = warp.inward(target.y)
        known = robust_spread(w, rounding=warp._rounding, counts=counts)
        return replace(warp, known_spread=known, known_reach=_reach(w))

    def moved_to(self, target: Dataset) -> Warp:
        """Centred at the target's level where its first value, which alone decides, is far from the sources' median."""
        if target.n == 0:
            return self
        first = target.y[..., 0]
        far = (first - self.centre).abs() > PLAIN_TUNING.moved_from_spreads * self.spread
        middle = first + PLAIN_TUNING.first_value_below_median * self.spread
        return replace(self, centre=torch.where(far, middle, self.centre))

    def _powers(self, negative: Bool[Tensor, "*c"]) -> Float[Tensor, "*c"]:
        λ = self.power.unsqueeze(-1)
        return torch.where(negative, 2 - λ, λ)

    @property
    def _rounding(self) -> Float[Tensor, "*b"]:
        """Rounding of mapped values: near the centre the slope of the map is 1/spread."""
        return ROUNDING * self.centre.abs() / self.spread

    def inward(self, y: Float[Tensor, "*c n"]) -> Float[Tensor, "*c n"]:
        """Values in mapped units."""
        z = (y - self.centre.unsqueeze(-1)) / self.spread.unsqueeze(-1)
        return (z.sign() * _stretched(z.abs(), self._powers(z < 0))).clamp(-LARGEST, LARGEST)

    def outward(self, w: Float[Tensor, "*c n"]) -> Float[Tensor, "*c n"]:
        """Mapped values in the user's units."""
        return (self.centre.unsqueeze(-1) + self.spread.unsqueeze(-1) * self._back(w)).clamp(-LARGEST, LARGEST)

    def _back(self, w: Float[Tensor, "*c n"]) -> Float[Tensor, "*c n"]:
        """z of mapped values, by the inverse (1 + p w)^(1/p) − 1."""
        a, p = w.abs(), self._powers(w < 0)
        safe = p.clamp_min(_TINY)
        return w.sign() * torch.where(p > _TINY, torch.expm1((safe * a).log1p() / safe), a.clamp_max(690.0).expm1())

    def log_slope(self, y: Float[Tensor, "*c n"]) -> Float[Tensor, "*c n"]:
        """log dw/dy; log p(y) = log p(w) + log dw/dy."""
        z = (y - self.centre.unsqueeze(-1)) / self.spread.unsqueeze(-1)
        return (self._powers(z < 0) - 1) * z.abs().log1p() - self.spread.unsqueeze(-1).log()

    def moments(
        self, mean: Float[Tensor, "*c n"], var: Float[Tensor, "*c n"]
    ) -> tuple[Float[Tensor, "*c n"], Float[Tensor, "*c n"]]:
        """Mean and variance in the user's units of what is normal in mapped units, by Gauss-Hermite quadrature of z."""
        nodes, weights = (torch.from_numpy(a).to(mean).unsqueeze(-1) for a in hermegauss(_NODES))
        weights = weights / weights.sum()
        at = mean.unsqueeze(-2) + var.clamp_min(0.0).sqrt().unsqueeze(-2) * nodes
        z = self._back(at.flatten(-2)).clamp(-_SQUARABLE, _SQUARABLE).unflatten(-1, at.shape[-2:])
        first = (weights * z).sum(-2)
        second = (weights * (z - first.unsqueeze(-2)).square()).sum(-2)
        straight = (self.power == 1).unsqueeze(-1)
        first, second = torch.where(straight, mean, first), torch.where(straight, var, second)
        centre, spread = self.centre.unsqueeze(-1), self.spread.unsqueeze(-1)
        return centre + spread * first, spread.square() * second

    def task_inward(self, task: Dataset, among: int | None = None) -> Dataset:
        """The task in mapped units, what is far moved closer; known errors go by the map's slope at their values.

        Outliers are found relative to the first values of a long task, ``among`` of them. Their errors are those
        without being pulled in: they became no better known by that.
        """
        w = self.inward(task.y)
        y = self._pulled_in(w, w[..., :among])[0]
        if task.error_var is None:
            return replace(task, y=y)
        error_var = (task.error_var.log() + 2 * self.log_slope(task.y)).exp()  # (dw/dy)² error_var; 0 stays 0
        return replace(task, y=y, error_var=error_var.clamp_max(LARGEST))

    def bound(self, c: Float[Tensor, "*b 1"], y: Float[Tensor, "*b n"]) -> Float[Tensor, "*b 1"]:
        """A limit on values like y in mapped units, pulled in where it is among the outliers."""
        return self._pulled_in(self.inward(c), self.inward(y))[0]

    def outliers(self, task: Dataset) -> Bool[Tensor, "*b n"]:
        """Which values of the task are outliers."""
        w = self.inward(task.y)
        return self._pulled_in(w, w)[1]

    def _pulled_in(
        self, w: Float[Tensor, "*b m"], among: Float[Tensor, "*b n"]
    ) -> tuple[Float[Tensor, "*b m"], Bool[Tensor, "*b m"]]:
        return _pulled_in(w, among, self.known_spread, self.known_reach, self._rounding)


def _stretched(a: Float[Tensor, "*#c"], p: Float[Tensor, "*#c"]) -> Float[Tensor, "*c"]:
    """((1 + a)^p − 1)/p."""
    safe = p.clamp_min(_TINY)
    return torch.where(p > _TINY, torch.expm1(safe * a.log1p()) / safe, a.log1p())


def _middle(w: Float[Tensor, "*b n"]) -> Float[Tensor, "*b"]:
    """The lower median, for of two values one may well be a failed run; 0 of none."""
    return w.quantile(0.5, dim=-1, interpolation="lower") if w.shape[-1] else w.new_zeros(w.shape[:-1])


def _reach(w: Float[Tensor, "*b n"]) -> Float[Tensor, "*b"]:
    """How far the second best value is below the median."""
    return _middle(w) - w.kthvalue(2, dim=-1).values if w.shape[-1] > 1 else w.new_zeros(w.shape[:-1])


def _pulled_in(
    w: Float[Tensor, "*b m"],
    among: Float[Tensor, "*b n"],
    spread: Float[Tensor, "*b"],
    reach: Float[Tensor, "*b"],
    rounding: Float[Tensor, "*b"],
) -> tuple[Float[Tensor, "*b m"], Bool[Tensor, "*b m"]]:
    """Values, those far from what they are ``among`` moved closer, and which of them are outliers.

    What they are among has at least this ``spread`` and this ``reach``.
    """
    few, fence = among.shape[-1] < FEW, PLAIN_TUNING.outlier_fence
    centre = _middle(among).unsqueeze(-1)
    size = spread if few else torch.maximum(robust_spread(among, rounding=rounding), spread)
    size = torch.where(size > 0, size, torch.full_like(size, torch.inf)).unsqueeze(-1)
    reach = torch.maximum(_reach(among), reach).unsqueeze(-1)
    far = torch.where(w < centre, torch.maximum(size, reach), size)
    z = (w - centre) / far
    outside = z.abs() > fence
    excess = (z.abs() - fence).clamp_min(0.0)
    near = torch.where(outside, centre + far * z.sign() * (fence + excess.log1p().log1p()), w)
    excess = ((centre - near) / size - PLAIN_TUNING.good_fence).clamp_min(0.0)
    return torch.where(excess > 0, centre - size * (PLAIN_TUNING.good_fence + excess.log1p()), near), outside


def _standard(
    y: Float[Tensor, "*b n"], centre: Float[Tensor, "*b"], spread: Float[Tensor, "*b"]
) -> tuple[Float[Tensor, "*b n"], Bool[Tensor, "*b n"]]:
    """z of the values, and which of them are not far from all others: those say nothing about λ."""
    z = (y - centre.unsqueeze(-1)) / spread.unsqueeze(-1)
    nothing = torch.zeros_like(centre)
    inside = _pulled_in(z, z, nothing + 1, nothing, nothing)[0] == z
    return z.masked_fill(~inside, 0.0), inside


def _most_probable(tasks: Sequence[tuple[Float[Tensor, "*b _"], Tensor]]) -> Float[Tensor, "*b"]:
    """The most probable λ of a grid, from the tasks' z and the weight of each value."""
    first = tasks[0][0]
    batch = first.shape[:-1]
    powers = torch.linspace(0.0, PLAIN_TUNING.warp_max_power, _POWERS, dtype=first.dtype, device=first.device)
    λ = powers.reshape(-1, *([1] * len(batch)), 1)
    total = (-0.5 * ((λ - 1) / PLAIN_TUNING.warp_power_sd).square()).squeeze(-1).expand(len(powers), *batch)
    for z, counts in tasks:
        c = counts.to(z.dtype)
        n = c.sum(-1)
        p = torch.where(z < 0, 2 - λ, λ)
        varies = (_variance(z, c) > 0) & (n >= 3)
        var = _variance(z.sign() * _stretched(z.abs(), p), c)
        fits = -0.5 * n * torch.where(varies, var, torch.ones_like(var)).log()
        fits = fits + (c * (p - 1) * z.abs().log1p()).sum(-1)
        total = total + torch.where(varies, fits, torch.zeros_like(fits))
    return powers[total.argmax(0)]


def _variance(w: Float[Tensor, "*c n"], counts: Float[Tensor, "*#c n"]) -> Float[Tensor, "*c"]:
    """The weighted sample variance; of a single value it is 0."""
    n = counts.sum(-1)
    mean = (counts * w).sum(-1) / n.clamp_min(1.0)
    return (counts * (w - mean.unsqueeze(-1)).square()).sum(-1) / (n - 1).clamp_min(1.0)
