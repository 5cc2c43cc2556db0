"""The tuning problems are what they say, and their objectives always answer the same."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import FixedTrial
from sklearn.linear_model import LogisticRegression

from benchmarks.tuning.problems import (
    PROBLEMS,
    TuningProblem,
    accuracy,
    disorder,
    error,
    log_loss,
    mse,
    rmse,
    tuning_problem,
)
from benchmarks.tuning.tasks import CLASSES, NUMBERS, tuning_task
from headstart.errors import InputError

ALL = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
CONDITIONAL = [p for p in PROBLEMS.values() if p.only]


def _asked(problem: TuningProblem, n: int, seed: int = 0) -> list[optuna.Trial]:
    study = optuna.create_study(sampler=RandomSampler(seed=seed))
    trials = [study.ask() for _ in range(n)]
    for trial in trials:
        problem.ask(trial)
    return trials


def test_there_are_enough_problems_of_every_kind() -> None:
    """At least twelve, of which several branch, one prunes, and some are maximised."""
    assert len(PROBLEMS) >= 12
    assert len(CONDITIONAL) >= 2
    assert [p.name for p in PROBLEMS.values() if p.prunes] == ["pruned-network"]
    assert 0 < sum(p.maximize for p in PROBLEMS.values()) < len(PROBLEMS)


def test_an_unknown_problem_or_task_is_named() -> None:
    """With those that there are."""
    with pytest.raises(InputError, match=r"no tuning problem 'svn'.*svm"):
        tuning_problem("svn")
    with pytest.raises(InputError, match=r"no task 'irish'.*iris"):
        tuning_task("irish")


@pytest.mark.parametrize("name", [*CLASSES, *NUMBERS])
def test_a_task_is_small_and_has_disjoint_folds(name: str) -> None:
    """At most 240 rows; every row is held out once, and never trained on at the same time."""
    task = tuning_task(name)
    assert task.X.shape[0] == len(task.y) <= 240
    assert np.isfinite(task.X).all()
    assert sorted(np.concatenate([held_out for _, held_out in task.folds])) == list(range(len(task.y)))
    assert all(not set(rows) & set(held_out) for rows, held_out in task.folds)
    if name in NUMBERS:
        assert task.y.std() == pytest.approx(1.0)


def test_no_two_tasks_are_the_same() -> None:
    """Their fingerprints differ."""
    assert len({tuning_task(name).fingerprint for name in (*CLASSES, *NUMBERS)}) == len(CLASSES) + len(NUMBERS)


@ALL
@pytest.mark.usefixtures("quiet_optuna")
def test_the_space_is_as_it_says(problem: TuningProblem) -> None:
    """An objective asks for parameters of the space alone, and for each of them in some trial."""
    trials = _asked(problem, 40)
    for trial in trials:
        assert all(problem.space[name] == distribution for name, distribution in trial.distributions.items())
    assert {name for trial in trials for name in trial.params} == set(problem.space)
    assert all(parent in problem.space for parent, _ in problem.only.values())


@pytest.mark.parametrize("problem", CONDITIONAL, ids=lambda p: p.name)
@pytest.mark.usefixtures("quiet_optuna")
def test_nothing_is_asked_in_the_wrong_branch(problem: TuningProblem) -> None:
    """A conditional parameter is asked for if and only if its parent has one of the values that it belongs to."""
    for trial in _asked(problem, 40, seed=1):
        for name, (parent, values) in problem.only.items():
            assert (name in trial.params) == (trial.params.get(parent) in values)


def test_a_branch_asks_for_its_own_parameters() -> None:
    """As written down by hand for two of them."""
    kernels, layers = PROBLEMS["svm-kernels"], PROBLEMS["network-layers"]
    assert set(kernels.ask(FixedTrial({"kernel": "linear", "C": 1.0}))) == {"kernel", "C"}
    rbf = {"kernel": "rbf", "C": 1.0, "gamma": 0.1, "degree": 3, "coef0": 0.0}
    assert set(kernels.ask(FixedTrial(rbf))) == {"kernel", "C", "gamma"}
    given = {"units_0": 4, "units_1": 5, "units_2": 6, "activation": "relu", "alpha": 0.1, "learning_rate_init": 0.1}
    asked = layers.ask(FixedTrial({"layers": 2, **given}))
    assert {name for name in asked if name.startswith("units")} == {"units_0", "units_1"}


@pytest.mark.slow
@ALL
@pytest.mark.usefixtures("quiet_optuna")
def test_an_objective_is_deterministic_on_every_task(problem: TuningProblem) -> None:
    """Equal parameters give equal finite scores; other parameters, and some other task, give others."""
    params, others = (trial.params for trial in _asked(problem, 2, seed=3))
    curves = [problem.train(tuning_task(task), params) for task in problem.tasks]
    assert np.isfinite(curves).all()
    assert all(len(curve) > 1 if problem.prunes else len(curve) == 1 for curve in curves)
    assert problem.train(tuning_task(problem.tasks[0]), params) == curves[0]
    assert problem.train(tuning_task(problem.tasks[0]), others) != curves[0]
    assert len({curve[-1] for curve in curves}) > 1


def test_a_large_step_diverges_by_many_orders_of_magnitude() -> None:
    """The score stays a finite number."""
    problem = PROBLEMS["diverging-sgd"]
    fixed = {"learning_rate": "constant", "power_t": 0.5, "products": False, "penalty": "l2", "alpha": 1e-6}
    task = tuning_task("diabetes")
    calm, wild = (
        problem.train(task, {"eta0": eta0, "max_iter": 10, "average": False, **fixed})[-1] for eta0 in (1e-3, 1.0)
    )
    assert calm < 2
    assert 1e15 < wild <= 1e30


def test_training_goes_on_where_it_was() -> None:
    """The losses of the network change from epoch to epoch, and fall with a small rate."""
    problem = PROBLEMS["pruned-network"]
    params = {"units": 16, "batch_size": 16, "solver": "sgd", "activation": "tanh", "alpha": 1e-4}
    curve = problem.train(tuning_task("iris-sepals"), {**params, "learning_rate_init": 1e-2})
    assert all(after < before for before, after in pairwise(curve))


def test_scores_are_what_they_say() -> None:
    """Of a model that ranks two of four pairs wrongly, and is right about three of four rows."""
    model = LogisticRegression()
    model.classes_, model.coef_, model.intercept_ = np.array([0, 1]), np.array([[1.0]]), np.array([0.0])
    X, y = np.array([[-2.0], [3.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    p = 1 / (1 + np.exp(-X[:, 0]))
    assert error(model, X, y) == 0.25
    assert accuracy(model, X, y) == 0.75
    assert disorder(model, X, y) == pytest.approx(2 / 4)
    assert log_loss(model, X, y) == pytest.approx(-np.log([1 - p[0], 1 - p[1], p[2], p[3]]).mean())
    assert mse(model, X, y) == pytest.approx(0.25)
    assert rmse(model, X, y) == pytest.approx(0.5)
