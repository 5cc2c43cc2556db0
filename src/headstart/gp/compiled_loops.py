"""Compiled loops (numba), loaded by gp.compiled: the evidence of few observations, and kernels between points and data.

The evidence of gp.evidence and its gradient (``evaluate_batch``):

    y ~ N(Σ_i a_i m_i, Σ_j c_j C_j + outputscale · κ(X, X) + constant + diag(noise_var · noise_weight + error_var))

    θ = [log ℓ (g), log outputscale, log noise_var]

For a few hundred observations a LAPACK call costs more than its arithmetic (n = 20: 12 µs for potrf and potri through
torch, 2 µs here). Every matrix is worked on by itself and in one order, so a problem of a batch is what it is alone, to
the last bit. Rows are taken four at a time: what a row is updated with is then loaded once for four products. Loops run
over slices that begin at 0, which is what the compiler turns into vector instructions.

Kernels between points x and the data of a whole model (``add_features``, ``pull_back``):

    half_f = constant_f + Σ_j x_j (square_jf x_j + linear_jf)         −D/2 between x and the data of feature f
    c_r    = Σ weight_f κ(half_f)                                     over the features f of row r

The features come in groups: those from ``first[g]`` up to ``first[g + 1]`` belong to the rows from ``rows[g]`` on.

All of it is one module, since numba checks the age of a function's own file alone when it decides whether its cached
result is still valid.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

# Products and sums may be fused; with _IN_ANY_ORDER sums may also be reordered, as a reduction by vectors needs
_IN_ORDER: dict[str, Any] = {
    "cache": True,
    "fastmath": {"contract", "nsz"},
    "error_model": "numpy",
    "boundscheck": False,
    "nogil": True,
}
_IN_ANY_ORDER: dict[str, Any] = {**_IN_ORDER, "fastmath": {"contract", "nsz", "reassoc"}}

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 · 2⁵²: adding it leaves a rounded integer in the lowest bits
_LEAST = -700.0
# 1/k! for k = 2 … 13
_P2, _P3, _P4, _P5, _P6, _P7, _P8, _P9, _P10, _P11, _P12, _P13 = (1 / math.factorial(k) for k in range(2, 14))
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_TINY = 1e-30  # as in gp.kernels
_CHUNK = 256  # features whose numbers stay in the first cache


@njit(**_IN_ORDER)
def exp_each(x, out, power):  # type: ignore[no-untyped-def]
    """exp of every x ≤ 0 (below −700: of −700) into ``out``, with room for as many numbers in ``power``.

    exp x = 2ᵏ exp r with k = x/ln 2, rounded, and |r| ≤ ln(2)/2, where thirteen terms of the series are exact to 4e-18.
    """
    bits = power.view(np.int64)
    for i in range(x.size):
        v = max(x[i], _LEAST)
        shifted = v * _LOG2_E + _ROUND
        power[i] = shifted
        k = shifted - _ROUND
        r = (v - k * _LN2_HIGH) - k * _LN2_LOW
        high = _P8 + r * (_P9 + r * (_P10 + r * (_P11 + r * (_P12 + r * _P13))))
        low = _P2 + r * (_P3 + r * (_P4 + r * (_P5 + r * (_P6 + r * (_P7 + r * high)))))
        out[i] = 1.0 + (r + r * r * low)
    for i in range(x.size):
        bits[i] = (bits[i] + 1023) << 52  # the number 2ᵏ
    for i in range(x.size):
        out[i] *= power[i]


@njit(**_IN_ORDER)
def factorise(A):  # type: ignore[no-untyped-def]
    """U with Uᵀ U = A in the upper triangle of A, which is all that is read; false where A is not positive definite."""
    n = A.shape[0]
    for first in range(0, n, 4):
        last = min(first + 4, n)
        for a in range(first, last):
            row = A[a, a:]
            for b in range(first, a):
                factor, other = A[b, a], A[b, a:]
                for t in range(row.size):
                    row[t] -= factor * other[t]
            if not row[0] > 0.0:
                return False
            inverse = 1.0 / math.sqrt(row[0])
            for t in range(row.size):
                row[t] *= inverse
        if last < first + 4:
            break
        for i in range(last, n):
            f0, f1, f2, f3 = A[first, i], A[first + 1, i], A[first + 2, i], A[first + 3, i]
            r0, r1, r2, r3 = A[first, i:], A[first + 1, i:], A[first + 2, i:], A[first + 3, i:]
            row = A[i, i:]
            for t in range(row.size):
                row[t] -= f0 * r0[t] + f1 * r1[t] + f2 * r2[t] + f3 * r3[t]
    return True


@njit(**_IN_ORDER)
def invert_factor(U, W):  # type: ignore[no-untyped-def]
    """W = (Uᵀ)⁻¹, lower triangular; W must be zero above its diagonal, and stays so."""
    n = U.shape[0]
    for i in range(n):
        row = W[i, :i]
        row[:] = 0.0
        k = 0
        while k + 4 <= i:
            f0, f1, f2, f3 = U[k, i], U[k + 1, i], U[k + 2, i], U[k + 3, i]
            r0, r1, r2, r3 = W[k], W[k + 1], W[k + 2], W[k + 3]
            for t in range(k + 4):
                row[t] -= f0 * r0[t] + f1 * r1[t] + f2 * r2[t] + f3 * r3[t]
            k += 4
        while k < i:
            f0, r0 = U[k, i], W[k]
            for t in range(k + 1):
                row[t] -= f0 * r0[t]
            k += 1
        inverse = 1.0 / U[i, i]
        for t in range(i):
            row[t] *= inverse
        W[i, i] = inverse


@njit(**_IN_ORDER)
def inverse_row(W, i, row):  # type: ignore[no-untyped-def]
    """Row i of A⁻¹ = Wᵀ W from its diagonal on, into the beginning of ``row``."""
    n = W.shape[0]
    row[: n - i] = 0.0
    k = i
    while k + 4 <= n:
        f0, f1, f2, f3 = W[k, i], W[k + 1, i], W[k + 2, i], W[k + 3, i]
        r0, r1, r2, r3 = W[k, i:], W[k + 1, i:], W[k + 2, i:], W[k + 3, i:]
        for t in range(k + 4 - i):
            row[t] += f0 * r0[t] + f1 * r1[t] + f2 * r2[t] + f3 * r3[t]
        k += 4
    while k < n:
        f0, r0 = W[k, i], W[k, i:]
        for t in range(k + 1 - i):
            row[t] += f0 * r0[t]
        k += 1


@njit(**_IN_ORDER)
def _kernel(Z, matern, kappa, slope, power):  # type: ignore[no-untyped-def]
    """κ and −2 dκ/dD between the columns of Z, a row per input; pairs (i, t > i) one after the other."""
    d, n = Z.shape
    begin = 0
    for i in range(n - 1):
        D = slope[begin : begin + n - 1 - i]
        D[:] = 0.0
        for j in range(d):
            z, others = Z[j, i], Z[j, i + 1 :]
            for t in range(D.size):
                away = z - others[t]
                D[t] += away * away
        begin += D.size
    if not matern:
        for t in range(slope.size):
            slope[t] *= -0.5
        exp_each(slope, kappa, power)
        slope[:] = kappa
        return
    for t in range(slope.size):
        slope[t] = -math.sqrt(max(5.0 * slope[t], _TINY))
    exp_each(slope, kappa, power)
    for t in range(slope.size):
        a = -slope[t]
        decay = kappa[t]
        kappa[t] = (1.0 + a + a * a * (1.0 / 3.0)) * decay
        slope[t] = (5.0 / 3.0) * (1.0 + a) * decay


@njit(**_IN_ORDER)
def _add(factor, x, out):  # type: ignore[no-untyped-def]
    """out += factor · x, as far as x reaches."""
    for t in range(x.size):
        out[t] += factor * x[t]


@njit(**_IN_ANY_ORDER)
def _dot(a, b):  # type: ignore[no-untyped-def]
    """Σ a b, as far as a reaches."""
    total = 0.0
    for t in range(a.size):
        total += a[t] * b[t]
    return total


@njit(**_IN_ANY_ORDER)
def _moment(h, others, z):  # type: ignore[no-untyped-def]
    """Σ h (z − others)²."""
    total = 0.0
    for t in range(h.size):
        away = z - others[t]
        total += h[t] * away * away
    return total


_SIGNATURE = (
    "void(f8[:,::1], i8[::1], f8[:,:,::1], i8[::1], b1, f8[:,::1], f8[:,:,::1], f8[:,::1], f8[:,:,:,::1], f8[:,::1], "
    "f8, f8[:,::1], f8[:,::1], f8[::1], f8[:,::1], f8[:,::1], f8[:,::1], b1[::1])"
)


@njit(_SIGNATURE, **_IN_ORDER)
def evaluate_batch(  # type: ignore[no-untyped-def]
    theta, items, X, group, matern, y, means, a, covs, c, constant, error_var, noise_weight,
    value, gradient, by_a, by_c, ok,
):  # fmt: skip
    """Fill value, gradient by θ, by a and by c, and ok: one row for every row of θ, a and c.

    Row b is about problem ``items[b]`` of X (P, d, n), y (P, n), means (P, I, n), covs (P, J, n, n), error_var and
    noise_weight (P, n), of which each may also have one row for all problems. ``by_a`` and ``by_c`` have no columns
    where they are not asked for.
    """
    d, n = X.shape[1], X.shape[2]
    J, g = covs.shape[1], theta.shape[1] - 2
    n_pairs = n * (n - 1) // 2
    Z, U, W = np.empty((d, n)), np.empty((n, n)), np.zeros((n, n))
    kappa, slope, power = np.empty(n_pairs), np.empty(n_pairs), np.empty(n_pairs)
    residual, alpha, inverse = np.empty(n), np.empty(n), np.empty(n)
    for b in range(theta.shape[0]):
        p = items[b]
        at, own = X[p if X.shape[0] > 1 else 0], covs[p if covs.shape[0] > 1 else 0]
        average = means[p if means.shape[0] > 1 else 0]
        known = error_var[p if error_var.shape[0] > 1 else 0]
        weight = noise_weight[p if noise_weight.shape[0] > 1 else 0]
        outputscale, noise_var = math.exp(theta[b, g]), math.exp(theta[b, g + 1])
        for j in range(d):
            scale = math.exp(-theta[b, group[j]])
            for i in range(n):
                Z[j, i] = at[j, i] * scale
        _kernel(Z, matern, kappa, slope, power)
        begin = 0
        for i in range(n):
            row, pairs = U[i, i + 1 :], kappa[begin:]
            for t in range(row.size):
                row[t] = outputscale * pairs[t] + constant
            U[i, i] = outputscale + noise_var * weight[i] + known[i] + constant
            begin += row.size
            for j in range(J):
                _add(c[b, j], own[j, i, i:], U[i, i:])
        gradient[b], by_a[b], by_c[b] = 0.0, 0.0, 0.0
        ok[b] = factorise(U)
        if not ok[b]:
            value[b] = 0.0
            continue
        invert_factor(U, W)
        residual[:] = y[p if y.shape[0] > 1 else 0]
        for i in range(average.shape[0]):
            _add(-a[b, i], average[i], residual)
        total = n * _HALF_LOG_2PI
        alpha[:] = 0.0
        for i in range(n):
            row = W[i, : i + 1]
            u = _dot(row, residual)
            _add(u, row, alpha)
            total += math.log(U[i, i]) + 0.5 * u * u
        value[b] = total
        for i in range(by_a.shape[1]):
            by_a[b, i] = -_dot(alpha, average[i])
        by_outputscale, trace, begin = 0.0, 0.0, 0
        for i in range(n):
            inverse_row(W, i, inverse)
            # row i of 2 G; the diagonal counts once, every other entry for two
            G = inverse[: n - i]
            _add(-alpha[i], alpha[i:], G)
            G[0] *= 0.5
            trace += G[0] * weight[i]
            for j in range(by_c.shape[1]):
                by_c[b, j] += _dot(G, own[j, i, i:])
            H = inverse[1 : n - i]
            by_outputscale += G[0] + _dot(H, kappa[begin:])
            slopes = slope[begin:]
            for t in range(H.size):
                H[t] *= slopes[t]
            for j in range(d):
                gradient[b, group[j]] += _moment(H, Z[j, i + 1 :], Z[j, i])
            begin += H.size
        for j in range(g):
            gradient[b, j] *= outputscale
        gradient[b, g] = by_outputscale * outputscale
        gradient[b, g + 1] = trace * noise_var


@njit(
    "void(f8[:,::1], f8[:,::1], f8[:,::1], f8[::1], f8[::1], i8[::1], i8[::1], b1, f8[:,::1], f8[:,::1])", **_IN_ORDER
)
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


@njit("void(f8[:,::1], f8[:,::1], f8[:,::1], i8[::1], i8[::1], f8[:,::1], f8[:,::1], f8[:,::1])", **_IN_ANY_ORDER)
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
