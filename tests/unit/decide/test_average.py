"""How a suggestion comes from several predictors that are believed to different degrees."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import acquisition_of, auto_posterior, item_of, params_for, quick, tensor, transfer_problem

from headstart import AUTO, GPBO, Dataset
from headstart.decide.acquisition import Acquisition, acquisition_values
from headstart.decide.average import AveragedAcquisition, PlainAcquisition, Voice, averaged, mean_of, voices
from headstart.decide.suggest import suggest
from headstart.models.auto.posterior import AutoPosterior
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture

PROBLEM = transfer_problem(n_queries=40)
ALONE = {name: torch.eye(len(AUTO.names))[k].tolist() for k, name in enumerate(AUTO.names)}


def disagreeing(weights: object) -> AutoPosterior:
    """A target that is lowest elsewhere than its sources: the candidates want different points."""
    sources = [Dataset(s.X, 4 * (s.X - 0.25).square().sum(-1)) for s in PROBLEM.sources]
    X = tensor([[0.2, 0.9], [0.5, 0.4], [0.9, 0.1]])
    params = replace(params_for("AUTO"), weights=tensor(weights))
    found = AUTO.at(params, sources=sources, target=Dataset(X, 4 * (X - 0.7).square().sum(-1)))
    assert isinstance(found, AutoPosterior)
    return found


# ── who is asked ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_voices_of_a_mixture_are_all_who_count() -> None:
    """A weight of less than a thousandth is none, problem by problem; the others' add up to 1 again."""
    model = auto_posterior([[0.5, 0.0005, 0.4995, 0.0], [0.4, 0.6, 0.0, 0.0], [0.7, 0.0, 0.3, 0.0]], batch_shape=(3,))
    every, weights = voices(model.predictor)
    assert len(every) == 3
    torch.testing.assert_close(
        weights, tensor([[0.5 / 0.9995, 0.0, 0.4995 / 0.9995], [0.4, 0.6, 0.0], [0.7, 0.0, 0.3]])
    )
    every, weights = voices(auto_posterior([0.0005, 0.0, 0.0, 0.9995]).predictor)
    assert weights.tolist() == [1.0]
    assert every[0].predictor is not None
    model = auto_posterior([0.2, 0.1, 0.2, 0.5])
    assert [voice.predictor for voice in voices(model.predictor)[0]] == list(model.mixture.members)


def test_a_predictor_that_is_no_mixture_speaks_for_itself() -> None:
    """With weight 1 in every problem of a batch."""
    batch = transfer_problem(batch_shape=(2,))
    model = GPBO.at(params_for("GPBO", batch_shape=(2,)), target=batch.target)
    (voice,), weights = voices(model.predictor, batch.Xq)
    assert voice.predictor is model.predictor
    assert voice.X is batch.Xq
    assert weights.tolist() == [[1.0], [1.0]]


def test_a_mixture_in_a_mixture_speaks_with_all_its_members() -> None:
    """Their weights are products, and located points go to each in its own form. Only the plain candidate is one."""
    *informed, plain = AUTO.candidates
    candidates = (*informed, replace(plain, at_least=0.6))
    prior = quick(AUTO).using(candidates=candidates).learn(PROBLEM.sources)
    model = prior.condition(PROBLEM.target)
    assert isinstance(model, AutoPosterior)
    *layers, drawn = model.mixture.members
    assert all(isinstance(layer, Layer) for layer in layers)
    assert isinstance(drawn, Mixture)
    assert len(drawn.members) == 9
    products = torch.cat([model.weights[:3], model.weights[3] * drawn.weights])
    products = torch.where(products > 1e-3, products, 0.0)
    assert int((products > 0).sum()) > 4
    every, weights = voices(model.predictor, prior.locate(PROBLEM.Xq))
    torch.testing.assert_close(weights, products[products > 0] / products.sum())
    unlocated, _ = voices(model.predictor, PROBLEM.Xq)
    for located, direct in zip(every, unlocated, strict=True):
        for a, b in zip(
            located.predictor.predict_marginal(located.X), direct.predictor.predict_marginal(direct.X), strict=True
        ):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


# ── what a point is worth ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_average_is_the_log_of_the_expected_improvement_under_all() -> None:
    """log Σ w EI, all improving on the lowest mean of the mixture, with a finite gradient."""
    model = auto_posterior([0.3, 0.2, 0.2, 0.3])
    best = model.predict(model.train_inputs[0])[0].amin()
    improvements = []
    for member in model.mixture.members:
        mean, var = member.predict_marginal(PROBLEM.Xq)
        s, normal = var / (var + member.noise_var).sqrt(), torch.distributions.Normal(0.0, 1.0)
        u = (best - 0.5 * member.noise_var.sqrt() - mean) / s
        improvements.append(s * (u * normal.cdf(u) + normal.log_prob(u).exp()))
    X = PROBLEM.Xq.clone().requires_grad_()
    value = acquisition_of(model, Acquisition.LOG_EI)(X)
    expected = (torch.stack(improvements, dim=-1) @ model.weights).log()
    likely = expected > -15  # further out the plain formula is all cancellation
    assert int(likely.sum()) > 10
    torch.testing.assert_close(value[likely], expected[likely], rtol=1e-6, atol=1e-6)
    (gradient,) = torch.autograd.grad(value.sum(), X)
    assert bool(gradient.isfinite().all())


def test_a_candidate_that_is_not_believed_has_no_say_in_the_average() -> None:
    """With weight 1 on one of them the average is its own value, gradient included."""
    for k, weights in enumerate(ALONE.values()):
        model = auto_posterior(weights)
        best = model.predict(model.train_inputs[0])[0].amin()
        parts = tuple(PlainAcquisition(Voice(m, None), Acquisition.LOG_EI, best, 3.0) for m in model.mixture.members)
        X = PROBLEM.Xq.clone().requires_grad_()
        value = AveragedAcquisition(Acquisition.LOG_EI, parts, model.weights)(X)
        (gradient,) = torch.autograd.grad(value.sum(), X)
        torch.testing.assert_close(value, parts[k](PROBLEM.Xq))
        assert bool(gradient.isfinite().all())


def test_a_lower_bound_is_averaged_as_it_is() -> None:
    """For LCB the value is Σ w (β sd − mean), for LOG_EI the logarithm of a mean; means are averaged by weight."""
    values, weights = tensor([[1.0, 5.0, -2.0], [0.0, 1.0, 2.0]]), tensor([0.5, 0.25, 0.25])
    assert averaged(Acquisition.LCB, values, weights).tolist() == pytest.approx([1.25, 0.75])
    torch.testing.assert_close(averaged(Acquisition.LOG_EI, values, weights), (values.exp() @ weights).log())
    torch.testing.assert_close(mean_of(list(values.unbind(-1)), weights), values @ weights)


def test_an_improvement_is_averaged_over_draws_of_the_hyperparameters() -> None:
    """What a drawn mixture's point is worth is not what its first two moments promise."""
    model = quick(GPBO).learn().condition(PROBLEM.target)
    assert isinstance(model.predictor, Mixture)
    assert model.predictor.drawn
    value = acquisition_of(model, Acquisition.LOG_EI)
    mean, var = model.predictor.predict_marginal(PROBLEM.Xq)
    best = model.predictor.predict_marginal(model.train_inputs[0])[0].amin()
    moments = acquisition_values(Acquisition.LOG_EI, mean, var, best_f=best, noise_var=model.predictor.noise_var)
    every, weights = voices(model.predictor)
    own = torch.stack([PlainAcquisition(v, Acquisition.LOG_EI, best, 3.0)(PROBLEM.Xq) for v in every], dim=-1)
    torch.testing.assert_close(value(PROBLEM.Xq), (own.exp() @ weights).log(), rtol=1e-3, atol=1e-3)
    assert float((value(PROBLEM.Xq) - moments).abs().max()) > 0.05


# ── suggestions ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ALONE)
def test_a_candidate_that_is_believed_alone_makes_the_suggestion(name: str) -> None:
    """No point is worth more to that candidate, and some are to another."""
    model = disagreeing(ALONE[name])
    k = list(ALONE).index(name)
    x = suggest(model)
    missed = []
    for candidate in (model.candidate(j) for j in range(4)):
        value = acquisition_of(candidate, Acquisition.LOG_EI)
        missed.append((value(suggest(candidate).unsqueeze(0)) - value(x.unsqueeze(0))).item())
    assert missed[k] < 1e-3
    assert max(missed) > 0.01


@pytest.mark.parametrize("batch_shape", [(3,), (1, 2)])
def test_a_batch_gets_what_its_problems_get_alone(batch_shape: tuple[int, ...]) -> None:
    """With equal seeds, also where the problems of the batch believe different candidates."""
    problem = transfer_problem(batch_shape=batch_shape)
    params = params_for("AUTO", batch_shape=batch_shape)
    weights = tensor(list(ALONE.values())[::-1][: batch_shape[-1]]).expand(*batch_shape, 4)
    params = replace(params, weights=weights)
    together = suggest(AUTO.at(params, sources=problem.sources, target=problem.target), seed=3, q=2)
    assert together.shape == (*batch_shape, 2, 2)
    for i in torch.cartesian_prod(*(torch.arange(b) for b in (1, *batch_shape)))[:, 1:].tolist():
        index = tuple(i)
        one = AUTO.at(
            item_of(params, index),
            sources=[item_of(s, index) for s in problem.sources],
            target=item_of(problem.target, index),
        )
        torch.testing.assert_close(suggest(one, seed=3, q=2), together[index], rtol=0, atol=1e-4)


def test_several_points_at_once_differ_and_keep_away_from_pending_ones() -> None:
    """q = 3 gives three points; with the first of them pending the next is another."""
    model = auto_posterior([0.2, 0.2, 0.3, 0.3])
    points = suggest(model, q=3, seed=1)
    assert points.shape == (3, 2)
    apart = torch.cdist(points, points).fill_diagonal_(1.0)
    assert float(apart.min()) > 1e-3
    first = suggest(model, seed=1)
    other = suggest(model, pending=first.unsqueeze(0), seed=1)
    assert float((other - first).abs().max()) > 1e-3
    avoided = suggest(model, avoid=first.unsqueeze(0), seed=1)
    assert float((avoided - first).abs().max()) > 1e-7


def test_a_fitted_auto_suggests_near_the_optimum_of_a_related_source() -> None:
    """Before the first observation the point lies where the source was lowest."""
    X = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    prior = AUTO.learn([Dataset(X, (X - 0.7).square().sum(-1))])
    x = suggest(prior.condition())
    assert float((x - 0.7).abs().max()) < 0.15
