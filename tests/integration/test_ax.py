"""``TransferNode`` in Ax's own loop: its Client, its search spaces, its objectives, and what it refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ax", reason="Ax is not installed: pip install 'headstart[ax]'")

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig
from ax.core.parameter import ParameterType, RangeParameter
from ax.generation_strategy.generation_strategy import GenerationStrategy
from tests.integration.pages import ROOT, blocks, execute, run_notebook

from headstart import InputError
from headstart.platforms.ax import TransferNode

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("default"),  # Ax gives some of its own
]

X = RangeParameterConfig(name="x", parameter_type="float", bounds=(0, 1))
RATE = RangeParameterConfig(name="rate", parameter_type="float", bounds=(1e-5, 1e-1), scaling="log")
N = RangeParameterConfig(name="n", parameter_type="int", bounds=(1, 9))
SIZE = ChoiceParameterConfig(name="size", parameter_type="int", values=[16, 32, 64], is_ordered=True)
KIND = ChoiceParameterConfig(name="kind", parameter_type="str", values=["a", "b", "c"], is_ordered=False)
FIXED = ChoiceParameterConfig(name="fixed", parameter_type="int", values=[3])
EVERY = [X, RATE, N, SIZE, KIND, FIXED]


def loss(own: Any, shift: float = 0.0) -> float:
    """Lowest, 0, at x = 0.3, rate = 1e-3, n = 5, size = 32 and kind a."""
    parts = (own["x"] - 0.3 - shift, (math.log10(own["rate"]) + 3 - shift) / 4, (own["n"] - 5) / 8)
    return sum(part**2 for part in parts) + 0.1 * abs(math.log2(own["size"]) - 5) + (0.2 if own["kind"] != "a" else 0.0)


def settings(i: int) -> dict[str, Any]:
    """Points all over the space."""
    return {
        "x": (i * 0.618) % 1,
        "rate": 10 ** (-5 + 4 * ((i * 0.414) % 1)),
        "n": 1 + i * 5 % 9,
        "size": (16, 32, 64)[i % 3],
        "kind": "abc"[i * 7 % 11 % 3],
        "fixed": 3,
    }


def client(objective: str, parameters: Any = EVERY, **more: Any) -> Client:
    made = Client(random_seed=0)
    made.configure_experiment(parameters=parameters, name="experiment", **more.pop("space", {}))
    made.configure_optimization(objective=objective, **more)
    return made


def past_client(n: int = 30, sign: float = 1.0) -> Client:
    made = client("-loss" if sign > 0 else "loss")
    for i in range(n):
        index = made.attach_trial(settings(i))
        made.complete_trial(index, raw_data={"loss": sign * loss(settings(i))})
    return made


def started(made: Client, sources: Any, **options: Any) -> TransferNode:
    node = TransferNode(sources, **{"seed": 0, **options})
    made.set_generation_strategy(GenerationStrategy(name="headstart", nodes=[node]))
    return node


def test_the_first_arm_is_informed_and_the_loop_goes_on() -> None:
    """Ranges, integers, log scales, ordered and unordered choices and a fixed value; results with and without error."""
    made = client("-loss")
    node = started(made, [past_client()._experiment])
    with pytest.raises(InputError, match="No candidate was asked for yet"):
        node.explain()
    found = []
    for round_ in range(4):
        for index, parameters in made.get_next_trials(max_trials=2).items():
            assert parameters["fixed"] == 3
            assert isinstance(parameters["n"], int)
            result = loss(parameters, shift=0.05)
            found.append(result)
            made.complete_trial(index, raw_data={"loss": (result, 0.01) if round_ > 1 else result})
    assert found[0] < 0.1  # one of fifty of the past ones is
    assert min(found) < 0.03
    assert "experiment: " in str(node.explain())
    assert node.explain().n_observations == 6


@pytest.mark.parametrize("form", ["summary", "csv"])
def test_a_table_is_a_source_and_what_is_maximised_is(form: str, tmp_path: Path) -> None:
    """What a past Client summarises, or a CSV file, with a column of the metric's name."""
    table = past_client(sign=-1)._experiment.to_df() if form == "csv" else past_client(sign=-1).summarize()
    source: Any = table
    if form == "csv":
        source = tmp_path / "past.csv"
        table.to_csv(source, index=False)
    made = client("loss")
    started(made, [source])
    ((_, parameters),) = made.get_next_trials(max_trials=1).items()
    assert loss(parameters) < 0.1


def test_sources_are_a_list() -> None:
    """One alone is refused where it is given."""
    for alone in ("past.csv", past_client(3)._experiment, past_client(3).summarize()):
        with pytest.raises(InputError, match="put it in brackets"):
            TransferNode(alone)


def test_a_saved_experiment_goes_on(tmp_path: Path) -> None:
    """With the node given anew to the Client that was loaded."""
    made = client("-loss")
    started(made, [past_client()._experiment])
    made.get_next_trials(max_trials=1)
    made.configure_generation_strategy()
    made.save_to_json_file(str(tmp_path / "saved.json"))
    loaded = Client.load_from_json_file(str(tmp_path / "saved.json"))
    started(loaded, [past_client()._experiment])
    ((index, parameters),) = loaded.get_next_trials(max_trials=1).items()
    assert index == 1
    assert loss(parameters) < 0.2


def test_awaited_and_failed_trials_are_not_asked_for_again() -> None:
    """Also where they were attached by hand, and in a generation strategy that was copied."""
    made = client("-loss", [X, N])
    node = TransferNode(seed=0)
    strategy = GenerationStrategy(name="headstart", nodes=[node]).clone_reset()
    made.set_generation_strategy(strategy)
    made.attach_trial({"x": 0.5, "n": 5})
    asked = list(made.get_next_trials(max_trials=3).values())
    index, (parameters,) = made.attach_trial({"x": 0.1, "n": 2}), made.get_next_trials(max_trials=1).values()
    made.mark_trial_failed(index)
    asked += [parameters, *made.get_next_trials(max_trials=2).values()]
    points = [(0.5, 5), (0.1, 2), *((p["x"], p["n"]) for p in asked)]
    for i, (x, n) in enumerate(points):
        assert all(abs(x - other) > 1e-3 or n != m for other, m in points[:i])


def test_constraints_are_kept() -> None:
    """Of parameters always, of outcomes as far as is known."""
    table = past_client()._experiment.to_df().assign(heat=lambda own: own.x)
    constraints = {"parameter_constraints": ["10*x + n <= 6"]}
    made = client("-loss", EVERY, space=constraints, outcome_constraints=["heat <= 0.1"])
    started(made, [table])
    for index, own in made.get_next_trials(max_trials=3).items():
        assert 10 * own["x"] + own["n"] <= 6 + 1e-9
        assert own["x"] < 0.15
        made.complete_trial(index, raw_data={"loss": loss(own), "heat": own["x"]})


def test_several_objectives_are_a_front() -> None:
    """Each is learnt from the sources that have it, and has its own direction."""
    table = past_client()._experiment.to_df().assign(speed=lambda own: own.x)
    made = client("-loss, speed")
    node = started(made, [table])
    for _ in range(2):
        for index, own in made.get_next_trials(max_trials=2).items():
            assert own["x"] > 0.25
            made.complete_trial(index, raw_data={"loss": loss(own), "speed": own["x"]})
    assert "related" in str(node.explain(outcome="speed"))


def test_what_headstart_does_not_know_is_refused_by_name() -> None:
    """When a candidate is asked for, and each with what to do instead."""
    refused = {
        "sum of metrics": client("-loss - 2 * cost"),
        "relative to a baseline": client("-loss", outcome_constraints=["cost <= 0.9 * baseline"]),
        "about a sum of metrics": client("-loss", outcome_constraints=["cost + 2 * heat <= 1"]),
        "is a DerivedParameter": client(
            "-loss", [X, DerivedParameterConfig(name="y", parameter_type="float", expression_str="2 * x")]
        ),
        "is hierarchical": client(
            "-loss",
            [
                X,
                ChoiceParameterConfig(
                    name="k", parameter_type="str", values=["a", "b"], dependent_parameters={"a": ["x"]}
                ),
            ],
        ),
    }
    for words, made in refused.items():
        started(made, [])
        with pytest.raises(InputError, match=words):
            made.get_next_trials(max_trials=1)
    made = client("-loss", [N])
    fidelity = RangeParameter("f", ParameterType.FLOAT, 0, 1, is_fidelity=True, target_value=1)
    made._experiment.search_space.add_parameter(fidelity)
    started(made, [])
    with pytest.raises(InputError, match="is a fidelity"):
        made.get_next_trials(max_trials=1)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks, one after the other, and the head start is there."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks("docs/ax.md"):
        execute(block, "docs/ax.md", names)
    assert names["best"] < 0.05
    assert "last year" in capsys.readouterr().out


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With past campaigns the best of the first five experiments is better than without."""
    monkeypatch.chdir(ROOT / "examples")
    monkeypatch.syspath_prepend(ROOT / "examples")
    names = run_notebook("examples/ax.ipynb")
    assert max(names["with_past"][:5]) > max(names["from_scratch"][:5])
    assert "2023-amide-a" in capsys.readouterr().out
