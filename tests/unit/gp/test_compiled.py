"""The compiled evidence is torch's, to rounding; without numba everything is as it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from functools import cache, partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.gp.compiled import MAX_COMPILED_ROWS, compiled_loops, interrupts_wait
from headstart.gp.evidence import Coefficients, GaussianEvidence, WeightedTerms
from headstart.gp.hyperparameters import Inputs, Slot, Starts
from headstart.gp.kernels import Kernel
from headstart.models.star.weights import Integrated

needs_numba = pytest.mark.skipif(compiled_loops() is None, reason="numba is not there")
TOLERANCE = 1e-10
AMPLITUDE = Integrated().coefficients
PER_SOURCE, MODULAR = (Coefficients(Slot("weight", 2, 1e-3, 20.0, 0.5, 1.0), modular) for modular in (False, True))


def _covs(generator: torch.Generator, *shape: int) -> torch.Tensor:
    A = torch.randn(*shape, shape[-1], generator=generator, dtype=torch.float64)
    return A @ A.mT / shape[-1]


def _same(one: torch.Tensor, other: torch.Tensor) -> None:
    """Relative to the largest entry of the row: a derivative that vanishes has no relative error of its own."""
    one, other = one.reshape(len(one), -1), other.reshape(len(other), -1)
    gap = (one - other).abs().amax(-1)
    assert bool((gap <= TOLERANCE * other.abs().amax(-1).clamp_min(1.0)).all()), gap


@needs_numba
@settings(deadline=None, max_examples=80)
@given(
    n=st.integers(1, 70),
    d=st.integers(1, 6),
    P=st.integers(1, 3),
    kernel=st.sampled_from(Kernel),
    inherits=st.booleans(),
    free_offset=st.booleans(),
    known_errors=st.booleans(),
    n_levels=st.integers(0, 3),
    seed=st.integers(0, 10_000),
)
def test_the_compiled_plain_evidence_is_that_of_torch(
    n: int,
    d: int,
    P: int,
    kernel: Kernel,
    inherits: bool,
    free_offset: bool,
    known_errors: bool,
    n_levels: int,
    seed: int,
) -> None:
    """Values and gradients agree for both kernels, inherited covariances, categories, known errors and batches."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(P, n, d + n_levels, generator=generator, dtype=torch.float64)
    y = torch.randn(P, n, generator=generator, dtype=torch.float64)
    evidence = GaussianEvidence(
        X,
        y,
        _covs(generator, P, n) if inherits else None,
        kernel=kernel,
        residual=inherits,
        free_offset=free_offset,
        inputs=Inputs.of(d + n_levels, [range(d, d + n_levels)] if n_levels else []),
        error_var=torch.rand(P, n, generator=generator, dtype=torch.float64) if known_errors else None,
    )
    theta = evidence.layout.starts(Starts.PRIOR, 4, generator)
    items = torch.randint(P, (4,), generator=generator)
    ours, reference = evidence.evaluate(theta, items), evidence.evaluate_by_torch(theta, items)
    assert bool(ours[2].all())
    for one, other in zip(ours[:2], reference[:2], strict=True):
        _same(one, other)


@needs_numba
@pytest.mark.parametrize("coefficients", [AMPLITUDE, PER_SOURCE, MODULAR])
@pytest.mark.parametrize("kernel", list(Kernel))
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n", [1, 7, 33])
def test_the_compiled_evidence_of_a_star_is_that_of_torch(
    coefficients: Coefficients, kernel: Kernel, shared: bool, n: int
) -> None:
    """Also by the sources' weights, and where problems share inputs and known errors."""
    generator = torch.Generator().manual_seed(n)
    n_means = 2 if coefficients in (PER_SOURCE, MODULAR) else 1
    n_covs = 2 * n_means if coefficients.modular else n_means
    P, rows = 3, 1 if shared else 3
    means = torch.randn(P, n_means, n, generator=generator, dtype=torch.float64)
    evidence = GaussianEvidence(
        torch.rand(rows, n, 3, generator=generator, dtype=torch.float64),
        torch.randn(P, n, generator=generator, dtype=torch.float64),
        kernel=kernel,
        residual=True,
        free_offset=True,
        terms=WeightedTerms(means, _covs(generator, P, n_covs, n), coefficients),
        error_var=torch.rand(rows, n, generator=generator, dtype=torch.float64) if n > 1 else None,
    )
    theta = evidence.layout.starts(Starts.PRIOR, 6, generator)
    items = torch.arange(6) % P
    ours, reference = evidence.evaluate(theta, items), evidence.evaluate_by_torch(theta, items)
    for one, other in zip(ours[:2], reference[:2], strict=True):
        _same(one, other)


@needs_numba
def test_a_row_that_cannot_be_factorised_spoils_no_other() -> None:
    """A covariance that is not positive definite is reported for its own row."""
    X = torch.rand(2, 5, 2, dtype=torch.float64)
    C = torch.stack([torch.zeros(5, 5), -10 * torch.eye(5)]).double()
    evidence = GaussianEvidence(X, torch.ones(2, 5).double(), C, kernel=Kernel.RBF, residual=False, free_offset=False)
    theta = evidence.layout.starts(Starts.PRIOR, 1, torch.Generator()).expand(3, -1).contiguous()
    value, gradient, ok = evidence.evaluate(theta, torch.tensor([0, 1, 0]))
    assert ok.tolist() == [True, False, True]
    assert torch.equal(value[0], value[2])
    assert torch.equal(gradient[0], gradient[2])
    assert bool(gradient.isfinite().all())


@needs_numba
def test_a_row_of_a_batch_is_what_it_is_alone() -> None:
    """To the last bit, wherever it stands."""
    generator = torch.Generator().manual_seed(0)
    X, y = torch.rand(3, 23, 4, generator=generator).double(), torch.randn(3, 23, generator=generator).double()
    theta = torch.randn(9, 6, generator=generator, dtype=torch.float64)
    items = torch.arange(9) % 3
    make = partial(GaussianEvidence, C=None, kernel=Kernel.MATERN52, residual=False, free_offset=True)
    together = make(X, y).evaluate(theta, items)
    for b, p in enumerate(items.tolist()):
        alone = make(X[[p]], y[[p]]).evaluate(theta[[b]], torch.zeros(1, dtype=torch.int64))
        for one, other in zip(alone, together, strict=True):
            assert torch.equal(one[0], other[b])


@cache
def _exp_of(seed: int) -> tuple[np.ndarray, np.ndarray]:
    from headstart.gp.compiled_loops import exp_each

    x = -np.random.default_rng(seed).exponential(30.0, 10_000)
    x[:4] = 0.0, -1e-300, -699.9, -1e5
    out = np.empty_like(x)
    exp_each(x, out, np.empty_like(x))
    return x, out


@needs_numba
def test_our_exponential_is_exact_to_rounding() -> None:
    """Two units in the last place, and as good as nothing where it would be nothing."""
    x, out = _exp_of(0)
    within = x > -700
    np.testing.assert_allclose(out[within], np.exp(x[within]), rtol=5e-16)
    assert (out[~within] < 1e-300).all()


@needs_numba
def test_many_observations_go_through_torch() -> None:
    """Beyond the limit both ways are one."""
    X = torch.rand(1, MAX_COMPILED_ROWS + 1, 1, dtype=torch.float64)
    evidence = GaussianEvidence(X, X[..., 0], None, kernel=Kernel.RBF, residual=False, free_offset=False)
    theta, items = torch.tensor([[-1.0, 0.0, -2.0]], dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    for one, other in zip(evidence.evaluate(theta, items), evidence.evaluate_by_torch(theta, items), strict=True):
        assert torch.equal(one, other)


WITHOUT = """
import os, sys, types
import torch
from headstart import GPBO, Dataset
from headstart.gp.compiled import compiled_loops

broken = types.ModuleType("numba")
broken.njit = lambda *a, **k: 1 / 0
for numba in (None, broken):
    child = os.fork()
    if not child:
        sys.modules["numba"] = numba
        assert compiled_loops() is None
        X = torch.rand(6, 2, dtype=torch.float64)
        found = GPBO.learn([]).condition(Dataset(X, X.sum(-1))).predict(X)[0]
        print(found.isfinite().all().item(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_without_numba_torch_does_it() -> None:
    """Numba that is missing, or that cannot compile, is no error and leaves no word."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    assert result.stdout.split() == ["True", "True"]
    assert "numba" not in result.stderr


def test_an_interrupt_is_raised_when_the_work_is_done() -> None:
    """Not in its midst; and the handler from before is back."""
    outside, done = signal.signal(signal.SIGINT, signal.default_int_handler), []  # a job in the background ignores it

    def work() -> None:
        with interrupts_wait():
            signal.raise_signal(signal.SIGINT)
            done.append("work")

    try:
        with pytest.raises(KeyboardInterrupt):
            work()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)
    assert done == ["work"]


def test_another_thread_which_has_no_signals_just_works() -> None:
    """Python leaves signals to the main thread."""
    done = []

    def work() -> None:
        with interrupts_wait():
            done.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["work"]
