"""The acquisition value of an aim over outcomes × members × draws, with its gradient.

    log mean_q [ gain_q(x)^share · Π_c P_cq(x) ]

    one objective, LOG_EI   gain_q = Σ_k w_k E[max(f*_kq − ½σ − m_kq(x), 0)]
    one objective, LCB      log gain = Σ_k w_k −(mean_k(x) − β sd_k(x))
    several objectives      gain_q = Σ_cells Π_m (H_mq(u_m) − H_mq(l_m))       the expected growth of the volume
                            H_mq(t) = Σ_k w_k E[max(t − ½σ − m_kq(x), 0)]
    limits                  P_cq = Σ_k w_k Φ((c − mean_kq(x))/sd_k(x))         a measurement is within the limit c

over the members k of every outcome's mixture and draws q of awaited results (decide.members); m(x) and σ are those of
decide.acquisition, cells and the weights of their volume those of decide.front. One objective without limits is the
case of no P. Outcomes are independent, so the mean of a product is the product of the means, and that over the members
of each outcome is exact: all combinations of members are averaged at the cost of each of them once.

An improvement is averaged over members and draws before its logarithm is taken. With one objective every member has its
own draws and its own incumbents f*_kq; with several the draws are those of the mixture, so that a draw belongs to one
front. ``share`` is the power by which the gain counts beside the limits (decide.aim).

For one objective and limits the derivatives by every mean and variance are in closed form; those of a volume are left
to automatic differentiation. From there to x the members know the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.acquisition import Acquisition, confidence_bound, log_improvement, log_within
from headstart.decide.front import Cells
from headstart.decide.members import ROWS, OutcomeFunction

Array = NDArray[np.float64]

_POINTS_PER_CHUNK = 256  # points whose cells and members stay in the processor's cache
_CLOSEST = -1e-12  # of the logarithms of two levels: a cell between equal ones is empty


@dataclass(frozen=True, slots=True)
class AimValue:
    """The acquisition value at points of a single problem: see the head of the module.

    ``best_f`` are the incumbents of one objective, for every member and draw; ``cells`` what is beyond the front of
    several. ``bounds`` are the upper limits of the limited outcomes, in model units.
    """

    goals: tuple[OutcomeFunction, ...]
    best_f: Float[Array, "k q"] | None = None
    cells: Cells | None = None
    limits: tuple[OutcomeFunction, ...] = ()
    bounds: tuple[float, ...] = ()
    share: float = 1.0
    kind: Acquisition = Acquisition.LOG_EI
    beta: float = 3.0

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X."""
        points = X.detach().cpu().numpy()
        size = ROWS if self.cells is None else _POINTS_PER_CHUNK
        found = []
        for i in range(0, len(points), size):
            moments = [own.predict(points[i : i + size]) for own in (*self.goals, *self.limits)]
            found.append(self._combined(moments, slopes=False)[0])
        return torch.from_numpy(np.concatenate(found)).to(X.device)

    def climb(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
        """The value at every row of X, and its gradient."""
        seen = [own.at(X) for own in (*self.goals, *self.limits)]
        value, slopes = self._combined([(mean, var) for mean, var, _ in seen], slopes=True)
        gradient = np.zeros_like(X)
        for (_, _, back), (by_mean, by_var) in zip(seen, slopes, strict=True):
            gradient += back(by_mean, by_var)
        return value, gradient

    def _combined(
        self, moments: Sequence[tuple[Array, Array]], *, slopes: bool
    ) -> tuple[Float[Array, "n"], list[tuple[Array, Array]]]:
        """The value, and its derivatives by the means (k, q, n) and variances (k, n) of every outcome."""
        m = len(self.goals)
        gain = self._improvement(*moments[0]) if self.cells is None else self._volume(moments[:m], slopes=slopes)
        within = [
            _averaged(own, *log_within(mean, var[:, None], bound=bound, noise_var=own.noise_var[:, None, None]))
            for own, bound, (mean, var) in zip(self.limits, self.bounds, moments[m:], strict=True)
        ]
        total = self.share * gain.log + sum(part.log for part in within)
        if len(total) == 1:
            value, by_draw = total[0], np.ones_like(total)
        else:
            top = total.max(0)
            parts = np.exp(total - top)
            whole = parts.sum(0)
            value, by_draw = top + np.log(whole / len(total)), parts / whole
        if not slopes:
            return value, []
        return value, [*gain.back(self.share * by_draw), *(slope for own in within for slope in own.back(by_draw))]

    def _improvement(self, mean: Float[Array, "k q n"], var: Float[Array, "k n"]) -> _Averaged:
        """log Σ_k w_k EI_kq, or Σ_k w_k LCB_k."""
        (own,) = self.goals
        match self.kind:
            case Acquisition.LOG_EI:
                assert self.best_f is not None
                noise_var, level = own.noise_var[:, None, None], self.best_f[..., None]
                found = log_improvement(mean, var[:, None], level=level, noise_var=noise_var, floor=own.floor)
                return _averaged(own, *found)
            case Acquisition.LCB:
                value, by_mean, by_var = confidence_bound(mean, var[:, None], self.beta)
                w = np.broadcast_to(own.weights[:, None, None], value.shape)
                return _Averaged((w * value).sum(0), w * by_mean, w * by_var)

    def _volume(self, moments: Sequence[tuple[Array, Array]], *, slopes: bool) -> _Averaged | _Volume:
        assert self.cells is not None
        leaves = [torch.from_numpy(part).requires_grad_(slopes) for pair in moments for part in pair]
        with torch.set_grad_enabled(slopes):
            log_gain = _log_gain(self.goals, list(zip(leaves[::2], leaves[1::2], strict=True)), self.cells)
        return _Volume(log_gain, leaves)


@dataclass(frozen=True, slots=True)
class _Averaged:
    """A logarithm averaged over members, for every draw, and its derivatives by every member's moments."""

    log: Float[Array, "q n"]
    by_mean: Float[Array, "k q n"]
    by_var: Float[Array, "k q n"]

    def back(self, by: Float[Array, "q n"]) -> list[tuple[Array, Array]]:
        return [(by * self.by_mean, (by * self.by_var).sum(1))]


@dataclass(frozen=True, slots=True)
class _Volume:
    """The logarithm of an expected volume, and the moments of all objectives that it is computed from."""

    log_gain: Float[Tensor, "q n"]
    leaves: list[Tensor]

    @property
    def log(self) -> Float[Array, "q n"]:
        found: Array = self.log_gain.detach().numpy()
        return found

    def back(self, by: Float[Array, "q n"]) -> list[tuple[Array, Array]]:
        slopes = torch.autograd.grad(self.log_gain, self.leaves, torch.from_numpy(by))
        return [(mean.numpy(), var.numpy()) for mean, var in zip(slopes[::2], slopes[1::2], strict=True)]


def _averaged(
    own: OutcomeFunction, value: Float[Array, "k q n"], by_mean: Float[Array, "k q n"], by_var: Float[Array, "k q n"]
) -> _Averaged:
    """log Σ_k w_k exp(value_k)."""
    top = value.max(0)
    parts = own.weights[:, None, None] * np.exp(value - top)
    total = parts.sum(0)
    share = parts / total
    return _Averaged(top + np.log(total), share * by_mean, share * by_var)


class _LogImprovement(torch.autograd.Function):
    """``log_improvement`` at the levels of fronts, (k, q, t, n), with its derivatives."""

    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, var: Tensor, levels: Float[Tensor, "q t"], own: OutcomeFunction
    ) -> Float[Tensor, "k q t n"]:
        """log H."""
        value, by_mean, by_var = log_improvement(
            mean.detach().numpy()[:, :, None],
            var.detach().numpy()[:, None, None],
            level=levels.numpy()[None, :, :, None],
            noise_var=own.noise_var[:, None, None, None],
            floor=own.floor,
        )
        ctx.save_for_backward(torch.from_numpy(by_mean), torch.from_numpy(by_var))
        return torch.from_numpy(value)

    @staticmethod
    def backward(ctx: Any, *by: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """By mean and variance."""
        by_mean, by_var = ctx.saved_tensors
        return (by[0] * by_mean).sum(2), (by[0] * by_var).sum((1, 2)), None, None


def log_levels(
    own: OutcomeFunction, mean: Float[Tensor, "k q n"], var: Float[Tensor, "k n"], levels: Float[Tensor, "q t"]
) -> Float[Tensor, "q t n"]:
    """log H: the expected improvement below every level, averaged over the members."""
    log_h: Tensor = _LogImprovement.apply(mean, var, levels, own)  # type: ignore[no-untyped-call]
    if len(log_h) == 1:
        return log_h[0]
    return torch.logsumexp(log_h + torch.from_numpy(np.log(own.weights))[:, None, None, None], dim=0)


def _log_gain(
    goals: Sequence[OutcomeFunction], moments: Sequence[tuple[Tensor, Tensor]], cells: Cells
) -> Float[Tensor, "q n"]:
    """log Σ_cells Π_m (H_m(u_m) − H_m(l_m)) at every point."""
    n_fronts = len(cells.there)
    total: Tensor | None = None
    for m, (own, (mean, var)) in enumerate(zip(goals, moments, strict=True)):
        if cells.weights is None:
            log_h = log_levels(own, mean, var, cells.levels[m])
        else:
            log_h = cells.weights[m].weighted(log_levels(own, mean, var, cells.weights[m].levels))
        log_h = log_h.expand(max(n_fronts, len(log_h)), -1, -1)
        high = _take(log_h, cells.upper[m])
        open_below = (cells.lower[m] < 0).unsqueeze(-1).expand(-1, -1, log_h.shape[-1])
        if bool(open_below.all()):
            part = high
        else:
            low = _take(log_h, cells.lower[m].clamp_min(0))
            gap = torch.where(open_below, -1.0, low - high).clamp_max(_CLOSEST)
            part = high + torch.where(open_below, 0.0, torch.log(-torch.expm1(gap)))
        total = part if total is None else total + part
    assert total is not None
    total = total.masked_fill(~cells.there.unsqueeze(-1), -torch.inf)
    return torch.logsumexp(total, dim=-2) if total.shape[-2] > 1 else total.squeeze(-2)


def _take(log_h: Float[Tensor, "q t n"], index: Tensor) -> Float[Tensor, "q c n"]:
    return log_h.gather(-2, index.unsqueeze(-1).expand(-1, -1, log_h.shape[-1]))
