"""What every restart of a fit did."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor

__all__ = ["FitReport"]


@dataclass(frozen=True, slots=True)
class FitReport:
    """What every restart of one fit did. ``objective`` is what was minimised, per observation; lower is better.

    Leading dimensions are those of the batch of problems; the last one counts the restarts. With
    ``FitOptions.natural_too`` its second half are the same starts searched in natural parameters (on top of inherited
    beliefs: at first). The evaluations of the best restart include those that polished it (only where ``PlainEvidence``
    is maximised without priors).
    """

    task: str
    objective: Float[Tensor, "*b R"]
    evaluations: Int[Tensor, "*b R"]
    converged: Bool[Tensor, "*b R"]
    failures: Int[Tensor, "*b R"]  # factorisations that failed on the way
    joined: Int[Tensor, "*b R"]  # the restart whose path this one met and whose end it shares, or −1
    best: Int[Tensor, "*b"]
    n_observations: int = 0
    n_natural: int = 0  # how many restarts, the last ones, were (at first) searched in natural parameters

    def __str__(self) -> str:
        """A line for the fit and, for a single problem, a line per restart."""
        restarts = f"{self.objective.shape[-1] - self.n_natural} restarts"
        if self.n_natural:
            restarts += f" in log and {self.n_natural} in natural parameters"
        head = (
            f"{self.task}: {self.n_observations} observations, {restarts}, "
            f"{int(self.converged.sum())} of {self.converged.numel()} converged, "
            f"{int(self.evaluations.sum())} evaluations, {int(self.failures.sum())} failed factorisations"
        )
        if self.objective.dim() > 1 or self.objective.numel() == 0:
            return head
        rows = [
            f"  {i:>3} {'*' if i == int(self.best) else ' '} objective {self.objective[i].item():+.6f}  "
            f"evaluations {int(self.evaluations[i]):>4}  {'converged' if self.converged[i] else 'stopped early'}"
            f"{f', with restart {int(self.joined[i])}' if self.joined[i] >= 0 else ''}"
            f"{f'  failures {int(self.failures[i])}' if self.failures[i] else ''}"
            for i in range(len(self.objective))
        ]
        return "\n".join([head, *rows])

    def at_row(self, row: int, task: str) -> FitReport:
        """The report of one entry of the first batch dimension."""
        tensors = [f.name for f in fields(self) if isinstance(getattr(self, f.name), Tensor)]
        rows: dict[str, Any] = {name: getattr(self, name)[row] for name in tensors}
        return replace(self, task=task, **rows)
