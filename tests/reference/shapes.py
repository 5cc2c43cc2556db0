"""The run-time check of shapes that the tests switch on: what jaxtyping's import hook asks beartype to look at."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache, partial, wraps
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import jaxtyping
import numpy as np
from beartype import beartype
from jaxtyping import AbstractArray
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])

_at_every_call = jaxtyping.jaxtyped


def install(package: str) -> None:
    """Check the package from here on: before anything of it is imported."""
    vars(jaxtyping)["jaxtyped"] = remembering  # by this name the hook decorates
    jaxtyping.install_import_hook(package, f"{__name__}.{checked.__name__}")


def checked(function: F) -> F:
    """The function with its array annotations checked at every call.

    Other annotations are mypy's business (beartype knows neither ``Self`` on a method nor a plain ``Protocol``).
    Collections are left out: beartype looks at one random item, and a test must not depend on chance.
    """
    function.__annotations__ = {name: hint for name, hint in function.__annotations__.items() if _is_array(hint)}
    return beartype(function)


def remembering(thing: Any = None, *, typechecker: Any) -> Any:
    """``jaxtyping.jaxtyped``, for which a call like one that was right before is right, and not looked at again.

    Types, shapes and dtypes of what is annotated as an array decide, and nothing else; where more does, as in an axis
    computed from another argument, every call is looked at. For all functions that is three quarters of a test's time.
    """
    if thing is None:
        return partial(remembering, typechecker=typechecker)
    if isinstance(thing, type):
        if is_dataclass(thing) and not hasattr(thing.__init__, "__wrapped__"):
            thing.__init__ = remembering(thing.__init__, typechecker=typechecker)  # type: ignore[method-assign]
        return thing
    hints: dict[str, Any] = {}

    def noted(stub: F) -> F:
        hints.update({name: hint for name, hint in stub.__annotations__.items() if _is_array(hint)})
        return stub

    _at_every_call(thing, typechecker=noted)  # knows how to read annotations that are strings
    if not hints:
        return thing
    kinds = {p.kind for p in inspect.signature(thing).parameters.values()}
    if inspect.Parameter.VAR_POSITIONAL in kinds or not all(map(_says_all, hints.values())):
        return _at_every_call(thing, typechecker=typechecker)
    return _once(thing, hints, typechecker)


def _once(function: Any, hints: dict[str, Any], typechecker: Any) -> Any:
    """The function with every combination of forms looked at once."""
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    arrays = [(i, p.name, p.default) for i, p in enumerate(parameters) if p.name in hints]
    returns_arrays = "return" in hints
    known = threading.local()

    @cache
    def look(*, returned: bool) -> Any:
        """At the arguments alone, or at what is returned for them as well, with the function's own annotations."""

        def stub(*args: Any, **kwargs: Any) -> Any:
            return known.result

        annotated = [p.replace(annotation=hints.get(p.name, p.empty)) for p in parameters]
        like: Any = wraps(function)(stub)
        result = hints["return"] if returned else signature.empty
        like.__signature__ = signature.replace(parameters=annotated, return_annotation=result)
        return _at_every_call(like, typechecker=typechecker)

    right: set[Any] = set()

    @wraps(function)
    def once(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        n = len(args)
        given = tuple([_form(args[i] if i < n else kwargs.get(name, default)) for i, name, default in arrays])
        if given not in right:
            known.result = None
            look(returned=False)(*args, **kwargs)
            right.add(given)
        result = function(*args, **kwargs)
        if returns_arrays and (both := (given, _form(result))) not in right:
            known.result = result
            look(returned=True)(*args, **kwargs)
            right.add(both)
        return result

    return once


def _form(value: Any) -> Any:
    """All that a hint of which ``_says_all`` holds looks at."""
    if isinstance(value, Tensor | np.ndarray):
        return type(value), value.shape, value.dtype
    return tuple([_form(part) for part in value]) if type(value) is tuple else type(value)


def _is_array(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return True
    arguments = get_args(hint)
    if get_origin(hint) is list or Ellipsis in arguments:
        return False
    return any(_is_array(argument) for argument in arguments)


def _says_all(hint: Any) -> bool:
    """Whether the hint is of arrays by shape alone, classes, and tuples and unions of these."""
    if isinstance(hint, type) and issubclass(hint, AbstractArray):
        return "{" not in hint.dim_str
    if get_origin(hint) in (tuple, UnionType):
        return all(_says_all(argument) for argument in get_args(hint) if argument is not Ellipsis)
    return isinstance(hint, type) and not get_args(hint)
