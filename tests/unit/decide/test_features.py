"""Compiled features are those of NumPy, forward and backward."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headstart.decide.surface import Features
from headstart.gp.compiled import compiled_loops
from headstart.gp.kernels import Kernel

pytestmark = pytest.mark.skipif(compiled_loops() is None, reason="numba is not there")


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(0, 300), min_size=1, max_size=3),
    d=st.integers(1, 5),
    m=st.integers(0, 6),
    kernel=st.sampled_from(Kernel),
    seed=st.integers(0, 1000),
)
def test_compiled_features_are_those_of_numpy(sizes: list[int], d: int, m: int, kernel: Kernel, seed: int) -> None:
    """Several groups may belong to the same rows; x may be a row of data itself."""
    draw = np.random.default_rng(seed)
    F, n_rows = sum(sizes), max(sizes) + 2
    Z, precision = draw.random((F, d)) - 0.5, 1 / draw.uniform(0.1, 3.0, (F, d)) ** 2
    ends = np.cumsum([0, *sizes])
    groups = tuple((slice(g % 2, g % 2 + size), slice(int(ends[g]), int(ends[g + 1]))) for g, size in enumerate(sizes))
    features = Features(
        kernel,
        form=np.concatenate([-0.5 * precision, Z * precision], axis=1),
        constant=-0.5 * (Z * Z * precision).sum(-1),
        weight=draw.uniform(-1, 2, F),
        groups=groups,
        n_rows=n_rows,
    )
    x = draw.random((m, d)) - 0.5
    if F and m:
        x[0] = Z[0]
    c, slope = features.forward(x, slopes=True)
    c_reference, slope_reference = features.forward_by_torch(x)
    np.testing.assert_allclose(c, c_reference, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(slope, slope_reference, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(features.forward(x, slopes=False)[0], c, rtol=0, atol=0)
    by_c = draw.standard_normal(c.shape)
    reference = features.backward_by_numpy(x, slope_reference, by_c)
    np.testing.assert_allclose(features.backward(x, slope, by_c), reference, rtol=1e-10, atol=1e-9)
