"""Workers that start at once and share a folder: every source is learnt once, whoever is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

WORKER = """
import json, sys, time
from pathlib import Path

import torch

from headstart import STAR, Dataset, FitOptions
from headstart.models.learning.learning import Learning
from headstart.models.star.independent import AloneLesson
from headstart.sources.keeping.folder import FolderNotebook

folder, hangs = Path(sys.argv[1]), sys.argv[2] == "hangs"
learnt, run = [], AloneLesson.run

def counted(self):
    learnt.extend(self.keys)
    if hangs:
        print("hangs", flush=True)
        time.sleep(600)
    return run(self)

AloneLesson.run = counted
generator = torch.Generator().manual_seed(0)
sources = []
for n in range(10, 18):
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    sources.append(Dataset(X, X.sum(-1)))
said = []
print("ready", flush=True)
sys.stdin.readline()
with Learning(FolderNotebook(folder, said.append, patience=60.0)).applied():
    prior = STAR.using(fit=FitOptions(restarts=1)).learn(sources)
scales = [layer.params.lengthscale.tolist() for layer in prior.alone.layers]
print(json.dumps({"learnt": learnt, "scales": scales, "said": said}), flush=True)
"""


def _start(folder: Path, how: str = "works") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(folder), how]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline().strip() == "ready"
    return worker


def _go(worker: subprocess.Popen[str]) -> None:
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()


def test_workers_that_start_at_once_learn_every_source_once(tmp_path: Path) -> None:
    """Between them, and all have the same numbers; of one that is killed in the middle the others take over."""
    killed = _start(tmp_path, "hangs")
    workers = [_start(tmp_path) for _ in range(4)]
    _go(killed)
    assert killed.stdout is not None
    assert killed.stdout.readline().strip() == "hangs"  # it has a claim now, and will never end it
    for worker in workers:
        _go(worker)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    reports = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    learnt = [key for report in reports for key in report["learnt"]]
    assert len(learnt) == 8
    assert len(set(learnt)) == 8
    assert all(report["scales"] == reports[0]["scales"] for report in reports)
    assert [report["said"] for report in reports] == [[]] * 4
    assert len(list(tmp_path.glob("*.numbers"))) == 8
    late = _start(tmp_path)
    _go(late)
    assert json.loads(late.communicate(timeout=120)[0])["learnt"] == []
