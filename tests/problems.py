"""Small transfer problems, and hyperparameters for every model, for tests that need some and do not care which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

import numpy as np
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from tests.cases import with_slow
from torch import Tensor

from headstart import (
    AUTO,
    FAMILY,
    AutoParams,
    ChainParams,
    CoregionalParams,
    Dataset,
    EnsembleParams,
    GPParams,
    Kernel,
    StarParams,
    TransferModel,
    TransferPosterior,
    WeightedParams,
)
from headstart.data.units import OutputMap
from headstart.decide.acquisition import Acquisition
from headstart.decide.members import Members
from headstart.decide.value import AimValue
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.posterior import FitResult

__all__ = [
    "BY_LEVEL",
    "JOINT",
    "NAMES",
    "REPRESENTATIVES",
    "STARS",
    "TRANSFER",
    "VARIANTS",
    "Problem",
    "acquisition_of",
    "agree",
    "as_single_task_gp",
    "auto_posterior",
    "behind_the_map",
    "candidate",
    "coregional_params",
    "ensemble_params",
    "generator",
    "gp_params",
    "in_turn",
    "item_of",
    "most_probable",
    "params_for",
    "plainly",
    "points",
    "predictions",
    "quick",
    "star_params",
    "tensor",
    "tensors_in",
    "transfer_problem",
    "weighted_params",
]

_T = TypeVar("_T")

NAMES = tuple(FAMILY)
TRANSFER = tuple(name for name in NAMES if name != "GPBO")
JOINT = ("HGP", "WSGP", "MTKGP", "MTGP")
STARS = ("STAR", "SCAML", "MWSGP")
BY_LEVEL = ("MHGP", "SHGP", "BHGP", "RGPE", "TST-R", *STARS)  # every source is learnt on its own
# One model per mechanism: the others differ from one of these in the form of W or of a weight alone
REPRESENTATIVES = ("GPBO", "MHGP", "SHGP", "BHGP", "HGP", "WSGP", "MTGP", "RGPE", "STAR", "AUTO")


def in_turn(values: Iterable[_T], names: Sequence[str] = REPRESENTATIVES) -> list[Any]:
    """Cases of a model and a value: SHGP meets every value, each of the others one, in turn.

    AUTO, which is the slowest, meets the first and the last, and in ``make test-all`` the others too.
    """
    found = list(values)
    others = [(name, found[i % len(found)]) for i, name in enumerate(names) if name not in ("SHGP", "AUTO")]
    every = [(name, value) for name in ("SHGP", "AUTO") for value in found]
    ends = (("AUTO", found[0]), ("AUTO", found[-1]))
    return with_slow([*others, *every], quick=lambda case: case[0] != "AUTO" or case in ends)


def tensor(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def points(*shape: int, d: int = 2, seed: int) -> Tensor:
    """Somewhere in the unit cube."""
    return torch.rand(*shape, d, generator=generator(seed), dtype=torch.float64)


def quick(model: TransferModel, restarts: int = 1) -> TransferModel:
    """The same model with few restarts."""
    return model.using(fit=replace(model.fit, restarts=restarts))


def plainly(model: TransferModel) -> TransferModel:
    """The same model as exact formulas have it: RBF, values as they are, the most probable hyperparameters alone."""
    return model.using(kernel=Kernel.RBF, output_map=OutputMap.NONE, fit=replace(model.fit, draws=0))


def most_probable(model: TransferModel) -> TransferModel:
    """The same model with the most probable hyperparameters of the target alone, which can be read back."""
    return model.using(fit=replace(model.fit, draws=0))


VARIANTS = {
    "default": quick,
    "paper": lambda model: quick(model.paper()),
    "plain": lambda model: quick(plainly(model)),
}


@dataclass(frozen=True)
class Problem:
    """Sources, a target and points to predict at."""

    sources: tuple[Dataset, ...]
    target: Dataset
    Xq: Tensor

    def head(self, n: int) -> Dataset:
        """The first n observations of the target."""
        return self.target.head(n)

    def posterior(self, model: TransferModel, *, n: int | None = None, seed: int = 0) -> TransferPosterior:
        """Learnt from the sources, conditioned on the target or the head of it."""
        target = self.target if n is None else self.head(n)
        return model.learn(self.sources, seed=seed).condition(target, seed=seed)


def transfer_problem(
    *,
    sizes: tuple[int, ...] = (9, 6),
    n_target: int = 5,
    d: int = 2,
    n_queries: int = 7,
    batch_shape: tuple[int, ...] = (),
    seed: int = 0,
    scale: float = 1.0,
) -> Problem:
    """A wave, tilted a little more in every task; every problem of a batch has a phase of its own."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64)

    phase = uniform(*batch_shape, 1)

    def task(n: int, tilt: float) -> Dataset:
        X = uniform(*batch_shape, n, d)
        y = torch.sin(4 * X + phase.unsqueeze(-1)).sum(-1) + tilt * X[..., 0] + 0.02 * uniform(*batch_shape, n)
        return Dataset(X, scale * (1 + y))

    sources = tuple(task(n, 0.3 * i) for i, n in enumerate(sizes))
    return Problem(sources, task(n_target, 0.3 * len(sizes)), uniform(*batch_shape, n_queries, d))


def item_of(value: _T, index: int | tuple[int, ...]) -> _T:
    """One problem of a batch, out of anything that holds tensors with that batch in front."""
    picked: _T = _mapped(value, lambda t: t[index])
    return picked


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors that a value holds, in order."""
    found: list[Tensor] = []

    def note(t: Tensor) -> Tensor:
        found.append(t)
        return t

    _mapped(value, note)
    return iter(found)


def contents_of(value: Any, path: str = "", above: tuple[int, ...] = ()) -> dict[str, Any]:
    """Copies of all tensors, arrays, numbers and names that a value holds, however deep, by the way to them."""
    match value:
        case Tensor():
            return {path: value.clone()}
        case np.ndarray():
            return {path: torch.from_numpy(value.copy())}
        case None | bool() | int() | float() | str() | Enum() | type():
            return {path: value}
        case Mapping():
            parts = {f"{path}[{key!r}]": part for key, part in value.items()}
        case list() | tuple():
            parts = {f"{path}[{i}]": part for i, part in enumerate(value)}
        case _:
            slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
            names = [*getattr(value, "__dict__", ()), *(name for name in slots if hasattr(value, name))]
            parts = {f"{path}.{name}": getattr(value, name) for name in names}
    found: dict[str, Any] = {}
    if id(value) not in above:
        for way, part in parts.items():
            found |= contents_of(part, way, (*above, id(value)))
    return found


def _mapped(value: Any, function: Any) -> Any:
    match value:
        case Tensor():
            return function(value)
        case Dataset():
            error_var = None if value.error_var is None else function(value.error_var)
            batch, present = (None if t is None else function(t) for t in (value.batch, value.present))
            X, y = function(value.X), function(value.y)
            return Dataset(X, y, value.name, error_var=error_var, batch=batch, present=present)
        case tuple():
            return tuple(_mapped(v, function) for v in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{f.name: _mapped(getattr(value, f.name), function) for f in fields(value)})
    return value


def gp_params(d: int, *, batch_shape: tuple[int, ...] = (), seed: int = 0) -> GPParams:
    """One process with unremarkable hyperparameters."""
    generator = torch.Generator().manual_seed(seed)

    def between(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand((*batch_shape, *shape), generator=generator, dtype=torch.float64)

    return GPParams.of(
        lengthscale=between(0.3, 0.8, d),
        outputscale=between(0.5, 1.5),
        noise_var=between(0.01, 0.05),
        offset=between(-0.3, 0.3),
    )


def _numbers(value: object) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64)


def weighted_params(levels: Sequence[GPParams], weights: object) -> WeightedParams:
    """From numbers, sequences or tensors."""
    return WeightedParams(tuple(levels), _numbers(weights))


def ensemble_params(
    levels: Sequence[GPParams], weights: object, offsets: object = 0.0, scales: object = 1.0
) -> EnsembleParams:
    """From numbers, sequences or tensors; single offsets and scales are those of all tasks."""
    w = _numbers(weights)
    return EnsembleParams(tuple(levels), w, *(_for_each(value, w) for value in (offsets, scales)))


def star_params(
    levels: Sequence[GPParams], weights: object, weight_var: object = 0.0, own: object = 0.0, balance: object = 0.0
) -> StarParams:
    """From numbers, sequences or tensors; a single variance or share is that of all sources."""
    w = _numbers(weights)
    return StarParams(
        tuple(levels), w, _for_each(weight_var, w), _for_each(own, w), _numbers(balance).expand(*w.shape[:-1], 1)
    )


def coregional_params(*, lengthscale: object, W: object, noise_var: object, mean: object = 0.0) -> CoregionalParams:
    """From numbers, sequences or tensors; a single mean is that of all tasks."""
    noise = _numbers(noise_var)
    return CoregionalParams(_numbers(lengthscale), _numbers(W), noise, _for_each(mean, noise))


def _for_each(value: object, like: Tensor) -> Tensor:
    found = _numbers(value)
    return found if found.dim() else found.expand(like.shape)


def params_for(name: str, *, d: int = 2, n_sources: int = 2, batch_shape: tuple[int, ...] = (), seed: int = 0) -> Any:
    """Hyperparameters of the form that the model takes."""
    T = n_sources + 1
    levels = tuple(gp_params(d, batch_shape=batch_shape, seed=100 * seed + i) for i in range(T))
    noise_var = torch.stack([level.noise_var for level in levels], dim=-1)
    mean = torch.stack([level.offset for level in levels], dim=-1)
    match name:
        case "GPBO":
            return ChainParams(levels[-1:])
        case "WSGP":
            return weighted_params(levels, mean[..., :-1].abs() + 0.5)
        case "MTKGP" | "MTGP":
            V = 1 if name == "MTKGP" else T
            F = torch.eye(T, dtype=torch.float64) + 0.4 * noise_var.unsqueeze(-1) + 0.4
            W = torch.stack([(v + 1) / V * F @ F.mT for v in range(V)], dim=-3)
            ell = torch.stack([levels[v].lengthscale for v in range(V)], dim=-2)
            return coregional_params(lengthscale=ell, W=W, noise_var=noise_var, mean=mean)
        case "RGPE" | "TST-R":
            weights = mean.abs() + 0.2
            return ensemble_params(levels, weights / weights.sum(-1, keepdim=True), mean, 1 + noise_var)
        case "STAR" | "SCAML" | "MWSGP":  # offsets have both signs, and so have the weights
            own = noise_var[..., :-1]
            return star_params(levels, 3 * mean[..., :-1], 0.2 + own, own)
        case "AUTO":
            weights = mean.abs()[..., :1] + tensor([0.3, 0.2, 0.1, 0.4])
            plain = ChainParams(levels[-1:])
            star: StarParams = params_for("STAR", d=d, n_sources=n_sources, batch_shape=batch_shape, seed=seed)
            kin = replace(star, weights=star.weights + 0.5, balance=star.balance + 0.8)
            one = {name: getattr(kin, name)[..., :1] for name in ("weights", "weight_var", "own")}
            pooled = replace(kin, levels=(levels[0], levels[-1]), **one, doubt=star.weight_var)
            return AutoParams((kin, star, pooled, plain), weights / weights.sum(-1, keepdim=True))
    return ChainParams(levels)


def candidate(posterior: AutoPosterior, k: int) -> TransferPosterior:
    """A candidate of AUTO as a model of its own."""
    known, params = posterior._outcome, posterior.hyperparameters
    assert isinstance(params, AutoParams)
    outcome = FitResult(known.units, params.candidates[k], doubt=known.doubt, bounds=known.bounds, seen=known.seen)
    return TransferPosterior(posterior.mixture.members[k], outcome, posterior.train_targets, posterior.warp)


def auto_posterior(weights: object = None, n: int = 5, batch_shape: tuple[int, ...] = ()) -> AutoPosterior:
    """AUTO at the hyperparameters of ``params_for``, its candidates believed as given."""
    problem = transfer_problem(batch_shape=batch_shape)
    params = params_for("AUTO", batch_shape=batch_shape)
    if weights is not None:
        params = replace(params, weights=tensor(weights).expand(*batch_shape, 4))
    found = AUTO.at(params, sources=problem.sources, target=problem.head(n))
    assert isinstance(found, AutoPosterior)
    return found


def behind_the_map(posterior: TransferPosterior) -> TransferPosterior:
    """The same model for somebody behind its output map, where it is normal; without a map it is itself."""
    if posterior.warp is None:
        return posterior
    y = posterior.warp.task_inward(Dataset(posterior.train_inputs[0], posterior.train_targets)).y
    return type(posterior)(posterior.predictor, posterior._outcome, y)


def predictions(posterior: TransferPosterior, X: Tensor) -> Tensor:
    """Means and variances in one tensor."""
    return torch.stack(posterior.predict(X))


def agree(a: Tensor, b: Tensor, *, rtol: float, atol: float = 0.0) -> bool:
    """Whether two tensors of one shape agree relative to the largest entry."""
    return a.shape == b.shape and float((a - b).abs().max()) <= rtol * float(b.abs().max()) + atol


def acquisition_of(
    posterior: TransferPosterior, kind: Acquisition, X: Tensor | None = None, *, beta: float = 3.0
) -> AimValue:
    """The acquisition values of all members together, when the lowest mean at X (or where it was observed) is known."""
    own = Members.of(posterior.predictor)
    best = own.means(posterior.train_inputs[0] if X is None else X).amin()
    best_f = best.expand(len(own.functions), 1).numpy()
    return AimValue((own,), best_f, beta=beta if kind is Acquisition.LCB else None)


def as_single_task_gp(X: Tensor, y: Tensor, params: GPParams) -> SingleTaskGP:
    """BoTorch's model of the same process, Matérn-5/2 in two inputs, at these hyperparameters."""
    base = MaternKernel(nu=2.5, ard_num_dims=2).double()
    base.lengthscale = params.lengthscale
    covar = ScaleKernel(base).double()
    covar.outputscale = params.outputscale
    mean = ConstantMean().double()
    mean.constant = params.offset
    model = SingleTaskGP(X, y.unsqueeze(-1), covar_module=covar, mean_module=mean, outcome_transform=None)
    model.likelihood.noise = params.noise_var.reshape(1)
    return model.eval()
