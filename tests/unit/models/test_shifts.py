"""Batches on the way through a fitted model: maps, scores, memories, explanations, the gate, and who refuses them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.direct import direct_shares, prequential
from tests.problems import Problem, behind_the_map, most_probable, plainly, predictions, quick, tensor, transfer_problem

from headstart import AUTO, FAMILY, GPBO, SHGP, STAR, Dataset, InputError, OutputMap
from headstart.data.units import OutputUnits
from headstart.gp.hyperparameters import GPParams
from headstart.models.auto.explanation import auto_only, explain
from headstart.models.auto.gate import _constant, _constant_in_batches, _row_gains, informative
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.auto.shares import shares
from headstart.models.chain.layer import Layer
from headstart.models.fitcache import FitCache, fit_key
from headstart.models.learning import LearnContext
from headstart.models.model import observed
from headstart.models.refits import TargetCache
from headstart.models.star.independent import fit_independently, pooled
from headstart.models.star.star import StarPrior
from headstart.tuning import PLAIN_TUNING

SINGLE = ("GPBO", "MHGP", "SHGP", "BHGP", "STAR", "SCAML", "MWSGP", "AUTO")
PROBLEM = transfer_problem(sizes=(9, 6, 9), n_target=7)


def in_batches(task: Dataset, size: int = 3, shift: float = 0.6) -> Dataset:
    """``size`` rows a batch, each ``shift`` away from the one before."""
    batch = torch.arange(task.n).div(size, rounding_mode="floor").double().expand(task.y.shape)
    return replace(task, y=task.y + shift * batch.remainder(2), batch=batch, present=None)


def shifted(problem: Problem) -> Problem:
    return replace(problem, sources=tuple(map(in_batches, problem.sources)), target=in_batches(problem.target))


SHIFTED = shifted(PROBLEM)


@pytest.mark.parametrize("name", SINGLE)
def test_a_fitted_posterior_is_the_model_at_its_hyperparameters(name: str) -> None:
    """``at`` with the hyperparameters found, variances of shifts among them, and the data behind the maps: the same."""
    model = most_probable(quick(FAMILY[name]))
    prior = model.learn(SHIFTED.sources)
    posterior, inward = prior.condition(SHIFTED.target), prior.inward(SHIFTED.target)
    again = model.at(posterior.hyperparameters, sources=prior.sources if name != "GPBO" else (), target=inward)
    here = behind_the_map(posterior)
    torch.testing.assert_close(again.predict(PROBLEM.Xq), here.predict(PROBLEM.Xq), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(again.log_evidence, here.log_evidence, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", SINGLE)
def test_every_problem_of_a_batch_has_batches_of_its_own(name: str) -> None:
    """Several problems in lockstep give what each gives alone."""
    model = quick(plainly(FAMILY[name]))
    together = shifted(transfer_problem(sizes=(6, 6), n_target=5, batch_shape=(2,)))
    other = tensor([0.0, 1.0, 1.0, 0.0, 0.0])
    batch = torch.stack([together.target.batch[0], other])  # type: ignore[index]
    together = replace(together, target=replace(together.target, batch=batch, present=None))
    found = predictions(together.posterior(model), together.Xq)
    for i in range(2):

        def one(task: Dataset, i: int = i) -> Dataset:
            assert task.batch is not None
            return Dataset(task.X[i], task.y[i], batch=task.batch[i])

        alone = Problem(tuple(map(one, together.sources)), one(together.target), together.Xq[i])
        torch.testing.assert_close(predictions(alone.posterior(model), alone.Xq), found[:, i], rtol=1e-6, atol=1e-6)


def test_gpbo_draws_the_size_of_shifts_around_the_most_probable_one() -> None:
    """As its other hyperparameters, and the draws differ in it; with one batch it is the prior's median."""
    members = SHIFTED.posterior(quick(GPBO)).predictor.members  # type: ignore[union-attr]
    sizes = [member.params.batch_var for member in members if isinstance(member, Layer)]
    assert len(sizes) == 9
    assert len({float(size) for size in sizes if size is not None}) == 9
    one = replace(PROBLEM.target, batch=torch.zeros(7, dtype=torch.float64))
    levels = quick(GPBO).using(output_map=OutputMap.NONE).learn().condition(one)
    found = levels.hyperparameters.levels[0].batch_var  # type: ignore[union-attr]
    torch.testing.assert_close(found, PLAIN_TUNING.batch_var_median * levels.units.scale.square())


# ── who refuses them ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "why"), [("HGP", "all tasks together"), ("WSGP", "all tasks together"), ("RGPE", "ranks of results")]
)
def test_models_that_know_no_shifts_say_so(name: str, why: str) -> None:
    """In sources, in the target and at given hyperparameters; rows of one batch are welcome."""
    with pytest.raises(InputError, match=rf"knows no shifts between batches .*{why}"):
        FAMILY[name].learn(SHIFTED.sources)
    prior = quick(FAMILY[name]).learn([replace(s, batch=0 * s.y) for s in PROBLEM.sources])
    with pytest.raises(InputError, match="leave batch out"):
        prior.condition(SHIFTED.target)
    assert prior.condition(replace(PROBLEM.target, batch=0 * PROBLEM.target.y)).batch_shape == ()


def test_standardised_residuals_know_no_shifts() -> None:
    """Trained as in the paper a level has no offset: there is nothing beside which a shift could be found."""
    for model in (SHGP.paper(), GPBO.using(units=OutputUnits.PER_LEVEL)):
        with pytest.raises(InputError, match="no task has an offset"):
            model.learn(SHIFTED.sources).condition(SHIFTED.target)
    assert AUTO.paper().learn(SHIFTED.sources[:1]) is not None  # AUTO's units are shared


# ── memories ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_posterior_remembers_the_batches_of_its_data() -> None:
    """What is fantasised is of the present batch."""
    posterior = replace(SHIFTED, target=replace(SHIFTED.target, present=tensor(5.0))).posterior(quick(SHGP))
    data = observed(posterior)
    assert data.batch is not None
    assert data.present is not None
    assert data.batch.tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0]
    assert data.present.item() == 5.0
    fantasy = posterior.condition_on_observations(PROBLEM.Xq[:2], torch.zeros(3, 2, 1, dtype=torch.float64))
    more = observed(fantasy).batch
    assert more is not None
    assert more[1].tolist() == [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 5.0, 5.0]
    assert observed(PROBLEM.posterior(quick(SHGP))).batch is None


def test_what_is_kept_is_kept_with_the_batches() -> None:
    """Other batches, or another present one, are another target, in memory and in the cache of fits."""
    target = SHIFTED.target
    others = [target, replace(target, batch=None, present=None), replace(target, present=tensor(7.0))]
    others.append(replace(target, batch=tensor([0.0] * 6 + [2.0])))
    assert len({fit_key("level", [task]) for task in others}) == 4
    cache, made = TargetCache(), []
    for task in (*others, *others):
        cache.get("kind", task, lambda task=task: made.append(task))  # type: ignore[misc]
    assert len(made) == 4


def test_fits_with_shifts_come_back_from_the_cache(tmp_path: Path) -> None:
    """Of sources on their own, of levels of a chain, and the sources' likeness; those without batches as well."""
    sources = [*SHIFTED.sources[:2], PROBLEM.sources[2]]
    for name in ("AUTO", "SHGP"):
        context = LearnContext(cache=FitCache(tmp_path / name))
        first, again = (quick(FAMILY[name]).learn(sources, context=context).condition(SHIFTED.target) for _ in range(2))
        fresh = quick(FAMILY[name]).learn(sources).condition(SHIFTED.target)
        for one in (first, again):
            assert torch.equal(predictions(one, PROBLEM.Xq), predictions(fresh, PROBLEM.Xq))


# ── scores, shares, explanations ──────────────────────────────────────────────────────────────────────────────────────


def test_auto_s_candidates_are_weighed_by_scores_that_know_the_shifts() -> None:
    """Each value is predicted from those before it with its batch's shift, at the hyperparameters of its refit."""
    prior = auto_only(quick(AUTO).learn(SHIFTED.sources))
    posterior = prior.condition(SHIFTED.target)
    assert isinstance(posterior, AutoPosterior)
    target = prior.inward(SHIFTED.target)
    for k, one in enumerate(prior.priors):
        if k != prior.model.plain:  # which is tested in units of its own
            torch.testing.assert_close(posterior.scores[k], prequential(one, target), rtol=1e-6, atol=1e-6)
    # a new batch is a surprise to whoever ignores it
    blind = quick(AUTO).learn(SHIFTED.sources).condition(Dataset(SHIFTED.target.X, SHIFTED.target.y))
    assert isinstance(blind, AutoPosterior)
    assert posterior.scores[0].sum() > blind.scores[0].sum()


@pytest.mark.parametrize("name", ["STAR", "SHGP", "AUTO"])
def test_shares_know_the_shifts(name: str) -> None:
    """They are those of models built for each case, of data with their batches."""
    prior = most_probable(quick(FAMILY[name])).learn(SHIFTED.sources)
    posterior = prior.condition(SHIFTED.target)
    with torch.no_grad():
        found, direct = shares(prior, posterior, PROBLEM.Xq), direct_shares(prior, posterior, PROBLEM.Xq)
    torch.testing.assert_close(found, direct, rtol=0, atol=1e-6)


def test_an_explanation_is_of_the_data_with_their_batches() -> None:
    """With a posterior at hand or without, the same verdicts and shares."""
    prior = quick(AUTO).learn(SHIFTED.sources)
    posterior = prior.condition(SHIFTED.target)
    first = explain(prior, SHIFTED.target, PROBLEM.Xq)
    second = explain(prior, observed(posterior), PROBLEM.Xq, posterior=posterior)
    assert first.sources == second.sources
    assert first.shares is not None
    assert second.shares is not None
    assert torch.equal(first.shares, second.shares)


def test_a_target_is_expected_to_have_the_shifts_of_its_sources() -> None:
    """Normal likelihoods of log τ² on the general prior, and how tasks differ; sources of one batch say nothing."""
    still = replace(PROBLEM.sources[2], batch=0 * PROBLEM.sources[2].y)
    prior = auto_only(quick(AUTO).learn([*SHIFTED.sources[:2], still]))
    kin = prior.priors[0]
    assert isinstance(kin, StarPrior)
    c, s2 = math.log(PLAIN_TUNING.batch_var_median), PLAIN_TUNING.batch_var_spread**2
    d2 = PLAIN_TUNING.batch_var_between_tasks**2
    total, weighted = 1 / s2, c / s2
    for layer, trust in zip(prior.alone.layers[:2], prior.gate.trust, strict=False):
        assert layer.params.batch_var is not None
        m, K = float(layer.params.batch_var.log()), layer.L @ layer.L.mT
        of_K = torch.linalg.solve(K, layer.noise_cov - torch.diag(layer.noise))
        known = 0.5 * float((of_K @ of_K).trace())
        precision = float(trust) / (1 / known + d2)
        total += precision
        weighted += precision * (m + (m - c) / (s2 * known))
    centre = tensor(weighted / total)
    expected = kin.alone.expected_shifts
    torch.testing.assert_close(expected.centre[0, 0], centre)
    torch.testing.assert_close(expected.spread[0, 0], tensor((1 / total + d2) ** 0.5))
    # the next batch of a target that has had one so far is expected to be like that
    one = kin.condition(prior.inward(replace(PROBLEM.target, batch=0 * PROBLEM.target.y))).predictor
    assert isinstance(one, Layer)
    assert one.params.batch_var is not None
    torch.testing.assert_close(one.params.batch_var.log(), centre)


# ── the gate, and pooled sources ──────────────────────────────────────────────────────────────────────────────────────


def test_a_constant_without_shifts_is_the_one_that_knows_no_batches() -> None:
    """Where every row is a batch of its own shifts are noise: the mean and variance of the others."""
    y = torch.randn(9, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    mean, var = _constant_in_batches(Dataset(y.unsqueeze(-1), y, batch=torch.arange(9)))
    by_hand = _constant(y, torch.zeros_like(y))
    torch.testing.assert_close((mean, var), by_hand, rtol=1e-9, atol=1e-9)


def test_a_constant_with_shifts_predicts_a_value_from_its_batch() -> None:
    """Values of one batch lie together, so the others of the batch say where the one that is left out is."""
    y = tensor([0.0, 0.1, -0.1, 5.0, 5.1, 4.9, -5.0, -5.1, -4.9])
    task = Dataset(y.unsqueeze(-1), y, batch=torch.arange(9).div(3, rounding_mode="floor"))
    mean, var = _constant_in_batches(task)
    torch.testing.assert_close(mean, tensor([0.0] * 3 + [5.0] * 3 + [-5.0] * 3), rtol=0, atol=0.1)
    assert float(var.max()) < 0.05
    # the dense predictive distribution at the most probable ρ, of the values that are left
    rho, s2 = 4.0**5, []
    for i in range(9):
        rest = [j for j in range(9) if j != i]
        C = torch.eye(9, dtype=torch.float64) + rho * (task.batch.unsqueeze(0) == task.batch.unsqueeze(1))  # type: ignore[union-attr]
        inverse = torch.linalg.inv(C[rest][:, rest])
        level = inverse.sum(0) @ y[rest] / inverse.sum()
        away = y[rest] - level
        s2.append(away @ inverse @ away / 7)
        m = level + C[i, rest] @ inverse @ away
        unknown = (1 - inverse.sum(0) @ C[rest, i]) ** 2 / inverse.sum()
        v = s2[-1] * (C[i, i] - C[i, rest] @ inverse @ C[rest, i] + unknown)
        torch.testing.assert_close((mean[i], var[i]), (m, v), rtol=1e-6, atol=1e-6)


def test_batches_that_differ_do_not_open_the_gate() -> None:
    """Sources of noise around levels of their batches, each of another corner, are noise all the same."""
    opened = 0
    for seed in range(12):
        g = torch.Generator().manual_seed(seed)
        batch = torch.arange(30).div(5, rounding_mode="floor")
        level = torch.randn(6, generator=g, dtype=torch.float64)
        X = torch.rand(30, 2, generator=g, dtype=torch.float64)
        y = level[batch] + 0.3 * torch.randn(30, generator=g, dtype=torch.float64)
        source = Dataset(X, y, batch=batch)
        alone = fit_independently((source,), quick(STAR), 0, LearnContext())
        opened += bool(informative(alone.layers, [alone.known.inward(source)]).trust.item() > 0.5)
    assert opened <= 2


def test_a_source_with_shifts_and_a_shape_opens_the_gate() -> None:
    """What is left beside the shifts is predicted by its inputs."""
    g = torch.Generator().manual_seed(3)
    batch = torch.arange(30).div(5, rounding_mode="floor")
    X = torch.rand(30, 2, generator=g, dtype=torch.float64)
    y = torch.sin(5 * X).sum(-1) + 2 * torch.randn(6, generator=g, dtype=torch.float64)[batch]
    source = Dataset(X, y, batch=batch, error_var=torch.full((30,), 1e-4, dtype=torch.float64))
    alone = fit_independently((source,), quick(STAR), 0, LearnContext())
    inward = alone.known.inward(source)
    assert informative(alone.layers, [inward]).trust.item() > 0.9
    assert bool((_row_gains(alone.layers[0], inward).mean() > 0.5).all())


def test_batches_of_different_sources_are_different() -> None:
    """Pooled, the rows of a batch stay together, and no two sources share one; without shifts there are none."""
    first, second = (replace(s, batch=torch.arange(s.n).remainder(2).double()) for s in PROBLEM.sources[:2])
    together = pooled((first, second, PROBLEM.sources[2]))
    assert together.batch is not None
    a, b, c = together.batch.split([9, 6, 9])
    assert (a[0] == a[2], a[0] == a[1]) == (True, False)
    assert len(c.unique()) == 1
    assert not set(a.tolist()) & set(b.tolist())
    assert not (set(a.tolist()) | set(b.tolist())) & set(c.tolist())
    assert pooled([replace(s, batch=0 * s.y) for s in PROBLEM.sources]).batch is None


def test_pooled_times_of_different_sources_are_far_apart() -> None:
    """In units of each drift; batches beside them stay apart from each other, and rows of one stay together."""
    first = replace(PROBLEM.sources[0], batch=torch.arange(9).double() + 40, drift=2.0)
    second = replace(PROBLEM.sources[1], batch=torch.arange(6).remainder(2).double())
    together = pooled((first, second, PROBLEM.sources[2]))
    assert together.batch is not None
    assert together.drift == 1.0
    c = together.shift_correlation(together.batch, together.batch)
    torch.testing.assert_close(c[:9, :9], first.shift_correlation(first.batch, first.batch))  # type: ignore[arg-type]
    assert torch.equal(c[9:15, 9:15].round(), second.shift_correlation(second.batch, second.batch))  # type: ignore[arg-type]
    assert bool((c[15:, 15:] == 1).all())
    for one, other in ((slice(9), slice(9, None)), (slice(9, 15), slice(15, None)), (slice(9, 10), slice(10, 11))):
        assert float(c[one, other].max()) < 1e-40


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "AUTO"])
def test_a_slow_drift_is_found_and_today_is_predicted(name: str) -> None:
    """Results that rise by 3 over the time of the rows; every fit, score and verdict knows times, and the cache too."""
    g = torch.Generator().manual_seed(5)
    X = torch.rand(24, 2, generator=g, dtype=torch.float64)
    truth = torch.sin(5 * X).sum(-1)
    t = torch.arange(24).double()
    drifting = Dataset(X, truth + t / 8, batch=t, drift=24.0)
    sources = [replace(PROBLEM.sources[0], batch=torch.arange(9).double(), drift=9.0), *PROBLEM.sources[1:]]
    model = quick(FAMILY[name])
    prior = model.learn(sources if name != "GPBO" else [])
    told, blind = prior.condition(drifting), prior.condition(Dataset(X, drifting.y))
    errors = [(found.predict(X)[0] - truth - 23 / 8).square().mean().sqrt() for found in (told, blind)]
    assert errors[0] < 0.5 * errors[1]
    assert observed(told).drift == 24.0
    assert fit_key("level", [drifting]) != fit_key("level", [replace(drifting, drift=2.0)])
    cache, made = TargetCache(), []
    for task in (drifting, replace(drifting, drift=2.0)):
        cache.get("kind", task, lambda task=task: made.append(task))  # type: ignore[misc]
    assert len(made) == 2


def test_shifts_have_a_variance_that_can_be() -> None:
    """Not negative, and in squared units of the results."""
    with pytest.raises(InputError, match="batch_var of the task is a variance"):
        GPParams.of(lengthscale=[1.0], outputscale=1.0, noise_var=0.1, batch_var=-1.0)
    p = GPParams.of(lengthscale=[1.0], outputscale=1.0, noise_var=0.1, batch_var=0.5)
    scaled = p.scaled(tensor(3.0), tensor(1.0)).batch_var
    assert scaled is not None
    assert scaled.item() == 4.5
