"""Who works on one thread leaves the others as they were."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import headstart
from benchmarks.methods.method import Settings
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.runner import run_batch
from headstart.cli.output import working
from headstart.gp import threads
from headstart.gp.threads import single_thread

MODULES = sorted(Path(headstart.__file__).parent.rglob("*.py"))


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_one_thread_inside_and_as_before_outside() -> None:
    """Also after an exception, and when one is inside the other."""
    with single_thread():
        with single_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3
    with pytest.raises(ArithmeticError), single_thread():
        raise ArithmeticError
    assert torch.get_num_threads() == 3


def test_a_benchmark_leaves_the_threads_as_they_were() -> None:
    """A batch of runs, in the process that asked for it."""
    problem = SyntheticProblem("forrester", source_points=3)
    run_batch(problem, "random", [0], steps=1, settings=Settings(restarts=1, max_iterations=2))
    assert torch.get_num_threads() == 3


def test_a_command_leaves_the_threads_as_they_were() -> None:
    """Its work is done on one."""
    with working():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_one_module_sets_the_number_of_threads() -> None:
    """All others use it, so that what is set is restored."""
    calls = ("set_num_threads", "set_num_interop_threads")
    setting = [
        path
        for path in MODULES
        if any(isinstance(n, ast.Attribute) and n.attr in calls for n in ast.walk(ast.parse(path.read_text())))
    ]
    assert setting == [Path(str(threads.__file__))]
