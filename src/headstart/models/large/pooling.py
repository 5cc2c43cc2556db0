"""Rows at one place as their mean: with the noise they have, nothing is lost.

With c rows at x, each with noise of variance v = σ² + error_var, ȳ their mean and S = Σ (y − ȳ)²,

    Π N(y; f(x), v) = N(ȳ; f(x), v/c) · (2πv)^(−(c − 1)/2) · c^(−1/2) · exp(−S/(2v))

so the posterior is that of the means, and the evidence of σ² also hears of the scatter. Unlike ``data.replicates``,
which estimates the scatter before a model is there, σ² stays what the model makes of it. Rows whose inputs differ by
less than NEAR count as one place: no kernel tells them apart, whose shortest lengthscale is 0.05.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstart.gp.evidence import Evaluation, SearchPlan, gaussian
from headstart.gp.geometry import geometry_of, of_problems
from headstart.gp.hyperparameters import OFFSET_VAR, Inputs, gp_layout
from headstart.gp.kernels import Kernel

_LOG_2PI = float(np.log(2 * np.pi))


class PooledEvidence:
    """−log p of all rows from their means: PlainEvidence of the rows themselves, to rounding.

    ``C`` is what is inherited from the tasks below, as there; rows that count more than once are in ``counts``.
    """

    def __init__(
        self,
        X: Float[Tensor, "P g d"],
        r: Float[Tensor, "P g"],
        C: Float[Tensor, "P g g"] | None,
        *,
        counts: Float[Tensor, "P g"],
        scatter: Float[Tensor, "P g"],
        kernel: Kernel,
        residual: bool,
        free_offset: bool,
        inputs: Inputs,
        error_var: Float[Tensor, "P g"] | None = None,
    ) -> None:
        self._counts, self._scatter = counts, scatter
        self._error_var = torch.zeros_like(r) if error_var is None else error_var
        centre = (r * counts).sum(-1, keepdim=True) / counts.sum(-1, keepdim=True)
        self._r = r - centre if free_offset else r
        self._C, self._offset_var = C, OFFSET_VAR if free_offset else 0.0
        self._geometry = geometry_of(X, kernel, inputs)
        self.layout = gp_layout(inputs, residual=residual)

    @property
    def n_problems(self) -> int:
        """How many independent problems there are."""
        return self._r.shape[0]

    @property
    def n_observations(self) -> int:
        """Places of one problem: what is factorised."""
        return self._r.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the data are."""
        return self._r.device

    def search_plan(self, *, natural_too: bool, priors: bool) -> SearchPlan:  # noqa: ARG002
        """Many rows leave little doubt: in logarithms, and every run to its end."""
        return SearchPlan(natural_too)

    def evaluate(self, theta: Float[Tensor, "B p"], items: Int[Tensor, "B"]) -> Evaluation:
        """−log p(all rows | θ), its gradient, and which rows of θ could be computed."""
        kappa, slope, kept = self._geometry.evaluate(theta, items)
        scales = theta[:, -2:].exp()
        K = kappa * scales[:, :1, None] + self._offset_var
        if self._C is not None:
            K = K + of_problems(self._C, items)
        counts, scatter = of_problems(self._counts, items), of_problems(self._scatter, items)
        noise = scales[:, 1:] + of_problems(self._error_var, items)
        K.diagonal(dim1=-2, dim2=-1).add_(noise / counts)
        value, G, _, ok = gaussian(K, of_problems(self._r, items).expand(len(theta), -1))
        again = counts - 1  # rows beside the first of every place
        value = value + 0.5 * (again * (_LOG_2PI + noise.log()) + counts.log() + scatter / noise).sum(-1)
        diagonal = G.diagonal(dim1=-2, dim2=-1).clone()
        gradient = self._geometry.gradient(G, kappa, slope, kept)
        by_noise = diagonal / counts + 0.5 * (again / noise - scatter / noise.square())
        gradient[:, -1] = scales[:, 1] * by_noise.sum(-1)
        return value, gradient, ok
