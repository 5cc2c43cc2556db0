"""Every public name says what its arguments are and what it returns, and is on the page of the reference."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import headstart

REFERENCE = Path(__file__).parents[2] / "docs" / "api.md"


def _missing(function: Callable[..., Any], doc: str) -> Iterator[str]:
    """Parameters without a line under Args, and Returns where it returns something and says nothing of it."""
    signature = inspect.signature(function)
    yield from _undescribed([name for name in signature.parameters if name not in ("self", "cls")], doc)
    if signature.return_annotation not in ("None", None, inspect.Signature.empty) and "Returns:" not in doc:
        yield "Returns"


def _undescribed(names: list[str], doc: str) -> Iterator[str]:
    section = re.split(r"Returns:|Raises:", doc.partition("Args:")[2])[0]
    for name in names:
        if not name.startswith("_") and not re.search(rf"^ +{name}:", section, re.MULTILINE):
            yield name


def _of_class(public: type) -> Iterator[str]:
    own = [base for base in public.__mro__ if base.__module__.startswith("headstart.")]
    docs = [(base.__doc__ or "").replace("Attributes:", "Args:") for base in own]
    sections = [re.split(r"Returns:|Raises:", doc.partition("Args:")[2])[0] for doc in docs]
    names: list[str] = []
    if dataclasses.is_dataclass(public):
        names = [field.name for field in dataclasses.fields(public) if field.init]
    elif "__init__" in vars(public) and not issubclass(public, Enum):
        names = list(inspect.signature(public).parameters)
    yield from (f"{public.__name__}: {name}" for name in _undescribed(names, "Args:" + "".join(sections)))
    for name, member in ((name, member) for base in own for name, member in vars(base).items()):
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not name.startswith("_") and inspect.isfunction(function):
            # what an override has to say in one line, the method that it overrides says in full
            same = [vars(base)[name].__doc__ or "" for base in public.__mro__ if name in vars(base)]
            lacking = min((list(_missing(function, doc)) for doc in same), key=len)
            yield from (f"{public.__name__}.{name}: {what}" for what in lacking)


def test_a_public_name_documents_its_arguments_and_its_result() -> None:
    """Fields of a dataclass, arguments of constructors, methods and functions, and results; a property says it all."""
    missing: list[str] = []
    for name in headstart.__all__:
        public = getattr(headstart, name)
        if inspect.isclass(public) and not issubclass(public, BaseException):
            missing += _of_class(public)
        elif inspect.isfunction(public):
            missing += (f"{name}: {what}" for what in _missing(public, public.__doc__ or ""))
    assert missing == []


def test_the_reference_has_every_public_name_once_and_members_that_exist() -> None:
    """In its page ``members`` says which of a class are meant for users; all of them are there."""
    blocks = re.split(r"^::: headstart\.(?!platforms)", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    names = [re.split(r"\W", block, maxsplit=1)[0] for block in blocks]
    assert sorted(names) == headstart.__all__
    listed = {
        f"{name}.{member}"
        for name, block in zip(names, blocks, strict=True)
        for members in re.findall(r"members: \[(.*)\]", block)
        for member in members.split(", ")
    }
    assert listed
    assert {one for one in listed if not hasattr(getattr(headstart, one.split(".")[0]), one.split(".")[1])} == set()
