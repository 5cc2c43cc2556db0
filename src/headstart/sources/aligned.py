"""Past tasks as data sets of one space, with every decision that it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headstart.data.dataset import Dataset
from headstart.data.space import Space
from headstart.sources.raw import RawTask


@dataclass(frozen=True)
class Decision:
    """What was done about one parameter of one source (parameter "" for its rows), as a plain sentence.

    ``warning`` marks those that may cost something, which a careful user wants to know.
    """

    source: str
    parameter: str
    what: str
    warning: bool = False

    def __str__(self) -> str:
        """The sentence with its subject."""
        subject = f"{self.source}, {self.parameter}" if self.parameter else self.source
        return f"{subject}: {self.what}"


@dataclass(frozen=True)
class Alignment:
    """The sources as data sets of one space, smaller being better, and how they got there.

    ``rows`` are the rows of every task that its data set has.
    """

    space: Space
    tasks: tuple[RawTask, ...]
    datasets: tuple[Dataset, ...]
    rows: tuple[tuple[int, ...], ...]
    decisions: tuple[Decision, ...]

    @property
    def warnings(self) -> tuple[Decision, ...]:
        """The decisions that may cost something."""
        return tuple(decision for decision in self.decisions if decision.warning)

    def noting(self, notes: Iterable[str]) -> Alignment:
        """With a remark on every task, in order, where there is one: how it was learnt (``FitReport.note``)."""
        told = [Decision(task.name, "", note) for task, note in zip(self.tasks, notes, strict=False) if note]
        return replace(self, decisions=(*self.decisions, *told)) if told else self

    def __str__(self) -> str:
        """The report: a heading per source and a line per decision, warnings marked with an exclamation mark."""
        lines = [f"Search space: {', '.join(self.space.names)}"]
        used = {task.name: (task, data) for task, data in zip(self.tasks, self.datasets, strict=True)}
        names = dict.fromkeys([*used, *(decision.source for decision in self.decisions)])
        for name in names:
            if name in used:
                task, data = used[name]
                lines.append(f"{name}: {data.n} of {len(task.rows)} rows used")
            else:
                lines.append(f"{name}: not used")
            own = [decision for decision in self.decisions if decision.source == name]
            width = max((len(decision.parameter) for decision in own), default=0)
            lines += [f"  {'!' if d.warning else ' '} {d.parameter or '·':<{width}}  {d.what}" for d in own]
            if not own:
                lines.append("    every parameter and row fits")
        if not names:
            lines.append("no sources")
        return "\n".join(lines)
