"""AUTO: how its candidates are judged, and what that means for a user."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from tests.problems import agree, behind_the_map, item_of, params_for, predictions, quick, tensor, transfer_problem
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, STAR, AutoParams, Dataset, InputError
from headstart.data.units import OutputMap, Units
from headstart.decide.suggest import suggest
from headstart.models.auto import CANDIDATES, Auto, AutoPrior, _remember, _sure_of_itself, judged
from headstart.models.auto_posterior import AutoPosterior
from headstart.models.gate import Informative
from headstart.models.layer import Layer
from headstart.models.mixture import Mixture
from headstart.models.model import TransferModel
from headstart.models.prequential import prequential, sequential_scores
from headstart.models.single import SinglePrior
from headstart.models.star import StarPrior

PROBLEM = transfer_problem(sizes=(12, 9), n_target=8)
OPEN, SHUT = Informative(tensor([1.0]), tensor([0.1])), Informative(tensor([0.0]), tensor([0.1]))


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


def test_weights_are_posterior_probabilities_with_a_share_for_the_plain_process() -> None:
    """w ∝ believed · exp(Σ scores), of which ``share`` goes to the plain process and the rest to all."""
    model = Auto(share=0.2, believed=(0.5, 0.3, 0.2))
    scores = tensor([[0.0, -1.0, -0.5], [0.0, -0.2, -0.1], [0.0, -2.0, -1.0]])
    parts = [b * math.exp(s) for b, s in zip((0.5, 0.3, 0.2), (-1.5, -0.3, -3.0), strict=True)]
    expected = [0.8 * part / sum(parts) for part in parts]
    expected[2] += 0.2
    found = judged(scores, OPEN, model)
    assert found.weights.tolist() == pytest.approx(expected)
    assert found.candidates == CANDIDATES == ("star", "chain", "plain")
    assert torch.equal(found.scores, scores)


def test_the_plain_process_keeps_its_share_against_any_evidence() -> None:
    """However badly it predicted, its weight does not fall below; nor does it rise above 1."""
    lost = judged(tensor([[0.0] * 9, [0.0] * 9, [-1e6] * 9]), OPEN, AUTO).weights
    assert lost[-1].item() == pytest.approx(AUTO.share)
    assert lost.sum().item() == pytest.approx(1)
    won = judged(tensor([[-1e6] * 9, [-1e6] * 9, [0.0] * 9]), OPEN, AUTO).weights
    assert won.tolist() == pytest.approx([0, 0, 1])


def test_without_a_source_that_is_let_in_the_plain_process_has_it_all() -> None:
    """Whatever the scores; in a batch each problem goes by its own gates."""
    scores = tensor([[5.0], [5.0], [0.0]])
    assert judged(scores, SHUT, AUTO).weights.tolist() == [0, 0, 1]
    gates = Informative(tensor([[0.0, 1.0], [0.0, 0.0]]), tensor([[0.1, 0.1], [0.1, 0.1]]))
    weights = judged(scores.expand(2, 3, 1), gates, AUTO).weights
    assert weights[1].tolist() == [0, 0, 1]
    assert weights[0, 0].item() > 0.5


def test_the_chain_is_believed_only_where_all_sources_are_let_in() -> None:
    """It runs through all of them: one that is shut leaves it nothing, whatever it scored, in that problem alone."""
    scores = tensor([[-3.0], [5.0], [-4.0]])
    gates = Informative(tensor([[1.0, 0.0], [1.0, 1.0]]), tensor([[0.1, 0.1], [0.1, 0.1]]))
    one_shut, all_open = judged(scores.expand(2, 3, 1), gates, AUTO).weights
    star, _, plain = (b * math.exp(s) for b, s in zip(AUTO.believed, (-3.0, 5.0, -4.0), strict=True))
    expected = [(1 - AUTO.share) * part / (star + plain) for part in (star, 0.0, plain)]
    expected[-1] += AUTO.share
    assert one_shut.tolist() == pytest.approx(expected)
    assert one_shut[1].item() == 0
    assert all_open[1].item() > 0.85


def test_a_chain_is_less_likely_the_more_orders_it_could_have() -> None:
    """With s sources one in s of the chain's first belief is left: any of them may be the one most like the target."""
    star, chain, plain = AUTO.believed
    for s in (1, 2, 5):
        found = judged(tensor([[0.0], [0.0], [0.0]]), Informative(torch.ones(s), torch.full((s,), 0.1)), AUTO).weights
        parts = [star, chain / s, plain]
        expected = [(1 - AUTO.share) * part / sum(parts) for part in parts]
        expected[-1] += AUTO.share
        assert found.tolist() == pytest.approx(expected)


def test_before_the_first_test_the_weights_are_those_believed() -> None:
    """With no observation, or one, nobody has predicted anything."""
    prior = auto_prior(PROBLEM.sources)
    share, believed = prior.model.share, tensor(prior.model.believed)
    believed[1] /= len(PROBLEM.sources)
    expected = (1 - share) * believed / believed.sum()
    expected[-1] += share
    for n in (0, 1):
        assert after(prior, PROBLEM.head(n)).weights.tolist() == pytest.approx(expected.tolist())


def test_a_value_is_scored_by_candidates_that_have_not_seen_it() -> None:
    """Score i comes from the last refit before i: hyperparameters from that many values, all earlier values known."""
    prior = auto_prior(PROBLEM.sources)
    judgement = after(prior, PROBLEM.target).judgement
    assert judgement is not None
    target = prior.inward(PROBLEM.target)
    star, chain, plain = (alone(model, 0).learn(prior.sources) for model in (STAR, SHGP, GPBO))
    assert isinstance(star, StarPrior)
    assert isinstance(plain, SinglePrior)
    in_shared_units = replace(plain, known=star.units)  # few values do not tell their spread: the sources' is taken
    for i, refit in ((1, 1), (4, 4), (6, 6), (7, 6)):  # 7 is no refit
        for k, candidate in enumerate((star.gated(prior.gate.open), chain, in_shared_units)):
            posterior = candidate.condition(target.head(refit), seed=refit)
            inward, predictor = posterior.units.inward(target), posterior.predictor
            assert isinstance(predictor, Layer)
            score = sequential_scores(predictor, inward.X, inward.y, after=refit)[i] - posterior.units.scale.log()
            assert judgement.scores[k, i].item() == pytest.approx(score.item(), abs=1e-5)
    assert not judgement.scores[:, 0].any()


def test_two_values_that_happen_to_be_close_do_not_ruin_the_plain_process() -> None:
    """In the sources' units the third value is no surprise; in those of the first two it would be one for good."""
    target = PROBLEM.head(3)
    target = Dataset(target.X, torch.stack([target.y[0], target.y[0] + 1e-6, target.y[2]]))
    judgement = after(auto_prior(PROBLEM.sources), target).judgement
    assert judgement is not None
    plain = judgement.scores[2]
    assert plain[1:].abs().max().item() < 5
    assert plain.sum().item() > judgement.scores[:2].sum(-1).max().item() - 5
    assert prequential(quick(GPBO).learn(), target)[2].item() < -1e3


def test_from_five_values_on_a_target_of_another_order_of_magnitude_has_units_of_its_own() -> None:
    """A hundred times smaller than the sources, it is predicted better than they allow, and nobody does it better."""
    prior = auto_prior(PROBLEM.sources)
    target = Dataset(PROBLEM.target.X, 0.01 * PROBLEM.target.y)
    judgement = after(prior, target).judgement
    assert judgement is not None
    star, chain, plain = judgement.scores[:, 5:].sum(-1).tolist()
    model = prior.plain.model.using(fit=replace(prior.plain.model.fit, draws=0))
    at_its_mode = replace(prior.plain, model=model, known=prior.star.units)
    in_the_sources_units = prequential(at_its_mode, prior.inward(target))
    torch.testing.assert_close(judgement.scores[2, :5], in_the_sources_units[:5])
    assert plain > in_the_sources_units[5:].sum().item() + 2
    assert plain > max(star, chain)


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
    assert a.judgement is not None
    assert b.judgement is not None
    assert torch.equal(a.judgement.scores, b.judgement.scores)
    assert torch.equal(predictions(a, PROBLEM.Xq), predictions(b, PROBLEM.Xq))


def test_earlier_scores_stay_when_the_target_grows() -> None:
    """What was said once is not said differently later."""
    prior = auto_prior(PROBLEM.sources)
    some, more = (after(prior, PROBLEM.head(n)).judgement for n in (5, 8))
    assert some is not None
    assert more is not None
    torch.testing.assert_close(more.scores[:, :5], some.scores)


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
    chain = alone(SHGP, 0).learn(prior.sources).condition(target, seed=target.n)
    plain = alone(GPBO, 0).learn().condition(target, seed=target.n)
    assert posterior.weights[-1].item() < 0.5
    star = prior.star.condition(target, seed=target.n)
    for k, own in enumerate((star, chain, plain)):
        candidate = posterior.candidate(k)
        assert candidate.warp is posterior.warp
        assert agree(predictions(behind_the_map(candidate), PROBLEM.Xq), predictions(own, PROBLEM.Xq), rtol=1e-5)


def test_a_batch_has_the_weights_of_its_problems() -> None:
    """Learnt and judged together, every problem has the weights it has alone."""
    problem = transfer_problem(batch_shape=(2,), sizes=(9, 6), n_target=4)
    together = after(auto_prior(problem.sources), problem.target)
    assert together.weights.shape == (2, 3)
    for i in range(2):
        alone = after(auto_prior(tuple(item_of(s, i) for s in problem.sources)), item_of(problem.target, i))
        torch.testing.assert_close(together.weights[i], alone.weights, rtol=1e-4, atol=1e-6)


def test_a_copy_of_a_prior_has_a_memory_of_its_own() -> None:
    """What a deep copy learns is not written into the original."""
    prior = auto_prior(PROBLEM.sources)
    other = copy.deepcopy(prior)
    after(other, PROBLEM.target)
    assert not prior._informed
    assert torch.equal(after(prior, PROBLEM.target).weights, after(other, PROBLEM.target).weights)


def test_the_memory_is_bounded() -> None:
    """However many targets are asked about, no more than 64 results are kept, the latest ones."""
    kept: dict[bytes, int] = {}
    for i in range(100):
        _remember(kept, bytes([i]), i)
    assert list(kept.values()) == list(range(36, 100))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"share": -0.1}, "share"),
        ({"share": 1.5}, "share"),
        ({"believed": (0.5, 0.5)}, "believed"),
        ({"believed": (0.5, 0.0, 0.5)}, "believed"),
    ],
)
def test_numbers_that_are_no_weights_are_refused(option: dict[str, object], message: str) -> None:
    """The message names the option."""
    with pytest.raises(InputError, match=message):
        AUTO.using(**option)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([0.5, 0.5], "one value per candidate"), ([0.5, 0.6, -0.1], "negative"), ([0.5, 0.5, 0.5], "add up to 1")],
)
def test_weights_that_are_no_probabilities_are_refused(weights: list[float], message: str) -> None:
    """``at`` takes a weight for each candidate, and their sum is 1."""
    params = params_for("AUTO")
    assert isinstance(params, AutoParams)
    with pytest.raises(InputError, match=message):
        AUTO.at(replace(params, weights=tensor(weights)), sources=PROBLEM.sources, target=PROBLEM.target)


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
    """The chain loses its weight, and AUTO ends about where GPBO does, or better, over two runs."""
    found, alone = [], []
    for seed in range(2):
        value, posterior = run(AUTO, [source("negated", seed)], seed=seed)
        assert posterior is not None
        assert posterior.weights[1].item() < 0.05
        found.append(value)
        alone.append(run(GPBO, [source("negated", seed)], seed=seed)[0])
    assert sum(found) / 2 < sum(alone) / 2 + 0.05


@pytest.mark.parametrize("change", ["noise", "constant"])
def test_a_source_that_says_nothing_leaves_the_plain_process(change: str) -> None:
    """It is not let in: the weights and every suggestion are those of GPBO."""
    value, posterior = run(AUTO, [source(change, 1)], seed=0, steps=4)
    assert posterior is not None
    assert posterior.weights.tolist() == [0, 0, 1]
    assert posterior.judgement is not None
    assert posterior.judgement.gate.open.tolist() == [False]
    assert value == pytest.approx(run(GPBO, [], seed=0, steps=4)[0], abs=1e-3)


def test_a_related_source_is_a_head_start() -> None:
    """The first suggestion is near the optimum, and plain weight stays small."""
    value, posterior = run(AUTO, [source("related", 0)], seed=0, steps=5)
    assert posterior is not None
    first = posterior.train_inputs[0][0]
    assert float((first - 0.31).abs().max()) < 0.12
    assert posterior.weights[-1].item() < 0.5
    assert value < float(bowl(tensor([0.31, 0.31]))) + 0.05


def test_one_good_source_among_bad_ones_is_used() -> None:
    """Noise and constants are shut out, and the good one still makes the first suggestion."""
    sources = [source("noise", 1), source("related", 0), source("constant", 2), source("noise", 3)]
    posterior = quick(AUTO).learn(sources).condition()
    assert isinstance(posterior, AutoPosterior)
    assert posterior.judgement is not None
    assert posterior.judgement.gate.open.tolist() == [False, True, False, False]
    params = posterior.hyperparameters
    assert isinstance(params, AutoParams)
    assert (params.star.weights != 0).tolist() == [False, True, False, False]
    x = suggest(posterior.candidate(0))
    assert float((x - 0.31).abs().max()) < 0.12


def test_one_value_does_not_decide_for_good() -> None:
    """A candidate falls behind by at most 10 nats with a single value, so that a few good predictions bring it back."""
    gate = Informative(tensor([1.0]), tensor([0.1]))
    surprise = tensor([[0.0, -5.0], [0.0, -5.0], [0.0, -5000.0]])
    recovered = torch.cat([surprise, tensor([[-2.0] * 6, [-2.0] * 6, [0.0] * 6])], dim=-1)
    assert judged(surprise, gate, AUTO.using(share=0.0)).weights[-1] < 1e-3
    assert judged(recovered, gate, AUTO.using(share=0.0)).weights[-1] > 0.5


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
    plain = behind_the_map(posterior.candidate(2))
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
    sure = _sure_of_itself(plain, torch.tensor([True, False]))
    assert isinstance(sure, Mixture)
    assert sure.weights[0].tolist() == [1.0] + [0.0] * 8
    assert torch.equal(sure.weights[1], plain.weights[1])
    assert 0 < plain.weights[1, 0].item() < 1
    layer = plain.members[0]
    assert isinstance(layer, Layer)
    assert _sure_of_itself(layer, torch.tensor([True, False])) is layer
