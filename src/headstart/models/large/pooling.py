"""Rows at one place as their mean: with the noise they have, nothing is lost.

With c rows at x, each with noise of variance v = σ² + error_var, ȳ their mean and S = Σ (y − ȳ)²,

    Π N(y; f(x), v) = N(ȳ; f(x), v/c) · (2πv)^(−(c − 1)/2) · c^(−1/2) · exp(−S/(2v))

so the posterior is that of the means, and the evidence of σ² also hears of the scatter. Unlike ``data.replicates``,
which estimates the scatter before a model is there, σ² stays what the model makes of it. Rows whose inputs differ by
less than NEAR count as one place: no kernel tells them apart, whose shortest lengthscale is 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.gp.evidence import Evaluation, SearchPlan, gaussian
from headstart.gp.geometry import geometry_of, of_problems
from headstart.gp.hyperparameters import OFFSET_VAR, Inputs, gp_layout
from headstart.gp.kernels import Kernel

NEAR = 1e-6
_LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class PooledRows:
    """``data`` has a row for every place, ``counts`` how many there were, ``scatter`` the S of each."""

    data: Dataset
    counts: Float[Tensor, "*b g"]
    scatter: Float[Tensor, "*b g"]

    def rows(self, which: Int[Tensor, "k"]) -> PooledRows:
        """Some of the places."""
        return PooledRows(self.data.rows(which), self.counts[..., which], self.scatter[..., which])

    def noise(self, noise_var: Float[Tensor, "*b"]) -> Float[Tensor, "*b g"]:
        """The variance of the noise of every mean."""
        every = noise_var.unsqueeze(-1)
        return (every if self.data.error_var is None else every + self.data.error_var) / self.counts


def pooled_rows(task: Dataset) -> PooledRows | None:
    """The task with a row for every place and known error; None where every row has its own, and for a batch."""
    if task.batch_shape.numel() != 1 or task.n < 2:
        return None
    X, y = task.X.reshape(task.n, task.d), task.y.reshape(-1)
    known = None if task.error_var is None else task.error_var.reshape(-1)
    place = _places(X, known)
    g = int(place.max()) + 1
    if g == task.n:
        return None
    counts = y.new_zeros(g).index_add_(0, place, torch.ones_like(y))
    first = torch.full((g,), task.n, dtype=torch.int64, device=y.device)
    first = first.scatter_reduce_(0, place, torch.arange(task.n, device=y.device), "amin")
    centre = y[first]  # results far from 0 would lose digits
    mean = centre + y.new_zeros(g).index_add_(0, place, y - centre[place]) / counts
    scatter = y.new_zeros(g).index_add_(0, place, (y - mean[place]).square())
    b = task.batch_shape
    error_var = None if known is None else known[first].reshape(*b, g)
    data = replace(task, X=X[first].reshape(*b, g, task.d), y=mean.reshape(*b, g), error_var=error_var)
    return PooledRows(data, counts.reshape(*b, g), scatter.reshape(*b, g))


def _places(X: Float[Tensor, "n d"], error_var: Float[Tensor, "n"] | None) -> Int[Tensor, "n"]:
    """The number of every row's place, in the order in which they came first; rows of one place have equal errors."""
    cells = np.rint(X.cpu().numpy() / NEAR).astype(np.int64)
    if error_var is not None:
        cells = np.concatenate([cells, error_var.cpu().numpy().view(np.int64)[:, None]], axis=1)
    # rows are told apart by a number made of them; sorting numbers takes a fraction of sorting rows
    odd = np.random.default_rng(0).integers(1, 2**62, size=cells.shape[1]) * 2 + 1
    with np.errstate(over="ignore"):
        key = (cells * odd).sum(-1)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    if not np.array_equal(cells[first][place], cells):  # two places with one number
        _, first, place = np.unique(cells, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return torch.from_numpy(rank[place.reshape(-1)]).to(X.device)


class PooledEvidence:
    """−log p of all rows from their means: PlainEvidence of the rows themselves, to rounding.

    ``C`` is what is inherited from the tasks below, as there; rows that count more than once are in ``counts``.
    """

    def __init__(
        self,
        X: Float[Tensor, "P g d"],
        r: Float[Tensor, "P g"],
        C: Float[Tensor, "P g g"] | None,
        *,
        counts: Float[Tensor, "P g"],
        scatter: Float[Tensor, "P g"],
        kernel: Kernel,
        residual: bool,
        free_offset: bool,
        inputs: Inputs,
        error_var: Float[Tensor, "P g"] | None = None,
    ) -> None:
        self._counts, self._scatter = counts, scatter
        self._error_var = torch.zeros_like(r) if error_var is None else error_var
        centre = (r * counts).sum(-1, keepdim=True) / counts.sum(-1, keepdim=True)
        self._r = r - centre if free_offset else r
        self._C, self._offset_var = C, OFFSET_VAR if free_offset else 0.0
        self._geometry = geometry_of(X, kernel, inputs)
        self.layout = gp_layout(inputs, residual=residual)

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        return self._r.shape[0]

    @property
    def n_observations(self) -> int:
        """Places of one problem: what is factorised."""
        return self._r.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        return self._r.device

    def search_plan(self, *, natural_too: bool, priors: bool) -> SearchPlan:  # noqa: ARG002
        """Many rows leave little doubt: in logarithms, and every run to its end."""
        return SearchPlan(natural_too)

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(all rows | θ), its gradient, and which rows of θ could be computed."""
        kappa, slope, kept = self._geometry.evaluate(theta, items)
        scales = theta[:, -2:].exp()
        K = kappa * scales[:, :1, None] + self._offset_var
        if self._C is not None:
            K = K + of_problems(self._C, items)
        counts, scatter = of_problems(self._counts, items), of_problems(self._scatter, items)
        noise = scales[:, 1:] + of_problems(self._error_var, items)
        K.diagonal(dim1=-2, dim2=-1).add_(noise / counts)
        value, G, _, ok = gaussian(K, of_problems(self._r, items).expand(len(theta), -1))
        again = counts - 1  # rows beside the first of every place
        value = value + 0.5 * (again * (_LOG_2PI + noise.log()) + counts.log() + scatter / noise).sum(-1)
        diagonal = G.diagonal(dim1=-2, dim2=-1).clone()
        gradient = self._geometry.gradient(G, kappa, slope, kept)
        by_noise = diagonal / counts + 0.5 * (again / noise - scatter / noise.square())
        gradient[:, -1] = scales[:, 1] * by_noise.sum(-1)
        return value, gradient, ok
