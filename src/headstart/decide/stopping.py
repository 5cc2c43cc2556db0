"""Whether it pays to go on, in a plain sentence that the folder and the sampler share.

What counts is what the next few points together are expected to gain, as far as their results will show it
(decide.further): a single one may gain little where five gain much, and with noise some point may well be
better than the best without anybody being able to tell. The gain is *small* if it is below

    of one objective       a tenth of the standard error of a measurement, which nobody would notice, or a hundredth of
                           the way from a typical result to the best, whichever is more
    of several objectives  a fifth of a hundredth of the volume that their front has, for the next point alone; five
                           further ones add at most five times as much

With fewer than eight results it is too early: what the model is sure of then is the past. Without a past it takes twice
as many: a process on its own that has seen a dozen noisy results may well take a valley for noise (of 30 runs on
Forrester's function it did in 5, with a bound of a fifth; from the sixteenth result on in none). Before any result is
within the limits there is nothing to compare with, and one goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.outcomes import Goal, Outcomes
from headstart.decide.aim import Aim
from headstart.decide.domain import Domain
from headstart.decide.further import Further, further_gain
from headstart.decide.suggest import suggest_several
from headstart.errors import NoPointLeftError
from headstart.gp.fit import Seed
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

ENOUGH = AUTO_TUNING.few_results  # results before anything is said against going on; without a past twice as many


class Advice(StrEnum):
    """What there is to say about going on."""

    GO_ON = "go on"
    TOO_EARLY = "too early to say"
    UNLIKELY = "unlikely to be worth it"
    NOTHING_LEFT = "nothing is left to try"


@dataclass(frozen=True, slots=True)
class Outlook:
    """What the next ``ahead`` points are expected to gain, after so many results.

    ``further`` is None before any result is within the limits. ``spread`` is how far a typical result, the median, is
    from the best, in the units of the one objective; None where there are several, or no result. ``objective`` is what
    people call what is improved, ``thing`` what they do: an experiment, a trial. ``enough`` results are needed before
    anything is said against going on.
    """

    further: Further | None
    ahead: int
    results: int
    spread: float | None = None
    several: bool = False
    objective: str = "the objective"
    thing: str = "experiment"
    enough: int = ENOUGH

    @property
    def small(self) -> bool:
        """Whether the gain is below the bounds."""
        if self.further is None:
            return False
        if self.several:
            return self.further.gain < PLAIN_TUNING.stopping_volume_share
        of_noise = PLAIN_TUNING.stopping_noise_share * (self.further.noise or 0.0)
        return self.further.gain < max(of_noise, PLAIN_TUNING.stopping_spread_share * (self.spread or 0.0))

    @property
    def advice(self) -> Advice:
        """Go on, or not."""
        if self.ahead == 0:
            return Advice.NOTHING_LEFT
        if self.results < self.enough:
            return Advice.TOO_EARLY
        return Advice.UNLIKELY if self.small else Advice.GO_ON

    def sentence(self, *, objective: str | None = None, thing: str | None = None) -> str:
        """What is expected and what follows, for people, in these words or its own."""
        objective, thing = objective or self.objective, thing or self.thing
        match self.advice:
            case Advice.NOTHING_LEFT:
                return f"Every setting that may be tried has been tried: there are no further {thing}s."
            case Advice.TOO_EARLY:
                words = f"too early to say with {self.results} of at least {self.enough} results, so go on"
            case Advice.UNLIKELY:
                words = f"further {thing}s are unlikely to be worth it"
            case _:
                words = "go on"
        if self.further is None:
            why = "No result is within the limits yet" if self.results else "There are no results yet"
            return f"{why}: go on."
        which = f"The next {self.ahead} {thing}s are" if self.ahead > 1 else f"The next {thing} is"
        if self.several:
            return f"{which} expected to add {100 * self.further.gain:.2g} % to the volume of the front: {words}."
        ratio = self.further.ratio
        beside = f", {ratio:.2g} times the error of one measurement" if self.further.noise else ""
        return f"{which} expected to improve {objective} by {self.further.gain:.2g}{beside}: {words}."

    def __str__(self) -> str:
        """The sentence."""
        return self.sentence()


def outlook(
    known: OutcomePosteriors | TransferPosterior,
    domain: Domain | None = None,
    *,
    pending: Float[Tensor, "p d"] | None = None,
    avoid: Float[Tensor, "k d"] | None = None,
    seed: Seed = 0,
) -> Outlook:
    """What going on is expected to gain: the next points are chosen as ``suggest_several`` would choose them.

    Results that are awaited (``pending``) count neither as results nor as further points.

    Args:
        known: The posteriors of all outcomes, or one posterior to be minimised.
        domain: Where points may lie; the unit cube by default.
        pending: Points whose results are awaited.
        avoid: Points that are not suggested again.
        seed: Seed of the search for the next points.

    Returns:
        The expected gain of going on, and whether it pays.
    """
    if isinstance(known, TransferPosterior):
        known = OutcomePosteriors(Outcomes((Goal("objective"),)), (known,))
    several = len(known.goals) > 1
    aim = Aim.of(known)
    n = len(aim.results)
    points = _next(known, domain, 1 if several else PLAIN_TUNING.stopping_points, pending, avoid, seed)
    if points is None:
        return Outlook(None, 0, n, None, several)
    spread = None if several or n == 0 else _spread(known, aim)
    enough = 2 * ENOUGH if aim.blind else ENOUGH
    return Outlook(further_gain(known, points, shown=True), len(points), n, spread, several, enough=enough)


def _next(
    known: OutcomePosteriors, domain: Domain | None, q: int, pending: Tensor | None, avoid: Tensor | None, seed: Seed
) -> Float[Tensor, "q d"] | None:
    """The next q points, or as many of them as there are left; None where none is."""
    for count in range(q, 0, -1):
        try:
            found = suggest_several(known, domain=domain, q=count, pending=pending, avoid=avoid, seed=seed)
        except NoPointLeftError:  # a list or a grid that is nearly used up
            continue
        return found.reshape(count, -1)
    return None


def _spread(known: OutcomePosteriors, aim: Aim) -> float:
    """From the best to a typical value of what is expected at the results."""
    with torch.no_grad():
        expected = known.goals[0].predict(aim.results)[0]
    return float(expected.quantile(0.5) - expected.amin())
