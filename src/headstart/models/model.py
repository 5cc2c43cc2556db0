"""The three verbs of every model: ``learn`` the sources, ``condition`` on the target, ask the ``posterior``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset, require_compatible, require_unit_cube, task_name
from headstart.data.units import OutputUnits
from headstart.errors import InputError
from headstart.gp.fit import FitOptions, FitReport, Seed
from headstart.gp.kernels import Kernel
from headstart.models.beliefs import At
from headstart.models.botorch import TransferPosterior
from headstart.models.params import ModelParams

__all__ = ["Prior", "TransferModel"]


@dataclass(frozen=True, kw_only=True)
class Prior(ABC):
    """What was learnt from the sources, once. Conditioning on the target reuses it at every step."""

    model: TransferModel
    sources: tuple[Dataset, ...]

    def condition(self, target: Dataset | None = None, *, seed: Seed = 0) -> TransferPosterior:
        """The target's posterior as a BoTorch model; without data of the target it is the zero-shot prediction."""
        if target is None:
            if not self.sources:
                raise InputError(
                    "With no sources the target must be given: Dataset.empty(d) says how many inputs it has."
                )
            like = self.sources[0]
            target = Dataset.empty(like.d, batch_shape=like.batch_shape, device=like.X.device)
        require_compatible(self.sources, target)
        if self.model.fit.unit_cube:
            require_unit_cube(target, "the target")
        with torch.no_grad():
            return self._condition(target, seed)

    @abstractmethod
    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior: ...

    def locate(self, X: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m d"] | At:
        """Points that will be asked about again and again: whatever the sources say about them, evaluated once.

        The result goes to ``TransferPosterior.predict`` in place of X. Where nothing can be kept it is X itself.
        """
        return X

    @property
    def fit_reports(self) -> tuple[FitReport, ...]:
        """How the sources' hyperparameters were found; empty where sources are only learnt with the target."""
        return ()


@dataclass(frozen=True, kw_only=True)
class TransferModel(ABC):
    """A way of training and a choice of W, with the options every model has.

    ``kernel`` is RBF (the paper's) or Matérn-5/2; ``fit`` says how hyperparameters are found; ``units`` where the
    model's output units come from.
    """

    kernel: Kernel = Kernel.RBF
    fit: FitOptions = field(default_factory=FitOptions)
    units: OutputUnits = OutputUnits.SHARED

    needs_sources = True

    def __post_init__(self) -> None:
        """Check the kinds of the options."""
        for name, kind in (("kernel", Kernel), ("fit", FitOptions), ("units", OutputUnits)):
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} must be a {kind.__name__}, but it is {getattr(self, name)!r}.")

    def using(self, **options: Any) -> Self:
        """The same model with other options: ``SHGP.using(kernel=Kernel.MATERN52)``."""
        return replace(self, **options)

    def paper(self) -> Self:
        """The same model as the paper trained it: likelihood, softplus starts, standardised residuals."""
        return self.using(fit=FitOptions.paper(), units=OutputUnits.PER_LEVEL)

    def learn(self, sources: Sequence[Dataset] = (), *, seed: Seed = 0) -> Prior:
        """Everything the sources can teach before the target's first observation."""
        if isinstance(sources, Dataset):
            raise InputError("sources must be a list of data sets, but it is one: put it in brackets.")
        sources = tuple(sources)
        if self.needs_sources and not sources:
            raise InputError(
                f"{type(self).__name__} needs at least one source, but sources is empty. Without any, use GPBO."
            )
        require_compatible(sources, None)
        if self.fit.unit_cube:
            for i, source in enumerate(sources):
                require_unit_cube(source, task_name(source, i))
        with torch.no_grad():
            return self._learn(sources, seed)

    @abstractmethod
    def _learn(self, sources: tuple[Dataset, ...], seed: Seed) -> Prior: ...

    def at(self, params: ModelParams, *, sources: Sequence[Dataset] = (), target: Dataset) -> TransferPosterior:
        """The posterior at given hyperparameters: nothing is fitted, and no units are changed."""
        require_compatible(tuple(sources), target)
        with torch.no_grad():
            return self._at(params, tuple(sources), target)

    @abstractmethod
    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior: ...
