"""Optuna's own conformance suites for samplers, run on ``TransferSampler``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.samplers import BaseSampler

from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.sampler import TransferSampler

suites = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna publishes its suites since version 5")

_INDEPENDENT = ("test_float", "test_int", "test_categorical", "test_multi_objective_sample_independent")
QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=5))

pytestmark = pytest.mark.usefixtures("quiet_optuna")


class _Informed:
    """A sampler with one source, whose x is 0, 1 or 2, so that it is known as a number and as a category.

    The suite tests independent sampling by 1600 trials that never end. There the source knows y alone, for otherwise
    every trial would be the first and informed, and the 99 before it pending.
    """

    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        rng = np.random.default_rng(0)
        past = pd.DataFrame({"x": [0.0, 1.0, 2.0] * 2, "y": rng.uniform(0.1, 1.0, 6), "loss": rng.normal(size=6)})
        if request.function.__name__ in _INDEPENDENT:
            past = past.drop(columns="x")
        return lambda: TransferSampler([past], objective="loss", model=QUICK, seed=0)


class _Ruled:
    """The same sampler with rules that bind nothing: every value keeps them, and the suite never asks for z.

    Of x and y it asks in turn for numbers and for categories, about which no rule can say the same.
    """

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        rng = np.random.default_rng(0)
        past = pd.DataFrame({"y": rng.uniform(0.1, 1.0, 6), "z": rng.uniform(0, 1, 6), "loss": rng.normal(size=6)})
        rules = ["z <= 1000000", "forbid: z < -1000000"]
        return lambda: TransferSampler([past], objective="loss", model=QUICK, seed=0, rules=rules)


class _Awkward:
    """A sampler with sources as they come: x a float elsewhere, branches, a study that failed, one of another kind."""

    @pytest.fixture
    def sampler(self, request: pytest.FixtureRequest) -> Callable[[], BaseSampler]:
        floating = _study("floating", lambda trial: trial.suggest_float("x", -5.5, 5.5) ** 2)
        branching = _study("branching", _branching)
        failed = _study("failed", lambda trial: math.nan * trial.suggest_float("x", 0, 1))
        turned = _study("turned", lambda trial: trial.suggest_int("y", 0, 9), direction="maximize")
        sources = [floating, failed, branching, turned]
        if request.function.__name__ in _INDEPENDENT:  # as above
            sources = [branching, turned]
        return lambda: TransferSampler(sources, model=QUICK, seed=0)


def _study(name: str, objective: Callable[[optuna.Trial], float], **options: Any) -> optuna.Study:
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=0), **options)
    study.optimize(objective, n_trials=8)
    return study


def _branching(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("a", ["x", None]) is None:
        return trial.suggest_float("b", 1e-3, 1, log=True)
    return float(trial.suggest_int("c", 1, 8))


def _paired(test: Callable[..., None]) -> Callable[..., None]:
    """The test of every pair of two parameters, of which each value of both is run at once in one pair."""
    (first, firsts), (second, seconds) = (mark.args for mark in test.pytestmark)  # type: ignore[attr-defined]
    pairs = [
        pytest.param(a, b, marks=[] if (j - i) % len(seconds) == 1 else [pytest.mark.slow])
        for i, a in enumerate(firsts)
        for j, b in enumerate(seconds)
    ]

    @pytest.mark.parametrize(("a", "b"), pairs)
    def of_one_pair(self: Any, sampler: Callable[[], BaseSampler], a: Any, b: Any) -> None:
        test(self, sampler, **{first: a, second: b})

    return of_one_pair


class TestBasic(_Informed, suites.BasicSamplerTestCase):  # type: ignore[misc,name-defined]
    """Every kind of parameter, conditional and dynamic spaces, NaN objectives, fixed parameters."""

    test_combination_of_different_distributions_objective = _paired(
        suites.BasicSamplerTestCase.test_combination_of_different_distributions_objective
    )

    # a range that moves away altogether; to narrow or widen it is left to the slow ones
    @pytest.mark.parametrize(
        "second", [(20, 30), *(pytest.param(own, marks=pytest.mark.slow) for own in ((0, 5), (0, 20)))]
    )
    def test_dynamic_range_objective(self, sampler: Callable[[], BaseSampler], second: tuple[int, int]) -> None:
        """As the suite has it."""
        suites.BasicSamplerTestCase.test_dynamic_range_objective(self, sampler, *second)


class TestRelative(_Informed, suites.RelativeSamplerTestCase):  # type: ignore[misc,name-defined]
    """Parameters chosen together have the right types and ranges, alone and with two threads."""

    test_sample_relative_numerical = _paired(suites.RelativeSamplerTestCase.test_sample_relative_numerical)


class TestSeveralObjectives(_Informed, suites.MultiObjectiveSamplerTestCase):  # type: ignore[misc,name-defined]
    """Every kind of parameter, where two things are measured."""


@pytest.mark.slow
class TestRuled(_Ruled):
    """Combinations of all kinds of parameters, and several objectives, with rules."""

    test_combination = suites.BasicSamplerTestCase.test_combination_of_different_distributions_objective
    test_mixed = suites.RelativeSamplerTestCase.test_sample_relative_mixed
    test_several_objectives = suites.MultiObjectiveSamplerTestCase.test_multi_objective_sample_independent


@pytest.mark.slow
class TestAwkward(_Awkward):
    """Combinations of all kinds of parameters, and spaces that change, with awkward sources."""

    test_combination = suites.BasicSamplerTestCase.test_combination_of_different_distributions_objective
    test_conditional = suites.BasicSamplerTestCase.test_conditional_parameter_objective
    test_dynamic_range = suites.BasicSamplerTestCase.test_dynamic_range_objective
    test_mixed = suites.RelativeSamplerTestCase.test_sample_relative_mixed
