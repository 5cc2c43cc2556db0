"""When a growing target is refitted, and its posterior in between."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from tests.direct import dense_scores
from tests.problems import params_for, points, quick, transfer_problem
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, SHGP, Dataset
from headstart.decide.suggest import suggest
from headstart.gp import fit as fitting
from headstart.gp.lbfgs import Minimization
from headstart.models.auto.explanation import auto_only
from headstart.models.auto.scores import REFITS, scores_of
from headstart.models.chain.layer import Layer
from headstart.models.refits import TargetCache, refit_size, with_appended_rows
from headstart.tuning import PLAIN_TUNING

EVERY, FITTED_ON = PLAIN_TUNING.refit_every_result_up_to, PLAIN_TUNING.refit_rows
PROBLEM = transfer_problem(n_target=7)
LONG = EVERY + 9
MODELS = pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR"])


def _hill(X: Tensor) -> Tensor:
    return -torch.exp(-8 * (X[:, 0] - 0.6).square() - 3 * (X[:, 1] - 0.4).square())


def _target(n: int) -> Dataset:
    X = points(n, seed=20)
    return Dataset(X, _hill(X) + 0.05 * torch.sin(40 * X.sum(-1)))


def _sources() -> list[Dataset]:
    return [Dataset(X, _hill(X + 0.05 * i)) for i, X in enumerate(points(3, 8, seed=5))]


@MODELS
def test_a_grown_posterior_is_that_of_all_rows(name: str) -> None:
    """Rows that are appended give what all rows at the same hyperparameters give."""
    sources = () if name == "GPBO" else PROBLEM.sources
    whole, part = (FAMILY[name].at(params_for(name), sources=sources, target=PROBLEM.head(n)) for n in (7, 4))
    after, X = with_appended_rows(part, PROBLEM.target), points(5, seed=3)
    for a, b in zip(after.predict(X), whole.predict(X), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)
    assert torch.equal(after.train_targets, whole.train_targets)
    assert with_appended_rows(whole, PROBLEM.target) is whole


@MODELS
@pytest.mark.parametrize("batch_shape", [(), (2,)])
def test_scores_of_a_factor_are_those_worked_out_from_scratch(name: str, batch_shape: tuple[int, ...]) -> None:
    """The layer's own factor holds all scores: the same as from the covariance of the contrasts."""
    problem = transfer_problem(n_target=7, batch_shape=batch_shape)
    sources = () if name == "GPBO" else problem.sources
    params = params_for(name, batch_shape=batch_shape)
    error_var = torch.linspace(0.0, 0.5, 7, dtype=torch.float64).expand(*batch_shape, 7)
    target = replace(problem.target, error_var=error_var)
    part = FAMILY[name].at(params, sources=sources, target=target.head(3))
    layer = with_appended_rows(part, target).predictor
    assert isinstance(layer, Layer)
    torch.testing.assert_close(scores_of(layer.L, layer.z), dense_scores(layer, target), rtol=0, atol=1e-10)


def test_the_offset_is_that_of_a_fit_to_all_rows() -> None:
    """At the hyperparameters of a fit its offset is found again, from any other."""
    posterior = quick(SHGP).learn(_sources()).condition(_target(12))
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    moved = replace(layer.params, offset=layer.params.offset + 3.0)
    y = layer.at.mean + layer.params.offset.unsqueeze(-1) + layer.L @ layer.z
    other = layer.with_observations(Dataset(layer.X, y), moved)
    found = other.with_its_offset()
    torch.testing.assert_close(found.params.offset, layer.params.offset, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.z, layer.z, rtol=0, atol=1e-9)


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that hyperparameters are found from, from now on."""
    rows: list[int] = []
    original = Minimization

    def counting(objective: object, *args: object, **options: object) -> object:
        rows.append(1)
        return original(objective, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fitting, "Minimization", counting)
    return rows


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR", "AUTO"])
def test_between_refits_nothing_is_fitted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long target the next result is a row that is added."""
    prior = quick(FAMILY[name]).learn([] if name == "GPBO" else _sources())
    prior.condition(_target(LONG))
    fits = _counted(monkeypatch)
    for n in (LONG + 1, LONG + 3):
        prior.condition(_target(n))
    assert not fits
    assert refit_size(LONG + 3) == refit_size(LONG)


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "STAR", "AUTO"])
def test_who_comes_late_predicts_the_same_to_the_last_bit(name: str) -> None:
    """A prior that was there all along, and a new one that reads the whole target at once, say the same."""
    model, X = quick(FAMILY[name]), points(6, seed=9)
    sources = [] if name == "GPBO" else _sources()
    along = model.learn(sources)
    for n in (EVERY - 1, EVERY, EVERY + 4, LONG):
        before = along.condition(_target(n))
    late = model.learn(sources).condition(_target(LONG))
    for a, b in zip(before.predict(X), late.predict(X), strict=True):
        assert torch.equal(a, b)


def test_a_long_target_is_predicted_as_well_as_by_a_fit_to_all_rows() -> None:
    """Hyperparameters from some of the rows leave the same prediction as those from all of them, nearly."""
    target, X = _target(FITTED_ON + 40), points(50, seed=9)
    prior = auto_only(quick(AUTO).learn(_sources()))
    mean, var = prior.condition(target).predict(X)
    seen = prior.inward(target)
    for member in prior.given(seen):
        assert member.predictor.X.shape[-2] == target.n
    truth = _hill(X) + 0.05 * torch.sin(40 * X.sum(-1))
    own_mean, own_var = quick(GPBO).learn().condition(target).predict(X)
    assert (mean - truth).square().mean() < 1.5 * (own_mean - truth).square().mean()
    assert 0.5 < float((var / own_var).median()) < 2.0


def test_outliers_of_a_long_target_do_not_move_with_every_result() -> None:
    """What became of the first results stays until the next refit, also where some are penalties."""
    target = _target(LONG + 5)
    y = target.y.clone()
    y[[3, 50]] = 1e6
    prior = quick(SHGP).learn(_sources())
    now, later = (prior.inward(Dataset(target.X[:n], y[:n])) for n in (LONG, LONG + 5))
    assert float(now.y.max()) < 1e3
    assert torch.equal(later.y[: refit_size(LONG)], now.y[: refit_size(LONG)])


_FRESH = """
import torch
from tests.problems import quick
from tests.unit.models.test_refits import LONG, _sources, _target
from headstart import AUTO
from headstart.decide.suggest import suggest
print(*suggest(quick(AUTO).learn(_sources()).condition(_target(LONG)), seed=4).tolist())
"""


@pytest.mark.slow
def test_another_process_suggests_the_same() -> None:
    """One that opens a long study suggests what the process suggests that has been there since the beginning."""
    along = quick(AUTO).learn(_sources())
    for n in (5, EVERY - 1, EVERY, LONG):
        posterior = along.condition(_target(n))
    here = suggest(posterior, seed=4).tolist()
    known = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run([sys.executable, "-c", _FRESH], check=True, stdout=subprocess.PIPE, text=True, env=known)
    assert [float(x) for x in process.stdout.split()] == pytest.approx(here, abs=1e-6)


# ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_short_target_is_fitted_with_every_result() -> None:
    """Up to EVERY results each is part of the next fit."""
    assert [refit_size(n) for n in range(EVERY + 1)] == list(range(EVERY + 1))


def test_refits_of_a_long_target_become_ever_rarer_and_never_old() -> None:
    """There are four in every doubling; at least four fifths of the results are always behind the hyperparameters."""
    found = [refit_size(n) for n in range(EVERY, 5000)]
    assert sorted(set(found))[:9] == [128, 160, 192, 224, 256, 320, 384, 448, 512]
    assert found == sorted(found)
    assert all(0.8 * n < r <= n for n, r in enumerate(found, start=EVERY))
    assert all(refit_size(r) == r for r in found)


def test_scores_are_refitted_where_hyperparameters_are() -> None:
    """A refit of the scores is a number at which a long target is fitted anyway."""
    assert list(REFITS[:16]) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256]
    assert all(refit_size(refit) == refit for refit in REFITS)


def test_the_cache_is_bounded() -> None:
    """However many targets are asked about, no more than 64 values of a kind are kept, the latest ones."""
    cache = TargetCache()
    X = torch.zeros(1, 1, dtype=torch.float64)
    data = [Dataset(X, torch.full((1,), float(i), dtype=torch.float64)) for i in range(100)]
    for i in (*range(100), 99, 36):
        assert cache.get("a", data[i], partial(int, i)) == i
    for i in range(3):
        assert cache.get("b", data[i], partial(int, -i), keep=1) == -i
    assert {kind: len(entries) for kind, entries in cache._kinds.items()} == {"a": 64, "b": 1}
    assert cache.get("a", data[36], lambda: -1) == 36
    assert cache.get("a", data[35], lambda: -1) == -1
