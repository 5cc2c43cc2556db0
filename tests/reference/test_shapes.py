"""The tests run with the package's shape annotations switched on."""

from __future__ import annotations

import pytest
import torch
from jaxtyping import TypeCheckError

from headstart.gp.linalg import cholesky
from headstart.models.chain.beliefs import At


def test_a_wrong_shape_is_an_error_while_the_tests_run() -> None:
    """A matrix that is not square does not reach the factorisation."""
    with pytest.raises(TypeCheckError):
        cholesky(torch.ones(2, 3, dtype=torch.float64), of="This")


def test_fields_that_contradict_each_other_are_an_error_while_the_tests_run() -> None:
    """Three points cannot have a mean of two values."""
    with pytest.raises(TypeCheckError):
        At(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(2, dtype=torch.float64))
