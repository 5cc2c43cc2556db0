"""The next point to evaluate: where the acquisition function is best, for one problem or a whole batch in lockstep.

One search in three steps, each of them a function, so that another space changes one of them only:

    look around    Sobol points all over the space, and points near the lowest posterior means
    compare        the acquisition function at all of them
    polish         L-BFGS-B from the best ones, inside the unit cube
"""

from __future__ import annotations

import numpy as np
import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.decide.acquisition import Acquisition, InModelUnits, acquisition, incumbent
from headstart.errors import InputError, NumericalError
from headstart.gp.fit import Seed, generator_from
from headstart.gp.lbfgs import minimize_lockstep
from headstart.gp.threads import single_thread
from headstart.models.botorch import TransferPosterior

__all__ = ["suggest"]

# Points near the lowest posterior means: around how many of them, how far (of the unit cube), and their share
_ANCHORS = 4
_NEAR = 0.05
_NEAR_SHARE = 4  # one near point for so many Sobol points
_POLISH_ITERATIONS = 100


def suggest(
    posterior: TransferPosterior,
    *,
    kind: Acquisition = Acquisition.LOG_EI,
    seed: Seed = 0,
    n_candidates: int = 512,
    n_starts: int = 8,
    beta: float = 3.0,
) -> Float[Tensor, "*b d"]:
    """The point of the unit cube where the acquisition function is highest, so the next one to evaluate.

    ``n_candidates`` Sobol points are compared and the best ``n_starts`` polished; the result is never worse than any
    point looked at. Without a target observation (zero-shot) the value to improve on is the lowest posterior mean
    over those points. Equal seeds give equal points, and the units of the objective do not matter. A batch of
    problems gives one point each, the one it gives alone.
    """
    if n_candidates < 1 or n_starts < 1:
        raise InputError(f"n_candidates and n_starts must be at least 1, but are {n_candidates} and {n_starts}.")
    generator = generator_from(seed)
    observed = posterior.train_inputs[0]
    wide, near = _look_around(posterior, n_candidates, generator)
    X = torch.cat([wide, near], dim=-2)
    units = InModelUnits(posterior.units)
    known = X if observed.shape[-2] == 0 else observed
    best_f = incumbent(posterior, known, posterior_transform=units)
    value = acquisition(posterior, kind, best_f=best_f, beta=beta, posterior_transform=units)
    with single_thread():
        worth = _compare(value, X)
        starts = _best_of_both(X, worth, wide.shape[-2], n_starts)
        polished = _polish(value, starts)
        everything = torch.cat([polished, X], dim=-2)
        best = torch.cat([_compare(value, polished), worth], dim=-1).argmax(-1)
    return _rows(everything, best.unsqueeze(-1)).squeeze(-2)


def _rows(X: Float[Tensor, "*b n d"], index: Tensor) -> Float[Tensor, "*b k d"]:
    """The rows of X that ``index`` (*b, k) names, problem by problem."""
    return X.gather(-2, index.unsqueeze(-1).expand(*index.shape, X.shape[-1]))


def _look_around(
    posterior: TransferPosterior, n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "*b n d"], Float[Tensor, "*b m d"]]:
    """Sobol points, and points near the lowest posterior means among those and the observed points."""
    observed = posterior.train_inputs[0]
    batch, d = posterior.batch_shape, observed.shape[-1]
    sobol = SobolEngine(d, scramble=True, seed=int(torch.randint(1 << 31, (), generator=generator)))
    wide = sobol.draw(n, dtype=torch.float64).to(observed.device).expand(*batch, n, d)
    known = torch.cat([wide, observed], dim=-2)
    with torch.no_grad():
        mean, _ = posterior.predict(known)
    anchors = _rows(known, mean.topk(min(_ANCHORS, mean.shape[-1]), largest=False).indices)
    n_anchors = anchors.shape[-2]
    per_anchor = max(1, n // (_NEAR_SHARE * n_anchors))
    steps = _NEAR * torch.randn(per_anchor, 1, d, generator=generator, dtype=torch.float64)
    near = (anchors.unsqueeze(-3) + steps.to(anchors.device)).clamp(0.0, 1.0).flatten(-3, -2)
    return wide, torch.cat([anchors, near], dim=-2)


def _compare(value: AnalyticAcquisitionFunction, X: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b n"]:
    """The acquisition function at every point; a point where it is not a number is the worst."""
    with torch.no_grad():
        rows = X.movedim(-2, 0).unsqueeze(-2)  # each point its own query, in front of the model's batch
        worth: Tensor = value(rows).movedim(0, -1)
    if not bool(worth.isfinite().any(-1).all()):
        raise NumericalError(
            "The acquisition function is finite at none of the points looked at. Look at the posterior there: its "
            "mean and variance should be finite, and its variance positive."
        )
    return worth.nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def _best_of_both(
    X: Float[Tensor, "*b n d"], worth: Float[Tensor, "*b n"], n_wide: int, n_starts: int
) -> Float[Tensor, "*b k d"]:
    """The best ``n_starts`` points, half of them (where there are enough) from near the lowest means."""
    n_near = min(n_starts // 2, X.shape[-2] - n_wide)
    best_wide = worth[..., :n_wide].topk(min(n_starts - n_near, n_wide)).indices
    best_near = n_wide + worth[..., n_wide:].topk(n_near).indices
    return _rows(X, torch.cat([best_wide, best_near], dim=-1))


def _polish(value: AnalyticAcquisitionFunction, starts: Float[Tensor, "*b k d"]) -> Float[Tensor, "*b k d"]:
    """The starts after L-BFGS-B, all of them in lockstep and each for itself.

    A line search that ends in rounding is no trouble: the points looked at stay in the comparison.
    """
    d = starts.shape[-1]
    now = starts.reshape(-1, d).clone()

    def objective(
        points: NDArray[np.float64], which: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # runs that have ended stay where they are: a batched posterior answers for all of its problems at once
        rows = torch.from_numpy(which).to(now.device)
        now[rows] = torch.from_numpy(points).to(now.device)
        with torch.enable_grad():
            X = now.reshape(starts.shape).movedim(-2, 0).unsqueeze(-2).detach().requires_grad_()
            worth = value(X)
            (gradient,) = torch.autograd.grad(worth.sum(), X)
        loss = -worth.detach().movedim(0, -1).reshape(-1)[rows]
        slope = -gradient.squeeze(-2).movedim(0, -2).reshape(-1, d)[rows]
        bad = ~(loss.isfinite() & slope.isfinite().all(-1))
        return (
            loss.masked_fill(bad, 1e10).cpu().numpy(),
            slope.masked_fill(bad.unsqueeze(-1), 0.0).cpu().numpy(),
        )

    result = minimize_lockstep(
        objective,
        now.cpu().numpy(),
        np.zeros(d),
        np.ones(d),
        max_iterations=_POLISH_ITERATIONS,
        ftol=1e-9,
        gtol=1e-6,
    )
    return torch.from_numpy(result.x).to(starts).reshape(starts.shape)
