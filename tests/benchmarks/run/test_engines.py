"""Processes that die while they work: what they were doing is done again, and what cannot be done is given up."""

from __future__ import annotations

import os
import signal
from multiprocessing import active_children
from pathlib import Path

import pytest
from tests.benchmarks.run.deadly import Piece

from benchmarks.queue import Unit, in_processes
from benchmarks.run.experiment import BenchExperiment, ProblemSpec, execute
from benchmarks.store import Store
from headstart import HeadstartError


@pytest.mark.slow
def test_a_piece_whose_process_dies_is_tried_again_and_then_given_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that dies once is done in the end, one that dies every time is an error, and all others are done."""
    pieces = [Piece(0, tmp_path), Piece(1, tmp_path, deaths=1), Piece(2, tmp_path, deaths=99), Piece(3, tmp_path)]
    outcomes = {piece.number: found for piece, found in in_processes(pieces, "cpu", 2) if isinstance(piece, Piece)}
    given_up = outcomes.pop(2)
    assert outcomes == {0: [], 1: [], 3: []}
    assert isinstance(given_up, HeadstartError)
    assert "its process dies every time" in str(given_up)
    assert len(list(tmp_path.glob("2-*"))) in (2, 3)  # two alone, and perhaps one in company
    assert "A process died; what it was doing is done again" in caplog.text


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """``kill -9`` of a worker after the first unit: every run is there in the end, and nothing failed."""
    before = set(active_children())
    killed: list[int] = []

    def kill(unit: Unit, error: Exception | None) -> None:
        assert error is None
        if not killed:
            victim = next(iter(set(active_children()) - before))
            assert victim.pid is not None
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            killed.append(victim.pid)

    experiment = BenchExperiment("e", (ProblemSpec(family="forrester", points=5),), ("random",), runs=3, steps=2)
    assert execute([experiment], Store(tmp_path), chunk=1, jobs=2, on_unit=kill) == []
    assert killed
    assert sorted(run.seed for run in Store(tmp_path).read().runs) == list(range(3))
