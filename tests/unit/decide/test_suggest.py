"""The next point to evaluate."""

from __future__ import annotations

import pytest
import torch
from tests.problems import acquisition_of, most_probable, points, quick

from headstart import (
    AUTO,
    FAMILY,
    GPBO,
    SHGP,
    ChainParams,
    Dataset,
    GPParams,
    InputError,
    TransferModel,
    TransferPosterior,
)
from headstart.decide.acquisition import Acquisition
from headstart.decide.design import design_point
from headstart.decide.domain import Candidates, Cube
from headstart.decide.members import Members
from headstart.decide.search import _ScoredPoints
from headstart.decide.suggest import suggest

KINDS = pytest.mark.parametrize("kind", Acquisition)


def _waves(X: torch.Tensor) -> torch.Tensor:
    return torch.sin(9 * X).sum(-1) + (X - 0.3).square().sum(-1)


def _posterior(n: int, d: int = 1, scale: float = 1.0, name: str = "SHGP") -> TransferPosterior:
    source, X = points(12, d=d, seed=0), points(n, d=d, seed=1)
    prior = quick(FAMILY[name]).learn([Dataset(source, scale * _waves(source))])
    return prior.condition(Dataset(X, scale * (_waves(X) + 0.2 * X[:, 0])))


@KINDS
@pytest.mark.parametrize("n", [0, 1, pytest.param(2, marks=pytest.mark.slow), 6])
def test_the_suggestion_is_the_maximum_on_a_fine_grid(kind: Acquisition, n: int) -> None:
    """In one dimension 20,001 grid points find nothing better, also without any target observation."""
    posterior = _posterior(n)
    x = suggest(posterior, kind=kind)
    assert x.shape == (1,)
    assert bool(((x >= 0) & (x <= 1)).all())
    grid = torch.linspace(0, 1, 20_001, dtype=torch.float64).unsqueeze(-1)
    value = acquisition_of(posterior, kind, grid if n == 0 else None)
    assert value(x.unsqueeze(0)).item() >= value(grid).max().item() - 1e-4


@KINDS
def test_more_candidates_find_nothing_much_better(kind: Acquisition) -> None:
    """In four dimensions a search 16 times as wide agrees with the default one."""
    posterior = _posterior(8, d=4)
    value = acquisition_of(posterior, kind)
    default = suggest(posterior, kind=kind)
    wide = suggest(posterior, kind=kind, n_candidates=8192, n_starts=64, seed=1)
    assert value(default.unsqueeze(0)).item() >= value(wide.unsqueeze(0)).item() - 1e-2


@KINDS
def test_equal_seeds_give_equal_points(kind: Acquisition) -> None:
    """A seed or an equally seeded generator gives the same point; the global random state is left alone."""
    posterior = _posterior(3, d=2)
    state = torch.random.get_rng_state()
    first = suggest(posterior, kind=kind, seed=5)
    assert torch.equal(first, suggest(posterior, kind=kind, seed=5))
    assert torch.equal(first, suggest(posterior, kind=kind, seed=torch.Generator().manual_seed(5)))
    assert torch.equal(state, torch.random.get_rng_state())


@KINDS
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_units_of_the_objective_do_not_move_the_point(kind: Acquisition, scale: float) -> None:
    """An objective in nanometres gives the same point as one in metres."""
    torch.testing.assert_close(
        suggest(_posterior(4, scale=scale), kind=kind), suggest(_posterior(4), kind=kind), rtol=0, atol=1e-4
    )


def test_the_first_point_comes_from_the_source() -> None:
    """Zero-shot, the suggestion lies where the source is low."""
    source = points(40, seed=0)
    posterior = SHGP.learn([Dataset(source, (source - 0.7).square().sum(-1))]).condition()
    x = suggest(posterior)
    assert float((x - 0.7).abs().max()) < 0.2


@pytest.mark.parametrize(
    ("name", "n"),
    [
        pytest.param(name, n, marks=() if n == (0, 1, 5)[i % 3] else pytest.mark.slow)
        for i, name in enumerate(name for name, model in FAMILY.items() if model.needs_sources)
        for n in (0, 1, 5)
    ],
)
def test_every_model_can_be_asked(name: str, n: int) -> None:
    """Any model of the family gives a point of the unit cube, from its first step on."""
    x = suggest(_posterior(n, d=2, name=name), n_candidates=128)
    assert x.dtype == torch.float64
    assert bool(((x >= 0) & (x <= 1)).all())


def test_noiseless_optimisation_finds_the_minimum() -> None:
    """A dozen suggestions bring GPBO to the bottom of a bowl."""
    X = points(2, seed=3)
    target = Dataset(X, (X - 0.35).square().sum(-1))
    for step in range(12):
        x = suggest(quick(GPBO).learn().condition(target), seed=step, n_candidates=64, n_starts=2)
        target = target.with_point(x, (x - 0.35).square().sum())
    assert float(target.y.min()) < 1e-3


def test_repeated_observations_are_no_trouble() -> None:
    """Ten equal rows leave a suggestion that is finite and inside."""
    X = torch.full((10, 2), 0.5, dtype=torch.float64)
    x = suggest(quick(GPBO).learn().condition(Dataset(X, X[:, 0])))
    assert bool(((x >= 0) & (x <= 1)).all())


def test_bad_numbers_are_refused() -> None:
    """The message names the argument."""
    posterior = _posterior(2)
    with pytest.raises(InputError, match="n_candidates"):
        suggest(posterior, n_candidates=0)
    with pytest.raises(InputError, match="n_starts"):
        suggest(posterior, n_starts=0)


@pytest.mark.parametrize("kind", list(Acquisition))
def test_a_batch_gives_the_points_that_its_problems_give_alone(kind: Acquisition) -> None:
    """Every problem of a batch gets its own suggestion, the one it gets alone at equal hyperparameters."""
    X = points(8, seed=0).reshape(2, 4, 2)
    y = torch.stack([X[0, :, 0] - X[0, :, 1] ** 2, torch.sin(5 * X[1]).sum(-1)])
    posterior = most_probable(quick(GPBO)).learn().condition(Dataset(X, y))
    together = suggest(posterior, kind=kind)
    assert together.shape == (2, 2)
    assert not torch.allclose(together[0], together[1])
    for i in range(2):
        assert isinstance(posterior.hyperparameters, ChainParams)
        (level,) = posterior.hyperparameters.levels
        params = GPParams(level.lengthscale[i], level.outputscale[i], level.noise_var[i], level.offset[i])
        alone = GPBO.at(ChainParams((params,)), target=Dataset(X[i], y[i]))
        # the same model without units of its own: only the scale of the polish differs
        torch.testing.assert_close(suggest(alone, kind=kind), together[i], atol=1e-3, rtol=0)


# ── points that are done together ─────────────────────────────────────────────────────────────────────────────────


def _shifted_bowls(d: int) -> TransferPosterior:
    """Nothing of the target is known, but two sources are, lowest at 0.6 and at 0.5."""
    X = points(30, d=d, seed=0)
    sources = [Dataset(X, (X - lowest).square().sum(-1)) for lowest in (0.6, 0.5)]
    return quick(AUTO).learn(sources).condition()


@pytest.mark.parametrize(
    ("d", "kind"),
    [
        (2, Acquisition.LOG_EI),
        pytest.param(2, Acquisition.LCB, marks=pytest.mark.slow),
        pytest.param(3, Acquisition.LOG_EI, marks=pytest.mark.slow),
        (3, Acquisition.LCB),
    ],
)
def test_a_first_batch_stays_where_something_is_expected(d: int, kind: Acquisition) -> None:
    """No point is in a corner. Every fourth is expected to be no worse than most; the others are among the better."""
    posterior = _shifted_bowls(d)
    X = suggest(posterior, q=8, kind=kind)
    at_the_edge = (X < 0.02) | (X > 0.98)
    assert not bool(at_the_edge.all(-1).any())
    own = Members.of(posterior.predictor)
    all_over, mean = own.means(points(4000, d=d, seed=5)), own.means(X)
    best = torch.minimum(all_over.min(), mean.min())
    # what is best and what is typical was found from other points
    share = (mean - best) / (all_over.median() - best)
    assert float(share.max()) < 1.1
    assert float(share[[0, 1, 2, 4, 5, 6]].max()) < 0.3


def test_a_point_that_is_not_believed_in_counts_less_than_any_that_is() -> None:
    """Its acquisition value is a million lower: their order stays, and where there are no others one is taken."""
    posterior = _shifted_bowls(2)
    own, X = Members.of(posterior.predictor), points(50, seed=3)
    mean = own.means(X)
    believed = lambda X: own.means(X) <= mean.median()  # noqa: E731
    value = acquisition_of(posterior, Acquisition.LOG_EI, X)
    free, bound = (_ScoredPoints(value, X[:0], own) for own in ((), (believed,)))
    torch.testing.assert_close(bound(X), free(X) - 1e6 * (mean > mean.median()))
    assert float(bound(X)[believed(X)].min()) > float(bound(X)[~believed(X)].max())
    listed = X[~believed(X)][:6]
    found = suggest(posterior, domain=Candidates(listed), q=6)  # also those that no limit allows
    assert torch.equal(found.sort(0).values, listed.sort(0).values)


@pytest.mark.parametrize("model", [GPBO, AUTO], ids=["GPBO", "AUTO"])
def test_without_results_and_sources_a_batch_is_the_design(model: TransferModel) -> None:
    """However large it is, each point keeping away from those before it; AUTO begins with the best point of noise."""
    X = points(30, seed=0)
    noise = Dataset(X, torch.randn(30, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    posterior = quick(model).learn([noise]).condition()
    assert bool(posterior.blind)
    generator, expected = torch.Generator().manual_seed(7), X[:0]
    for _ in range(8):
        point = design_point(Cube(2), expected, generator, past=posterior.past_bests)
        expected = torch.cat([expected, point.unsqueeze(0)])
    assert torch.equal(suggest(posterior, q=8, seed=7), expected)
