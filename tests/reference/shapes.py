"""The run-time check of shapes that the tests switch on: what jaxtyping's import hook asks beartype to look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin

from beartype import beartype
from jaxtyping import AbstractArray

F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    """The function with its array annotations checked at every call.

    Other annotations are mypy's business (beartype knows neither ``Self`` on a method nor a plain ``Protocol``).
    Collections are left out: beartype looks at one random item, and a test must not depend on chance.
    """
    function.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if _is_array(hint)}
    return beartype(function)


def _is_array(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    arguments = get_args(hint)
    if get_origin(hint) is list or Ellipsis in arguments:
        return False
    return any(_is_array(argument) for argument in arguments)
