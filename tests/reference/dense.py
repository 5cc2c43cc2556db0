"""The paper's formulas, corrected, written down in NumPy with explicit inverses. Nothing here comes from the package.

Tasks are in order with the target last; a ``Level`` is one task's own process. Points of all tasks and the queries are
stacked into one long vector Z = [X_1 … X_t, X_q] wherever a formula runs over the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kind = Literal["rbf", "matern52"]


@dataclass(frozen=True)
class Task:
    """Inputs X (n, d) and outputs y (n)."""

    X: Array
    y: Array


@dataclass(frozen=True)
class Level:
    """One process: outputscale · κ(·, ·; lengthscale) around an offset, observed with noise."""

    lengthscale: tuple[float, ...]
    outputscale: float
    noise_var: float
    offset: float = 0.0


@dataclass(frozen=True)
class Gaussian:
    """Mean (m) and covariance (m, m)."""

    mean: Array
    cov: Array

    def __getitem__(self, rows: slice) -> Gaussian:
        """The marginal of some of the entries."""
        return Gaussian(self.mean[rows], self.cov[rows, rows])

    def log_density(self, y: Array) -> float:
        """log N(y; mean, cov)."""
        r = y - self.mean
        _, log_det = np.linalg.slogdet(self.cov)
        return float(-0.5 * (r @ np.linalg.inv(self.cov) @ r + log_det + len(y) * np.log(2 * np.pi)))


def kernel(kind: Kind, A: Array, B: Array, level: Level) -> Array:
    """k(A, B), from the differences of all pairs of rows."""
    difference = (A[:, None, :] - B[None, :, :]) / np.array(level.lengthscale)
    r = np.sqrt((difference**2).sum(-1))
    if kind == "rbf":
        return level.outputscale * np.exp(-(r**2) / 2)
    return level.outputscale * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def shift_cov(batch: Array, present: float, batch_var: float) -> Array:
    """The covariance of g(batch_i) − g(present) for independent shifts g of variance batch_var."""
    names = np.unique([*batch, present])
    G = batch_var * np.eye(len(names))
    A = (batch[:, None] == names).astype(float) - (names == present).astype(float)
    shifts: Array = A @ G @ A.T
    return shifts


def gain(K: Array, rows: slice, noise_var: float) -> Array:
    """K(Z, X) (K(X, X) + σ² I)⁻¹ with X the given rows of Z."""
    n = len(K[rows])
    return K[:, rows] @ np.linalg.inv(K[rows, rows] + noise_var * np.eye(n))


def condition(prior: Gaussian, rows: slice, y: Array, noise_var: float) -> Gaussian:
    """Bayes' rule: the Gaussian after observing y = f[rows] + ε."""
    G = gain(prior.cov, rows, noise_var)
    return Gaussian(prior.mean + G @ (y - prior.mean[rows]), prior.cov - G @ prior.cov[rows])


def blocks(tasks: Sequence[Task]) -> list[slice]:
    """The rows of every task in Z."""
    ends = np.cumsum([0, *(len(task.y) for task in tasks)])
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


def stacked(tasks: Sequence[Task], Xq: Array) -> Array:
    """Z = [X_1 … X_t, X_q]."""
    return np.concatenate([*(task.X for task in tasks), Xq])


def joseph(
    kind: Kind, tasks: Sequence[Task], levels: Sequence[Level], Xq: Array, *, gain_sees_below: bool, keeps_below: bool
) -> Gaussian:
    """Fact 1 of ERRATA, literally: at every level a gain from one prior, the covariance left by it under another.

    The prior of a level is K, or K + Σ with Σ what the levels below have left.
    """
    Z = stacked(tasks, Xq)
    identity = np.eye(len(Z))
    f = Gaussian(np.zeros(len(Z)), np.zeros((len(Z), len(Z))))
    for task, level, rows in zip(tasks, levels, blocks(tasks), strict=True):
        K = kernel(kind, Z, Z, level)
        G = gain(K + f.cov if gain_sees_below else K, rows, level.noise_var)
        P = K + f.cov if keeps_below else K
        E = identity.copy()  # E = I − G H
        E[:, rows] -= G
        m = f.mean + level.offset
        f = Gaussian(m + G @ (task.y - m[rows]), E @ P @ E.T + level.noise_var * G @ G.T)
    return f[slice(len(Z) - len(Xq), None)]


def chain_W(n_tasks: int) -> Array:
    """[W_ν]_ij = 1 where i ≥ ν and j ≥ ν."""
    i = np.arange(n_tasks)
    at_least = (i[None, :] >= i[:, None]).astype(float)
    return at_least[:, :, None] * at_least[:, None, :]


def star_W(weights: Sequence[float]) -> Array:
    """e_ν e_νᵀ + w_ν (e_ν + e_t)(e_ν + e_t)ᵀ for every source, e_t e_tᵀ for the target."""
    e = np.eye(len(weights) + 1)
    sources = [np.outer(e[v], e[v]) + w * np.outer(e[v] + e[-1], e[v] + e[-1]) for v, w in enumerate(weights)]
    return np.stack([*sources, np.outer(e[-1], e[-1])])


@dataclass(frozen=True)
class Joint:
    """Σ_ν [W_ν]_ij k_ν over all observations and the queries (which belong to the target), with the tasks' means."""

    kind: Kind
    tasks: Sequence[Task]
    levels: Sequence[Level]  # one per kernel ν; their offsets are not looked at
    W: Array
    means: Sequence[float]
    noise: Sequence[float]

    def prior(self, Xq: Array) -> Gaussian:
        """Of [y_1 … y_t, f(X_q)]: noise on the observations, none on the queries."""
        Z = stacked(self.tasks, Xq)
        sizes = [len(task.y) for task in self.tasks]
        t = len(sizes) - 1
        task = np.array([*np.repeat(np.arange(t + 1), sizes), *[t] * len(Xq)], dtype=int)
        K = sum(W[np.ix_(task, task)] * kernel(self.kind, Z, Z, k) for W, k in zip(self.W, self.levels, strict=True))
        noise = np.array(self.noise)[task]
        noise[sum(sizes) :] = 0.0
        return Gaussian(np.array(self.means)[task], K + np.diag(noise))

    @property
    def y(self) -> Array:
        """All outputs."""
        return np.concatenate([task.y for task in self.tasks])

    def posterior(self, Xq: Array) -> Gaussian:
        """f(X_q) given all observations."""
        N = len(self.y)
        return condition(self.prior(Xq), slice(0, N), self.y, 0.0)[slice(N, None)]

    def log_evidence(self, n_tasks: int | None = None) -> float:
        """log p(y_1 … y_n) of the first n tasks, or of all."""
        N = sum(len(task.y) for task in self.tasks[:n_tasks])
        return self.prior(self.tasks[0].X[:0])[slice(0, N)].log_density(self.y[:N])


def chain(kind: Kind, tasks: Sequence[Task], levels: Sequence[Level]) -> Joint:
    """HGP's joint process: the mean of a task is the sum of the offsets up to it."""
    means = np.cumsum([level.offset for level in levels])
    return Joint(kind, tasks, levels, chain_W(len(tasks)), means.tolist(), [level.noise_var for level in levels])


def star(kind: Kind, tasks: Sequence[Task], levels: Sequence[Level], weights: Sequence[float]) -> Joint:
    """WSGP's joint process: every task has its own mean."""
    means, noise = [level.offset for level in levels], [level.noise_var for level in levels]
    return Joint(kind, tasks, levels, star_W(weights), means, noise)


def boosted(kind: Kind, tasks: Sequence[Task], levels: Sequence[Level], Xq: Array) -> tuple[Gaussian, Array]:
    """Fact 4 of ERRATA: BHGP without recursion, and the weights γ of the data in its mean.

    (I + G) r = y with G_ji = k_i(X_j, X_i)(k_i(X_i, X_i) + σ_i² I)⁻¹ below the diagonal; mean = a r; γ = a (I + G)⁻¹;
    cov = cov_SHGP + (Lᵀγᵀ − v)ᵀ(Lᵀγᵀ − v).
    """
    joint = chain(kind, tasks, levels)
    N = len(joint.y)
    Z = stacked(tasks, Xq)
    A = np.zeros((len(Z), N))
    for level, r in zip(levels, blocks(tasks), strict=True):
        A[r.stop :, r] = gain(kernel(kind, Z, Z, level), r, level.noise_var)[r.stop :]
    I_plus_G, a = np.eye(N) + A[:N], A[N:]
    gamma = a @ np.linalg.inv(I_plus_G)
    prior, exact = joint.prior(Xq), joint.posterior(Xq)
    residual = np.linalg.solve(I_plus_G, joint.y - prior.mean[:N])
    L = np.linalg.cholesky(prior.cov[:N, :N])
    u = L.T @ gamma.T - np.linalg.inv(L) @ prior.cov[:N, N:]
    return Gaussian(prior.mean[N:] + a @ residual, exact.cov + u.T @ u), gamma
