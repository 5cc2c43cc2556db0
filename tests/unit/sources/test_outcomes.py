"""Past tasks of which several things were measured, and the errors that travel with their results."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import torch

from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.sources.alignment import align, any_result, split
from headstart.sources.raw import RawObjective, RawTask

NAN = float("nan")
SPACE = {"x": optuna.distributions.FloatDistribution(0.0, 10.0)}


def task(y: list[float], error: list[float] | None = None, **more: object) -> RawTask:
    """One input, at 0, 1, 2, …"""
    rows = pd.DataFrame({"x": np.arange(len(y), dtype=float)})
    return RawTask("past", rows, np.array(y), error=None if error is None else np.array(error), **more)  # type: ignore[arg-type]


def test_errors_become_variances_and_rows_without_one_have_the_median() -> None:
    found = align([task([1.0, 2.0, NAN, 4.0], [0.1, NAN, 9.0, 0.3])], SPACE, minimize=False).datasets[0]
    assert found.y.tolist() == [-1.0, -2.0, -4.0]
    assert found.error_var is not None
    torch.testing.assert_close(found.error_var, torch.tensor([0.01, 0.04, 0.09], dtype=torch.float64))


def test_errors_that_nobody_knows_are_none() -> None:
    assert align([task([1.0, 2.0], [NAN, NAN])], SPACE).datasets[0].error_var is None


def test_some_rows_of_a_task_keep_all_that_belongs_to_them() -> None:
    whole = task(
        [1.0, 2.0, 3.0],
        [0.1, 0.2, 0.3],
        numbers=(2, 3, 4),
        objectives={"size": RawObjective(np.array([7.0, 8.0, 9.0]), error=np.array([0.7, 0.8, 0.9]))},
        constraints={"c": np.array([-1.0, 0.0, 1.0])},
    )
    some = whole.only(np.array([0, 2]))
    assert some.y.tolist() == [1.0, 3.0]
    assert some.numbers == (2, 4)
    assert list(some.rows["x"]) == [0.0, 2.0]
    assert some.error is not None
    assert some.error.tolist() == [0.1, 0.3]
    assert some.objectives["size"].y.tolist() == [7.0, 9.0]
    own = some.objectives["size"].error
    assert own is not None
    assert own.tolist() == [0.7, 0.9]
    assert some.constraints["c"].tolist() == [-1.0, 1.0]


def test_every_outcome_has_the_rows_that_know_it_behind_its_sign() -> None:
    outcomes = Outcomes((Goal("yield", maximize=True),), (Limit("impurity", at_most=0.5), Limit("purity", at_least=9)))
    measured = {
        "yield": RawObjective(np.array([10.0, NAN, 30.0, NAN])),
        "impurity": RawObjective(np.array([NAN, 0.2, 0.3, NAN]), error=np.array([NAN, 0.01, 0.02, NAN])),
    }
    past = task([NAN] * 4)
    whole = align([past], SPACE, known={"past": any_result(measured)})
    assert whole.datasets == ()
    found = split(whole, {"past": measured}, outcomes)
    ours = found["yield"].datasets[0]
    assert ours.y.tolist() == [-10.0, -30.0]
    assert found["yield"].rows == ((0, 2),)
    assert ours.X.squeeze(-1).tolist() == [0.0, 0.2]
    assert ours.error_var is None
    limited = found["impurity"].datasets[0]
    assert limited.y.tolist() == [0.2, 0.3]
    assert limited.error_var is not None
    torch.testing.assert_close(limited.error_var, torch.tensor([1e-4, 4e-4], dtype=torch.float64))
    assert found["purity"].datasets == ()
    assert found["yield"].tasks[0].y[0] == 10.0


def test_results_stay_with_their_rows_where_a_row_before_them_has_none() -> None:
    measured = {"yield": RawObjective(np.array([NAN, 10.0, 20.0])), "cost": RawObjective(np.array([NAN, NAN, 5.0]))}
    whole = align([task([NAN] * 3)], SPACE, known={"past": any_result(measured)})
    found = split(whole, {"past": measured}, Outcomes((Goal("yield"), Goal("cost"))))
    assert found["yield"].datasets[0].y.tolist() == [10.0, 20.0]
    assert found["cost"].datasets[0].y.tolist() == [5.0]
    assert found["cost"].datasets[0].X.tolist() == [[0.2]]


def test_a_task_that_knows_no_outcome_has_no_rows() -> None:
    assert not any_result({}).any()
    assert not any_result({"yield": RawObjective(np.array([NAN]))}).any()
