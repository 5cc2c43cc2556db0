"""The next points in spaces of every kind, with others pending, several at a time."""

from __future__ import annotations

import math

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from tests.problems import acquisition_of

from headstart import FAMILY, GPBO, SHGP, Dataset, FitOptions, InputError, TransferPosterior
from headstart.data.conditions import Condition
from headstart.data.ranges import Choices, DiscreteNumbers, Distribution, FloatRange, IntRange
from headstart.data.space import Space
from headstart.decide.acquisition import Acquisition
from headstart.decide.domain import Candidates, Cube, Domain, Mixed
from headstart.decide.ruled.ruled import Ruled
from headstart.decide.suggest import suggest
from headstart.gp.fit import generator_from

KINDS = pytest.mark.parametrize("kind", Acquisition)

FLOAT, LOG = FloatDistribution(-1, 3), FloatDistribution(1e-3, 1e3, log=True)
RADII = DiscreteNumbers((0.2, 0.4, 0.8, 1.6))
SPACES: dict[str, dict[str, Distribution]] = {
    "mixed": {"a": FLOAT, "b": LOG, "n": IntDistribution(0, 5), "k": CategoricalDistribution(["x", None, 3, True])},
    "numeric": {"a": FLOAT, "long": IntDistribution(1, 500), "step": FloatDistribution(0, 2, step=0.25)},
    "categories": {"k": CategoricalDistribution(list("abcd")), "l": CategoricalDistribution(["u", "v"]), "a": FLOAT},
    "lists": {"a": FLOAT, "r": RADII, "many": DiscreteNumbers(tuple(i**2 for i in range(50)))},
    "only lists": {"r": RADII, "n": DiscreteNumbers((1, 2, 3, 50), log=False)},
    "large grid": {f"n{i}": IntDistribution(0, 14) for i in range(3)},
    "long grids": {"a": IntDistribution(1, 10**6, log=True), "b": FloatDistribution(0, 100, step=0.1)},
    "small grid": {"n": IntDistribution(1, 5), "k": CategoricalDistribution(["a", "b", "c"])},
}
DOMAINS: dict[str, Domain] = {
    "cube": Cube(3),
    **{name: Mixed(Space.of(distributions)) for name, distributions in SPACES.items()},
    "candidates": Candidates(
        torch.rand(60, 3, generator=torch.Generator().manual_seed(8), dtype=torch.float64) * 2 - 0.5
    ),
}


def _draw(domain: Domain, n: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    listing = domain.listing
    if listing is not None:
        return listing[torch.randperm(len(listing), generator=generator)[:n]]
    return domain.spread(max(n, 1), generator)[:n]


def _objective(X: torch.Tensor) -> torch.Tensor:
    wave = torch.sin(4 * X[..., 0]) + (X - 0.6).square().sum(-1)
    return wave - 0.3 * X[..., -1]


def _posterior(
    domain: Domain, n: int = 6, *, scale: float = 1.0, noise: float = 0.0, name: str = "SHGP"
) -> TransferPosterior:
    source, X = _draw(domain, 15, seed=1), _draw(domain, n, seed=2)
    error = noise * torch.randn(n, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    prior = (
        FAMILY[name]
        .using(fit=FitOptions(restarts=1, unit_cube=False))
        .learn([Dataset(source, scale * _objective(source))])
    )
    return prior.condition(Dataset(X, scale * (_objective(X) + 0.2 * X[:, 0] + error)))


def _inside(domain: Domain, X: torch.Tensor) -> bool:
    listing = domain.listing
    if listing is not None:
        return all(bool((row == listing).all(-1).any()) for row in X)
    return bool((domain.snap(X) - X).abs().max() < 1e-12) and bool(((X >= 0) & (X <= 1)).all())


def _apart(A: torch.Tensor, B: torch.Tensor) -> bool:
    return float(torch.cdist(A, B, p=math.inf).min()) >= 1e-6


@pytest.mark.parametrize(
    ("name", "kind", "n"),
    [
        pytest.param(name, kind, n, marks=() if (i + j + (n == 0)) % 2 and (n or i % 2) else pytest.mark.slow)
        for i, name in enumerate(DOMAINS)
        for j, kind in enumerate(Acquisition)
        for n in (0, 6)
    ],
)
def test_a_batch_is_inside_distinct_and_new(name: str, kind: Acquisition, n: int) -> None:
    """Four points from one call lie in the space, and are neither each other nor pending nor to be avoided."""
    domain = DOMAINS[name]
    posterior = _posterior(domain, n)
    best = suggest(posterior, domain=domain, kind=kind)
    pending = torch.cat([best.unsqueeze(0), _draw(domain, 2, seed=7)])  # the best one is already on its way
    avoid = posterior.train_inputs[0]
    x = suggest(posterior, domain=domain, kind=kind, q=4, pending=pending, avoid=avoid)
    assert x.shape == (4, domain.d)
    assert bool(x.isfinite().all())
    assert _inside(domain, x)
    assert _apart(x, torch.cat([pending, avoid]))
    assert all(_apart(x[i : i + 1], x[i + 1 :]) for i in range(3))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cube", Acquisition.LOG_EI),
        ("mixed", Acquisition.LCB),
        ("long grids", Acquisition.LOG_EI),
        ("candidates", Acquisition.LCB),
    ],
)
def test_equal_seeds_give_equal_batches(name: str, kind: Acquisition) -> None:
    """The draws of awaited results are seeded too, and the global random state is left alone."""
    domain = DOMAINS[name]
    posterior, pending = _posterior(domain), _draw(domain, 2, seed=7)
    state = torch.random.get_rng_state()
    first = suggest(posterior, domain=domain, kind=kind, q=2, pending=pending, seed=5)
    assert torch.equal(first, suggest(posterior, domain=domain, kind=kind, q=2, pending=pending, seed=5))
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("name", "kind", "scale"),
    [
        ("cube", Acquisition.LOG_EI, 1e-9),
        ("cube", Acquisition.LCB, 1e9),
        ("mixed", Acquisition.LOG_EI, 1e9),
        ("mixed", Acquisition.LCB, 1e-9),
        ("small grid", Acquisition.LOG_EI, 1e-9),
        ("candidates", Acquisition.LCB, 1e9),
    ],
)
def test_the_units_of_the_objective_do_not_matter(name: str, kind: Acquisition, scale: float) -> None:
    """With pending points as without, in every kind of space."""
    domain = DOMAINS[name]
    pending = _draw(domain, 2, seed=7)
    ours = suggest(_posterior(domain), domain=domain, kind=kind, pending=pending)
    theirs = suggest(_posterior(domain, scale=scale), domain=domain, kind=kind, pending=pending)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", ["mixed", "categories", "small grid"])
def test_the_first_point_has_the_category_that_was_best_before(name: str) -> None:
    """Zero-shot, a source that clearly prefers one category, number and value decides them all."""
    domain = DOMAINS[name]
    assert isinstance(domain, Mixed)
    source = _draw(domain, 200, seed=1)
    for level in (0, 1):
        axis = next(axis for axis in domain.space.axes if axis.categorical)
        other = [i for i in range(domain.d) if not axis.columns.start <= i < axis.columns.stop]
        y = (source[:, other] - 0.6).square().sum(-1) - 0.5 * source[:, axis.columns.start + level]
        posterior = SHGP.using(fit=FitOptions(restarts=2)).learn([Dataset(source, y)]).condition()
        x = suggest(posterior, domain=domain)
        (row,) = domain.space.decode(x.unsqueeze(0))
        assert row[axis.name] is axis.choices[level]
        numeric = [a.columns.start for a in domain.space.axes if not a.categorical]
        assert bool(((x[numeric] - 0.6).abs() < 0.2).all())


def _values(posterior: TransferPosterior, kind: Acquisition, X: torch.Tensor) -> torch.Tensor:
    return acquisition_of(posterior, kind)(X).detach()


@KINDS
def test_a_search_of_a_large_grid_finds_what_comparing_all_of_it_finds(kind: Acquisition) -> None:
    """In 3375 points the exchanges end in the best one."""
    domain = DOMAINS["large grid"]
    posterior = _posterior(domain)
    line = (torch.arange(15, dtype=torch.float64) + 0.5) / 15
    everything = torch.cartesian_prod(line, line, line)
    x = suggest(posterior, domain=domain, kind=kind)
    assert _values(posterior, kind, x.unsqueeze(0)).item() == pytest.approx(
        _values(posterior, kind, everything).max().item(), abs=1e-9
    )


@KINDS
def test_a_mixed_search_finds_what_a_fine_grid_finds(kind: Acquisition) -> None:
    """Over all categories and 401 values of the one continuous parameter nothing is better."""
    domain = DOMAINS["categories"]
    assert isinstance(domain, Mixed)
    posterior = _posterior(domain, n=8)
    rows = [{"k": k, "l": second, "a": -1 + 4 * i / 400} for k in "abcd" for second in "uv" for i in range(401)]
    values = _values(posterior, kind, domain.space.encode(rows))
    x = suggest(posterior, domain=domain, kind=kind)
    assert _values(posterior, kind, x.unsqueeze(0)).item() >= values.max().item() - 1e-5


@KINDS
@pytest.mark.parametrize("name", ["small grid", "candidates"])
def test_a_list_is_compared_point_by_point(name: str, kind: Acquisition) -> None:
    """The suggestion is the best row, and the best of the rest where that is to be avoided."""
    domain = DOMAINS[name]
    posterior = _posterior(domain)
    listing = domain.listing
    assert listing is not None
    order = _values(posterior, kind, listing).argsort(descending=True)
    assert torch.equal(suggest(posterior, domain=domain, kind=kind), listing[order[0]])
    rest = suggest(posterior, domain=domain, kind=kind, avoid=listing[order[:3]])
    assert torch.equal(rest, listing[order[3]])


def test_a_list_is_used_up_point_by_point() -> None:
    """All 15 points can be had at once, one more cannot; finished points are open again unless avoided."""
    domain = DOMAINS["small grid"]
    listing = domain.listing
    posterior = _posterior(domain, n=5)
    assert listing is not None
    everything = suggest(posterior, domain=domain, q=15)
    assert len({tuple(row) for row in everything.tolist()}) == 15
    with pytest.raises(InputError, match="no point left to suggest: each of the 15 points"):
        suggest(posterior, domain=domain, q=16)
    with pytest.raises(InputError, match="no point left"):
        suggest(posterior, domain=domain, avoid=listing)
    last = suggest(posterior, domain=domain, avoid=listing[:9], pending=listing[10:])
    assert torch.equal(last, listing[9])
    assert _inside(domain, suggest(posterior, domain=domain, pending=listing[:14]).unsqueeze(0))


def test_the_last_free_point_of_a_large_grid_is_found() -> None:
    """Looking further around finds it where everything seen at first is used up."""
    domain = Mixed(Space.of({"n": IntDistribution(1, 2500)}))
    grid = domain.space.axes[0].grid()
    assert domain.listing is None
    posterior = _posterior(domain)
    free = 1234
    used = torch.cat([grid[:free], grid[free + 1 :]])
    assert torch.equal(suggest(posterior, domain=domain, avoid=used, n_candidates=8), grid[free])
    with pytest.raises(InputError, match="no point left"):
        suggest(posterior, domain=domain, avoid=grid, n_candidates=8)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if (i + j) % 2 else pytest.mark.slow)
        for i, name in enumerate(["BHGP", "MTGP", "RGPE", "SHGP", "WSGP"])
        for j, kind in enumerate(Acquisition)
    ],
)
def test_a_batch_is_spread_out_under_noise(name: str, kind: Acquisition) -> None:
    """What is known after four results counts, so no kind of model puts its batch of four into one place."""
    posterior = _posterior(DOMAINS["cube"], n=8, noise=0.5, name=name)
    x = suggest(posterior, kind=kind, q=4)
    distances = torch.pdist(x)
    assert float(distances.min()) > 1e-3
    assert float(distances.max()) > 0.1


@KINDS
def test_problems_of_a_batch_have_their_own_pending_points(kind: Acquisition) -> None:
    """(*b, q, d) comes back, new for every problem; points given once are pending for all of them."""
    X = torch.rand(2, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    posterior = GPBO.using(fit=FitOptions(restarts=1)).learn().condition(Dataset(X, _objective(X)))
    best = suggest(posterior, kind=kind).unsqueeze(-2)
    x = suggest(posterior, kind=kind, q=3, pending=best)
    assert x.shape == (2, 3, 2)
    assert all(_apart(x[i], best[i]) for i in range(2))
    shared = suggest(posterior, kind=kind, pending=best[0])
    assert shared.shape == (2, 2)
    assert all(_apart(shared, best[0]) for i in range(2))
    listed = suggest(posterior, kind=kind, q=2, domain=Candidates(X.reshape(-1, 2)))
    assert listed.shape == (2, 2, 2)


def test_a_batch_of_two_is_one_point_and_then_another() -> None:
    """The first of several points is the one that comes alone."""
    posterior = _posterior(DOMAINS["cube"])
    assert torch.equal(suggest(posterior, q=3)[0], suggest(posterior))


def test_observations_outside_the_space_do_not_lead_out_of_it() -> None:
    """The best point known may lie outside; what is suggested does not."""
    X = torch.tensor([[1.6, 0.5], [0.2, 0.3], [0.9, 0.6], [0.5, -0.4]], dtype=torch.float64)
    model = GPBO.using(fit=FitOptions(restarts=1, unit_cube=False))
    posterior = model.learn().condition(Dataset(X, (X - torch.tensor([1.7, 0.5])).square().sum(-1)))
    for kind in Acquisition:
        x = suggest(posterior, kind=kind, q=2)
        assert bool(((x >= 0) & (x <= 1)).all())


def test_optimising_a_mixed_space_finds_its_minimum() -> None:
    """Fifteen points, three at a time, find the best category and number, and nearly the best value."""
    domain = Mixed(Space.of({"a": FLOAT, "n": IntDistribution(1, 30), "k": CategoricalDistribution(["x", "y", "z"])}))

    def objective(X: torch.Tensor) -> torch.Tensor:
        rows = domain.space.decode(X)
        values = [(r["a"] - 1) ** 2 + ((r["n"] - 20) / 10) ** 2 + {"x": 1.0, "y": 0.0, "z": 0.5}[r["k"]] for r in rows]
        return torch.tensor(values, dtype=torch.float64)

    X = _draw(domain, 5, seed=0)
    target = Dataset(X, objective(X))
    for step in range(5):
        posterior = GPBO.using(fit=FitOptions(restarts=1)).learn().condition(target)
        new = suggest(posterior, domain=domain, q=3, avoid=target.X, seed=step, n_candidates=64, n_starts=2)
        target = Dataset(torch.cat([target.X, new]), torch.cat([target.y, objective(new)]))
    (best,) = domain.space.decode(target.X[target.y.argmin()].unsqueeze(0))
    assert best["k"] == "y"
    assert abs(best["n"] - 20) <= 3
    assert abs(best["a"] - 1) < 0.3


def test_bad_arguments_are_refused() -> None:
    """The message names the argument and what came."""
    posterior = _posterior(DOMAINS["cube"])
    wrong = torch.zeros(2, 2, dtype=torch.float64)
    with pytest.raises(InputError, match="q must be at least 1"):
        suggest(posterior, q=0)
    with pytest.raises(InputError, match="domain has 2 columns, but the model was fitted to 3"):
        suggest(posterior, domain=Cube(2))
    with pytest.raises(InputError, match=r"avoid must be float64 of shape \(points, 3\).*\(2, 2\)"):
        suggest(posterior, avoid=wrong)
    with pytest.raises(InputError, match=r"pending must be float64.*float32"):
        suggest(posterior, pending=torch.zeros(2, 3))
    with pytest.raises(InputError, match="pending must be finite"):
        suggest(posterior, pending=torch.full((1, 3), math.nan, dtype=torch.float64))


def test_no_pending_points_are_none() -> None:
    """An empty table changes nothing."""
    posterior, nothing = _posterior(DOMAINS["cube"]), torch.empty(0, 3, dtype=torch.float64)
    assert torch.equal(suggest(posterior, pending=nothing, avoid=nothing), suggest(posterior))


def test_a_conditional_space_is_searched_where_its_parameters_are_there() -> None:
    """The best of the branch with y lies at the edge; the branch without it must not be moved along y."""
    kinds: dict[str, Choices | FloatRange] = {"a": Choices(("with", "without"))}
    kinds |= {"x": FloatRange(0, 1), "y": FloatRange(0, 1)}
    space = Space.of(kinds, conditions={"y": Condition("a", without=("without",))})
    X = Mixed(space).spread(40, generator_from(0))
    branch = X[:, 0] > 0
    y = (X[:, 2] - 0.3).square() + torch.where(branch, 1 - X[:, 3], 0.6)
    posterior = GPBO.learn([]).condition(Dataset(X, y, categories=space.categories))
    x = suggest(posterior, domain=Mixed(space), kind=Acquisition.LCB, beta=0.0)
    assert space.decode(x.unsqueeze(0))[0]["a"] == "with"
    assert x[3] > 0.9
    assert abs(x[2] - 0.3) < 0.1
    worse = GPBO.learn([]).condition(Dataset(X, torch.where(branch, y + 3, y), categories=space.categories))
    x = suggest(worse, domain=Mixed(space), kind=Acquisition.LCB, beta=0.0)
    assert set(space.decode(x.unsqueeze(0))[0]) == {"a", "x"}
    assert x[3] == 0.5


def test_a_list_with_equal_gaps_is_suggested_like_the_grid() -> None:
    """The same values follow from the same results, in a mixed space."""
    found = []
    for own in (IntRange(0, 4), DiscreteNumbers((0, 1, 2, 3, 4))):
        space = Space.of({"x": FloatRange(0, 1), "n": own})
        X = space.encode([{"x": 0.1, "n": 0}, {"x": 0.9, "n": 4}, {"x": 0.4, "n": 1}, {"x": 0.6, "n": 2.5}])
        data = Dataset(X, torch.tensor([3.0, 1.0, 0.5, 0.2], dtype=torch.float64))
        posterior = GPBO.using(fit=FitOptions(restarts=1)).learn([]).condition(data)
        found.append(space.decode(suggest(posterior, domain=Mixed(space), q=2, seed=3)))
    for a, b in zip(*found, strict=True):
        assert a["n"] == b["n"]
        assert a["x"] == pytest.approx(b["x"], abs=1e-6)


def test_every_value_of_a_list_is_met_equally_often_at_first() -> None:
    """However uneven its gaps are; under a rule that takes one out each of the others is met often."""
    space = Space.of({"x": FloatRange(0, 1), "n": DiscreteNumbers((1, 2, 3, 50, 1000), log=False)})
    rows = space.decode(Mixed(space).uniform(5000, generator_from(0)))
    for value in (1, 2, 3, 50, 1000):
        assert sum(row["n"] == value for row in rows) == pytest.approx(1000, rel=0.15)
    rows = space.decode(Ruled(space, ["n <= 60"]).uniform(5000, generator_from(0)))
    assert all(sum(row["n"] == value for row in rows) > 800 for value in (1, 2, 3, 50))
