"""The acquisition value over outcomes, members and draws: against samples, BoTorch and finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gpytorch
import numpy as np
import pytest
import torch
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.multi_objective.analytic import ExpectedHypervolumeImprovement
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.utils.multi_objective.box_decompositions.non_dominated import (
    FastNondominatedPartitioning,
    NondominatedPartitioning,
)
from tests.outcome_problems import LIMITED, TWO, known
from tests.problems import acquisition_of, as_single_task_gp, auto_posterior, generator, gp_params, points, tensor

from headstart import GPBO, ChainParams, Dataset, GPParams, InputError, TransferPosterior
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.acquisition import Acquisition
from headstart.decide.aim import Aim
from headstart.decide.front import Cells
from headstart.decide.members import ByAutograd, Members
from headstart.decide.value import AimValue
from headstart.models.outcomes import OutcomePosteriors
from headstart.tuning import PLAIN_TUNING

N = 4
X0 = torch.zeros(N, 1, dtype=torch.float64)


ANY = Members.of(auto_posterior([0.25] * 4).predictor)


def fixed(mean: np.ndarray, var: np.ndarray) -> ByAutograd:
    """A member with these means and variances at X0, and a slope of one."""
    at = torch.from_numpy(mean), torch.from_numpy(var)
    return ByAutograd(lambda X: (at[0] + X[:, 0], at[1] + X[:, 0]), torch.device("cpu"))


def members(functions: Sequence[ByAutograd], weights: np.ndarray, noise: float, floor: float | None = None) -> Members:
    return replace(
        ANY, functions=tuple(functions), weights=weights, noise_var=np.full(len(weights), noise), floor=floor
    )


def outcome(k: int, q: int, seed: int, noise: float = 0.04, floor: float | None = None) -> Members:
    g = generator(seed)
    mean = torch.randn(k, q, N, generator=g, dtype=torch.float64).numpy()
    var = (0.1 + torch.rand(k, N, generator=g, dtype=torch.float64)).numpy()
    weights = torch.rand(k, generator=g, dtype=torch.float64).numpy()
    return members([fixed(m, v) for m, v in zip(mean, var, strict=True)], weights / weights.sum(), noise, floor)


def sampled(own: Members, n: int, seed: int, *, measured: bool) -> torch.Tensor:
    """Draws (n, points) of the mean once it is measured, or of a measurement itself."""
    g, (mean, var) = generator(seed), map(torch.from_numpy, own.predict(X0.numpy()))
    which = torch.multinomial(torch.from_numpy(own.weights), n, replacement=True, generator=g)
    noise = torch.from_numpy(own.noise_var).unsqueeze(-1)
    var = var + noise if measured else var.square() / (var + noise)
    e = torch.randn(n, N, generator=g, dtype=torch.float64)
    margin = 0.0 if measured else PLAIN_TUNING.improvement_margin
    found = mean[which, 0] + margin * noise.sqrt()[which] + var.sqrt()[which] * e
    return found if own.floor is None else found.clamp_min(own.floor - 1e-3)


def value_of(goals: list[Members], fronts: list[torch.Tensor], reference: torch.Tensor) -> AimValue:
    if len(goals) > 1:
        return AimValue(tuple(goals), cells=Cells.beyond(fronts, reference, [torch.clone] * len(goals)))
    best = np.array([min([*front[:, 0].tolist(), float(reference)]) for front in fronts])
    return AimValue(tuple(goals), np.broadcast_to(best, (len(goals[0].functions), len(best))))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("n_limits", [0, 2])
def test_the_value_is_the_mean_over_all_that_may_happen(m: int, n_limits: int) -> None:
    """Improvement of every member of every objective, times whether measurements are within a limit and a range."""
    goals = [outcome(3, 1, i, floor=-0.6 if i == 0 else None) for i in range(m)]
    limits = tuple((outcome(2, 1, 7 + i), ends) for i, ends in enumerate(((-np.inf, 0.3), (-0.2, 0.4))[:n_limits]))
    front = tensor([[0.2, -0.3, 0.1, 0.0], [-0.4, 0.3, 0.2, 0.3], [0.0, 0.0, -0.5, -0.1]])[:, :m]
    reference = tensor([1.0, 1.2, 0.9, 1.1][:m])
    value = replace(value_of(goals, [front], reference), limits=limits)

    n = 200_000
    y = torch.stack([sampled(own, n, i, measured=False) for i, own in enumerate(goals)], dim=-1)
    bounds = torch.stack([-front.amin().reshape(1, 1), tensor([[torch.inf]])])
    if m > 1:
        bounds = FastNondominatedPartitioning(ref_point=-reference, Y=-front).get_hypercell_bounds()
    added = torch.zeros(n, N, dtype=torch.float64)
    for low, high in zip(-bounds[1], -bounds[0], strict=True):
        added += (high - torch.maximum(y, low)).clamp_min(0.0).prod(-1)
    for j, (own, (low, high)) in enumerate(limits):
        y = sampled(own, n, 50 + j, measured=True)
        added = added * (low <= y) * (y <= high)
    assert bool(((value(X0).exp() - added.mean(0)).abs() < 5 * added.std(0) / n**0.5 + 1e-12).all())


@pytest.mark.parametrize("m", [1, 2])
def test_draws_are_averaged_before_the_logarithm_is_taken(m: int) -> None:
    """Each with a front of its own, however many cells the others have."""
    goals = [outcome(2, 3, i) for i in range(m)]
    reference, fronts = tensor([1.0] * m), [torch.randn(n, m, generator=generator(n)).double() for n in (0, 1, 5)]
    together = value_of(goals, fronts, reference)(X0)
    each = []
    for q, front in enumerate(fronts):
        own = []
        for goal in goals:
            mean, var = goal.predict(X0.numpy())
            own.append(replace(goal, functions=tuple(fixed(m[q : q + 1], v) for m, v in zip(mean, var, strict=True))))
        each.append(value_of(own, [front], reference)(X0))
    torch.testing.assert_close(together.exp(), torch.stack(each).exp().mean(0), rtol=1e-12, atol=0)


def test_a_bound_is_averaged_as_it_is_and_limits_count_beside_it() -> None:
    """Σ w (β sd − mean), plus the logarithm of the probability that the limits hold."""
    goal, limit = outcome(3, 1, 0), outcome(2, 1, 1)
    mean, var = goal.predict(X0.numpy())
    expected = torch.from_numpy(goal.weights @ (2.0 * np.sqrt(var) - mean[:, 0]))
    value = AimValue((goal,), beta=2.0)
    torch.testing.assert_close(value(X0), expected)
    mean, var = limit.predict(X0.numpy())
    p = torch.from_numpy(limit.weights) @ torch.special.ndtr(torch.from_numpy((0.3 - mean[:, 0]) / np.sqrt(var + 0.04)))
    limited = replace(value, limits=((limit, (-np.inf, 0.3)),), share=0.5)
    torch.testing.assert_close(limited(X0), 0.5 * expected + p.log())


# ── gradients ─────────────────────────────────────────────────────────────────────────────────────────────────────

IMPOSSIBLE = Outcomes((Goal("cost"),), (Limit("impurity", at_most=-1.0),))
BOTH = Outcomes((Goal("cost"), Goal("loss")), (Limit("impurity", at_most=0.04),))
RANGE = Outcomes((Goal("cost", target=0.1),), (Limit("impurity", at_least=0.02, at_most=0.06),))
NEAR = Outcomes(
    (Goal("cost", target=0.1, threshold=0.3), Goal("loss")), (Limit("impurity", at_least=0.02, at_most=0.06),)
)


@pytest.mark.parametrize("outcomes", [Outcomes((Goal("cost"),)), LIMITED, IMPOSSIBLE, TWO, BOTH, RANGE, NEAR])
@pytest.mark.parametrize("n_awaited", [0, 2])
@pytest.mark.parametrize("surfaces", [True, False])
def test_gradients_are_finite_differences(
    outcomes: Outcomes, n_awaited: int, surfaces: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By surfaces and by automatic differentiation, with results awaited or not; the values are the same."""
    if not surfaces:
        monkeypatch.setattr("headstart.decide.members.surface_of", lambda _: None)
    aim = Aim.of(known(outcomes, 4))
    X, awaited = points(30, seed=3), points(n_awaited, seed=4)
    value = aim.value(X, awaited, generator(0))
    at, h = X[:5].numpy(), 1e-6
    found, gradient = value.with_gradient(at)
    torch.testing.assert_close(torch.from_numpy(found), value(X[:5]), rtol=1e-9, atol=1e-9)
    for j in range(2):
        step = h * np.eye(2)[j]
        difference = (value.with_gradient(at + step)[0] - value.with_gradient(at - step)[0]) / (2 * h)
        np.testing.assert_allclose(gradient[:, j], difference, rtol=2e-4, atol=2e-4)
    monkeypatch.setattr("headstart.decide.members.surface_of", lambda _: None)
    same = Aim.of(known(outcomes, 4)).value(X, awaited, generator(0))
    torch.testing.assert_close(same(X), value(X), rtol=1e-6, atol=1e-6)


def test_far_from_anything_good_the_value_still_has_a_slope() -> None:
    """Where the improvement itself is 0 to all digits, its logarithm and the gradient of that are finite."""
    far = members([fixed(np.full((1, N), 60.0), np.full(N, 0.5))], np.ones(1), 0.01)
    for goals in ([far], [far, far]):
        value = value_of(goals, [tensor([[0.2, -0.3], [-0.4, 0.3]])[:, : len(goals)]], tensor([1.0] * len(goals)))
        found, gradient = replace(value, limits=((far, (-np.inf, 0.0)),)).with_gradient(X0.numpy())
        assert (found < -5000).all()
        assert np.isfinite(gradient).all()
        assert (gradient != 0).all()


def test_a_variance_that_is_next_to_nothing_has_no_slope() -> None:
    """It counts as the least variance there is: close to where f is known only its mean changes."""
    model = auto_posterior([0.0, 0.0, 0.0, 1.0])
    at = points(1, seed=9)
    exact = model.condition_on_observations(at, tensor([[0.4]]), noise=tensor([[1e-15]]))
    own = Members.of(exact.predictor)
    _, var, back = own.at(at.numpy())
    assert float(var[0, 0]) <= 1e-10
    assert not back(np.zeros((1, 1, 1)), np.ones((1, 1))).any()


# ── members ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_members_of_a_mixture_are_those_that_count() -> None:
    """Those with a thousandth of the weight, which add up to 1 again. Another predictor is its own member."""
    model = auto_posterior([0.5, 0.0005, 0.4995, 0.0])
    own = Members.of(model.predictor)
    assert list(own.predictors) == [model.mixture.members[k] for k in (0, 2)]
    np.testing.assert_allclose(own.weights, np.array([0.5, 0.4995]) / 0.9995)
    single = Members.of(model.mixture.members[0])
    assert single.predictors[0] is model.mixture.members[0]
    assert single.weights.tolist() == [1.0]
    X = points(7, seed=2)
    own = Members.of(auto_posterior([0.2, 0.1, 0.2, 0.5]).predictor)
    torch.testing.assert_close(own.means(X), own.predictor.predict_marginal(X)[0], rtol=0, atol=1e-9)


def test_the_average_is_the_log_of_the_expected_improvement_under_all() -> None:
    """log Σ w EI, all improving on the lowest mean of the mixture."""
    model, X = auto_posterior([0.3, 0.2, 0.2, 0.3]), points(40, seed=2)
    best = model.predict(model.train_inputs[0])[0].amin()
    improvements = []
    for member in model.mixture.members:
        mean, var = member.predict_marginal(X)
        s, normal = var / (var + member.noise_var).sqrt(), torch.distributions.Normal(0.0, 1.0)
        u = (best - 0.5 * member.noise_var.sqrt() - mean) / s
        improvements.append(s * (u * normal.cdf(u) + normal.log_prob(u).exp()))
    value = acquisition_of(model, Acquisition.LOG_EI)(X)
    expected = (torch.stack(improvements, dim=-1) @ model.weights).log()
    likely = expected > -15  # further out the plain formula is all cancellation
    assert int(likely.sum()) > 10
    torch.testing.assert_close(value[likely], expected[likely], rtol=1e-6, atol=1e-6)


# ── awaited results ───────────────────────────────────────────────────────────────────────────────────────────────


def _waves(X: torch.Tensor) -> torch.Tensor:
    return torch.sin(6 * X).sum(-1) + (X - 0.3).square().sum(-1)


def _alone(noise_var: float = 1e-6) -> TransferPosterior:
    X, level = points(4, seed=1), replace(gp_params(2, seed=0), noise_var=tensor(noise_var))
    return GPBO.at(ChainParams((level,)), target=Dataset(X, _waves(X)))


def test_the_value_is_what_a_point_adds_to_the_expected_improvement_of_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """E[max(f* − min(f(P), f(x)), 0)] − E[max(f* − min f(P), 0)], here by many draws of all values together."""
    many = replace(PLAIN_TUNING, pending_pairs=8192)  # with the usual 16 the value at one point varies by a factor
    monkeypatch.setattr("headstart.decide.aim.PLAIN_TUNING", many)
    posterior, pending, X = _alone(), points(2, seed=2), points(6, seed=3)
    aim = Aim.of(posterior)
    best = min(float(aim.expected[0].means(at).amin()) for at in (aim.observed, pending))
    added = []
    for x in X:
        mean, cov = posterior.predictor.predict(torch.cat([pending, x.unsqueeze(0)]))
        L = torch.linalg.cholesky(cov + 1e-10 * torch.eye(3, dtype=torch.float64))
        f = mean + torch.randn(400_000, 3, generator=generator(1), dtype=torch.float64) @ L.mT
        batch, others = f.amin(-1), f[:, :2].amin(-1)
        added.append(((best - batch).clamp_min(0) - (best - others).clamp_min(0)).mean())
    value = aim.value(X, pending, generator(0))(X).exp()
    torch.testing.assert_close(value, torch.stack(added), rtol=0.1, atol=1e-4)
    assert float(value.max()) > 5e-3


@pytest.mark.parametrize("kind", Acquisition)
def test_a_pending_point_is_worth_less_and_a_bound_keeps_its_mean(kind: Acquisition) -> None:
    """The same point twice teaches what it teaches once; with a bound only the uncertainty shrinks."""
    aim, X = Aim.of(_alone(0.01), kind), points(50, seed=3)
    plain = aim.value(X, X[:0], generator(0))
    best = X[plain(X).argmax()].unsqueeze(0)
    once, twice = (aim.value(X, best.expand(k, 2), generator(0)) for k in (1, 2))
    assert float(once(best)) < float(plain(best)) - 0.1
    near = once(X) > -20
    torch.testing.assert_close(once(X)[near], twice(X)[near], rtol=0, atol=0.5)
    if kind is Acquisition.LCB:
        mean, var = aim.goals[0].predictor.predict_marginal(X)
        left = (once(X) + mean) / 3.0
        joint = aim.goals[0].predictor.predict(torch.cat([best, X]))[1]
        given = joint[1:, 1:] - joint[1:, :1] @ joint[:1, 1:] / joint[0, 0]
        torch.testing.assert_close(left, given.diagonal().clamp_min(0).sqrt(), rtol=0.02, atol=2e-2)
        assert bool((left <= var.sqrt() + 1e-9).all())


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whether_a_result_is_within_the_limits_is_what_was_measured() -> None:
    """Not what the model makes of it; repeated measurements count by their mean."""
    X = tensor([[0.6, 0.5], [0.6, 0.5], [0.1, 0.1], [0.42, 0.5]])
    aim = Aim.of(known(LIMITED, 0, X=X))
    assert torch.equal(aim.within(X), X[[0, 1, 3]])
    assert len(aim.observed) == 4


def test_a_bound_is_refused_for_several_objectives_and_a_negative_beta_for_all() -> None:
    """A volume has no confidence bound here, and uncertainty attracts."""
    with pytest.raises(InputError, match="single objective, but there are 2: cost, loss"):
        Aim.of(known(TWO, 4), Acquisition.LCB)
    with pytest.raises(InputError, match="beta"):
        Aim.of(_alone(), Acquisition.LCB, -1.0)


# ── against BoTorch, at equal hyperparameters ─────────────────────────────────────────────────────────────────────


def _params(seed: int, *, sign: float = 1.0) -> GPParams:
    found = gp_params(2, seed=seed)
    return replace(found, noise_var=tensor(1e-5), offset=sign * found.offset)


def _quiet(X: torch.Tensor, y: torch.Tensor, params: GPParams) -> Members:
    """Without noise, as BoTorch's formulas are."""
    own = Members.of(GPBO.at(ChainParams((params,)), target=Dataset(X, y)).predictor)
    return replace(own, noise_var=np.zeros_like(own.noise_var))


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
    constraints: dict[int, tuple[float | None, float | None]] = {1: (limit, None) if at_least else (None, limit)}
    function = LogConstrainedExpectedImprovement(
        theirs, best_f=best, objective_index=0, constraints=constraints, maximize=maximize
    )
    goal = _quiet(X_SEEN, turn * objective, _params(0, sign=turn))
    within = _quiet(X_SEEN, sign * limited, _params(1, sign=sign))
    value = AimValue((goal,), np.full((1, 1), float(turn * best)), limits=((within, (-np.inf, sign * limit)),))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        torch.testing.assert_close(value(X_NEW), function(X_NEW.unsqueeze(-2)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("m", [2, 3])
def test_hypervolume_improvement_is_botorchs(m: int) -> None:
    """``ExpectedHypervolumeImprovement`` of two or three processes, to be maximised; the first is turned."""
    signs = [1.0, *[-1.0] * (m - 1)]  # what BoTorch is given
    reference = tensor([0.0, 3.0, 1.1])[:m]
    theirs = ModelListGP(
        *(as_single_task_gp(X_SEEN, s * Y_SEEN[:, i], _params(i, sign=s)) for i, s in enumerate(signs))
    )
    inward = -torch.stack([s * Y_SEEN[:, i] for i, s in enumerate(signs)], dim=-1)
    partitioning = NondominatedPartitioning(-reference, -inward)
    function = ExpectedHypervolumeImprovement(theirs, (-reference).tolist(), partitioning)
    goals = tuple(_quiet(X_SEEN, inward[:, i], _params(i, sign=-s)) for i, s in enumerate(signs))
    value = AimValue(goals, cells=Cells.beyond([inward], reference, [torch.clone] * m))
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        expected = function(X_NEW.unsqueeze(-2))
    torch.testing.assert_close(value(X_NEW).exp(), expected, rtol=1e-5, atol=1e-8)
    assert float(expected.max()) > 1e-3


def test_outcomes_of_one_objective_are_that_objective() -> None:
    """A posterior alone and the posteriors of its one outcome have one aim."""
    found = known(Outcomes((Goal("cost"),)), 4)
    X = points(20, seed=3)
    one, other = (Aim.of(of).value(X, X[:2], generator(0))(X) for of in (found, found.posteriors[0]))
    assert torch.equal(one, other)
    assert isinstance(found, OutcomePosteriors)
