"""AUTO's candidates that know the sources, given a target that grows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.models.auto.prequential import REFITS, refits_up_to
from headstart.models.auto.study.kept import Kept, chosen_at, kept_at_first, kept_for, most_of
from headstart.models.growth.grown import fitted_on_some, with_appended_rows
from headstart.models.growth.memory import Memory
from headstart.models.growth.schedule import EVERY, fit_of_many, refit_size
from headstart.models.model import Prior
from headstart.models.posterior import TransferPosterior
from headstart.models.sequential import SequentialPrior
from headstart.models.star.independent import IndependentSources
from headstart.models.star.star import StarPrior

# A candidate, and of a star θ, at which a later fit can begin
_Fitted = tuple[TransferPosterior, Float[Tensor, "P p"] | None]


@dataclass(frozen=True)
class Informed:
    """The candidates in their order, all stars with the same sources, which are trusted as far as ``trust`` says.

    What was found of a target at a refit is kept. All of it depends on the data alone, and can be had again.
    """

    alone: IndependentSources
    trust: Float[Tensor, "*b s"]
    priors: tuple[Prior, ...]
    _fitted: Memory[tuple[_Fitted, ...]] = field(default_factory=Memory, repr=False, compare=False)
    _kept: Memory[Kept] = field(default_factory=Memory, repr=False, compare=False)

    def kept(self, target: Dataset) -> Kept:
        """The sources that are asked, given the target's results (models.auto.study.kept)."""
        seen, most = target.head(chosen_at(target.n)), most_of(self.alone.sources)
        if len(self.alone.sources) <= most or seen.n == 0:
            return kept_at_first(self.trust, most)
        units = self.alone.units.completed(seen)
        return self._kept.of(seen, lambda: kept_for(self.trust, most, self.alone.members, units.inward(seen)))

    def given(self, target: Dataset) -> tuple[TransferPosterior, ...]:
        """All candidates given the target, with hyperparameters as they were found last (models.growth.schedule)."""
        return self.after(target.head(refit_size(target.n)), target)

    def after(self, seen: Dataset, target: Dataset) -> tuple[TransferPosterior, ...]:
        """The same with hyperparameters as they were found of the first rows of the target."""
        fitted = self._at_refit(seen)
        if seen.n == target.n:
            return tuple(posterior for posterior, _ in fitted)
        at = self.alone.some(self.kept(seen).index).locate(target.X[..., seen.n :, :])
        return tuple(
            with_appended_rows(posterior, target, None if theta is None else at) for posterior, theta in fitted
        )

    def _at_refit(self, seen: Dataset) -> tuple[_Fitted, ...]:
        often = seen.n not in (0, *REFITS) and seen.n <= EVERY
        return self._fit(seen) if often else self._fitted.of(seen, lambda: self._fit(seen))

    def _fit(self, seen: Dataset) -> tuple[_Fitted, ...]:
        n, kept = seen.n, self.kept(seen)
        at = self.alone.some(kept.index).locate(seen.X)
        # of a long target a fit begins where that of the last refit ended
        before = self._at_refit(seen.head(refits_up_to(n)[-1])) if n > EVERY else None
        fitted: list[_Fitted] = []
        for k, prior in enumerate(self.priors):
            if isinstance(prior, StarPrior):
                some = len(kept.index) < len(self.alone.sources)
                asked = prior.narrowed(kept.index, kept.trust) if some else prior
                fitted.append(asked.found(seen, n, at, None if before is None else before[k][1]))
            elif isinstance(prior, SequentialPrior) and n > EVERY:
                later = replace(prior, model=prior.model.using(fit=fit_of_many(prior.model.fit)))
                fitted.append((fitted_on_some(partial(later.fitted, seed=n), seen), None))
            else:
                fitted.append((prior.condition(seen, seed=n), None))
        return tuple(fitted)
