"""Who tunes: headstart's sampler, and what else one can do with past studies in Optuna.

    name        sampler            begins with                                   uses the past
    headstart   TransferSampler    its own suggestion                            yes
    tpe-bests   TPESampler         the best trial of every past study, newest    by its bests
    gp-bests    GPSampler          first, as enqueued trials                     by its bests
    tpe-soon    the same two, whose models take over after the bests             by its bests
    gp-soon
    tpe         TPESampler         ten random trials                             no
    random      RandomSampler                                                    no

All have their default settings, by which TPE and the GP sampler draw at random until ten trials are finished; those
that take over soon do not wait.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna import Study
from optuna.samplers import BaseSampler

from headstart.errors import InputError

POOL = "pool"  # random trials of a task, by which regrets are scaled: no method


@dataclass(frozen=True, slots=True)
class TuningMethod:
    """A sampler, made of past studies and a seed, and whether their bests are tried first."""

    sampler: Callable[[Sequence[Study], int], BaseSampler]
    tries_bests: bool = False

    def enqueued(self, past: Sequence[Study]) -> list[dict[str, Any]]:
        """What is tried first, the most recent study's best before the others'; nothing twice."""
        found: list[dict[str, Any]] = []
        for study in reversed(past) if self.tries_bests else ():
            if study.best_params not in found:
                found.append(study.best_params)
        return found


def _headstart(past: Sequence[Study], seed: int) -> BaseSampler:
    from headstart.sampler.sampler import TransferSampler

    return TransferSampler(list(past), seed=seed)


def _tpe(_: Sequence[Study], seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(seed=seed)


def _tpe_soon(past: Sequence[Study], seed: int) -> BaseSampler:
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=len(past))


def _gp(_: Sequence[Study], seed: int) -> BaseSampler:
    return _gp_after(10, seed)


def _gp_soon(past: Sequence[Study], seed: int) -> BaseSampler:
    return _gp_after(len(past), seed)


def _gp_after(trials: int, seed: int) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=trials, warn_independent_sampling=False)


def _random(_: Sequence[Study], seed: int) -> BaseSampler:
    return optuna.samplers.RandomSampler(seed=seed)


RIVALS: dict[str, TuningMethod] = {
    "headstart": TuningMethod(_headstart),
    "tpe-bests": TuningMethod(_tpe, tries_bests=True),
    "gp-bests": TuningMethod(_gp, tries_bests=True),
    "tpe-soon": TuningMethod(_tpe_soon, tries_bests=True),
    "gp-soon": TuningMethod(_gp_soon, tries_bests=True),
    "tpe": TuningMethod(_tpe),
    "random": TuningMethod(_random),
}


def rival(name: str) -> TuningMethod:
    """The method of that name."""
    if name in RIVALS:
        return RIVALS[name]
    raise InputError(f"There is no method {name!r}. The known ones are {', '.join(RIVALS)}.")
