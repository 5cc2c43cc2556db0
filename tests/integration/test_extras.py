"""Whoever uses what an extra is for, and does not have it, is told which one to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from tests.integration.pages import PROJECT, ROOT

_COMMAND = "from headstart.cli.main import app; app()"
_PAST = "from headstart.sources.past import read_sources; read_sources([{!r}], objective='loss')"
_ON_RAY = (
    "import torch; from headstart import STAR, Dataset; X = torch.rand(9, 1, dtype=torch.float64); "
    "STAR.learn([Dataset(X[:n], X[:n, 0]) for n in (5, 9)], n_jobs='ray')"
)
# extra, module, program, arguments
CASES = [
    ("ax", "ax", "import headstart.platforms.ax", ""),
    ("demo", "sklearn", _COMMAND, "demo"),
    ("excel", "openpyxl", _COMMAND, "check past.xlsx --objective loss"),
    ("excel", "openpyxl", "from headstart.sources.files.sheet_rows import new_workbook; new_workbook(['loss'])", ""),
    ("parquet", "pyarrow", _PAST.format("past.parquet"), ""),
    ("postgresql", "psycopg2", _PAST.format("postgresql+psycopg2://me:secret@127.0.0.1:1/db"), ""),
    ("mcp", "mcp", _COMMAND, "mcp ."),
    ("ray", "ray", _ON_RAY, ""),
    *(("web", name, _COMMAND, "serve") for name in ("jinja2", "python_multipart", "starlette", "uvicorn")),
]
FALLS_BACK = {"fast"}  # without numba everything goes through torch, as tests/unit/gp/test_compiled.py shows


@pytest.mark.parametrize(("extra", "module", "program", "arguments"), CASES)
def test_what_is_missing_is_named_with_its_extra(
    extra: str, module: str, program: str, arguments: str, tmp_path: Path
) -> None:
    """In one line of a command and by ``MissingExtraError`` in Python; no password is said."""
    table = pd.DataFrame({"x": [0.1, 0.5, 0.9], "loss": [1.0, 0.0, 1.0]})
    table.to_excel(tmp_path / "past.xlsx", index=False)
    table.to_parquet(tmp_path / "past.parquet")
    without = f"import sys; sys.modules[{module!r}] = None; {program}"
    done = subprocess.run(
        [sys.executable, "-c", without, *arguments.split()],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    *_, last = done.stderr.strip().splitlines()
    said = "headstart: " if program == _COMMAND else "headstart.errors.MissingExtraError: "
    assert last.startswith(said), done.stderr
    assert f"pip install 'headstart[{extra}]'" in last
    assert "secret" not in last


def test_every_extra_has_a_case() -> None:
    """A new one comes with an error that names it."""
    assert {extra for extra, *_ in CASES} | FALLS_BACK == set(PROJECT["optional-dependencies"])
