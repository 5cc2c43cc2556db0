"""A level of a chain as a lesson: it rests on all levels below, so its key holds them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

from headstart.data.dataset import Dataset
from headstart.gp.fit import FitReport
from headstart.gp.hyperparameters import GPParams
from headstart.models.chain.beliefs import Beliefs
from headstart.models.chain.fitting import fit_layer
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.large.condensed import source_layer
from headstart.models.learning.learning import learning
from headstart.models.learning.lessons import expected_seconds
from headstart.models.learning.numbers import Numbers, content_key, fit_in_numbers, fit_of_numbers, is_fit, options_of
from headstart.models.model import TransferModel


@dataclass(frozen=True, eq=False)
class LevelLesson:
    """The last of some tasks, in model units, on top of the others: ``below`` is made of their ``levels``."""

    below: Beliefs
    tasks: tuple[Dataset, ...]
    levels: tuple[GPParams, ...]
    model: TransferModel
    propagation: Propagation
    seed: int
    name: str
    _fitted: list[Layer] = field(default_factory=list, repr=False)

    @cached_property
    def keys(self) -> tuple[str]:
        """One, of the tasks up to this one and what was found of those below."""
        known = [getattr(level, f.name).tolist() for level in self.levels for f in fields(level)]
        return (content_key("level", self.tasks, options_of(self.model), self.propagation.name, self.seed, known),)

    @property
    def cost(self) -> float:
        """Seconds."""
        return expected_seconds(self.tasks[-1])

    @property
    def rows(self) -> int:
        """Of its matrix."""
        return self.tasks[-1].n

    def only(self, which: Sequence[int]) -> LevelLesson:  # noqa: ARG002
        """There is only one result."""
        return self

    def accepts(self, i: int, numbers: Numbers) -> bool:  # noqa: ARG002
        """Whether these can be the level's process."""
        return is_fit(numbers, self.tasks[-1])

    def run(self) -> list[Numbers]:
        """The level's hyperparameters and report."""
        options = {"model": self.model, "propagation": self.propagation, "seed": self.seed, "name": self.name}
        layer, report = fit_layer(self.below, self.tasks[-1], source=True, **options)  # type: ignore[arg-type]
        self._fitted.append(layer)
        return [fit_in_numbers(layer.params, report)]

    def learn(self) -> tuple[Layer, FitReport]:
        """The level and how it was found; what is known already is only factorised."""
        task = self.tasks[-1]
        ((numbers,),) = learning().numbers_of([self], here=True)
        params, report = fit_of_numbers(numbers, self.name, task.X.device)
        if self._fitted:
            return self._fitted[0], report
        options = {"kernel": self.model.kernel, "propagation": self.propagation}
        return source_layer(self.below, params, task, **options), report  # type: ignore[arg-type]
