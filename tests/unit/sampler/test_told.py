"""What the sampler tells, and what it refuses before a trial runs."""

from __future__ import annotations

import logging
import re
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO, SHGP
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=20))

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna", "heard"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),
]


def table(name: str = "past", **more: Any) -> pd.DataFrame:
    """Ten rows of x, with results and what else there is."""
    x = [i / 10 for i in range(10)]
    frame = pd.DataFrame({"x": x, **more, "loss": [(v - 0.3) ** 2 for v in x]})
    frame.attrs["name"] = name
    return frame


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "objective": "loss"}
    return TransferSampler(sources, **(defaults | options))


def bowl(trial: optuna.Trial) -> float:
    return (trial.suggest_float("x", 0, 1) - 0.3) ** 2


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_without_sources_an_explanation_says_so() -> None:
    """None were given, or none is of use; it has no rows, and an outlook all the same."""
    for sources, why in (((), "There are no sources"), (None, "There are no sources")):
        sampler = make(sources, model=AUTO.using(fit=QUICK.fit))
        study = optuna.create_study(sampler=sampler)
        study.optimize(bowl, n_trials=3)
        reasons = sampler.explain()
        assert str(reasons).startswith(why)
        assert len(reasons.to_frame()[["source", "verdict", "gain", "share"]]) == 0
        assert why in reasons._repr_html_()
        assert "too early to say with 3" in str(sampler.explain(study).outlook)
    other = pd.DataFrame({"y": [0.1, 0.2, 0.3], "loss": [1.0, 2.0, 3.0]})
    sampler = make([other], model=AUTO.using(fit=QUICK.fit))
    optuna.create_study(sampler=sampler).optimize(bowl, n_trials=2)
    assert str(sampler.explain()).startswith("No source can be used: what was found is below.")
    assert "nothing in common with x" in str(sampler.explain())


def test_the_latest_suggestion_tells_whether_to_go_on() -> None:
    """When it is printed or shown, from the results that there are then; its representation takes no computing."""
    sampler = make([table("<march>")])
    study = optuna.create_study(sampler=sampler)
    study.optimize(bowl, n_trials=1)
    last = sampler.last
    assert last is not None
    assert "too early to say with 1 of at least" in str(last)
    assert "too early" not in repr(last)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    assert "too early to say with 2 of at least" in str(last.outlook)
    shown = last._repr_html_()
    assert re.search("<td[^>]*>x</td>", shown)
    assert "&lt;march&gt; (10 rows)" in shown
    assert "too early to say" in shown
    assert last.outlook._repr_html_() == f"<p>{last.outlook}</p>"
    assert "&lt;march&gt;: 10 of 10 rows used" in last.alignment._repr_html_()


def test_a_notebook_shows_verdicts_and_decisions() -> None:
    """A row for each source, and what was done about it."""
    sampler = make([table("<march>")], model=AUTO.using(fit=QUICK.fit))
    optuna.create_study(sampler=sampler).optimize(bowl, n_trials=1)
    shown = sampler.explain()._repr_html_()
    assert re.search("<td[^>]*>&lt;march&gt;</td><td[^>]*>10</td>", shown)
    assert "believed after 0 observations" in shown
    assert "&lt;march&gt;: 10 of 10 rows used" in shown
    assert "<march>" not in shown


def test_outcomes_are_explained_by_number_too() -> None:
    """Of an objective with a metric name."""
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=make())
    study.set_metric_names(["a", "b"])
    study.optimize(lambda t: (bowl(t), 1 - t.params["x"]), n_trials=2)
    assert isinstance(study.sampler, TransferSampler)
    for outcome in ("b", "1", 1):
        assert "'b'" in str(study.sampler.explain(outcome=outcome))
    with pytest.raises(InputError, match="no outcome '2': there are a, b"):
        study.sampler.explain(outcome="2")


@pytest.mark.parametrize(
    ("directions", "options", "message"),
    [
        (4, {}, r"at most \d objectives .* has 4"),
        (
            2,
            {"acquisition": "ucb"},
            r"acquisition='ucb' is the bound of one objective, but the study has 2\. Use .*'logei'",
        ),
        (1, {"error": {"lss": "sd"}}, r"error: there is no objective 'lss'\. Did you mean 'loss'\?"),
        (1, {"error": {"nonsense": "sd"}, "objective": None}, r"error: there is no objective 'nonsense'"),
    ],
)
def test_what_cannot_be_is_refused_before_the_first_trial(directions: int, options: Any, message: str) -> None:
    """Also where there is no source; nothing has run then."""
    many = directions > 3
    for sources in ((), [table()]) if "objective" not in options else ((),):
        if not sources and "error" in options and "objective" not in options:
            continue
        study = optuna.create_study(
            directions=["minimize"] * (9 if many else directions), sampler=make(sources, **options)
        )
        ran: list[int] = []
        with pytest.raises(InputError, match=message.replace("has 4", "has 9")):
            study.optimize(lambda t, ran=ran: ran.append(t.number) or [bowl(t)] * len(t.study.directions), n_trials=1)  # type: ignore[misc]
        assert ran == []


def test_a_parameter_that_is_gone_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Of several sources in one line with their names; of one alone as its own."""
    values = [i / 10 for i in range(10)]
    sources = [table("a", m=values), table("b", m=values, k=values), table("c", m=[1.0] * 10), table("d")]
    sampler = make(sources)
    optuna.create_study(sampler=sampler).optimize(bowl, n_trials=3)
    told = [line for line in warned(caplog) if "dropped" in line]
    assert sorted(told) == [
        "b, k: only this source has it, and it varied, which now looks like noise: dropped (see sampler.explain())",
        "m: 3 sources have it (a, b, c), the search space does not, and it varied, which now looks like noise: dropped "
        "(see sampler.explain())",
    ]
    assert "several sources:\n  ! m  3 sources have it (a, b, c)" in str(sampler.explain())


def test_outliers_are_warnings_with_a_constraint_too(caplog: pytest.LogCaptureFixture) -> None:
    """Of sources and of the study's own, once for each that is new."""
    far = table(heat=[-1.0] * 10)
    far.loc[3, "loss"] = 1e9
    sampler = make([far], constraints={"heat": "heat"})

    def limited(trial: optuna.Trial) -> float:
        trial.set_constraint("heat", -1.0)
        result = bowl(trial)
        return 1e9 if trial.number in (4, 6) else result

    optuna.create_study(sampler=sampler).optimize(limited, n_trials=9)
    told = [line for line in warned(caplog) if "far from all others" in line]
    assert sum(line.startswith("past: 1 of 10 results lies far") for line in told) == 1
    caplog.clear()
    sampler = make([table(heat=[-1.0] * 10)], constraints={"heat": "heat"})
    optuna.create_study(sampler=sampler).optimize(limited, n_trials=9)
    told = [line for line in warned(caplog) if "far from all others" in line]
    own = [line for line in told if line.startswith("This study: ")]
    assert len(own) == 2
    assert "trial 4" in own[0]
    assert "trial 6" in own[1]


def test_fill_with_a_name_that_nothing_has_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """As soon as a trial has shown the parameters; one that the study has is none of these."""
    sampler = make([table()], fill={"dropuot": 0.1, "dropout": 0.2})

    def later(trial: optuna.Trial) -> float:
        return bowl(trial) + trial.suggest_float("dropout", 0, 1)

    optuna.create_study(sampler=sampler).optimize(later, n_trials=3)
    told = [line for line in warned(caplog) if line.startswith("fill gives")]
    assert told == [
        "fill gives a value for 'dropuot', but no source and no trial has such a parameter. Did you mean 'dropout'?"
    ]


def test_a_constraint_that_no_trial_sets_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """After the first finished trial, once."""
    sampler = make([table(heat=[-1.0] * 10)], constraints={"heat": "heat"})
    optuna.create_study(sampler=sampler).optimize(bowl, n_trials=3)
    told = [line for line in warned(caplog) if "constraint" in line]
    assert len(told) == 1
    assert told[0].startswith("The sources have the constraint 'heat', but no finished trial has set it")


@pytest.mark.parametrize("wanted", [True, False])
def test_independent_sampling_is_told_if_it_is_wanted(caplog: pytest.LogCaptureFixture, wanted: bool) -> None:
    """As Optuna's own samplers do, by default as a warning; no message ends in two full stops."""
    sampler = make([table()], warn_independent_sampling=wanted)
    optuna.create_study(sampler=sampler).optimize(
        lambda trial: bowl(trial) + trial.suggest_float("new", 0, 1), n_trials=1
    )
    assert any("new is drawn by TPESampler" in line for line in warned(caplog)) is wanted
    past = optuna.create_study(study_name="kinds")
    kinds: dict[str, BaseDistribution] = {"kind": CategoricalDistribution(["a", "b"])}
    for i in range(6):
        past.add_trial(create_trial(params={"kind": "ab"[i % 2]}, distributions=kinds, values=[float(i)]))
    sampler = make([past], warn_independent_sampling=wanted)
    optuna.create_study(sampler=sampler).optimize(
        lambda trial: float(trial.suggest_categorical("kind", ["c", "d"]) == "c"), n_trials=2
    )
    assert not any(".." in record.getMessage() for record in caplog.records)


def test_none_that_is_no_category_any_more_stays_as_evidence() -> None:
    """Like any other category: it gets a level of its own, and its rows count."""
    past = optuna.create_study(study_name="past")
    kinds: dict[str, BaseDistribution] = {"kind": CategoricalDistribution([None, "a"]), "x": FloatDistribution(0, 1)}
    for i in range(8):
        params = {"kind": None if i % 2 else "a", "x": i / 8}
        past.add_trial(create_trial(params=params, distributions=kinds, values=[float(i)]))
    sampler = make([past])

    def now(trial: optuna.Trial) -> float:
        return bowl(trial) + (trial.suggest_categorical("kind", ["a", "b"]) == "a")

    study = optuna.create_study(sampler=sampler)
    study.optimize(now, n_trials=3)
    assert "8 of 8 rows used" in str(sampler.explain())
    assert "None: unknown here, gets a level of its own that is never suggested" in str(sampler.explain())
    assert all(trial.params["kind"] in ("a", "b") for trial in study.trials)


SMALL: dict[str, BaseDistribution] = {"n": IntDistribution(1, 4), "kind": CategoricalDistribution(["a", "b", "c"])}


def small(trial: optuna.Trial) -> float:
    return (trial.suggest_int("n", 1, 4) - 2) ** 2 + (trial.suggest_categorical("kind", ["a", "b", "c"]) == "a")


@pytest.mark.parametrize("given", [None, SMALL])
def test_of_few_points_none_is_repeated_while_others_are_untried(given: Any) -> None:
    """A repeated point says less than an untried one where nothing has shown noise."""
    study = optuna.create_study(sampler=make(space=given))
    study.optimize(small, n_trials=13)
    points = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(points[-12:] if given is None else points[:12])) >= (11 if given is None else 12)


@pytest.mark.parametrize(
    ("results", "error", "repeats"), [((0.0, 3.0), None, True), ((3.0, 3.0), None, False), ((), "sd", True)]
)
def test_noise_that_is_known_allows_a_repetition(results: Any, error: Any, repeats: bool) -> None:
    """A repeated trial with another result, or standard errors: then the model decides."""
    study = optuna.create_study(sampler=make(space=SMALL, error=error))
    for value in results:
        study.add_trial(create_trial(params={"n": 2, "kind": "b"}, distributions=SMALL, values=[value]))
    assert isinstance(study.sampler, TransferSampler)
    adviser = study.sampler._adviser
    now = adviser.fitter.read(study)
    fitted = adviser.fitter.fit(now)
    domain = adviser._domain(now, fitted.alignment.space).domain
    assert (adviser._avoided(domain, fitted.encode(now)) is None) is repeats


def test_of_a_table_with_a_constraint_alone_it_is_told_what_to_give(caplog: pytest.LogCaptureFixture) -> None:
    """Its column is not offered for results, a wrong name of it is cited, and that nothing uses it is said."""
    hot = pd.DataFrame({"x": [i / 10 for i in range(10)], "too hot": [i / 10 - 0.5 for i in range(10)]})
    with pytest.raises(
        InputError, match="one of 'x'; if it has none and knows 'too hot' alone, give the name they would"
    ):
        make([hot], objective=None, constraints={"heat": "too hot"})
    with pytest.raises(InputError, match="has no column 'loss', and none of a constraint, 'to hot'"):
        make([hot], constraints={"heat": "to hot"})
    optuna.create_study(sampler=make([table(), hot], constraints={"heat": "too hot"})).optimize(bowl, n_trials=3)
    left_out = [line for line in warned(caplog) if "is left out" in line]
    assert left_out == [
        "source 2 (DataFrame) is left out: it knows constraints alone, 'heat', and the study has none of them."
    ]
