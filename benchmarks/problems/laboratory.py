"""Experiments as they are done in laboratories and workshops: functions of categories and numbers, with noise.

    family     minimised                   categories               numbers
    coupling   −yield of a reaction, in %  base (4), solvent (5)    temperature, concentration (log), catalyst (log)
    turning    cost of a turned part       insert (3), coolant (3)  speed, feed (log), depth of cut
    roasting   −score of a coffee          process (3)              charge temperature, time, airflow (9 settings)

A task has random parameters, so that sources and target are alike but not equal. In all three the best numbers depend
on the category, and the best category depends on the task. The formulas are smooth and made up: they have the shape of
what is known of such processes (rates that grow with temperature and side reactions that grow faster, Taylor's tool
life, a band of heat in which coffee is good), not their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.problems.family import Family
from headstart.data.ranges import Choices, FloatRange, IntRange
from headstart.data.space import Space


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

COUPLING = Family(
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
TURNING = Family(
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
ROASTING = Family(
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

LABORATORY: dict[str, Family] = {f.name: f for f in (COUPLING, TURNING, ROASTING)}
