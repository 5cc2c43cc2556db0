"""Sources are learnt on a real local Ray."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import torch

from headstart import STAR, Dataset, FitOptions, NumericalError
from headstart.models.learning import FitJob, LearnContext

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install headstart[ray]")


@pytest.fixture(autouse=True)
def _cluster() -> Iterator[None]:
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


def test_sources_are_learnt_on_ray_as_they_are_here() -> None:
    """Every source is a task of Ray's; a failure there is the same error here, and the cluster is left as it was."""
    generator = torch.Generator().manual_seed(0)
    X = [torch.rand(n, 2, generator=generator, dtype=torch.float64) for n in (12, 15, 9)]
    sources = [Dataset(x, torch.sin(4 * x.sum(-1))) for x in X]
    model = STAR.using(fit=FitOptions(restarts=1))
    there, here = model.learn(sources, seed=1, n_jobs="ray"), model.learn(sources, seed=1)
    at = torch.rand(5, 2, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(there.condition().predict(at), here.condition().predict(at), rtol=1e-4, atol=1e-6)
    assert [r.task for r in there.fit_reports] == [r.task for r in here.fit_reports]
    assert ray.is_initialized()
    with pytest.raises(NumericalError, match="no way"):
        list(LearnContext(n_jobs="ray").run([FitJob(failing, (), 1, 1.0)] * 2))


def failing() -> None:
    """It cannot be learnt."""
    raise NumericalError("no way")
