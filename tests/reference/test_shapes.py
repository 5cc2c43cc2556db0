"""The tests run with the package's shape annotations switched on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from jaxtyping import Float, TypeCheckError
from tests.reference.shapes import checked, remembering
from torch import Tensor

from headstart.gp.linalg import cholesky
from headstart.models.chain.beliefs import BeliefsAt


def test_a_wrong_shape_is_an_error_while_the_tests_run() -> None:
    """A matrix that is not square does not reach the factorisation."""
    with pytest.raises(TypeCheckError):
        cholesky(torch.ones(2, 3, dtype=torch.float64), of="This")


def test_fields_that_contradict_each_other_are_an_error_while_the_tests_run() -> None:
    """Three points cannot have a mean of two values."""
    with pytest.raises(TypeCheckError):
        BeliefsAt(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))


@remembering(typechecker=checked)
def _row(X: Float[Tensor, "n d"], i: int, width: int, more: Float[Tensor, "d"] | None = None) -> Float[Tensor, "d"]:
    return X[i, :width]


@remembering(typechecker=checked)
def _head(X: Float[Tensor, "n d"], said: int, taken: int) -> Float[Tensor, "{said} d"]:
    return X[:taken]


def test_a_call_that_was_right_makes_no_other_right() -> None:
    """A wrong argument, by position or by name, and a wrong result are found after right ones of the same function."""
    X = torch.zeros(3, 2, dtype=torch.float64)
    for _ in range(2):
        assert _row(X, 0, 2, more=X[0]).shape == (2,)
        for bad in (X[0], X.long(), X.tolist()):
            with pytest.raises(TypeCheckError, match="parameters of"):
                _row(bad, 0, 2)
        with pytest.raises(TypeCheckError, match="parameters of"):
            _row(X, 0, 2, X[:, 0])
        with pytest.raises(TypeCheckError, match="parameters of"):
            _row(X, 0, 2, more=X[:, 0])
        with pytest.raises(TypeCheckError, match="return value of"):
            _row(X, 0, 1)
        assert _row(X, 0, width=2).shape == (2,)


def test_an_axis_computed_from_an_argument_is_looked_at_in_every_call() -> None:
    """The same shapes are right with one number and wrong with another."""
    X = torch.zeros(3, 2, dtype=torch.float64)
    assert _head(X, 2, 2).shape == (2, 2)
    with pytest.raises(TypeCheckError, match="return value of"):
        _head(X, 1, 2)


def test_a_function_made_anew_is_checked_like_the_one_before() -> None:
    """What is known of a function inside a function belongs to its code; each one made of it computes its own."""

    def made(factor: float) -> Any:
        @remembering(typechecker=checked)
        def scaled(X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
            return factor * X if factor else X[0]

        return scaled

    X = torch.ones(3, 2, dtype=torch.float64)
    assert [float(made(factor)(X).sum()) for factor in (1.0, 2.0)] == [6.0, 12.0]
    with pytest.raises(TypeCheckError, match="return value of"):
        made(0.0)(X)
    with pytest.raises(TypeCheckError, match="parameters of"):
        made(1.0)(X[0])
