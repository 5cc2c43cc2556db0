"""Models trained on all data at once: HGP, WSGP, MTKGP and MTGP. Only the choice of W differs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from headstart.data.dataset import Dataset, error_vars, task_name
from headstart.data.thinning import representative
from headstart.data.units import OutputUnits, Units
from headstart.gp.fit import Objective, Seed, fit
from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.beliefs import CrossTerm, ExactBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.joint.coregion import Coregion, WeightedSource
from headstart.models.joint.evidence import ArrowEvidence, DenseEvidence, JointEvidence
from headstart.models.learning import LearnContext
from headstart.models.model import Prior, TransferModel
from headstart.models.params import CoregionalParams, ModelParams, expanded, rescaled
from headstart.models.posterior import FitResult, TransferPosterior
from headstart.tuning import PLAIN_TUNING


def believe_sources(
    params: CoregionalParams, sources: Sequence[Dataset], *, like: Dataset, coregion: Coregion, kernel: Kernel
) -> ExactBeliefs:
    """The joint process conditioned on the sources: what it says about the target before the target's own data.

    Without sources (``like`` says where and how many inputs) that is the prior.
    """
    T = len(sources) + 1
    V = params.W.shape[-3]
    X = torch.cat([like.X[..., :0, :], *(source.X for source in sources)], dim=-2)
    y = torch.cat([like.y[..., :0], *(source.y for source in sources)], dim=-1)
    starts = [0]
    for source in sources:
        starts.append(starts[-1] + source.n)
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
    return Layer.observe(below, nothing, target, kernel=kernel, propagation=Propagation.EXACT)


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
