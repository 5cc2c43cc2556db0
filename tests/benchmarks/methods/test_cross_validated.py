"""Ax's rule: the model that ranks the target's own results better chooses."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from tests.problems import quick

from benchmarks.methods.cross_validated import rank_correlation
from benchmarks.methods.method import Settings
from benchmarks.methods.registry import METHODS
from benchmarks.problems.adversarial import Scenario, SpoiltProblem
from benchmarks.problems.svm_table import svm_sklearn_problem
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.runner import run_batch
from headstart import GPBO, MTKGP, Dataset, TransferModel

QUICK = Settings(paper=False, acquisition="log_ei", restarts=1, max_iterations=20)


@pytest.mark.parametrize("model", [GPBO, MTKGP], ids=["GPBO", "MTKGP"])
def test_the_rank_correlation_is_that_of_leaving_every_result_out(model: TransferModel) -> None:
    """At the same hyperparameters: the model is conditioned on all but one, and asked about that one."""
    generator = torch.Generator().manual_seed(0)
    X, Xs = (torch.rand(n, 2, generator=generator, dtype=torch.float64) for n in (7, 12))
    y, ys = (x.square().sum(-1) + 0.3 * torch.randn(len(x), generator=generator, dtype=torch.float64) for x in (X, Xs))
    sources = (Dataset(Xs, ys),) if model.needs_sources else ()
    posterior = quick(model).learn(sources).condition(Dataset(X, y))
    prior_units = [Dataset(s.X, posterior.warp.task_inward(s).y if posterior.warp else s.y) for s in sources]
    mapped = posterior.warp.inward(y) if posterior.warp else y
    predicted = []
    for i in range(len(y)):
        others = torch.arange(len(y)) != i
        left = model.at(posterior.hyperparameters, sources=prior_units, target=Dataset(X[others], mapped[others]))
        predicted.append(float(left.predict(X[i : i + 1])[0]))
    expected = stats.spearmanr(predicted, y.numpy()).statistic
    assert float(rank_correlation(posterior)) == pytest.approx(expected, abs=1e-12)


def test_it_begins_with_the_multi_task_model_and_leaves_it_where_the_past_misleads() -> None:
    """Two results cannot be ranked. With a past that is noise the single-task model is asked in some problems."""
    noise = SpoiltProblem(SyntheticProblem("branin", n_sources=1, source_points=12), Scenario.NOISE)
    rule, several, single = (
        run_batch(noise, name, list(range(6)), steps=8, settings=QUICK) for name in ("ax-rule", "mtkgp", "gpbo")
    )
    assert all(a.x[:3] == b.x[:3] for a, b in zip(rule, several, strict=True))
    assert any(a.x != b.x for a, b in zip(rule, several, strict=True))
    assert all(a.x[:2] != b.x[:2] for a, b in zip(rule, single, strict=True))


def test_rows_of_a_table_are_not_repeated() -> None:
    """On a table it chooses among the free rows."""
    (run,) = run_batch(svm_sklearn_problem(n_sources=2, rows=8), "ax-rule", [1], steps=6, settings=QUICK)
    assert len({tuple(x) for x in run.x}) == 6
    assert "ax-rule" in METHODS
