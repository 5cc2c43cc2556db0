"""What was learnt from the sources, of the one objective or of every outcome, and what becomes of it with results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.outcomes import Outcomes
from headstart.errors import InputError
from headstart.models.model import Prior
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
from headstart.models.posterior import TransferPosterior
from headstart.sampler.attributes import attributes_of, attributes_of_outcomes
from headstart.sampler.several.outcomes import results_of
from headstart.sampler.strategy import Known
from headstart.sampler.suggested import Suggested
from headstart.sampler.trials import SeenTrials
from headstart.sources.aligned import Alignment
from headstart.sources.forms.errors import ErrorNames

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial


@dataclass(frozen=True)
class Learnt:
    """The sources in the space of a study and a prior for every outcome; without ``outcomes`` for the one objective."""

    alignment: Alignment
    minimize: bool
    priors: Mapping[str, Prior]
    outcomes: Outcomes | None = None
    errors: ErrorNames = field(default_factory=ErrorNames)

    @property
    def prior(self) -> Prior:
        """That of the first objective."""
        return next(iter(self.priors.values()))

    def condition(self, seen: SeenTrials, trials: Sequence[FrozenTrial], *, seed: int) -> Known:
        """What is known with the study's results."""
        if self.outcomes is None:
            return self.prior.condition(seen.target, seed=seed)
        learnt = OutcomePriors(self.outcomes, tuple(self.priors.values()), self.alignment.space.d)
        return learnt.condition(self._results(seen, trials), seed=seed)

    def of(self, outcome: str | None, seen: SeenTrials, trials: Sequence[FrozenTrial]) -> tuple[Prior, Dataset]:
        """The prior and the results of one outcome, by default the first objective."""
        if self.outcomes is None:
            if outcome is not None:
                raise InputError(f"The study has one objective, so there is no outcome {outcome!r} to explain.")
            return self.prior, replace(seen.target, name="this study")
        name = self.outcomes.names[0] if outcome is None else outcome
        signed = self.outcomes[name].signed
        return self.priors[name], signed(self._results(seen, trials)[name])

    def trusts_nothing(self, known: Known) -> bool:
        """Whether no source of any outcome is trusted."""
        every = known.posteriors if isinstance(known, OutcomePosteriors) else (known,)
        return all(bool(posterior.blind) for posterior in every)

    def suggested(
        self, number: int, params: dict[str, Any], x: Float[Tensor, "d"], known: Known, remarks: tuple[str, ...]
    ) -> Suggested:
        """What was chosen, with all that it rests on."""
        posterior, several = self._parts(known)
        return Suggested(
            number, params, x, self.alignment, self.prior, posterior, self.minimize, remarks, several, self.priors
        )

    def attributes(self, known: Known) -> dict[str, str | float]:
        """What a dashboard shows of the trial."""
        posterior, several = self._parts(known)
        if several is None:
            return attributes_of(self.prior, posterior)
        return attributes_of_outcomes(self.priors, {name: several[name] for name in several.outcomes.names})

    @staticmethod
    def _parts(known: Known) -> tuple[TransferPosterior, OutcomePosteriors | None]:
        return (known.posteriors[0], known) if isinstance(known, OutcomePosteriors) else (known, None)

    def _results(self, seen: SeenTrials, trials: Sequence[FrozenTrial]) -> dict[str, Dataset]:
        assert self.outcomes is not None
        by_number = {trial.number: trial for trial in trials}
        finished = [by_number[number] for number in seen.numbers]
        return results_of(seen.target.X, finished, self.outcomes, self.alignment.space.categories, self.errors)
