"""Where to begin when nothing is known."""

from __future__ import annotations

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from tests.problems import generator, quick, tensor
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, Dataset, NoPointLeftError
from headstart.data.space import Space
from headstart.decide.aim import Aim
from headstart.decide.design import design_point, design_size
from headstart.decide.domain import Candidates, Cube, Domain, Mixed
from headstart.decide.search import Search
from headstart.decide.suggest import suggest

MIXED = Mixed(
    Space.of({"a": FloatDistribution(-1, 3), "k": CategoricalDistribution(list("abcd")), "n": IntDistribution(0, 900)})
)


def laid_out(domain: Domain, n: int, seed: int = 0) -> Tensor:
    """A design, point by point."""
    tried = torch.empty(0, domain.d, dtype=torch.float64)
    for i in range(n):
        tried = torch.cat([tried, design_point(domain, tried, generator(100 * seed + i)).unsqueeze(0)])
    return tried


def torus(a: Tensor, b: Tensor) -> float:
    apart = (a - b).abs()
    return float(torch.minimum(apart, 1 - apart).norm())


def test_the_design_grows_with_the_inputs_and_ends() -> None:
    """From two points to six."""
    assert [design_size(d) for d in (1, 2, 3, 4, 8, 30)] == [2, 3, 3, 4, 6, 6]


@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_of_a_design_keep_away_from_each_other(d: int) -> None:
    """Of twenty designs every one is wider than the median of twenty sets of random points."""
    n = design_size(d) + 2

    def width(X: Tensor) -> float:
        return min(torus(X[i], X[j]) for i in range(n) for j in range(i))

    designs = [width(laid_out(Cube(d), n, seed)) for seed in range(20)]
    chance = sorted(width(torch.rand(n, d, generator=generator(seed), dtype=torch.float64)) for seed in range(20))
    assert min(designs) > chance[10]


def test_corners_are_no_better_than_the_middle() -> None:
    """On a torus (0, 0) is next to (1, 1): points of a design are in the middle as often as random ones are."""
    second = torch.stack([laid_out(Cube(3), 2, seed)[1] for seed in range(60)])
    first = torch.stack([laid_out(Cube(3), 1, seed)[0] for seed in range(60)])
    inner = [float(((X - 0.5).abs() < 0.25).double().mean()) for X in (first, second)]
    assert inner[0] == pytest.approx(0.5, abs=0.15)
    assert inner[1] == pytest.approx(0.5, abs=0.15)
    tried = tensor([[0.01, 0.01, 0.01]])
    x = design_point(Cube(3), tried, generator())
    assert torus(x, tried[0]) > 0.5
    assert bool(((x > 0.2) & (x < 0.8)).all())


def test_a_design_has_no_state() -> None:
    """The next point comes from what was tried and the generator, wherever that came from."""
    first, again = (design_point(Cube(2), tensor([[0.2, 0.3]]), generator(4)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, design_point(Cube(2), tensor([[0.7, 0.9]]), generator(4)))


def test_levels_that_were_not_tried_come_first() -> None:
    """Other things being equal: four points have the four levels of a category."""
    alone = Mixed(Space.of({"k": CategoricalDistribution(list("abcd"))}))
    for seed in range(5):
        assert {row["k"] for row in alone.space.decode(laid_out(alone, 4, seed))} == set("abcd")


def test_of_a_list_only_free_rows_are_taken() -> None:
    """The farthest of them; with none left that is said."""
    X = torch.linspace(0, 1, 11, dtype=torch.float64).unsqueeze(-1)
    assert design_point(Candidates(X), tensor([[0.0]]), generator()).item() == pytest.approx(0.5)
    free = X[[0, 1, 2, 3, 7, 8, 9, 10]]
    assert design_point(Candidates(X), tensor([[0.0]]), generator(), free=free).item() in (
        pytest.approx(0.3),
        pytest.approx(0.7),
    )
    with pytest.raises(NoPointLeftError, match="no point left to suggest"):
        suggest(quick(GPBO).learn().condition(Dataset.empty(1)), domain=Candidates(X), avoid=X)


# ── suggestions ───────────────────────────────────────────────────────────────────────────────────────────────────


def bowl(X: Tensor) -> Tensor:
    return (X - 0.4).square().sum(-1)


@pytest.mark.parametrize("domain", [Cube(4), MIXED], ids=["cube", "mixed"])
def test_a_target_of_which_nobody_knows_anything_begins_with_the_design(domain: Domain) -> None:
    """The first points of GPBO are the design's, awaited ones counted; then the model is asked."""
    size = design_size(domain.inputs if isinstance(domain, Mixed) else 4)
    model = quick(GPBO).learn()
    target = Dataset.empty(domain.d)
    for step in range(size):
        posterior = model.condition(target)
        assert bool(posterior.blind)
        x = suggest(posterior, domain=domain, seed=step)
        assert torch.equal(x, design_point(domain, target.X, generator(step)))
        if step == 1:
            both = suggest(posterior, domain=domain, q=2, seed=step)
            assert torch.equal(both[0], x)
            assert not torch.equal(both[1], x)
        target = target.with_point(x, bowl(x))
    x = suggest(model.condition(target), domain=domain, seed=size)
    assert not torch.equal(x, design_point(domain, target.X, generator(size)))


def test_with_an_informative_source_there_is_no_design() -> None:
    """The first point comes from the source; of one that is noise it is no more than the best point."""
    X = torch.rand(30, 2, generator=generator(), dtype=torch.float64)
    useful, noise = Dataset(X, bowl(X)), Dataset(X, torch.randn(30, generator=generator(1), dtype=torch.float64))
    assert not bool(quick(SHGP).learn([useful]).condition().blind)
    assert not bool(quick(AUTO).learn([useful]).condition().blind)
    blind = quick(AUTO).learn([noise]).condition()
    assert bool(blind.blind)
    assert torch.equal(suggest(blind, seed=3), design_point(Cube(2), X[:0], generator(3), past=blind.past_bests))
    assert torch.equal(suggest(blind, seed=3), X[noise.y.argmin()])
    x = suggest(quick(AUTO).learn([useful]).condition(), seed=3)
    assert float((x - 0.4).abs().max()) < 0.2


def test_problems_of_a_batch_are_blind_one_by_one() -> None:
    """Of a useful and a useless source in a batch only the second problem begins with its past best, as designs do."""
    X = torch.rand(30, 2, generator=generator(), dtype=torch.float64)
    y = torch.stack([bowl(X), torch.randn(30, generator=generator(1), dtype=torch.float64)])
    posterior = quick(AUTO).learn([Dataset(X.expand(2, 30, 2), y)]).condition()
    assert posterior.blind.tolist() == [False, True]
    x = suggest(posterior, design_seeds=[5, 6])
    assert float((x[0] - 0.4).abs().max()) < 0.2
    assert torch.equal(x[1], X[y[1].argmin()])


# ── a past ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_half_of_a_design_are_the_bests_of_a_past_that_says_nothing() -> None:
    """Sources of two rows each: their best points come first, one after the other, then the design goes on."""
    X = torch.rand(3, 2, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sources = [Dataset(X[i], torch.arange(2).double() + i) for i in range(3)]
    prior, target = AUTO.learn(sources), Dataset.empty(4)
    chosen = []
    for step in range(4):
        posterior = prior.condition(target, seed=step)
        assert bool(posterior.blind)
        chosen.append(suggest(posterior, seed=step))
        target = target.with_point(chosen[-1], chosen[-1].sum())
    assert torch.equal(chosen[0], X[0, 0])
    assert torch.equal(chosen[1], X[1, 0])
    assert torch.cdist(chosen[2].unsqueeze(0), X.reshape(-1, 4)).min() > 0.05
    assert torch.cdist(chosen[3].unsqueeze(0), X.reshape(-1, 4)).min() > 0.05


def test_of_a_list_the_row_nearest_to_a_past_best_is_taken() -> None:
    """The free one."""
    rows = tensor([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]])
    past, none = tensor([[0.85, 0.8]]), torch.empty(0, 2, dtype=torch.float64)
    found = design_point(Candidates(rows), none, generator(), free=rows[:2], past=past)
    assert torch.equal(found, rows[1])


def test_the_bests_of_the_past_are_always_compared() -> None:
    """However few points are looked at: they are among those near the lowest means."""
    X = torch.rand(2, 15, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sources = [Dataset(x, (x - 0.3).square().sum(-1)) for x in X]
    posterior = SHGP.learn(sources).condition()
    best = torch.stack([x[(x - 0.3).square().sum(-1).argmin()] for x in X])
    assert torch.equal(posterior.past_bests, best)
    search = Search(Aim.of(posterior), Cube(2), 4, 2, generator(), generator())
    near = search._look_around()[1]
    assert bool((torch.cdist(best, near).amin(-1) == 0).all())
    assert GPBO.learn(sources).condition(Dataset(X[0, :3], X[0, :3].sum(-1))).past_bests.shape == (0, 2)
