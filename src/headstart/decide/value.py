"""The acquisition value of an aim over outcomes × members × draws, with its gradient.

    log mean_q [ gain_q(x)^share · Π_c P_cq(x) ]

    one objective, LOG_EI   gain_q = Σ_k w_k E[max(f*_kq − ½σ − m_kq(x), 0)]
    one objective, LCB      log gain = Σ_k w_k −(mean_k(x) − β sd_k(x))
    several objectives      gain_q = Σ_cells Π_m (H_mq(u_m) − H_mq(l_m))       the expected growth of the volume
                            H_mq(t) = Σ_k w_k E[max(t − ½σ − m_kq(x), 0)]
    limits                  P_cq = Σ_k w_k Φ((c − mean_kq(x))/sd_k(x))         a measurement is within the limit c;
                            of a range l … c less the same of l

over the members k of every outcome's mixture and draws q of awaited results (decide.members); m(x) and σ are those of
decide.acquisition, with a target f* − m is d* − |y − t|, cells those of decide.front, ``share`` that of decide.aim.
Outcomes are independent, so the mean of a product is the product of the means: all combinations of members are averaged
at the cost of each of them once.

With one objective every member has its own draws and its own incumbents f*_kq; with several the draws are those of the
mixture, so that a draw belongs to one front. The derivatives by every mean and variance are in closed form for one
objective and limits, by automatic differentiation for a volume; the members take them on to x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.acquisition import log_within
from headstart.decide.front import Cells
from headstart.decide.members import ROWS, Members

Array = NDArray[np.float64]
# Limited outcomes, and what each must be between, in model units
Limits: TypeAlias = tuple[tuple[Members, tuple[float, float]], ...]
# Means (k, q, n) and variances (k, n) of one outcome, or derivatives by them
_Moments: TypeAlias = tuple[Array, Array]
# A logarithm (q, n), and the function from derivatives by it to those by the moments of its outcomes
_WithBackward: TypeAlias = tuple[Array, Callable[[Array], list[_Moments]]]

_POINTS_PER_CHUNK = 256  # points whose cells and members stay in the processor's cache


@dataclass(frozen=True, slots=True)
class AimValue:
    """The acquisition value at points of a single problem: see the head of the module.

    ``best_f`` are the incumbents of one objective, for every member and draw; ``cells`` what is beyond the front of
    several. ``beta`` is that of a confidence bound, None for log expected improvement.
    """

    goals: tuple[Members, ...]
    best_f: Float[Array, "k q"] | None = None
    cells: Cells | None = None
    limits: Limits = ()
    share: float = 1.0
    beta: float | None = None

    @property
    def _outcomes(self) -> list[Members]:
        return [*self.goals, *(own for own, _ in self.limits)]

    def __call__(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
        """The value at every row of X."""
        points = X.detach().cpu().numpy()
        size = ROWS if self.cells is None else _POINTS_PER_CHUNK
        found = []
        for i in range(0, len(points), size):
            moments = [own.predict(points[i : i + size]) for own in self._outcomes]
            found.append(self._combined(moments, slopes=False)[0])
        return torch.from_numpy(np.concatenate(found)).to(X.device)

    def with_gradient(self, X: Float[Array, "n d"]) -> tuple[Float[Array, "n"], Float[Array, "n d"]]:
        """The value at every row of X, and its gradient."""
        seen = [own.at(X) for own in self._outcomes]
        value, slopes = self._combined([(mean, var) for mean, var, _ in seen], slopes=True)
        gradient = np.zeros_like(X)
        for (_, _, backward), (by_mean, by_var) in zip(seen, slopes, strict=True):
            gradient += backward(by_mean, by_var)
        return value, gradient

    def _combined(self, moments: Sequence[_Moments], *, slopes: bool) -> tuple[Float[Array, "n"], list[_Moments]]:
        """The value, and its derivatives by the moments of every outcome."""
        m = len(self.goals)
        gain, gain_backward = (
            self._improvement(*moments[0]) if self.cells is None else self._volume(moments[:m], slopes=slopes)
        )
        within = [
            _averaged(own, *log_within(mean, var[:, None], ends=ends, noise_var=own.noise_var[:, None, None]))
            for (own, ends), (mean, var) in zip(self.limits, moments[m:], strict=True)
        ]
        total = self.share * gain + sum(log for log, _ in within)
        if len(total) == 1:
            value, by_draw = total[0], np.ones_like(total)
        else:
            top = total.max(0)
            parts = np.exp(total - top)
            whole = parts.sum(0)
            value, by_draw = top + np.log(whole / len(total)), parts / whole
        if not slopes:
            return value, []
        return value, [*gain_backward(self.share * by_draw), *(by for _, back in within for by in back(by_draw))]

    def _improvement(self, mean: Float[Array, "k q n"], var: Float[Array, "k n"]) -> _WithBackward:
        """log Σ_k w_k EI_kq, or Σ_k w_k LCB_k."""
        (own,) = self.goals
        if self.beta is None:
            assert self.best_f is not None
            level, noise_var = self.best_f[..., None], own.noise_var[:, None, None]
            gain = own.log_improvement(mean, var[:, None], level=level, noise_var=noise_var)
            return _averaged(own, *gain)
        value, by_mean, by_var = own.confidence_bound(mean, var[:, None], self.beta)
        w = np.broadcast_to(own.weights[:, None, None], value.shape)
        return (w * value).sum(0), lambda by: [(by * w * by_mean, (by * w * by_var).sum(1))]

    def _volume(self, moments: Sequence[_Moments], *, slopes: bool) -> _WithBackward:
        """log Σ_cells Π_m (H_m(u_m) − H_m(l_m))."""
        cells = self.cells
        assert cells is not None
        leaves = [torch.from_numpy(part).requires_grad_(slopes) for pair in moments for part in pair]
        with torch.set_grad_enabled(slopes):
            log_h = [
                log_levels(own, mean, var, levels)
                for own, mean, var, levels in zip(self.goals, leaves[::2], leaves[1::2], cells.levels, strict=True)
            ]
            log_gain = cells.log_volume(log_h)

        def backward(by: Float[Array, "q n"]) -> list[_Moments]:
            found = [part.numpy() for part in torch.autograd.grad(log_gain, leaves, torch.from_numpy(by))]
            return list(zip(found[::2], found[1::2], strict=True))

        return log_gain.detach().numpy(), backward


def _averaged(
    own: Members, value: Float[Array, "k q n"], by_mean: Float[Array, "k q n"], by_var: Float[Array, "k q n"]
) -> _WithBackward:
    """log Σ_k w_k exp(value_k), where every value_k has these derivatives."""
    top = value.max(0)
    parts = own.weights[:, None, None] * np.exp(value - top)
    total = parts.sum(0)

    def backward(by: Float[Array, "q n"]) -> list[_Moments]:
        share = by * (parts / total)
        return [(share * by_mean, (share * by_var).sum(1))]

    return top + np.log(total), backward


class _LogImprovement(torch.autograd.Function):
    """``Members.log_improvement`` at the levels of fronts, (k, q, t, n), with its derivatives."""

    @staticmethod
    def forward(
        ctx: Any, mean: Tensor, var: Tensor, levels: Float[Tensor, "q t"], own: Members
    ) -> Float[Tensor, "k q t n"]:
        """log H."""
        value, by_mean, by_var = own.log_improvement(
            mean.detach().numpy()[:, :, None],
            var.detach().numpy()[:, None, None],
            level=levels.numpy()[None, :, :, None],
            noise_var=own.noise_var[:, None, None, None],
        )
        ctx.save_for_backward(torch.from_numpy(by_mean), torch.from_numpy(by_var))
        return torch.from_numpy(value)

    @staticmethod
    def backward(ctx: Any, *by: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """By mean and variance."""
        by_mean, by_var = ctx.saved_tensors
        return (by[0] * by_mean).sum(2), (by[0] * by_var).sum((1, 2)), None, None


def log_levels(
    own: Members, mean: Float[Tensor, "k q n"], var: Float[Tensor, "k n"], levels: Float[Tensor, "q t"]
) -> Float[Tensor, "q t n"]:
    """log H: the expected improvement below every level, averaged over the members."""
    log_h: Tensor = _LogImprovement.apply(mean, var, levels, own)  # type: ignore[no-untyped-call]
    if len(log_h) == 1:
        return log_h[0]
    return torch.logsumexp(log_h + torch.from_numpy(np.log(own.weights))[:, None, None, None], dim=0)
