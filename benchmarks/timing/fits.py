"""Fits and predictions against BoTorch's, side by side: ``python -m benchmarks time fits``.

Where both engines fit the same model from the same starts, the likelihoods they reach are compared as well: ``log p``
is how many nats ours is above the other's, the least and the median over the data sets.

The other's fits are plain BoTorch and GPyTorch, from the same starting points and inside the same bounds. Parameters
are optimised by ``fit_gpytorch_mll`` in their natural space with bounds, which is how BoTorch sets up its own models;
GPyTorch's older softplus parametrisation, which has no bounds and often needs fewer steps, is there as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from botorch.exceptions.warnings import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch import kernels
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from jaxtyping import Float
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from benchmarks.timing.measurement import Figures, Timing, take_turns
from headstart.data.dataset import Dataset
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Starts
from headstart.gp.kernels import Kernel
from headstart.models.family import SHGP
from headstart.models.sequential import SequentialPrior

D = 6
PAPER = FitOptions.paper()
NONE = torch.Size()
_ROWS = 10  # evaluations of an evidence at once


def fit_timings(*, quick: bool) -> Iterator[Timing]:
    """Everything that is timed; ``quick`` has small sizes and one data set of each."""
    # data sets of every size: few for the large ones, which keep BoTorch busy for most of a minute each
    sizes = {20: 1, 60: 1} if quick else {20: 12, 60: 12, 200: 5, 500: 2}
    sources = {60: 1} if quick else dict.fromkeys((60, 120, 250, 500), 12)
    yield from (Timing(f"GP fit, 10 restarts, n = {n}", partial(plain_fit, n, sets)) for n, sets in sizes.items())
    yield from (Timing(f"SHGP target of 20, N_s = {n}", partial(shgp_fit, n, sets)) for n, sets in sources.items())
    yield from (Timing(f"evidence, compiled, n = {n}", partial(compiled_evidence, n, 5)) for n in sizes)


# ── the same fits as BoTorch users do them ───────────────────────────────────────────────────────────────────────


def _interval(lower: float, upper: float, start: Tensor) -> Interval:
    return Interval(lower, upper, transform=None, initial_value=start)


def scaled_rbf(d: int) -> kernels.ScaleKernel:
    """An ARD RBF kernel with an outputscale, in the bounds of headstart.gp.hyperparameters."""
    base = kernels.RBFKernel(ard_num_dims=d, lengthscale_constraint=_interval(0.05, 20.0, torch.tensor(0.5)))
    return kernels.ScaleKernel(base, outputscale_constraint=_interval(0.01, 100.0, torch.tensor(1.0)))


class FixedCovariance(kernels.Kernel):  # type: ignore[misc]
    """A kernel plus a constant matrix on the training inputs: what SHGP's target inherits from its sources."""

    def __init__(self, kernel: kernels.Kernel, C: Float[Tensor, "n n"]) -> None:
        super().__init__()
        self.kernel, self.C = kernel, C

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Any:
        """kernel(x1, x2) + C."""
        K = self.kernel.forward(x1, x2, diag=diag, **params)
        K = K if isinstance(K, Tensor) else K.to_dense()
        return K + (self.C.diagonal() if diag else self.C)


def softplus_rbf(d: int) -> kernels.ScaleKernel:
    """The same kernel with GPyTorch's own defaults: every parameter is the softplus of a free one, no bounds."""
    return kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=d))


def single_task(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], covar_module: kernels.Kernel, *, softplus: bool = False
) -> SingleTaskGP:
    """A zero-mean exact GP with the given kernel and headstart's noise bounds, no priors."""
    noise = GreaterThan(1e-6) if softplus else _interval(1e-6, 1.0, torch.tensor(0.1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)  # inputs and outputs are scaled as headstart scales them
        return SingleTaskGP(
            X,
            y.unsqueeze(-1),
            likelihood=GaussianLikelihood(noise_constraint=noise),
            covar_module=covar_module,
            mean_module=ZeroMean(),
            outcome_transform=None,
        ).double()


def _fit(model: SingleTaskGP) -> float:
    """Maximise the marginal likelihood from where the model stands; log p(y) at the end."""
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # line searches that end early are BoTorch's business
        fit_gpytorch_mll(mll)
    model.train()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        return float(mll(model(*model.train_inputs), model.train_targets)) * len(model.train_targets)


def fit_from_starts(
    make: Callable[[], SingleTaskGP], set_start: Callable[[SingleTaskGP, Tensor], None], starts: Tensor
) -> float:
    """One ``fit_gpytorch_mll`` after the other; the best log p(y)."""
    best = -float("inf")
    for start in starts:
        model = make()
        set_start(model, start)
        best = max(best, _fit(model))
    return best


def fit_default(X: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> float:
    """BoTorch's own default: ``SingleTaskGP`` with its priors, one fit. (Its evidence is of another model.)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        return _fit(SingleTaskGP(X, y.unsqueeze(-1)))


# ── side by side ─────────────────────────────────────────────────────────────────────────────────────────────────


def _with_likelihoods(milliseconds: dict[str, float], ours: list[float], theirs: list[float]) -> Figures:
    """The times, and how far our log p(y) is above the other's on the same data sets."""
    gains = [a - b for a, b in zip(ours, theirs, strict=True)]
    reached = {"log p, least": min(gains), "log p, median": median(gains)}
    return {name: {"ms": value, **(reached if name == "headstart" else {})} for name, value in milliseconds.items()}


def smooth_data(n: int, generator: torch.Generator, shift: float = 0.0) -> Dataset:
    """A smooth function of six inputs with a tenth of noise, standardised."""
    X = torch.rand(n, D, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * X + shift).sum(-1) + X[:, 0] * X[:, 1] + 0.1 * torch.randn(n, generator=generator).double()
    return Dataset(X, (y - y.mean()) / y.std())


def _set_gp(model: Any, theta: Tensor) -> None:
    """θ = [log lengthscale, log outputscale, log noise] into a rival."""
    kernel = model.covar_module
    kernel = kernel.kernel if isinstance(kernel, FixedCovariance) else kernel
    kernel.base_kernel.lengthscale = theta[:D].exp()
    kernel.outputscale = theta[D].exp()
    model.likelihood.noise = theta[D + 1].exp()


def over_data_sets(
    engines: Callable[[int], dict[str, Callable[[], Any]]], n_sets: int
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Median milliseconds over data sets 0, 1, …, one turn of every engine on each, and all results.

    How many steps a fit takes depends on its data: one data set more often says more than one more repetition.
    """
    turns = [take_turns(engines(i), 1) for i in range(n_sets)]
    names = turns[0][0]
    return {name: median(times[name] for times, _ in turns) for name in names}, [results for _, results in turns]


def _evidence(X: Tensor, y: Tensor, kernel: Kernel = Kernel.RBF) -> GaussianEvidence:
    return GaussianEvidence(X[None], y[None], None, kernel=kernel, residual=False, free_offset=False)


def plain_fit(n: int, n_sets: int) -> Figures:
    """Ten restarts of a plain GP."""

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        data = smooth_data(n, torch.Generator().manual_seed(n + 1000 * i))
        evidence = _evidence(data.X, data.y)
        starts = evidence.layout.starts(Starts.SOFTPLUS, PAPER.restarts, torch.Generator().manual_seed(0))
        return {
            "headstart": lambda: fit(evidence, PAPER, seed=0, task="", batch_shape=NONE)[1],
            "botorch": lambda: fit_from_starts(lambda: single_task(data.X, data.y, scaled_rbf(D)), _set_gp, starts),
            "botorch, softplus": lambda: fit_from_starts(
                lambda: single_task(data.X, data.y, softplus_rbf(D), softplus=True), _set_gp, starts
            ),
            "botorch default, 1 fit": lambda: fit_default(data.X, data.y),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    reached = [-n * float(r["headstart"].objective.min()) for r in results]
    return _with_likelihoods(milliseconds, reached, [r["botorch"] for r in results])


def shgp_fit(n_source: int, n_sets: int) -> Figures:
    """The target of SHGP: everything ``condition`` does, against BoTorch's fit of the same target evidence alone."""
    model = SHGP.paper().using(fit=PAPER)

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        generator = torch.Generator().manual_seed(n_source + 1000 * i)
        quick = model.using(fit=replace(PAPER, restarts=1)).learn([smooth_data(n_source, generator)])
        assert isinstance(quick, SequentialPrior)
        prior = replace(quick, model=model)
        target = smooth_data(20, generator, 0.3)
        at = prior.below.at(target.X)
        residual = target.y - at.mean
        scale = residual.std(correction=0)
        y, C = (residual - residual.mean()) / scale, prior.below.cov(at, at) / scale**2
        evidence = GaussianEvidence(
            target.X[None], y[None], C[None], kernel=Kernel.RBF, residual=False, free_offset=False
        )
        starts = evidence.layout.starts(Starts.SOFTPLUS, PAPER.restarts, torch.Generator().manual_seed(0))
        return {
            "headstart": lambda: prior.condition(target, seed=0).fit_reports[-1],
            "botorch": lambda: fit_from_starts(
                lambda: single_task(target.X, y, FixedCovariance(scaled_rbf(D), C)),
                _set_gp,
                starts,
            ),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    ours = [-20 * float(r["headstart"].objective.min()) for r in results]
    return _with_likelihoods(milliseconds, ours, [r["botorch"] for r in results])


def compiled_evidence(n: int, rounds: int) -> Figures:
    """One batch of ten evaluations of a plain evidence and its gradient: compiled, and with torch."""
    data = smooth_data(n, torch.Generator().manual_seed(n))
    evidence = _evidence(data.X, data.y, Kernel.MATERN52)
    theta = evidence.layout.starts(Starts.PRIOR, _ROWS, torch.Generator().manual_seed(0))
    items, repeats = torch.zeros(_ROWS, dtype=torch.int64), max(1, 20_000 // n**2)

    def repeated(evaluate: Callable[..., Any]) -> Any:
        with torch.inference_mode():
            return [evaluate(theta, items) for _ in range(repeats)][-1]

    milliseconds, _ = take_turns(
        {
            "headstart": lambda: repeated(evidence.evaluate),
            "torch": lambda: repeated(evidence.evaluate_by_torch),
        },
        rounds,
    )
    return {name: {"ms": value / repeats} for name, value in milliseconds.items()}
