"""Workers that start at once and share a folder: nobody reads half a file, and all have the same fits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = """
import json, sys
from pathlib import Path

import torch

from headstart import STAR, Dataset, FitOptions
from headstart.models.fitcache import FitCache
from headstart.models.learning import LearnContext

generator = torch.Generator().manual_seed(0)
sources = []
for n in range(10, 18):
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    sources.append(Dataset(X, X.sum(-1)))
said = []
context = LearnContext(FitCache(Path(sys.argv[1]), said.append))
print("ready", flush=True)
sys.stdin.readline()
prior = STAR.using(fit=FitOptions(restarts=1)).learn(sources, context=context)
scales = [layer.params.lengthscale.tolist() for layer in prior.alone.layers]
print(json.dumps({"scales": scales, "said": said}), flush=True)
"""


def _start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(folder)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline().strip() == "ready"
    return worker


def _go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


@pytest.mark.slow
def test_workers_that_start_at_once_have_the_same_fits(tmp_path: Path) -> None:
    """Also where one is killed in the middle; no warning, and one entry for every source."""
    killed, *workers = [_start(tmp_path) for _ in range(4)]
    for worker in (killed, *workers):
        _go(worker)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    reports = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    assert all(report["scales"] == reports[0]["scales"] for report in reports)
    assert [report["said"] for report in reports] == [[]] * 3
    assert len(list(tmp_path.glob("*.npz"))) == 8
