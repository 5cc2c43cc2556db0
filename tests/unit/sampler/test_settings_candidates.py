"""A list of settings, one of which is tried each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.data.descriptors import Descriptors
from headstart.data.space import Space
from headstart.decide.domain import Mixed
from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.sampler import TransferSampler
from headstart.sampler.settings import CandidateTable, values_of_late_parameter

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=20))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")

SPACE: dict[str, BaseDistribution] = {
    "T": FloatDistribution(20, 120),
    "n": IntDistribution(1, 9),
    "solvent": CategoricalDistribution(["water", "toluene"]),
}
ROWS: list[dict[str, Any]] = [
    {"T": 20.1, "n": 1, "solvent": "water"},
    {"T": 33.3, "n": 2, "solvent": "toluene"},
    {"T": 57.7, "n": 5, "solvent": "water"},
    {"T": 80.9, "n": 7, "solvent": "toluene"},
    {"T": 119.3, "n": 9, "solvent": "water"},
]


def cost(trial: optuna.Trial) -> float:
    T, n = trial.suggest_float("T", 20, 120), trial.suggest_int("n", 1, 9)
    return abs(T - 60) / 10 + abs(n - 5) + (trial.suggest_categorical("solvent", ["water", "toluene"]) == "toluene")


def past() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    T, n = rng.uniform(20, 120, 25), rng.integers(1, 10, 25)
    solvent = rng.choice(["water", "toluene"], 25)
    loss = abs(T - 60) / 10 + abs(n - 5) + (solvent == "toluene")
    return pd.DataFrame({"T": T, "n": n, "solvent": solvent, "time": rng.uniform(0, 1, 25), "loss": loss})


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "objective": "loss" if len(sources) else None}
    return TransferSampler(sources, **(defaults | options))


def run(sampler: TransferSampler, n: int, objective: Any = cost, **options: Any) -> optuna.Study:
    study = optuna.create_study(sampler=sampler, **options)
    study.optimize(objective, n_trials=n)
    return study


def same(params: dict[str, Any], row: dict[str, Any]) -> bool:
    return params == row and all(type(params[name]) is type(row[name]) for name in row)


@pytest.mark.parametrize("space", [SPACE, None], ids=["space given", "space of the list"])
def test_every_row_is_tried_once_and_the_best_first(space: Any, tmp_path: Path) -> None:
    """As it stands, to the last digit, whatever form the list has; then they are tried again, which is said."""
    path = tmp_path / "shelf.csv"
    pd.DataFrame(ROWS).to_csv(path, index=False, sep=";", decimal=",")
    for given in (ROWS, pd.DataFrame(ROWS), path):
        study = run(make([past()], candidates=given, space=space), 5)
        found = [trial.params for trial in study.trials]
        assert all(any(same(params, row) for row in ROWS) for params in found)
        assert all(any(same(params, row) for params in found) for row in ROWS)
        assert found[0] == ROWS[2]


def test_a_list_that_is_used_up_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """The best of it, and it is said once."""
    study = run(make([past()], candidates=ROWS), 7)
    assert not any("was tried or is awaited" in r.getMessage() for r in caplog.records[:-2])
    assert [trial.params for trial in study.trials[5:]].count(ROWS[2]) >= 1
    said = [r.getMessage() for r in caplog.records if "tried again" in r.getMessage()]
    assert said == ["Every candidate that may be tried (5) was tried or is awaited: from now on they are tried again."]


def test_rows_that_break_a_rule_are_not_tried() -> None:
    """The list and the rules go together."""
    study = run(make([past()], candidates=ROWS, rules=["T <= 100"], fixed={"solvent": "water"}), 4)
    assert {trial.params["T"] for trial in study.trials} == {20.1, 57.7}


def test_two_workers_are_given_different_rows() -> None:
    """What is awaited is not given again."""
    study = optuna.create_study(sampler=make([past()], candidates=ROWS))
    for _ in ROWS:
        cost(study.ask())
    assert len({trial.params["T"] for trial in study.trials}) == 5


def test_what_a_trial_was_given_leaves_the_rows_that_have_it(caplog: pytest.LogCaptureFixture) -> None:
    """A value that no row has runs and counts, with a warning."""
    study = optuna.create_study(sampler=make([past()], candidates=ROWS, space=SPACE))
    study.enqueue_trial({"n": 7})
    study.enqueue_trial({"T": 99.0})
    study.optimize(cost, n_trials=3)
    assert study.trials[0].params == ROWS[3]
    assert study.trials[1].params["T"] == 99.0
    said = [r.getMessage() for r in caplog.records if "list of candidates" in r.getMessage()]
    assert said == [
        "Trial 1 runs with T = 99.0, with which the list of candidates cannot be kept: its result counts all the same."
    ]
    assert any(same(study.trials[2].params, row) for row in ROWS)


def test_several_objectives_choose_from_a_list() -> None:
    """As one does."""

    def both(trial: optuna.Trial) -> tuple[float, float]:
        loss = cost(trial)
        return loss, trial.params["T"]

    study = run(make(candidates=ROWS, space=SPACE), 5, both, directions=["minimize", "minimize"])
    assert sorted(trial.params["T"] for trial in study.trials) == [row["T"] for row in ROWS]


def test_a_branch_has_rows_without_its_parameters() -> None:
    """An empty cell is no value."""

    def branching(trial: optuna.Trial) -> float:
        way = trial.suggest_categorical("way", ["x", "y"])
        return trial.suggest_float("a", 0, 1) if way == "x" else 2 - trial.suggest_float("b", 0, 1)

    old = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(branching, n_trials=12)
    rows = [{"way": "x", "a": 0.3}, {"way": "x", "a": 0.7}, {"way": "y", "b": 0.2}, {"way": "y", "b": 0.9}]
    study = run(make([old], objective=None, candidates=rows), 4, branching)
    assert all(trial.params in rows for trial in study.trials)
    assert len({str(trial.params) for trial in study.trials}) == 4
    assert study.trials[0].params == rows[0]


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([], "candidates: there are no candidates. Give at least one row"),
        ("nowhere.csv", "candidates: there is no file nowhere.csv"),
        (
            3,
            r"candidates must be a DataFrame, a list of \{parameter: value\}, or the path of a CSV file, but it is int",
        ),
        (
            [ROWS[0], ROWS[1] | {"T": 200}],
            "candidates, row 2: parameter 'T' = 200 is outside 20 … 120. Widen its range",
        ),
        ([ROWS[0] | {"n": 1.5}], "candidates, row 1: parameter 'n' = 1.5 is outside 1 … 9 by 1"),
        ([ROWS[0] | {"solvent": "wter"}], "candidates, row 1: parameter 'solvent' = 'wter' is none of its categories"),
        ([ROWS[0], {"T": 50, "solvent": "water"}], "candidates, row 2 has no value for parameter 'n'"),
        ([{"T": 50, "solvent": "water"}], "candidates: the candidates have no column 'n', which is a parameter"),
        ([ROWS[0] | {"T": "hot"}], "candidates, row 1: parameter 'T' = 'hot' is not a number"),
    ],
)
def test_a_list_that_does_not_fit_the_space_is_refused(candidates: Any, message: str) -> None:
    """With the row and the remedy, before anything runs."""
    with pytest.raises(InputError, match=message):
        make(candidates=candidates, space=SPACE)


def test_a_file_is_named_with_its_row(tmp_path: Path) -> None:
    """As a spreadsheet program counts: the header is row 1."""
    path = tmp_path / "shelf.csv"
    pd.DataFrame([ROWS[0], ROWS[1] | {"T": 200}]).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"shelf.csv, row 3: parameter 'T' = 200"):
        make(candidates=path, space=SPACE)


def test_rules_that_no_row_keeps_are_refused() -> None:
    """At once, also where the list alone says what there is."""
    for space in (SPACE, None):
        with pytest.raises(InputError, match=r"None of the 5 candidates keeps all rules \(T ≤ 10\)"):
            make(candidates=ROWS, rules=["T <= 10"], space=space)


def test_an_objective_that_asks_for_more_or_other_values_is_told() -> None:
    """Nothing is drawn past the list."""

    def more(trial: optuna.Trial) -> float:
        return cost(trial) + trial.suggest_float("pressure", 1, 2)

    with pytest.raises(InputError, match="have no column 'pressure'"):
        run(make(candidates=ROWS), 1, more)
    with pytest.raises(InputError, match=r"row 1: parameter 'T' = 20.1 is outside 50 … 60"):
        run(make(candidates=ROWS), 1, lambda trial: trial.suggest_float("T", 50, 60))


def test_descriptors_of_a_category_are_no_inputs_of_a_list() -> None:
    """A described category is one input, in a list and where its value is asked for late, as in the space itself."""
    rows = {"water": {"polarity": 1.0, "donor": 18.0}, "toluene": {"polarity": 0.1, "donor": 0.1}}
    space = Space.of(SPACE, descriptors={"solvent": Descriptors.of(rows, "solvent")})
    table = CandidateTable.of(ROWS)
    assert table is not None
    listed = table.domain(space, (), {}, 0, lambda _: None).domain
    late = values_of_late_parameter(space, space.by_name["n"], ROWS[0], ())
    assert listed.inputs == late.inputs == Mixed(space).inputs == 3
    assert listed.described == space.described
