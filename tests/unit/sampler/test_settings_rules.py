"""Rules about the settings in the sampler: no trial that it chooses breaks one."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from headstart.data.rules.rule import Clause, Forbidden, LinearRule, Relation
from headstart.data.rules.text import parse_rule
from headstart.data.space import Space
from headstart.errors import InputError, NumericalError
from headstart.gp.fit import FitOptions
from headstart.models.family import SHGP
from headstart.sampler.adviser import Adviser
from headstart.sampler.sampler import TransferSampler

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=20))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")

MIXTURE: dict[str, BaseDistribution] = {name: FloatDistribution(0, 1) for name in "ABC"}
Objective = Callable[[optuna.Trial], float]


def mixed(trial: optuna.Trial) -> float:
    a, b, c = (trial.suggest_float(name, 0, 1) for name in "ABC")
    return (a - 0.2) ** 2 + (b - 0.3) ** 2 + 2 * (c - 0.5) ** 2


def past(n: int = 12, seed: int = 0) -> pd.DataFrame:
    """Rows that break the rule of the mixture: they stay evidence."""
    X = np.random.default_rng(seed).uniform(0, 1, (n, 3))
    return pd.DataFrame(X, columns=list("ABC")).assign(loss=((X - [0.2, 0.3, 0.5]) ** 2).sum(-1))


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "objective": "loss" if len(sources) else None}
    return TransferSampler(sources, **(defaults | options))


def run(sampler: TransferSampler, objective: Objective, n: int = 4, **options: Any) -> optuna.Study:
    study = optuna.create_study(sampler=sampler, **options)
    study.optimize(objective, n_trials=n)
    return study


def keeps(study: optuna.Study, *rules: str, space: dict[str, BaseDistribution] | None = None) -> bool:
    read = [parse_rule(rule, Space.of(space or study.trials[-1].distributions)) for rule in rules]
    return all(rule.holds(trial.params) for trial in study.trials for rule in read)


@pytest.mark.parametrize("space", [MIXTURE, None], ids=["given", "of the source"])
def test_a_mixture_adds_up_to_one_from_the_first_trial_on(space: Any) -> None:
    """Exactly enough for a pair of scales, and the past, which does not, is learnt from."""
    study = run(make([past()], rules=["A + B + C = 1"], space=space), mixed)
    for trial in study.trials:
        assert math.fsum(trial.params.values()) == pytest.approx(1, abs=1e-9)
    assert study.best_value < 0.02
    sampler = study.sampler
    assert isinstance(sampler, TransferSampler)
    assert "12 rows" in repr(sampler.last)


def test_rules_as_data_are_rules() -> None:
    """As the text of them is; fixed and steps say the same as rules."""
    linear = LinearRule((("A", 1.0), ("B", 1.0)), Relation.AT_MOST, 0.4)
    forbidden = Forbidden((Clause("C", Relation.ABOVE, 0.5), Clause("A", Relation.BELOW, 0.2)))
    study = run(make([past()], rules=[linear, forbidden], steps={"C": 0.25}, fixed={"B": 0.1}), mixed)
    assert keeps(study, "A + B <= 0.4", "forbid: C > 0.5 and A < 0.2")
    assert {trial.params["B"] for trial in study.trials} == {0.1}
    assert all(trial.params["C"] in (0, 0.25, 0.5, 0.75, 1) for trial in study.trials)


def test_every_kind_of_parameter_keeps_its_rules() -> None:
    """Whole numbers, steps, logarithms and categories, with two threads."""
    space: dict[str, BaseDistribution] = {
        "n": IntDistribution(0, 10),
        "k": IntDistribution(1, 64, log=True),
        "s": FloatDistribution(0, 1, step=0.05),
        "lr": FloatDistribution(1e-4, 1, log=True),
        "solvent": CategoricalDistribution(["water", "toluene", "ethyl acetate"]),
    }
    rules = ["n + k <= 12", "forbid: lr > 0.1 and solvent = toluene", "s - 0.1*n >= 0", "forbid: solvent = water"]

    def objective(trial: optuna.Trial) -> float:
        n, k = trial.suggest_int("n", 0, 10), trial.suggest_int("k", 1, 64, log=True)
        s, lr = trial.suggest_float("s", 0, 1, step=0.05), trial.suggest_float("lr", 1e-4, 1, log=True)
        solvent = trial.suggest_categorical("solvent", ["water", "toluene", "ethyl acetate"])
        return n + math.log(k) + s - math.log(lr) + len(solvent)

    study = optuna.create_study(sampler=make(rules=rules, space=space))
    study.optimize(objective, n_trials=4, n_jobs=2)
    assert keeps(study, *rules, space=space)
    assert all(isinstance(trial.params["n"], int) for trial in study.trials)


def test_a_range_that_the_objective_narrows_does_not_break_a_rule() -> None:
    """The source knows A up to 1, the objective only up to 0.1: what is chosen after it makes up for it."""

    def narrow(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(name, 0, 0.1 if name == "A" else 1.0) for name in "ABC")

    for space in (None, MIXTURE):
        study = run(make([past()], rules=["A + B + C = 1"], space=space), narrow, 2)
        assert all(math.fsum(t.params.values()) == pytest.approx(1, abs=1e-9) for t in study.trials)
        assert all(t.params["A"] <= 0.1 for t in study.trials)


def test_values_that_are_there_bind_the_others() -> None:
    """A trial that was enqueued with one of the parameters gets the rest by the rule."""
    study = optuna.create_study(sampler=make([past()], rules=["A + B + C = 1"], space=MIXTURE))
    study.enqueue_trial({"B": 0.75})
    study.optimize(mixed, n_trials=1)
    params = study.trials[0].params
    assert params["B"] == 0.75
    assert math.fsum(params.values()) == pytest.approx(1, abs=1e-9)


def test_an_enqueued_trial_that_breaks_a_rule_runs_and_counts(caplog: pytest.LogCaptureFixture) -> None:
    """One warning names the rule; of several rules those that can be kept are kept; the next trials keep all."""
    study = optuna.create_study(sampler=make([past()], rules=["A + B <= 0.5", "C >= 0.6"], space=MIXTURE))
    study.enqueue_trial({"A": 0.9})
    study.enqueue_trial({"A": 0.8, "B": 0.8, "C": 0.8})
    study.optimize(mixed, n_trials=4)
    said = [r.getMessage() for r in caplog.records if "cannot be kept" in r.getMessage()]
    assert said[0] == (
        "Trial 0 runs with A = 0.9, with which the rule 'A + B ≤ 0.5' cannot be kept: its result counts all the same."
    )
    assert len(said) == 2
    assert study.trials[0].params["C"] >= 0.6 - 1e-9
    rule = parse_rule("A + B <= 0.5", Space.of(MIXTURE))
    assert [rule.holds(trial.params) for trial in study.trials] == [False, False, True, True]
    sampler = study.sampler
    assert isinstance(sampler, TransferSampler)
    assert "3 results of this study" in repr(sampler.last)


def test_rules_and_several_objectives_and_constraints() -> None:
    """They go together."""

    def objective(trial: optuna.Trial) -> tuple[float, float]:
        a, b = trial.suggest_float("A", 0, 1), trial.suggest_float("B", 0, 1)
        trial.set_constraint("heat", a - 0.7)
        return a**2 + b, (a - 1) ** 2 + b

    space: dict[str, BaseDistribution] = {name: FloatDistribution(0, 1) for name in "AB"}
    study = optuna.create_study(directions=["minimize"] * 2, sampler=make(rules=["A - B <= 0.25"], space=space))
    study.optimize(objective, n_trials=3)
    assert keeps(study, "A - B <= 0.25")


def branching(trial: optuna.Trial) -> float:
    way, a = trial.suggest_categorical("way", ["x", "y"]), trial.suggest_float("a", 0, 1)
    if way == "x":
        return a + trial.suggest_float("b", 0, 1)
    return a + trial.suggest_float("c", 0, 1)


def test_rules_about_a_branch_bind_where_it_is_taken() -> None:
    """a + b = 1 in one branch, c in steps in the other; a branch that comes unexpectedly keeps them too."""
    old = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(branching, n_trials=10)
    study = optuna.create_study(sampler=make([old], objective=None, rules=["a + b = 1"], steps={"c": 0.25}))
    for way in "xy":
        study.enqueue_trial({"way": way})
    study.optimize(branching, n_trials=5)
    for trial in study.trials:
        if "b" in trial.params:
            assert trial.params["a"] + trial.params["b"] == pytest.approx(1, abs=1e-9)
        else:
            assert trial.params["c"] * 4 == pytest.approx(round(trial.params["c"] * 4), abs=1e-8)


def test_a_parameter_that_is_asked_for_against_expectation_keeps_its_rule() -> None:
    """Its branch was never seen with it: it is chosen on its own, the others being as they are."""
    old = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(branching, n_trials=10)

    def unexpected(trial: optuna.Trial) -> float:
        trial.suggest_categorical("way", ["x", "y"])
        return sum(trial.suggest_float(name, 0, 1) for name in "abc")

    study = optuna.create_study(sampler=make([old], objective=None, rules=["a + b = 1", "c - a <= 0"]))
    study.optimize(unexpected, n_trials=1)
    assert keeps(study, "c - a <= 0", "a + b = 1")
    assert "c" in study.trials[0].params


def test_a_rule_about_what_trials_do_not_ask_for_does_not_bind(caplog: pytest.LogCaptureFixture) -> None:
    """Which is said once, and the others bind."""

    def fewer(trial: optuna.Trial) -> float:
        return trial.suggest_float("A", 0, 1) + trial.suggest_float("B", 0, 1)

    study = run(make([past()], rules=["A + C = 1", "A + B <= 0.7"]), fewer, 4)
    assert keeps(study, "A + B <= 0.7")
    said = [r.getMessage() for r in caplog.records if "does not bind" in r.getMessage()]
    assert said == ["The rule 'A + C = 1' does not bind: trials do not ask for 'C'."]


def test_where_the_model_fails_the_rules_are_kept_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is drawn past them."""

    def fail(*_: Any, **__: Any) -> None:
        raise NumericalError("no")

    sampler = make([past()], rules=["A + B + C = 1"], space=MIXTURE)
    monkeypatch.setattr(Adviser, "_choose", fail)
    study = run(sampler, mixed, 3)
    assert all(math.fsum(t.params.values()) == pytest.approx(1, abs=1e-9) for t in study.trials)
    assert len({t.params["A"] for t in study.trials}) == 3
    assert any("which failed" in r.getMessage() for r in caplog.records)


def test_a_sampler_with_rules_can_be_pickled() -> None:
    """And goes on with them."""
    sampler = pickle.loads(pickle.dumps(make([past()], rules=["A + B + C = 1"])))
    study = run(sampler, mixed, 2)
    assert math.fsum(study.trials[1].params.values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))])
def test_no_suggestion_breaks_a_rule_whatever_the_space(seed: int) -> None:
    """Floats, logarithms, steps, whole numbers and categories, asked for in any order; the rules hold at some point."""
    rng = np.random.default_rng(seed)
    kinds = (
        lambda: FloatDistribution(0, 10),
        lambda: FloatDistribution(-1, 1, step=0.25),
        lambda: FloatDistribution(0.01, 10, log=True),
        lambda: IntDistribution(-3, 12),
        lambda: IntDistribution(0, 40, step=4),
        lambda: IntDistribution(1, 100, log=True),
    )
    space: dict[str, BaseDistribution] = {f"p{i}": kinds[rng.integers(len(kinds))]() for i in range(5)}
    space["kind"] = CategoricalDistribution(["u", "v", "w"])
    numbers = [f"p{i}" for i in range(5)]
    sure = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask(space).params
    some = list(rng.permutation(numbers)[:3])
    factors = rng.integers(1, 4, 3).tolist()
    total = sum(factor * sure[name] for factor, name in zip(factors, some, strict=True))
    left = " + ".join(f"{factor}*{name}" for factor, name in zip(factors, some, strict=True))
    rules = [
        f"{left} {rng.choice(['<=', '>='])} {total!r}",
        f"{numbers[0]} - {numbers[4]} <= {sure[numbers[0]] - sure[numbers[4]]!r}",
        f"forbid: kind = {next(k for k in 'uvw' if k != sure['kind'])} and {numbers[1]} >= {sure[numbers[1]]!r}",
    ]
    order = list(rng.permutation(list(space)))

    def objective(trial: optuna.Trial) -> float:
        values = [trial._suggest(name, space[name]) for name in order]
        return sum(float(v) for v in values if not isinstance(v, str))

    study = run(make(rules=rules, space=space if seed % 2 else dict(reversed(space.items()))), objective, 4)
    assert keeps(study, *rules, space=space)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": "A <= 1"}, "rules must be a list, as in"),
        ({"rules": [3]}, "A rule is text, as 'A \\+ B <= 1' is, or a headstart rule, but one is 3"),
        ({"rules": ["A + D <= 1"]}, r"Rule 'A \+ D <= 1', character 5: there is no parameter 'D'"),
        ({"rules": ["A + B >= 3"]}, r"No setting of the space keeps the rule 'A \+ B ≥ 3'. Change or remove it"),
        ({"rules": ["A >= 0.6", "A + B <= 0.5"]}, "No setting of the space keeps all of these rules"),
        ({"rules": ["A <"]}, r"Rule 'A <', character 3"),
        ({"fixed": {"D": 1}}, "fixed: there is no parameter 'D'. The known ones are A, B, C"),
        ({"fixed": {"A": 7}}, "'A' may have 0 … 1, but 7 is none of them"),
        ({"fixed": [1]}, r"fixed must map parameters to values, as in \{'A': 3\}, but it is \[1\]"),
        ({"steps": {"A": 0}}, "The step of 'A' must be a number above 0, but it is 0"),
        ({"steps": {"AA": 1}}, "steps: there is no parameter 'AA'. Did you mean A"),
    ],
)
def test_what_is_no_rule_of_the_space_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    """One message, with the remedy, before anything runs."""
    with pytest.raises(InputError, match=message):
        make(space=MIXTURE, **options)


def test_a_parameter_that_nobody_knows_yet_cannot_have_a_rule() -> None:
    """Whatever were drawn for it could break the rule: space= is asked for, and no trial runs."""
    for sources, what in (([past().drop(columns="C")], "there is no parameter 'C'"), ([], "No parameter is known")):
        study = optuna.create_study(sampler=make(sources, rules=["A + B + C = 1"]))
        with pytest.raises(InputError, match=rf"{what}.*give space="):
            study.optimize(mixed, n_trials=1)
        assert not any(trial.params for trial in study.trials)
    # a trial that ran makes it known
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(mixed, n_trials=1)
    study.sampler = make(rules=["A + B + C = 1"])
    study.optimize(mixed, n_trials=1)
    assert math.fsum(study.trials[1].params.values()) == pytest.approx(1, abs=1e-9)
