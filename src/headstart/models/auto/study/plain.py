"""AUTO's plain process: GPBO in the units that are known, as it predicts and as it is tested."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import Units
from headstart.models.growth.grown import fitted_on_some, with_appended_rows
from headstart.models.growth.memory import Memory
from headstart.models.growth.schedule import EVERY, fit_of_many, refit_size
from headstart.models.posterior import TransferPosterior
from headstart.models.single import SinglePrior
from headstart.tuning import AUTO_TUNING


@dataclass(frozen=True)
class PlainProcess:
    """The plain process next to sources whose units are ``common``; what was found of a target is kept."""

    prior: SinglePrior
    common: Units
    _settled: Memory[TransferPosterior] = field(default_factory=lambda: Memory(most=2), repr=False, compare=False)
    _tested: Memory[TransferPosterior] = field(default_factory=Memory, repr=False, compare=False)

    def given(self, target: Dataset) -> TransferPosterior:
        """GPBO to the last bit; a target whose spread is unknown is to vary as the sources do."""
        if target.n <= EVERY:
            return self._in_its_own_units(target)
        seen = target.head(refit_size(target.n))
        return with_appended_rows(self._settled.of(seen, lambda: self._in_its_own_units(seen)), target)

    def _in_its_own_units(self, seen: Dataset) -> TransferPosterior:
        varies = Units.of([seen]).scale > 0 if seen.n > 1 else seen.y.new_zeros(seen.batch_shape).bool()
        return self._with(seen, own_units=varies)

    def as_tested(self, seen: Dataset) -> TransferPosterior:
        """The plain process in the sources' units: two or three values that happen to be close say nothing of a spread.

        In its own units it would be all too sure of the next one, and lose its credit for good. From five values on it
        has its own where they vary by a different order of magnitude than the sources.
        """

        def fitted() -> TransferPosterior:
            units, own = self.common.completed(seen), Units.of([seen])
            apart = (own.scale / units.scale).log().abs() > math.log(AUTO_TUNING.own_scale_ratio)
            known = (own.scale > 0) & (seen.n >= AUTO_TUNING.own_scale_from_results)
            return self._with(seen, own_units=apart & known, draws=0)

        return self._tested.of(seen, fitted)

    def _with(self, target: Dataset, *, own_units: Bool[Tensor, "*b"], draws: int | None = None) -> TransferPosterior:
        """In the target's own units in some problems, and in those of the sources in the others."""
        units, own = self.common.completed(target), Units.of([target])
        known = Units(torch.where(own_units, own.offset, units.offset), torch.where(own_units, own.scale, units.scale))
        fit = self.prior.model.fit
        fit = fit if draws is None else replace(fit, draws=draws)
        fit = fit if target.n <= EVERY else fit_of_many(fit)
        prior = replace(self.prior, model=self.prior.model.using(fit=fit), known=known)
        return fitted_on_some(lambda rows: prior.fitted(rows, target.n), target)
