"""Kernels between a few points and the data of a whole model, compiled, there and back. Loaded by ``loading``.

    half_f = constant_f + Σ_j x_j (square_jf x_j + linear_jf)         −D/2 between x and the data of feature f
    c_r    = Σ weight_f κ(half_f)                                     over the features f of row r

The features come in groups: those from ``first[g]`` up to ``first[g + 1]`` belong to the rows from ``rows[g]`` on.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from headstart.gp.fused.evaluation import IN_ANY_ORDER, IN_ORDER, exp_each

_TINY = 1e-30  # as in gp.kernels
_CHUNK = 256  # features whose numbers stay in the first cache


@njit("void(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8[::1], i8[::1], b1, f8[:,::1], f8[:,::1])", **IN_ORDER)
def add_features(x, square, linear, constant, weight, rows, first, matern, c, slope):  # type: ignore[no-untyped-def]
    """Add the features of every row of x to c; ``slope`` becomes weight · dκ/d half, unless it has no columns."""
    d, back = x.shape[1], slope.shape[1] > 0
    half, kappa, power = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    for g in range(rows.size):
        for begin in range(first[g], first[g + 1], _CHUNK):
            k = min(_CHUNK, first[g + 1] - begin)
            row, offsets, size = rows[g] + begin - first[g], constant[begin : begin + k], weight[begin : begin + k]
            h, e, p = half[:k], kappa[:k], power[:k]
            for i in range(x.shape[0]):
                h[:] = offsets
                for j in range(d):
                    x_j, squares, lines = x[i, j], square[j, begin : begin + k], linear[j, begin : begin + k]
                    for t in range(k):
                        h[t] += x_j * (squares[t] * x_j + lines[t])
                out = c[i, row : row + k]
                if matern:
                    for t in range(k):
                        h[t] = -math.sqrt(max(-10.0 * h[t], _TINY))
                else:
                    for t in range(k):
                        h[t] = min(h[t], 0.0)
                exp_each(h, e, p)
                if not matern:
                    for t in range(k):
                        out[t] += size[t] * e[t]
                    if back:
                        slopes = slope[i, begin : begin + k]
                        for t in range(k):
                            slopes[t] = size[t] * e[t]
                    continue
                for t in range(k):
                    out[t] += size[t] * ((1.0 - h[t]) + h[t] * h[t] * (1.0 / 3.0)) * e[t]
                if back:
                    slopes = slope[i, begin : begin + k]
                    for t in range(k):
                        slopes[t] = size[t] * (5.0 / 3.0) * (1.0 - h[t]) * e[t]


@njit("void(f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1])", **IN_ANY_ORDER)
def pull_back(x, square, linear, rows, first, slope, by_c, gradient):  # type: ignore[no-untyped-def]
    """Fill ``gradient`` by x of what has the derivatives ``by_c``, with the slopes of ``add_features``."""
    d = x.shape[1]
    by_half = np.empty(slope.shape[1])
    for i in range(x.shape[0]):
        for g in range(rows.size):
            slopes, out = slope[i, first[g] : first[g + 1]], by_half[first[g] : first[g + 1]]
            inner = by_c[i, rows[g] : rows[g] + slopes.size]
            for t in range(slopes.size):
                out[t] = slopes[t] * inner[t]
        for j in range(d):
            squares, lines, by_square, by_linear = square[j], linear[j], 0.0, 0.0
            for t in range(by_half.size):
                by_square += by_half[t] * squares[t]
                by_linear += by_half[t] * lines[t]
            gradient[i, j] = 2.0 * x[i, j] * by_square + by_linear
