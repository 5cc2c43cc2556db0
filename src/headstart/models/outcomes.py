"""One model per outcome: each has its own sources, its own results and its own judgement, over the same inputs.

A source may lack an outcome, and so may a result; whoever lacks it says nothing about it, and all that it has counts.
An outcome that no source has is left to a process on its own (GPBO).

Data come in and predictions go out as they are measured. Behind the signs of ``Outcomes``, where smaller is better and
limits are upper ones, are ``OutcomePosteriors.posteriors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from botorch.models.model import ModelList
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.outcomes import Outcomes
from headstart.errors import InputError
from headstart.gp.fit import Seed
from headstart.models.family import AUTO, GPBO
from headstart.models.model import Prior, TransferModel
from headstart.models.posterior import TransferPosterior


@dataclass(frozen=True, eq=False)
class OutcomePriors:
    """What the sources teach about every outcome, in their order: learnt once.

    Args:
        outcomes: The goals and limits.
        priors: A prior for each, in their order.
        d: Columns of the inputs, where a source shows them.
    """

    outcomes: Outcomes
    priors: tuple[Prior, ...]
    d: int | None

    @classmethod
    def learn(
        cls,
        outcomes: Outcomes,
        sources: Mapping[str, Sequence[Dataset]],
        *,
        model: TransferModel = AUTO,
        seed: Seed = 0,
    ) -> Self:
        """From the sources of every outcome, as measured; an outcome without sources may be left out.

        Args:
            outcomes: The goals and limits.
            sources: The sources of every outcome, by its name.
            model: The model of every outcome.
            seed: Seed of the fits.

        Returns:
            A prior for every outcome.
        """
        every = outcomes.in_order(sources, (), "sources")
        columns = {source.d for own in every for source in own}
        if len(columns) > 1:
            raise InputError(f"All sources need the same inputs, but they have {sorted(columns)} columns.")
        alone = GPBO.using(kernel=model.kernel, fit=model.fit, output_map=model.output_map)
        priors = []
        for outcome, own in zip(outcomes, every, strict=True):
            inward = [outcome.signed(source) for source in own]
            priors.append(model.learn(inward, seed=seed) if inward and model.needs_sources else alone.learn(seed=seed))
        return cls(outcomes, tuple(priors), next(iter(columns), None))

    def condition(self, targets: Mapping[str, Dataset] | None = None, *, seed: Seed = 0) -> OutcomePosteriors:
        """On the results of every outcome, as measured; an outcome without results may be left out.

        Args:
            targets: The results of every outcome, by its name.
            seed: Seed of the fits.

        Returns:
            A posterior for every outcome.
        """
        given = {} if targets is None else dict(targets)
        d = next((target.d for target in given.values()), self.d)
        if d is None:
            raise InputError(
                "With no sources the targets must be given: Dataset.empty(d) says how many inputs there are."
            )
        every = self.outcomes.in_order(given, Dataset.empty(d), "targets")
        posteriors = [
            prior.condition(outcome.signed(target), seed=seed)
            for outcome, prior, target in zip(self.outcomes, self.priors, every, strict=True)
        ]
        return OutcomePosteriors(self.outcomes, tuple(posteriors))


@dataclass(frozen=True, eq=False)
class OutcomePosteriors:
    """One posterior per outcome, in the order of the outcomes and behind their signs, over the same inputs.

    What an outcome's bounds are its posterior is told here, whoever made it.

    Args:
        outcomes: The goals and limits.
        posteriors: A posterior for each, in their order.
    """

    outcomes: Outcomes
    posteriors: tuple[TransferPosterior, ...]

    def __post_init__(self) -> None:
        """Check that there is a posterior for every outcome, of a single problem, and that inputs agree."""
        names, n = self.outcomes.names, len(self.posteriors)
        if n != len(names):
            raise InputError(f"There must be a posterior for every outcome ({', '.join(names)}), but there are {n}.")
        columns = {posterior.train_inputs[0].shape[-1] for posterior in self.posteriors}
        if len(columns) > 1:
            raise InputError(f"All outcomes need the same inputs, but they have {sorted(columns)} columns.")
        for name, posterior in zip(names, self.posteriors, strict=True):
            if posterior.batch_shape:
                raise InputError(
                    f"Several outcomes are decided for one problem at a time, but the posterior of {name!r} has the "
                    f"batch shape {tuple(posterior.batch_shape)}: take the problems one by one."
                )
        every = zip(self.posteriors, (outcome.signed_bounds for outcome in self.outcomes), strict=True)
        bounded = tuple(own if limits is None else own.within_bounds(limits) for own, limits in every)
        object.__setattr__(self, "posteriors", bounded)

    def __getitem__(self, name: str) -> TransferPosterior:
        """The posterior of one outcome, behind its sign."""
        if name not in self.outcomes.names:
            raise InputError(f"There is no outcome {name!r}: there are {', '.join(self.outcomes.names)}.")
        return self.posteriors[self.outcomes.names.index(name)]

    @property
    def goals(self) -> tuple[TransferPosterior, ...]:
        """Those of the objectives."""
        return self.posteriors[: len(self.outcomes.goals)]

    @property
    def limits(self) -> tuple[TransferPosterior, ...]:
        """Those of the limited quantities."""
        return self.posteriors[len(self.outcomes.goals) :]

    def model_list(self) -> ModelList:
        """All of them as one BoTorch model with an output for each, behind their signs.

        What is maximised over it takes −1 times every objective, and a limit is ``lambda Y: Y[..., i] - bound``.

        Returns:
            The posteriors in the order of the outcomes.
        """
        return ModelList(*self.posteriors)

    def predict(self, X: Float[Tensor, "m d"]) -> dict[str, tuple[Float[Tensor, "m"], Float[Tensor, "m"]]]:
        """Mean and variance of every outcome at every row of X, as measured.

        Args:
            X: Points, (m, d).

        Returns:
            Means and variances by the name of the outcome.
        """
        found = {}
        with torch.no_grad():
            for outcome, posterior in zip(self.outcomes, self.posteriors, strict=True):
                mean, var = posterior.predict(X)
                found[outcome.name] = (outcome.sign * mean, var)
        return found

    def probability_within(self, X: Float[Tensor, "m d"]) -> Float[Tensor, "m"]:
        """How probable it is that all limits hold in a measurement at each row of X: the product over the limits.

        It is the probability by which points are chosen. A limit on something that was never measured, here or before,
        is as likely as not.

        Args:
            X: Points, (m, d).

        Returns:
            Probabilities, (m).
        """
        probability = X.new_ones(X.shape[:-1])
        with torch.no_grad():
            for limit, posterior in zip(self.outcomes.limits, self.limits, strict=True):
                probability = probability * torch.where(
                    posterior.knows_nothing, 0.5, posterior.within(X, limit.interval)
                )
        return probability
