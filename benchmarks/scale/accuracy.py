"""What is lost where not every row is in every fit: against the exact posterior, and in regret.

exact    the source's posterior at random points, against mean and variance of the dense formulas

             mean(x) = offset + k(x)ᵀ (K + σ² I)⁻¹ (y − offset)      var(x) = s² − k(x)ᵀ (K + σ² I)⁻¹ k(x)

         at the hyperparameters that were learnt. Errors are |mean − exact|/exact sd, and |sd/exact sd − 1|.
regret   runs on Hartmann-6 with a source of so many points; ``exact`` is SHGP whose hyperparameters were found
         with every row of the source in every evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.methods.method import Method, Proposer, Settings
from benchmarks.methods.model_method import ModelProposer
from benchmarks.problems.problem import Instance, stream
from benchmarks.problems.synthetic import HARTMANN6
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.runner import run_batch
from benchmarks.scale.tasks import draw_task
from headstart.data.dataset import Dataset
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import fit
from headstart.gp.hyperparameters import GPParams, Inputs
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky, solve_lower
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer
from headstart.models.family import SHGP
from headstart.models.sequential import SequentialPrior

_QUERIES = 1000
_SEEDS, _STEPS = 10, 15


def exact_posterior(
    kernel: Kernel, params: GPParams, data: Dataset, X: Float[Tensor, "m d"]
) -> tuple[Float[Tensor, "m"], Float[Tensor, "m"]]:
    """Mean and variance of f at X given all rows of the data, by the dense formulas."""
    K = params.outputscale * kernel(data.X, data.X, params.lengthscale)
    K.diagonal().add_(params.noise_var + (0.0 if data.error_var is None else data.error_var))
    L = cholesky(K, of="The covariance of the source")
    v = solve_lower(L, params.outputscale * kernel(data.X, X, params.lengthscale))
    z = solve_lower(L, (data.y - params.offset).unsqueeze(-1))
    return params.offset + (v * z).sum(-2), params.outputscale - v.square().sum(-2)


def errors(model: str, _: int, rows: int) -> Iterator[dict[str, Any]]:
    """The largest and typical errors of what is believed of a source, in units of the exact standard deviation."""
    assert model == "shgp"
    prior = SHGP.learn([draw_task(rows, "source 0")])
    assert isinstance(prior, SequentialPrior)
    queries = torch.rand(_QUERIES, HARTMANN6.d, generator=stream("scale", 0, "queries"), dtype=torch.float64)
    at = prior.below.at(queries)
    data = prior.units.inward(prior.sources[0])
    mean, var = exact_posterior(prior.model.kernel, prior.levels[0], data, queries)
    sd = var.sqrt()
    off = (at.mean - mean).abs() / sd
    wide = (prior.below.var(at).sqrt() / sd - 1).abs()
    yield {
        "mean_error": float(off.max()),
        "mean_error_rms": float(off.square().mean().sqrt()),
        "sd_error": float(wide.max()),
        "sd_error_rms": float(wide.square().mean().sqrt()),
    }


@dataclass(frozen=True)
class ExactMethod(Method):
    """SHGP with one source whose hyperparameters are those of all its rows."""

    name: str = "exact"

    def begin(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
        """Learn the source as always, then once more with all rows in every evaluation, and take that."""
        prior = settings.applied_to(SHGP).learn(instance.sources, seed=0)
        assert isinstance(prior, SequentialPrior)
        source, shape = prior.units.inward(prior.sources[0]), prior.sources[0].batch_shape
        model, P = prior.model, shape.numel()
        evidence = GaussianEvidence(
            source.X.reshape(P, source.n, source.d),
            source.y.reshape(P, source.n),
            None,
            kernel=model.kernel,
            residual=False,
            free_offset=True,
            inputs=Inputs.of(source.d, source.categories),
        )
        theta, report = fit(evidence, model.fit, seed=0, task="source", batch_shape=shape)
        params = evidence.params(theta.reshape(P, -1)).reshaped(shape)
        layer = Layer.observe(NoBeliefs(shape), params, source, kernel=model.kernel, propagation=model.propagation)
        exact = replace(prior, levels=(params,), below=layer.as_beliefs(), reports=(report,))
        return ModelProposer(exact, settings, instance, problem, seeds)


def regrets(model: str, _: int, rows: int) -> Iterator[dict[str, Any]]:
    """The regret after the last evaluation, run by run."""
    problem = SyntheticProblem(HARTMANN6, source_points=rows)
    settings = Settings(paper=False, acquisition="log_ei")
    chosen: Method | str = ExactMethod() if model == "exact" else model
    found: list[float] = []
    small = rows <= 40  # to load everything
    for seed in range(1 if small else _SEEDS):
        runs = run_batch(problem, chosen, [seed], steps=2 if small else _STEPS, settings=settings)
        found += [run.regret[-1] for run in runs]
        yield {"regret": sum(found) / len(found), "regrets": found}
