"""One task on top of the tasks below: the single rule from which every posterior of the family follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import append_rows, broadcast_shapes, cholesky, fold, solve_lower, solve_upper, unfold
from headstart.models.chain.beliefs import (
    Beliefs,
    BeliefsAt,
    BoostedBeliefs,
    CrossTerm,
    ExactBeliefs,
    MeanBeliefs,
    NoBeliefs,
    log_normal,
    weights_of,
)


class Propagation(Enum):
    """How a layer learns from, and inherits, the uncertainty Σ of the task below; see ``Layer``."""

    MEAN = "mean"
    BOOSTED = "boosted"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Layer:
    """f = f_below + δ with f_below ~ (m, Σ), δ ~ GP(offset, K), seen at X with noise.

    The gain is computed from one prior, the covariance it leaves behind (Joseph form) under another:

        propagation   gain from   covariance of   in the paper
        MEAN          K           K               MHGP: Σ is forgotten
        BOOSTED       K           K + Σ           BHGP: Σ is kept, not learnt from
        EXACT         K + Σ       K + Σ           SHGP: Bayes' rule

    P is the gain's prior, N the noise of the observations, L Lᵀ = P(X, X) + N, z = L⁻¹ (y − m(X) − offset); mean and
    covariance are in docs/models.md, chains. f is that of the present batch: rows of others have shifts, noise that
    they have in common, N = diag(noise) + batch_var · D (``Dataset.shift_pattern``). A joint model is an EXACT layer
    whose beliefs hold all kernels: δ is absent (``params`` has outputscale 0).
    """

    kernel: Kernel
    propagation: Propagation
    below: Beliefs
    params: GPParams
    at: BeliefsAt  # the beliefs at X
    L: Float[Tensor, "*b n n"]
    z: Float[Tensor, "*c n"]
    noise: Float[Tensor, "*b n"]  # the variance of every observation's own noise
    shifts: Float[Tensor, "*b _ _"] | None = None  # the covariance of the shifts of the first observations
    shift_log_sd: Float[Tensor, "*#b"] | None = None  # of the prior of log batch_var; None where it is not in doubt

    @classmethod
    def observe(
        cls,
        below: Beliefs,
        params: GPParams,
        task: Dataset,
        *,
        kernel: Kernel,
        propagation: Propagation = Propagation.EXACT,
        at: BeliefsAt | None = None,
    ) -> Layer:
        """The layer at given hyperparameters with the observations of a task; ``at`` are the beliefs at its inputs."""
        at = below.at(task.X) if at is None else at
        none = task.X.new_zeros(*task.batch_shape, 0)
        empty = cls(kernel, propagation, below, params, at.rows(slice(0)), none.unsqueeze(-1)[..., :0], none, none)
        if task.n == 0:
            return empty
        noise = None if task.error_var is None else params.noise_var.unsqueeze(-1) + task.error_var
        return empty.observing(task.X, task.y, at=at, noise_var=noise, shifts=shifts_of(task, params))

    def with_observations(self, task: Dataset, params: GPParams | None = None, at: BeliefsAt | None = None) -> Layer:
        """The layer, at other hyperparameters if given, with these observations in place of its own."""
        params = self.params if params is None else params
        again = Layer.observe(self.below, params, task, kernel=self.kernel, propagation=self.propagation, at=at)
        return replace(again, shift_log_sd=self.shift_log_sd)

    @property
    def X(self) -> Float[Tensor, "*b n d"]:
        """Where the layer was observed."""
        return self.at.X

    @property
    def batch_shape(self) -> torch.Size:
        """Independent problems, with the dimensions of any fantasies in front."""
        return broadcast_shapes(self.L.shape[:-2], self.z.shape[:-1])

    @property
    def noise_var(self) -> Float[Tensor, "*b"]:
        """The variance of the noise that all observations have, and a new one will."""
        return self.params.noise_var

    @property
    def noise_cov(self) -> Float[Tensor, "*b n n"]:
        """N: the covariance of the noise of all observations; those that were added later are of the present batch."""
        N = torch.diag_embed(self.noise)
        if self.shifts is not None:
            n = self.shifts.shape[-1]
            N[..., :n, :n] += self.shifts
        return N

    def log_evidence(self) -> Float[Tensor, "*b"]:
        """log p(y | the tasks below) under the gain's prior: for BHGP it is MHGP's."""
        return log_normal(self.L, self.z)

    def gain_cov(self, a: BeliefsAt, b: BeliefsAt) -> Float[Tensor, "*out n m"]:
        """P between the points of a and those of b."""
        K = self.params.outputscale[..., None, None] * self.kernel(a.X, b.X, self.params.lengthscale)
        return K + self.below.cov(a, b) if self.propagation is Propagation.EXACT else K

    def gain_var(self, a: BeliefsAt) -> Float[Tensor, "*b m"]:
        """P of every point of a with itself."""
        K = self.params.outputscale.unsqueeze(-1).expand(a.mean.shape)
        return K + self.below.var(a) if self.propagation is Propagation.EXACT else K

    def observing(
        self,
        X: Float[Tensor, "*b k d"],
        y: Float[Tensor, "*c k"],
        *,
        at: BeliefsAt | None = None,
        noise_var: Tensor | None = None,
        shifts: Tensor | None = None,
    ) -> Layer:
        """The layer after k more observations: rows appended to the factor; ``noise_var`` is all the noise of these.

        They are of the present batch, but for the very first ones, whose ``shifts`` may have a covariance. y may have
        more leading dimensions than X (fantasies): L then stays as small as X asks for.
        """
        new = self.below.at(X) if at is None else at
        seen = self.L.shape[-1] > 0
        v = solve_lower(self.L, self.gain_cov(self.at, new)) if seen else new.mean.unsqueeze(-2)[..., :0, :]
        noise = self.params.noise_var.unsqueeze(-1) if noise_var is None else noise_var
        noise = noise.expand(*new.mean.shape)
        P = self.gain_cov(new, new) - v.mT @ v + torch.diag_embed(noise)
        P = P if shifts is None else P + shifts
        corner = cholesky(P, of="The covariance of the observations")
        r = y - new.mean - self.params.offset.unsqueeze(-1) - (self.z.unsqueeze(-2) @ v).squeeze(-2)
        z = solve_lower(corner, r.unsqueeze(-1)).squeeze(-1)
        batch = broadcast_shapes(self.z.shape[:-1], z.shape[:-1])
        return replace(
            self,
            at=self.at.joined(new),
            L=append_rows(self.L, v.mT, corner),
            z=torch.cat([self.z.expand(*batch, -1), z.expand(*batch, -1)], dim=-1),
            noise=torch.cat([self.noise.expand(*noise.shape[:-1], -1), noise], dim=-1) if seen else noise,
            shifts=self.shifts if seen else shifts,
        )

    def _query(
        self, X: Float[Tensor, "*b m d"] | BeliefsAt
    ) -> tuple[BeliefsAt, Float[Tensor, "*out n m"], Float[Tensor, "*out m"]]:
        if isinstance(X, BeliefsAt):  # the beliefs were evaluated before
            folded, extra = self.below.weigh(X), torch.Size()
        else:
            X = X.expand(*broadcast_shapes(X.shape[:-2], self.batch_shape), *X.shape[-2:])
            rows, extra = fold(X, self.L.shape[:-2])
            folded = self.below.at(rows)
        v = solve_lower(self.L, self.gain_cov(self.at, folded))
        at, v = folded.unfolded(extra), unfold(v, extra)
        mean = at.mean + self.params.offset.unsqueeze(-1) + (self.z.unsqueeze(-2) @ v).squeeze(-2)
        return at, v, mean

    def predict(self, X: Float[Tensor, "*b m d"]) -> tuple[Float[Tensor, "*out m"], Float[Tensor, "*out m m"]]:
        """Mean and joint covariance of f at the rows of X."""
        at, v, mean = self._query(X)
        cov = self.gain_cov(at, at) - v.mT @ v
        if self.propagation is Propagation.BOOSTED:
            alpha = solve_upper(self.L, v)  # its columns are α(x)ᵀ
            lost = self.below.cov(self.at, at).mT @ alpha
            cov = cov + self.below.cov(at, at) - lost - lost.mT + alpha.mT @ self.below.cov(self.at, self.at) @ alpha
        return mean, cov

    def predict_marginal(
        self, X: Float[Tensor, "*b m d"] | BeliefsAt
    ) -> tuple[Float[Tensor, "*out m"], Float[Tensor, "*out m"]]:
        """Mean and variance of f at every row of X, or at points whose beliefs are at hand."""
        at, v, mean = self._query(X)
        return mean, self._var(at, v).expand(mean.shape)

    def _var(self, at: BeliefsAt, v: Float[Tensor, "*out n m"]) -> Float[Tensor, "*out m"]:
        var = self.gain_var(at) - v.square().sum(-2)
        if self.propagation is Propagation.BOOSTED:
            alpha = solve_upper(self.L, v)
            kept = self.below.cov(self.at, self.at) @ alpha - 2 * self.below.cov(self.at, at)
            var = var + self.below.var(at) + (alpha * kept).sum(-2)
        return var

    def predict_with_level(
        self, X: Float[Tensor, "*b m d"] | BeliefsAt, before: Float[Tensor, "*b"]
    ) -> tuple[Float[Tensor, "*out m"], Float[Tensor, "*out m"], Float[Tensor, "*out m"]]:
        """The same, and the variance of f that comes from not knowing the offset, which was N(offset, before).

        (1 − 1ᵀ K⁻¹ k(x))² / (1ᵀ K⁻¹ 1 + 1/before): the offset in ``params`` is its posterior mean, and predictions are
        made with it as if it was known.
        """
        at, v, mean = self._query(X)
        left, known = self._by_level(v, before)
        level_var = (left.square() / known.unsqueeze(-1)).expand(mean.shape)
        return mean, self._var(at, v).expand(mean.shape), level_var

    def predict_at_unknown_level(
        self, X: Float[Tensor, "*b m d"], before: Float[Tensor, "*#b"]
    ) -> tuple[Float[Tensor, "*out m"], Float[Tensor, "*out m m"]]:
        """Mean and joint covariance of f when the offset, which was N(offset, before), is not known either."""
        mean, cov = self.predict(X)
        left, known = self._by_level(self._query(X)[1], before)
        return mean, cov + left.unsqueeze(-1) * left.unsqueeze(-2) / known[..., None, None]

    def _by_level(
        self, v: Float[Tensor, "*out n m"], before: Float[Tensor, "*#b"]
    ) -> tuple[Float[Tensor, "*out m"], Float[Tensor, "*b"]]:
        """1 − 1ᵀ K⁻¹ k(x), by which f(x) moves with the offset, and the offset's precision 1ᵀ K⁻¹ 1 + 1/before."""
        ones = torch.ones_like(self.z if self.z.dim() == self.L.dim() - 1 else self.L[..., 0]).unsqueeze(-1)
        w = solve_lower(self.L, ones)
        return 1 - (w.mT @ v).squeeze(-2), w.square().sum((-2, -1)) + 1 / before

    def with_its_offset(self) -> Layer:
        """The layer with the posterior mean of its offset, given all that it has observed.

        The offset is N(c, OFFSET_VAR), c the mean of the residuals. With z = L⁻¹ (y − m − c) and e = L⁻¹ 1

            offset = c + e·z / (e·e + 1/OFFSET_VAR)
        """
        e = solve_lower(self.L, torch.ones_like(self.L[..., :1])).squeeze(-1)
        left = (self.L @ self.z.unsqueeze(-1)).squeeze(-1).mean(-1)  # c − offset
        z = self.z - left.unsqueeze(-1) * e
        moved = left + (e * z).sum(-1) / (e.square().sum(-1) + 1 / OFFSET_VAR)
        params = replace(self.params, offset=self.params.offset + moved)
        return replace(self, params=params, z=self.z - moved.unsqueeze(-1) * e)

    @property
    def fitted_values(self) -> Float[Tensor, "*c n"]:
        """The posterior mean of f where it was observed, y − N K⁻¹ (y − m − offset), N the covariance of the noise."""
        r = self.L @ self.z.unsqueeze(-1) - self.noise_cov @ solve_upper(self.L, self.z.unsqueeze(-1))
        return self.at.mean + self.params.offset.unsqueeze(-1) + r.squeeze(-1)

    def _with_shifts(self, S: Float[Tensor, "*b _ _"]) -> Layer:
        """The layer with another covariance of the shifts of its first observations, and its own offset then."""
        assert self.shifts is not None
        P, k = self.L @ self.L.mT, S.shape[-1]
        P[..., :k, :k] += S - self.shifts
        L = cholesky(P, of="The covariance of the observations")
        z = solve_lower(L, self.L @ self.z.unsqueeze(-1)).squeeze(-1)
        return replace(self, L=L, z=z, shifts=S).with_its_offset()

    def in_batch_of(self, row: int) -> Layer:
        """The layer of a single problem with the batch of one of its observations as the present one.

        With S the covariance of the shifts against the present batch, that against the batch of row r is
        S_ij − S_ir − S_rj + S_rr. Differences between points stay what they are (docs/models.md, batches).
        """
        S = self.shifts
        if S is None or row >= len(S) or not bool(S[row, row] > 0):
            return self
        return self._with_shifts(S - S[row] - S[:, row].unsqueeze(-1) + S[row, row])

    @property
    def shift_information(self) -> Float[Tensor, "*b"]:
        """I = ½ tr (K⁻¹ S)²: Fisher's information of the observations on log batch_var, S the covariance of shifts."""
        if self.shifts is None:
            return torch.zeros_like(self.params.offset)
        k = self.shifts.shape[-1]
        L = self.L[..., :k, :k]
        return 0.5 * solve_lower(L, solve_lower(L, self.shifts).mT).square().sum((-2, -1))

    @property
    def shift_doubt(self) -> Float[Tensor, "*b"] | None:
        """The standard deviation of log batch_var, 1/√(1/sd² + I) with sd that of its prior; None where it is known."""
        if self.shift_log_sd is None:
            return None
        return (self.shift_log_sd.square().reciprocal() + self.shift_information).rsqrt()

    def over_sizes_of_shifts(self) -> list[tuple[Layer, float]]:
        """The layer at several variances of the shifts, with weights: what log batch_var may be as well, if in doubt.

        It is normal around the fitted value with the sd ``shift_doubt``; three nodes of Gauss and Hermite stand for it.
        """
        sd = self.shift_doubt
        if self.shifts is None or sd is None:
            return [(self, 1.0)]
        factor = (math.sqrt(3) * sd).exp()[..., None, None]
        further = (self._with_shifts(S) for S in (self.shifts * factor, self.shifts / factor))
        return [(self, 2 / 3), *((layer, 1 / 6) for layer in further)]

    def leave_one_out(self, y: Float[Tensor, "*b n"]) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
        """Mean and variance of every observation from the others (Rasmussen and Williams 2006, section 5.4.2)."""
        identity = torch.eye(self.L.shape[-1], dtype=self.L.dtype, device=self.L.device)
        L_inverse = solve_lower(self.L, identity)
        precision = L_inverse.square().sum(-2)
        alpha = (self.z.unsqueeze(-2) @ L_inverse).squeeze(-2)
        return y - alpha / precision, 1 / precision

    def as_beliefs(self) -> Beliefs:
        """What this layer and all below it say about a task on top."""
        match self.propagation:
            case Propagation.MEAN:
                return self._mean_beliefs()
            case Propagation.EXACT:
                if isinstance(self.below, ExactBeliefs):
                    return self.below.extended(self.params, self.at, self.L, self.z)
                return self._first_exact()
            case Propagation.BOOSTED:
                if isinstance(self.below, BoostedBeliefs):
                    exact = replace(self, propagation=Propagation.EXACT, below=self.below.exact)
                    at = replace(self.at, u=None)  # the exact model's beliefs: v without the boosting
                    P = exact.gain_cov(at, at) + self.noise_cov
                    corner = cholesky(P, of="The covariance of the observations under the exact model")
                    return self.below.extended(self.params, self.at, self.L, weights_of(self.L, self.z), corner)
                return BoostedBeliefs.first(self._mean_beliefs(), self._first_exact())

    def _mean_beliefs(self) -> MeanBeliefs:
        beta = weights_of(self.L, self.z)
        if isinstance(self.below, MeanBeliefs):
            return self.below.extended(self.X, self.params, beta)
        return MeanBeliefs(self.kernel, (self.X,), (self.params,), (beta,))

    def _first_exact(self) -> ExactBeliefs:
        assert isinstance(self.below, NoBeliefs)
        p = self.params
        term = CrossTerm(p.lengthscale, p.outputscale.unsqueeze(-1), 0, self.X.shape[-2])
        return ExactBeliefs(self.kernel, self.X, (term,), ((p.lengthscale, p.outputscale),), self.L, self.z, p.offset)


def shifts_of(task: Dataset, params: GPParams, rows: slice | None = None) -> Float[Tensor, "*b _ n"] | None:
    """batch_var · D: the covariance of the shifts of some rows of a task with those of all; None where it has none."""
    if params.batch_var is None or not task.has_shifts:
        return None
    D = task.shift_pattern if rows is None else task.shift_pattern_of(rows)
    assert D is not None
    return params.batch_var[..., None, None] * D
