"""Replicates: rows with equal inputs become one row, their mean, with the variance that the mean still has.

With n_g results at point g, of which each has a scatter of variance s² around the truth there,

    y_g = mean of the group        error_var_g = s²/n_g

which loses nothing: whatever the function and its hyperparameters, p(all rows) = p(means) times what does not depend
on them, so evidence and posterior are those of all rows. The noise that a model finds besides is then what repeating
does not average out, one value per point.

s² is what the groups show, Σ_g Σ_j (y_gj − y_g)²/Σ_g (n_g − 1). A group of many has a say of its own: its scatter
counts with its n_g − 1 degrees of freedom, what all groups show with POOLED. Results whose errors are known are
averaged by their precisions instead.

Rows that are equal in every number are copies of one row far more often than they are a measurement that came out the
same to the last digit. They count as the one row they are, say nothing of the scatter, and are named in ``copies``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import InputError

POOLED = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Replicates:
    """The pooled rows, in the order in which their points came first.

    ``groups`` are the numbers of the rows behind each of them; ``copies`` those of the groups whose results are
    exactly equal, for somebody to ask whether they are one measurement or several; ``within_var`` is s², None where no
    point shows any.
    """

    data: Dataset
    groups: tuple[tuple[int, ...], ...]
    copies: tuple[tuple[int, ...], ...]
    within_var: float | None


def pool_replicates(data: Dataset, *, within_var: float | None = None, equal_is_measured: bool = False) -> Replicates:
    """Rows with equal inputs as their mean. ``within_var`` is s² where it is known; otherwise the groups show it.

    ``equal_is_measured`` says that rows which are equal in everything were measured one by one all the same: then they
    are replicates like any others. Where nothing shows a scatter the result has no ``error_var``.
    """
    if data.batch_shape:
        raise InputError(f"Replicates are those of one task, but this is a batch of shape {tuple(data.batch_shape)}.")
    if within_var is not None and not 0 < within_var < float("inf"):
        raise InputError(f"within_var must be a positive variance, but it is {within_var}.")
    groups = _groups(data.X)
    said = [data.y, *(() if data.error_var is None else (data.error_var,))]
    copies = tuple(g for g in groups if len(g) > 1 and all(bool((v[list(g)] == v[g[0]]).all()) for v in said))
    once = set() if equal_is_measured else set(copies)
    counted = [g[:1] if g in once else g for g in groups]
    pooled = replace(data, X=data.X[[g[0] for g in groups]], y=_means(data.y, counted), error_var=None)
    if data.error_var is not None:
        if within_var is not None:
            raise InputError("The results have known errors already: leave within_var out.")
        return Replicates(_by_precision(data, pooled, counted), groups, copies, None)
    sizes = data.y.new_tensor([len(g) for g in counted])
    scatter = _means((data.y - _spread_out(pooled.y, counted, data.n)).square(), counted) * sizes  # of every group
    freedom = sizes - 1
    if within_var is not None:
        own = torch.full_like(sizes, within_var)
    elif bool(scatter.sum() > 0):
        within_var = float(scatter.sum() / freedom.sum())
        own = (POOLED * within_var + scatter) / (POOLED + freedom)
    else:
        return Replicates(pooled, groups, copies, None)
    return Replicates(replace(pooled, error_var=own / sizes), groups, copies, within_var)


def _groups(X: Float[Tensor, "n d"]) -> tuple[tuple[int, ...], ...]:
    found: dict[tuple[float, ...], list[int]] = {}
    for i, row in enumerate((X + 0.0).tolist()):  # −0 is 0
        found.setdefault(tuple(row), []).append(i)
    return tuple(tuple(rows) for rows in found.values())


def _means(values: Float[Tensor, "n"], groups: list[tuple[int, ...]]) -> Float[Tensor, "g"]:
    means = [values[list(rows)].mean() for rows in groups]
    return torch.stack(means) if means else values[:0]


def _spread_out(means: Float[Tensor, "g"], groups: list[tuple[int, ...]], n: int) -> Float[Tensor, "n"]:
    """The mean of its group for every row."""
    every = means.new_zeros(n)
    for mean, rows in zip(means, groups, strict=True):
        every[list(rows)] = mean
    return every


def _by_precision(data: Dataset, pooled: Dataset, groups: list[tuple[int, ...]]) -> Dataset:
    """y_g = Σ y_j/e_j / Σ 1/e_j with variance 1/Σ 1/e_j, e_j the known variances."""
    assert data.error_var is not None
    y, error_var = pooled.y.clone(), data.error_var[[rows[0] for rows in groups]].clone()
    for g, rows in enumerate(groups):
        if len(rows) == 1:
            continue
        own = data.error_var[list(rows)]
        if not bool((own > 0).all()):
            row = rows[int((own <= 0).nonzero()[0])]
            raise InputError(
                f"Row {row} is a replicate of row {rows[0] if row != rows[0] else rows[1]}, but its error is not known "
                "(error_var is 0), so that it cannot be weighed against the others. Give the errors of all of them, or "
                "of none."
            )
        precision = 1 / own
        y[g], error_var[g] = (precision * data.y[list(rows)]).sum() / precision.sum(), 1 / precision.sum()
    return replace(pooled, y=y, error_var=error_var)
