"""A task of many rows as a layer: exactly up to some thousands of rows, through inducing points beyond.

With P the prior of f (the gain's prior of the layer), Z inducing points among the rows, and the noise N of every row,
plus, where rows have shifts in common, the covariance Q Qᵀ of these (``_shift_factor``),

    A = L_u⁻¹ P(Z, X)      L_u L_uᵀ = P(Z, Z)      d = diag(P(X, X) − AᵀA): what Z does not see of a row
    D = N + d + Q Qᵀ       B = I + A D⁻¹ Aᵀ        b = A D⁻¹ (y − m(X) − offset)

    mean(x) = m(x) + offset + a(x)ᵀ B⁻¹ b            a(x) = L_u⁻¹ P(Z, x)
    cov     = P(x, x') − a(x)ᵀ (I − B⁻¹) a(x')

(FITC: a row that Z represents badly counts less.) That is Bayes' rule for as many pseudo-observations as there are
inducing points, with correlated noise. So it *is* a layer, with

    L = L_u T,  T Tᵀ = (I − B⁻¹)⁻¹ = I + (A D⁻¹ Aᵀ)⁻¹        z = Tᵀ B⁻¹ b

and whatever is built on layers (chains, stars, surfaces of a search) needs to know nothing of it. With Z = X it is the
exact posterior. The sums go over blocks of rows: the memory is that of two matrices of the size of Z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.replicates import pooled_rows
from headstart.data.thinning import inducing_rows, representative_rows, take_rows
from headstart.data.units import OutputUnits
from headstart.gp.fit import FitOptions, Seed
from headstart.gp.hyperparameters import GPParams
from headstart.gp.kernels import Kernel
from headstart.gp.linalg import cholesky, solve_lower, solve_upper
from headstart.models.chain.beliefs import Beliefs, BoostedBeliefs, ExactBeliefs
from headstart.models.chain.layer import Layer, Propagation, shifts_of
from headstart.tuning import PLAIN_TUNING

_BLOCK = 1024  # rows
# Variances that are rounding: relative to the prior's, and of the whitened pseudo-observations
_JITTER, _LEAST = 1e-10, 1e-9


@dataclass(frozen=True, slots=True)
class LevelSpec:
    """How a level is fitted: the model's kernel, search options and units, what it inherits, seed, name in reports."""

    kernel: Kernel
    fit: FitOptions
    units: OutputUnits
    propagation: Propagation = Propagation.EXACT
    seed: Seed = 0
    name: str = "target"
    source: bool = False
    exact: int | None = None  # the layer of a source of more rows stands for more than it has (``source_layer``)


def exact_rows(sizes: Sequence[int]) -> int:
    """Up to how many rows each of these sources, learnt side by side, is exact: what all factors take is bounded."""
    points, most = PLAIN_TUNING.inducing_points, PLAIN_TUNING.exact_up_to_rows
    share = PLAIN_TUNING.exact_large_sources / max(1, sum(n > points for n in sizes))
    return most if share >= 1 else max(points, int(most * share**0.5))


def source_layer(
    below: Beliefs, params: GPParams, task: Dataset, spec: LevelSpec, offset_var: Float[Tensor, "*b"] | None = None
) -> Layer:
    """The layer of a task at given hyperparameters: rows of a source pooled, and condensed where there are too many.

    Nothing but the data decides how. With ``offset_var`` the offset of the parameters is that before any data, with
    this variance, and becomes the posterior mean given all rows.
    """
    empty = Layer.observe(below, params, task.head(0), kernel=spec.kernel, propagation=spec.propagation)
    if task.n <= PLAIN_TUNING.every_row_up_to and offset_var is None:
        return empty.with_observations(task)
    pooled = pooled_rows(task) if spec.source else None
    data = task if pooled is None else pooled.data
    noise = params.noise_var.unsqueeze(-1).expand(data.y.shape)
    if pooled is not None:
        noise = pooled.noise(params.noise_var)
    elif data.error_var is not None:
        noise = noise + data.error_var
    n_rows, n_points = _rows_and_points(below, data, spec) if spec.source else (data.n, None)
    if n_rows < data.n:
        if n_points is None and n_rows <= PLAIN_TUNING.inducing_points:
            kept = representative_rows(data.X, data.y, n_rows)
        else:  # simply all over
            even = torch.linspace(0, data.n - 1, n_rows, dtype=torch.float64, device=data.X.device)
            kept = even.round().long().expand(*data.batch_shape, -1)
        data, noise = take_rows(data, kept), noise.gather(-1, kept)
    if n_points is None:
        return _exact(empty, data, noise, offset_var)
    points = inducing_rows(data.X / params.lengthscale.unsqueeze(-2), data.y, n_points)
    return condensed(empty, data, noise, points, offset_var)


def learnt_through(below: Beliefs, task: Dataset, spec: LevelSpec) -> str:
    """How the layer of a source is made, in words: "learnt from 20,000 rows: predictions through 2,000 points"."""
    pooled = pooled_rows(task) if task.n > PLAIN_TUNING.every_row_up_to else None
    data = task if pooled is None else pooled.data
    places = "" if pooled is None else f" at {data.n:,} places" if data.n > 1 else " at one place"
    words = f"learnt from {task.n:,} rows{places}"
    n_rows, n_points = _rows_and_points(below, data, spec)
    if n_rows < data.n:
        words += f", of which {n_rows:,} all over them are used"
    return words if n_points is None else f"{words}, predictions through {n_points:,} points"


def _rows_and_points(below: Beliefs, data: Dataset, spec: LevelSpec) -> tuple[int, int | None]:
    """How many rows are used, exact as far as there is room beside those below, and through how many points, if any."""
    points, on_top = PLAIN_TUNING.inducing_points, PLAIN_TUNING.rows_beside_others
    most = PLAIN_TUNING.exact_up_to_rows if spec.exact is None else spec.exact
    known = below.exact if isinstance(below, BoostedBeliefs) else below
    N = known.z.shape[-1] if isinstance(known, ExactBeliefs) else 0
    room = max(most - N, on_top) if N else most
    if data.n <= room:
        return data.n, None
    too_many = data.batch is not None and len(data.batch.unique()) > points  # shifts that are found one by one
    if too_many or spec.propagation is Propagation.BOOSTED:  # its covariance is that of rows with noise of their own
        return min(room, points), None
    work = PLAIN_TUNING.condensed_max_work
    affordable = min(PLAIN_TUNING.condensed_max_rows, int(work / max(N, 1) ** 2))
    if affordable <= room:
        return room, None
    rows = min(data.n, affordable)
    return rows, min(on_top if N else points, int((work / rows) ** 0.5))


def _exact(empty: Layer, data: Dataset, noise: Float[Tensor, "*b n"], offset_var: Float[Tensor, "*b"] | None) -> Layer:
    """All rows as they are. The covariance is filled block by block, so that there are never more than two of it."""
    at = empty.below.at(data.X)
    K = data.X.new_empty(*data.batch_shape, data.n, data.n)
    for block in _blocks(data.n):
        K[..., block, :] = empty.gain_cov(at.rows(block), at)
        if (shifts := shifts_of(data, empty.params, block)) is not None:
            K[..., block, :] += shifts
    K.diagonal(dim1=-2, dim2=-1).add_(noise)
    L = cholesky(K, of="The covariance of the observations")
    del K
    r = data.y - at.mean - empty.params.offset.unsqueeze(-1)
    z = solve_lower(L, r.unsqueeze(-1)).squeeze(-1)
    if offset_var is None:
        return replace(empty, at=at, L=L, z=z, noise=noise)
    w = solve_lower(L, torch.ones_like(r).unsqueeze(-1)).squeeze(-1)
    shift = (w * z).sum(-1) / (w.square().sum(-1) + 1 / offset_var)
    params = replace(empty.params, offset=empty.params.offset + shift)
    return replace(empty, params=params, at=at, L=L, z=z - shift.unsqueeze(-1) * w, noise=noise)


def condensed(
    empty: Layer,
    data: Dataset,
    noise: Float[Tensor, "*b n"],
    points: Int[Tensor, "*b m"],
    offset_var: Float[Tensor, "*b"] | None = None,
) -> Layer:
    """The layer given all rows of data through those that ``points`` names; ``empty`` is the layer without data."""
    at = empty.below.at(take_rows(data, points).X)
    m, identity = points.shape[-1], torch.eye(points.shape[-1], dtype=data.X.dtype, device=data.X.device)
    P = empty.gain_cov(at, at)
    P.diagonal(dim1=-2, dim2=-1).mul_(1 + _JITTER)
    L_u = cholesky(P, of="The covariance of the inducing points")
    seen = torch.zeros_like(P)  # A D⁻¹ Aᵀ
    Q = _shift_factor(data, empty.params)
    k = 2 + Q.shape[-1]
    b = data.X.new_zeros(*data.batch_shape, m, k)  # A D⁻¹ of the residual, of 1 and of Q, at first without shifts in D
    both = data.X.new_zeros(*data.batch_shape, k, k)
    for block in _blocks(data.n):
        new = empty.below.at(data.X[..., block, :])
        A = solve_lower(L_u, empty.gain_cov(at, new))
        unseen = (empty.gain_var(new) - A.square().sum(-2)).clamp_min(0.0)  # 0 at the points themselves, to rounding
        D = noise[..., block] + unseen
        r = data.y[..., block] - new.mean - empty.params.offset.unsqueeze(-1)
        right = torch.cat([torch.stack([r, torch.ones_like(r)], dim=-1), Q[..., block, :]], dim=-1)
        weighted = right / D.unsqueeze(-1)
        b += A @ weighted
        both += right.mT @ weighted
        A /= D.sqrt().unsqueeze(-2)
        seen += A @ A.mT
    if k > 2:  # (D + Q Qᵀ)⁻¹ = D⁻¹ − D⁻¹ Q (I + Qᵀ D⁻¹ Q)⁻¹ Qᵀ D⁻¹
        own = both[..., 2:, 2:] + torch.eye(k - 2, dtype=both.dtype, device=both.device)
        known = torch.cat([both[..., 2:, :2], b[..., 2:].mT], dim=-1)
        known = solve_lower(cholesky(own, of="What the rows say of the shifts"), known)
        told, by_points = known[..., :2], known[..., 2:]
        seen -= by_points.mT @ by_points
        b, both = b[..., :2] - by_points.mT @ told, both[..., :2, :2] - told.mT @ told
    L_b = cholesky(identity + seen, of="What the rows say of the inducing points")
    c = solve_lower(L_b, b)
    shift = torch.zeros_like(empty.params.offset)
    if offset_var is not None:
        # 1ᵀ (Q + D)⁻¹ r and 1ᵀ (Q + D)⁻¹ 1 with Q = AᵀA, by the matrix inversion lemma
        inverse = both - c.mT @ c
        shift = inverse[..., 0, 1] / (inverse[..., 1, 1] + 1 / offset_var)
    mean = solve_upper(L_b, c)  # B⁻¹ b
    mean = mean[..., 0] - shift.unsqueeze(-1) * mean[..., 1]
    size = seen.diagonal(dim1=-2, dim2=-1).amax(-1)
    seen.diagonal(dim1=-2, dim2=-1).add_((_LEAST + 1e-15 * size).unsqueeze(-1))
    F = cholesky(seen, of="What the rows say of the inducing points")
    T = cholesky(identity + torch.cholesky_inverse(F), of="The pseudo-observations")
    return replace(
        empty,
        params=replace(empty.params, offset=empty.params.offset + shift),
        at=at,
        L=torch.tril(L_u @ T),
        z=(T.mT @ mean.unsqueeze(-1)).squeeze(-1),
        noise=noise.gather(-1, points),
    )


def _shift_factor(data: Dataset, params: GPParams) -> Float[Tensor, "*b n k"]:
    """Q with Q Qᵀ the covariance of the shifts of all rows (``shifts_of``): a column for each of k batches, or none."""
    if data.batch is None or params.batch_var is None or not data.has_shifts:
        return data.X.new_zeros(*data.batch_shape, data.n, 0)
    assert data.present is not None
    names, now = data.batch.unique(), data.present.unsqueeze(-1)
    # g(batch) − g(present) is the difference of two columns of G, G Gᵀ the covariance of g in all batches and now
    every = torch.cat([names.expand(*data.batch_shape, -1), now], dim=-1)
    cov = data.shift_correlation(every, every)
    cov.diagonal(dim1=-2, dim2=-1).add_(_JITTER)  # the present batch may be one of them
    G = params.batch_var.sqrt()[..., None, None] * cholesky(cov, of="The correlations of the shifts")
    of_batch = (data.batch.unsqueeze(-1) == names).to(data.y)
    Q: Tensor = of_batch @ G[..., :-1, :] - G[..., -1:, :]
    return torch.where((data.batch == now).unsqueeze(-1), torch.zeros_like(Q), Q)


def _blocks(n: int) -> Iterator[slice]:
    return (slice(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK))
