"""The last step of a search: from good points to the nearest optima, in what is continuous.

Many L-BFGS-B runs go in lockstep. By slopes (decide.fast.slopes) they are asked one by one; a batch of problems can
only be differentiated as a whole. Where rules hold the points, the runs are those of decide.region.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.decide.acquisition import AcquisitionValue
from headstart.decide.domain import Searchable
from headstart.decide.fast.slopes import Slopes
from headstart.decide.region import Loss, Region, descend
from headstart.gp.lbfgs import Minimization

Array = NDArray[np.float64]
Which = NDArray[np.intp]

_ITERATIONS = 100
_WORST = 1e10  # where the acquisition value is not a number


def polish(
    value: AcquisitionValue, slopes: Slopes | None, domain: Searchable, starts: Float[Tensor, "*b k d"]
) -> Float[Tensor, "*b k d"]:
    """The starts after L-BFGS-B in the domain's free columns, each for itself; ``slopes`` are those of ``value``.

    A line search that ends in rounding is no trouble: the points looked at stay in the comparison.
    """
    free = domain.free.to(starts.device)
    if len(free) == 0:
        return starts
    now = starts.reshape(-1, starts.shape[-1]).clone()
    resting = domain.resting(starts)
    still = None if resting is None else resting.reshape(now.shape)[:, free].cpu().numpy()

    def by_slopes(points: Array, which: Which) -> tuple[Array, Array]:
        assert slopes is not None
        columns, X = free.numpy(), now.numpy()[which]
        X[:, columns] = points
        values, gradient = slopes.climb(X)
        return -values, -gradient[:, columns]

    def by_differentiation(points: Array, which: Which) -> tuple[Array, Array]:
        # runs that have ended stay where they are: a batched posterior answers for all of its problems at once
        rows = torch.from_numpy(which).to(now.device)
        now[rows.unsqueeze(-1), free] = torch.from_numpy(points).to(now.device)
        with torch.enable_grad():
            X = now.reshape(starts.shape).detach().requires_grad_()
            values = value(X)
            (gradient,) = torch.autograd.grad(values.sum(), X)
        loss = -values.detach().reshape(-1)[rows]
        slope = -gradient.reshape(-1, X.shape[-1])[rows][:, free]
        return loss.cpu().numpy(), slope.cpu().numpy()

    def objective(points: Array, which: Which) -> tuple[Array, Array]:
        loss, slope = (by_differentiation if slopes is None else by_slopes)(points, which)
        if still is not None:  # a parameter that is not there changes nothing
            slope = np.where(still[which], 0.0, slope)
        bad = ~(np.isfinite(loss) & np.isfinite(slope).all(-1))
        return np.where(bad, _WORST, loss), np.where(bad[:, None], 0.0, slope)

    region = domain.region(now)
    if region is not None:
        now[:, free] = _held(objective, now[:, free].cpu().numpy(), region).to(now)
        return domain.snap(now.reshape(starts.shape))
    result = Minimization(
        objective,
        now[:, free].cpu().numpy(),
        np.zeros(len(free)),
        np.ones(len(free)),
        max_iterations=_ITERATIONS,
        ftol=1e-9,
        gtol=1e-6,
    ).run()
    now[:, free] = torch.from_numpy(result.x).to(now)
    return domain.snap(now.reshape(starts.shape))


def _held(objective: Loss, points: Array, region: Region) -> Float[Tensor, "n f"]:
    """The points after descents that stay in their regions."""

    def loss(places: Array, which: Which) -> tuple[Array, Array]:
        coordinates, pace = region.outward(places, which)
        value, slope = objective(coordinates, which)
        return value, slope * pace

    places = descend(loss, region.inward(points), region, max_iterations=_ITERATIONS)
    return torch.from_numpy(region.outward(places, np.arange(len(places)))[0])
