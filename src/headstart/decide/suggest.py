"""The next point to evaluate: where the acquisition function is best.

One search in three steps, each of them a function, so that another space changes one of them only:

    look around    Sobol points all over the space, and points near the lowest posterior means
    compare        the acquisition function at all of them
    polish         L-BFGS-B from the best ones, inside the unit cube
"""

from __future__ import annotations

import logging
import warnings

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from jaxtyping import Float
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.decide.acquisition import Acquisition, InModelUnits, acquisition, incumbent
from headstart.errors import InputError, NumericalError
from headstart.gp.fit import Seed, generator_from
from headstart.models.botorch import TransferPosterior

__all__ = ["suggest"]

_log = logging.getLogger(__name__)

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
) -> Float[Tensor, "d"]:
    """The point of the unit cube where the acquisition function is highest, so the next one to evaluate.

    ``n_candidates`` Sobol points are compared and the best ``n_starts`` polished; the result is never worse than any
    point looked at. Without a target observation (zero-shot) the value to improve on is the lowest posterior mean
    over those points. Equal seeds give equal points, and the units of the objective do not matter.
    """
    if len(posterior.batch_shape) > 0:
        raise InputError(
            f"suggest works on one problem, but the posterior has batch shape {tuple(posterior.batch_shape)}."
        )
    if n_candidates < 1 or n_starts < 1:
        raise InputError(f"n_candidates and n_starts must be at least 1, but are {n_candidates} and {n_starts}.")
    generator = generator_from(seed)
    observed = posterior.train_inputs[0]
    wide, near = _look_around(posterior, n_candidates, generator)
    X = torch.cat([wide, near])
    units = InModelUnits(posterior.units)
    known = X if observed.shape[-2] == 0 else observed
    best_f = incumbent(posterior, known, posterior_transform=units)
    value = acquisition(posterior, kind, best_f=best_f, beta=beta, posterior_transform=units)
    worth = _compare(value, X)
    starts = _best_of_both(X, worth, len(wide), n_starts)
    polished = _polish(value, starts)
    everything = torch.cat([polished, X])
    return everything[torch.cat([_compare(value, polished), worth]).argmax()]


def _look_around(
    posterior: TransferPosterior, n: int, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "m d"]]:
    """Sobol points, and points near the lowest posterior means among those and the observed points."""
    observed = posterior.train_inputs[0]
    d = observed.shape[-1]
    sobol = SobolEngine(d, scramble=True, seed=int(torch.randint(1 << 31, (), generator=generator)))
    wide = sobol.draw(n, dtype=torch.float64).to(observed.device)
    known = torch.cat([wide, observed])
    with torch.no_grad():
        mean, _ = posterior.predict(known)
    anchors = known[mean.topk(min(_ANCHORS, len(known)), largest=False).indices]
    steps = _NEAR * torch.randn(max(1, n // (_NEAR_SHARE * len(anchors))), 1, d, generator=generator).double()
    near = (anchors + steps.to(anchors.device)).clamp(0.0, 1.0).reshape(-1, d)
    return wide, torch.cat([anchors, near])


def _compare(value: AnalyticAcquisitionFunction, X: Float[Tensor, "n d"]) -> Float[Tensor, "n"]:
    """The acquisition function at every point; a point where it is not a number is the worst."""
    with torch.no_grad():
        worth: Tensor = value(X.unsqueeze(-2))
    if not bool(worth.isfinite().any()):
        raise NumericalError(
            "The acquisition function is finite at none of the points looked at. Look at the posterior there: its "
            "mean and variance should be finite, and its variance positive."
        )
    return worth.nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def _best_of_both(
    X: Float[Tensor, "n d"], worth: Float[Tensor, "n"], n_wide: int, n_starts: int
) -> Float[Tensor, "k d"]:
    """The best ``n_starts`` points, half of them (where there are enough) from near the lowest means."""
    n_near = min(n_starts // 2, len(X) - n_wide)
    best_wide = worth[:n_wide].topk(min(n_starts - n_near, n_wide)).indices
    best_near = n_wide + worth[n_wide:].topk(n_near).indices
    return X[torch.cat([best_wide, best_near])]


def _polish(value: AnalyticAcquisitionFunction, starts: Float[Tensor, "k d"]) -> Float[Tensor, "k d"]:
    """The starts after L-BFGS-B, all of them at once."""
    with warnings.catch_warnings(record=True) as caught:
        # A line search that ends in rounding is no trouble: the points looked at stay in the comparison.
        candidates, _ = gen_candidates_scipy(
            starts.unsqueeze(-2), value, lower_bounds=0.0, upper_bounds=1.0, options={"maxiter": _POLISH_ITERATIONS}
        )
    for warning in caught:
        if issubclass(warning.category, OptimizationWarning):
            _log.debug("%s", warning.message)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return candidates.squeeze(-2).detach()
