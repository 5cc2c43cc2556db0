"""The best past settings, and what is expected of them now."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.unit.campaign.campaigns import make
from tests.unit.campaign.several import make_several

from headstart.campaign.best_past import _best_first, best_past, best_result, past_runs
from headstart.campaign.campaign import open_campaign
from headstart.campaign.fitted import Fitted, fit_campaign
from headstart.campaign.suggestions import outlooks_at
from headstart.data.outcomes import Standing


def _fitted(folder: Path) -> Fitted:
    return fit_campaign(open_campaign(folder))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_they_are_the_best_of_all_past_campaigns_in_the_users_direction(tmp_path: Path, direction: str) -> None:
    """With what was measured, where, and what the model expects of a measurement at these settings now."""
    fitted = _fitted(make(tmp_path, direction=direction))
    found = best_past(fitted, 2)
    past = fitted.campaign.past
    rows = sorted((y, x, task.name) for task in past for x, y in zip(task.rows["x"], task.y, strict=True))
    ranked = rows[::-1] if direction == "maximize" else rows
    first = {x: (y, x, name) for y, x, name in reversed(ranked)}  # both have run the same settings
    best = [row for row in ranked if first[row[1]] == row][:2]
    assert [(one.measured["y"], one.now.values["x"], one.campaign) for one in found] == best
    assert outlooks_at(fitted, [one.now.values for one in found]) == tuple(one.now for one in found)
    assert all(one.moved == () and one.runs == 1 for one in found)


def test_repeats_count_as_their_mean_and_settings_are_shown_once(tmp_path: Path) -> None:
    """One lucky run among repeats does not lead, and the same settings of another campaign are no further ones."""
    make(tmp_path)
    (tmp_path / "a.csv").write_text("run,x,s,y\n1,0.5,u,12\n2,0.5,u,6\n3,0.7,u,10\n4,0.2,v,1\n5,0.9,v,2\n6,0.1,u,3\n")
    (tmp_path / "b.csv").write_text("run,x,s,y\n1,0.7,u,8\n2,0.4,u,7\n3,0.1,v,1\n4,0.95,v,0\n5,0.3,u,5\n")
    found = best_past(_fitted(tmp_path))
    assert [(one.now.values["x"], one.campaign, one.measured["y"], one.runs) for one in found] == [
        (0.7, "a", 10, 1),
        (0.5, "a", 9, 2),
        (0.4, "b", 7, 1),
    ]
    assert found[1].told("y") == "9 (mean of 2)"


def test_settings_that_cannot_be_set_any_more_are_moved_and_say_so(tmp_path: Path) -> None:
    """To the nearest that may be suggested; a parameter that was not recorded is named too."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace("high = 1.0", "high = 0.5"))
    first = best_past(_fitted(tmp_path))[0]
    assert first.now.values == {"x": 0.5, "s": "u"}
    assert first.moved == ("x",)
    (tmp_path / "b.csv").write_text("run,x,y\n" + "".join(f"{i},0.{i},{20 + i}\n" for i in range(1, 6)))
    first = best_past(_fitted(tmp_path))[0]
    assert (first.campaign, first.now.values["x"]) == ("b", 0.5)
    assert first.moved == ("s",)


def test_with_a_target_the_nearest_are_the_best(tmp_path: Path) -> None:
    """Of the past, of each campaign in it, and of the own rows: neither the highest nor the lowest."""
    folder = make(tmp_path, current="x,s,y\n0.3,u,4\n0.5,u,7.4\n0.9,u,5\n")
    toml = folder / "headstart.toml"
    toml.write_text(toml.read_text().replace('direction = "maximize"', "target = 6.5"))
    fitted = _fitted(folder)
    values = [float(y) for task in fitted.campaign.past for y in task.y]
    nearest = sorted(abs(y - 6.5) for y in values)
    assert [abs(one.measured["y"] - 6.5) for one in best_past(fitted, 2)] == pytest.approx(nearest[:2])
    (goal,) = fitted.campaign.file.outcomes.goals
    runs = [(run.measured, run.standing) for run in past_runs(fitted)]
    assert best_result(runs, goal) == (min(values, key=lambda y: abs(y - 6.5)), Standing.WITHIN)
    best = fitted.campaign.best
    assert best is not None
    assert best.results["y"] == 7.4


def test_the_row_that_has_them_already_is_named(tmp_path: Path) -> None:
    """Also one that is pending."""
    fitted = _fitted(make(tmp_path, current="x,s,y\n0.1,v,1\n0.542,u,\n"))
    at = {one.now.values["x"]: one.row_in(fitted.campaign) for one in best_past(fitted)}
    assert at[0.542] == 3
    assert set(at.values()) == {3, None}


def test_of_several_objectives_they_are_on_the_front_and_within_the_limits(tmp_path: Path) -> None:
    """What lacks an objective or broke a limit does not count, and rules are kept."""
    fitted = _fitted(make_several(tmp_path))
    found = best_past(fitted)
    assert {one.campaign for one in found} == {"old"}  # the other knows no cost
    assert all(one.measured["dirt"] <= 2.0 for one in found)
    assert all(fitted.campaign.settings.broken(one.now.values) is None for one in found)
    task = next(task for task in fitted.campaign.past if task.name == "old")
    y, cost, dirt = (task.objectives[name].y for name in ("y", "cost", "dirt"))
    first = found[0].measured
    assert not ((y > first["y"]) & (cost < first["cost"]) & (dirt <= 2.0)).any()


def test_past_settings_whose_limit_was_not_measured_follow_those_within_and_say_so(tmp_path: Path) -> None:
    """However good they were."""
    make_several(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('[objectives.cost]\ndirection = "minimize"\n', ""))
    found = best_past(_fitted(tmp_path))
    assert all(one.measured["dirt"] <= 2 and one.unmeasured == () for one in found)
    rows = (tmp_path / "older.csv").read_text().splitlines()
    (tmp_path / "older.csv").write_text("\n".join(["a,b,s,y", *(row.rpartition(",")[0] for row in rows[1:])]))
    fitted = _fitted(tmp_path)
    found = best_past(fitted, 20)
    order = [one.unmeasured for one in found]
    assert order == sorted(order)  # () first
    assert {one.campaign for one in found if one.unmeasured} == {"older"}
    unknown = next(one for one in found if one.unmeasured)
    assert unknown.unknown_limits == "dirt not measured then"
    assert any(unknown.measured["y"] > one.measured["y"] for one in found if not one.unmeasured)
    best = max((run for run in past_runs(fitted) if run.standing is Standing.WITHIN), key=lambda run: run.measured["y"])
    runs = [(run.measured, run.standing) for run in past_runs(fitted)]
    goal = fitted.campaign.file.outcomes.goals[0]
    assert best_result(runs, goal) == (best.measured["y"], Standing.WITHIN)
    only_unknown = [(measured, standing) for measured, standing in runs if standing is not Standing.WITHIN]
    assert best_result(only_unknown, goal) == (unknown.measured["y"], Standing.UNKNOWN)
    assert best_result([({"y": 1.0}, Standing.BEYOND)], goal) is None


def test_an_outlier_of_a_limited_quantity_breaks_the_limit(tmp_path: Path) -> None:
    """It is left out of the model, but known: such settings are no good ones of which nothing is known."""
    make_several(tmp_path)
    rows = (tmp_path / "old.csv").read_text().splitlines()
    y = [float(row.split(",")[3]) for row in rows[1:]]
    i = 1 + int(np.argmax(y))
    rows[i] = rows[i].rpartition(",")[0] + ",1e9"
    (tmp_path / "old.csv").write_text("\n".join(rows))
    fitted = _fitted(tmp_path)
    assert fitted.outcomes[-1].prior.outliers[0].any()
    (run,) = (run for run in past_runs(fitted) if run.measured.get("y") == max(y) and run.campaign == "old")
    assert run.standing is Standing.BEYOND


def test_fronts_follow_each_other_from_the_most_balanced_on() -> None:
    """A point between two extremes leads its front; a dominated one comes after all of it."""
    Y = np.array([[0.0, 10.0], [10.0, 0.0], [2.0, 2.0], [3.0, 3.0], [20.0, 20.0]])
    assert list(_best_first(Y)) == [2, 0, 1, 3, 4]
    assert list(_best_first(np.array([[3.0], [1.0], [2.0]]))) == [1, 2, 0]


def test_without_a_past_there_are_none(tmp_path: Path) -> None:
    """Nothing is made up."""
    make(tmp_path)
    toml = tmp_path / "headstart.toml"
    toml.write_text(toml.read_text().replace('["a.csv", "b.csv"]', "[]"))
    assert best_past(_fitted(tmp_path)) == ()
