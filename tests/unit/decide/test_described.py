"""Suggestions in spaces whose categories are described."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.problems import quick

from headstart import AUTO, GPBO, Dataset, suggest
from headstart.data.descriptors import Descriptors
from headstart.data.ranges import Choices, FloatRange
from headstart.data.space import Space
from headstart.decide.design import design_point
from headstart.decide.domain import Candidates, Domain, Mixed
from headstart.decide.ruled.ruled import Ruled
from headstart.gp.fit import generator_from

N = 8
VALUES = torch.linspace(0, 1, N).tolist()
CATEGORIES = tuple(f"s{i}" for i in range(N))
OWN = Descriptors.of(
    {c: {"p": v, "q": 3 - 5 * v + 0.01 * (i % 3)} for i, (c, v) in enumerate(zip(CATEGORIES, VALUES, strict=True))}, "s"
)
SPACE = Space.of({"s": Choices(CATEGORIES), "x": FloatRange(0, 1)}, descriptors={"s": OWN})
PLAIN = Space.of({"s": Choices(CATEGORIES), "x": FloatRange(0, 1)})


def _value(row: dict[str, Any]) -> float:
    return 4 * (VALUES[CATEGORIES.index(row["s"])] - 0.7) ** 2 + (row["x"] - 0.4) ** 2


def _data(space: Space, rows: list[dict[str, Any]]) -> Dataset:
    return Dataset(space.encode(rows), [_value(row) for row in rows], categories=space.categories)


def _rows(categories: tuple[str, ...], n: int = 24) -> list[dict[str, Any]]:
    u = torch.rand(n, generator=generator_from(0)).tolist()
    return [{"s": categories[i % len(categories)], "x": x} for i, x in enumerate(u)]


def test_a_category_that_was_never_run_is_predicted_from_its_neighbours() -> None:
    """Better than from its name, which says nothing."""
    known = tuple(c for c in CATEGORIES if c not in ("s5", "s2"))
    new = [{"s": c, "x": x} for c in ("s5", "s2") for x in (0.1, 0.4, 0.9)]
    y = torch.tensor([_value(row) for row in new], dtype=torch.float64)
    errors = []
    for space in (SPACE, PLAIN):
        posterior = GPBO.learn().condition(_data(space, _rows(known)))
        errors.append(float((posterior.predict(space.encode(new))[0] - y).square().mean().sqrt()))
    assert errors[0] < 0.3 * errors[1]


def test_a_category_that_was_never_run_is_suggested() -> None:
    """The best one, which the past does not have; among names alone it is one of many."""
    known = tuple(c for c in CATEGORIES if c != "s5")
    prior = quick(AUTO).learn([_data(SPACE, _rows(known))])
    domain, rows = Mixed(SPACE), _rows(("s4", "s6"), 3)
    found = []
    for i in range(4):
        row = SPACE.decode(suggest(prior.condition(_data(SPACE, rows)), domain=domain, seed=i).unsqueeze(0))[0]
        found.append(row["s"])
        rows.append(row)
    assert "s5" in found


RULES = ["not (s = s0)", "x <= 0.8", "not (s = s5 and x > 0.3)"]
DOMAINS: dict[str, Domain] = {
    "mixed": Mixed(SPACE),
    "pinned": Mixed(SPACE, {"s": "s3"}),
    "ruled": Ruled(SPACE, RULES),
    "ruled and pinned": Ruled(SPACE, RULES, {"s": "s5"}),
    "candidates": Candidates.of(SPACE, _rows(CATEGORIES)),
}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
def test_whatever_a_domain_offers_is_a_category(domain: Domain) -> None:
    """All over it, near points, exchanges and what is suggested: coordinates of a row that keeps all rules."""
    assert domain.inputs == 2
    g = generator_from(1)
    parts = [design_point(domain, SPACE.encode(_rows(CATEGORIES, 3)), g).unsqueeze(0)]
    if isinstance(domain, Mixed | Ruled):
        wide = domain.spread(200, g)
        exchanged = domain.exchanges(wide[:5])
        parts += [
            wide,
            domain.uniform(50, g),
            domain.near(wide[:4], 30, g),
            domain.snap(torch.rand(60, SPACE.d).double()),
        ]
        parts += [] if exchanged is None else [exchanged.flatten(0, 1)]
    posterior = quick(GPBO).learn().condition(_data(SPACE, _rows(CATEGORIES, 8)))
    parts.append(suggest(posterior, domain=domain, q=3))
    X = torch.cat(parts)
    rows = SPACE.decode(X)
    torch.testing.assert_close(SPACE.encode(rows), X)
    if isinstance(domain, Ruled):
        assert all(rule.holds(row) for rule in domain.rules for row in rows)
    if isinstance(domain, Mixed | Ruled):
        pinned = domain.pinned.get("s")
        assert {row["s"] for row in rows} == ({pinned} if pinned else {row["s"] for row in rows})
    if isinstance(domain, Ruled) and not domain.pinned:
        assert {row["s"] for row in rows} == set(CATEGORIES[1:])


def test_a_design_meets_every_category_before_any_again() -> None:
    """However alike two of them are."""
    small = Space.of({"s": Choices(CATEGORIES[:4]), "x": FloatRange(0, 1)}, descriptors={"s": OWN})
    X = torch.empty(0, small.d, dtype=torch.float64)
    for _ in range(4):
        X = torch.cat([X, design_point(Mixed(small), X, generator_from(len(X))).unsqueeze(0)])
    assert len({row["s"] for row in small.decode(X)}) == 4
