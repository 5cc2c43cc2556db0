"""Results that lie far from all others of their task: what becomes of them is said, for they may be slips.

±inf       counts as the worst or best finite result of its own task
outliers   are pulled in towards the others by the model's output map (``data.warp``), in the order they were in
NaN        is no result
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.models.model import Prior
from headstart.sources.alignment import Alignment, Decision
from headstart.sources.raw import INFINITE

_LISTED = 5  # more than this are counted


def with_outliers(alignment: Alignment, outliers: Sequence[Bool[Tensor, "_"]]) -> Alignment:
    """The alignment with a decision, which is a warning, on every source that has outliers.

    ``outliers`` says of every row of a source whether it is one (``Prior.outliers``); none at all says that none is.
    """
    found = []
    for task, rows, data, mask in zip(
        alignment.tasks, alignment.rows, alignment.datasets, outliers, strict=bool(outliers)
    ):
        numbers = None if task.numbers is None else [task.numbers[i] for i in rows]
        if told := _in_words(data, mask, task.y[list(rows)], numbers, "row", task.origin):
            found.append(Decision(task.name, "", told, warning=True))
    return replace(alignment, decisions=(*alignment.decisions, *found)) if found else alignment


def outliers_in_words(
    prior: Prior, target: Dataset, values: Sequence[float], numbers: Sequence[int], place: str
) -> str:
    """What becomes of the target's outliers, "" if it has none.

    ``values`` are its results as they were recorded, ``numbers`` those of the rows or trials, called ``place``.
    """
    mask = torch.from_numpy(own_outliers(prior, target))
    return _in_words(target, mask, np.asarray(values, dtype=np.float64), numbers, place)


def own_outliers(prior: Prior, target: Dataset) -> NDArray[np.bool_]:
    """Which of the target's results lie far from all others: a minority of them, or none.

    Next to a past in other units the first few all seem to be far from each other.
    """
    warp = prior.warp_of(target)
    mask = np.zeros(target.n, dtype=bool) if warp is None else np.asarray(warp.outliers(target).numpy())
    return mask if 2 * mask.sum() < target.n else np.zeros_like(mask)


def infinite_in_words(values: Sequence[float]) -> str:
    """How many results are infinite and what they count as, "" if none is."""
    count = int((np.abs(values) >= INFINITE).sum())
    return f"{count} of {len(values)} results are infinite and count as the worst or best finite one" if count else ""


def _in_words(
    data: Dataset,
    mask: Bool[Tensor, "n"],
    values: NDArray[np.float64],
    numbers: Sequence[int] | None,
    place: str,
    file: str = "",
) -> str:
    """As in "2 of 40 results lie far from all others (worst 1e+09): they count as little worse than the rest"."""
    y, middle = data.y.numpy(), float(data.y.median())
    far = [i for i in np.argsort(-np.abs(y - middle), kind="stable").tolist() if mask[i]]
    parts = []
    for side, extreme, found in (
        ("worse", "worst", [i for i in far if y[i] > middle]),
        ("better", "best", [i for i in far if y[i] < middle]),
    ):
        if not found:
            continue
        told = f"{extreme} {values[found[0]]:.3g}"
        if numbers is not None:
            listed = [f"{place} {numbers[i]}: {values[i]:.6g}" for i in found[:_LISTED]]
            more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
            told = ", ".join([*([file] if file else []), *listed, *more])
        lie, counts = ("lies", "it counts") if len(found) == 1 else ("lie", "they count")
        far_off = f"{len(found)} of {data.n} results {lie} far from all others ({told})"
        parts.append(f"{far_off}: {counts} as little {side} than the rest")
    return "; ".join(parts)
