"""Which cases of a test are always run, and which by ``make test-all`` only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

__all__ = ["with_slow"]

_T = TypeVar("_T")


def with_slow(values: Iterable[_T], quick: Callable[[_T], bool] | Iterable[_T]) -> list[Any]:
    """All values as cases of a test, those that are not quick marked ``slow``; a tuple has a value per argument."""
    found = list(values)
    chosen = [value for value in found if quick(value)] if callable(quick) else list(quick)
    assert chosen, "a test has a case that is always run"
    assert all(value in found for value in chosen), "what is quick is one of the values"
    cases = [value if isinstance(value, tuple) else (value,) for value in found]
    marks = [() if value in chosen else pytest.mark.slow for value in found]
    return [pytest.param(*case, marks=mark) for case, mark in zip(cases, marks, strict=True)]
