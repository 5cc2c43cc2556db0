"""Every kernel of a model between a point and the data it links to that point: there, and the gradient's way back.

    φ_f(x) = weight_f κ(x, z_f; ℓ_f)
    c_r(x) = Σ φ_f(x)                   over the features of row r

Compiled where numba is there (gp.compiled); NumPy and torch otherwise, which is what the compiled way must equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray

from headstart.gp.compiled import compiled_loops
from headstart.gp.kernels import Kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """The features of a single problem; points are given around the middle of the unit cube."""

    kernel: Kernel
    form: Float[Array, "F e"]  # −D/2 = form · [x², x] + constant
    constant: Float[Array, "F"]
    weight: Float[Array, "F"]
    groups: tuple[tuple[slice, slice], ...]  # rows, and the features that belong to them, one group after the other
    n_rows: int

    @cached_property
    def _form_by_input(self) -> tuple[Float[Array, "d F"], Float[Array, "d F"]]:
        squares, lines = np.split(self.form.T, 2)
        return np.ascontiguousarray(squares), np.ascontiguousarray(lines)

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row of every group, and its first feature, with the end of all."""
        rows = np.array([rows.start for rows, _ in self.groups], dtype=np.int64)
        return rows, np.array([*(features.start for _, features in self.groups), len(self.weight)], dtype=np.int64)

    @cached_property
    def _by_matern(self) -> bool:
        return self.kernel is Kernel.MATERN52

    def there(self, x: Float[Array, "m d"], *, back: bool) -> tuple[Float[Array, "m N"], Float[Array, "m _"]]:
        """c and, for the way back, the derivatives of every φ by −D/2."""
        loops = compiled_loops()
        if loops is None:
            return self.there_by_torch(x)
        c, slope = np.zeros((len(x), self.n_rows)), np.empty((len(x), len(self.weight) if back else 0))
        x = np.ascontiguousarray(x)
        loops.add_features(
            x, *self._form_by_input, self.constant, self.weight, *self._groups, self._by_matern, c, slope
        )
        return c, slope

    def back(
        self, x: Float[Array, "m d"], slope: Float[Array, "m F"], by_c: Float[Array, "m N"]
    ) -> Float[Array, "m d"]:
        """The gradient by x of what has these derivatives by c."""
        loops = compiled_loops()
        if loops is None:
            return self.back_by_numpy(x, slope, by_c)
        gradient = np.empty(x.shape)
        points, by_c = np.ascontiguousarray(x), np.ascontiguousarray(by_c)
        loops.pull_back(points, *self._form_by_input, *self._groups, slope, by_c, gradient)
        return gradient

    def there_by_torch(self, x: Float[Array, "m d"]) -> tuple[Float[Array, "m N"], Float[Array, "m F"]]:
        """The same without compiled code."""
        half = np.concatenate([x * x, x], axis=1) @ self.form.T
        half += self.constant
        value, slope = (part.numpy() for part in self.kernel.from_half(torch.from_numpy(half)))
        value *= self.weight
        if not np.may_share_memory(value, slope):  # RBF: they are one
            slope *= self.weight
        c = np.zeros((len(x), self.n_rows))
        for rows, features in self.groups:
            c[:, rows] += value[:, features]
        return c, slope

    def back_by_numpy(
        self, x: Float[Array, "m d"], slope: Float[Array, "m F"], by_c: Float[Array, "m N"]
    ) -> Float[Array, "m d"]:
        """The same without compiled code."""
        by_half = slope.copy()
        for rows, features in self.groups:
            by_half[:, features] *= by_c[:, rows]
        by_form, d = by_half @ self.form, x.shape[-1]
        gradient: Array = 2 * x * by_form[:, :d] + by_form[:, d:]
        return gradient
