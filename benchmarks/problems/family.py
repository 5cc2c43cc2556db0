"""A family of functions: one formula, random parameters, and the minimum of every member."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.data.space import Space
from headstart.decide.domain import Mixed
from headstart.errors import InputError
from headstart.gp.lbfgs import Minimization

Params = tuple[float, ...]
# f(parameters (*b, 1, k), the value of every axis: (*b, n) of a number, shares (*b, n, levels) of a category) → (*b, n)
Formula = Callable[[Tensor, Sequence[Tensor]], Tensor]

_CHUNK = 32  # functions searched at once, which bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Functions f(·; params) with one formula, to be minimised, float64 on any device, and parameters that are random.

    X are points of the unit cube, which ``bounds`` map to the formula's own domain, one (low, high) per input; or
    points of a ``space`` with categories and grids, whose numbers the formula takes in [0, 1], and of a category its
    share, √2 times its own column, so 1 or 0. ``ranges`` are the uniform distributions of the parameters. Where the
    paper fixes the tasks, ``fixed_sources`` are the source tasks, of which ``sample`` draws, and ``fixed_target`` is
    the target.
    """

    name: str
    formula: Formula = field(repr=False)
    ranges: tuple[tuple[float, float], ...]
    bounds: tuple[tuple[float, float], ...] = ()
    space: Space | None = None
    noise_std: float = 0.1
    fixed_sources: tuple[Params, ...] = ()
    fixed_target: Params | None = None
    _minima: dict[Params, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def d(self) -> int:
        """How many columns X has."""
        return len(self.bounds) if self.space is None else self.space.d

    @property
    def source_points(self) -> int:
        """How many rows a source has: 20 per input."""
        return 20 * (self.d if self.space is None else len(self.space.axes))

    def random_points(self, tasks: int, n: int, generator: torch.Generator) -> Float[Tensor, "tasks n d"]:
        """Independent points, every value and category as likely as the others."""
        if self.space is None:
            return torch.rand(tasks, n, self.d, generator=generator, dtype=torch.float64)
        return Mixed(self.space).uniform(tasks * n, generator).reshape(tasks, n, self.d)

    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """Parameters of n random source tasks: uniform in ``ranges``, or one of the ``fixed_sources`` each."""
        if self.fixed_sources:
            which = torch.randint(len(self.fixed_sources), (n,), generator=generator)
            return torch.tensor(self.fixed_sources, dtype=torch.float64)[which]
        low, high = torch.tensor(self.ranges, dtype=torch.float64).unbind(-1)
        return low + (high - low) * torch.rand(n, len(self.ranges), generator=generator, dtype=torch.float64)

    def sample_target(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """Parameters of n target tasks: the fixed one where the paper fixes it, random ones elsewhere."""
        if self.fixed_target is None:
            return self.sample(n, generator)
        return torch.tensor(self.fixed_target, dtype=torch.float64).expand(n, -1)

    def evaluate(self, params: Float[Tensor, "*b k"], X: Float[Tensor, "*c n d"]) -> Float[Tensor, "*out n"]:
        """The noiseless f at every row of X; leading dimensions are tasks, and broadcast."""
        if params.shape[-1] != len(self.ranges) or X.shape[-1] != self.d or X.dtype != torch.float64:
            raise InputError(
                f"{self.name} has {len(self.ranges)} parameters and float64 points of {self.d} columns, but params are "
                f"{tuple(params.shape)} and X is {X.dtype} of shape {tuple(X.shape)}."
            )
        if self.space is None:
            values = [low + (high - low) * x for (low, high), x in zip(self.bounds, X.unbind(-1), strict=True)]
        else:
            values = [
                math.sqrt(2) * X[..., axis.columns] if axis.categorical else X[..., axis.columns.start]
                for axis in self.space.axes
            ]
        return self.formula(params.unsqueeze(-2), values)

    def minimum(self, params: Float[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
        """The lowest noiseless value of every task, remembered by parameter value."""
        rows: list[Params] = [tuple(row) for row in params.detach().cpu().reshape(-1, len(self.ranges)).tolist()]
        unknown = list(dict.fromkeys(row for row in rows if row not in self._minima))
        for start in range(0, len(unknown), _CHUNK):
            chunk = unknown[start : start + _CHUNK]
            self._minima.update(zip(chunk, self._search(chunk), strict=True))
        return params.new_tensor([self._minima[row] for row in rows]).reshape(params.shape[:-1])

    def _search(self, tasks: Sequence[Params]) -> list[float]:
        """For every combination of categories and settings a Sobol set, whose best points are polished.

        They lie at least ``apart`` of the diagonal of the unit cube from one another: basins lie further apart.
        """
        params, fixed = torch.tensor(tasks, dtype=torch.float64), self._combinations()
        axes = () if self.space is None else self.space.axes
        free = [axis.columns.start for axis in axes if axis.count is None] if axes else list(range(self.d))
        n, polished, apart = (8192, 16, 0.15) if len(fixed) == 1 else (512, 2, 0.02)
        u = SobolEngine(len(free), scramble=True, seed=0).draw(n, dtype=torch.float64)
        X = fixed.unsqueeze(1).repeat(1, n, 1)
        X[..., free] = u
        with torch.no_grad():
            values = self.evaluate(params.unsqueeze(1), X)  # tasks × combinations × points
        starts = _lowest_apart(values.flatten(0, 1), u, polished, apart * math.sqrt(len(free)))
        rows = fixed.repeat_interleave(polished, 0)

        def objective(
            points: NDArray[np.float64], which: NDArray[np.intp]
        ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            with torch.enable_grad():
                x = torch.from_numpy(points).requires_grad_()
                full = rows[which % len(rows)].index_copy(-1, torch.tensor(free), x)
                value = self.evaluate(params[which // len(rows)], full.unsqueeze(-2)).squeeze(-1)
                (gradient,) = torch.autograd.grad(value.sum(), x)
            return value.detach().numpy(), gradient.numpy()

        ends = np.zeros(len(free)), np.ones(len(free))
        points = starts.reshape(-1, len(free)).numpy()
        found = Minimization(objective, points, *ends, max_iterations=200, ftol=1e-15, gtol=1e-9).run()
        lowest = np.minimum(found.value.reshape(len(tasks), -1).min(-1), values.flatten(1).amin(-1).numpy())
        return [float(value) for value in lowest]

    def _combinations(self) -> Float[Tensor, "c d"]:
        """One row for every combination of categories and settings, with 0 in the columns of continuous numbers."""
        if self.space is None:
            return torch.zeros(1, self.d, dtype=torch.float64)
        grids = [
            torch.zeros(1, axis.width, dtype=torch.float64) if axis.count is None else axis.grid()
            for axis in self.space.axes
        ]
        index = torch.cartesian_prod(*(torch.arange(len(grid)) for grid in grids))
        return torch.cat([grid[index[:, i]] for i, grid in enumerate(grids)], dim=-1)


def _lowest_apart(
    values: Float[Tensor, "P n"], X: Float[Tensor, "n d"], k: int, apart: float
) -> Float[Tensor, "P k d"]:
    """For every row of values k points of X: each time the lowest that is not within ``apart`` of an earlier one.

    Where all points are taken, the lowest of all is repeated.
    """
    left, chosen = values.clone(), []
    lowest = values.argmin(-1)
    for _ in range(k):
        value, index = left.min(-1)
        index = torch.where(value.isinf(), lowest, index)
        chosen.append(X[index])
        left = left.masked_fill(torch.cdist(X[index], X) < apart, math.inf)
    return torch.stack(chosen, dim=-2)
