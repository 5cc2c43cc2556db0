"""Values that are hard to model: the sampler says what becomes of them, and never falls back to drawing at random."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest

from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO
from headstart.sampler.adviser import LOGGER
from headstart.sampler.sampler import TransferSampler

Change = Callable[[Any], Any]
QUICK = AUTO.using(fit=FitOptions(restarts=1, max_iterations=15))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")


def _loss(x: Any, a: Any, best: float = 0.25) -> Any:
    return (x - best) ** 2 + 0.5 * a


def _past(change: Change = lambda y: y, *, seed: int = 0, n: int = 15) -> pd.DataFrame:
    """A task whose best point is x = 0.2, kind = b."""
    rng = np.random.default_rng(seed)
    x, kind = rng.uniform(-1, 1, n), rng.choice(["a", "b"], n)
    frame = pd.DataFrame({"x": x, "kind": kind, "loss": change(_loss(x, kind == "a", 0.2))})
    frame.attrs["name"] = f"past {seed}"
    return frame


def _run(
    sources: list[pd.DataFrame], own: Callable[[int, float], float] = lambda _, y: y, *, n: int = 5
) -> tuple[optuna.Study, TransferSampler, list[float]]:
    """A study, its sampler, and the true values of its trials."""
    sampler = TransferSampler(sources, model=QUICK, seed=0, objective="loss")
    study = optuna.create_study(sampler=sampler)
    true: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1, 1)
        true.append(float(_loss(x, trial.suggest_categorical("kind", ["a", "b"]) == "a")))
        return own(trial.number, true[-1])

    study.optimize(objective, n_trials=n)
    return study, sampler, true


def _times(factor: float) -> Change:
    return lambda y: factor * y


def _one_in_seven(factor: float) -> Change:
    return lambda y: np.where(np.arange(len(y)) % 7 == 0, factor * y, y)


CASES: dict[str, tuple[list[pd.DataFrame], Callable[[int, float], float], float]] = {
    "penalties where it is bad": ([_past()], lambda _, y: 1e9 if y > 0.3 else y, 0.01),
    "a penalty for every third": ([_past()], lambda i, y: 1e9 if i % 3 == 1 else y, 0.01),
    "a penalty for the first": ([_past()], lambda i, y: 1e9 if i == 0 else y, 0.01),
    "values of 1e308": ([_past()], lambda i, y: 1.7e308 if i % 3 == 1 else y, 0.01),
    "large values next to a past in other units": ([_past()], lambda _, y: 1e16 * y, 0.01),
    "a past in other, large units": ([_past(_times(1e16))], lambda _, y: y, 0.01),
    "large values everywhere": ([_past(_times(1e16))], lambda _, y: 1e16 * y, 0.01),
    "other units": ([_past()], lambda _, y: 300 + 1000 * y, 0.01),
    "one past value in seven is huge": ([_past(_one_in_seven(1e8), seed=s) for s in (0, 1)], lambda _, y: y, 0.2),
    "one past value in seven is hugely negative": (
        [_past(_one_in_seven(-1e8), seed=s) for s in (0, 1)],
        lambda _, y: y,
        0.1,
    ),
    "a constant past": ([_past(_times(0.0))], lambda _, y: y, 0.1),
    "infinite past values": ([_past(lambda y: np.where(y > 0.8, np.inf, y))], lambda _, y: y, 0.01),
    "infinite values": ([_past()], lambda i, y: math.inf if i % 3 == 1 else y, 0.01),
}
# a number beyond all others; and in the past other units, slips and nothing to learn
AT_ONCE = (
    "values of 1e308",
    "a past in other, large units",
    "one past value in seven is huge",
    "a constant past",
)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")
@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in AT_ONCE else [pytest.mark.slow]) for c in CASES])
def test_no_values_make_it_random(case: str, caplog: pytest.LogCaptureFixture) -> None:
    """The optimum is found all the same."""
    sources, own, good = CASES[case]
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        _, sampler, true = _run(sources, own)
    assert "at random" not in caplog.text
    assert min(true) < good
    assert sampler.last is not None
    assert sampler.last.trial_number == 4


@pytest.mark.parametrize(
    "result", [3.0, *(pytest.param(y, marks=pytest.mark.slow) for y in (math.inf, -math.inf, 1e300))]
)
def test_where_all_results_are_the_same_the_points_are_not(result: float, caplog: pytest.LogCaptureFixture) -> None:
    """Constant and infinite results teach nothing, and no point is asked for twice because of it."""
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        study, _, true = _run([_past()], lambda *_: result, n=4)
    assert "at random" not in caplog.text
    assert true[0] < 0.1
    points = [(t.params["x"], t.params["kind"] == "a") for t in study.trials]
    apart = [np.abs(np.subtract(p, q)).max() for i, p in enumerate(points) for q in points[:i]]
    assert min(apart) > 1e-3


def test_outliers_are_logged_once_and_stand_in_the_report(caplog: pytest.LogCaptureFixture) -> None:
    """Those of every source, and those of the study's own trials."""
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        _, sampler, _ = _run([_past(_one_in_seven(1e8)), _past(seed=1)], lambda i, y: 1e9 if i == 2 else y, n=5)
    said = [record.getMessage() for record in caplog.records]
    past = "3 of 15 results lie far from all others (worst 5.67e+07): they count as little worse than the rest"
    own = "results lies far from all others (trial 2: 1e+09): it counts as little worse than the rest"
    assert said.count(f"past 0: {past} (see sampler.explain())") == 1
    assert sum(own in line for line in said) == 1
    assert len(said) == 2
    assert f"  ! ·  {past}" in str(sampler.explain())
    assert f"this study: 4 results\n  ! 1 of 4 {own}" in str(sampler.explain())


def test_infinite_values_stand_in_the_report() -> None:
    """Those of the sources as those of the study; NaN is no result."""
    source = _past(lambda y: np.where(np.arange(len(y)) < 2, np.inf, y))
    source.loc[5, "loss"] = np.nan
    _, sampler, _ = _run([source], lambda i, y: -math.inf if i == 1 else y, n=4)
    assert "2 of 15 rows have an infinite result, which counts as the worst or best finite one" in str(
        sampler.explain()
    )
    assert "1 of 15 rows have no result and are left out" in str(sampler.explain())
    assert "past 0: 14 of 15 rows used" in str(sampler.explain())
    assert "  ! 1 of 3 results are infinite and count as the worst or best finite one" in str(sampler.explain())
