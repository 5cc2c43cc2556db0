"""The next points where several things are measured."""

from __future__ import annotations

import pytest
import torch
from tests.outcome_problems import FUNCTIONS, LIMITED, TWO, known
from tests.problems import points, quick, tensor

from headstart import (
    AUTO,
    FAMILY,
    Candidates,
    Choices,
    Dataset,
    FloatRange,
    InputError,
    Mixed,
    NoPointLeftError,
    Space,
    suggest,
)
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.aim import Aim
from headstart.decide.value import AimValue
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors

GRID = torch.cartesian_prod(*[torch.linspace(0, 1, 101, dtype=torch.float64)] * 2)


def _value(found: OutcomePosteriors) -> AimValue:
    return Aim.of(found).value(GRID, GRID[:0], torch.Generator())


# ── what is chosen ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [0, 4])
def test_with_a_limit_the_best_point_within_it_is_sought(n: int) -> None:
    """The objective is lowest outside: the suggestion is near the edge of what is allowed, on the objective's side."""
    x = suggest(known(LIMITED, n))
    assert torch.linalg.vector_norm(x - tensor([0.4, 0.5])) < (0.15 if n == 0 else 0.08)


@pytest.mark.parametrize("outcomes", [TWO, LIMITED], ids=["two objectives", "a limit"])
@pytest.mark.parametrize("n", [9])
def test_nothing_on_a_fine_grid_is_better(outcomes: Outcomes, n: int) -> None:
    """Once AUTO is not cautious any more, 10,201 grid points find nothing better."""
    found = known(outcomes, n)
    x, value = suggest(found), _value(found)
    with torch.no_grad():
        assert float(value(x.unsqueeze(0))) >= float(value(GRID).max()) - 0.02


def test_two_objectives_share_the_points_out() -> None:
    """Five points chosen one after the other reach from one end of the front to the other, and lie on it."""
    X = torch.empty(0, 2, dtype=torch.float64)
    for _ in range(5):
        X = torch.cat([X, suggest(known(TWO, 0, X=X)).unsqueeze(0)])
    assert bool((X[:, 1] - 0.5).abs().max() < 0.12)
    assert float(X[:, 0].max() - X[:, 0].min()) > 0.3
    assert bool(((X[:, 0] > 0.15) & (X[:, 0] < 0.85)).all())


def test_three_objectives_work() -> None:
    """With some results and with none."""
    outcomes = Outcomes((Goal("cost"), Goal("loss"), Goal("impurity")))
    for n in (0, 4):
        x = suggest(known(outcomes, n), n_candidates=128)
        assert bool(((x >= 0) & (x <= 1)).all())
        assert 0.1 < float(x[0]) < 0.9


# ── signs and units ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [pytest.param(0, marks=pytest.mark.slow), 4])
def test_to_maximise_is_to_minimise_the_opposite(n: int) -> None:
    """And at least −c of −y is at most c of y: the same points come back, and predictions have the user's sign."""
    turned = Outcomes((Goal("cost", maximize=True),), (Limit("impurity", at_least=-0.04),))
    found, opposite = known(LIMITED, n), known(turned, n, turned=True)
    assert torch.equal(suggest(found), suggest(opposite))
    X = points(3, seed=9)
    for name in ("cost", "impurity"):
        assert torch.equal(found.predict(X)[name][0], -opposite.predict(X)[name][0])
    assert torch.equal(found.probability_within(X), opposite.probability_within(X))


def test_a_slip_of_a_sign_would_be_seen() -> None:
    """The highest cost is far from the lowest, and what is at least 0.04 impure is elsewhere."""
    lowest = suggest(known(LIMITED, 4))
    highest = suggest(known(Outcomes((Goal("cost", maximize=True),), LIMITED.limits), 4))
    impure = suggest(known(Outcomes((Goal("cost"),), (Limit("impurity", at_least=0.3),)), 4))
    assert FUNCTIONS["cost"](highest) > FUNCTIONS["cost"](lowest) + 0.05
    assert FUNCTIONS["impurity"](lowest) < 0.06
    assert FUNCTIONS["impurity"](impure) > 0.2


@pytest.mark.parametrize("outcomes", [TWO, LIMITED], ids=["two objectives", "a limit"])
def test_units_do_not_matter(outcomes: Outcomes) -> None:
    """Everything a thousand times as large, limits included, gives the same point."""
    large = Outcomes(outcomes.goals, tuple(Limit(own.name, at_most=1000 * own.ends[0]) for own in outcomes.limits))
    x, y = suggest(known(outcomes, 4)), suggest(known(large, 4, scale=1000.0))
    torch.testing.assert_close(x, y, rtol=0, atol=1e-3)


# ── what is known ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [0, 3, pytest.param(9, marks=pytest.mark.slow)])
def test_one_objective_without_limits_is_suggest(n: int) -> None:
    """To the last digit, with pending points too."""
    found = known(Outcomes((Goal("cost"),)), n)
    pending = points(2, seed=3)
    assert torch.equal(suggest(found, seed=4), suggest(found.posteriors[0], seed=4))
    both = [suggest(own, pending=pending, n_candidates=128) for own in (found, found.posteriors[0])]
    assert torch.equal(*both)


def test_before_anything_is_within_the_limits_the_way_there_comes_first() -> None:
    """All results are outside: the next point is likely within, although the objective is better elsewhere."""
    X = tensor([[0.1, 0.1], [0.2, 0.5], [0.1, 0.9], [0.25, 0.4]])
    found = known(LIMITED, 4, X=X)
    assert not len(Aim.of(found).within(X))
    x = suggest(found).unsqueeze(0)
    assert float(found.probability_within(x)) > 0.5
    assert float(found.probability_within(X).max()) < 0.2


def test_a_limit_that_was_never_measured_changes_nothing() -> None:
    """No source has it and no result: it is as likely as not everywhere."""
    outcomes = Outcomes((Goal("cost"), Goal("loss")), (Limit("colour", at_most=1.0),))
    found = known(TWO, 4)
    never = OutcomePriors.learn(Outcomes((Goal("colour"),)), {}).condition({"colour": Dataset.empty(2)})
    with_limit = OutcomePosteriors(outcomes, (*found.posteriors, *never.posteriors))
    assert torch.equal(suggest(found), suggest(with_limit))
    assert with_limit.probability_within(points(3, seed=0)).tolist() == [0.5] * 3


def test_a_result_may_lack_an_outcome_and_so_may_a_source() -> None:
    """What is there counts: without its objective a point is no result, without its limit it is judged by the model."""
    X = points(6, seed=5)
    tasks = {name: Dataset(X, FUNCTIONS[name](X)) for name in ("cost", "impurity")}
    sources = {"cost": [Dataset(points(15, seed=0), FUNCTIONS["cost"](points(15, seed=0)))]}
    prior = OutcomePriors.learn(LIMITED, sources)
    found = prior.condition({"cost": tasks["cost"].head(4), "impurity": Dataset(X[1:], tasks["impurity"].y[1:])})
    aim = Aim.of(found)
    assert torch.equal(aim.results, X[:4])
    assert len(aim.observed) == 6
    assert torch.equal(aim.within(X[1:]), X[1:][FUNCTIONS["impurity"](X[1:]) <= 0.04])
    assert not bool(aim.blind)
    assert suggest(found).shape == (2,)


def test_nothing_known_at_all_is_begun_with_the_same_design() -> None:
    """Without sources, the first points are those of one outcome without sources."""
    for n in range(3):
        found = known(LIMITED, n, past=False)
        assert torch.equal(suggest(found, seed=2), suggest(found.posteriors[0], seed=2))


# ── batches, and where a point may be ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("outcomes", "n"),
    [
        pytest.param(TWO, 4, id="two objectives"),
        pytest.param(TWO, 0, marks=pytest.mark.slow, id="two objectives, no results"),
        pytest.param(LIMITED, 0, id="a limit"),
        pytest.param(LIMITED, 4, marks=pytest.mark.slow, id="a limit, some results"),
    ],
)
def test_a_batch_keeps_its_points_apart(outcomes: Outcomes, n: int) -> None:
    """None is pending or another of the batch, and equal seeds give equal points."""
    found, pending = known(outcomes, n), tensor([[0.42, 0.5]])
    batch = suggest(found, q=2, pending=pending, n_candidates=128)
    assert batch.shape == (2, 2)
    every = torch.cat([pending, batch])
    assert float((torch.cdist(every, every) + torch.eye(3)).min()) > 0.01
    assert torch.equal(batch, suggest(found, q=2, pending=pending, n_candidates=128))


@pytest.mark.parametrize("name", [pytest.param("GPBO", marks=pytest.mark.slow), "RGPE", "HGP", "BHGP"])
def test_every_kind_of_model_can_be_asked(name: str) -> None:
    """Those without a surface are differentiated instead; pending points included."""
    found = known(LIMITED, 5, model=quick(FAMILY[name]), past=name != "GPBO")
    batch = suggest(found, q=2, n_candidates=64)
    assert bool(((batch >= 0) & (batch <= 1)).all())


def test_of_a_list_rows_are_suggested_and_none_twice() -> None:
    """Avoided ones neither; when there are none left, the message says so."""
    rows, found = points(6, seed=8), known(LIMITED, 3)
    chosen = suggest(found, domain=Candidates(rows), q=4, avoid=rows[:2])
    index = torch.cdist(chosen, rows).argmin(-1)
    assert float(torch.cdist(chosen, rows).amin(-1).max()) == 0
    assert sorted(index.tolist()) == [2, 3, 4, 5]
    with pytest.raises(NoPointLeftError):
        suggest(found, domain=Candidates(rows), avoid=rows)


@pytest.mark.parametrize("outcomes", [TWO, LIMITED], ids=["two objectives", "a limit"])
def test_mixed_and_pinned_spaces_work(outcomes: Outcomes) -> None:
    """A category is chosen, a pinned number stays."""
    space = Space.of({"x": FloatRange(0, 1), "kind": Choices(("a", "b"))})
    X = space.encode([{"x": i / 14, "kind": "ab"[i % 2]} for i in range(15)])

    def values(name: str, at: torch.Tensor) -> torch.Tensor:
        middle = {"cost": 0.2, "loss": 0.8, "impurity": 0.6}[name]
        return (at[:, 0] - middle).square() + 0.3 * at[:, -1]

    found = OutcomePriors.learn(outcomes, {n: [Dataset(X, values(n, X))] for n in outcomes.names}).condition(
        {n: Dataset(X[:4], values(n, X[:4])) for n in outcomes.names}
    )
    (free,) = space.decode(suggest(found, domain=Mixed(space)).unsqueeze(0))
    assert free["kind"] == "a"
    (pinned,) = space.decode(suggest(found, domain=Mixed(space, {"x": 0.5})).unsqueeze(0))
    assert pinned["x"] == pytest.approx(0.5)


# ── bad input ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wrong_input_is_refused() -> None:
    """Posteriors for other outcomes, of other inputs, or of a batch of problems."""
    found = known(TWO, 3)
    with pytest.raises(InputError, match="a posterior for every outcome"):
        OutcomePosteriors(LIMITED, found.posteriors[:1])
    other = AUTO.learn([Dataset(points(9, d=3, seed=0), points(9, d=1, seed=1)[:, 0])]).condition()
    with pytest.raises(InputError, match=r"the same inputs, but they have \[2, 3\] columns"):
        OutcomePosteriors(TWO, (found.posteriors[0], other))
    X = points(2, 9, seed=0)
    batch = FAMILY["SHGP"].learn([Dataset(X, X.sum(-1))]).condition()
    with pytest.raises(InputError, match="one problem at a time"):
        OutcomePosteriors(Outcomes((Goal("cost"),)), (batch,))
    with pytest.raises(InputError, match="'hue' is none"):
        OutcomePriors.learn(TWO, {"hue": []})
    with pytest.raises(InputError, match="With no sources the targets must be given"):
        OutcomePriors.learn(TWO, {}).condition()
    with pytest.raises(InputError, match="There is no outcome"):
        found["hue"]
    with pytest.raises(InputError, match="n_candidates, n_starts and q must be at least 1"):
        suggest(found, q=0)
