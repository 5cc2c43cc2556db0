"""The next points to evaluate where several things are measured of each."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from headstart.decide.domain import Cube, Domain
from headstart.decide.search import Search
from headstart.decide.several.quest import SeveralOutcomes
from headstart.decide.suggest import next_points, suggest
from headstart.gp.fit import Seed, generator_from
from headstart.models.outcomes import OutcomePosteriors


def suggest_several(
    known: OutcomePosteriors,
    *,
    domain: Domain | None = None,
    q: int = 1,
    pending: Float[Tensor, "p d"] | None = None,
    avoid: Float[Tensor, "k d"] | None = None,
    seed: Seed = 0,
    n_candidates: int = 512,
    n_starts: int = 4,
) -> Float[Tensor, "*out d"]:
    """The point of the domain that is expected to add most where all limits hold: (d), or (q, d) for q > 1.

    What it adds is an improvement on the best result within the limits, or with several objectives a volume beyond
    their front (decide.several.quest). Everything else is as in ``suggest``, which decides where there is one
    objective and no limit.
    """
    if len(known.posteriors) == 1:
        return suggest(
            known.posteriors[0],
            domain=domain,
            q=q,
            pending=pending,
            avoid=avoid,
            seed=seed,
            n_candidates=n_candidates,
            n_starts=n_starts,
        )
    quest = SeveralOutcomes(known)
    domain = Cube(quest.observed.shape[-1]) if domain is None else domain
    return next_points(Search(quest, domain, n_candidates, n_starts, generator_from(seed), None), q, pending, avoid)
