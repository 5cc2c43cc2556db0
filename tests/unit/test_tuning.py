"""The numbers that shape decisions: frozen, plain, all in use, and replaceable before anything else is imported."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import headstart
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING, AutoTuning, PlainTuning

TUNINGS: dict[str, AutoTuning | PlainTuning] = {"AUTO_TUNING": AUTO_TUNING, "PLAIN_TUNING": PLAIN_TUNING}


@pytest.mark.parametrize("name", TUNINGS)
def test_every_number_is_read_somewhere(name: str) -> None:
    """A field that nothing reads would be a number that shapes nothing."""
    text = "\n".join(path.read_text() for path in Path(headstart.__file__).parent.rglob("*.py"))
    read = set(re.findall(rf"{name}\.(\w+)", text))
    assert {f.name for f in fields(TUNINGS[name])} <= read


@pytest.mark.parametrize("name", TUNINGS)
def test_numbers_are_plain(name: str) -> None:
    """Every field is an int, a float, or a tuple of them, so that it can be halved and doubled."""
    for f in fields(TUNINGS[name]):
        value = getattr(TUNINGS[name], f.name)
        assert all(type(one) in (int, float) for one in (value if isinstance(value, tuple) else (value,))), f.name


def test_a_number_can_be_replaced_before_anything_is_imported() -> None:
    """In a fresh process another value reaches what uses it."""
    program = """
import dataclasses
import headstart.tuning as tuning
tuning.AUTO_TUNING = dataclasses.replace(tuning.AUTO_TUNING, switch_rate=0.5)
from headstart.models.auto import candidates
print(candidates.AUTO_TUNING.switch_rate)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.strip() == "0.5"
