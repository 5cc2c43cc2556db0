"""The sampler with RGPE and TST-R, which weigh sources by how they rank the study's results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import optuna
import pandas as pd
import pytest
from tests.problems import quick

from headstart import FAMILY, InputError, TransferSampler

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]
MODELS = pytest.mark.parametrize("name", ["RGPE", "TST-R"])


def _table(name: str, value: Callable[[float], float]) -> pd.DataFrame:
    x = [i / 11 for i in range(12)]
    frame = pd.DataFrame({"x": x, "loss": [value(v) for v in x], "heat": [v - 0.5 for v in x]})
    frame.attrs["name"] = name
    return frame


def _bowl(x: float) -> float:
    return (x - 0.3) ** 2


def _objective(trial: optuna.Trial) -> float:
    return 5 + 2 * _bowl(trial.suggest_float("x", 0, 1))


def _sampler(name: str, *sources: pd.DataFrame, **options: Any) -> TransferSampler:
    kin = _table("kin", _bowl)
    kin = kin.drop(columns=[] if options.get("constraints") else ["heat"])
    defaults: dict[str, Any] = {"model": quick(FAMILY[name]), "objective": "loss", "seed": 0}
    return TransferSampler([kin, *sources], **(defaults | options))


@MODELS
def test_a_name_chooses_the_model(name: str) -> None:
    """In upper and in lower case; what is no name is met with the nearest, or with all."""
    for written in (name, name.lower()):
        assert repr(TransferSampler(model=written)) == f"TransferSampler({name}, sources: none)"
    with pytest.raises(InputError, match=rf"no model {name[:-1] + 'q'!r}\. Did you mean {name.lower()!r}\?"):
        TransferSampler(model=name[:-1] + "q")
    with pytest.raises(InputError, match=rf"'forest'\. The known ones are 'gpbo', .*{name.lower()!r}, .*'auto'\."):
        TransferSampler(model="forest")


@MODELS
def test_the_past_is_used_from_the_first_trial_on(name: str) -> None:
    """A source of the same shape leads to the optimum at once, also where its results are on another scale."""
    study = optuna.create_study(sampler=_sampler(name))
    study.optimize(_objective, n_trials=4)
    assert abs(study.trials[0].params["x"] - 0.3) < 0.1
    assert abs(study.best_params["x"] - 0.3) < 0.02


@MODELS
def test_it_is_said_how_sources_are_weighted(name: str) -> None:
    """In the explanation and on the dashboard, the largest first: what ranks the wrong way round ends with nothing."""
    sampler = _sampler(name, _table("reverse", lambda x: -_bowl(x)))
    study = optuna.create_study(sampler=sampler)
    for x in (0.0, 0.15, 0.4, 0.6, 0.8, 1.0):
        study.enqueue_trial({"x": x})
    study.optimize(_objective, n_trials=7)
    told = rf"{name} has no verdicts, .*: kin (0\.\d+|1), reverse 0; this study itself (0(?:\.\d+)?)\."
    found = re.match(told, str(sampler.explain()))
    assert found is not None, str(sampler.explain())
    weight, own = map(float, found.groups())
    assert weight + own == pytest.approx(1, abs=2e-3)
    attributes = study.trials[-1].user_attrs
    assert attributes["headstart: model"] == f"{name} after 6 results"
    assert attributes["headstart: weight of kin"] == weight > 0
    assert attributes["headstart: weight of reverse"] == 0
    assert re.match(told, str(TransferSampler.explain(sampler, study)))
    assert "kin: 12 of 12 rows used" in str(sampler.explain())


@MODELS
def test_several_outcomes_are_refused(name: str) -> None:
    """Several objectives before the first trial runs, constraints and limits as soon as they are known."""
    message = rf"{name} is for one objective without constraints \(ranks .*\), but there are .*, {{}}\. Take another"
    with pytest.raises(InputError, match=message.format("'heat'")):
        _sampler(name, constraints={"heat": "heat"})
    with pytest.raises(InputError, match=message.format("'constraints_func'")):
        _sampler(name, constraints_func=lambda _: [0.0])
    runs: list[optuna.Trial] = []
    with pytest.raises(InputError, match=message.format("'1'")):
        optuna.create_study(directions=["minimize"] * 2, sampler=_sampler(name)).optimize(runs.append, n_trials=1)  # type: ignore[arg-type]
    assert runs == []

    def hot(trial: optuna.Trial) -> float:
        trial.set_constraint("heat", trial.suggest_float("x", 0, 1) - 0.5)
        return _objective(trial)

    study = optuna.create_study(sampler=_sampler(name))
    study.optimize(hot, n_trials=1)
    with pytest.raises(InputError, match=message.format("'constraint heat'")):
        study.optimize(hot, n_trials=1)
    with pytest.raises(InputError, match=message.format("'memory'")):
        optuna.create_study(sampler=_sampler(name, limits=["memory <= 3"])).optimize(_objective, n_trials=1)
