"""Tables with two outcomes, functions with rules, and misleading sources."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.outcomes import problems
from benchmarks.outcomes.measures import BelowOptimum
from benchmarks.outcomes.methods import METHODS_COMPARED
from benchmarks.outcomes.ruled import RULED, RuledProblem, lowest
from benchmarks.outcomes.runs import outcome_problem
from benchmarks.problems.adversarial import Scenario
from headstart.decide.ruled.ruled import Ruled


@pytest.fixture
def suzuki(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up table of the same columns: turnover is yield over loading."""
    draw = np.random.default_rng(0)
    lines = ["task,catalyst,t_res,temperature,catalyst_loading,yield,turnover"]
    for task in range(4):
        for _ in range(80):
            t, temperature, loading = draw.uniform(60, 600), draw.uniform(30, 110), draw.uniform(0.5, 2.5)
            result = temperature - 20 * loading + 3 * task + draw.normal()
            lines.append(f"case_{task},L{draw.integers(3)},{t},{temperature},{loading},{result},{result / loading}")
    (tmp_path / "suzuki_reizman.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    problems._table.cache_clear()


@pytest.mark.usefixtures("suzuki")
def test_outcomes_are_as_measured_and_of_the_same_rows() -> None:
    """Nothing is negated, and what is evaluated at a row is what was measured there."""
    instance = outcome_problem("suzuki-two").draw(1, 20)
    assert instance.label == "case_1"
    assert instance.rows is not None
    found = instance.evaluate(instance.rows[:5])
    loading = torch.tensor([row["catalyst_loading"] for row in instance.space.decode(instance.rows[:5])])
    assert torch.allclose(found["yield"] / loading, found["turnover"])
    for first, second in zip(instance.sources["yield"], instance.sources["turnover"], strict=True):
        assert torch.equal(first.X, second.X)
        assert first.n == 60
        assert float(first.y.mean()) > 0


@pytest.mark.usefixtures("suzuki")
def test_half_of_the_rows_are_within_the_limit_on_turnover() -> None:
    """It is the median of the target's own table."""
    instance = outcome_problem("suzuki-limit").draw(0, 20)
    assert instance.rows is not None
    (limit,) = instance.outcomes.limits
    values = instance.evaluate(instance.rows)["turnover"]
    assert sum(limit.holds(float(value)) for value in values) == pytest.approx(len(values) / 2, abs=1)


@pytest.mark.usefixtures("suzuki")
def test_sources_are_negated_outcome_by_outcome() -> None:
    """Those of the outcome that is named, and of no other; the target and its rows stay."""
    problem = outcome_problem("suzuki-two")
    plain = problem.draw(0, 20)
    for name, negated in (("headstart-negated-1", {"yield"}), ("headstart-negated-2", {"turnover"})):
        spoilt = problem.draw(0, 20, METHODS_COMPARED[name].spoils(problem))
        for outcome in problem.outcomes:
            sign = -1 if outcome in negated else 1
            for ours, theirs in zip(spoilt.sources[outcome], plain.sources[outcome], strict=True):
                assert torch.equal(ours.X, theirs.X)
                assert torch.equal(ours.y, sign * theirs.y)
        assert spoilt.rows is not None
        assert plain.rows is not None
        assert torch.equal(spoilt.rows, plain.rows)


@pytest.mark.usefixtures("suzuki")
def test_noise_is_of_every_outcomes_own() -> None:
    """Random values that were the same for both would make one outcome tell of the other."""
    problem = outcome_problem("suzuki-two")
    spoilt = problem.draw(0, 20, dict.fromkeys(problem.outcomes, Scenario.NOISE))
    both = torch.stack([spoilt.sources[outcome][0].y for outcome in problem.outcomes])
    assert abs(float(torch.corrcoef(both)[0, 1])) < 0.5


@pytest.mark.parametrize("name", [problem.name for problem in RULED])
def test_points_keep_the_rule_and_none_is_below_the_optimum(name: str) -> None:
    """Neither those that are looked at nor those of the domain; and the median is above it."""
    instance = outcome_problem(name).draw(0, 5)
    assert isinstance(instance.domain, Ruled)
    problem = outcome_problem(name)
    assert isinstance(problem, RuledProblem)
    X = problem.points(200, torch.Generator().manual_seed(1))
    rows = instance.domain.space.decode(instance.domain.snap(X))
    assert all(rule.holds(row) for rule in instance.domain.rules for row in rows)
    assert torch.allclose(instance.domain.snap(X), X, atol=1e-6)
    yardstick = instance.yardstick
    assert isinstance(yardstick, BelowOptimum)
    assert float(instance.evaluate(X)["value"].amin()) >= yardstick.optimum
    assert yardstick.typical > yardstick.optimum


def test_the_lowest_value_under_a_sum_is_found() -> None:
    """Of |x − (0.8, 0.6)|² with x1 + x2 = 1 it is 2·0.2², and the same where the sum is at most 1."""
    X = torch.rand(200, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X = X / X.sum(-1, keepdim=True)
    centre = torch.tensor([0.8, 0.6], dtype=torch.float64)
    for equal in (True, False):
        assert lowest(lambda x: (x - centre).square().sum(-1), X, 1.0, equal=equal) == pytest.approx(0.08, abs=1e-6)
