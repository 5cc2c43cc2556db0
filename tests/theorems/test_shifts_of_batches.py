"""Shifts between batches: y_i = f(x_i) + g(batch_i) + ε with g ~ N(0, τ²), and f + g(present) is what is predicted.

It is modelled as h = f + g(present), whose offset is free, observed with noise that rows of a batch have in common:
cov(d_i, d_j) = τ² D_ij for d = g(batch) − g(present) (``Dataset.shift_pattern``). Shifts of batches are independent, or
drift slowly with time: corr(g(s), g(t)) = exp(−|s − t|/drift).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import in_turn, plainly, predictions, quick, tensor, transfer_problem
from tests.reference import dense
from tests.reference.dense import Array, Gaussian
from tests.theorems.strategies import Problem, gp_params, transfer_problems
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, SHGP, ChainParams, Dataset, GPParams
from headstart.gp.hyperparameters import OFFSET_VAR
from headstart.models.auto.scores import scores_of
from headstart.models.chain.layer import Layer

SINGLE = ("GPBO", "MHGP", "SHGP", "BHGP", "STAR", "SCAML", "AUTO")  # models that train a task at a time


@dataclass(frozen=True)
class Batched:
    """A problem of which every row has a batch, and the variance of the shifts; one variance for all tasks."""

    problem: Problem
    batches: tuple[tuple[int, ...], ...]
    present: int
    batch_var: float
    drift: float | None = None

    def alike(self, a: Array, b: Array) -> Array:
        """The correlation of the shifts of batches, as a formula."""
        apart = np.abs(np.subtract.outer(a, b))
        return (apart == 0).astype(float) if self.drift is None else np.exp(-apart / self.drift)

    def task(self, i: int, **changes: object) -> Dataset:
        """Task i with its batches."""
        task = self.problem.tasks[i]
        given_ = {
            "batch": np.array(self.batches[i], dtype=float),
            "present": float(self.present),
            "drift": self.drift,
        } | changes
        return Dataset(task.X, task.y, **given_)  # type: ignore[arg-type]

    @property
    def target(self) -> Dataset:
        """The last task."""
        return self.task(-1)

    def params(self, batch_var: float | None = None) -> ChainParams:
        """Of a chain, with shifts of every level."""
        var = self.batch_var if batch_var is None else batch_var
        levels = (gp_params(level) for level in self.problem.levels)
        return ChainParams(tuple(replace(p, batch_var=tensor(var)) for p in levels))

    def layer(self) -> Layer:
        """The target alone."""
        level = replace(gp_params(self.problem.levels[-1]), batch_var=tensor(self.batch_var))
        found = GPBO.using(kernel=self.problem.kernel).at(ChainParams((level,)), target=self.target).predictor
        assert isinstance(found, Layer)
        return found


@st.composite
def batched(draw: st.DrawFn, *, min_target: int = 1, max_target: int = 7) -> Batched:
    problem = draw(transfer_problems(min_sources=0, max_sources=2, min_target=min_target, max_target=max_target))
    labels = [tuple(draw(st.integers(0, 2)) for _ in task.y) for task in problem.tasks]
    var, drift = draw(st.sampled_from([0.05, 0.4, 3.0])), draw(st.sampled_from([None, 0.5, 4.0]))
    return Batched(problem, tuple(labels), draw(st.integers(0, 3)), var, drift)


def of_f_and_g(one: Batched, offset_var: float) -> Gaussian:
    """f(X_q) + g(present) given y, from the joint Gaussian of offset, f, every g and y, written down as it is."""
    problem, task = one.problem, one.problem.tasks[-1]
    level, batch = problem.levels[-1], np.array(one.batches[-1], dtype=float)
    Z = np.concatenate([task.X, problem.Xq])
    n = len(task.y)
    of = np.concatenate([batch, np.full(len(problem.Xq), float(one.present))])  # X_q is measured today
    K = dense.kernel(problem.kind, Z, Z, level) + offset_var + one.batch_var * one.alike(of, of)
    K[:n, :n] += level.noise_var * np.eye(n)
    prior = Gaussian(np.full(len(Z), level.offset), K)
    return dense.condition(prior, slice(0, n), task.y, 0.0)[slice(n, None)]


def of_layer(one: Batched, offset_var: float) -> tuple[Array, Array]:
    """Mean and variance of h(X_q) when its offset is N(its level, offset_var)."""
    layer, Xq = one.layer(), torch.from_numpy(one.problem.Xq)
    e = torch.linalg.solve_triangular(layer.L, torch.ones_like(layer.z).unsqueeze(-1), upper=False).squeeze(-1)
    moved = (e * layer.z).sum() / (e.square().sum() + 1 / offset_var)
    params = replace(layer.params, offset=layer.params.offset + moved)
    layer = replace(layer, params=params, z=layer.z - moved * e)
    mean, var, level_var = layer.predict_with_level(Xq, tensor(offset_var))
    return mean.numpy(), (var + level_var).numpy()


@given(one=batched())
def test_it_is_bayes_rule_on_f_and_all_shifts_where_the_offset_is_free(one: Batched) -> None:
    """With a flat offset, mean and variance of h are those of f + g(present), f and all g being independent."""
    flat = 1e4
    expected, (mean, var) = of_f_and_g(one, flat), of_layer(one, flat)
    np.testing.assert_allclose(mean, expected.mean, rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(var, expected.cov.diagonal(), rtol=2e-3, atol=1e-6)


@given(one=batched(), row=st.integers(0, 6))
def test_the_batch_of_a_result_as_the_present_one_is_what_observing_it_so_gives(one: Batched, row: int) -> None:
    """From the shifts against the present batch follow those against any other that has a result."""
    row %= len(one.target.y)
    there = replace(one, present=one.batches[-1][row])
    found, expected = one.layer().in_batch_of(row), there.layer()
    expected = expected.with_its_offset()
    if one.batches[-1][row] == one.present:
        found = found.with_its_offset()
    Xq = torch.from_numpy(one.problem.Xq)
    for a, b in zip(found.predict(Xq), expected.predict(Xq), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


@given(one=batched(min_target=2))
def test_the_size_of_shifts_is_as_uncertain_as_prior_and_results_leave_it(one: Batched) -> None:
    """log τ² has the variance 1/(1/sd² + ½ tr (K⁻¹ S)²), and every node is the layer with its own τ²."""
    layer, sd = one.layer(), 1.5
    nodes = replace(layer, shift_log_sd=tensor(sd)).over_sizes_of_shifts()
    assert sum(share for _, share in nodes) == pytest.approx(1.0)
    if not one.target.has_shifts:
        assert len(nodes) == 1
        return
    S = layer.noise_cov - torch.diag(layer.noise)
    K = layer.L @ layer.L.mT
    with_S = torch.linalg.solve(K, S)
    information = 0.5 * float((with_S @ with_S).trace())
    sizes = [float(node.noise_cov[i, i] - node.noise[i]) for node, _ in nodes for i in [int(S.diagonal().argmax())]]
    logs = np.log(np.array(sizes) / float(S.diagonal().max()))
    shares = np.array([share for _, share in nodes])
    assert shares @ logs == pytest.approx(0.0, abs=1e-9)
    assert shares @ logs**2 == pytest.approx(1 / (1 / sd**2 + information), rel=1e-6)
    Xq = torch.from_numpy(one.problem.Xq)
    for (node, _), log in zip(nodes[1:], logs[1:], strict=True):
        other = replace(one, batch_var=one.batch_var * float(np.exp(log))).layer().with_its_offset()
        for a, b in zip(node.predict(Xq), other.predict(Xq), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


@given(one=batched())
def test_an_offset_of_finite_variance_hardly_matters(one: Batched) -> None:
    """It is that of the present batch's level; beside f every level varies by τ² more, a share τ²/OFFSET_VAR."""
    one = replace(one, batch_var=min(one.batch_var, 0.4))
    expected, (mean, _) = of_f_and_g(one, OFFSET_VAR), of_layer(one, OFFSET_VAR)
    reach = np.abs(one.problem.tasks[-1].y - one.problem.levels[-1].offset).max()
    assert np.abs(mean - expected.mean).max() <= 2 * one.batch_var / OFFSET_VAR * reach + 1e-9


@pytest.mark.parametrize("name", ["GPBO", "MHGP", "SHGP", "BHGP"])
@given(one=batched(min_target=0))
def test_without_shifts_it_is_the_model_that_knows_no_batches(name: str, one: Batched) -> None:
    """As τ → 0, for any batches; and for one batch, the present one, at any τ, to the last bit."""
    model = FAMILY[name].using(kernel=one.problem.kernel)
    *sources, target = range(len(one.problem.tasks))
    if name == "GPBO" or not sources:
        model, one, sources, target = GPBO.using(kernel=one.problem.kernel), replace(one), [], target
    last = one.params().levels[-1 if not sources else 0 :]
    Xq = torch.from_numpy(one.problem.Xq)

    def predicted(batch_var: float, **changes: object) -> Tensor:
        levels = tuple(replace(p, batch_var=tensor(batch_var)) for p in last)
        tasks = [one.task(i, **changes) for i in sources]
        return predictions(model.at(ChainParams(levels), sources=tasks, target=one.task(target, **changes)), Xq)

    nothing = predicted(1.0, batch=None, present=None)
    torch.testing.assert_close(predicted(1e-13), nothing, rtol=1e-8, atol=1e-8)
    for value in (0.0, 1.0):
        alike = [np.full(len(task.y), 5.0) for task in one.problem.tasks]
        levels = tuple(replace(p, batch_var=tensor(value)) for p in last)
        tasks = [one.task(i, batch=alike[i], present=5.0) for i in (*sources, target)]
        found = model.at(ChainParams(levels), sources=tasks[:-1], target=tasks[-1])
        assert torch.equal(predictions(found, Xq), nothing)


@given(one=batched(min_target=2))
def test_scores_do_not_depend_on_which_batch_is_the_present_one(one: Batched) -> None:
    """They are of contrasts, y_i − y_1, and g(present) is in all rows: so a new batch is predicted with its shift."""
    scores = []
    for present in range(4):
        layer = replace(one, present=present).layer()
        scores.append(scores_of(layer.L, layer.z))
    task, level = one.problem.tasks[-1], one.problem.levels[-1]
    batch = np.array(one.batches[-1])
    n = len(task.y)
    K = dense.kernel(one.problem.kind, task.X, task.X, level) + level.noise_var * np.eye(n)
    K = K + one.batch_var * one.alike(batch, batch)
    A = np.eye(n)[1:] - np.eye(n)[:1]
    joint = [dense.Gaussian(np.zeros(i), (A @ K @ A.T)[:i, :i]).log_density((A @ task.y)[:i]) for i in range(1, n)]
    expected = np.diff([0.0, 0.0, *joint])
    for found in scores:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(one=batched(), names=st.permutations(range(4)), seed=st.integers(0, 99))
def test_neither_names_nor_the_order_of_rows_matter(one: Batched, names: list[int], seed: int) -> None:
    """Batches are told apart by their numbers and by nothing else, and the present one is named; times are times."""
    one = replace(one, drift=None)
    Xq, target = torch.from_numpy(one.problem.Xq), one.target
    model, params = GPBO.using(kernel=one.problem.kernel), ChainParams(one.params().levels[-1:])
    assert target.batch is not None
    order = torch.from_numpy(np.random.default_rng(seed).permutation(target.n))
    new = 10.0 * tensor(names)
    renamed = replace(target, batch=new[target.batch.long()], present=new[one.present]).rows(order)
    here, there = (predictions(model.at(params, target=data), Xq) for data in (target, renamed))
    torch.testing.assert_close(there, here, rtol=1e-8, atol=1e-8)


@given(one=batched(), x=st.floats(0, 1), y=st.floats(-2, 2))
def test_a_result_of_today_is_appended_as_if_it_had_been_there(one: Batched, x: float, y: float) -> None:
    """A fantasy or a pending point belongs to the present batch: it has no noise in common with earlier rows."""
    target = one.target
    model, params = GPBO.using(kernel=one.problem.kernel), ChainParams(one.params().levels[-1:])
    new = torch.full((1, target.d), x, dtype=torch.float64)
    later = model.at(params, target=target).condition_on_observations(new, tensor([[y]]))
    known = model.at(params, target=target.with_point(new[0], y))
    Xq = torch.from_numpy(one.problem.Xq)
    torch.testing.assert_close(predictions(later, Xq), predictions(known, Xq), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(later.log_evidence, known.log_evidence, rtol=1e-8, atol=1e-8)


def test_the_offset_of_a_layer_moves_to_the_level_of_today() -> None:
    """Two days at one place, the second 1 higher: what is predicted is the day that is named as the present one."""
    X, y = tensor([[0.5]] * 8), tensor([0.0, 0.01, -0.01, 0.0, 1.0, 1.01, 0.99, 1.0])
    p = GPParams.of(lengthscale=[0.5], outputscale=0.1, noise_var=1e-3, batch_var=1.0)
    for present, level in ((0.0, 0.0), (1.0, 1.0)):
        task = Dataset(X, y, batch=[0.0] * 4 + [1.0] * 4, present=present)
        layer = GPBO.at(ChainParams((p,)), target=task).predictor
        assert isinstance(layer, Layer)
        mean, var = layer.with_its_offset().predict_marginal(X[:1])
        assert mean.item() == pytest.approx(level, abs=0.02)
        assert var.item() < 0.01
    tomorrow = Dataset(X, y, batch=[0.0] * 4 + [1.0] * 4, present=2.0)
    layer = GPBO.at(ChainParams((p,)), target=tomorrow).predictor
    assert isinstance(layer, Layer)
    _, var, level_var = layer.with_its_offset().predict_with_level(X[:1], tensor(OFFSET_VAR))
    assert 1.0 < (var + level_var).item() < 1.6  # τ² (1 + 1/2), a little less as the offset has a prior


# ── whole models, fitted ──────────────────────────────────────────────────────────────────────────────────────────────

PROBLEM = transfer_problem(sizes=(9, 6, 9), n_target=7)


def in_batches(task: Dataset, size: int = 3, shift: float = 0.0) -> Dataset:
    """``size`` rows a batch, each ``shift`` above the one before."""
    batch = torch.arange(task.n).div(size, rounding_mode="floor").double()
    return replace(task, y=task.y + shift * batch, batch=batch)


@pytest.mark.parametrize("name", SINGLE)
def test_with_one_batch_nothing_changes(name: str) -> None:
    """A shift cannot be told from the offset: predictions, evidence and draws are the same to the last bit."""
    model = quick(FAMILY[name])
    one = [replace(task, batch=torch.full_like(task.y, 3.0)) for task in (*PROBLEM.sources, PROBLEM.target)]
    here, there = PROBLEM.posterior(model), model.learn(one[:-1]).condition(one[-1])
    assert torch.equal(predictions(here, PROBLEM.Xq), predictions(there, PROBLEM.Xq))
    assert torch.equal(here.log_evidence, there.log_evidence)


@pytest.mark.parametrize(("name", "log_scale"), in_turn([-3.0, 4.0], SINGLE))
def test_shifts_follow_a_change_of_units(name: str, log_scale: float) -> None:
    """y → a·y + b of all tasks changes predictions by that map, and the variance of shifts by a²."""
    model, scale = plainly(quick(FAMILY[name])), 2.0 ** round(log_scale)

    def posterior(a: float, b: float) -> tuple[Tensor, Tensor]:
        tasks = [in_batches(task, shift=0.5) for task in (*PROBLEM.sources, PROBLEM.target)]
        tasks = [replace(task, y=a * task.y + b) for task in tasks]
        found = model.learn(tasks[:-1]).condition(tasks[-1])
        mean, var = found.predict(PROBLEM.Xq)
        return torch.stack([(mean - b) / a, var / a**2]), found.log_evidence + PROBLEM.target.n * np.log(a)

    torch.testing.assert_close(posterior(scale, 0.0), posterior(1.0, 0.0), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(posterior(scale, 3.0 * scale), posterior(1.0, 0.0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SINGLE)
def test_large_shifts_are_found_and_today_is_predicted(name: str) -> None:
    """Days that lie 3 apart each, in sources and target, do no harm to the model that knows of them."""
    model = quick(FAMILY[name])
    tasks = [in_batches(task, shift=3.0) for task in (*PROBLEM.sources, PROBLEM.target)]
    still = in_batches(PROBLEM.target, shift=0.0)
    today = float(tasks[-1].y[-1] - still.y[-1])
    mean = model.learn(tasks[:-1]).condition(tasks[-1]).predict(PROBLEM.Xq)[0] - today
    known = PROBLEM.posterior(model).predict(PROBLEM.Xq)[0]
    blind = [Dataset(task.X, task.y) for task in tasks]
    ignoring = model.learn(blind[:-1]).condition(blind[-1]).predict(PROBLEM.Xq)[0] - today
    assert (mean - known).square().mean().sqrt() < 0.6 * (ignoring - known).square().mean().sqrt()


@settings(max_examples=5, deadline=None)
@given(first=st.integers(1, 6))
def test_auto_says_the_same_whether_results_came_one_by_one_or_all_at_once(first: int) -> None:
    """Batches go with the rows that are kept between steps, and the present batch moves on."""
    prior = quick(AUTO).learn([in_batches(source, shift=0.5) for source in PROBLEM.sources])
    target = in_batches(PROBLEM.target, shift=0.5)
    prior.condition(target.head(first))
    step = prior.condition(target)
    afresh = quick(AUTO).learn([in_batches(source, shift=0.5) for source in PROBLEM.sources]).condition(target)
    assert torch.equal(predictions(step, PROBLEM.Xq), predictions(afresh, PROBLEM.Xq))


def test_levels_of_a_chain_have_shifts_of_their_own() -> None:
    """Every level finds the variance of its own shifts: those of the first source do not count for the others."""
    first = in_batches(PROBLEM.sources[0], shift=5.0)
    prior = quick(SHGP).learn([first, in_batches(PROBLEM.sources[1], shift=0.0)])
    levels = prior.condition(PROBLEM.target).hyperparameters.levels  # type: ignore[union-attr]
    assert levels[0].batch_var is not None
    assert levels[1].batch_var is not None
    assert levels[0].batch_var > 20 * levels[1].batch_var
    assert levels[2].batch_var is None
