"""Every exception headstart raises on purpose.

    HeadstartError
    ├── InputError(ValueError)            what came in is not what was asked for; nothing was computed
    ├── NumericalError(ArithmeticError)   the data are fine, the arithmetic was not
    └── MissingExtraError(ImportError)    an optional dependency is not installed

A message says what was expected, what came (value, shape, argument, task, row) and what to do.
"""

from __future__ import annotations

__all__ = ["HeadstartError", "InputError", "MissingExtraError", "NumericalError"]


class HeadstartError(Exception):
    """The root of the tree: catch this to catch them all."""


class InputError(HeadstartError, ValueError):
    """An argument that cannot be used. Raised where it enters, before any computation."""


class NumericalError(HeadstartError, ArithmeticError):
    """A computation that could not be carried out, such as a factorisation that failed in every restart."""


class MissingExtraError(HeadstartError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""
