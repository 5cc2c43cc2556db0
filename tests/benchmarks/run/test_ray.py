"""Experiments on a real local Ray."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.methods.method import Settings
from benchmarks.run.experiment import BenchExperiment, ProblemSpec, execute
from benchmarks.store import Store
from headstart import InputError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install headstart[ray]")

SETTINGS = Settings(restarts=2, max_iterations=20)


@pytest.fixture(autouse=True)
def _two_processors() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    yield
    ray.shutdown()


@pytest.mark.slow
def test_ray_gives_what_one_process_gives_and_reports_what_fails(tmp_path: Path) -> None:
    """The same runs for the same seeds; a unit that fails there is an error here, and the others are done."""
    good = ProblemSpec(family="forrester", points=6)
    local, remote = Store(tmp_path / "local"), Store(tmp_path / "remote")
    experiment = BenchExperiment("ray", (good,), ("random", "shgp"), runs=2, steps=2, settings=SETTINGS)
    assert execute([experiment], local, chunk=1) == []
    assert execute([experiment], remote, chunk=1, engine="ray", jobs=2) == []
    found = [{run.key: run.regret for run in store.read().runs} for store in (local, remote)]
    assert set(found[0]) == set(found[1])
    assert len(found[0]) == 4
    for key, regret in found[0].items():
        assert found[1][key] == pytest.approx(regret, abs=1e-4)

    # three sources of the table have no 400 rows to evaluate
    impossible = ProblemSpec(table="svm", sources=3, rows=20)
    both = BenchExperiment("ray", (impossible, good), ("random",), runs=1, steps=400)
    failed = execute([both], remote, engine="ray", jobs=2)
    assert [(str(unit), type(error)) for unit, error in failed] == [("svm, random, seeds 0 to 0", InputError)]
    assert ray.is_initialized()  # it was there before, so it is left alone
    assert execute([both], remote, engine="ray", jobs=2)[0][0] == failed[0][0]
