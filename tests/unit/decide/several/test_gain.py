"""What a point is expected to add, where the limits hold: the formula against samples and against BoTorch."""

from __future__ import annotations

from dataclasses import replace

import gpytorch
import pytest
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.utils.multi_objective.box_decompositions.non_dominated import NondominatedPartitioning
from tests.problems import as_single_task_gp, generator, gp_params, points, tensor

from headstart import GPBO, ChainParams, Dataset, GPParams, TransferPosterior
from headstart.decide.acquisition import MARGIN, Acquisition, acquisition_values
from headstart.decide.front import Cells
from headstart.decide.several.gain import Seen, log_gain, log_mean, log_within
from headstart.decide.several.members import Heard, Panel
from headstart.decide.several.value import SeveralValue

N = 4


def _seen(k: int, q: int, seed: int, noise: float = 0.04) -> Seen:
    g = generator(seed)
    mean = torch.randn(k, q, N, generator=g, dtype=torch.float64)
    var = 0.1 + torch.rand(k, N, generator=g, dtype=torch.float64)
    weights = torch.rand(k, generator=g, dtype=torch.float64)
    return Seen(mean, var, torch.full((k,), noise, dtype=torch.float64), (weights / weights.sum()).log())


def _sampled(seen: Seen, n: int, seed: int, *, measured: bool) -> torch.Tensor:
    """Draws (n, points) of what the mean will be once measured, or of a measurement itself."""
    g = generator(seed)
    which = torch.multinomial(seen.log_weights.exp(), n, replacement=True, generator=g)
    noise = seen.noise_var.unsqueeze(-1)
    var = seen.var + noise if measured else seen.var.square() / (seen.var + noise)
    e = torch.randn(n, N, generator=g, dtype=torch.float64)
    return seen.mean[which, 0] + (0.0 if measured else MARGIN) * noise.sqrt()[which] + var.sqrt()[which] * e


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("n_limits", [0, 2])
def test_the_value_is_the_mean_over_all_that_may_happen(m: int, n_limits: int) -> None:
    """Improvement of every member of every objective, times whether measurements are within the limits."""
    goals, limits = [_seen(3, 1, i) for i in range(m)], [_seen(2, 1, 7 + i) for i in range(n_limits)]
    front = tensor([[0.2, -0.3, 0.1], [-0.4, 0.3, 0.2], [0.0, 0.0, -0.5]])[:, :m]
    reference, bounds = tensor([1.0, 1.2, 0.9][:m]), tensor([0.3, -0.2])
    value = log_gain(goals, Cells.beyond([front], reference))
    for own, bound in zip(limits, bounds, strict=False):
        value = value + log_within(own, bound)

    n = 200_000
    y = torch.stack([_sampled(own, n, i, measured=False) for i, own in enumerate(goals)], dim=-1)
    cells = Cells.beyond([front], reference)
    added = torch.zeros(n, N, dtype=torch.float64)
    for c in range(cells.there.shape[1]):
        part = torch.ones(n, N, dtype=torch.float64)
        for i in range(m):
            low = cells.levels[i, 0, cells.lower[i, 0, c]] if cells.lower[i, 0, c] >= 0 else tensor(-torch.inf)
            part = part * (cells.levels[i, 0, cells.upper[i, 0, c]] - torch.maximum(y[..., i], low)).clamp_min(0.0)
        added += part
    for j, (own, bound) in enumerate(zip(limits, bounds, strict=False)):
        added = added * (_sampled(own, n, 50 + j, measured=True) <= bound)
    error = added.std(0) / n**0.5
    assert bool(((log_mean(value).exp() - added.mean(0)).abs() < 5 * error + 1e-12).all())


def test_for_one_objective_without_limits_it_is_expected_improvement() -> None:
    """That of decide.acquisition, to the last digits."""
    seen = _seen(1, 1, 0)
    best = tensor(0.1)
    expected = acquisition_values(
        Acquisition.LOG_EI, seen.mean[0, 0], seen.var[0], best_f=best, noise_var=seen.noise_var[0]
    )
    torch.testing.assert_close(log_gain([seen], Cells.below(best.reshape(1)))[0], expected, rtol=1e-13, atol=0)


def test_draws_are_averaged_before_the_logarithm_is_taken() -> None:
    """Each with a front of its own, however many cells the others have."""
    goals = [_seen(2, 3, i) for i in range(2)]
    reference, fronts = tensor([1.0, 1.0]), [torch.randn(n, 2, generator=generator(n)).double() for n in (0, 1, 5)]
    together = log_mean(log_gain(goals, Cells.beyond(fronts, reference)))
    each = [
        log_gain([replace(own, mean=own.mean[:, q : q + 1]) for own in goals], Cells.beyond([front], reference))[0]
        for q, front in enumerate(fronts)
    ]
    torch.testing.assert_close(together.exp(), torch.stack(each).exp().mean(0), rtol=1e-12, atol=0)


def test_far_from_anything_good_the_value_still_has_a_slope() -> None:
    """Where the improvement itself is 0 to all digits, its logarithm and the gradient of that are finite."""
    mean = torch.full((1, 1, 1), 60.0, dtype=torch.float64).requires_grad_()
    var, weights = tensor([[0.5]]), tensor([0.0])
    seen = Seen(mean, var, tensor([0.01]), weights)
    front = tensor([[0.2, -0.3], [-0.4, 0.3]])
    value = log_gain([seen, seen], Cells.beyond([front], tensor([1.0, 1.0]))) + log_within(seen, tensor(0.0))
    (slope,) = torch.autograd.grad(value.sum(), mean)
    assert value.item() < -5000
    assert -torch.inf < slope.item() < 0


# ── against BoTorch, at equal hyperparameters ─────────────────────────────────────────────────────────────────────


def _params(seed: int, *, sign: float = 1.0) -> GPParams:
    found = gp_params(2, seed=seed)
    return replace(found, noise_var=tensor(1e-5), offset=sign * found.offset)


def _ours(X: torch.Tensor, y: torch.Tensor, params: GPParams) -> TransferPosterior:
    return GPBO.at(ChainParams((params,)), target=Dataset(X, y))


def _quiet(panel: Panel) -> Panel:
    """Without noise, as BoTorch's formulas are."""
    return replace(panel, noise_var=torch.zeros_like(panel.noise_var))


X_SEEN, X_NEW = points(6, seed=0), points(9, seed=1)
Y_SEEN = torch.stack([torch.sin(5 * X_SEEN).sum(-1), (X_SEEN - 0.4).square().sum(-1) * 4, X_SEEN[:, 0]], dim=-1)


@pytest.mark.parametrize(("at_least", "sign"), [(False, 1), (True, -1)], ids=["at most", "at least"])
@pytest.mark.parametrize("maximize", [False, True])
def test_improvement_times_probability_is_botorchs(maximize: bool, at_least: bool, sign: int) -> None:
    """``LogConstrainedExpectedImprovement`` of two ``SingleTaskGP``; signs are turned here, and only here."""
    turn, limit = (-1 if maximize else 1), 0.6
    objective, limited = Y_SEEN[:, 0], Y_SEEN[:, 1]
    theirs = ModelListGP(
        as_single_task_gp(X_SEEN, objective, _params(0)), as_single_task_gp(X_SEEN, limited, _params(1))
    )
    best = objective.max() if maximize else objective.min()
    function = LogConstrainedExpectedImprovement(
        theirs,
        best_f=best,
        objective_index=0,
        constraints={1: (limit, None) if at_least else (None, limit)},
        maximize=maximize,
    )
    ours = (
        _ours(X_SEEN, turn * objective, _params(0, sign=turn)),
        _ours(X_SEEN, sign * limited, _params(1, sign=sign)),
    )
    goal, within = (_quiet(Panel.of(Heard.of(posterior.predictor))) for posterior in ours)
    value = SeveralValue((goal,), Cells.below((turn * best).reshape(1)), (within,), (tensor(sign * limit),))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        torch.testing.assert_close(value(X_NEW), function(X_NEW.unsqueeze(-2)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("maximize", [False, True])
def test_hypervolume_improvement_is_botorchs(m: int, maximize: bool) -> None:
    """``ExpectedHypervolumeImprovement`` of two or three processes, to be maximised; the first may be turned."""
    signs = [1.0 if maximize else -1.0, *[-1.0] * (m - 1)]  # what BoTorch is given
    reference = tensor([2.5 if not maximize else 0.0, 3.0, 1.1])[:m]
    theirs = ModelListGP(
        *(as_single_task_gp(X_SEEN, s * Y_SEEN[:, i], _params(i, sign=s)) for i, s in enumerate(signs))
    )
    inward = -torch.stack([s * Y_SEEN[:, i] for i, s in enumerate(signs)], dim=-1)
    partitioning = NondominatedPartitioning(-reference, -inward)
    function = ExpectedHypervolumeImprovement(theirs, (-reference).tolist(), partitioning)
    panels = []
    for i, s in enumerate(signs):
        posterior = _ours(X_SEEN, inward[:, i], _params(i, sign=-s))
        panels.append(_quiet(Panel.of(Heard.of(posterior.predictor))))
    value = SeveralValue(tuple(panels), Cells.beyond([inward], reference))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        expected = function(X_NEW.unsqueeze(-2))
    torch.testing.assert_close(value(X_NEW).exp(), expected, rtol=1e-5, atol=1e-8)
    assert float(expected.max()) > 1e-3
