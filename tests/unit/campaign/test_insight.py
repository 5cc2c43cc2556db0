"""Which parameters matter, and how well results were predicted before they were known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.campaign.campaigns import make, value

from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import fit_campaign
from headstart.campaign.insight import importances, named_shifts, own_shifts, predicted, sobol_indices
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import explain

N = 1 << 14


def _points(seed: int) -> torch.Tensor:
    return torch.rand(N, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_sobol_indices_of_a_sum_are_shares_of_its_variance() -> None:
    """Of x₁ + 2 x₂ they are 1/5 and 4/5, alone as in total; a parameter that does nothing has 0."""
    alone, total = sobol_indices(lambda X: X[:, 0] + 2 * X[:, 1], _points(0), _points(1), [[0], [1], [2]])
    assert alone == pytest.approx([0.2, 0.8, 0.0], abs=0.03)
    assert total == pytest.approx([0.2, 0.8, 0.0], abs=0.03)


def test_what_two_parameters_do_together_counts_in_their_totals_alone() -> None:
    """(x₁ − ½)(x₂ − ½) has no variance that one of them explains, and all of it belongs to both."""

    def product(X: torch.Tensor) -> torch.Tensor:
        return (X[:, 0] - 0.5) * (X[:, 1] - 0.5)

    alone, total = sobol_indices(product, _points(0), _points(1), [[0], [1, 2]])
    assert alone == pytest.approx([0.0, 0.0], abs=0.03)
    assert total == pytest.approx([1.0, 1.0], abs=0.03)
    # x₁ (1 + x₂): Var E[f|x₁] = 1.5²/12, Var E[f|x₂] = 0.5²/12, and 1/12² of both together
    alone, total = sobol_indices(lambda X: X[:, 0] * (1 + X[:, 1]), _points(0), _points(1), [[0], [1]])
    whole = 2.25 / 12 + 0.25 / 12 + 1 / 144
    assert alone == pytest.approx([2.25 / 12 / whole, 0.25 / 12 / whole], abs=0.03)
    assert total == pytest.approx([(2.25 / 12 + 1 / 144) / whole, (0.25 / 12 + 1 / 144) / whole], abs=0.03)


def test_a_constant_has_no_indices() -> None:
    """Instead of 0/0."""
    alone, total = sobol_indices(lambda X: torch.ones(len(X)), _points(0), _points(1), [[0], [1]])
    assert alone.tolist() == total.tolist() == [0.0, 0.0]


def test_the_parameter_that_moves_results_most_is_most_important(tmp_path: Path) -> None:
    """Along x they go from 0 to 10, between u and v by 3."""
    found = importances(fitted := fit_campaign(open_campaign(make(tmp_path))), fitted.first)
    assert [one.parameter for one in found] == ["x", "s"]
    assert found[0].total > 0.6
    assert all(0 <= one.alone <= 1 and 0 <= one.total <= 1 for one in found)


def test_a_result_is_predicted_from_the_past_and_the_rows_above_it_alone(tmp_path: Path) -> None:
    """As the model of the folder would have said before it was filled in, in the user's units."""
    at = [(0.3, "u"), (0.5, "v"), (0.9, "u")]
    rows = [f"{x},{s},{value(x, s)}\n" for x, s in at]
    whole = fit_campaign(open_campaign(make(tmp_path, current="x,s,y\n" + "".join(rows))))
    found = predicted(whole, whole.first)
    assert [e.number for e in found.experiments] == [2, 3, 4]
    assert found.measured.tolist() == [value(x, s) for x, s in at]
    for i in range(3):
        (tmp_path / "current.csv").write_text("x,s,y\n" + "".join(rows[:i]))
        before = fit_campaign(open_campaign(tmp_path)).first
        expected = before.expected([{"x": at[i][0], "s": at[i][1]}], measured=True)
        assert expected is not None
        then = [float(part[i]) for part in found.expected]
        assert then == pytest.approx([float(part[0]) for part in expected], rel=1e-9)
    low, high = found.expected.low, found.expected.high
    assert found.inside.tolist() == ((low <= found.measured) & (found.measured <= high)).tolist()


def test_without_a_past_the_first_results_were_not_predicted(tmp_path: Path) -> None:
    """Nothing was known before the second of them; and without results there is nothing to predict."""
    make(tmp_path, current="x,s,y\n0.3,u,3\n0.5,v,5\n0.9,u,1\n")
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    fitted = fit_campaign(open_campaign(tmp_path))
    assert [e.number for e in predicted(fitted, fitted.first).experiments] == [4]
    (tmp_path / "current.csv").write_text("x,s,y\n")
    fitted = fit_campaign(open_campaign(tmp_path))
    none = predicted(fitted, fitted.first)
    assert none.measured.shape == none.expected.median.shape == (0,)
    assert np.asarray(none.inside).shape == (0,)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_shifts_are_in_the_words_and_the_direction_of_the_campaign(tmp_path: Path, direction: str) -> None:
    """Batches are called as in the files, and one whose results are high lies above, whichever way is the better."""
    shifts = {"L1": 0.0, "L2": 4.0, "L3": -3.0}
    rows = [
        (x, "uv"[i % 2], lot) for lot in shifts for i, x in enumerate(np.linspace(0.05, 0.95, 4) + 0.01 * shifts[lot])
    ]
    sign = 1 if direction == "maximize" else -1
    own = "".join(f"{x:.3f},{s},{sign * value(x, s) + shifts[lot]:.3f},{lot}\n" for x, s, lot in rows)
    folder = make(tmp_path, current=f"x,s,y,lot\n{own}", direction=direction)
    past = [(i / 12, "uv"[i % 2], f"P{i // 4}") for i in range(12)]
    lines = "".join(f"{x:.3f},{s},{sign * value(x, s):.3f},{lot}\n" for x, s, lot in past)
    (folder / "a.csv").write_text(f"x,s,y,lot\n{lines}")
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace("past =", 'batch = "lot"\npast ='))
    own_ = fit_campaign(open_campaign(folder)).first
    (said,) = own_shifts(own_)
    assert (said.task, said.noun) == ("this campaign", "lot")
    assert [one.label for one in said.batches] == ["L1", "L2", "L3"]
    for one in said.batches:
        assert one.shift == pytest.approx(shifts[one.label] - 1 / 3, abs=1.0)
    assert isinstance(own_.prior, AutoPrior)
    every = explain(own_.prior, own_.target, posterior=own_.posterior).shifts
    named = named_shifts(every, own_.campaign.file, own_.alignment, own_.sign, own_.experiments)
    assert repr(named[0]) == repr(said)  # where chances are not known they are NaN
    assert named[1].task == "a"
    assert [one.label for one in named[1].batches] == ["P0", "P1", "P2"]


def test_without_batches_nothing_is_said_of_shifts(tmp_path: Path) -> None:
    """Nor where all results are of one."""
    own = "".join(f"{x},u,{value(x, 'u')}\n" for x in (0.3, 0.5, 0.9))
    assert own_shifts(fit_campaign(open_campaign(make(tmp_path, current=f"x,s,y\n{own}"))).first) == ()
