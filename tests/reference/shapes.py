"""The run-time check of shapes that the tests switch on: what jaxtyping's import hook asks beartype to look at."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cached_property, partial, wraps
from types import CodeType, UnionType
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
    check = _known.get(thing.__code__)
    if check is None:
        check = _Check.of(thing, typechecker)
        # A function inside a function is made at every call of the outer one: what is known of it belongs to its code
        if "<locals>" in thing.__qualname__ and all(d in (inspect.Parameter.empty, None) for *_, d in check.arrays):
            _known[thing.__code__] = check
    return check.around(thing)


_known: dict[CodeType, _Check] = {}


class _Check:
    """The check of one function: every combination of forms is looked at once, or every call where that cannot do."""

    @classmethod
    def of(cls, function: Any, typechecker: Any) -> _Check:
        hints: dict[str, Any] = {}

        def noted(stub: F) -> F:
            hints.update({name: hint for name, hint in stub.__annotations__.items() if _is_array(hint)})
            return stub

        _at_every_call(function, typechecker=noted)  # knows how to read annotations that are strings
        return cls(function, hints, typechecker)

    def __init__(self, function: Any, hints: dict[str, Any], typechecker: Any) -> None:
        self.hints, self.typechecker = hints, typechecker
        self.right: set[Any] = set()
        self.arrays: list[tuple[int, str, Any]] = []
        if not hints:
            return
        self.like, self.signature = function, inspect.signature(function)
        self.parameters = list(self.signature.parameters.values())
        self.arrays = [(i, p.name, p.default) for i, p in enumerate(self.parameters) if p.name in hints]
        self.known = threading.local()
        kinds = {p.kind for p in self.parameters}
        self.at_every_call = inspect.Parameter.VAR_POSITIONAL in kinds or not all(map(_says_all, hints.values()))

    def around(self, function: Any) -> Any:
        """The function with its check."""
        if not self.hints:
            return function
        if self.at_every_call:
            return _at_every_call(function, typechecker=self.typechecker)
        arrays, right, known, returns_arrays = self.arrays, self.right, self.known, "return" in self.hints

        @wraps(function)
        def once(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            n = len(args)
            given = tuple([_form(args[i] if i < n else kwargs.get(name, default)) for i, name, default in arrays])
            if given not in right:
                known.call = function
                result = self.look(*args, **kwargs)
                right.add(given)
                if returns_arrays:
                    right.add((given, _form(result)))
                return result
            result = function(*args, **kwargs)
            if returns_arrays and (both := (given, _form(result))) not in right:
                known.call = lambda *_, **__: result
                self.look(*args, **kwargs)
                right.add(both)
            return result

        return once

    @cached_property
    def look(self) -> Any:
        """What calls the function, or says its result again, and looks at the arguments and at what is returned."""

        def stub(*args: Any, **kwargs: Any) -> Any:
            return self.known.call(*args, **kwargs)

        annotated = [p.replace(annotation=self.hints.get(p.name, p.empty)) for p in self.parameters]
        like: Any = wraps(self.like)(stub)
        result = self.hints.get("return", self.signature.empty)
        like.__signature__ = self.signature.replace(parameters=annotated, return_annotation=result)
        return _at_every_call(like, typechecker=self.typechecker)


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
