"""The next row of a list, where the list is all there is: every free row is compared.

The same choice as ``suggest`` makes among ``Candidates``, for one problem or for a batch with a list for each, with
what the sources say about the rows worked out once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headstart.decide.acquisition import Acquisition, acquisition_values
from headstart.decide.average import averaged, mean_of, voices
from headstart.decide.believed import is_careful, limit_alone, opening
from headstart.decide.design import design_point, design_size
from headstart.decide.domain import Candidates
from headstart.errors import NoPointLeftError
from headstart.gp.fit import Seed, generator_from
from headstart.gp.threads import single_thread
from headstart.models.chain.beliefs import BeliefsAt
from headstart.models.posterior import TransferPosterior


def suggest_row(
    posterior: TransferPosterior,
    X: Float[Tensor, "*b m d"],
    free: Bool[Tensor, "*b m"],
    *,
    located: Float[Tensor, "*b m d"] | BeliefsAt | None = None,
    categories: tuple[tuple[int, ...], ...] = (),
    kind: Acquisition = Acquisition.LOG_EI,
    beta: float = 3.0,
    design_seeds: Sequence[Seed] = (0,),
) -> Int[Tensor, "*b"]:
    """Which of the free rows of X is best, for one problem or for each of a batch with a list of its own.

    ``located`` is what ``Prior.locate`` returned for X: what the sources say about the rows is then not worked out
    again. ``categories`` are groups of columns that are the levels of one category each.
    """
    if not bool(free.any(-1).all()):
        raise NoPointLeftError("There is no row left to suggest: each of them is pending or to be avoided.")
    n = posterior.train_inputs[0].shape[-2]
    n_inputs = X.shape[-1] - sum(len(levels) - 1 for levels in categories)
    blind = posterior.blind & (n < max(2, design_size(n_inputs)))
    rows = _best_row(posterior, X if located is None else located, free, kind, beta)
    if not bool(blind.any()):
        return rows
    generators = [generator_from(own) for own in design_seeds]
    laid_out = _laid_out_rows(posterior, X, categories, free, generators)
    return torch.where(blind, laid_out, rows)


def _best_row(
    posterior: TransferPosterior,
    rows: Float[Tensor, "*b m d"] | BeliefsAt,
    free: Bool[Tensor, "*b m"],
    kind: Acquisition,
    beta: float,
) -> Int[Tensor, "*b"]:
    observed = posterior.train_inputs[0]
    n = observed.shape[-2]
    kind, beta = opening(posterior, kind, beta)
    deciding = posterior.deciding(n)
    every, weights = voices(deciding, rows)
    with torch.no_grad(), single_thread():
        found = [voice.predictor.predict_marginal(voice.X) for voice in every]
        means = mean_of([mean for mean, _ in found], weights)
        if n == 0:
            known = means.masked_fill(~free, torch.inf)
        else:
            known = mean_of([voice.predictor.predict_marginal(observed)[0] for voice in every], weights)
        best_f = known.amin(-1)
        values = [
            acquisition_values(kind, mean, var, best_f=best_f, noise_var=voice.predictor.noise_var, beta=beta)
            for voice, (mean, var) in zip(every, found, strict=True)
        ]
        value = averaged(kind, torch.stack(values, dim=-1), weights)
        if is_careful(posterior):
            # whoever decides, what is expected is what all expect
            expected = means if deciding is posterior.predictor else _means(posterior, rows)
            limit = limit_alone(expected.masked_fill(~free, torch.nan), n)
            free = free & ((expected <= limit.unsqueeze(-1)) | posterior.blind.unsqueeze(-1))
    return value.nan_to_num(nan=-torch.inf, neginf=-1e300).masked_fill(~free, -torch.inf).argmax(-1)


def _means(posterior: TransferPosterior, rows: Float[Tensor, "*b m d"] | BeliefsAt) -> Float[Tensor, "*b m"]:
    every, weights = voices(posterior.predictor, rows)
    return mean_of([voice.predictor.predict_marginal(voice.X)[0] for voice in every], weights)


def _laid_out_rows(
    posterior: TransferPosterior,
    X: Float[Tensor, "*b m d"],
    categories: tuple[tuple[int, ...], ...],
    free: Bool[Tensor, "*b m"],
    generators: Sequence[torch.Generator],
) -> Int[Tensor, "*b"]:
    """Rows of the design, problem by problem."""
    batch, parts = posterior.batch_shape, (X, free, posterior.train_inputs[0], posterior.past_bests)
    flat = (part.reshape(batch.numel(), *part.shape[len(batch) :]).cpu() for part in parts)
    found = []
    for i, (own, may, seen, past) in enumerate(zip(*flat, strict=True)):
        generator = generators[i % len(generators)]
        x = design_point(Candidates(own, categories), seen, generator, free=may, past=past)
        same = (own == x).all(-1) & may
        found.append(int(same.nonzero()[0]))
    return torch.tensor(found, device=X.device).reshape(batch)
