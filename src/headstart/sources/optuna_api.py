"""Every use of Optuna that its documentation does not promise; ``docs/optuna.md`` has a table of them.

``tests/unit/sources/test_optuna_api.py`` fails if one of them changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial, TrialState

CONSTRAINT_COLUMN = "system_attrs_constraints:"  # and the constraint's key


def set_attributes(study: Study, trial: FrozenTrial, attributes: Mapping[str, Any], *, user: bool) -> None:
    """Write user attributes, or system attributes, of a running trial, in their order."""
    write = study._storage.set_trial_user_attr if user else study._storage.set_trial_system_attr
    for key, value in attributes.items():
        write(trial._trial_id, key, value)


def study_attributes(study: Study) -> Mapping[str, Any]:
    """The user attributes of a study, which the part of one that Hyperband shows does not give."""
    found: Mapping[str, Any] = study._storage.get_study_user_attrs(study._study_id)
    return found


def system_attributes(trial: FrozenTrial) -> Mapping[str, Any]:
    """The system attributes of a trial."""
    return trial.system_attrs


def enqueued_parameters(trial: FrozenTrial) -> Mapping[str, Any]:
    """The parameters that a trial was enqueued with."""
    found: Mapping[str, Any] = trial.system_attrs.get("fixed_params", {})
    return found


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by key; in Optuna 4 they are a list, whose keys are its places."""
    if hasattr(trial, "constraints"):
        return {str(key): float(value) for key, value in trial.constraints.items()}
    return {str(i): float(value) for i, value in enumerate(trial.system_attrs.get("constraints") or ())}


def write_constraints(
    constraints_func: Callable[[FrozenTrial], Sequence[float]], study: Study, trial: FrozenTrial, state: TrialState
) -> None:
    """Write down what ``constraints_func`` gives for a trial that has ended."""
    from optuna.samplers._base import _process_constraints_after_trial

    _process_constraints_after_trial(constraints_func, study, trial, state)


def backend_of(storage: Any) -> Any:
    """The storage behind Optuna's cache; other storages have none, and are their own."""
    return getattr(storage, "_backend", storage)
