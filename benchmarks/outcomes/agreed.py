"""Two objectives with a reference point that everybody agreed on beforehand, and three past tasks.

    problem          objectives                                  worst of interest           inputs      sources
    concrete         strength, maximised; cost, minimised        at least 40 MPa, at most 95  4 numeric   3 × 40
    network          error, minimised; thousands of weights      at most 15 %, at most 400    5 numeric   3 × 40
    synthesis        yield and purity, maximised                 at least 60 %, at least 85 %  4 numeric   3 × 40

Each front reaches far beyond its reference: to concrete that costs little and holds nothing, to networks of a thousand
weights, to a flask that was hardly heated. Tasks differ by shifts of their optima and by scale; results have noise. The
volume is that between the results, without their noise, and the agreed reference, over that of the front of many random
points; ``plain`` is the same with the worst values of those points as the reference, and ``worse`` the share of the
evaluations that are worse than the agreed reference in some objective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.outcomes.measures import AgreedVolume
from benchmarks.outcomes.problems import OutcomeInstance, OutcomeProblem, Spoiling
from benchmarks.problems.problem import stream
from headstart.data.dataset import Dataset
from headstart.data.outcomes import Goal, Outcomes
from headstart.data.ranges import FloatRange
from headstart.data.space import Space
from headstart.errors import InputError

_SOURCES, _POINTS, _LOOKED_AT = 3, 40, 20_000
_SHIFT, _SCALE = 0.08, 0.1  # standard deviations of a task's shifts and of the logarithm of its scale

# The outcomes of points (n, d) of a task with shifts (d) and scales (2)
Values = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def _concrete(X: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    cement, slag, water, heat = X.unbind(-1)
    binder = cement + 0.6 * slag
    best_water = 0.35 + 0.15 * slag + shift[2]
    cured = 0.75 + 0.25 * torch.sin(torch.pi * (heat + shift[3]).clamp(0, 1))
    strength = 80 * (1 - (-2.0 * binder).exp()) * (-((water - best_water) ** 2) / 0.1).exp() * cured
    cost = 30 + 90 * cement + 40 * slag + 12 * (1 - water) ** 2 + 20 * heat**2
    return scale[0] * strength, scale[1] * cost


def _network(X: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    width, depth, rate, dropout, decay = X.unbind(-1)
    size = 1.0 * (8.0 * width).exp() * (1 + 2 * depth)  # thousands, from 1 to 9,000
    capacity = 60 / (1 + 0.25 * size**0.65)
    tuned = 60 * (rate - 0.55 - shift[2]) ** 2 + 15 * (dropout - 0.2 - 0.4 * width - shift[3]) ** 2
    error = 4 + capacity + tuned + 5 * (decay - 0.5 - shift[4]) ** 2 + 4 * (depth - 0.6 - shift[1]) ** 2
    return scale[0] * error, scale[1] * size


def _synthesis(X: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    heat, time, excess, strength = X.unbind(-1)
    rate = (3.2 * (heat + shift[0]) - 1.4).exp() * (0.4 + 0.6 * excess)
    worked = 1 - (-rate * (0.2 + 1.8 * time)).exp()
    spoilt = (5.0 * (heat + 0.35 * time + 0.5 * shift[1]) - 4.2).exp() * 0.08
    share = worked * (-spoilt).exp()
    purity = 100 * share / (share + spoilt * 0.6 + 0.04 * excess + 0.1 * (strength - 0.5 - shift[3]) ** 2 + 0.02)
    return (100 * share * scale[0].clamp_max(1.0)).clamp(0, 100), (purity * scale[1].clamp_max(1.0)).clamp(0, 100)


@dataclass(frozen=True)
class AgreedProblem(OutcomeProblem):
    """A pair of functions, with the worst values of interest as the objectives' thresholds."""

    name: str
    title: str
    inputs: tuple[str, ...]
    goals: tuple[Goal, Goal]
    values: Values
    noise: tuple[float, float]
    main = "agreed"

    @property
    def outcomes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of both objectives."""
        return tuple(goal.name for goal in self.goals)

    def draw(self, seed: int, steps: int, spoiling: Spoiling | None = None) -> OutcomeInstance:
        """Tasks, past rows and noise of the seed; the sources are never spoilt."""
        if spoiling:
            raise InputError(f"{self.name} has no spoilt sources.")
        d, generator = len(self.inputs), stream(self.name, seed, "tasks")
        shifts = _SHIFT * torch.randn(_SOURCES + 1, d, generator=generator, dtype=torch.float64)
        scales = (_SCALE * torch.randn(_SOURCES + 1, 2, generator=generator, dtype=torch.float64)).exp()
        scales[-1] = 1.0  # so that the agreed reference means the same in every run
        tasks = [self._task(shift, scale) for shift, scale in zip(shifts, scales, strict=True)]
        rows, sources = stream(self.name, seed, "rows"), []
        for i, task in enumerate(tasks[:-1]):
            X = torch.rand(_POINTS, d, generator=rows, dtype=torch.float64)
            found = task(X)
            errors = torch.randn(_POINTS, 2, generator=rows, dtype=torch.float64)
            sources.append(
                {
                    name: Dataset(X, found[name] + sd * e, f"source {i}")
                    for name, sd, e in zip(self.outcomes, self.noise, errors.unbind(-1), strict=True)
                }
            )
        target, outcomes = tasks[-1], Outcomes(self.goals)
        looked_at = target(torch.rand(_LOOKED_AT, d, generator=stream(self.name, seed, "looked"), dtype=torch.float64))
        Y = torch.stack([goal.sign * looked_at[goal.name] for goal in self.goals], dim=-1)
        reference = torch.tensor([goal.reference for goal in self.goals], dtype=torch.float64)
        noise = torch.randn(2, steps, generator=stream(self.name, seed, "noise"), dtype=torch.float64)
        return OutcomeInstance(
            outcomes=outcomes,
            space=Space.of({name: FloatRange(0.0, 1.0) for name in self.inputs}),
            sources={name: tuple(source[name] for source in sources) for name in self.outcomes},
            label=str(seed),
            yardstick=AgreedVolume.of(Y, reference),
            evaluate=target,
            noise={name: sd * e for name, sd, e in zip(self.outcomes, self.noise, noise, strict=True)},
        )

    def _task(self, shift: Float[Tensor, "d"], scale: Float[Tensor, "2"]) -> Callable[[Tensor], dict[str, Tensor]]:
        return lambda X: dict(zip(self.outcomes, self.values(X, shift, scale), strict=True))


AGREED: tuple[OutcomeProblem, ...] = (
    AgreedProblem(
        "concrete",
        "strength at least 40 against cost at most 95",
        ("cement", "slag", "water", "heat"),
        (Goal("strength", maximize=True, threshold=40), Goal("cost", threshold=95)),
        _concrete,
        (1.0, 1.0),
    ),
    AgreedProblem(
        "network",
        "error at most 15 against thousands of weights at most 400",
        ("width", "depth", "rate", "dropout", "decay"),
        (Goal("error", threshold=15), Goal("weights", threshold=400)),
        _network,
        (0.3, 0.0),
    ),
    AgreedProblem(
        "synthesis",
        "yield at least 60 against purity at least 85",
        ("heat", "time", "excess", "strength"),
        (Goal("yield", maximize=True, threshold=60), Goal("purity", maximize=True, threshold=85)),
        _synthesis,
        (1.0, 0.5),
    ),
)
