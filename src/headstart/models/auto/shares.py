"""Shares of the tasks in a prediction: how far the data of each source, and of the target, move it.

The share of a task is how far its data move the prediction at a point, in nats, at the same hyperparameters:

    KL(N(μ', σ'²) ‖ N(μ, σ²)) = ½ ((σ'² + (μ' − μ)²)/σ² − 1 − log σ'²/σ²)

from without to with the data; half of it as the only task that has any, half as the last one to come, when the others
are in the prediction already. So two sources with equal data share alike, and one of noise has no share. Of a mixture
such as AUTO it is the mean over the candidates by their weights. A smaller variance alone would not do: where a source
shows high or low values, a weight that is uncertain makes the target uncertain, too.

At a star's hyperparameters a source that is left out is its prior: its shape m_ν − offset_ν is 0, its Σ_ν is k_ν. With
h_ν = 1 where source ν is heard and 0 where it is left out, c_ν = mean_ν² + var(w_ν), and v_ν = L_ν⁻¹ k_ν(X_ν, ·),

    prior mean    Σ h_ν mean_ν (m_ν − offset_ν)
    prior cov     Σ (c_ν + own_ν) k_ν + k_t − Σ h_ν c_ν v_νᵀ v_ν + Uᵀ U        U = Rᵀ of the h_ν (m_ν − offset_ν)

so that terms with a source's data are worked out once for all cases, and a case costs O(s N_t² + N_t³).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Predictor
from headstart.models.model import Prior, TransferModel, observed
from headstart.models.params import AutoParams, ModelParams
from headstart.models.posterior import TransferPosterior
from headstart.models.star.star import Star
from headstart.models.star.weights import StarBeliefs

_FAR = 1e3  # a coordinate so far off that nothing there is related to the unit cube
_LEAST = 1e-12  # of a variance is rounding


def shares(prior: Prior, posterior: TransferPosterior, X: Float[Tensor, "m d"]) -> Float[Tensor, "m k"]:
    """The share of every source and (last) of the target's own data in the predictions at X; rows sum to 1.

    ``posterior`` is the prior conditioned on the target's data. Where no task moves a prediction, all is the
    target's.
    """
    target = prior.inward(observed(posterior))
    tasks = (*prior.sources, target)
    k = len(tasks)
    gains = torch.zeros(len(X), k, dtype=torch.float64)
    if k > 1:
        alone = torch.eye(k, dtype=torch.bool)
        nothing, everything = torch.zeros(1, k, dtype=torch.bool), torch.ones(1, k, dtype=torch.bool)
        cases = torch.cat([nothing, everything, alone, ~alone])  # the tasks whose data are used
        for believed, mean, var in _predicted(prior, posterior, tasks, X, cases):
            first = gained(mean[2 : k + 2], var[2 : k + 2], mean[:1], var[:1])
            last = gained(mean[1:2], var[1:2], mean[k + 2 :], var[k + 2 :])
            gains += 0.5 * believed * (first + last).mT
        gains[:, [task.n == 0 for task in tasks]] = 0.0
    total = gains.sum(-1, keepdim=True)
    own = torch.zeros_like(gains)
    own[:, -1] = 1.0
    return torch.where(total > 0, gains / torch.where(total > 0, total, 1.0), own)


def gained(
    mean: Float[Tensor, "*#k m"],
    var: Float[Tensor, "*#k m"],
    mean_0: Float[Tensor, "*#k m"],
    var_0: Float[Tensor, "*#k m"],
) -> Float[Tensor, "*#k m"]:
    """KL(N(mean, var) ‖ N(mean_0, var_0)): the information gained from the second to the first, in nats."""
    var = torch.maximum(var, _LEAST * var_0)
    kl = 0.5 * ((var + (mean - mean_0).square()) / var_0 - 1 - (var / var_0).log())
    return torch.where(kl > _LEAST, kl, 0.0)


def _predicted(
    prior: Prior,
    posterior: TransferPosterior,
    tasks: Sequence[Dataset],
    X: Float[Tensor, "m d"],
    heard: Bool[Tensor, "c k"],
) -> Iterator[tuple[float, Float[Tensor, "c m"], Float[Tensor, "c m"]]]:
    """The weight of every candidate, and its means and variances at X, in its own units, given some tasks' data."""
    params = posterior.hyperparameters
    each: Sequence[tuple[float, TransferModel, ModelParams, Predictor]]
    if isinstance(prior, AutoPrior) and isinstance(posterior, AutoPosterior) and isinstance(params, AutoParams):
        models = [one.model for one in prior.priors]
        each = [*zip(posterior.weights.tolist(), models, params.candidates, posterior.mixture.members, strict=True)]
    else:
        each = [(1.0, prior.model, params, posterior.predictor)]
    with torch.no_grad():
        for believed, model, own, predictor in each:
            pooled = isinstance(model, Star) and model.pooled
            if isinstance(predictor, Layer) and isinstance(predictor.below, StarBeliefs) and not pooled:
                yield believed, *predict_heard(predictor, X, heard)
            else:
                yield believed, *_case_by_case(model, own, tasks, X, heard)


def _case_by_case(
    model: TransferModel,
    params: ModelParams,
    tasks: Sequence[Dataset],
    X: Float[Tensor, "m d"],
    heard: Bool[Tensor, "c k"],
) -> tuple[Float[Tensor, "c m"], Float[Tensor, "c m"]]:
    """The model at these hyperparameters, given the data of the tasks that are heard."""
    silent = [*(_silenced(task) for task in tasks[:-1]), tasks[-1].head(0)]
    known: dict[tuple[bool, ...], tuple[Tensor, Tensor]] = {}
    cases = [tuple(case if model.needs_sources else case[-1:]) for case in heard.tolist()]
    for case in cases:
        if case not in known:
            *sources, target = (
                task if told else nothing
                for told, task, nothing in zip(case, tasks[-len(case) :], silent[-len(case) :], strict=True)
            )
            known[case] = model.at(params, sources=sources, target=target).predict(X)
    mean, var = (torch.stack(parts) for parts in zip(*(known[case] for case in cases), strict=True))
    return mean, var


def _silenced(task: Dataset) -> Dataset:
    """The task with a single observation, too far away to matter in the unit cube."""
    X = torch.full((1, task.d), _FAR, dtype=torch.float64)
    return Dataset(X, torch.zeros(1, dtype=torch.float64), task.name, unseen=task.unseen)


def predict_heard(
    layer: Layer, X: Float[Tensor, "m d"], heard: Bool[Tensor, "c k"]
) -> tuple[Float[Tensor, "c m"], Float[Tensor, "c m"]]:
    """Mean and variance of f at X under a star: ``heard`` says which sources, and last if the target, have data."""
    below = layer.below
    assert isinstance(below, StarBeliefs)
    selected = range(len(below.members)) if below.index is None else below.index
    # cases that differ in sources that are not selected are worked out once
    heard, case = heard[:, [*selected, -1]].unique(dim=0, return_inverse=True)
    weights, n = below.weights, layer.X.shape[-2]
    h = heard[:, :-1].to(X)
    at = [member.at(torch.cat([layer.X, X])) for member in below.members]
    shapes = torch.stack([a.mean - member.offset for a, member in zip(at, below.members, strict=True)])
    sizes = (weights.mean.square() + weights.marginal_var).sqrt().unbind(-1)
    v = [size * a.v for size, a in zip(sizes, at, strict=True) if a.v is not None]  # √c_ν v_ν
    mean = h @ (weights.mean.unsqueeze(-1) * shapes)
    u = weights.balanced(h.unsqueeze(-1) * (weights.var.sqrt().unsqueeze(-1) * shapes))
    mean_x, u_x, u_t = mean[:, n:] + layer.params.offset, u[..., n:], u[..., :n]
    known_x = torch.stack([own[:, n:].square().sum(-2) for own in v])
    var_x = layer.params.outputscale + below.prior_var() - h @ known_x + u_x.square().sum(-2)
    if n == 0:
        return mean_x[case], var_x[case]

    def cov(b: slice, u_b: Float[Tensor, "c s _"]) -> Float[Tensor, "c n _"]:
        """Between the target's rows and those of b."""
        known = torch.stack([own[:, :n].mT @ own[:, b] for own in v])
        before = layer.gain_cov(_bare(layer.X), _bare(at[0].X[b]))
        between: Tensor = before - (h @ known.flatten(1)).unflatten(-1, known.shape[1:]) + u_t.mT @ u_b
        return between

    K = cov(slice(n), u_t) + layer.noise_cov
    L = cholesky(K, of="The covariance of the observations")
    y = layer.at.mean + layer.params.offset + (layer.L @ layer.z.unsqueeze(-1)).squeeze(-1)
    z = solve_lower(L, (y - mean[:, :n] - layer.params.offset).unsqueeze(-1))
    moved = solve_lower(L, cov(slice(n, None), u_x))
    told = heard[:, -1:]
    mean_x, var_x = mean_x + told * (z.mT @ moved).squeeze(-2), var_x - told * moved.square().sum(-2)
    return mean_x[case], var_x[case]


def _bare(X: Float[Tensor, "m d"]) -> BeliefsAt:
    """Points at which nothing was learnt."""
    return BeliefsAt(X, torch.zeros_like(X[..., 0]))
