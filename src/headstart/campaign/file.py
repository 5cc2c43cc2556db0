"""What ``headstart.toml`` says: what a campaign measures, what it may set, and what it starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.sources.files.cells import CellRules
from headstart.sources.files.names import with_unit
from headstart.sources.parameters import MOST_USED, Parameter

TOML = "headstart.toml"
DEFAULT_MODEL = "auto"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column with results: an objective, or a quantity with a limit. ``error`` is the column of standard errors."""

    outcome: Goal | Limit
    unit: str = ""
    error: str = ""

    @property
    def name(self) -> str:
        """The column's name."""
        return self.outcome.name

    @property
    def label(self) -> str:
        """The name with its unit, for people."""
        return with_unit(self.name, self.unit)

    @property
    def more_is_better(self) -> bool:
        """Whether it is to be high, or has a lower limit."""
        return self.outcome.sign < 0

    @property
    def aim(self) -> str:
        """What it is to be, in words: maximised, minimised, near a value, or its limit."""
        return self.outcome.words


@dataclass(frozen=True)
class CampaignFile:
    """What ``headstart.toml`` says. Paths are relative to its folder. ``results`` are objectives, then limits."""

    results: tuple[ResultColumn, ...]
    past: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    rules: tuple[str, ...] = ()
    rule_lines: tuple[int, ...] = field(default=(), compare=False)  # where the rules stand, as far as that is known
    candidates: str = ""
    current: str = "current.csv"
    model: str = DEFAULT_MODEL
    jobs: int = 1
    device: str = "cpu"
    ignore: tuple[str, ...] = ()
    batch: str = ""  # the column that says which rows may be shifted together
    drift: float | None = None  # over how long such shifts stay alike
    max_rows: int = MOST_USED
    equal_rows_are_repeats: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    fill: Mapping[str, Any] = field(default_factory=dict)
    cells: Mapping[str, Any] = field(default_factory=dict)  # what cells of the files mean, other than usual
    least_probability: float | None = None

    @cached_property
    def outcomes(self) -> Outcomes:
        """All that is measured."""
        every = [column.outcome for column in self.results]
        return Outcomes(
            tuple(outcome for outcome in every if isinstance(outcome, Goal)),
            tuple(outcome for outcome in every if isinstance(outcome, Limit)),
            self.least_probability,
        )

    @property
    def rules_of_cells(self) -> CellRules:
        """What cells of the files mean."""
        return CellRules.of(self.cells)

    @property
    def goals(self) -> tuple[ResultColumn, ...]:
        """The objectives."""
        return self.results[: len(self.outcomes.goals)]

    @property
    def limits(self) -> tuple[ResultColumn, ...]:
        """What has a limit."""
        return self.results[len(self.outcomes.goals) :]

    @property
    def describing(self) -> tuple[str, ...]:
        """The columns of the past files that describe categories, each once."""
        every = (c for p in self.parameters if isinstance(p.descriptors, tuple) for c in p.descriptors)
        return tuple(dict.fromkeys(every))

    @property
    def measured_columns(self) -> tuple[str, ...]:
        """The columns of results and of their errors: none of them is a parameter."""
        return tuple(name for column in self.results for name in (column.name, column.error) if name)
