"""The next points to evaluate: where the acquisition value of an aim is highest.

``suggest`` checks its arguments and chooses one point after the other. What is maximised is in ``decide.aim`` and
``decide.value``, how a point is found in ``decide.search``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.decide.acquisition import Acquisition
from headstart.decide.aim import Aim
from headstart.decide.control import control_for, may_begin_with_control
from headstart.decide.design import are_among
from headstart.decide.domain import Cube, Domain
from headstart.decide.search import Search
from headstart.errors import InputError
from headstart.gp.fit import Seed, generator_from
from headstart.models.outcomes import OutcomePosteriors
from headstart.models.posterior import TransferPosterior
from headstart.tuning import PLAIN_TUNING


def suggest(
    posterior: TransferPosterior | OutcomePosteriors,
    *,
    domain: Domain | None = None,
    kind: Acquisition = Acquisition.LOG_EI,
    q: int = 1,
    pending: Float[Tensor, "*#b p d"] | None = None,
    avoid: Float[Tensor, "*#b k d"] | None = None,
    seed: Seed = 0,
    design_seeds: Sequence[Seed] | None = None,
    n_candidates: int = PLAIN_TUNING.search_candidates,
    n_starts: int = PLAIN_TUNING.search_starts,
    beta: float = 3.0,
) -> Float[Tensor, "*out d"]:
    """The next point to evaluate: where the acquisition value is highest over the domain.

    With several outcomes the value is the expected improvement on the best result within the limits, or with several
    objectives the expected growth of the volume beyond their front (decide.aim). ``n_candidates`` points are compared
    and the best ``n_starts`` polished; the result is never worse than any point looked at. Without a target observation
    (zero-shot) the value to improve on is the lowest posterior mean over those points. Equal seeds give equal points,
    and the units of the objective do not matter. The first point of a new batch may be a *control*, one that has a
    result of another batch, also if it is to be avoided: where knowing the shift is worth more than another point
    (decide.control).

    Args:
        posterior: The posterior of the objective, to be minimised, or the posteriors of several outcomes: objectives
            and limits. A batch of problems gives one point each, the one it gives alone.
        domain: The points that may be suggested; by default the unit cube.
        kind: The acquisition function. A confidence bound is for one objective, with limits or without.
        q: How many points, chosen one after the other, each of them pending for the next.
        pending: Points whose results are awaited, (p, d). The expected effect of their results is taken into account,
            and none of them is suggested again.
        avoid: Further points that are not to be returned, (k, d): without noise, the finished ones.
        seed: Of the random numbers.
        design_seeds: One for each problem of a batch: the first points of a target without sources are laid out by
            it. By default all problems are laid out alike.
        n_candidates: Points that are compared.
        n_starts: Points that are polished.
        beta: How much uncertainty attracts, for ``Acquisition.LCB``.

    Returns:
        The point, (d), or (q, d) for q > 1; for a batch of problems with its shape in front.

    Raises:
        InputError: An argument does not fit the model, or the acquisition function does not fit the objectives.
        NoPointLeftError: Every point of the domain is pending or to be avoided.
    """
    if n_candidates < 1 or n_starts < 1 or q < 1:
        raise InputError(
            f"n_candidates, n_starts and q must be at least 1, but are {n_candidates}, {n_starts} and {q}."
        )
    first = posterior.posteriors[0] if isinstance(posterior, OutcomePosteriors) else posterior
    observed, batch = first.train_inputs[0], first.batch_shape
    domain = Cube(observed.shape[-1]) if domain is None else domain
    if domain.d != observed.shape[-1]:
        raise InputError(f"The domain has {domain.d} columns, but the model was fitted to {observed.shape[-1]}.")
    awaited, others = (_given_points(X, name, observed) for X, name in ((pending, "pending"), (avoid, "avoid")))
    generator, found = generator_from(seed), []
    start = generator.get_state()
    for i in range(batch.numel()):
        generator.set_state(start)  # every problem of a batch sees the same random numbers, as it would alone
        design = generator if design_seeds is None else generator_from(design_seeds[i % len(design_seeds)])
        one = posterior.problem(i) if batch and isinstance(posterior, TransferPosterior) else posterior
        search = Search(Aim.of(one, kind, beta), domain, n_candidates, n_starts, generator, design)
        own, avoided = (X.reshape(batch.numel(), *X.shape[-2:])[i] for X in (awaited, others))
        waiting, planned = own, own[:0]
        opens = may_begin_with_control(search.aim) and not bool(are_among(own, search.aim.results).any())
        for _ in range(q):
            point = search.next_point(own, torch.cat([own, avoided], dim=-2))
            own, planned = (torch.cat([before, point.unsqueeze(-2)], dim=-2) for before in (own, planned))
        if opens and (control := control_for(search.aim, waiting, planned, avoided, domain)) is not None:
            planned = torch.cat([control.unsqueeze(-2), planned], dim=-2)
        found.append(planned[0] if q == 1 else planned[:q])
    return torch.stack(found).reshape(*batch, *found[0].shape)


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
