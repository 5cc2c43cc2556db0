"""Experiments as they are done in laboratories and workshops: functions of categories and numbers, with noise.

    family     minimised                   categories               numbers
    coupling   −yield of a reaction, in %  base (4), solvent (5)    temperature, concentration (log), catalyst (log)
    turning    cost of a turned part       insert (3), coolant (3)  speed, feed (log), depth of cut
    roasting   −score of a coffee          process (3)              charge temperature, time, airflow (9 settings)

A task has random parameters, so that sources and target are alike but not equal. In all three the best numbers depend
on the category, and the best category depends on the task. The formulas are smooth and made up: they have the shape of
what is known of such processes (rates that grow with temperature and side reactions that grow faster, Taylor's tool
life, a band of heat in which coffee is good), not their numbers.

X are points of the family's ``Space``; a category's share is √2 times its own column, so 1 or 0.
"""

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

from headstart.data.ranges import Choices, FloatRange, IntRange
from headstart.data.space import Space
from headstart.decide.domain import Mixed
from headstart.errors import InputError
from headstart.gp.lbfgs import Minimization

Params = tuple[float, ...]
# f(parameters (*b, 1, k), the coordinates of every axis: (*b, n) of a number, shares (*b, n, levels) of a category)
MixedFormula = Callable[[Tensor, Sequence[Tensor]], Tensor]

# The search for a minimum, for every combination of categories and settings: a Sobol set, its best points polished
_SEARCH_POINTS = 512
_POLISHED = 2
_CHUNK = 16  # tasks searched at once, which bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Laboratory:
    """Functions f(·; params) on a space with categories, with one formula and parameters uniform in ``ranges``.

    ``noise_std`` is about 2 % of the range of the values.
    """

    name: str
    formula: MixedFormula = field(repr=False)
    space: Space
    ranges: tuple[tuple[float, float], ...]
    noise_std: float
    _minima: dict[Params, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def d(self) -> int:
        """How many columns X has."""
        return self.space.d

    @property
    def source_points(self) -> int:
        """How many rows a source has: 20 per parameter."""
        return 20 * len(self.space.axes)

    @property
    def fixed_sources(self) -> tuple[Params, ...]:
        """None: every task is drawn."""
        return ()

    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """Parameters of n random tasks."""
        low, high = torch.tensor(self.ranges, dtype=torch.float64).unbind(-1)
        return low + (high - low) * torch.rand(n, len(self.ranges), generator=generator, dtype=torch.float64)

    def sample_target(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """The same: targets are tasks like any other."""
        return self.sample(n, generator)

    def random_points(self, tasks: int, n: int, generator: torch.Generator) -> Float[Tensor, "tasks n d"]:
        """Independent points of the space, every value and category as likely as the others."""
        return Mixed(self.space).uniform(tasks * n, generator).reshape(tasks, n, self.d)

    def evaluate(self, params: Float[Tensor, "*b k"], X: Float[Tensor, "*c n d"]) -> Float[Tensor, "*out n"]:
        """The noiseless f at every row of X, a point of the space; leading dimensions are tasks, and broadcast."""
        if params.shape[-1] != len(self.ranges) or X.shape[-1] != self.d or X.dtype != torch.float64:
            raise InputError(
                f"{self.name} has {len(self.ranges)} parameters and float64 points of {self.d} columns, but params are "
                f"{tuple(params.shape)} and X is {X.dtype} of shape {tuple(X.shape)}."
            )
        parts = [
            math.sqrt(2) * X[..., axis.columns] if axis.categorical else X[..., axis.columns.start]
            for axis in self.space.axes
        ]
        return self.formula(params.unsqueeze(-2), parts)

    def minimum(self, params: Float[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
        """The lowest noiseless value of every task on the space, remembered by parameter value."""
        rows: list[Params] = [tuple(row) for row in params.detach().cpu().reshape(-1, len(self.ranges)).tolist()]
        unknown = list(dict.fromkeys(row for row in rows if row not in self._minima))
        for start in range(0, len(unknown), _CHUNK):
            chunk = unknown[start : start + _CHUNK]
            self._minima.update(zip(chunk, self._search(chunk), strict=True))
        return params.new_tensor([self._minima[row] for row in rows]).reshape(params.shape[:-1])

    def _search(self, tasks: Sequence[Params]) -> list[float]:
        params = torch.tensor(tasks, dtype=torch.float64)
        free = [axis.columns.start for axis in self.space.axes if axis.count is None]
        fixed = self._combinations()
        u = SobolEngine(len(free), scramble=True, seed=0).draw(_SEARCH_POINTS, dtype=torch.float64)
        X = fixed.unsqueeze(1).repeat(1, _SEARCH_POINTS, 1)
        X[..., free] = u
        with torch.no_grad():
            values = self.evaluate(params.unsqueeze(1), X)  # tasks × combinations × points
        best = values.topk(_POLISHED, largest=False).indices
        per_task = len(fixed) * _POLISHED
        rows = fixed.repeat_interleave(_POLISHED, 0)

        def objective(
            points: NDArray[np.float64], which: NDArray[np.intp]
        ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            with torch.enable_grad():
                x = torch.from_numpy(points).requires_grad_()
                full = rows[which % per_task].index_copy(-1, torch.tensor(free), x)
                value = self.evaluate(params[which // per_task], full.unsqueeze(-2)).squeeze(-1)
                (gradient,) = torch.autograd.grad(value.sum(), x)
            return value.detach().numpy(), gradient.numpy()

        ends = np.zeros(len(free)), np.ones(len(free))
        polished = Minimization(
            objective, u[best].reshape(-1, len(free)).numpy(), *ends, max_iterations=200, ftol=1e-15, gtol=1e-9
        ).run()
        lowest = np.minimum(polished.value.reshape(len(tasks), -1).min(-1), values.flatten(1).amin(-1).numpy())
        return [float(value) for value in lowest]

    def _combinations(self) -> Float[Tensor, "c d"]:
        """One row for every combination of categories and settings, with 0 in the columns of continuous numbers."""
        grids = [
            torch.zeros(1, axis.width, dtype=torch.float64) if axis.count is None else axis.grid()
            for axis in self.space.axes
        ]
        index = torch.cartesian_prod(*(torch.arange(len(grid)) for grid in grids))
        return torch.cat([grid[index[:, i]] for i, grid in enumerate(grids)], dim=-1)


def _around(*middles: float, by: float) -> tuple[tuple[float, float], ...]:
    """A parameter for each of these, within ``by`` of it."""
    return tuple((middle - by, middle + by) for middle in middles)


def _of(shares: Tensor, table: Tensor | Sequence[float]) -> Tensor:
    """The table's entry for the category: (*b, n) of shares (*b, n, levels)."""
    entries = table if isinstance(table, Tensor) else shares.new_tensor(table)
    return (shares * entries).sum(-1)


# ── the formulas; numbers are coordinates in [0, 1] ───────────────────────────────────────────────────────────────


def _coupling(params: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """−100 (1 − exp(−rate)) exp(−side): the reaction, and what side reactions leave of its product.

    A base or solvent makes both of them faster or slower; every solvent has a temperature of its own at which the
    product begins to decompose, every base a concentration at which it stops dissolving.
    """
    base, solvent, T, c, loading = parts
    of_base, of_solvent, onset, dissolved = params[..., :4], params[..., 4:9], params[..., 9:14], params[..., 14:18]
    activation, order = params[..., 18], params[..., 19]
    log_rate = _of(base, of_base) + _of(solvent, of_solvent) + activation * (T - 0.5) + 1.2 * (loading - 0.5)
    undissolved = torch.nn.functional.softplus(8 * (c - _of(base, dissolved))) / 8
    rate = torch.exp(log_rate + order * (c - 0.5) - 4 * undissolved)
    side = 0.15 * torch.exp(6 * (T - _of(solvent, onset))) + 0.25 * loading**2 * (0.5 + T) + 0.2 * c**2
    return -100 * (1 - torch.exp(-rate)) * torch.exp(-side)


def _turning(params: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """Machine time, tool wear and the price of a rough surface, in money per part.

    An insert bears so much speed (with a coolant more), and gives a smooth surface up to its own feed; below some speed
    an edge builds up, which a coolant prevents; thin cuts rub.
    """
    insert, coolant, v, f, depth = parts
    bears, radius, cooling = params[..., :3], params[..., 3:6], params[..., 6:9]
    price, hardness, finish = params[..., 9:12], params[..., 12], params[..., 13]
    time = 3.5 * torch.exp(-0.9 * v - 2 * f - 0.8 * depth)
    strain = v + 0.35 * f + 0.5 * depth + hardness - _of(insert, bears) - _of(coolant, cooling)
    wear = 0.5 * torch.exp(4 * strain)
    rough = finish * torch.exp(4 * (f - _of(insert, radius)))
    edge = 0.8 * torch.exp(-5 * v - 2 * _of(coolant, cooling)) + 0.3 * torch.exp(-6 * depth)
    return 10 * (1 - torch.exp(-(time + wear + rough + edge + 0.3 * _of(coolant, price)) / 3))


def _roasting(params: Tensor, parts: Sequence[Tensor]) -> Tensor:
    """−(a process's best score − 25 (1 − exp(−q))) with q the squared distances from what suits the process.

    Heat is charge temperature and time together, less what the air carries off: charge and time make up for one
    another, within limits that depend on the process.
    """
    process, charge, time, air = parts
    best, heat, pace, draught = params[..., :3], params[..., 3:6], params[..., 6:9], params[..., 9:12]
    carried, density = params[..., 12], params[..., 13]
    taken_up = 0.6 * charge + 0.6 * time - carried * (air - 0.5) - density
    q = 7 * (taken_up - _of(process, heat)) ** 2 + 2.5 * (time - _of(process, pace)) ** 2
    q = q + 1.5 * (air - _of(process, draught) - 0.3 * (charge - 0.5)) ** 2
    return -(_of(process, best) - 25 * (1 - torch.exp(-q)))


# ── the families ──────────────────────────────────────────────────────────────────────────────────────────────────

COUPLING = Laboratory(
    name="coupling",
    formula=_coupling,
    space=Space.of(
        {
            "base": Choices(("K2CO3", "Cs2CO3", "K3PO4", "KOtBu")),
            "solvent": Choices(("dioxane", "toluene", "DMF", "THF", "t-AmOH")),
            "temperature": FloatRange(40, 120),
            "concentration": FloatRange(0.05, 0.5, log=True),
            "catalyst loading": FloatRange(0.5, 10, log=True),
        }
    ),
    ranges=(
        *_around(0.1, 0.1, 0.0, 0.0, by=0.6),  # of the base on the rate
        *_around(0.0, -0.2, 0.5, 0.5, 0.1, by=0.6),  # of the solvent
        *_around(0.8, 0.9, 0.5, 0.4, 0.7, by=0.15),  # where decomposition begins, by solvent
        *_around(0.5, 0.65, 0.55, 0.7, by=0.15),  # what dissolves, by base
        (2.0, 4.0),  # the activation energy
        (0.5, 1.5),  # the order of the reaction
    ),
    noise_std=1.5,
)
TURNING = Laboratory(
    name="turning",
    formula=_turning,
    space=Space.of(
        {
            "insert": Choices(("carbide", "cermet", "ceramic")),
            "coolant": Choices(("dry", "mist", "flood")),
            "speed": FloatRange(80, 350),
            "feed": FloatRange(0.05, 0.4, log=True),
            "depth": FloatRange(0.3, 3.0),
        }
    ),
    ranges=(
        *_around(0.5, 0.65, 0.85, by=0.2),  # the speed an insert bears
        *_around(0.7, 0.55, 0.4, by=0.15),  # the feed up to which it leaves a smooth surface
        *_around(0.0, 0.1, 0.2, by=0.12),  # the speed a coolant adds
        *_around(0.0, 0.5, 1.0, by=0.3),  # its price
        (-0.1, 0.25),  # how hard the workpiece is
        (0.3, 1.0),  # what roughness costs
    ),
    noise_std=0.12,
)
ROASTING = Laboratory(
    name="roasting",
    formula=_roasting,
    space=Space.of(
        {
            "process": Choices(("washed", "natural", "honey")),
            "charge": FloatRange(170, 220),
            "time": FloatRange(7, 14),
            "airflow": IntRange(1, 9),
        }
    ),
    ranges=(
        *_around(86.0, 86.0, 86.5, by=2.0),  # the best score of a process
        *_around(0.75, 0.5, 0.6, by=0.12),  # the heat that suits it
        *_around(0.4, 0.65, 0.5, by=0.15),  # the time
        *_around(0.45, 0.65, 0.6, by=0.15),  # the air
        (0.2, 0.5),  # the heat that air carries off
        (-0.1, 0.1),  # how dense the beans are
    ),
    noise_std=0.5,
)

LABORATORY: dict[str, Laboratory] = {f.name: f for f in (COUPLING, TURNING, ROASTING)}
