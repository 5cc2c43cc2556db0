"""The exception tree."""

from __future__ import annotations

import pytest

from headstart import HeadstartError, InputError, MissingExtraError, NumericalError


@pytest.mark.parametrize(
    ("error", "builtin"),
    [(InputError, ValueError), (NumericalError, ArithmeticError), (MissingExtraError, ImportError)],
)
def test_every_error_is_ours_and_a_builtin(error: type[Exception], builtin: type[Exception]) -> None:
    """Each error can be caught as headstart's, and as the builtin that a stranger to headstart would catch."""
    assert issubclass(error, HeadstartError)
    assert issubclass(error, builtin)
