"""BoTorch's own loop: a process per outcome, and the acquisition function that belongs to what is asked.

    several objectives           qLogNEHVI, the reference point that of the thresholds, or inferred from the front of
                                 what was evaluated
    one objective, with limits   qLogNEI with constraints
    one objective, with rules    qLogNEI, optimised under the rules as linear constraints

Without a past the process is ``SingleTaskGP`` as it comes, after 2 (p + 1) Sobol points of p parameters, at most 8.
With a past it is ``MultiTaskGP`` as it comes over the rows of all sources and the target, each standardised on its own,
after 2 Sobol points (one result has no spread to standardise by); fitting begins at the last step's hyperparameters,
with at most 20 iterations, 100 the first time.
That is what Ax's transfer learning does with several metrics: a multi-task process for each.

On tables all free rows are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.outcomes.methods import Measured, Searcher, draws
from benchmarks.outcomes.problems import OutcomeInstance
from benchmarks.problems.problem import stream
from headstart.data.rules.rule import LinearRule, Relation
from headstart.decide.domain import Mixed
from headstart.decide.ruled.ruled import Ruled
from headstart.gp.threads import single_thread

_MOST_SOBOL, _FEW_SOBOL = 8, 2
_RESTARTS, _RAW_SAMPLES, _DRAWS = 4, 128, 128
_TOGETHER = 128
# Iterations of fitting a multi-task process, the first time and then: it is never done, and hardly gains any more
_FIRST_STEPS, _STEPS = 100, 20


class ProcessSearcher(Searcher):
    """BoTorch at work on one instance, with its sources or without."""

    def __init__(self, instance: OutcomeInstance, key: tuple[object, ...], *, past: bool) -> None:
        self.instance, self.key, self._past = instance, key, past
        domain = instance.domain
        wide = domain if isinstance(domain, Ruled) else Mixed(instance.space)
        n = _FEW_SOBOL if past else min(2 * (len(instance.space.axes) + 1), _MOST_SOBOL)
        self._start = wide.spread(n, stream(*key, "sobol"))
        self._fitted: dict[str, Any] = {}

    def next(self, X: Float[Tensor, "n d"], Y: Measured) -> Float[Tensor, "d"]:
        """A Sobol point, or the one where the acquisition function is highest."""
        if len(X) < len(self._start):
            return self._start[len(X)]
        # BoTorch draws from torch's own generator
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), single_thread():
            warnings.simplefilter("ignore")
            torch.manual_seed(draws(self.key, "multi-task" if self._past else "botorch", len(X)))
            value = self._acquisition(X, Y)
            return self._highest(value) if self.instance.rows is None else self._best_row(value, X)

    def _acquisition(self, X: Float[Tensor, "n d"], Y: Measured) -> Any:
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
        from botorch.acquisition.objective import GenericMCObjective
        from botorch.models.model_list_gp_regression import ModelListGP
        from botorch.sampling.normal import SobolQMCNormalSampler
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated

        outcomes, models, scaled, bounds, units = self.instance.outcomes, [], [], [], []
        for outcome in outcomes:
            # objectives are maximised, and limits are upper ones
            sign = outcome.sign if outcome in outcomes.limits else -outcome.sign
            model, y, (mean, scale) = self._process(outcome.name, X, Y[outcome.name], sign)
            models.append(model)
            scaled.append(y)
            units.append((mean, scale))
            if outcome in outcomes.limits:
                bounds.append((outcome.bound - mean) / scale)
        m = len(outcomes.goals)
        sampler = SobolQMCNormalSampler(torch.Size([_DRAWS]), seed=draws(self.key, "sampler", len(X)))
        if m > 1:
            values, ends = torch.stack(scaled[:m], dim=-1), [goal.reference for goal in outcomes.goals]
            inward = [(-end - mean) / scale for end, (mean, scale) in zip(ends, units, strict=False) if end is not None]
            agreed = torch.tensor(inward, dtype=torch.float64) if len(inward) == m else None
            return qLogNoisyExpectedHypervolumeImprovement(
                model=ModelListGP(*models),
                ref_point=infer_reference_point(values[is_non_dominated(values)]) if agreed is None else agreed,
                X_baseline=X,
                sampler=sampler,
                objective=IdentityMCMultiOutputObjective(outcomes=list(range(m))),
                prune_baseline=True,
            )
        limits: list[Callable[[Tensor], Tensor]] = [partial(_excess, 1 + i, bound) for i, bound in enumerate(bounds)]
        return qLogNoisyExpectedImprovement(
            model=models[0] if len(models) == 1 else ModelListGP(*models),
            X_baseline=X,
            sampler=sampler,
            objective=GenericMCObjective(_first),
            constraints=limits or None,
            prune_baseline=True,
        )

    def _process(
        self, name: str, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], sign: int
    ) -> tuple[Any, Float[Tensor, "n"], tuple[float, float]]:
        """The model of an outcome, the target's values as it has them, and by what these were moved and divided."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.models.multitask import MultiTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        if not self._past:
            model = SingleTaskGP(X, sign * y.unsqueeze(-1))
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            return model, sign * y, (0.0, 1.0)
        sources = self.instance.sources[name]
        tasks = [(source.X, _standardised(sign * source.y)[0]) for source in sources]
        own, mean, scale = _standardised(sign * y)
        tasks.append((X, own))
        rows = torch.cat([_with_task(inputs, i) for i, (inputs, _) in enumerate(tasks)])
        values = torch.cat([task for _, task in tasks]).unsqueeze(-1)
        model = MultiTaskGP(rows, values, task_feature=-1, output_tasks=[len(sources)], outcome_transform=None)
        most = _STEPS if name in self._fitted else _FIRST_STEPS
        if name in self._fitted:
            model.load_state_dict(self._fitted[name])
        likelihood = ExactMarginalLogLikelihood(model.likelihood, model)
        fit_gpytorch_mll(likelihood, optimizer_kwargs={"options": {"maxiter": most}})
        self._fitted[name] = model.state_dict()
        return model, own, (mean, scale)

    def _best_row(self, value: Any, X: Float[Tensor, "n d"]) -> Float[Tensor, "d"]:
        free = self.instance.free_rows(X)
        with torch.no_grad():
            values = torch.cat([value(part.unsqueeze(-2)) for part in free.split(_TOGETHER)])
        return free[values.argmax()]

    def _highest(self, value: Any) -> Float[Tensor, "d"]:
        from botorch.optim.optimize import optimize_acqf

        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, self.instance.space.d)
        x, _ = optimize_acqf(
            value, bounds=bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW_SAMPLES, **_linear(self.instance)
        )
        return x[0].detach()


def _linear(instance: OutcomeInstance) -> dict[str, Any]:
    """The rules as BoTorch's constraints, Σ c_i x_i ≥ b or = b; parameters go from 0 to 1, as their coordinates do."""
    domain = instance.domain
    assert isinstance(domain, Ruled)
    columns = {axis.name: axis.columns.start for axis in instance.space.axes}
    found: dict[str, Any] = {}
    for rule in domain.rules:
        assert isinstance(rule, LinearRule)
        kind = "equality_constraints" if rule.relation is Relation.EQUAL else "inequality_constraints"
        sign = -1.0 if rule.relation is Relation.AT_MOST else 1.0
        factors = torch.tensor([sign * factor for _, factor in rule.terms], dtype=torch.float64)
        index = torch.tensor([columns[name] for name, _ in rule.terms])
        found.setdefault(kind, []).append((index, factors, sign * rule.bound))
    return found


def _standardised(y: Float[Tensor, "n"]) -> tuple[Float[Tensor, "n"], float, float]:
    """Values of mean 0 and spread 1, and by what they were moved and divided: by 1 if they are all equal."""
    scale = float(y.std()) if len(y) > 1 else 1.0
    scale = scale if scale > 0 else 1.0
    mean = float(y.mean())
    return (y - mean) / scale, mean, scale


def _first(Z: Float[Tensor, "*b m"], X: Tensor | None = None) -> Float[Tensor, "*b"]:  # noqa: ARG001
    return Z[..., 0]


def _excess(outcome: int, bound: float, Z: Float[Tensor, "*b m"]) -> Float[Tensor, "*b"]:
    return Z[..., outcome] - bound


def _with_task(X: Float[Tensor, "n d"], task: int) -> Float[Tensor, "n d1"]:
    return torch.cat([X, X.new_full((len(X), 1), float(task))], dim=-1)
