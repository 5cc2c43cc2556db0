"""The exception tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution

import headstart
from headstart import (
    GPBO,
    Dataset,
    HeadstartError,
    InputError,
    MissingExtraError,
    NoPlaceError,
    NoPointLeftError,
    NumericalError,
    Space,
    errors,
    suggest,
)
from headstart.decide.domain import Candidates

BY_NAME = [
    errors.MissingDataError,
    errors.NoPlaceError,
    errors.NoPointLeftError,
    errors.NotComparableError,
    errors.NothingInCommonError,
    errors.UnknownParameterError,
    errors.UnusableSourceError,
    errors.UnwritableError,
]


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        *((error, InputError) for error in BY_NAME),
        (InputError, ValueError),
        (NumericalError, ArithmeticError),
        (MissingExtraError, ImportError),
    ],
)
def test_every_error_is_ours_and_a_builtin(error: type[Exception], builtin: type[Exception]) -> None:
    """Each error can be caught as headstart's, and as the builtin that a stranger to headstart would catch."""
    assert issubclass(error, HeadstartError)
    assert issubclass(error, builtin)


def test_the_tree_is_drawn_whole() -> None:
    """Every class of the module stands in its docstring."""
    assert all(f" {name}" in str(errors.__doc__) for name in vars(errors) if name.endswith("Error"))


def test_bad_input_is_not_control_flow() -> None:
    """Who goes on after an error names the one that is meant: any other ``InputError`` is the user's to see."""
    modules = {path: path.read_text() for path in sorted(Path(headstart.__file__).parent.rglob("*.py"))}
    caught = [
        f"{path}:{node.lineno}"
        for path, text in modules.items()
        if re.search(r"except[^:]*\bInputError\b", text)  # the others need not be parsed
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler) and node.type is not None
        if "InputError" in {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)}
        if not isinstance(node.body[-1], ast.Raise)  # who only says more of it does not go on
    ]
    assert caught == []


@pytest.mark.parametrize("row", [{"x": "warm", "c": "u"}, {"x": 0.0, "c": "u"}, {"x": 0.5, "c": "w"}, {"c": "u"}])
def test_a_row_without_a_place_is_called_that(row: dict[str, object]) -> None:
    """No number, none on a log axis, no category, no value at all."""
    space = Space.of({"x": FloatDistribution(1e-3, 1.0, log=True), "c": CategoricalDistribution(("u", "v"))})
    with pytest.raises(NoPlaceError):
        space.encode([row])


def test_when_no_point_is_left_it_is_called_that() -> None:
    """Both at the beginning, where points are laid out, and later, where they are compared."""
    X = torch.linspace(0, 1, 4, dtype=torch.float64).unsqueeze(-1)
    for n in (0, 4):
        posterior = GPBO.learn().condition(Dataset(X[:n], X[:n, 0]))
        with pytest.raises(NoPointLeftError, match="There is no point left to suggest"):
            suggest(posterior, domain=Candidates(X), avoid=X)
