"""One thread, reproducible examples, and shapes checked at run time, for every test."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import Any

import matplotlib
import pytest
import tests.reference.shapes
import torch
from hypothesis import settings
from matplotlib.figure import Figure

# Before any test imports the package: from here on every array annotation in it is checked at run time.
tests.reference.shapes.install("headstart")

torch.set_num_threads(1)
matplotlib.rcParams["savefig.dpi"] = 40  # what a picture shows does not depend on it

# What waits for a browser, for other processes or for a server is begun first: no worker is left alone with it
_FIRST = ("tests/browser/", "tests/integration/test_ray", "tests/integration/test_sampler_distributed")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tests first, the others in their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(_FIRST))


def pytest_collection_finish() -> None:
    """What was collected stays: the garbage collector need not look at it again during the tests."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Compile once, before the workers start: otherwise each of them, and each process of theirs, would do it."""
    if not hasattr(config, "workerinput"):
        from headstart.gp.compiled import compiled_loops

        compiled_loops()


# The same examples at every run, here and in CI. HYPOTHESIS_PROFILE=explore looks for new ones, and for longer.
settings.register_profile("reproducible", deadline=None, max_examples=20, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "reproducible"))


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved in the test, so that it can be asked what they show."""
    saved: list[Figure] = []
    save = Figure.savefig

    def note(figure: Figure, *arguments: Any, **options: Any) -> None:
        saved.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", note)
    return saved


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What the sampler says through Optuna's logger is heard by ``caplog``, whatever Optuna's verbosity."""
    import optuna

    optuna.logging.enable_propagation()
    with caplog.at_level("INFO", logger="optuna.headstart"):
        yield
    optuna.logging.disable_propagation()


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna says only what is wrong."""
    import optuna  # few tests need it

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
