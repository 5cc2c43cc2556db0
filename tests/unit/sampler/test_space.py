"""Spaces that branch and change: every parameter that trials or sources know is chosen, and what is not is said."""

from __future__ import annotations

import math
import random
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState, create_trial

from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")


def branching(trial: optuna.Trial, shift: float = 0.1) -> float:
    """A choice of model, each with parameters of its own; best is the forest of depth 8."""
    model = trial.suggest_categorical("model", ["svm", "forest"])
    if model == "svm":
        C = trial.suggest_float("C", 1e-3, 1e3, log=True)
        kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
        gamma = trial.suggest_float("gamma", 1e-4, 1, log=True) if kernel == "rbf" else 1e-4
        return 1 + 0.1 * (math.log10(C) - 1 + shift) ** 2 + 0.1 * (math.log10(gamma) + 2) ** 2
    depth = trial.suggest_int("depth", 1, 20)
    return 0.5 + 0.02 * (depth - 8) ** 2 + shift


def past_of(objective: Any, n: int = 25, name: str = "last year", seed: int = 0) -> optuna.Study:
    study = optuna.create_study(study_name=name, sampler=optuna.samplers.RandomSampler(seed=seed))
    study.optimize(objective, n_trials=n)
    return study


def make(sources: Any, **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0}
    return TransferSampler(sources, **(defaults | options))


def drawn_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "is drawn by" in r.getMessage()]


def test_every_branch_is_informed_from_the_first_trial_on(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is drawn, nothing is said to be dropped, and the depth is near its best from the start."""
    sampler = make([past_of(lambda trial: branching(trial, 0.0))])
    study = optuna.create_study(sampler=sampler)
    study.optimize(branching, n_trials=4)
    assert drawn_in(caplog) == []
    assert "dropped" not in caplog.text
    assert isinstance(sampler.last, Suggested)
    assert study.trials[0].params["model"] == "forest"
    assert abs(study.trials[0].params["depth"] - 8) <= 3
    assert sum(t.params["model"] == "forest" for t in study.trials) >= 3


def test_a_branch_that_no_trial_has_been_to_is_informed_too(caplog: pytest.LogCaptureFixture) -> None:
    """Enqueued into the other branch, the rest of the trial is what the source knows to be good."""
    study = optuna.create_study(sampler=make([past_of(branching)]))
    study.optimize(branching, n_trials=2)
    assert {t.params["model"] for t in study.trials} == {"forest"}
    study.enqueue_trial({"model": "svm", "kernel": "rbf"})
    study.optimize(branching, n_trials=1)
    params = study.trials[-1].params
    assert params["kernel"] == "rbf"
    assert drawn_in(caplog) == []
    assert abs(math.log10(params["C"]) - 0.9) < 1.5
    assert abs(math.log10(params["gamma"]) + 2) < 1.2


def test_a_source_of_one_branch_is_used_in_it() -> None:
    """It knows nothing of the choice."""

    def only_svm(trial: optuna.Trial) -> float:
        return (math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)) - 1) ** 2

    sampler = make([past_of(branching, 20), past_of(only_svm, 20, "svm alone")])
    study = optuna.create_study(sampler=sampler)
    study.optimize(branching, n_trials=2)
    assert isinstance(sampler.last, Suggested)
    assert [data.name for data in sampler.last.alignment.datasets] == ["last year", "svm alone"]


def test_a_range_that_changes_keeps_all_trials() -> None:
    """Widened, narrowed and shifted in the middle of the study: all trials stay evidence, and nothing is random."""
    sampler = make([past_of(lambda trial: (trial.suggest_float("x", -2, 2) - 1) ** 2)])
    study = optuna.create_study(sampler=sampler)
    ranges = ((-2, 2), (-4, 4), (0, 1.5), (0.5, 3))
    study.optimize(lambda trial: (trial.suggest_float("x", *ranges[trial.number // 2]) - 1.2) ** 2, n_trials=8)
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.drawn == {}
    assert sampler.last.posterior.train_targets.shape[-1] == 7
    assert abs(study.trials[-1].params["x"] - 1.2) < 0.3


def test_a_parameter_that_is_new_and_one_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    """The new one is drawn once, and said; the other is not chosen any more after three trials without it."""

    def before(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + 0 * trial.suggest_float("old", 0, 1)

    def after(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + trial.suggest_float("new", 0, 1)

    sampler = make([past_of(before, 15)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(before, n_trials=3)
    study.optimize(after, n_trials=6)
    assert [line for line in drawn_in(caplog) if "new" in line] == [
        "Trial 3: new is drawn by TPESampler: no source and no finished trial has it."
    ]
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.alignment.space.names == ("new", "x")
    assert sampler.last.posterior.train_targets.shape[-1] == 8
    assert caplog.text.count("old: the latest trials have not asked for it") == 1
    assert study.trials[-1].params["new"] < 0.5


def test_one_trial_with_fewer_parameters_does_not_make_it_random(caplog: pytest.LogCaptureFixture) -> None:
    """It is evidence as far as it goes."""

    def plain(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + (trial.suggest_float("y", 0, 1) - 0.7) ** 2

    sampler = make([past_of(plain, 15)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(plain, n_trials=2)
    odd = create_trial(params={"x": 0.5}, distributions={"x": FloatDistribution(0, 1)}, value=0.4)
    study.add_trial(odd)
    study.optimize(plain, n_trials=2)
    assert drawn_in(caplog) == []
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.posterior.train_targets.shape[-1] == 4


def test_parameters_outside_a_given_space_are_said_to_be_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """Every time, and as a warning the first time; the latest trial says so too."""
    space = {"x": FloatDistribution(0, 1)}
    sampler = make([past_of(lambda t: t.suggest_float("x", 0, 1), 10)], space=space)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_float("extra", 0, 1), n_trials=3)
    lines = [r for r in caplog.records if "extra is drawn by TPESampler" in r.getMessage()]
    assert [r.levelname for r in lines] == ["WARNING", "INFO", "INFO"]
    assert "no part of the space that was given" in lines[0].getMessage()
    assert isinstance(sampler.last, Suggested)
    assert list(sampler.last.drawn) == ["extra"]
    assert "extra was drawn by TPESampler" in repr(sampler.last)


def test_what_no_source_knows_is_a_warning_before_it_costs(caplog: pytest.LogCaptureFixture) -> None:
    """In the first trial, be it before or after a parameter that they know; one they have with a single value too."""
    study = optuna.create_study(sampler=make([past_of(lambda t: t.suggest_float("x", 0, 1), 10)]))
    study.optimize(lambda t: t.suggest_float("new", 0, 1) + t.suggest_float("x", 0, 1), n_trials=1)
    single = optuna.create_study(sampler=make([past_of(lambda t: t.suggest_float("y", 1, 1), 3)]))
    single.optimize(lambda t: t.suggest_float("y", 0, 1), n_trials=1)
    assert [(r.levelname, r.getMessage()) for r in caplog.records if "is drawn by" in r.getMessage()] == [
        ("WARNING", "Trial 0: new is drawn by TPESampler: no source and no finished trial has it."),
        ("WARNING", "Trial 0: y is drawn by TPESampler: it had a single value so far."),
    ]


def test_a_start_from_scratch_is_said_and_its_first_trial_is_drawn(caplog: pytest.LogCaptureFixture) -> None:
    """No sources are no mistake."""
    sampler = TransferSampler([], seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2, n_trials=1)
    assert sampler.last is None
    assert "Trial 0: x is drawn by TPESampler" in caplog.text
    study.optimize(lambda t: t.suggest_float("x", 0, 1) ** 2, n_trials=2)
    assert isinstance(sampler.last, Suggested)
    assert caplog.text.count("No sources are given") == 1


def test_a_float_where_a_category_is_asked_for_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """The source is of no use, and the study starts from scratch."""
    sampler = make([past_of(lambda t: t.suggest_float("x", 0, 1), 10)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_categorical("x", ["a", "b"]) == "a", n_trials=4)
    assert len(study.trials) == 4
    assert "left out" in caplog.text


def test_values_to_fill_in_hold_for_the_study_too() -> None:
    """Trials before a parameter was added had the value it is said to have had."""

    def after(trial: optuna.Trial) -> float:
        return trial.suggest_float("x", 0, 1) + trial.suggest_float("dropout", 0, 1)

    sampler = make([past_of(lambda t: t.suggest_float("x", 0, 1), 10)], fill={"dropout": 0.0})
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
    study.optimize(after, n_trials=3)
    assert isinstance(sampler.last, Suggested)
    column = sampler.last.alignment.space.names.index("dropout")
    assert sampler.last.posterior.train_inputs[0][:2, column].tolist() == [0.0, 0.0]


def test_a_pruned_trial_is_evidence() -> None:
    """It counts as what it would have ended at, and one that reported nothing is only not repeated."""
    sampler = make([past_of(lambda t: t.suggest_float("x", 0, 1), 10)])
    study = optuna.create_study(sampler=sampler)

    def reporting(trial: optuna.Trial) -> float:
        value = 1 + trial.suggest_float("x", 0, 1)
        trial.report(value + 1, 1)
        if trial.number == 3:
            raise optuna.TrialPruned
        return value

    study.optimize(reporting, n_trials=5)
    posterior = sampler.last.posterior if isinstance(sampler.last, Suggested) else None
    assert posterior is not None
    assert posterior.train_targets.shape[-1] == 4
    pruned = study.trials[3]
    best = min(t.value for t in study.trials if t.value is not None and t.state == TrialState.COMPLETE and t.number < 4)
    expected = max(pruned.intermediate_values[1] - 1, best)
    assert posterior.train_targets[3].item() == pytest.approx(expected)


def test_random_programs_are_never_random_search(caplog: pytest.LogCaptureFixture) -> None:
    """Nested branches of every kind, with a source of the same program: only what nobody knows is drawn."""

    def program(trial: optuna.Trial) -> float:
        total = trial.suggest_float("a", 0, 1)
        layers = trial.suggest_int("layers", 1, 4)
        for i in range(layers):
            total += (trial.suggest_int(f"units_{i}", 4, 128, log=True) - 30) ** 2 / 1e4
            if i and trial.suggest_categorical(f"norm_{i}", [None, "batch", True]) == "batch":
                total += trial.suggest_float(f"momentum_{i}", 0.5, 1)
        return total

    study = optuna.create_study(sampler=make([past_of(program, 20)]))
    study.optimize(program, n_trials=3)
    assert drawn_in(caplog) == []
    random.seed(0)
    study.enqueue_trial({"layers": random.randint(2, 4)})
    study.optimize(program, n_trials=1)
    assert drawn_in(caplog) == []


def test_a_given_space_may_branch() -> None:
    """Its parameters are chosen where they are there."""
    space = {"model": CategoricalDistribution(["svm", "forest"]), "C": FloatDistribution(1e-3, 1e3, log=True)}
    sampler = make([past_of(branching)], space=space | {"gamma": FloatDistribution(1e-4, 1, log=True)})
    study = optuna.create_study(sampler=sampler)
    study.optimize(branching, n_trials=3)
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.posterior.train_targets.shape[-1] == 2
    assert "C" in sampler.last.alignment.space.names
    assert ("C" in sampler.last.params) == (sampler.last.params["model"] == "svm")
