"""What known errors are worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.problems import quick, transfer_problem

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.known_errors import held_out_densities, main
from headstart import FAMILY, SHGP, Dataset
from headstart.data.units import OutputMap
from headstart.models.model import log_density_of


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "AUTO"])
def test_known_errors_beat_one_common_noise(name: str) -> None:
    """Over ten problems with errors that differ by a factor of 10, results held out are the more expected."""
    model = quick(FAMILY[name], restarts=1).using(output_map=OutputMap.NONE)
    problem = SyntheticProblem("branin")
    found = [held_out_densities(problem, model, seed) for seed in range(10)]
    assert sum(ours for ours, _ in found) > sum(theirs for _, theirs in found) + 10 * 0.05


def test_the_density_of_a_result_with_an_error_is_wider_by_it() -> None:
    """The variance is that of f, the common noise and its own error together; without any it is ``log_density``."""
    problem = transfer_problem(n_target=6)
    plain = quick(SHGP).using(output_map=OutputMap.NONE)
    posterior = problem.posterior(plain)
    y, e = torch.linspace(0, 2, 7, dtype=torch.float64), torch.linspace(0.001, 4, 7, dtype=torch.float64)
    mean, var = posterior.predict(problem.Xq)
    total = var + posterior.predictor.noise_var * posterior.units.scale**2 + e
    expected = torch.distributions.Normal(mean, total.sqrt()).log_prob(y)
    data = Dataset(problem.Xq, y, error_var=e)
    torch.testing.assert_close(log_density_of(posterior, data), expected, rtol=1e-10, atol=1e-10)
    without = replace(data, error_var=None)
    assert torch.equal(log_density_of(posterior, without), posterior.log_density(problem.Xq, y))
    mapped = problem.posterior(quick(SHGP))
    none = log_density_of(mapped, replace(data, error_var=0.0 * e))
    torch.testing.assert_close(none, mapped.log_density(problem.Xq, y), rtol=1e-9, atol=1e-9)


def test_the_table_has_a_row_per_problem_map_and_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written problem by problem."""
    monkeypatch.setattr("benchmarks.run.known_errors._FAMILIES", ("forrester",))
    monkeypatch.setattr("benchmarks.run.known_errors._MODELS", ("GPBO",))
    main(2, tmp_path / "errors.md")
    rows = (tmp_path / "errors.md").read_text().splitlines()
    assert [row.split("|")[2].strip() for row in rows[4:]] == ["learnt", "none"]
