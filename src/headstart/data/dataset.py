"""``Dataset``: the evaluations of one task, or of many independent problems of equal shape at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from headstart.errors import InputError

_CUBE_TOLERANCE = 1e-9  # how far outside the unit cube rounding may put a point


@dataclass(frozen=True, eq=False, init=False)
class Dataset:
    """Inputs X (*b, n, d) and outputs y (*b, n), float64, finite, on one device; n may be 0.

    Leading dimensions *b are independent problems, worked on in lockstep.

    Args:
        X: Inputs, a float64 tensor, a NumPy array or nested lists.
        y: Outputs, one per row of X.
        name: What error messages and reports call the task.
        unseen: Columns of X that the task did not record: it is a constant function along them, and its own kernel does
            not see them. X holds placeholders there, which only matter where another task's prediction is needed at
            these rows, and to joint models, whose kernels belong to all tasks and see every column.
        categories: Groups of columns that hold the levels of one category each (``Space.categories``): they share a
            lengthscale, so that any two levels are equally alike.
        error_var: The known variance of every result, (*b, n), in squared units of y: the square of a standard error. A
            model adds it to the noise that it finds itself, y_i ~ N(f(x_i), noise_var + error_var_i), so 0 is a result
            of which no more is known than of all others, and None says that of every one.
        batch: The batch of every result (a day, a lot, an operator), (*b, n), as numbers that only say which rows
            belong together: y_i = f(x_i) + g(batch_i) + noise, with an unknown shift g of every batch. None puts all
            rows into one.
        present: The batch that is predicted, (*b), which need not have a row yet; by default that of the last row.
        drift: Over how long shifts stay alike, where they drift slowly: batches are then times in any unit, and
            corr(g(s), g(t)) = exp(−|s − t|/drift), Matérn-½. None: every batch has a shift of its own.

    Raises:
        InputError: Shapes, types or devices do not agree, or a value is not finite.
    """

    X: Tensor
    y: Tensor
    name: str = ""
    unseen: tuple[int, ...] = ()
    categories: tuple[tuple[int, ...], ...] = ()
    error_var: Tensor | None = None
    batch: Tensor | None = None
    present: Tensor | None = None
    drift: float | None = None

    def __init__(
        self,
        X: Any,
        y: Any,
        name: str = "",
        unseen: Sequence[int] = (),
        categories: Sequence[Sequence[int]] = (),
        error_var: Any = None,
        batch: Any = None,
        present: Any = None,
        drift: float | None = None,
    ) -> None:
        what = f"data set {name!r}" if name else "the data set"
        X_, y_ = _as_float64(X, f"X of {what}"), _as_float64(y, f"y of {what}")
        if X_.dim() < 2:
            raise InputError(
                f"X of {what} must have shape (n, d) or (*batch, n, d), but it has shape {tuple(X_.shape)}. "
                "For one input use X.reshape(-1, 1)."
            )
        if y_.shape != X_.shape[:-1]:
            column = y_.shape == (*X_.shape[:-1], 1)
            raise InputError(
                f"y of {what} must have one value per row of X, shape {tuple(X_.shape[:-1])}, but it has shape "
                f"{tuple(y_.shape)}{': drop its last dimension, as in y.squeeze(-1)' if column else ''}."
            )
        if X_.device != y_.device:
            raise InputError(f"X and y of {what} must be on one device, but X is on {X_.device} and y on {y_.device}.")
        if X_.is_meta:
            raise InputError(f"X and y of {what} are on the meta device, which holds no values.")
        for name_, value in (("X", X_), ("y", y_)):
            _refuse(~value.isfinite(), value, f"{name_} of {what} must be finite", "Remove the row, or fill it in.")
        columns = tuple(sorted(set(unseen)))
        if any(not 0 <= column < X_.shape[-1] for column in columns):
            raise InputError(f"unseen columns of {what} must be among 0 … {X_.shape[-1] - 1}, but are {columns}.")
        groups = tuple(tuple(group) for group in categories)
        flat = [column for group in groups for column in group]
        if len(set(flat)) < len(flat) or any(not 0 <= column < X_.shape[-1] for column in flat):
            raise InputError(
                f"categories of {what} must be groups of columns among 0 … {X_.shape[-1] - 1}, each in one group at "
                f"most, but are {groups}."
            )
        known = None if error_var is None else _variances(error_var, y_, what)
        own = {"X": X_, "y": y_, "name": name, "unseen": columns, "categories": groups, "error_var": known}
        own["batch"], own["present"] = _batches(batch, present, y_, what)
        own["drift"] = None if own["batch"] is None else _length(drift, what)
        for field, given in own.items():
            object.__setattr__(self, field, given)

    @classmethod
    def empty(
        cls,
        d: int,
        *,
        batch_shape: Sequence[int] = (),
        device: torch.device | str = "cpu",
        name: str = "",
        categories: Sequence[Sequence[int]] = (),
    ) -> Self:
        """A task with ``d`` inputs and no observation yet.

        Args:
            d: Number of inputs.
            batch_shape: Leading dimensions: independent problems.
            device: Where the tensors are.
            name: What error messages and reports call the task.
            categories: Groups of columns of one category each.

        Returns:
            A data set with n = 0.
        """
        X = torch.empty(*batch_shape, 0, d, dtype=torch.float64, device=device)
        return cls(X, X[..., 0], name, categories=categories)

    @property
    def n(self) -> int:
        """Number of observations (of each problem)."""
        return self.X.shape[-2]

    @property
    def d(self) -> int:
        """Number of inputs."""
        return self.X.shape[-1]

    @property
    def batch_shape(self) -> torch.Size:
        """The leading dimensions: independent problems."""
        return self.X.shape[:-2]

    def head(self, n: int) -> Dataset:
        """The first n observations (of each problem), as they were then: the batch of the last is the present one.

        Args:
            n: How many; all, where there are fewer.

        Returns:
            A data set of the same task.
        """
        first = self.rows(slice(n))
        return first if first.batch is None or not 0 < n < self.n else first._with(present=first.batch[..., -1])

    def rows(self, which: slice | Tensor) -> Dataset:
        """Some of the observations (of each problem).

        Args:
            which: A slice of them, or their numbers in the order wanted.

        Returns:
            A data set of the same task.
        """
        error_var, batch = (None if own is None else own[..., which] for own in (self.error_var, self.batch))
        return self._with(X=self.X[..., which, :], y=self.y[..., which], error_var=error_var, batch=batch)

    def _with(self, **changed: Any) -> Dataset:
        """A copy with some fields taken from data that were checked: of many rows, a check costs more than the copy."""
        new = object.__new__(Dataset)
        for field in fields(Dataset):
            object.__setattr__(new, field.name, changed.get(field.name, getattr(self, field.name)))
        return new

    def repeated(self, k: int) -> Dataset:
        """The same data k times, as a batch of problems.

        Args:
            k: How many times.

        Returns:
            A data set with one more leading dimension.
        """
        own: dict[str, Any] = {}
        for name in ("X", "y", "error_var", "batch", "present"):
            value = getattr(self, name)
            own[name] = None if value is None else value.expand(k, *value.shape)
        return replace(self, **own)

    def with_data(self, X: Tensor, y: Tensor, error_var: Tensor | None = None, batch: Tensor | None = None) -> Dataset:
        """Other observations of the same task.

        Args:
            X: Inputs, (*b, n, d).
            y: Outputs, (*b, n).
            error_var: Known variances, (*b, n); needed where the task has them.
            batch: The batch of every result, (*b, n); needed where the task has them.

        Returns:
            A data set with the same name, unseen columns, categories and present batch.
        """
        if error_var is None and self.error_var is not None:
            raise InputError("The results of this task have known errors: give error_var of the new ones, too.")
        if batch is None and self.batch is not None:
            raise InputError("The results of this task are in batches: give batch of the new ones, too.")
        return replace(self, X=X, y=y, error_var=error_var, batch=batch)

    def with_point(self, x: Any, y: Any, error_var: Any = None, batch: Any = None) -> Dataset:
        """The data set with one more observation (of each problem).

        Args:
            x: Its inputs, (*b, d).
            y: Its output, (*b).
            error_var: Its known variance, (*b), if any.
            batch: Its batch, (*b), which becomes the present one; the present one by default.

        Returns:
            A data set with n + 1 observations.
        """
        x_ = torch.as_tensor(x, dtype=torch.float64, device=self.X.device).unsqueeze(-2)
        y_ = torch.as_tensor(y, dtype=torch.float64, device=self.y.device).unsqueeze(-1)
        one = (*self.batch_shape, 1)
        if x_.shape != (*one, self.d) or y_.shape != one:
            raise InputError(
                f"x must have shape {(*self.batch_shape, self.d)} and y {tuple(self.batch_shape)}, "
                f"but they have shapes {tuple(x_.squeeze(-2).shape)} and {tuple(y_.squeeze(-1).shape)}."
            )
        X, values = torch.cat([self.X, x_], dim=-2), torch.cat([self.y, y_], dim=-1)

        def and_last(before: Tensor, last: Any) -> Tensor:
            value = torch.as_tensor(last, dtype=torch.float64, device=self.y.device)
            return torch.cat([before, value.expand(self.batch_shape).unsqueeze(-1)], dim=-1)

        nothing, batches = torch.zeros_like(self.y), None
        if error_var is not None or self.error_var is not None:
            before = nothing if self.error_var is None else self.error_var
            error_var = and_last(before, 0.0 if error_var is None else error_var)
        if self.batch is not None:
            batches = and_last(self.batch, self.present if batch is None else batch)
        elif batch is not None:
            if self.n:
                raise InputError("The other results have no batch: name the batch of all of them, or of none.")
            batches = and_last(nothing, batch)
        present = self.present if batch is None else None
        return replace(self, X=X, y=values, error_var=error_var, batch=batches, present=present)

    @cached_property
    def has_shifts(self) -> bool:
        """Whether any row belongs to another batch than the present one, so that shifts between them count."""
        return self.batch is not None and bool((self.batch != self._now).any())

    @property
    def _now(self) -> Tensor:
        assert self.present is not None
        return self.present.unsqueeze(-1)

    @cached_property
    def shift_pattern(self) -> Tensor | None:
        """D, (*b, n, n): τ² D is the covariance of d_i = g(batch_i) − g(present), where g has variance τ².

            D_ij = c(batch_i, batch_j) + 1 − c(batch_i, present) − c(batch_j, present)      c: ``shift_correlation``

        It is 0 for every row of the present batch, and None where no batches are named.
        """
        return self.shift_pattern_of(slice(None))

    def shift_pattern_of(self, rows: slice) -> Tensor | None:
        """Some rows of ``shift_pattern``.

        Args:
            rows: Which.

        Returns:
            These rows of D, (*b, rows, n); None where no batches are named.
        """
        if self.batch is None:
            return None
        if not self.has_shifts:
            return torch.zeros_like(self.batch[..., rows]).unsqueeze(-1).expand(*self.batch_shape, -1, self.n)
        with_now = self.shift_correlation(self.batch, self._now).squeeze(-1)
        # in this order a row of the present batch gets zeros, to the last bit
        D = self.shift_correlation(self.batch[..., rows], self.batch) - with_now.unsqueeze(-2)
        return D + (1.0 - with_now[..., rows].unsqueeze(-1))

    def shift_correlation(self, a: Tensor, b: Tensor) -> Tensor:
        """c(a, b) = [a = b], or exp(−|a − b|/drift) where shifts drift slowly.

        Args:
            a: Batches, (*b, n).
            b: Batches, (*b, m).

        Returns:
            The correlations of their shifts, (*b, n, m).
        """
        apart = (a.unsqueeze(-1) - b.unsqueeze(-2)).abs()
        return (apart == 0).to(self.y) if self.drift is None else (-apart / self.drift).exp()

    @property
    def shift_groups(self) -> Tensor | None:
        """Groups of rows whose shifts are alike, (*b, n), by numbers: batches, or spans as long as a slow drift."""
        if self.batch is None or self.drift is None:
            return self.batch
        return (self.batch / self.drift).floor()


def _as_float64(value: Any, what: str) -> Tensor:
    if isinstance(value, Tensor):
        if value.dtype != torch.float64:
            raise InputError(f"{what} must be float64, but it is {value.dtype}. Convert it with .double().")
        return value.detach()
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{what} must be an array of numbers, but its rows differ in length.") from error
    if array.dtype.kind not in "fiu" or array.dtype in (np.float32, np.float16):
        raise InputError(f"{what} must be numbers of type float64, but its type is {array.dtype}.")
    return torch.tensor(array, dtype=torch.float64)


def _refuse(bad: Tensor, value: Tensor, must: str, remedy: str) -> None:
    """Raise an ``InputError`` that names the first bad entry of X (``bad`` has columns) or of y, if there is any."""
    if bool(bad.any()):
        index = tuple(int(i) for i in bad.nonzero()[0])
        of_X = must.startswith("X ")
        place = f"row {index[-2]}, column {index[-1]}" if of_X else f"row {index[-1]}"
        batch = index[:-2] if of_X else index[:-1]
        raise InputError(
            f"{must}, but {place}{f' of problem {batch}' if batch else ''} is {value[index].item():g} "
            f"({int(bad.sum())} such values). {remedy}"
        )


def _variances(error_var: Any, y: Tensor, what: str) -> Tensor:
    found = _as_float64(error_var, f"error_var of {what}")
    if found.shape != y.shape:
        raise InputError(
            f"error_var of {what} must have one variance per result, shape {tuple(y.shape)}, "
            f"but it has shape {tuple(found.shape)}."
        )
    if found.device != y.device:
        raise InputError(f"error_var of {what} must be on {y.device}, as y is, but it is on {found.device}.")
    remedy = "It is a variance, the square of a standard error; 0 where none is known."
    _refuse(~((found >= 0) & found.isfinite()), found, f"error_var of {what} must be finite and not negative", remedy)
    return found


def _batches(batch: Any, present: Any, y: Tensor, what: str) -> tuple[Tensor | None, Tensor | None]:
    """The batch of every row and the present one, checked."""
    if batch is None:
        if present is not None:
            raise InputError(f"present of {what} is one of its batches: give batch, the batch of every result, too.")
        return None, None
    numbers = "Batches are told by numbers, one per result: number them where they have names."
    try:
        found = _as_float64(batch.double() if isinstance(batch, Tensor) else batch, f"batch of {what}")
        now = None
        if present is not None:
            now = _as_float64(present.double() if isinstance(present, Tensor) else present, f"present of {what}")
            now = now.to(y.device)
    except InputError as error:
        raise InputError(f"{error} {numbers}") from error
    if found.shape != y.shape:
        raise InputError(
            f"batch of {what} must have one number per result, shape {tuple(y.shape)}, but it has shape "
            f"{tuple(found.shape)}."
        )
    if found.device != y.device:
        raise InputError(f"batch of {what} must be on {y.device}, as y is, but it is on {found.device}.")
    _refuse(~found.isfinite(), found, f"batch of {what} must be finite", numbers)
    if now is None:
        now = found[..., -1] if y.shape[-1] else found.sum(-1)
    if now.dim() > y.dim() - 1 or not bool(now.isfinite().all()):
        raise InputError(f"present of {what} must be the number of a batch, but it is {now.tolist()}.")
    return found, now.expand(y.shape[:-1])


def _length(drift: Any, what: str) -> float | None:
    if drift is None:
        return None
    if isinstance(drift, bool) or not isinstance(drift, int | float) or not 0 < drift < float("inf"):
        raise InputError(
            f"drift of {what} is a positive number, the time over which shifts stay alike, but it is {drift!r}."
        )
    return float(drift)


def error_vars(tasks: Sequence[Dataset]) -> Tensor | None:
    """The known variances of all results, task by task, 0 in a task that has none; None where no task has any."""
    if all(task.error_var is None for task in tasks):
        return None
    known = [torch.zeros_like(task.y) if task.error_var is None else task.error_var for task in tasks]
    return torch.cat(known, dim=-1)


def require_compatible(sources: Sequence[Dataset], target: Dataset | None) -> None:
    """Raise an ``InputError`` unless all tasks share inputs, batch shape and device, and every source has data."""
    tasks = {task_name(source, i): source for i, source in enumerate(sources)}
    if target is not None:
        tasks["the target"] = target
    first: tuple[str, tuple[Any, ...]] | None = None
    for name, task in tasks.items():
        if not isinstance(task, Dataset):
            raise InputError(f"{name} must be a headstart.Dataset, but it is a {type(task).__name__}.")
        if task.n == 0 and task is not target:
            raise InputError(f"{name} has no observations: leave it out.")
        shared = (task.d, tuple(task.batch_shape), task.X.device)
        first = first or (name, shared)
        for what, other, own in zip(("number of inputs", "batch shape", "device"), first[1], shared, strict=True):
            if own != other:
                raise InputError(f"All tasks need the same {what}, but {first[0]} has {other} and {name} has {own}.")


def require_unit_cube(task: Dataset, name: str) -> None:
    """Raise an ``InputError`` unless every input lies in [0, 1]: the bounds and priors of a fit assume it."""
    remedy = "Scale the inputs of all tasks together, or set FitOptions(unit_cube=False) if this is meant."
    outside = (task.X < -_CUBE_TOLERANCE) | (task.X > 1 + _CUBE_TOLERANCE)
    _refuse(outside, task.X, f"X of {name} must lie in the unit cube", remedy)


def task_name(source: Dataset, index: int) -> str:
    """How messages call source number ``index``."""
    name = source.name if isinstance(source, Dataset) else ""
    return f"source {index} ({name!r})" if name else f"source {index}"
