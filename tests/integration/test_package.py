"""What is published: both archives are built, looked into, and the wheel is used where there is no checkout.

``make release`` names the folder of the archives that are to be uploaded, so that these are what is tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.integration.pages import PROJECT, ROOT

pytestmark = pytest.mark.slow

NAME = f"headstart-{PROJECT['version']}"
MOST_BYTES = 1_500_000  # of the source archive
STUDY = """
import optuna
from headstart import TransferSampler

def objective(trial, shift=0.1):
    return (trial.suggest_float("x", 0, 1) - 0.3 - shift) ** 2

past = optuna.create_study(study_name="last year")
past.optimize(lambda trial: objective(trial, shift=0.0), n_trials=12)
study = optuna.create_study(sampler=TransferSampler(sources=[past], seed=0))
study.optimize(objective, n_trials=4)
print(study.best_value)
"""
PAGE = """
from pathlib import Path
from starlette.testclient import TestClient
from headstart.web.app import make_app

with TestClient(make_app(Path(), host="127.0.0.1", port=80, token=""), base_url="http://127.0.0.1") as client:
    page = client.get("/")
    print(page.status_code, "begin" in page.text, *(client.get(f"/static/{name}").status_code for name in STATIC))
"""


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the source archive and of the wheel that was built from it."""
    if given := os.environ.get("HEADSTART_DIST"):
        return ROOT / given
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def python(archives: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel, and of the tests' environment all that is no headstart."""
    home = tmp_path_factory.mktemp("fresh")
    venv.create(home, symlinks=True)
    found = home / "bin" / "python"
    wheel = archives / f"{NAME}-py3-none-any.whl"
    _run(sys.executable, "-m", "pip", "--python", found, "install", "--no-deps", "--no-index", wheel, cwd=home)
    (packages,) = home.glob("lib/python*/site-packages")
    # A path in a .pth file is searched last, and .pth files there, as that of an editable install, are not read
    paths = dict.fromkeys(sysconfig.get_path(scheme) for scheme in ("purelib", "platlib"))
    (packages / "dependencies.pth").write_text("\n".join(paths), encoding="utf-8")
    return found


def test_the_archives_have_what_they_should(archives: Path) -> None:
    """The source archive is small and has no tests or results; the wheel has all of the package, and nothing else."""
    source, wheel = archives / f"{NAME}.tar.gz", archives / f"{NAME}-py3-none-any.whl"
    assert sorted(archives.iterdir()) == sorted([source, wheel])
    assert source.stat().st_size < MOST_BYTES
    with tarfile.open(source) as archive:
        inside = {name.split("/")[1] for name in archive.getnames()}
    written = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff"}
    assert inside == written | {"src", "docs", "examples", "pyproject.toml", "PKG-INFO", ".gitignore"}
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/headstart").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"headstart/py.typed", "headstart/demo/data/past_runs.csv.gz", "headstart/web/static/desk.js"} <= package
    with ZipFile(wheel) as archive:
        about = {name for name in archive.namelist() if name.startswith(f"{NAME}.dist-info/")}
        assert set(archive.namelist()) - about == package
        metadata = message_from_bytes(archive.read(f"{NAME}.dist-info/METADATA"))
    assert f"{NAME}.dist-info/licenses/LICENSE" in about
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("Provides-Extra", ())) == set(PROJECT["optional-dependencies"])
    listed = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    needed = {canonicalize_name(Requirement(one).name) for one in metadata.get_all("Requires-Dist", ())}
    assert needed == {canonicalize_name(Requirement(one).name) for one in listed}
    _run(sys.executable, "-m", "twine", "check", "--strict", source, wheel, cwd=archives)


def test_the_wheel_stands_alone(python: Path, tmp_path: Path) -> None:
    """It is the wheel that is imported, with its version; Optuna's sampler and the page's files are all there."""
    where = _run(python, "-c", "import headstart; print(headstart.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(python.parents[1])
    assert PROJECT["version"] in _run(python.with_name("headstart"), "--version", cwd=tmp_path)
    assert float(_run(python, "-c", STUDY, cwd=tmp_path)) < 0.02
    static = [path.name for path in (ROOT / "src/headstart/web/static").iterdir()]
    assert _run(python, "-c", f"STATIC = {static!r}{PAGE}", cwd=tmp_path).split() == [
        "200",
        "True",
        *["200"] * len(static),
    ]


def test_the_wheel_runs_the_demonstration(python: Path, tmp_path: Path) -> None:
    """One command, one picture."""
    said = _run(python.with_name("headstart"), "demo", "--quick", cwd=tmp_path)
    assert "median of 2 runs" in said
    assert "Picture: headstart-demo.png" in said
    assert (tmp_path / "headstart-demo.png").read_bytes().startswith(b"\x89PNG")


def test_the_wheel_runs_a_campaign(python: Path, tmp_path: Path) -> None:
    """From past files to the table of suggestions, with nothing but the wheel."""
    shutil.copytree(ROOT / "examples/past", tmp_path / "past")
    files = sorted((tmp_path / "past").glob("*.csv"))
    command = python.with_name("headstart")
    _run(command, "init", *files, "--objective", "yield", "--maximize", cwd=tmp_path)
    _run(command, "suggest", "-n", "2", cwd=tmp_path)
    rows = (tmp_path / "current.csv").read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) == 3


def _run(*command: str | Path, cwd: Path) -> str:
    """What the command prints, run where nothing leads back to the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
