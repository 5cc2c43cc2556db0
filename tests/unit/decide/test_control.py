"""Controls: when a setting that was run before is worth its place in a new batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import points, quick, tensor
from torch import Tensor

from headstart import (
    GPBO,
    Candidates,
    ChainParams,
    Dataset,
    Goal,
    GPParams,
    TransferPosterior,
    suggest,
)
from headstart.decide.aim import Aim
from headstart.decide.control import control_for, is_control, knowledge, may_begin_with_control
from headstart.decide.domain import Cube
from headstart.errors import NoPointLeftError
from headstart.gp.fit import generator_from
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.gp.kernels import Kernel
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture, in_batch_of_best

X = points(12, seed=3)
Y = torch.sin(5 * X).sum(-1)
BATCH = torch.arange(12).div(4, rounding_mode="floor").double()
NOISE = 1e-3


def known_process(batch_var: float, *, present: float = 9.0, offset: float = 0.0) -> TransferPosterior:
    """A process at given hyperparameters, with three batches that have results."""
    p = GPParams.of(lengthscale=[0.5, 0.5], outputscale=1.0, noise_var=NOISE, offset=offset, batch_var=batch_var)
    levels = tensor([0.0, 0.7, -0.4])[BATCH.long()] * batch_var**0.5
    task = Dataset(X, Y + levels, batch=BATCH, present=present)
    layer = GPBO.at(ChainParams((p,)), target=task).predictor
    assert isinstance(layer, Layer)
    found = GPBO.at(ChainParams((replace(p, offset=layer.with_its_offset().params.offset),)), target=task)
    return found._with_facts(batch=BATCH, present=tensor(present))


def worth_of(posterior: TransferPosterior, plan: Tensor, *, shift_known: bool = False) -> float:
    """V of one plan."""
    results = X[posterior.predict(X)[0].argsort()]
    return float(knowledge(posterior, results, plan[:-1], plan[-1:], shift_known=shift_known)[0])


def kernel(A: Tensor, B: Tensor) -> Tensor:
    return Kernel.MATERN52(A, B, tensor([0.5, 0.5]))


def test_knowledge_is_what_the_best_point_gains_by_results_of_the_new_batch() -> None:
    """By the joint Gaussian of f, its level and all shifts, written down as it is, and draws of the results from it."""
    batch_var = 0.5
    posterior = known_process(batch_var)
    plan = torch.cat([X[:1], points(2, seed=8)])
    found = worth_of(posterior, plan)
    # h = f + g(9) at all points, which has level N(0, OFFSET_VAR); results have d = g(batch) − g(9) besides
    Z = torch.cat([X, plan])
    prior = kernel(Z, Z) + OFFSET_VAR
    D = Dataset(X, Y, batch=BATCH, present=9.0).shift_pattern
    assert D is not None
    n, m = len(X), len(plan)
    K = prior[:n, :n] + NOISE * torch.eye(n, dtype=torch.float64) + batch_var * D
    y = posterior.train_targets
    mean = prior[:, :n] @ torch.linalg.solve(K, y)
    cov = prior - prior[:, :n] @ torch.linalg.solve(K, prior[:n, :])
    C = cov[n:, n:] + NOISE * torch.eye(m, dtype=torch.float64)
    root = torch.linalg.cholesky(C)
    z = torch.randn(40_000, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen = mean[n:] + z @ root.mT
    after = mean + (seen - mean[n:]) @ torch.linalg.solve(C, cov[n:, :])
    best = int(mean[:n].argmin())
    gain = after[:, best] - after.amin(-1)
    assert found == pytest.approx(float(gain.mean()), abs=5 * float(gain.std()) / 200 + 0.01 * float(gain.mean()))


def test_the_level_alone_is_worth_nothing() -> None:
    """A single control moves all expected values alike; what it says of its own point is a little."""
    posterior = known_process(4.0)
    alone, new = worth_of(posterior, X[:1]), worth_of(posterior, points(1, seed=21))
    assert 0 <= alone < 1e-3
    assert alone <= new < 1e-2  # nor does a single new point, of which only its own batch knows the level


def test_improvement_is_on_the_best_result_in_its_own_batch() -> None:
    """Whichever batch is the present one, and whatever a member without weight says, which is not asked."""
    unknown = known_process(4.0)
    best = float(BATCH[unknown.predict(X)[0].argmin()])
    there, at = known_process(4.0, present=best), points(20, seed=5)
    found, expected = (Aim.of(one).value(at, X[:0], generator_from(0))(at) for one in (unknown, there))
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-8)
    assert not torch.allclose(unknown.predict(at)[1], there.predict(at)[1])
    layer = unknown.predictor
    assert isinstance(layer, Layer)
    other = layer.with_observations(Dataset(X, -Y, batch=BATCH, present=9.0))
    mixture = Mixture((other, Mixture((layer,), tensor([1.0]))), tensor([0.0, 1.0]))
    left, inner = in_batch_of_best(mixture, 0.0).members
    (moved,) = inner.members
    assert left is other
    row = int(unknown.predict(X)[0].argmin())
    torch.testing.assert_close(moved.z, layer.in_batch_of(row).z)
    assert not torch.allclose(moved.z, layer.z)


# Points that are alike and unlike all that were run: their results say little of each other, and nothing of the level
ALIKE = tensor([[1.0, 1.0]]) - 0.02 * points(6, seed=30)
LISTED = Candidates(torch.cat([ALIKE, X]))


def has_result(x: Tensor) -> bool:
    return bool((x == X).all(-1).any())


def test_a_control_is_worth_its_place_where_it_alone_shows_the_shift() -> None:
    """By it the others are compared with the best; without shifts, or where points show them themselves, it is not."""
    unlike = tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    for batch_var, planned, expected in ((4.0, ALIKE, True), (1e-9, ALIKE, False), (4.0, unlike, False)):
        aim = Aim.of(known_process(batch_var))
        assert may_begin_with_control(aim)
        control = control_for(aim, X[:0], planned[:3], X[:0], Cube(2))
        assert (control is not None) is expected
        assert control is None or has_result(control)
    assert control_for(Aim.of(known_process(4.0)), X[:0], ALIKE[:1], X[:0], Cube(2)) is None
    assert control_for(Aim.of(known_process(4.0)), ALIKE[1:2], ALIKE[:1], X[:0], Cube(2)) is not None


def test_a_repetition_that_is_worth_it_anyway_is_no_control() -> None:
    """Where results scatter most is learnt from the best once more, and that is not for the sake of the shift."""
    p = GPParams.of(lengthscale=[0.5, 0.5], outputscale=1.0, noise_var=0.3, batch_var=1e-6)
    noisy = GPBO.at(ChainParams((p,)), target=Dataset(X, Y, batch=BATCH, present=9.0))
    noisy = noisy._with_facts(batch=BATCH, present=tensor(9.0))
    hopeless = X[Y.argsort(descending=True)[:2]] - 1e-3
    again = torch.stack([hopeless[0], X[Y.argmin()]])
    for known in (False, True):
        assert worth_of(noisy, again, shift_known=known) > worth_of(noisy, hopeless, shift_known=known) + 1e-3
    assert control_for(Aim.of(noisy), X[:0], hopeless, X[:0], Cube(2)) is None


def test_a_control_comes_first_and_only_in_a_new_batch() -> None:
    """Once the batch has a result, or one of a control is awaited, there is none; behind it come the planned points."""
    posterior = known_process(4.0)
    several = suggest(posterior, domain=LISTED, avoid=X, q=3, seed=1)
    assert [has_result(x) for x in several] == [True, False, False]
    assert torch.equal(suggest(posterior, domain=LISTED, avoid=X, seed=1), several[0])
    for other in (known_process(4.0, present=2.0), known_process(1e-9)):
        assert not any(map(has_result, suggest(other, domain=LISTED, avoid=X, q=3, seed=1)))
    assert [is_control(posterior, x) for x in several] == [True, False, False]
    assert not is_control(known_process(4.0, present=2.0), several[0])
    after = suggest(posterior, domain=LISTED, avoid=X, seed=1, pending=several[:1])
    assert not has_result(after)
    assert has_result(suggest(posterior, domain=LISTED, avoid=X, seed=1, pending=several[1:]))


def test_what_may_not_be_suggested_is_no_control() -> None:
    """A list without the settings that were run has none."""
    assert not has_result(suggest(known_process(4.0), domain=Candidates(ALIKE), seed=1))


def test_fewer_points_than_a_plan_are_enough() -> None:
    """A list that is nearly used up gives what is left, and a control only beside another point."""
    few = Candidates(torch.cat([ALIKE[:1], X]))
    found = suggest(known_process(4.0), domain=few, avoid=X, seed=1)
    assert torch.equal(found, ALIKE[0])
    with pytest.raises(NoPointLeftError):
        suggest(known_process(4.0), domain=few, avoid=X, q=2, seed=1)


def test_controls_are_of_one_objective_that_has_results() -> None:
    """Not of a confidence bound, a target or several objectives, and not before there is a result."""
    aim = Aim.of(known_process(4.0))
    assert may_begin_with_control(aim)
    assert not may_begin_with_control(replace(aim, beta=2.0))
    assert not may_begin_with_control(replace(aim, wanted=(Goal("objective", target=0.0),)))
    assert not may_begin_with_control(replace(aim, goals=aim.goals * 2, wanted=aim.wanted * 2))
    nothing = GPBO.learn().condition(Dataset(X[:0], Y[:0], batch=[], present=1.0))
    assert not may_begin_with_control(Aim.of(nothing))


def test_a_fitted_model_begins_a_batch_with_a_control() -> None:
    """With shifts as large as the effect of the settings, averaged over draws of its hyperparameters."""
    task = Dataset(X, Y + 3 * tensor([0.0, 1.0, -1.0])[BATCH.long()], batch=BATCH, present=9.0)
    prior = quick(GPBO).learn()
    for present, expected in ((9.0, True), (2.0, False)):
        posterior = prior.condition(replace(task, present=tensor(present)))
        assert bool(posterior.begins_batch) is expected
        found = suggest(posterior, domain=LISTED, avoid=X, q=3, seed=0)
        assert [has_result(x) for x in found] == [expected, False, False]
