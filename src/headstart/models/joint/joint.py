"""Models trained on all data at once: HGP, WSGP, MTKGP and MTGP. Only the choice of W differs (models.joint.coregion).

The evidence of all tasks together, Σ_ν W_ν ∘ κ_ν, is dense, or in arrow form where the sources are independent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset, error_vars, task_name
from headstart.data.thinning import representative
from headstart.data.units import OutputUnits, Units
from headstart.gp.evidence import Evaluation, gaussian, lengthscale_gradient
from headstart.gp.fit import Objective, Seed, fit
from headstart.gp.hyperparameters import OFFSET_VAR, GPParams, Inputs, Layout, lengthscale_slot, noise_slot
from headstart.gp.kernels import Kernel, with_slope
from headstart.gp.linalg import cholesky, solve_lower, times, try_cholesky
from headstart.models.chain.beliefs import CrossTerm, ExactBeliefs
from headstart.models.chain.layer import Layer
from headstart.models.joint.coregion import Coregion, Values, WeightedSource
from headstart.models.learning import LearnContext
from headstart.models.model import Prior, TransferModel
from headstart.models.params import CoregionalParams, ModelParams, expanded, rescaled
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import PLAIN_TUNING


class JointEvidence(ABC):
    """What both evaluators share: the data of all tasks (target last) and the meaning of θ.

    θ = [log lengthscale (V·d), the parameters of W, log noise_var (T)]

    With free offsets every task is centred and OFFSET_VAR is added to the covariance within it: its offset is
    integrated out (see gp.hyperparameters). Known variances of the observations are added to their noise.
    """

    def __init__(self, tasks: Sequence[Dataset], *, coregion: Coregion, kernel: Kernel, free_offset: bool) -> None:
        flat = [_flattened(task) for task in tasks]
        zero = flat[0].y.new_zeros(len(flat[0].y))
        self._centre = torch.stack([t.y.mean(-1) if free_offset and t.n else zero for t in flat], dim=-1)
        self.tasks = tuple(replace(t, y=t.y - self._centre[:, i, None]) for i, t in enumerate(flat))
        self.coregion, self.kernel = coregion, kernel
        self.offset_var = OFFSET_VAR if free_offset else 0.0
        self.T, self.d = len(tasks), tasks[0].d
        self.V = coregion.n_kernels(self.T)
        ell = lengthscale_slot("lengthscale", self.V, Inputs.of(self.d))
        self.layout = Layout((ell, *coregion.slots(self.T), noise_slot(self.T)))
        self.n_problems, self.n_observations = len(flat[0].y), sum(task.n for task in flat)
        self.device = flat[0].X.device

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(y of all tasks | θ), its gradient, and which rows could be computed."""
        value, gradient, ok, _ = self._evaluate(theta, items)
        return value, gradient, ok

    @abstractmethod
    def _evaluate(
        self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]
    ) -> tuple[Tensor, Tensor, Tensor, Float[Tensor, "B T"]]:
        """The evaluation, and Σ α over every task."""

    def named(self, theta: Float[Tensor, "*b p"]) -> tuple[Tensor, Values, Tensor]:
        """Lengthscales (*b, V, d), the values of W, and noise variances (*b, T)."""
        values = self.layout.named(theta)
        ell = values.pop("lengthscale").unflatten(-1, (self.V, self.d))
        noise_var = values.pop("noise_var")
        return ell, values, noise_var

    def params(self, theta: Float[Tensor, "P p"], batch_shape: torch.Size) -> ModelParams:
        """θ of every problem in the user's form; a free mean is its posterior mean, centre + OFFSET_VAR · Σ α."""
        mean = self._centre
        if self.offset_var:
            alpha = self._evaluate(theta, torch.arange(self.n_problems, device=self.device))[-1]
            mean = mean + self.offset_var * alpha
            if self.tasks[-1].n == 0:
                mean = self.coregion.with_target_mean(mean)
        ell, values, noise_var = self.named(theta)
        shaped = {name: value.reshape(*batch_shape, -1) for name, value in values.items()}
        return self.coregion.params(
            ell.reshape(*batch_shape, self.V, self.d),
            shaped,
            noise_var.reshape(*batch_shape, self.T),
            mean.reshape(*batch_shape, self.T),
        )

    def _flat(self, ell: Tensor, W: Values, noise_var: Tensor) -> Float[Tensor, "B p"]:
        pieces = {"lengthscale": ell.flatten(-2), **W, "noise_var": noise_var}
        return torch.cat([pieces[slot.name] for slot in self.layout.slots], dim=-1)


def _flattened(task: Dataset) -> Dataset:
    """All leading dimensions as one."""
    P = task.batch_shape.numel()
    error_var = None if task.error_var is None else task.error_var.reshape(P, task.n)
    return Dataset(task.X.reshape(P, task.n, task.d), task.y.reshape(P, task.n), task.name, error_var=error_var)


class DenseEvidence(JointEvidence):
    """One covariance matrix of all observations; kernel ν is evaluated from the first task that it touches on."""

    def __init__(self, tasks: Sequence[Dataset], *, coregion: Coregion, kernel: Kernel, free_offset: bool) -> None:
        super().__init__(tasks, coregion=coregion, kernel=kernel, free_offset=free_offset)
        self._X = torch.cat([task.X for task in self.tasks], dim=1) - 0.5
        self._y = torch.cat([task.y for task in self.tasks], dim=1)
        self._task = torch.cat([torch.full((task.n,), i, device=self.device) for i, task in enumerate(self.tasks)])
        self._indicator = torch.nn.functional.one_hot(self._task, self.T).to(self._X)
        self._fixed = self.offset_var * self._indicator @ self._indicator.mT
        self._error_var = error_vars(self.tasks)
        starts = list(accumulate((task.n for task in self.tasks), initial=0))
        self._rows = [slice(starts[coregion.linked(nu, self.T).start], starts[-1]) for nu in range(self.V)]

    def _evaluate(
        self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]
    ) -> tuple[Tensor, Tensor, Tensor, Float[Tensor, "B T"]]:
        ell, values, noise_var = self.named(theta)
        W = self.coregion.W(values, self.T)
        one = self.n_problems == 1
        X, y = (self._X, self._y) if one else (self._X[items], self._y[items])
        B, N = len(theta), self._X.shape[1]
        K = torch.diag_embed(noise_var[:, self._task]).add_(self._fixed)
        if self._error_var is not None:
            K.diagonal(dim1=-2, dim2=-1).add_(self._error_var if one else self._error_var[items])
        parts = []
        for nu in range(self.V):
            rows = self._rows[nu]
            Z = X[:, rows] / ell[:, nu].unsqueeze(-2)
            kappa, slope = with_slope(self.kernel, Z)
            task = self._task[rows]
            weight = W[:, nu][:, task[:, None], task[None, :]]
            K[:, rows, rows] += weight * kappa
            parts.append((Z, kappa, slope, weight, self._indicator[rows]))
        value, G, alpha, ok = gaussian(K, y.expand(B, N))

        dW, dell = torch.empty_like(W), torch.empty_like(ell)
        for nu, (Z, kappa, slope, weight, indicator) in enumerate(parts):
            G_block = G[:, self._rows[nu], self._rows[nu]]
            dW[:, nu] = indicator.mT @ (G_block * kappa) @ indicator
            dell[:, nu] = lengthscale_gradient(weight.mul_(slope).mul_(G_block), Z)
        dnoise = noise_var * (G.diagonal(dim1=-2, dim2=-1) @ self._indicator)
        gradient = self._flat(dell, self.coregion.pull_back(values, dW, self.T), dnoise)
        return value, gradient, ok, alpha @ self._indicator


class ArrowEvidence(JointEvidence):
    """WSGP without its zeros: the source blocks A_ν are independent, only the target touches them all.

    With B_ν = cov(source ν, target), D = cov(target), S = D − Σ_ν B_νᵀ A_ν⁻¹ B_ν and Q_ν = A_ν⁻¹ B_ν, the blocks of
    K⁻¹ that the gradient needs are A_ν⁻¹ + Q_ν S⁻¹ Q_νᵀ, −Q_ν S⁻¹ and S⁻¹ (the paper's appendix B): the cost is
    Σ N_ν³ + N_t² N_s + N_t³. Sources of different sizes are padded with independent unit-variance rows at y = 0,
    which change neither the quadratic form nor the determinant.
    """

    def __init__(self, tasks: Sequence[Dataset], *, kernel: Kernel, free_offset: bool) -> None:
        super().__init__(tasks, coregion=WeightedSource(), kernel=kernel, free_offset=free_offset)
        *sources, target = self.tasks
        self._n = max(source.n for source in sources)
        P, Nt = self.n_problems, target.n
        self._X = target.X.new_full((P, len(sources), self._n + Nt, self.d), 0.5)
        self._y_s = target.X.new_zeros(P, len(sources), self._n)
        self._real = target.X.new_zeros(len(sources), self._n)
        self._error_s = target.X.new_zeros(P, len(sources), self._n)
        self._error_t = torch.zeros_like(target.y) if target.error_var is None else target.error_var
        for i, source in enumerate(sources):
            self._X[:, i, : source.n] = source.X
            self._y_s[:, i, : source.n] = source.y
            self._real[i, : source.n] = 1.0
            if source.error_var is not None:
                self._error_s[:, i, : source.n] = source.error_var
        self._X[:, :, self._n :] = target.X.unsqueeze(1)
        self._X -= 0.5
        self._y_t = target.y
        # 1 where both rows are real; the target's always are
        both = torch.cat([self._real, self._real.new_ones(len(sources), Nt)], dim=-1)
        self._both = both.unsqueeze(-1) * both.unsqueeze(-2)

    def _evaluate(
        self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]
    ) -> tuple[Tensor, Tensor, Tensor, Float[Tensor, "B T"]]:
        ell, values, noise_var = self.named(theta)
        n, s = self._n, self.T - 1
        one = self.n_problems == 1
        data = (self._X, self._y_s, self._y_t, self._error_s, self._error_t)
        X, y_s, y_t, error_s, error_t = (t if one else t[items] for t in data)
        outputscale, weight = values["outputscale"], values["weight"]
        shared = (outputscale * weight)[..., None, None]

        # every source's kernel on its own rows and the target's: κ_ν ∘ s_ν² [[1 + w, w], [w, w]]
        Z = X / ell[:, :s].unsqueeze(-2)
        kappa, slope = with_slope(self.kernel, Z)
        K = kappa * shared * self._both
        K[..., :n, :n] += outputscale[..., None, None] * kappa[..., :n, :n] * self._both[:, :n, :n]
        diagonal = noise_var[:, :s].unsqueeze(-1) * self._real + (1 - self._real) + error_s
        A = K[..., :n, :n] + torch.diag_embed(diagonal) + self.offset_var * self._both[:, :n, :n]
        B = K[..., :n, n:]
        Z_t = X[:, 0, n:] / ell[:, s].unsqueeze(-2)
        kappa_t, slope_t = with_slope(self.kernel, Z_t)
        own = values["residual_outputscale"][..., None]
        D = K[..., n:, n:].sum(1) + own * kappa_t + self.offset_var
        D.diagonal(dim1=-2, dim2=-1).add_(noise_var[:, s:]).add_(error_t)

        L, ok = try_cholesky(A)
        A_inverse = torch.cholesky_inverse(L.flatten(0, 1)).unflatten(0, L.shape[:2])
        Q = A_inverse @ B
        a = times(A_inverse, y_s)
        S = D - (B.mT @ Q).sum(1)
        r_t = y_t - times(B.mT, a).sum(1)
        value_t, G_t, alpha_t, ok_t = gaussian(S, r_t)
        value_s = 0.5 * (y_s * a).sum((-2, -1)) + L.diagonal(dim1=-2, dim2=-1).log().sum((-2, -1))
        value = value_t + value_s + 0.5 * float(self._real.sum()) * math.log(2 * math.pi)

        # G_t = ½ (S⁻¹ − α_t α_tᵀ); with α_ν = a_ν − Q_ν α_t the other blocks of ½ (K⁻¹ − α αᵀ) follow from it
        a_t = alpha_t.unsqueeze(1)
        G_st = -Q @ G_t.unsqueeze(1) - 0.5 * a.unsqueeze(-1) * a_t.unsqueeze(-2)
        alpha_s = a - times(Q, a_t)
        S_inverse = 2 * G_t + alpha_t.unsqueeze(-1) * alpha_t.unsqueeze(-2)
        G_ss = 0.5 * (A_inverse + Q @ S_inverse.unsqueeze(1) @ Q.mT - alpha_s.unsqueeze(-1) * alpha_s.unsqueeze(-2))
        G = torch.empty_like(K)
        G[..., :n, :n], G[..., :n, n:], G[..., n:, :n] = G_ss, G_st, G_st.mT
        G[..., n:, n:] = G_t.unsqueeze(1)
        G *= self._both

        G_kappa = G * kappa
        block, source = G_kappa.sum((-2, -1)), G_kappa[..., :n, :n].sum((-2, -1))
        H = G.mul(slope).mul_(shared)
        H[..., :n, :n] += outputscale[..., None, None] * G[..., :n, :n] * slope[..., :n, :n]
        d_ell = lengthscale_gradient(H, Z)
        d_ell_t = values["residual_outputscale"] * lengthscale_gradient(G_t * slope_t, Z_t)
        trace_s = (G_ss.diagonal(dim1=-2, dim2=-1) * self._real).sum(-1)
        trace_t = G_t.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        gradient = self._flat(
            torch.cat([d_ell, d_ell_t.unsqueeze(1)], dim=1),
            {
                "outputscale": outputscale * (source + weight * block),
                "residual_outputscale": values["residual_outputscale"] * (G_t * kappa_t).sum((-2, -1)).unsqueeze(-1),
                "weight": outputscale * weight * block,
            },
            noise_var * torch.cat([trace_s, trace_t], dim=-1),
        )
        alpha = torch.cat([(alpha_s * self._real).sum(-1), alpha_t.sum(-1, keepdim=True)], dim=-1)
        return value, gradient, ok.all(-1) & ok_t, alpha


def believe_sources(
    params: CoregionalParams, sources: Sequence[Dataset], *, like: Dataset, coregion: Coregion, kernel: Kernel
) -> ExactBeliefs:
    """What the joint process says about the target before its own data; ``like`` has the inputs where no source has."""
    T = len(sources) + 1
    V = params.W.shape[-3]
    X = torch.cat([like.X[..., :0, :], *(source.X for source in sources)], dim=-2)
    y = torch.cat([like.y[..., :0], *(source.y for source in sources)], dim=-1)
    starts = list(accumulate((source.n for source in sources), initial=0))
    sizes = torch.tensor([source.n for source in sources], dtype=torch.int64)
    task = torch.repeat_interleave(torch.arange(len(sources)), sizes).to(X.device)
    noise, known = params.noise_var[..., task], error_vars(sources)
    K = torch.diag_embed(noise if known is None else noise + known)
    terms, prior = [], []
    for nu in range(V):
        ell, W = params.lengthscale[..., nu, :], params.W[..., nu, :, :]
        prior.append((ell, W[..., T - 1, T - 1]))
        linked = coregion.linked(nu, T)
        if not len(linked):
            continue
        start, stop = starts[linked.start], starts[linked.stop]
        rows, own = slice(start, stop), task[start:stop]
        kappa = kernel(X[..., rows, :], X[..., rows, :], ell)
        K[..., rows, rows] += W[..., own[:, None], own[None, :]] * kappa
        terms.append(CrossTerm(ell, W[..., T - 1, own], start, stop))
    L = cholesky(K, of="The covariance of the source observations")
    z = solve_lower(L, (y - params.mean[..., task]).unsqueeze(-1)).squeeze(-1)
    return ExactBeliefs(kernel, X, tuple(terms), tuple(prior), L, z, params.mean[..., T - 1])


def _observe(
    params: CoregionalParams, sources: Sequence[Dataset], target: Dataset, *, coregion: Coregion, kernel: Kernel
) -> Layer:
    below = believe_sources(params, sources, like=target, coregion=coregion, kernel=kernel)
    noise = params.noise_var[..., -1]
    # the beliefs hold every kernel: there is no residual of the target's own
    nothing = GPParams(torch.ones_like(params.lengthscale[..., 0, :]), noise.new_zeros(noise.shape), noise, 0 * noise)
    return Layer.observe(below, nothing, target, kernel=kernel)


@dataclass(frozen=True, kw_only=True)
class JointPrior(Prior):
    """The sources in model units: a joint model has to be trained anew with every target observation."""

    model: Joint
    note: str = ""  # which sources are used in part

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        model = self.model
        shared = model.units is OutputUnits.SHARED
        units = Units.of(self.sources) if shared else Units.pooled([*self.sources, target])
        units = units.completed(target)
        sources, inward = [units.inward(source) for source in self.sources], units.inward(target)
        evidence = model.evidence([*sources, inward])
        # Likelihood alone says nothing about a target without data: then the weak priors decide.
        options = replace(model.fit, objective=Objective.POSTERIOR) if target.n == 0 else model.fit
        theta, report = fit(evidence, options, seed=seed, task="all tasks", batch_shape=target.batch_shape)
        report = replace(report, note=self.note)
        params = evidence.params(theta.reshape(evidence.n_problems, -1), target.batch_shape)
        canonical = model.coregion.coregional(params, evidence.T)
        layer = _observe(canonical, sources, inward, coregion=model.coregion, kernel=model.kernel)
        params = rescaled(params, units.scale, units.offset)
        return TransferPosterior(layer, FitResult(units, params, (report,)), target.y)


@dataclass(frozen=True, kw_only=True)
class Joint(TransferModel):
    """All tasks under one Gaussian process Σ_ν W_ν ∘ k_ν, all hyperparameters trained together."""

    coregion: Coregion

    no_shifts = "it learns all tasks together"

    def evidence(self, tasks: Sequence[Dataset]) -> JointEvidence:
        """The evaluator that exploits the zeros of W: arrow form for WSGP, dense for the others."""
        free = self.units is OutputUnits.SHARED
        if isinstance(self.coregion, WeightedSource):
            return ArrowEvidence(tasks, kernel=self.kernel, free_offset=free)
        return DenseEvidence(tasks, coregion=self.coregion, kernel=self.kernel, free_offset=free)

    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> JointPrior:  # noqa: ARG002
        # every evaluation of the joint evidence factorises all rows: of large sources some have to do
        few = tuple(representative(source, PLAIN_TUNING.rows_beside_others) for source in sources)
        notes = [
            f"{own.n:,} of {source.n:,} rows of {task_name(source, i)} are used"
            for i, (own, source) in enumerate(zip(few, sources, strict=True))
            if own.n < source.n
        ]
        return JointPrior(model=self, sources=few, note="; ".join(notes))

    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior:
        canonical = self.coregion.coregional(params, len(sources) + 1)
        canonical.require(target.d)
        here = expanded(canonical, target.batch_shape, target.X.device)
        layer = _observe(here, sources, target, coregion=self.coregion, kernel=self.kernel)
        return TransferPosterior(layer, FitResult(Units.identity(target), params), target.y)
