"""The cache of fits: numbers that cannot run code, files that are whole or missing, keys that name all that counts."""

from __future__ import annotations

import ast
import errno
import os
import pickle
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import quick

import headstart
from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO, FAMILY, RGPE, STAR
from headstart.models.fitcache import (
    FIT_SCHEMA,
    Arrays,
    FitCache,
    fit_as_arrays,
    fit_from_arrays,
    fit_key,
    options_in_key,
)
from headstart.models.learning import LearnContext
from headstart.models.star.independent import fit_independently

ARRAYS = {"a": np.arange(3.0), "flags": np.array([True, False]), "n": np.asarray(7), "note": np.asarray("word")}


def source(seed: int, n: int = 12, name: str = "") -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(3 * X[:, 0]) + 0.3 * torch.rand(n, generator=generator, dtype=torch.float64), name)


def as_they_are(arrays: Arrays) -> Arrays:
    return arrays


# ── the schema of a fit ───────────────────────────────────────────────────────────────────────────────────────────

# What a fit runs through, and what it was when FIT_SCHEMA was last considered. If the test below fails, raise
# FIT_SCHEMA if the change gives other numbers for the same data and options, and in any case write down what
# ``python -m tests.unit.models.test_fitcache`` prints.
FITTING = (
    "gp/**/*.py",
    "models/chain/*.py",
    "data/replicates.py",
    "data/thinning.py",
    "models/star/independent.py",
    "models/star/weights.py",
    "models/auto/likeness.py",
)
FINGERPRINT = "4:16fb02049487fc50"


def fingerprint() -> str:
    """The schema, and a hash of the fitting code without docstrings, comments and blank lines."""
    root, digest = Path(headstart.__file__).parent, sha256()
    for path in sorted(path for pattern in FITTING for path in root.glob(pattern)):
        digest.update("\n".join(_code(path.read_text())).encode())
    return f"{FIT_SCHEMA}:{digest.hexdigest()[:16]}"


def _code(text: str) -> list[str]:
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.split("  # ")[0].rstrip() for i, line in enumerate(text.splitlines(), 1) if i not in texts]
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def test_the_schema_was_considered_when_the_fitting_code_changed() -> None:
    """Otherwise a folder of fits would survive a change of the fit."""
    assert fingerprint() == FINGERPRINT, "see FITTING"


def test_the_fingerprint_sees_code_and_nothing_else() -> None:
    """Comments, docstrings and blank lines are not code."""
    assert _code('def f(x):\n    """Say."""\n\n    return x + 1  # one\n') == ["def f(x):", "    return x + 1"]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    """Values, shapes and types; another cache of the same folder, also a pickled one, sees them."""
    one = FitCache(tmp_path / "new" / "folder")
    one.put("k", ARRAYS)
    found = pickle.loads(pickle.dumps(FitCache(tmp_path / "new" / "folder"))).get("k", as_they_are)
    assert {name: (v.tolist(), v.dtype) for name, v in found.items()} == {
        name: (v.tolist(), v.dtype) for name, v in ARRAYS.items()
    }
    assert one.get("other", as_they_are) is None
    assert [path.name for path in one.folder.iterdir()] == ["k.npz"]


RAN: list[str] = []


def run_me() -> None:
    RAN.append("it ran")


class Running:
    """What a pickle may do when it is read."""

    def __reduce__(self) -> Any:
        return (run_me, ())


@pytest.mark.parametrize(
    "damage", ["empty", "text", "pickle", "objects", "array", "cut", "changed", "refused", "folder"]
)
def test_what_is_no_entry_counts_as_missing_and_is_replaced(damage: str, tmp_path: Path) -> None:
    """With the file's name in the log; nothing in it is run."""
    said: list[str] = []
    cache = FitCache(tmp_path, said.append)
    cache.put("k", ARRAYS)
    path = tmp_path / "k.npz"
    whole = path.read_bytes()
    place = whole.index(np.arange(3.0).tobytes())
    match damage:
        case "objects":
            np.savez(path, a=np.array([Running()], dtype=object))
        case "array":
            with path.open("wb") as file:
                np.save(file, np.ones(2))
        case "folder":
            path.unlink()
            path.mkdir()
        case _:
            changed = whole[:place] + b"????" + whole[place + 4 :]
            contents = {"text": b"no entry", "pickle": pickle.dumps(Running()), "cut": whole[:-9], "changed": changed}
            path.write_bytes(whole if damage == "refused" else contents.get(damage, b""))

    def read(arrays: Arrays) -> Arrays:
        if damage == "refused":
            raise InputError("no fit")
        return arrays

    assert cache.get("k", read) is None
    assert len(said) == 1
    assert "k.npz" in said[0]
    assert RAN == []
    if damage != "folder":
        cache.put("k", ARRAYS)
        assert cache.get("k", as_they_are) is not None
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("reason", [errno.EROFS, errno.ENOSPC])
def test_a_folder_that_cannot_be_written_is_said_once(
    reason: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full or read-only: nothing more is written, no file is left, and what is there is still read."""
    said: list[str] = []
    cache = FitCache(tmp_path, said.append)
    cache.put("there", ARRAYS)

    def refusing(*_: Any, **__: Any) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(np, "savez", refusing)
    cache.put("k", ARRAYS)
    cache.put("l", ARRAYS)
    assert [path.name for path in tmp_path.iterdir()] == ["there.npz"]
    assert cache.get("there", as_they_are) is not None
    assert len(said) == 1
    assert os.strerror(reason) in said[0]


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """That is somebody's mistake, and is said before anything is learnt."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        FitCache(tmp_path / "file" / "cache")


# ── keys and fits ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_keys_differ_where_results_may() -> None:
    """Data, columns that were not recorded, errors, options and seeds; but not names and what concerns the target."""
    one, options = source(0), FitOptions()

    def key(task: Dataset, fit: FitOptions = options, seed: int = 0) -> str:
        return fit_key("source", [task], options_in_key(fit), seed)

    keys = {
        key(one),
        key(replace(one, y=one.y + 1e-12)),
        key(replace(one, X=one.X + 1e-12)),
        key(replace(one, unseen=(1,))),
        key(replace(one, categories=((0, 1),))),
        key(replace(one, error_var=0.1 + 0 * one.y)),
        key(replace(one, error_var=0.2 + 0 * one.y)),
        key(one, replace(options, restarts=2)),
        key(one, seed=1),
        fit_key("level", [one], options_in_key(options), 0),
    }
    assert len(keys) == 10
    assert key(replace(one, name="other")) == key(one)
    assert key(one, replace(options, draws=0, unit_cube=False)) == key(one)


def test_a_fit_comes_back_or_is_refused() -> None:
    """All of params and report; a missing, misshapen or impossible number is no fit of the source."""
    alone = fit_independently((source(0),), quick(STAR, 2), 0, LearnContext())
    params, report = alone.layers[0].params, alone.reports[0]
    arrays = fit_as_arrays(params, report)
    again, told = fit_from_arrays(arrays, source(0), report.task)
    assert torch.equal(again.lengthscale, params.lengthscale)
    assert str(told) == str(report)
    bad: list[dict[str, Any]] = [
        {k: v for k, v in arrays.items() if k != "params.noise_var"},
        {**arrays, "params.lengthscale": np.ones(3)},
        {**arrays, "params.lengthscale": -arrays["params.lengthscale"]},
        {**arrays, "params.outputscale": np.array(np.nan)},
        {**arrays, "params.offset": np.zeros(1)},
        {**arrays, "params.noise_var": np.array(1, dtype=np.int64)},
        {**arrays, "report.best": np.zeros(2, dtype=np.int64)},
        {**arrays, "report.objective": np.zeros(7)},
    ]
    for one in bad:
        with pytest.raises((ValueError, KeyError, TypeError)):  # the last from the shape checks of the tests
            fit_from_arrays(one, source(0), "")


# ── models with a cache ───────────────────────────────────────────────────────────────────────────────────────────


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.npz")}


@pytest.mark.parametrize("name", ["AUTO", "SHGP", "BHGP", "STAR", "RGPE"])
def test_a_model_from_the_cache_is_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted a second time, and every report and prediction is what it was without a cache."""
    model = quick(FAMILY[name])
    sources = [source(0, name="a"), source(1, name="b"), source(2, 9, "c")]
    context = LearnContext(FitCache(tmp_path))
    first = model.learn(sources)
    model.learn(sources, context=context)
    before = _files(tmp_path)
    monkeypatch.setattr(FitCache, "put", None)
    second = model.learn(sources, context=context)
    assert _files(tmp_path) == before
    assert [str(report) for report in second.fit_reports] == [str(report) for report in first.fit_reports]
    assert [report.task for report in first.fit_reports][:3] == ["source 0 ('a')", "source 1 ('b')", "source 2 ('c')"]
    X = torch.rand(5, 2, dtype=torch.float64)
    torch.testing.assert_close(second.condition().predict(X), first.condition().predict(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", [AUTO, STAR, RGPE])
def test_one_more_source_is_fitted_alone(model: Any, tmp_path: Path) -> None:
    """Its entry is the only new one of a source; names do not matter. AUTO also pools and compares all of them."""
    own, context = quick(model).using(output_map=OutputMap.NONE), LearnContext(FitCache(tmp_path))
    own.learn([source(i) for i in range(6)], context=context)
    before = set(_files(tmp_path))
    own.learn([replace(source(i), name="renamed") for i in range(6)] + [source(9)], context=context)
    of_all = len(before) - 6
    assert 2 <= of_all <= 3 if model is AUTO else of_all == 0
    assert len(set(_files(tmp_path)) - before) <= 1 + (3 if model is AUTO else 0)


def test_a_constant_source_has_the_scale_of_the_others_in_its_key(tmp_path: Path) -> None:
    """It is fitted in the others' units, so with other sources it is another entry."""
    flat, context = Dataset(source(0).X, torch.ones(12, dtype=torch.float64)), LearnContext(FitCache(tmp_path))
    fit_independently((flat, source(1)), quick(STAR), 0, context)
    fit_independently((flat, replace(source(1), y=10 * source(1).y)), quick(STAR), 0, context)
    assert len(_files(tmp_path)) == 4


def test_every_entry_of_auto_is_looked_at_before_it_is_believed(tmp_path: Path) -> None:
    """Those of the sources, of the chain, and of the comparison: one of other shapes is fitted anew and replaced."""
    said: list[str] = []
    context, sources = LearnContext(FitCache(tmp_path, said.append)), [source(0), source(1), source(2, 9)]
    quick(AUTO).learn(sources, context=context)
    before = {path: dict(np.load(path)) for path in tmp_path.glob("*.npz")}
    for path, arrays in before.items():
        wrong: dict[str, Any] = {name: np.concatenate([v.ravel(), v.ravel()]) for name, v in arrays.items()}
        np.savez(path, **wrong)
    quick(AUTO).learn(sources, context=context)
    assert len(before) == len(said) == 6
    for path, arrays in before.items():
        assert {name: v.shape for name, v in np.load(path).items()} == {name: v.shape for name, v in arrays.items()}


if __name__ == "__main__":
    print(f'FINGERPRINT = "{fingerprint()}"')
