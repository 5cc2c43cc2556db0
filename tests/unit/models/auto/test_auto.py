"""AUTO: how its candidates are judged, and what that means for a user."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.direct import dense_scores, prequential
from tests.problems import (
    agree,
    behind_the_map,
    candidate,
    item_of,
    most_probable,
    params_for,
    predictions,
    quick,
    tensor,
    transfer_problem,
)
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, STAR, AutoParams, Dataset, InputError, StarParams
from headstart.data.units import OutputMap, OutputUnits, Units
from headstart.decide.suggest import suggest
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.candidates import Candidate, beliefs_given_trust, candidate_weights
from headstart.models.auto.gate import Informative
from headstart.models.auto.posterior import AutoPosterior, with_point_estimate
from headstart.models.chain.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.model import TransferModel
from headstart.models.sequential import SinglePrior
from headstart.models.star.star import StarPrior
from headstart.tuning import AUTO_TUNING

PROBLEM = transfer_problem(sizes=(12, 9), n_target=8)


def auto_prior(problem_sources: tuple[Dataset, ...], seed: int = 0) -> AutoPrior:
    prior = quick(AUTO).learn(problem_sources, seed=seed)
    assert isinstance(prior, AutoPrior)
    return prior


def after(prior: AutoPrior, target: Dataset, seed: int = 0) -> AutoPosterior:
    posterior = prior.condition(target, seed=seed)
    assert isinstance(posterior, AutoPosterior)
    return posterior


def alone(model: TransferModel, draws: int) -> TransferModel:
    """A model as AUTO has it among its candidates: the data come to it through AUTO's own output map."""
    return quick(model).using(output_map=OutputMap.NONE, fit=replace(quick(model).fit, draws=draws))


# ── the weights ───────────────────────────────────────────────────────────────────────────────────────────────────


BELIEVED = tensor([0.4, 0.3, 0.2, 0.1])
SCORES = tensor([[0.0, -1.0, -0.5, 0.3], [0.0, -0.2, -3.1, 0.1], [0.0, -2.0, -1.0, 1.0], [0.0, -0.5, 0.4, -2.0]])


def sequences(n: int, k: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every sequence of n of k candidates, and the logarithm of its prior probability, by the definition."""
    for path in itertools.product(range(k), repeat=n):
        log_prior = math.log(BELIEVED[path[0]])
        for t, (before, now) in enumerate(itertools.pairwise(path), start=1):
            anew = min(1.0, AUTO_TUNING.switch_rate / t)
            log_prior += math.log((1 - anew) * (before == now) + anew * float(BELIEVED[now]))
        yield path, log_prior


def test_weights_are_those_of_all_sequences_of_candidates() -> None:
    """The weight of a candidate for the next value is the posterior probability of all sequences that end with it."""
    weights = candidate_weights(SCORES, BELIEVED)
    assert weights.shape == (4, 5)
    assert weights[:, 0].tolist() == BELIEVED.tolist()
    for n in range(5):
        expected = torch.zeros(4, dtype=torch.float64)
        for path, log_prior in sequences(n + 1, 4):
            score = sum(float(SCORES[k, t]) for t, k in enumerate(path[:n]))
            expected[path[-1]] += math.exp(log_prior + score)
        assert weights[:, n].tolist() == pytest.approx((expected / expected.sum()).tolist())
    assert AUTO.names == ("kin", "star", "pooled", "plain")


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 30.0))
def test_following_any_sequence_costs_no_more_than_its_changes(seed: int, size: float) -> None:
    """Σ log Σ w exp(score) ≥ Σ score of the sequence − (m + 1) (log n + log 1/believed), with m changes in n values."""
    generator = torch.Generator().manual_seed(seed)
    n = 40
    scores = size * torch.randn(4, n, generator=generator, dtype=torch.float64)
    scores[:, 0] = 0.0
    weights = candidate_weights(scores, BELIEVED)
    reached = float((weights[:, :-1].log() + scores).logsumexp(0).sum())
    for changes in (0, 1, 3, 8):
        at = sorted(torch.randperm(n - 1, generator=generator)[:changes].add(1).tolist())
        best = [int(scores[:, a:b].sum(-1).argmax()) for a, b in itertools.pairwise([0, *at, n])]
        path = [k for k, (a, b) in zip(best, itertools.pairwise([0, *at, n]), strict=True) for _ in range(b - a)]
        followed = float(scores[path, range(n)].sum())
        cost = (changes + 1) * (math.log(n) - math.log(min(float(BELIEVED[k]) for k in best)))
        assert reached >= followed - cost - 1e-9


def test_a_candidate_that_becomes_better_catches_up() -> None:
    """After thirty results that spoke for kin, five that speak for the plain process are enough; an average is not."""
    kin, plain = [0.0, *[0.0] * 30, *[-2.0] * 5], [0.0, *[-1.0] * 30, *[0.0] * 5]
    scores = tensor([kin, [-9.0] * 36, [-9.0] * 36, plain])
    weights = candidate_weights(scores, BELIEVED)[:, -1]
    average = torch.softmax(BELIEVED.log() + scores.sum(-1), dim=-1)
    assert weights[3] > 0.9
    assert average[3] < 1e-6


def test_what_the_gate_keeps_out_does_not_come_back() -> None:
    """A candidate without belief has no weight, whatever its scores; in a batch each problem goes by its own."""
    scores = tensor([[5.0] * 9, [5.0] * 9, [5.0] * 9, [0.0] * 9])
    believed = torch.stack([BELIEVED, tensor([0.0, 0.0, 0.0, 1.0]), tensor([0.5, 0.0, 0.0, 0.5])])
    weights = candidate_weights(scores.expand(3, 4, 9), believed)[..., -1]
    assert weights[1].tolist() == [0, 0, 0, 1]
    assert weights[2, 1:3].tolist() == [0, 0]
    assert weights[0, 0].item() > 0.3


def test_belief_goes_as_far_as_the_sources_are_trusted() -> None:
    """A candidate with sources rests on the one that is trusted most; the rest is the plain process's."""
    gate = Informative(0.2 * tensor([0.6, 9.0, -9.0]), tensor([0.2] * 3))
    half, full, none = gate.trust.tolist()
    assert (half, full, none) == (pytest.approx(0.5), pytest.approx(1.0), 0.0)

    def left(sources: slice) -> list[float]:
        return beliefs_given_trust(BELIEVED, gate.trust[sources], AUTO.candidates).tolist()

    assert left(slice(2)) == pytest.approx(BELIEVED.tolist())
    assert left(slice(1)) == pytest.approx((tensor([0.2, 0.15, 0.1, 0.6]) / 1.05).tolist())
    assert left(slice(2, 3)) == [0, 0, 0, 1]


def test_before_the_first_test_the_weights_are_those_believed() -> None:
    """With no observation, or one, nobody has predicted anything."""
    prior = auto_prior(PROBLEM.sources)
    assert prior.believed.sum().item() == pytest.approx(1)
    for n in (0, 1):
        assert after(prior, PROBLEM.head(n)).weights.tolist() == pytest.approx(prior.believed.tolist())


def test_one_source_is_not_pooled() -> None:
    """There is nothing to pool it with, and so of sources of which only some are used; weights and scores follow."""
    problem, most = transfer_problem(sizes=(5,) * 129, n_target=3), ("kin", "star", "pooled", "plain")
    for n, names in ((1, ("kin", "star", "plain")), (2, most), (128, most), (129, ("kin", "star", "plain"))):
        assert AUTO._for(problem.sources[:n]).names == names
        if n > 2:
            continue
        posterior = after(auto_prior(problem.sources[:n]), problem.target)
        assert posterior.weights.shape == (len(names),)
        assert posterior.scores.shape == (len(names), 3)


def test_any_models_can_be_candidates() -> None:
    """Two of them, of which one is plain: weights, scores and explanations have their names and no others."""
    model = Auto(candidates=(Candidate("past", SHGP, 0.7), Candidate("scratch", GPBO, 0.3)))
    prior = quick(model).learn(PROBLEM.sources)
    posterior = prior.condition(PROBLEM.target)
    assert isinstance(posterior, AutoPosterior)
    assert posterior.scores.shape == (2, 8)
    assert 0 < posterior.weights[1].item() < 1
    assert torch.isfinite(predictions(posterior, PROBLEM.Xq)).all()


def test_a_value_is_scored_by_candidates_that_have_not_seen_it() -> None:
    """Score i comes from the last refit before i: hyperparameters from that many values, all earlier values known."""
    prior = auto_prior(PROBLEM.sources)
    scores = after(prior, PROBLEM.target).scores
    target = prior.inward(PROBLEM.target)
    star, plain = (alone(model, 0).learn(prior.sources) for model in (STAR, GPBO))
    assert isinstance(star, StarPrior)
    assert isinstance(plain, SinglePrior)
    in_shared_units = replace(plain, known=star.alone.units)  # few values do not tell their spread: the sources' does
    kin, _, pooled, _ = prior.priors
    for i, refit in ((1, 1), (4, 4), (6, 6), (7, 6)):  # 7 is no refit
        for k, own in enumerate((kin, replace(star, alone=prior.alone), pooled, in_shared_units)):
            posterior = own.condition(target.head(refit), seed=refit)
            layer = posterior.predictor
            assert isinstance(layer, Layer)
            score = dense_scores(layer, posterior.units.inward(target))[i] - posterior.units.scale.log()
            assert scores[k, i].item() == pytest.approx(score.item(), abs=1e-5)
    assert not scores[:, 0].any()


def test_two_values_that_happen_to_be_close_do_not_ruin_the_plain_process() -> None:
    """In the sources' units the third value is no surprise; in those of the first two it would be one for good."""
    target = PROBLEM.head(3)
    target = Dataset(target.X, torch.stack([target.y[0], target.y[0] + 1e-6, target.y[2]]))
    scores = after(auto_prior(PROBLEM.sources), target).scores
    plain = scores[-1]
    assert plain[1:].abs().max().item() < 5
    assert plain.sum().item() > scores[:-1].sum(-1).max().item() - 5
    assert prequential(most_probable(quick(GPBO)).learn(), target)[2].item() < -1e3


def test_from_five_values_on_a_target_of_another_order_of_magnitude_has_units_of_its_own() -> None:
    """A hundred times smaller than the sources, it is predicted better than they allow, and nobody does it better."""
    prior = auto_prior(PROBLEM.sources)
    target = Dataset(PROBLEM.target.X, 0.01 * PROBLEM.target.y)
    scores = after(prior, target).scores
    *others, plain = scores[:, 5:].sum(-1).tolist()
    own = prior.priors[-1]
    assert isinstance(own, SinglePrior)
    at_its_mode = replace(own, model=own.model.using(fit=replace(own.model.fit, draws=0)), known=prior.alone.units)
    in_the_sources_units = prequential(at_its_mode, prior.inward(target))
    torch.testing.assert_close(scores[-1, :5], in_the_sources_units[:5])
    assert plain > in_the_sources_units[5:].sum().item() + 2
    assert plain > max(others)


def test_units_that_are_known_are_taken_instead_of_the_target_s_own() -> None:
    """A plain process in its own units, given as known ones, is itself; in others it is another."""
    prior, target = quick(GPBO).learn(), PROBLEM.target
    assert isinstance(prior, SinglePrior)
    assert prior.known is None
    own = prior.condition(target)
    again = replace(prior, known=Units.of([prior.inward(target)])).condition(target)
    assert torch.equal(predictions(own, PROBLEM.Xq), predictions(again, PROBLEM.Xq))
    known = Units(tensor(3.0), tensor(50.0))
    other = replace(prior, known=known).condition(target)
    assert (other.units.offset.item(), other.units.scale.item()) == (3.0, 50.0)
    assert not agree(predictions(own, PROBLEM.Xq), predictions(other, PROBLEM.Xq), rtol=1e-3)
    alone = prior.condition(Dataset(target.X[:1], known.inward(target).y[:1])).predict(PROBLEM.Xq)
    mean, var = replace(prior, known=known).condition(PROBLEM.head(1)).predict(PROBLEM.Xq)
    torch.testing.assert_close((mean - 3) / 50, alone[0])
    torch.testing.assert_close(var / 2500, alone[1])


def test_a_run_from_the_start_and_one_read_from_a_file_are_judged_alike() -> None:
    """Asked at every step, or once at the end, with other seeds on the way: the weights are identical."""
    running, cold = auto_prior(PROBLEM.sources), auto_prior(PROBLEM.sources)
    for n in range(9):
        running.condition(PROBLEM.head(n), seed=n)
    a, b = after(running, PROBLEM.target, seed=3), after(cold, PROBLEM.target)
    assert torch.equal(a.weights, b.weights)
    assert torch.equal(a.scores, b.scores)
    assert torch.equal(predictions(a, PROBLEM.Xq), predictions(b, PROBLEM.Xq))


def test_earlier_scores_stay_when_the_target_grows() -> None:
    """What was said once is not said differently later."""
    prior = auto_prior(PROBLEM.sources)
    some, more = (after(prior, PROBLEM.head(n)).scores for n in (5, 8))
    torch.testing.assert_close(more[:, :5], some)


def test_what_is_kept_of_one_target_is_not_used_for_another() -> None:
    """Values that changed in the past are judged anew."""
    prior = auto_prior(PROBLEM.sources)
    changed = Dataset(PROBLEM.target.X, PROBLEM.target.y + torch.arange(8) % 2)
    after(prior, PROBLEM.target)
    torch.testing.assert_close(
        after(prior, changed).weights, after(auto_prior(PROBLEM.sources), changed).weights, rtol=0, atol=0
    )


@pytest.mark.parametrize("flat", [False, True], ids=["varying", "constant"])
@pytest.mark.parametrize("n", [2, 5])
def test_weights_do_not_depend_on_the_units_of_y(flat: bool, n: int) -> None:
    """5 y + 100 of all tasks leads to the same weights, and the same predictions in those units."""
    sources = tuple(Dataset(s.X, 0 * s.y + 1) if flat else s for s in PROBLEM.sources)

    def moved(task: Dataset) -> Dataset:
        return Dataset(task.X, 5 * task.y + 100)

    here = after(auto_prior(sources), PROBLEM.head(n))
    there = after(auto_prior(tuple(moved(s) for s in sources)), moved(PROBLEM.head(n)))
    torch.testing.assert_close(there.weights, here.weights, rtol=1e-3, atol=1e-4)
    mean, var = there.predict(PROBLEM.Xq)
    assert agree((mean - 100) / 5, here.predict(PROBLEM.Xq)[0], rtol=1e-3)
    assert agree(var / 25, here.predict(PROBLEM.Xq)[1], rtol=1e-3)


def test_candidates_speak_the_same_units() -> None:
    """In AUTO each candidate predicts what it does as a model of its own, of data behind the same output map.

    The plain one has its most probable hyperparameters alone where others are believed more.
    """
    prior = auto_prior(PROBLEM.sources)
    posterior, target = after(prior, PROBLEM.target), prior.inward(PROBLEM.target)
    plain = alone(GPBO, 0).learn().condition(target, seed=target.n)
    assert posterior.weights[-1].item() < 0.5
    informed = [own.condition(target, seed=target.n) for own in prior.priors[:-1]]
    for k, own in enumerate((*informed, plain)):
        one = candidate(posterior, k)
        assert agree(predictions(behind_the_map(one), PROBLEM.Xq), predictions(own, PROBLEM.Xq), rtol=1e-5)


def test_a_batch_has_the_weights_of_its_problems() -> None:
    """Learnt and judged together, every problem has the weights it has alone."""
    problem = transfer_problem(batch_shape=(2,), sizes=(9, 6), n_target=4)
    together = after(auto_prior(problem.sources), problem.target)
    assert together.weights.shape == (2, 4)
    for i in range(2):
        alone = after(auto_prior(tuple(item_of(s, i) for s in problem.sources)), item_of(problem.target, i))
        torch.testing.assert_close(together.weights[i], alone.weights, rtol=1e-4, atol=1e-6)


def test_a_copy_of_a_prior_has_a_memory_of_its_own() -> None:
    """What a deep copy learns is not written into the original."""
    prior = auto_prior(PROBLEM.sources)
    other = copy.deepcopy(prior)
    after(other, PROBLEM.target)
    assert not prior._cache._kinds
    assert torch.equal(after(prior, PROBLEM.target).weights, after(other, PROBLEM.target).weights)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ((Candidate("a", GPBO, 0.5), Candidate("a", SHGP, 0.5)), "names of their own"),
        ((Candidate("a", GPBO, 0.5), Candidate("b", SHGP, 0.0)), "believed must be positive"),
        ((Candidate("a", STAR, 0.5), Candidate("b", SHGP, 0.5)), "plain process"),
        ((Candidate("a", GPBO, 0.5), Candidate("b", GPBO, 0.5)), "plain process"),
    ],
)
def test_candidates_that_make_no_sense_are_refused(candidates: tuple[Candidate, ...], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(InputError, match=message):
        Auto(candidates=candidates)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5, 0.5], "one value per candidate"),
        ([0.5, 0.4, 0.2, -0.1], "negative"),
        ([0.5, 0.5, 0.5, 0.5], "add up to 1"),
    ],
)
def test_weights_that_are_no_probabilities_are_refused(weights: list[float], message: str) -> None:
    """``at`` takes a weight for each candidate, and their sum is 1."""
    params = params_for("AUTO")
    assert isinstance(params, AutoParams)
    with pytest.raises(InputError, match=message):
        AUTO.at(replace(params, weights=tensor(weights)), sources=PROBLEM.sources, target=PROBLEM.target)


def test_with_one_source_it_is_found_again_at_its_hyperparameters() -> None:
    """A single source is not pooled, and ``at`` takes the hyperparameters of the other candidates."""
    problem = transfer_problem(sizes=(5,) * 6, n_target=3)
    prior = auto_prior(problem.sources[:1])
    found = after(prior, problem.target)
    again = AUTO.at(found.hyperparameters, sources=prior.sources, target=prior.inward(problem.target))
    assert isinstance(again, AutoPosterior)
    assert prior.model.names == ("kin", "star", "plain")
    torch.testing.assert_close(again.weights, found.weights)
    with pytest.raises(InputError, match="AUTO has 4 candidates, but 3 are given"):
        AUTO.at(found.hyperparameters, sources=problem.sources, target=prior.inward(problem.target))


# ── what it is for ────────────────────────────────────────────────────────────────────────────────────────────────


def bowl(X: Tensor) -> Tensor:
    """A valley with ripples; its minimum is at about (0.31, 0.31)."""
    return (4 * (X - 0.3).square() + 0.3 * torch.cos(9 * (X + 0.05))).sum(-1)


def source(change: str, seed: int) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(30, 2, generator=generator, dtype=torch.float64)
    y = bowl(X - 0.03)
    noise = y.mean() + y.std() * torch.randn(30, generator=generator, dtype=torch.float64)
    return Dataset(X, {"related": y, "negated": -y, "noise": noise, "constant": 0 * y + 1}[change])


def run(
    model: TransferModel, sources: list[Dataset], *, seed: int, steps: int = 8
) -> tuple[float, AutoPosterior | None]:
    """The best value after some steps, and the last posterior where it is AUTO's."""
    prior, target = quick(model).learn(sources), Dataset.empty(2)
    x = torch.rand(2, generator=torch.Generator().manual_seed(100 + seed), dtype=torch.float64)
    posterior = None
    for step in range(steps):
        posterior = prior.condition(target, seed=step)
        informed = isinstance(posterior, AutoPosterior) and float(posterior.weights[-1]) < 1
        x = suggest(posterior, seed=step, n_candidates=128, n_starts=2) if step or informed else x
        target = target.with_point(x, bowl(x))
    return float(target.y.min()), posterior if isinstance(posterior, AutoPosterior) else None


def test_a_negated_source_is_found_out() -> None:
    """Kin loses most of its weight, and AUTO ends about where GPBO does, or better."""
    value, posterior = run(AUTO, [source("negated", 0)], seed=0)
    assert posterior is not None
    assert posterior.weights[0].item() < 0.25
    assert value < run(GPBO, [], seed=0)[0] + 0.05


@pytest.mark.parametrize("change", ["noise", "constant"])
def test_a_source_that_says_nothing_leaves_the_plain_process(change: str) -> None:
    """It is not trusted: the weights are those of GPBO, which begins with the best point of the past."""
    value, posterior = run(AUTO, [source(change, 1)], seed=0, steps=4)
    assert posterior is not None
    assert posterior.weights.tolist() == [0, 0, 1]
    assert posterior.blind
    assert math.isfinite(value)
    last = after(auto_prior((source(change, 1),)), Dataset.empty(2))
    first = suggest(last, seed=0)
    assert torch.equal(first, source(change, 1).X[source(change, 1).y.argmin()])


def test_a_related_source_is_a_head_start() -> None:
    """The first suggestion is near the optimum, and plain weight stays small."""
    value, posterior = run(AUTO, [source("related", 0)], seed=0, steps=5)
    assert posterior is not None
    first = posterior.train_inputs[0][0]
    assert float((first - 0.31).abs().max()) < 0.12
    assert posterior.weights[-1].item() < 0.5
    assert value < float(bowl(tensor([0.31, 0.31]))) + 0.05


def test_one_good_source_among_bad_ones_is_used() -> None:
    """Noise and constants are not trusted, and the good one still makes the first suggestion."""
    sources = [source("noise", 1), source("related", 0), source("constant", 2), source("noise", 3)]
    posterior = quick(AUTO).learn(sources).condition()
    assert isinstance(posterior, AutoPosterior)
    params = posterior.hyperparameters
    assert isinstance(params, AutoParams)
    kin = params.candidates[0]
    assert isinstance(kin, StarParams)
    assert (kin.weights != 0).tolist() == [False, True, False, False]
    x = suggest(candidate(posterior, 0))
    assert float((x - 0.31).abs().max()) < 0.12


def test_one_value_does_not_decide_for_good() -> None:
    """After a value that it thought impossible a candidate comes back with a few good predictions."""
    surprise = tensor([[0.0, -5.0]] * 3 + [[0.0, -5000.0]])
    recovered = torch.cat([surprise, tensor([[-2.0] * 4] * 3 + [[0.0] * 4])], dim=-1)
    assert candidate_weights(surprise, BELIEVED)[-1, -1] < 0.06
    assert candidate_weights(recovered, BELIEVED)[-1, -1] > 0.5


@pytest.mark.parametrize("useful", [False, True])
def test_the_plain_candidate_is_gpbo_to_the_last_bit(useful: bool) -> None:
    """From two observations on, of data behind AUTO's output map: without a useful source nothing else is left.

    With one it is GPBO without its doubts about the hyperparameters.
    """
    problem = transfer_problem(n_target=6)
    prior = quick(AUTO).learn([s if useful else Dataset(s.X, 0 * s.y) for s in problem.sources])
    posterior = prior.condition(problem.target)
    assert isinstance(posterior, AutoPosterior)
    assert (posterior.weights[-1].item() < 0.5) is useful
    own = alone(GPBO, 8).learn([]).condition(prior.inward(problem.target), seed=problem.target.n)
    plain = behind_the_map(candidate(posterior, 3))
    assert isinstance(plain.predictor, Mixture)
    assert isinstance(own.predictor, Mixture)
    if useful:
        assert plain.predictor.weights.tolist() == [1.0] + [0.0] * 8
        expected = alone(GPBO, 0).learn([]).condition(prior.inward(problem.target), seed=problem.target.n)
    else:
        assert torch.equal(plain.predictor.weights, own.predictor.weights)
        expected = own
    found = predictions(plain, problem.Xq)
    torch.testing.assert_close(found, predictions(expected, problem.Xq), rtol=1e-12, atol=1e-12)


def test_a_plain_candidate_is_sure_of_itself_problem_by_problem() -> None:
    """Its weights are on the first member in the problems that are named; a single layer is left as it is."""
    problem = transfer_problem(batch_shape=(2,), n_target=3)
    plain = alone(GPBO, 8).learn().condition(problem.target).predictor
    assert isinstance(plain, Mixture)
    sure = with_point_estimate(plain, torch.tensor([True, False]))
    assert isinstance(sure, Mixture)
    assert sure.weights[0].tolist() == [1.0] + [0.0] * 8
    assert torch.equal(sure.weights[1], plain.weights[1])
    assert 0 < plain.weights[1, 0].item() < 1
    layer = plain.members[0]
    assert isinstance(layer, Layer)
    assert with_point_estimate(layer, torch.tensor([True, False])) is layer


def test_candidates_share_their_units() -> None:
    """Units per level would be ignored, so they are refused."""
    with pytest.raises(InputError, match=r"units must be OutputUnits\.SHARED"):
        AUTO.using(units=OutputUnits.PER_LEVEL)
