"""Which version of the program a result is of."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path


@cache
def commit() -> str:
    """The short name of the commit that the program was started from, empty outside a repository."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return ""
    return found.stdout.strip()
