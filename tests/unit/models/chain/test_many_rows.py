"""Sources of more rows than are fitted at once, from end to end."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headstart.data.dataset import Dataset
from headstart.decide.suggest import suggest
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Inputs
from headstart.gp.kernels import Kernel
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.fitting import fit_level, most_rows
from headstart.models.family import AUTO, BHGP, HGP, MHGP, RGPE, SHGP, STAR
from headstart.models.joint import joint
from headstart.models.model import TransferModel
from headstart.tuning import PLAIN_TUNING


def task_of(n: int, *, seed: int = 0, noise: float = 0.1) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    y = torch.sin(6 * X[:, 0]) + X[:, 1].square() + noise * torch.randn(n, generator=generator, dtype=torch.float64)
    return Dataset(X, y)


def test_how_many_rows_a_search_goes_on_with() -> None:
    """All of a thousand, fewer and fewer of more."""
    assert [most_rows(n) for n in (600, 1200, 2000, 5000, 20_000)] == [600, 1200, 1200, 1800, 2400]
    assert most_rows(501) > PLAIN_TUNING.first_fit_rows


def test_a_run_that_is_given_a_start_goes_from_there_alone() -> None:
    """It ends in the optimum next to it, in fewer evaluations than the search."""
    task = task_of(60)
    options = {"kernel": Kernel.MATERN52, "residual": False, "free_offset": True}
    evidence = GaussianEvidence(task.X[None], task.y[None], None, inputs=Inputs.of(2), **options)  # type: ignore[arg-type]
    theta, report = fit(evidence, FitOptions(), seed=0, task="t", batch_shape=torch.Size())
    again, single = fit(
        evidence,
        FitOptions(restarts=1),
        seed=0,
        task="t",
        batch_shape=torch.Size(),
        warm_start=theta.reshape(1, -1) + 0.05,
    )
    assert single.objective.shape == (1,)
    assert torch.allclose(again, theta, atol=1e-2)
    assert int(single.evaluations.sum()) < int(report.evaluations.sum())


def test_hyperparameters_of_some_hundred_rows_are_those_of_all() -> None:
    """Up to 1,200 rows the last run sees all of them: it ends as high, to a tenth of a nat, as the search on all."""
    task = task_of(550)
    found = fit_level(NoBeliefs(torch.Size()), task, replace(SHGP.spec, seed=0))
    assert "hyperparameters from 550 of them" in found.report.note
    options = {"kernel": SHGP.kernel, "residual": False, "free_offset": True}
    everything = GaussianEvidence(task.X[None], task.y[None], None, inputs=Inputs.of(2), **options)  # type: ignore[arg-type]
    theta, _ = fit(everything, SHGP.fit, seed=0, task="t", batch_shape=torch.Size())
    layout = everything.layout
    both = torch.stack([found.theta.reshape(-1), theta])
    prior = 0.5 * ((both - layout.centre()).square() * layout.precision()).sum(-1)
    mine, best = everything.evaluate(both, torch.zeros(2, dtype=torch.int64))[0] + prior
    assert float(mine - best) < 0.1


@pytest.mark.parametrize("model", [SHGP, MHGP, BHGP, STAR, RGPE])
def test_a_model_of_a_large_source_can_be_had_again_from_its_hyperparameters(model: TransferModel) -> None:
    """``at`` with the fitted hyperparameters gives the fitted posterior, copies and all; the report says how."""
    few = task_of(510)
    source = Dataset(torch.cat([few.X, few.X[:90]]), torch.cat([few.y, few.y[:90] + 0.05]))
    target = task_of(6, seed=1)
    prior = model.learn([source])
    (report,) = prior.fit_reports
    assert report.note == "learnt from 600 rows at 510 places, hyperparameters from 510 of them"
    assert report.note in str(report)
    posterior = prior.condition(target)
    again = model.at(posterior.hyperparameters, sources=prior.sources, target=prior.inward(target))
    X = torch.rand(7, 2, dtype=torch.float64)
    warp = posterior.warp
    assert warp is not None
    mine = again._seen_through(warp, target.y).predict(X)
    for a, b in zip(mine, posterior.predict(X), strict=True):
        assert torch.allclose(a, b, rtol=1e-6, atol=1e-7)


def test_auto_learns_a_large_source_next_to_a_small_one() -> None:
    """In common units, each fitted in its own; it predicts the task they share, and finds its optimum."""
    large, small = task_of(700), task_of(30, seed=3)
    prior = AUTO.learn([Dataset(large.X, 1000 + 50 * large.y), Dataset(small.X, 1000 + 50 * small.y)])
    posterior = prior.condition(Dataset(small.X[:3], 1000 + 50 * small.y[:3]))
    x = suggest(posterior)
    assert float(torch.sin(6 * x[0]) + x[1].square()) < -0.8
    X = torch.rand(50, 2, dtype=torch.float64)
    mean, _ = posterior.predict(X)
    truth = 1000 + 50 * (torch.sin(6 * X[:, 0]) + X[:, 1].square())
    assert float((mean - truth).abs().mean()) < 10


@pytest.mark.parametrize(("model", "value"), [(AUTO, "scattered"), (SHGP, "two"), (BHGP, "one")])
def test_a_hundred_thousand_rows_at_one_place_are_one_place(model: TransferModel, value: str) -> None:
    """Copies, two values, or noise: nothing grows, and there is a suggestion."""
    n = 100_000
    y = {
        "one": torch.ones(n, dtype=torch.float64),
        "two": (torch.arange(n) % 2).double(),
        "scattered": torch.randn(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    }[value]
    prior = model.learn([Dataset(torch.full((n, 2), 0.5, dtype=torch.float64), y)])
    assert prior.fit_reports[0].note == "learnt from 100,000 rows at one place, hyperparameters from 1 of them"
    assert suggest(prior.condition(task_of(2))).isfinite().all()


def test_a_joint_model_takes_some_rows_of_a_large_source_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are factorised together in every evaluation."""
    monkeypatch.setattr(joint, "PLAIN_TUNING", replace(PLAIN_TUNING, rows_beside_others=40))
    prior = HGP.learn([task_of(90), task_of(20, seed=1)])
    assert [source.n for source in prior.sources] == [40, 20]
    assert prior.condition(task_of(4, seed=2)).fit_reports[0].note == "40 of 90 rows of source 0 are used"
