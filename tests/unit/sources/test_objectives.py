"""Which objective of a source is which of the new study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from headstart.data.outcomes import Goal
from headstart.errors import InputError
from headstart.sources.objectives import choose, of_goals
from headstart.sources.raw import RawObjective, RawTask

ONE = (Goal("0"),)
TWO = (Goal("0"), Goal("1"))


def task(*names: str, maximize: bool | None = None) -> RawTask:
    """One row; the i-th objective is i."""
    own = {name: RawObjective(np.array([float(i)]), maximize) for i, name in enumerate(names)}
    return RawTask("past", pd.DataFrame({"x": [0.5]}), np.array([0.0]), objectives=own, maximize=maximize)


def taken(source: RawTask, goals: tuple[Goal, ...], *asked: str, must: bool = False) -> dict[str, float]:
    """The number of the source's objective by that of the study."""
    return {name: float(own.y[0]) for name, own in of_goals(choose(source, asked, must=must), goals).items()}


def test_one_is_named_by_its_name_or_its_number() -> None:
    """However it is spelled, of all sources or of one; a source with a single one has it anyhow."""
    past = task("error", "time")
    for asked in ("error", "Error", "0"):
        for must in (False, True):
            assert taken(past, ONE, asked, must=must) == {"0": 0.0}
    assert taken(past, ONE, "time") == taken(past, ONE, "1") == {"0": 1.0}
    assert taken(task("0", "1"), ONE, "1") == {"0": 1.0}
    assert taken(task("0"), ONE, "loss") == taken(task("accuracy"), ONE, "loss") == taken(task("0"), ONE) == {"0": 0.0}


def test_what_is_not_there_is_refused_with_what_is() -> None:
    """Of a source with several, or where it was asked of this source alone."""
    for asked, names in (("los", "'error', 'time'"), ("2", "'error', 'time'")):
        with pytest.raises(InputError, match=rf"past' has no objective '{asked}'\. There are {names}\."):
            choose(task("error", "time"), [asked], must=False)
    with pytest.raises(InputError, match=r"has no objective 'loss'\. There is '0'\."):
        choose(task("0"), ["loss"], must=True)
    with pytest.raises(InputError, match=r"names 'error' twice, by 'error' and '0'"):
        choose(task("error", "time"), ["error", "0"], must=False)


def test_metric_names_of_the_study_go_before_places() -> None:
    """The other names are its other objectives, in order, also where a source lacks some."""
    goals = (Goal("cost"), Goal("gain"))
    assert taken(task("gain", "cost"), goals, "gain", "cost") == {"cost": 1.0, "gain": 0.0}
    assert taken(task("gain", "price"), goals, "gain", "price") == {"cost": 1.0, "gain": 0.0}
    assert taken(task("price", "profit"), goals, "price", "profit") == {"cost": 0.0, "gain": 1.0}
    assert taken(task("price"), goals, "gain", "price") == {"cost": 0.0}
    assert taken(task("profit"), goals, "price", "profit") == {"gain": 0.0}


def test_without_names_numbers_decide() -> None:
    """As many objectives on both sides; named ones are in the study's order, and the rest stays where it is."""
    assert taken(task("0", "1"), TWO) == taken(task("error", "time"), TWO) == {"0": 0.0, "1": 1.0}
    assert taken(task("0", "1"), TWO, "1", "0") == {"0": 1.0, "1": 0.0}
    assert taken(task("0", "1"), TWO, "0") == {"0": 0.0, "1": 1.0}
    assert taken(task("0", "1"), TWO, "1") == {"0": 1.0}
    assert taken(task("0", "1", "2"), TWO) == {}
    assert taken(task("0"), TWO) == {"0": 0.0}
    assert taken(task("accuracy"), TWO) == {}


def test_several_named_for_a_study_with_one_decide_nothing() -> None:
    """Unless one is the study's own."""
    assert taken(task("error", "time"), ONE, "time", "error") == {}
    assert taken(task("error", "time"), (Goal("time"),), "error", "time") == {"time": 1.0}
    assert taken(task("error", "time"), (Goal("time"),)) == {"time": 1.0}
    assert taken(task("error", "time"), (Goal("loss"),)) == {}


def test_only_what_has_another_name_is_turned_round() -> None:
    """A quantity of the same metric name is what it is, whichever way the study wants it."""
    past = task("heat", maximize=True)
    assert of_goals(past, (Goal("heat"),))["heat"].maximize is False
    assert of_goals(past, ONE)["0"].maximize is True
    assert of_goals(task("heat"), (Goal("0", maximize=True),))["0"].maximize is True
