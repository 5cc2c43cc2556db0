"""Optuna's private names that are used still are what they were."""

from __future__ import annotations

import os
from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.trial import TrialState

from headstart.sources.optuna_api import (
    CONSTRAINT_COLUMN,
    backend_of,
    constraints_of,
    enqueued_parameters,
    set_attributes,
    study_attributes,
    system_attributes,
    write_constraints,
)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


@pytest.mark.parametrize("database", [True, False])
def test_attributes_of_a_running_trial_come_back(database: bool, tmp_path: Path) -> None:
    """And those of the study: as another worker reads them, from memory and from a database."""
    storage = f"sqlite:///{tmp_path}{os.sep}study.db" if database else None
    study = optuna.create_study(storage=storage)
    study.enqueue_trial({"x": 0.5})
    trial = study.ask()
    (running,) = study.get_trials(deepcopy=False)
    set_attributes(study, running, {"a": 1, "b": "text"}, user=False)
    set_attributes(study, running, {"c": 2.5}, user=True)
    study.set_user_attr("lot", "B")
    assert study_attributes(study) == {"lot": "B"}
    (seen,) = study.get_trials(deepcopy=False)
    assert {name: system_attributes(seen)[name] for name in "ab"} == {"a": 1, "b": "text"}
    assert seen.user_attrs == {"c": 2.5}
    assert enqueued_parameters(seen) == {"x": 0.5}
    study.tell(trial, 0.0)
    assert study.trials[0].state == TrialState.COMPLETE


def test_constraints_are_written_and_read() -> None:
    """As numbers by place where a function gives them; by key where the objective sets them."""
    study = optuna.create_study()
    trial = study.ask()
    write_constraints(lambda _: (1.0, -2.0), study, study.trials[0], TrialState.COMPLETE)
    study.tell(trial, 0.0)
    assert constraints_of(study.trials[0]) == {"0": 1.0, "1": -2.0}
    if hasattr(optuna.Trial, "set_constraint"):
        trial = study.ask()
        trial.set_constraint("heat", 0.5)
        study.tell(trial, 0.0)
        assert constraints_of(study.trials[1]) == {"heat": 0.5}
        assert study.trials_dataframe()[f"{CONSTRAINT_COLUMN}heat"].tolist()[1] == 0.5


def test_the_database_behind_a_study_is_found(tmp_path: Path) -> None:
    """Behind Optuna's cache and in front of it; a storage in memory is its own."""
    database = backend_of(optuna.create_study(storage=f"sqlite:///{tmp_path}{os.sep}study.db")._storage)
    assert isinstance(database, RDBStorage)
    assert backend_of(database) is database
    memory = InMemoryStorage()
    assert backend_of(memory) is memory
