"""``TransferRecommender`` in BayBE's own ``Campaign``: its search spaces, its objectives, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("baybe", reason="BayBE is not installed: make test-all")

from baybe import Campaign
from baybe.constraints import (
    ContinuousCardinalityConstraint,
    ContinuousLinearConstraint,
    DiscreteSumConstraint,
    ThresholdCondition,
)
from baybe.exceptions import NotEnoughPointsLeftError
from baybe.objectives import DesirabilityObjective, ParetoObjective, SingleTargetObjective
from baybe.parameters import (
    CategoricalParameter,
    NumericalContinuousParameter,
    NumericalDiscreteParameter,
    TaskParameter,
)
from baybe.recommenders import RandomRecommender
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget
from tests.integration.pages import blocks, execute

from headstart import InputError
from headstart.platforms.baybe import TransferRecommender

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("default"),  # BayBE gives some of its own
]

T = NumericalDiscreteParameter("T", [40, 50, 60, 70, 80, 90], tolerance=2)
C = NumericalDiscreteParameter("c", [0.1, 0.2, 0.3, 0.4, 0.5])
KIND = CategoricalParameter("kind", ["u", "v", "w"])
X = NumericalContinuousParameter("x", (0, 1))
Y = NumericalContinuousParameter("y", (0, 1))
GOAL = SingleTargetObjective(NumericalTarget("loss", minimize=True))


def loss(row: Any, shift: float = 0.0) -> float:
    """Lowest, 0, at T = 60, c or x = 0.3, y = 0.6 and kind u, of those that are there."""
    found = ((row.get("T", 60) - 60 - 40 * shift) / 50) ** 2 + 0.3 * (row.get("kind", "u") != "u")
    return float(found + sum((row.get(name, best) - best) ** 2 for name, best in (("c", 0.3), ("x", 0.3), ("y", 0.6))))


def measured(space: SearchSpace, n: int = 25) -> pd.DataFrame:
    """Results all over the space."""
    with_random = Campaign(space, recommender=RandomRecommender())
    np.random.seed(0)
    rows = with_random.recommend(n)
    return rows.assign(loss=rows.apply(loss, axis=1))


@pytest.mark.parametrize("parameters", [(T, C, KIND), (X, Y), (T, KIND, X)], ids=["discrete", "continuous", "hybrid"])
def test_the_first_batch_is_informed_and_the_campaign_goes_on(parameters: Any) -> None:
    """Past campaigns are sources, and no row is recommended twice where BayBE does not want it."""
    space = SearchSpace.from_product(parameters)
    past = Campaign(space, GOAL)
    past.add_measurements(measured(space))
    own = TransferRecommender([past], seed=0)
    with pytest.raises(InputError, match="Nothing was recommended yet"):
        own.explain()
    campaign = Campaign(space, GOAL, own)
    for _ in range(3):
        rows = campaign.recommend(2)
        assert list(rows.columns) == [*space.parameter_names]
        campaign.add_measurements(rows.assign(loss=rows.apply(loss, axis=1, shift=0.1)))
    found = campaign.measurements
    assert found["loss"].iloc[0] < 0.1
    assert found["loss"].min() < 0.05
    assert not found[[*space.parameter_names]].duplicated().any()
    assert "source 1: " in str(own.explain())


def test_the_direction_is_the_targets() -> None:
    """The same numbers to be maximised lead elsewhere, and a table is a source, too."""
    space = SearchSpace.from_product([T, C, KIND])
    campaign = Campaign(
        space, SingleTargetObjective(NumericalTarget("loss")), TransferRecommender([measured(space)], seed=0)
    )
    assert loss(campaign.recommend(1).iloc[0]) > 0.4


def test_pending_experiments_are_awaited_and_rows_run_out() -> None:
    """Each row is recommended once; a setting that was met within tolerance is that setting."""
    space = SearchSpace.from_product([T, KIND])
    campaign = Campaign(space, GOAL, TransferRecommender(seed=0), allow_recommending_already_measured=False)
    first = campaign.recommend(4)
    second = campaign.recommend(4, pending_experiments=first)
    assert not set(first.index) & set(second.index)
    rows = first.assign(T=first["T"] + 1.0)
    campaign.add_measurements(rows.assign(loss=rows.apply(loss, axis=1)))
    assert len(campaign.recommend(3)) == 3
    with pytest.raises(NotEnoughPointsLeftError):
        campaign.recommend(99)


def test_constraints_are_kept() -> None:
    """Rows that a discrete space does not have, and sums of continuous parameters."""
    few = DiscreteSumConstraint(["T", "c"], ThresholdCondition(60.0, "<="))
    space = SearchSpace.from_product([T, C, KIND], [few])
    rows = Campaign(space, GOAL, TransferRecommender([measured(space)], seed=0)).recommend(3)
    assert (rows["T"] + rows["c"] <= 60).all()
    at_most = ContinuousLinearConstraint(["x", "y"], "<=", [1.0, 2.0], 0.8)
    space = SearchSpace.from_product([X, Y], [at_most])
    rows = Campaign(space, GOAL, TransferRecommender(seed=0)).recommend(3)
    assert (rows["x"] + 2 * rows["y"] <= 0.8 + 1e-9).all()


def test_several_targets_are_a_front() -> None:
    """Each with its own direction."""
    space = SearchSpace.from_product([X, Y])
    goal = ParetoObjective([NumericalTarget("loss", minimize=True), NumericalTarget("gain")])
    own = TransferRecommender([measured(space).assign(gain=lambda table: table.x)], seed=0)
    campaign = Campaign(space, goal, own)
    rows = campaign.recommend(2)
    assert (rows["x"] > 0.25).all()
    campaign.add_measurements(rows.assign(loss=rows.apply(loss, axis=1), gain=rows["x"]))
    assert len(campaign.recommend(1)) == 1


def test_a_campaign_is_saved_without_the_recommender() -> None:
    """And gets it again when it is loaded."""
    space = SearchSpace.from_product([T, KIND])
    campaign = Campaign(space, GOAL, TransferRecommender(seed=0))
    campaign.add_measurements(campaign.recommend(3).assign(loss=[1.0, 2.0, 3.0]))
    campaign.recommender = RandomRecommender()
    loaded = Campaign.from_json(campaign.to_json())
    loaded.recommender = TransferRecommender(seed=0)
    assert len(loaded.recommend(2)) == 2
    with pytest.raises(InputError, match="put it in brackets"):
        TransferRecommender(campaign.measurements)


def test_what_headstart_does_not_know_is_refused_by_name() -> None:
    """When something is asked for, and each with what to do instead."""
    near = NumericalTarget.match_bell("loss", 7, 1)
    both = DesirabilityObjective(
        [NumericalTarget.normalized_ramp("a", (0, 1)), NumericalTarget.normalized_ramp("b", (0, 1))], [1, 1]
    )
    few = DiscreteSumConstraint(["T", "c"], ThresholdCondition(60.0, "<="))
    batch = ContinuousLinearConstraint(["x", "y"], "<=", [1.0, 1.0], 1.0, interpoint=True)
    cardinality = ContinuousCardinalityConstraint(["x", "y"], max_cardinality=1)
    refused: dict[str, tuple[Any, Any]] = {
        "is a task": (SearchSpace.from_product([T, TaskParameter("lab", ["a", "b"])]), GOAL),
        "no plain number": (SearchSpace.from_product([T]), SingleTargetObjective(near)),
        "a DesirabilityObjective": (SearchSpace.from_product([T]), both),
        "about a whole batch": (SearchSpace.from_product([X, Y], [batch]), GOAL),
        "nonlinear constraints": (SearchSpace.from_product([X, Y], [cardinality]), GOAL),
        "hybrid": (SearchSpace.from_product([T, C, X], [few]), GOAL),
    }
    for words, (space, goal) in refused.items():
        with pytest.raises(InputError, match=words):
            TransferRecommender().recommend(1, space, goal)
    with pytest.raises(InputError, match="no objective"):
        TransferRecommender().recommend(1, SearchSpace.from_product([T]))


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Its code, and the head start is there."""
    (block,) = blocks("docs/baybe.md")
    assert execute(block, "docs/baybe.md")["best"] > 88
    assert "source 1: " in capsys.readouterr().out
