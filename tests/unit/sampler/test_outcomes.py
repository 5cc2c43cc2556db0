"""Studies with several objectives and with constraints, with a head start."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.trial import FrozenTrial

from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO, SHGP
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler
from headstart.sources.past import Sources

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna", "heard"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names
]


def both(trial: optuna.Trial, shift: float = 0.05) -> tuple[float, float]:
    """The front lies at y = 0.6, between x = 0.2, best for the cost, and x = 0.8, best for the gain."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    away = (y - 0.6 - shift) ** 2
    return (x - 0.2) ** 2 + away, 1 - (x - 0.8) ** 2 - away


def limited(trial: optuna.Trial, shift: float = 0.05) -> float:
    """Best at x = 1, but only up to x = 0.5 is the constraint held."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("heat", x - 0.5 - shift)
    return 1 - x + (y - 0.3) ** 2


def past_of(objective: Any, n: int = 20, names: list[str] | None = None, **options: Any) -> optuna.Study:
    study = optuna.create_study(study_name="past", sampler=optuna.samplers.RandomSampler(seed=0), **options)
    if names:
        study.set_metric_names(names)
    study.optimize(objective, n_trials=n)
    return study


def make(sources: Any, **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0}
    return TransferSampler(sources, **(defaults | options))


TWO: dict[str, Any] = {"directions": ["minimize", "maximize"]}


def test_two_objectives_are_informed_from_the_first_trial_on() -> None:
    """The first trials are on the front that the source shows, and not all in one place."""
    sampler = make([past_of(lambda trial: both(trial, 0.0), **TWO)])
    study = optuna.create_study(**TWO, sampler=sampler)
    study.optimize(both, n_trials=4)
    assert all(abs(trial.params["y"] - 0.6) < 0.25 for trial in study.trials[:3])
    xs = [trial.params["x"] for trial in study.trials]
    assert max(xs) - min(xs) > 0.2
    last = sampler.last
    assert isinstance(last, Suggested)
    assert last.known.outcomes.names == ("0", "1")
    told = repr(last)
    assert re.search(r"^0: expected ", told, re.M)
    assert re.search(r"^1: expected ", told, re.M)
    # the second is maximised, and shown as it is measured
    found = [float(n) for n in re.findall(r"^1: expected (-?[\d.e-]+)", told, re.M)]
    assert 0 < found[0] < 1.2


def test_a_maximised_and_a_minimised_objective_are_not_mixed_up() -> None:
    """The posterior means at the optimum of each agree with it in sign."""
    sampler = make([past_of(lambda trial: both(trial, 0.0), **TWO)])
    study = optuna.create_study(**TWO, sampler=sampler)
    study.optimize(both, n_trials=3)
    last = sampler.last
    assert isinstance(last, Suggested)
    X = last.alignment.space.encode([{"x": 0.2, "y": 0.65}, {"x": 0.8, "y": 0.65}])
    predicted = last.known.predict(X)
    assert predicted["0"][0][0] < predicted["0"][0][1]
    assert predicted["1"][0][0] < predicted["1"][0][1]
    assert predicted["1"][0][1] == pytest.approx(1.0, abs=0.2)


def test_constraints_of_past_studies_are_matched_by_key() -> None:
    """The first trial already keeps within what the source shows, near the limit where the objective is best."""
    sampler = make([past_of(lambda trial: limited(trial, 0.0))])
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, n_trials=4)
    assert study.trials[0].params["x"] < 0.56
    feasible = [t for t in study.trials if t.params["x"] <= 0.55]
    assert len(feasible) >= 2
    assert max(t.params["x"] for t in feasible) > 0.4
    assert "all constraints hold with a probability of" in repr(sampler.last)


def test_a_table_of_the_constraint_alone_is_used_for_it() -> None:
    """And for nothing else, as long as the study sets it."""
    cool = pd.DataFrame({"x": [0.0, 0.3, 0.6, 0.9], "y": [0.2, 0.9, 0.4, 0.7], "excess": [-0.5, -0.2, 0.1, 0.4]})
    cool.attrs["name"] = "cool"
    sampler = make([past_of(lambda trial: limited(trial, 0.0)), cool], objective="loss", constraints={"heat": "excess"})
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, n_trials=2)
    assert isinstance(sampler.last, Suggested)
    names = {name: [source.n for source in prior.sources] for name, prior in sampler.last.fitted.priors.items()}
    assert names == {"0": [20], "constraint heat": [20, 4]}


def test_constraints_nobody_knew_are_learnt_from_the_study() -> None:
    """From the first finished trial on they are an outcome."""
    sampler = make([past_of(lambda t: 1 - t.suggest_float("x", 0, 1) + (t.suggest_float("y", 0, 1) - 0.3) ** 2)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(limited, n_trials=4)
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.known.outcomes.names == ("0", "constraint heat")
    assert any(trial.params["x"] <= 0.55 for trial in study.trials[1:])


def test_constraints_by_a_function() -> None:
    """As Optuna 4 has them: a list, whose places are the keys."""

    def constraints(trial: FrozenTrial) -> tuple[float, ...]:
        return (trial.params["x"] - 0.5, -1.0)

    sampler = make([], constraints_func=constraints)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: 1 - t.suggest_float("x", 0, 1), n_trials=4)
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.known.outcomes.names == ("0", "constraint 0", "constraint 1")
    assert any(0.2 < t.params["x"] <= 0.5 for t in study.trials)
    with pytest.raises(InputError, match="constraints_func must be a function"):
        TransferSampler([], constraints_func=3)  # type: ignore[arg-type]


def test_objectives_are_matched_by_metric_names() -> None:
    """A past study that measured one of the two is used for that one, whatever its number."""
    gain = past_of(lambda t: both(t, 0.0)[1], names=["gain"], direction="maximize")
    sampler = make([gain])
    study = optuna.create_study(**TWO, sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    study.optimize(both, n_trials=2)
    last = sampler.last
    assert isinstance(last, Suggested)
    assert [source.name for source in last.fitted.priors["gain"].sources] == ["past"]
    assert last.fitted.priors["cost"].sources == ()


def test_a_source_with_several_objectives_needs_a_name_for_a_study_with_one() -> None:
    """Which is the study's metric name, or said; before the first trial has run."""
    source = past_of(lambda trial: both(trial, 0.0), names=["cost", "gain"], **TWO)
    runs: list[int] = []

    def one(trial: optuna.Trial) -> float:
        value = both(trial)[1]
        runs.append(trial.number)
        return value

    study = optuna.create_study(direction="maximize", sampler=make([source]))
    with pytest.raises(InputError, match=r"has 2 objectives, 'cost', 'gain', but the study has one"):
        study.optimize(one, n_trials=1)
    assert runs == []
    named = optuna.create_study(direction="maximize", sampler=make([source]))
    named.set_metric_names(["gain"])
    named.optimize(one, n_trials=1)
    assert abs(named.trials[0].params["x"] - 0.8) < 0.2
    said = optuna.create_study(direction="maximize", sampler=make([source], objective="gain"))
    said.optimize(one, n_trials=1)
    assert abs(said.trials[0].params["x"] - 0.8) < 0.2


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("objective", ["cost", "0", 0, ["cost"], {"past": "cost"}, {"past": 0}])
def test_the_objective_that_is_named_is_used_to_the_end(
    objective: Any, constrained: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """By name or by number, for all sources or for one, with a constraint of the study and without."""
    past = past_of(lambda trial: both(trial, 0.0), names=["cost", "gain"], **TWO)
    sampler = make([past], objective=objective)
    study = optuna.create_study(sampler=sampler)

    def one(trial: optuna.Trial) -> float:
        if constrained:
            trial.set_constraint("heat", -1.0)
        return both(trial)[0]

    used = []
    for _ in range(3):
        study.optimize(one, n_trials=1)
        assert isinstance(sampler.last, Suggested)
        used.append([source.n for source in sampler.last.fitted.priors["0"].sources])
    assert used == [[20]] * 3
    assert "left out" not in caplog.text


def test_sources_that_were_read_before_are_asked_like_others(tmp_path: Path) -> None:
    """What was read from a storage, lists of trials and tables of trials."""
    url = f"sqlite:///{tmp_path / 'past.db'}"
    past = past_of(lambda trial: both(trial, 0.0), names=["cost", "gain"], storage=url, **TWO)
    for source in (Sources.from_storage(url), [past.trials], [past.trials_dataframe()]):
        sampler = make(source, objective=1)
        optuna.create_study(direction="maximize", sampler=sampler).optimize(lambda t: both(t)[1], n_trials=1)
        assert isinstance(sampler.last, Suggested)
        (known,) = sampler.last.alignment.datasets
        assert known.y.tolist() == pytest.approx([-trial.values[1] for trial in past.trials])


def test_unnamed_objectives_that_went_the_other_way_are_turned_round() -> None:
    """By their number."""
    source = past_of(lambda trial: tuple(-v for v in both(trial, 0.0)), directions=["maximize", "minimize"])
    sampler = make([source])
    study = optuna.create_study(**TWO, sampler=sampler)
    study.optimize(both, n_trials=2)
    assert all(abs(trial.params["y"] - 0.6) < 0.25 for trial in study.trials)


def test_more_than_three_objectives_are_refused() -> None:
    """With what to do instead."""
    study = optuna.create_study(directions=["minimize"] * 5, sampler=make([]))
    with pytest.raises(InputError, match=r"at most 4 objectives.*has 5.*constraints"):
        study.optimize(lambda t: [t.suggest_float("x", 0, 1)] * 4, n_trials=2)


def test_every_outcome_is_explained_and_shown() -> None:
    """By name; the attributes of a trial have the verdicts on the sources of each."""
    source = past_of(lambda trial: both(trial, 0.0), names=["cost", "gain"], **TWO)
    sampler = make([source], model=AUTO.using(fit=QUICK.fit))
    study = optuna.create_study(**TWO, sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    study.optimize(both, n_trials=3)
    assert "believed after 2 observations" in str(sampler.explain())
    assert "believed after 2 observations" in str(sampler.explain(outcome="gain"))
    assert "believed after 3 observations" in str(sampler.explain(study, outcome="gain"))
    with pytest.raises(InputError, match=r"no outcome 'yield': there are cost, gain"):
        sampler.explain(outcome="yield")
    assert study.trials[-1].user_attrs["headstart: gain, sources"] == "past not known yet"


def test_rows_without_an_outcome_count_for_the_others() -> None:
    """A constraint that only some trials set is learnt from those."""

    def sometimes(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        if trial.number % 2:
            trial.set_constraint("heat", x - 0.5)
        return 1 - x

    sampler = make([past_of(sometimes)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(sometimes, n_trials=3)
    last = sampler.last
    assert isinstance(last, Suggested)
    assert last.fitted.priors["constraint heat"].sources[0].n == 10
    assert last.known["constraint heat"].train_targets.shape == (1,)
    assert last.known["0"].train_targets.shape == (2,)


def test_infinite_and_failing_trials_stop_nobody() -> None:
    """With two objectives as with one."""
    sampler = make([past_of(lambda trial: both(trial, 0.0), **TWO)])
    study = optuna.create_study(**TWO, sampler=sampler)

    def odd(trial: optuna.Trial) -> tuple[float, float]:
        a, b = both(trial)
        if trial.number == 1:
            raise ValueError
        return (math.inf, b) if trial.number == 2 else (a, -math.inf) if trial.number == 3 else (a, b)

    study.optimize(odd, n_trials=5, catch=ValueError)
    assert np.isfinite(study.trials[-1].values).all()


def test_a_confidence_bound_is_honoured_with_a_constraint() -> None:
    """With few results and a large β the two acquisition functions choose different points."""
    past = past_of(lambda trial: limited(trial, 0.0))
    found = []
    for options in ({"acquisition": "logei"}, {"acquisition": "ucb", "beta": 9.0}):
        study = optuna.create_study(sampler=make([past], **options))
        study.optimize(limited, n_trials=2)
        found.append([[trial.params["x"], trial.params["y"]] for trial in study.trials])
    assert not np.allclose(found[0], found[1], atol=0.02)


def test_a_confidence_bound_is_refused_with_two_objectives() -> None:
    """It is one of a single objective: the message names the alternative."""
    study = optuna.create_study(**TWO, sampler=make([past_of(both, **TWO)], acquisition="ucb"))
    with pytest.raises(InputError, match="acquisition='logei'"):
        study.optimize(both, n_trials=3)


@pytest.mark.parametrize("constrained", [False, True])
def test_a_source_that_went_the_other_way_is_told_once(constrained: bool, caplog: pytest.LogCaptureFixture) -> None:
    """In the same words with a constraint and without, and its values change their sign."""
    past = past_of(lambda trial: -both(trial, 0.0)[0], direction="maximize")
    sampler = make([past])

    def one(trial: optuna.Trial) -> float:
        if constrained:
            trial.set_constraint("heat", -1.0)
        return both(trial)[0]

    study = optuna.create_study(sampler=sampler)
    study.optimize(one, n_trials=3)
    turned = [r.getMessage() for r in caplog.records if "turned round" in r.getMessage()]
    assert turned == [
        "past: it was maximised and the new task is minimised: its sign is turned round (see sampler.explain())"
    ]
    assert isinstance(sampler.last, Suggested)
    X = sampler.last.alignment.space.encode([{"x": 0.2, "y": 0.6}, {"x": 0.9, "y": 0.1}])
    mean, _ = sampler.last.known.predict(X)["0"]
    assert mean[0] < mean[1]
