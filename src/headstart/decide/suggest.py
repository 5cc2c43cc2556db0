"""The next points to evaluate: where the acquisition function is best, for one problem or a whole batch in lockstep.

``suggest`` checks what it is given and chooses one point after the other; how a point is found is in ``decide.search``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition
from headstart.decide.average import voices
from headstart.decide.domain import Cube, Domain
from headstart.decide.search import Search
from headstart.errors import InputError
from headstart.gp.fit import Seed, generator_from
from headstart.models.botorch import TransferPosterior

__all__ = ["suggest"]


def suggest(
    posterior: TransferPosterior,
    *,
    domain: Domain | None = None,
    kind: Acquisition = Acquisition.LOG_EI,
    q: int = 1,
    pending: Float[Tensor, "*#b p d"] | None = None,
    avoid: Float[Tensor, "*#b k d"] | None = None,
    seed: Seed = 0,
    design_seeds: Sequence[Seed] | None = None,
    n_candidates: int = 512,
    n_starts: int = 4,
    beta: float = 3.0,
) -> Float[Tensor, "*out d"]:
    """The point of the domain where the acquisition function is highest, so the next one to evaluate: (*b, d).

    ``domain`` is the unit cube by default. ``n_candidates`` points are compared and the best ``n_starts`` polished;
    the result is never worse than any point looked at. Without a target observation (zero-shot) the value to improve
    on is the lowest posterior mean over those points. Equal seeds give equal points, and the units of the objective
    do not matter. A batch of problems gives one point each, up to rounding the one it gives alone.

    ``pending`` are points whose result is awaited: what they will probably teach is taken into account
    (``decide.pending``), and none of them is suggested again. ``q`` > 1 gives (*b, q, d), chosen one after the other,
    each of them pending for the next. A point of ``avoid`` is never returned either: without noise, give the finished
    ones. Fails when no other point is left. ``design_seeds``, one for each problem of a batch, lay out the first
    points of each in its own way; by default all are laid out alike.
    """
    if n_candidates < 1 or n_starts < 1 or q < 1:
        raise InputError(
            f"n_candidates, n_starts and q must be at least 1, but are {n_candidates}, {n_starts} and {q}."
        )
    observed = posterior.train_inputs[0]
    domain = Cube(observed.shape[-1]) if domain is None else domain
    if domain.d != observed.shape[-1]:
        raise InputError(f"The domain has {domain.d} columns, but the model was fitted to {observed.shape[-1]}.")
    awaited = _given_points(pending, "pending", observed)
    others = _given_points(avoid, "avoid", observed)
    generator = generator_from(seed)
    layouts = None if design_seeds is None else tuple(generator_from(own) for own in design_seeds)
    search = Search(
        posterior, *voices(posterior.predictor), domain, kind, n_candidates, n_starts, beta, generator, layouts
    )
    chosen: list[Tensor] = []
    for _ in range(q):
        chosen.append(search.next(awaited, torch.cat([awaited, others], dim=-2)))
        awaited = torch.cat([awaited, chosen[-1].unsqueeze(-2)], dim=-2)
    return chosen[0] if q == 1 else torch.stack(chosen, dim=-2)


def _given_points(X: Tensor | None, name: str, observed: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b k d"]:
    """The points, for every problem of the batch; none is no rows."""
    if X is None:
        return observed[..., :0, :]
    batch, d = observed.shape[:-2], observed.shape[-1]
    if X.dim() < 2 or X.shape[-1] != d or X.shape[:-2] not in (torch.Size(), batch) or X.dtype != torch.float64:
        raise InputError(
            f"{name} must be float64 of shape (points, {d}), but it is {X.dtype} of shape {tuple(X.shape)}."
        )
    if not bool(X.isfinite().all()):
        raise InputError(f"{name} must be finite, but some entries are NaN or infinite.")
    return X.to(observed.device).expand(*batch, *X.shape[-2:])
