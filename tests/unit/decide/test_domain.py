"""Which points may be suggested."""

from __future__ import annotations

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from tests.problems import generator

from headstart import InputError
from headstart.data.space import Space
from headstart.decide.domain import Candidates, Cube, Domain, Mixed

MIXED = Mixed(
    Space.of(
        {
            "x": FloatDistribution(-1, 1),
            "k": CategoricalDistribution(["a", "b", "c"]),
            "only": IntDistribution(3, 3),
            "n": IntDistribution(0, 4),
            "many": IntDistribution(1, 1000, log=True),
            "step": FloatDistribution(0, 100, step=0.5),
        },
        extra_levels={"k": ["of a source"]},
    )
)
SEARCHABLE = pytest.mark.parametrize("domain", [Cube(3), MIXED], ids=["cube", "mixed"])


def _inside(domain: Domain, X: torch.Tensor) -> bool:
    """Whether the rows of X are points of the domain, up to the rounding of a float parameter."""
    return bool(((domain.snap(X) - X).abs() < 1e-12).all())


@SEARCHABLE
def test_all_points_of_a_search_are_points_of_the_domain(domain: Domain) -> None:
    """Those all over it, those near others, even near points outside, and those of an exchange."""
    wide = domain.spread(50, generator())
    assert wide.shape == (50, domain.d)
    assert _inside(domain, wide)
    outside = 4 * torch.rand(5, domain.d, generator=generator(), dtype=torch.float64) - 2
    near = domain.near(outside, 7, generator())
    assert near.shape == (35, domain.d)
    assert _inside(domain, near)
    moves = domain.exchanges(domain.snap(outside))
    assert moves is None or _inside(domain, moves.flatten(0, 1))


@SEARCHABLE
def test_points_near_others_are_near(domain: Domain) -> None:
    """Most continuous coordinates stay within a tenth of the cube, and not all are the same."""
    anchors = domain.spread(3, generator())
    near = domain.near(anchors, 40, generator()).reshape(40, 3, domain.d)
    steps = (near - anchors)[..., 0].abs()
    assert float((steps < 0.1).double().mean()) > 0.9
    assert float(steps.mean()) > 0.01


def test_every_category_is_met_equally_often() -> None:
    """However many columns its levels take, and a level that only sources know never."""
    wide = MIXED.spread(512, generator())
    shares = (wide[:, 1:5] > 0).double().mean(0)
    torch.testing.assert_close(shares, torch.tensor([1 / 3, 1 / 3, 1 / 3, 0.0], dtype=torch.float64), atol=0.02, rtol=0)


def test_an_exchange_changes_one_discrete_parameter() -> None:
    """Categories and short grids get every value, long grids steps of powers of two up to both ends."""
    (row,) = MIXED.space.decode(torch.full((1, MIXED.d), 0.4, dtype=torch.float64))
    x = MIXED.space.encode([row])
    moves = MIXED.exchanges(x)
    assert moves is not None
    found: dict[str, set] = {name: set() for name in row}
    for other in MIXED.space.decode(moves[0]):
        changed = [name for name in row if name != "x" and other[name] != row[name]]
        assert len(changed) <= 1
        assert other["x"] == row["x"]
        for name in changed:
            found[name].add(other[name])
    many, step = row["many"], row["step"]
    assert found["x"] == found["only"] == set()
    assert found["k"] == {"a", "b", "c"} - {row["k"]}
    assert found["n"] == {0, 1, 2, 3, 4} - {row["n"]}
    assert found["many"] == {min(max(many + s * 2**i, 1), 1000) for i in range(10) for s in (1, -1)}
    assert found["step"] == {min(max(step + s * 2**i / 2, 0), 100) for i in range(8) for s in (1, -1)}


def test_fine_grids_are_polished_and_coarse_ones_exchanged() -> None:
    """The free columns are those of float parameters and of grids with many values."""
    assert MIXED.free.tolist() == [0, 6, 7]
    assert Cube(3).free.tolist() == [0, 1, 2]


def test_a_small_space_is_listed() -> None:
    """Every combination once; a large or a continuous space has no listing."""
    small = Mixed(
        Space.of({"k": CategoricalDistribution([None, 7]), "one": IntDistribution(1, 1), "n": IntDistribution(1, 5)})
    )
    listing = small.listing
    assert listing is not None
    rows = {(row["k"], row["one"], row["n"]) for row in small.space.decode(listing)}
    assert rows == {(k, 1, n) for k in (None, 7) for n in range(1, 6)}
    assert len(listing) == 10
    assert Mixed(Space.of({"n": IntDistribution(1, 2001)})).listing is None
    assert MIXED.listing is None
    assert Cube(2).listing is None


@pytest.mark.parametrize("domain", [Cube(3), MIXED, Candidates(torch.zeros(5, 3, dtype=torch.float64))])
def test_a_domain_knows_its_columns(domain: Domain) -> None:
    """As many as its points have."""
    points = domain.spread(2, generator())
    assert points is not None
    assert points.shape[-1] == domain.d


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (torch.zeros(0, 2, dtype=torch.float64), "at least one row"),
        (torch.zeros(3, 2), "float64"),
        (torch.full((3, 2), torch.nan, dtype=torch.float64), "finite"),
    ],
)
def test_a_list_of_candidates_is_checked(X: torch.Tensor, message: str) -> None:
    """It has rows, of float64, and they are finite."""
    with pytest.raises(InputError, match=message):
        Candidates(X)
