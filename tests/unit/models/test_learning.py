"""Where sources are fitted: processes give the same numbers, are used where that pays, and may die."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.problems import quick

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.models import learning
from headstart.models.family import FAMILY, SHGP, STAR
from headstart.models.fitcache import FitCache
from headstart.models.learning import FitJob, LearnContext, LearningProgress, format_seconds
from headstart.models.star.independent import fit_independently


def source(seed: int, n: int = 12, name: str = "") -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(3 * X[:, 0]) + 0.3 * torch.rand(n, generator=generator, dtype=torch.float64), name)


def test_a_source_gives_what_it_gives_alone() -> None:
    """To rounding: the starting points depend neither on the other sources nor on what was learnt before."""
    sources = (*(source(i) for i in range(3)), source(7, 9))
    together = fit_independently(sources, quick(STAR), 3, LearnContext())
    for i, one in enumerate(sources):
        own = fit_independently((one,), quick(STAR), 3, LearnContext())
        scaled = own.layers[0].params.scaled(own.known.scale, own.known.offset)
        common = together.layers[i].params.scaled(together.known.scale, together.known.offset)
        torch.testing.assert_close(scaled.lengthscale, common.lengthscale, rtol=1e-4, atol=0)
        torch.testing.assert_close(scaled.outputscale, common.outputscale, rtol=1e-4, atol=0)


# ── several processes ─────────────────────────────────────────────────────────────────────────────────────────────

SCRIPT = """
import torch
from headstart import FAMILY, Dataset
from headstart.gp.threads import round_alike
from headstart.models import learning

round_alike()
learning.MIN_SECONDS_SAVED = 0.0
generator = torch.Generator().manual_seed(0)
def source(n):
    X = torch.rand(n, 3, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(4 * X.sum(-1)) + 0.1 * torch.rand(n, generator=generator, dtype=torch.float64))
sources = [source(n) for n in (30, 30, 25, 40, 30, 55, 520)]
found = []
for n_jobs in (1, 2):
    prior = FAMILY["STAR"].learn(sources, seed=1, n_jobs=n_jobs)
    layers = prior.alone.layers
    found.append([p for layer in layers for p in (layer.params.lengthscale, layer.params.offset, layer.L)])
print(all(torch.equal(a, b) for a, b in zip(*found)))
"""


@pytest.mark.slow
def test_processes_learn_the_same_to_the_last_bit(tmp_path: Path) -> None:
    """As one process does; the script that asks for them need not be written for it."""
    script = tmp_path / "plain_script.py"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if k != "MKL_CBWR"}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "True", done.stderr


def deadly(home: int) -> int:
    """Ends the process it runs in, unless that is the one at home."""
    if os.getpid() != home:
        os._exit(1)
    return home


def _jobs(seconds: float, n: int = 3) -> list[FitJob[int]]:
    return [FitJob(deadly, (os.getpid(),), 1, seconds)] * n


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_process_that_dies_takes_nothing_with_it(caplog: pytest.LogCaptureFixture) -> None:
    """What it was doing, and all that is left, is done here."""
    done = list(LearnContext(n_jobs=2).run(_jobs(100.0)))
    assert sorted(done) == [(i, os.getpid()) for i in range(3)]
    assert "died" in caplog.text


def test_processes_are_started_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a second's work, nor for a single job."""

    def never(*_: Any) -> Iterator[Any]:
        raise AssertionError

    monkeypatch.setattr(learning, "_in_parallel", never)
    context = LearnContext(n_jobs=2)
    assert len(list(context.run(_jobs(1.0, 4)))) == 4
    assert len(list(context.run(_jobs(100.0, 1)))) == 1
    assert len(list(replace(context, n_jobs=1).run(_jobs(100.0)))) == 3
    with pytest.raises(AssertionError):
        list(context.run(_jobs(100.0)))


@pytest.mark.parametrize("wrong", [0, -2, 1.5, True, "two"])
def test_a_wrong_number_of_processes_is_refused(wrong: Any) -> None:
    """With what it may be."""
    with pytest.raises(InputError, match=r"n_jobs is (how many|a number of) processes"):
        SHGP.learn([source(0)], n_jobs=wrong)


# ── progress ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_progress_says_what_how_far_and_how_long() -> None:
    """Before anything is done by experience, then by what it took so far."""
    told: list[LearningProgress] = []
    now = [100.0]
    done = LearnContext(on_progress=told.append).meter("Learning", 8.0, lambda: now[0])
    now[0] = 103.0
    done(2.0)
    now[0] = 112.0
    done(6.0)
    assert told[0] == LearningProgress("Learning", 0.0, 0.0, 8.0)
    assert told[1] == LearningProgress("Learning", 0.25, 3.0, 9.0)
    assert told[2] == LearningProgress("Learning", 1.0, 12.0, 0.0)
    assert str(told[1]) == "Learning: 25% after 3 s, about 9 s to go"
    assert [format_seconds(s) for s in (5, 89, 100, 7200)] == ["5 s", "89 s", "2 min", "2.0 h"]


@pytest.mark.parametrize("name", ["STAR", "SHGP", "RGPE"])
def test_progress_goes_from_nothing_to_all(name: str, tmp_path: Path) -> None:
    """Also where some of it is known already."""
    told: list[LearningProgress] = []
    context = LearnContext(FitCache(tmp_path), on_progress=told.append)
    quick(FAMILY[name]).learn([source(0), source(1, 9)], context=context)
    shares = [one.share for one in told]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert "2 sources (21 rows)" in told[0].doing
    told.clear()
    quick(FAMILY[name]).learn([source(0), source(1, 9), source(2, 8)], context=context)
    assert told[-1].share == pytest.approx(1.0)
