"""Parameters under other names, for all sources or for one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from optuna.storages import InMemoryStorage
from tests.unit.sources.forms.past_studies import X, read_one, study

from headstart.errors import InputError
from headstart.sources.past import Sources, read_sources

pytestmark = pytest.mark.usefixtures("quiet_optuna")


def table(*columns: str) -> pd.DataFrame:
    return pd.DataFrame({**{column: [1.0, 2.0] for column in columns}, "loss": [0.0, 1.0]})


def test_a_parameter_is_renamed_with_its_distribution() -> None:
    """In every source that has it, and a note says what it was called."""
    past, other = read_sources([study(), table("x", "y")], rename={"x": "lr"}, objective="loss")
    assert past.parameters == ("lr",)
    assert past.distributions == {"lr": X}
    assert past.notes == ("'x' is called 'lr' here",)
    assert other.parameters == ("lr", "y")


def test_what_is_said_of_one_source_goes_before_what_is_said_of_all() -> None:
    """Both may stand in one mapping, and two names may be exchanged."""
    first, second = read_sources(
        [study(), table("x", "y")], rename={"x": "lr", "source 2": {"x": "y", "y": "x"}}, objective="loss"
    )
    assert first.parameters == ("lr",)
    assert second.parameters == ("y", "x")
    storage = InMemoryStorage()
    study("a", storage=storage)
    study("b", storage=storage)
    tasks = Sources.from_storage(storage, rename={"b": {"x": "lr"}})
    assert [task.parameters for task in tasks] == [("x",), ("lr",)]


@pytest.mark.parametrize(
    ("rename", "message"),
    [
        ({"depht": "d"}, r"rename: no source has a parameter 'depht'\. Did you mean 'depth'\?"),
        ({"qqqq": "d"}, r"no source has a parameter 'qqqq'\. The known ones are 'depth', 'rate', 'x'\."),
        ({"sourc 1": {"depth": "d"}}, r"rename: there is no source 'sourc 1'\. Did you mean 'source 1'\?"),
        ({"source 1": {"dept": "d"}}, r"source 1 .* has no parameter 'dept' to rename\. Did you mean 'depth'\?"),
        ({"depth": "rate"}, r"'depth' and 'rate' of source 1 .* would both be called 'rate'"),
        ({"depth": "d", "rate": "d"}, r"'depth' and 'rate' of source 1 .* would both be called 'd'"),
        ({"depth": 3}, "rename: names are text, but 'depth' is to become 3"),
        ([("depth", "d")], r"rename must be \{old: new\}"),
    ],
)
def test_a_mistaken_name_is_answered_with_the_nearest(rename: Any, message: str) -> None:
    """A parameter or a source that is not there, two of one name, and no names at all."""
    with pytest.raises(InputError, match=message):
        read_sources([table("depth", "rate"), study()], rename=rename, objective="loss")


def test_names_of_a_source_that_is_out_of_reach_are_no_mistake(tmp_path: Path) -> None:
    """Nobody knows what it has: what could not be renamed is told along with it."""
    missing = f"sqlite:///{tmp_path / 'none.db'}"
    sources = read_sources([missing, study()], rename={"eta": "lr", "old": {"x": "lr"}}, objective={"old": "loss"})
    assert [task.parameters for task in sources] == [("x",)]
    assert len(sources.skipped) == 4
    assert any("no source has a parameter 'eta'" in line for line in sources.skipped)
    assert any("rename: there is no source 'old'" in line for line in sources.skipped)
    assert any("objective: there is no source 'old'" in line for line in sources.skipped)


def test_names_can_be_told_before_a_storage_is_read(tmp_path: Path) -> None:
    """A study of a pair has its name also where its storage is gone, so that renaming it is no mistake."""
    missing = f"sqlite:///{tmp_path / 'none.db'}"
    sources = read_sources([(missing, "old"), study()], rename={"old": {"eta": "lr"}})
    assert len(sources.skipped) == 1


def test_the_same_name_stays() -> None:
    """Renaming to what it is called already changes nothing."""
    assert read_one(study(), rename={"x": "x"}).notes == ()
