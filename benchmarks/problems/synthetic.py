"""The paper's function families (appendix "Details on experiments"): a classic function, its parameters drawn anew.

    family       f(x; parameters)                                        domain           parameters
    forrester    a (6x − 2)² sin(12x − 4) + b (x − ½) − c                [0, 1]           a, b, c
    alpine       x sin(x + π + s) + 0.1 x                                [−10, 10]        s: five sources, one target
    alpine_c     x sin(x + π) + c x                                      [−10, 10]        c
    branin       a (x₂ − b x₁² + c x₁ − r)² + s (1 − t) cos x₁ + s       [−5,10]×[0,15]   a, b, c, r, s, t
    hartmann3    −Σ_i α_i exp(−Σ_j A_ij (x_j − P_ij)²)                   [0, 1]³          α₁ … α₄
    hartmann6    the same with other A and P                             [0, 1]⁶          α₁ … α₄

Everything is to be minimised, is float64 on any device, and takes its inputs in the unit cube. The square in Branin
is missing in the paper's text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.quasirandom import SobolEngine

from headstart.errors import InputError
from headstart.gp.lbfgs import Minimization

Params = tuple[float, ...]
# f(parameters (*b, 1, k), X (*b, n, d) in the function's own domain) → (*b, n)
Formula = Callable[[Tensor, Tensor], Tensor]

# The search for a minimum: a Sobol set, then a polish from its best points that are not neighbours of one another.
_SEARCH_POINTS = 8192
_POLISHED = 16
_APART = 0.15  # of the diagonal of the unit cube; every family's basins lie further apart
_CHUNK = 32  # functions searched at once, which bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Functions f(·; params) on the unit cube with one formula and random parameters.

    ``bounds`` is the paper's domain, one (low, high) per input; ``ranges`` the uniform distribution of every
    parameter; ``original`` the classic function. Where the paper fixes the tasks, ``fixed_sources`` are the source
    tasks, of which ``sample`` draws, and ``fixed_target`` is the target. ``noise_std`` and ``source_points`` are those
    of the paper's single-source experiments.
    """

    name: str
    formula: Formula = field(repr=False)
    bounds: tuple[tuple[float, float], ...]
    ranges: tuple[tuple[float, float], ...]
    original: Params
    noise_std: float = 0.1
    fixed_sources: tuple[Params, ...] = ()
    fixed_target: Params | None = None
    _minima: dict[Params, float] = field(default_factory=dict, init=False, repr=False)

    @property
    def d(self) -> int:
        """How many inputs."""
        return len(self.bounds)

    @property
    def n_params(self) -> int:
        """How many parameters tell one function of the family from another."""
        return len(self.ranges)

    @property
    def source_points(self) -> int:
        """How many rows a source has: 20 per input."""
        return 20 * self.d

    @property
    def space(self) -> None:
        """None: every point of the unit cube may be chosen."""
        return

    def random_points(self, tasks: int, n: int, generator: torch.Generator) -> Float[Tensor, "tasks n d"]:
        """Independent uniform points of the unit cube."""
        return torch.rand(tasks, n, self.d, generator=generator, dtype=torch.float64)

    def sample(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """Parameters of n random source tasks: uniform in ``ranges``, or one of the ``fixed_sources`` each."""
        if self.fixed_sources:
            which = torch.randint(len(self.fixed_sources), (n,), generator=generator)
            return torch.tensor(self.fixed_sources, dtype=torch.float64)[which]
        low, high = torch.tensor(self.ranges, dtype=torch.float64).unbind(-1)
        return low + (high - low) * torch.rand(n, self.n_params, generator=generator, dtype=torch.float64)

    def sample_target(self, n: int, generator: torch.Generator) -> Float[Tensor, "n k"]:
        """Parameters of n target tasks: the fixed one where the paper fixes it, random ones elsewhere."""
        if self.fixed_target is None:
            return self.sample(n, generator)
        return torch.tensor(self.fixed_target, dtype=torch.float64).expand(n, -1)

    def evaluate(self, params: Float[Tensor, "*b k"], X: Float[Tensor, "*c n d"]) -> Float[Tensor, "*out n"]:
        """The noiseless f at every row of X in the unit cube; leading dimensions are tasks, and broadcast."""
        self._require(params, self.n_params, "params", dim=1)
        self._require(X, self.d, "X", dim=2)
        if params.device != X.device:
            raise InputError(
                f"params and X of {self.name} must be on one device, but are on {params.device}, {X.device}."
            )
        low, high = X.new_tensor(self.bounds).unbind(-1)
        return self.formula(params.unsqueeze(-2), low + (high - low) * X)

    def minimum(self, params: Float[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
        """The lowest noiseless value of every task on the unit cube, remembered by parameter value."""
        self._require(params, self.n_params, "params", dim=1)
        rows: list[Params] = [tuple(row) for row in params.detach().cpu().reshape(-1, self.n_params).tolist()]
        unknown = list(dict.fromkeys(row for row in rows if row not in self._minima))
        for start in range(0, len(unknown), _CHUNK):
            chunk = unknown[start : start + _CHUNK]
            self._minima.update(zip(chunk, self._search(chunk), strict=True))
        return params.new_tensor([self._minima[row] for row in rows]).reshape(params.shape[:-1])

    def _search(self, tasks: Sequence[Params]) -> list[float]:
        params = torch.tensor(tasks, dtype=torch.float64)
        X = SobolEngine(self.d, scramble=True, seed=0).draw(_SEARCH_POINTS, dtype=torch.float64)
        with torch.no_grad():
            values = self.evaluate(params, X.expand(len(tasks), -1, -1))
        starts = _lowest_apart(values, X, _POLISHED, _APART * math.sqrt(self.d))

        def objective(
            points: NDArray[np.float64], which: NDArray[np.intp]
        ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            with torch.enable_grad():
                x = torch.from_numpy(points).requires_grad_()
                value = self.evaluate(params[which // _POLISHED], x.unsqueeze(-2)).squeeze(-1)
                (gradient,) = torch.autograd.grad(value.sum(), x)
            return value.detach().numpy(), gradient.numpy()

        polished = Minimization(
            objective,
            starts.reshape(-1, self.d).numpy(),
            np.zeros(self.d),
            np.ones(self.d),
            max_iterations=200,
            ftol=1e-15,
            gtol=1e-9,
        ).run()
        best: list[float] = np.minimum(polished.value.reshape(len(tasks), -1).min(-1), values.amin(-1).numpy()).tolist()
        return best

    def _require(self, value: Tensor, width: int, what: str, *, dim: int) -> None:
        if value.dim() < dim or value.shape[-1] != width:
            shape = f"(*batch, {width})" if dim == 1 else f"(*batch, n, {width})"
            raise InputError(f"{what} of {self.name} must have shape {shape}, but it is {tuple(value.shape)}.")
        if value.dtype != torch.float64:
            raise InputError(f"{what} of {self.name} must be float64, but it is {value.dtype}.")


def _lowest_apart(
    values: Float[Tensor, "P n"], X: Float[Tensor, "n d"], k: int, apart: float
) -> Float[Tensor, "P k d"]:
    """For every row of values k points of X: each time the lowest that is not within ``apart`` of an earlier one.

    Where all points are taken, the lowest of all is repeated.
    """
    left, chosen = values.clone(), []
    lowest = values.argmin(-1)
    for _ in range(k):
        value, index = left.min(-1)
        index = torch.where(value.isinf(), lowest, index)
        chosen.append(X[index])
        left = left.masked_fill(torch.cdist(X[index], X) < apart, math.inf)
    return torch.stack(chosen, dim=-2)


# ── the formulas, in their own domain ─────────────────────────────────────────────────────────────────────────────


def _forrester(params: Tensor, X: Tensor) -> Tensor:
    (a, b, c), x = params.unbind(-1), X[..., 0]
    return a * (6 * x - 2) ** 2 * torch.sin(12 * x - 4) + b * (x - 0.5) - c


def _alpine(params: Tensor, X: Tensor) -> Tensor:
    (s,), x = params.unbind(-1), X[..., 0]
    return x * torch.sin(x + math.pi + s) + 0.1 * x


def _alpine_c(params: Tensor, X: Tensor) -> Tensor:
    (c,), x = params.unbind(-1), X[..., 0]
    return x * torch.sin(x + math.pi) + c * x


def _branin(params: Tensor, X: Tensor) -> Tensor:
    (a, b, c, r, s, t), (x1, x2) = params.unbind(-1), X.unbind(-1)
    return a * (x2 - b * x1**2 + c * x1 - r) ** 2 + s * (1 - t) * torch.cos(x1) + s


def _hartmann(A: Sequence[Sequence[float]], P: Sequence[Sequence[float]], params: Tensor, X: Tensor) -> Tensor:
    A_, P_ = X.new_tensor(A), X.new_tensor(P) * 1e-4
    # Σ_j one input at a time: no tensor of size n × 4 × d
    exponent = X.new_zeros(*X.shape[:-1], len(A))
    for j, x in enumerate(X.unbind(-1)):
        exponent = exponent + A_[:, j] * (x.unsqueeze(-1) - P_[:, j]) ** 2
    return -(params * torch.exp(-exponent)).sum(-1)


# ── the families ──────────────────────────────────────────────────────────────────────────────────────────────────

FORRESTER = Family(
    name="forrester",
    formula=_forrester,
    bounds=((0.0, 1.0),),
    ranges=((0.2, 3.0), (-5.0, 15.0), (-5.0, 5.0)),
    original=(1.0, 0.0, 0.0),
)
ALPINE = Family(
    name="alpine",
    formula=_alpine,
    bounds=((-10.0, 10.0),),
    ranges=((0.0, 5 * math.pi / 12),),
    original=(0.0,),
    fixed_sources=tuple((k * math.pi / 12,) for k in range(1, 6)),
    fixed_target=(0.0,),
)
# The comparison figure goes from c = ½ to c = −½ and names no distribution: between the two is our choice.
ALPINE_C = Family(
    name="alpine_c",
    formula=_alpine_c,
    bounds=((-10.0, 10.0),),
    ranges=((-0.5, 0.5),),
    original=(0.1,),
)
BRANIN = Family(
    name="branin",
    formula=_branin,
    bounds=((-5.0, 10.0), (0.0, 15.0)),
    ranges=((0.5, 1.5), (0.1, 0.15), (1.0, 2.0), (5.0, 7.0), (8.0, 12.0), (0.03, 0.05)),
    original=(1.0, 5.1 / (4 * math.pi**2), 5 / math.pi, 6.0, 10.0, 1 / (8 * math.pi)),
    noise_std=1.0,
)
_HARTMANN_RANGES = ((1.0, 1.02), (1.18, 1.2), (2.8, 3.0), (3.2, 3.4))
HARTMANN3 = Family(
    name="hartmann3",
    formula=partial(
        _hartmann,
        ((3.0, 10, 30), (0.1, 10, 35), (3.0, 10, 30), (0.1, 10, 35)),
        ((3689, 1170, 2673), (4699, 4387, 7470), (1091, 8732, 5547), (381, 5743, 8828)),
    ),
    bounds=((0.0, 1.0),) * 3,
    ranges=_HARTMANN_RANGES,
    original=(1.0, 1.2, 3.0, 3.2),
)
HARTMANN6 = Family(
    name="hartmann6",
    formula=partial(
        _hartmann,
        ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14)),
        (
            (1312, 1696, 5569, 124, 8283, 5886),
            (2329, 4135, 8307, 3736, 1004, 9991),
            (2348, 1451, 3522, 2883, 3047, 6650),
            (4047, 8828, 8732, 5743, 1091, 381),
        ),
    ),
    bounds=((0.0, 1.0),) * 6,
    ranges=_HARTMANN_RANGES,
    original=(1.0, 1.2, 3.0, 3.2),
)

FAMILIES: dict[str, Family] = {f.name: f for f in (FORRESTER, ALPINE, ALPINE_C, BRANIN, HARTMANN3, HARTMANN6)}


def family(name: str) -> Family:
    """The family of that name, in any case of letters."""
    found = FAMILIES.get(name.lower())
    if found is None:
        raise InputError(f"There is no function family {name!r}. Known are: {', '.join(FAMILIES)}.")
    return found
