"""The Optuna sampler: informed from the first trial, in spaces that change, with trials that fail."""

from __future__ import annotations

import itertools
import json
import logging
import math
import pickle
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from headstart.data.dataset import Dataset
from headstart.data.space import Space
from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models import sequential
from headstart.models.auto.auto import Auto
from headstart.models.family import AUTO, SHGP
from headstart.models.learning import LearningProgress
from headstart.sampler.adviser import LOGGER, SamplerLog
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler
from headstart.sampler.trials import note, noted, parameters

QUICK = SHGP.using(fit=FitOptions(restarts=1, max_iterations=30))

pytestmark = pytest.mark.usefixtures("quiet_optuna", "heard")


def past(n: int = 25) -> pd.DataFrame:
    """Results of a task whose best point is x = 0.2, lr = 0.01, kind = b."""
    rng = np.random.default_rng(0)
    x, lr, kind = rng.uniform(-1, 1, n), 10 ** rng.uniform(-4, 0, n), rng.choice(["a", "b"], n)
    loss = (x - 0.2) ** 2 + 0.1 * (np.log10(lr) + 2) ** 2 + 0.5 * (kind == "a")
    return pd.DataFrame({"x": x, "lr": lr, "kind": kind, "loss": loss})


def value(params: dict[str, Any]) -> float:
    worse = 0.5 * (params["kind"] == "a")
    return float((params["x"] - 0.25) ** 2 + 0.1 * (math.log10(params["lr"]) + 2) ** 2 + worse)


def objective(trial: optuna.Trial) -> float:
    trial.suggest_float("x", -1, 1)
    trial.suggest_float("lr", 1e-4, 1, log=True)
    trial.suggest_categorical("kind", ["a", "b"])
    return value(trial.params)


def make(sources: Any = None, **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "objective": "loss"}
    return TransferSampler([past()] if sources is None else sources, **(defaults | options))


def past_study(direction: Any = "minimize") -> optuna.Study:
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    sign = 1.0 if direction == "minimize" else -1.0
    study.optimize(lambda trial: sign * objective(trial), n_trials=25)
    return study


# ── the first trial ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["study", "table", "file", "dataset", "space"])
def test_the_first_trial_is_informed_by_every_kind_of_source(kind: str, tmp_path: Path) -> None:
    """It is better than 95 of 100 random ones, whatever the past data came in."""
    space = {
        "x": FloatDistribution(-1, 1),
        "lr": FloatDistribution(1e-4, 1, log=True),
        "kind": CategoricalDistribution(["a", "b"]),
    }
    match kind:
        case "study":
            sampler = make([past_study()])
        case "table":
            sampler = make()
        case "file":
            past().to_csv(tmp_path / "past.csv", index=False)
            sampler = make([tmp_path / "past.csv"])
        case "dataset":
            table = past()
            columns = [(table.x + 1) / 2, np.log10(table.lr) / 4 + 1, table.kind == "a", table.kind == "b"]
            data = Dataset(np.stack([np.asarray(c, dtype=np.float64) for c in columns], 1), table.loss.to_numpy())
            sampler = make([data], space=space)
        case _:
            sampler = make(space=space)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    assert study.best_value < 0.08


def test_a_maximised_study_is_informed_alike() -> None:
    """The direction is the study's, for its own trials and for tables; a source of the other direction is turned."""
    for sources in ([past().assign(loss=-past().loss)], [past_study()]):
        study = optuna.create_study(direction="maximize", sampler=make(sources))
        study.optimize(lambda trial: -objective(trial), n_trials=2)
        assert study.best_value > -0.08


def test_the_first_trial_fits_into_a_space_that_differs() -> None:
    """Other ranges, grids, kinds and categories than the source's never raise, and values are as near as allowed."""
    source = past_study()
    trial = optuna.create_study(sampler=make([source])).ask()
    assert trial.suggest_float("x", 0.5, 1.0) == 0.5
    assert trial.suggest_float("lr", 1e-3, 2e-3) == 2e-3
    assert trial.suggest_categorical("kind", ["c", "b"]) == "b"
    assert 0 <= trial.suggest_int("new", 0, 5) <= 5
    again = optuna.create_study(sampler=make([source])).ask()
    assert again.suggest_int("x", -3, 4) in range(-3, 5)
    assert again.suggest_categorical("lr", [1.0, 2.0]) in (1.0, 2.0)
    assert again.suggest_categorical("kind", ["c", "d"]) in ("c", "d")


def test_a_source_of_one_row_spans_no_space() -> None:
    """So the first parameter is left to chance; the others are chosen with it as it is."""
    sampler = make([past().head(1)])
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=1)
    assert isinstance(sampler.last, Suggested)
    assert value(sampler.last.params) == pytest.approx(value(study.trials[0].params))
    study.optimize(objective, n_trials=1)
    assert isinstance(sampler.last, Suggested)
    assert sampler.last.fitted.prior.sources[0].n == 1


def test_later_trials_find_the_optimum() -> None:
    """Within seven trials it is closer than any of the source's rows."""
    sampler = make()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=7)
    assert study.best_value < 0.005
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    last = sampler.last
    assert isinstance(last, Suggested)
    assert last.trial_number == 6
    assert last.params == study.trials[-1].params
    assert last.posterior.train_inputs[0].shape == (6, 4)
    assert "every parameter and row fits" in str(sampler.explain())


@pytest.mark.parametrize("options", [{"acquisition": "ucb", "beta": 1.0}, {"model": "GPBO", "sources": []}])
def test_other_acquisitions_and_models_run(options: dict[str, Any]) -> None:
    """UCB, and starting from scratch without any source."""
    study = optuna.create_study(sampler=make(**options))
    study.optimize(objective, n_trials=2)
    assert len(study.trials) == 2


# ── trials of every state ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_is_read_under_other_names() -> None:
    """Those that ``rename`` gives its columns."""
    sampler = make([past().rename(columns={"x": "old"})], rename={"old": "x"})
    assert "25 rows of x, lr, kind" in str(sampler.explain())


def test_beta_is_how_much_uncertainty_attracts() -> None:
    """Without any the best of what is known is repeated; with much of it the next trial is far from all others."""
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
    found = []
    for beta in (0.0, 50.0):
        sampler = TransferSampler(model=QUICK, seed=0, space=space, acquisition="ucb", beta=beta)
        study = optuna.create_study(sampler=sampler)
        for x in (0.0, 0.1, 0.2, 0.3, 0.4):
            study.add_trial(optuna.create_trial(params={"x": x}, distributions=space, value=(x - 0.2) ** 2))
        found.append(study.ask(space).params["x"])
    assert abs(found[0] - 0.2) < 0.1
    assert found[1] > 0.8


def test_every_trial_draws_values_of_its_own() -> None:
    """Of a parameter that is no part of the space, too: random numbers depend on the trial, not on the seed alone."""
    study = optuna.create_study(sampler=TransferSampler(model=QUICK, seed=0, space={"y": FloatDistribution(0, 1)}))
    assert len({study.ask().suggest_float("x", 0, 1) for _ in range(4)}) == 4


def test_equal_seeds_give_equal_trials() -> None:
    """And other seeds, or a reseeded sampler, others."""

    def run(seed: int, reseed: bool = False) -> list[float]:
        sampler = make(seed=seed)
        if reseed:
            sampler.reseed_rng()
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: objective(trial) + trial.suggest_float("new", 0, 1), n_trials=2)
        return [v for trial in study.trials for v in trial.params.values() if isinstance(v, float)]

    first = run(3)
    assert run(3) == first
    assert run(4) != first
    assert run(3, reseed=True) != first


def test_pending_trials_are_not_suggested_again() -> None:
    """Trials that were asked for and not told yet all differ, before and after the first result."""
    study = optuna.create_study(sampler=make())
    space = {"x": FloatDistribution(-1, 1), "n": IntDistribution(0, 3), "kind": CategoricalDistribution(["a", "b"])}
    asked = [study.ask(space) for _ in range(4)]
    study.tell(asked[0], 1.0)
    asked += [study.ask(space) for _ in range(3)]
    points = [(trial.params["x"], trial.params["n"], trial.params["kind"]) for trial in asked]
    for i, a in enumerate(points):
        for b in points[i + 1 :]:
            assert a[1:] != b[1:] or abs(a[0] - b[0]) > 1e-4


def test_pending_trials_keep_their_distance_even_where_everything_is_known() -> None:
    """Near the end all that is left to gain lies in one spot; still no two workers make the same experiment there."""
    frame = pd.DataFrame({"x": np.linspace(-1, 1, 12), "loss": (np.linspace(-1, 1, 12) - 0.2) ** 2})
    study = optuna.create_study(sampler=make([frame]))
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(-1, 1)}
    for _ in range(4):
        trial = study.ask(space)
        study.tell(trial, (trial.params["x"] - 0.2) ** 2)
    xs = sorted(study.ask(space).params["x"] for _ in range(4))
    assert min(b - a for a, b in itertools.pairwise(xs)) > 1e-3


def test_trials_that_ask_at_the_same_moment_are_kept_apart() -> None:
    """A younger trial that sees an older one without parameters does not take the point the older one will get."""
    study = optuna.create_study(sampler=make())
    older, younger = study.ask(), study.ask()
    x_younger = younger.suggest_float("x", -1, 1)
    note(study, study._storage.get_trial(younger._trial_id), {})  # as if the older one had looked before
    x_older = older.suggest_float("x", -1, 1)
    assert abs(x_older - x_younger) > 1e-3 or older.suggest_categorical("kind", ["a", "b"]) != (
        younger.suggest_categorical("kind", ["a", "b"])
    )


class _Crowded(optuna.storages.InMemoryStorage):
    """A storage where trial 0 is always given the point that trial 1 has just noted, and may give it up again."""

    def __init__(self, *, withdraws: bool) -> None:
        super().__init__()
        self.withdraws = withdraws
        self.looks = 0
        self.noted: list[Any] = []

    def set_trial_system_attr(self, trial_id: int, key: str, value: Any) -> None:
        super().set_trial_system_attr(trial_id, key, value)
        if trial_id == 1:
            super().set_trial_system_attr(0, key, value)
            self.looks = 0
            if key.endswith(":0"):
                self.noted.append(value)

    def get_all_trials(self, *args: Any, **options: Any) -> Any:
        self.looks += 1
        if self.withdraws and self.looks == 2:  # between the first look at the clash and the second
            super().set_trial_system_attr(0, "headstart:params:0", "{}")
        return super().get_all_trials(*args, **options)


@pytest.mark.parametrize("withdraws", [True, False])
def test_one_of_two_trials_that_clash_moves(withdraws: bool) -> None:
    """A trial keeps its point if the other one withdraws; if not, it withdraws itself before it looks for another."""
    storage = _Crowded(withdraws=withdraws)
    study = optuna.create_study(storage=storage, sampler=make())
    study.ask()
    trial = study.ask()
    trial.suggest_float("x", -1, 1)
    mine = noted(study._storage.get_trial(trial._trial_id))
    assert mine
    assert json.loads(storage.noted[-1]) == mine
    assert [text == "{}" for text in storage.noted] == ([False] if withdraws else [False, True] * 7 + [False])
    assert len(set(storage.noted)) == len(storage.noted) // 2 + 1 + (len(storage.noted) > 1)


def test_failed_pruned_and_infinite_trials_stop_nobody() -> None:
    """A failed or pruned point is not tried again, an infinite value counts as the worst, NaN fails the trial."""
    study = optuna.create_study(sampler=make())
    outcomes: list[Any] = [RuntimeError("boom"), optuna.TrialPruned(), math.nan, math.inf, None, None, -math.inf, None]

    def run(trial: optuna.Trial) -> float:
        result, outcome = objective(trial), outcomes[trial.number]
        if isinstance(outcome, Exception):
            raise outcome
        return result if outcome is None else outcome

    study.optimize(run, n_trials=len(outcomes), catch=RuntimeError)
    states = [trial.state for trial in study.trials]
    assert states[:3] == [TrialState.FAIL, TrialState.PRUNED, TrialState.FAIL]
    assert states[3:] == [TrialState.COMPLETE] * 5
    xs = [trial.params["x"] for trial in study.trials[:4]]
    assert len({round(x, 4) for x in xs}) == 4 or len({trial.params["kind"] for trial in study.trials[:4]}) == 2


def test_a_space_that_is_used_up_is_repeated() -> None:
    """A grid of four points serves six trials; without noise each point comes once before any comes twice."""
    frame = pd.DataFrame({"n": [0, 1, 2, 3], "loss": [3.0, 1.0, 2.0, 4.0]})
    study = optuna.create_study(sampler=make([frame], deterministic_objective=True))
    study.optimize(lambda trial: float((trial.suggest_int("n", 0, 3) - 1) ** 2), n_trials=6)
    numbers = [trial.params["n"] for trial in study.trials]
    assert numbers[0] == 1
    assert set(numbers[:4]) == {0, 1, 2, 3}


@pytest.mark.parametrize("constrained", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_it_works_behind_a_pruner_that_splits_the_study(constrained: bool) -> None:
    """Hyperband shows the sampler the trials of one bracket at a time, without the study's metric names."""
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=make(), pruner=pruner)

    def run(trial: optuna.Trial) -> float:
        result = objective(trial)
        if constrained:
            trial.set_constraint("heat", trial.params["x"] - 0.9)
        for step in range(1, 10):
            trial.report(result + 1 / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return result

    study.optimize(run, n_trials=5)
    assert study.best_value < 0.1


def test_enqueued_and_fixed_parameters_are_kept() -> None:
    """An enqueued trial runs as it was enqueued and counts afterwards; a single value needs no choice."""
    study = optuna.create_study(sampler=make())
    study.enqueue_trial({"x": 0.9, "lr": 0.5, "kind": "a"})
    study.optimize(lambda t: objective(t) + t.suggest_float("fixed", 1, 1), n_trials=2)
    assert study.trials[0].params["x"] == 0.9
    assert study.trials[1].params["fixed"] == 1.0


# ── what users are told ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_latest_suggestion_fits_on_a_screen(direction: Literal["minimize", "maximize"]) -> None:
    """What is tried, what is expected of it in the study's own direction, and from how many rows."""
    sampler = make([past().assign(loss=lambda d: d["loss"] if direction == "minimize" else 100 - d["loss"])])
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(lambda t: objective(t) if direction == "minimize" else 100 - objective(t), n_trials=3)
    told = repr(sampler.last).splitlines()
    assert told[0].startswith("Trial 2: kind='b', lr=")
    expected, low, high = (float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", told[1].replace("95 %", "")))
    assert low <= expected <= high
    assert abs(expected - (0 if direction == "minimize" else 100)) < 2
    assert told[2] == "known: 2 results of this study; source 1 (25 rows)"
    assert len(repr(sampler.last)) < 1000


def test_a_study_of_which_nothing_is_known_says_so() -> None:
    """Before there are two results of a study without a past not even the size of its values is known."""
    sampler = TransferSampler(model="gpbo", seed=0, space={"x": FloatDistribution(0, 1)})
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=1)
    assert "nothing is known of its result" in repr(sampler.last)


def test_a_suggestion_can_be_explained() -> None:
    """A verdict on every source by its name, and the shares of the tasks, which sum to 1; it can be printed."""
    noise = past().assign(loss=np.random.default_rng(1).normal(size=25))
    noise.attrs["name"] = "noise"
    model = AUTO.using(fit=FitOptions(restarts=1, max_iterations=30))
    sampler = make([past(), noise], model=model)
    assert str(sampler.explain()).startswith("Nothing was suggested yet, so there is nothing to explain")
    assert "noise: 25 rows of x, lr, kind" in str(sampler.explain())
    study = optuna.create_study(sampler=sampler)
    for n in (0, 2):
        study.optimize(objective, n_trials=n + 1 - len(study.trials))
        reasons = sampler.explain()
        assert (*reasons.names, reasons.target) == ("source 1", "noise", "this study")
        assert reasons.shares is not None
        assert reasons.n_observations == n
        assert reasons.shares.shape == (1, 3)
        assert reasons.shares.sum().item() == pytest.approx(1)
        assert reasons.shares[0, 0].item() > reasons.shares[0, 1].item()
        told, _, report = str(reasons).partition("\n\n")
        assert report.startswith("Search space: kind, lr, x\nsource 1: 25 of 25 rows used")
        assert [line.partition(":")[0] for line in told.splitlines()] == [
            *reasons.names,
            f"believed after {n} observations",
            "rests on",
        ]


def test_an_explanation_takes_a_model_that_weighs_its_sources() -> None:
    """The default does; another says so, and what to do."""
    assert isinstance(TransferSampler([past()], objective="loss")._adviser.fitter.model, Auto)
    study = optuna.create_study(sampler=make(model="shgp"))
    study.optimize(objective, n_trials=1)
    assert isinstance(study.sampler, TransferSampler)
    reasons = study.sampler.explain()
    assert str(reasons).startswith('Only AUTO, model="auto", judges its sources and can say why; the model is SHGP.')
    assert "source 1: 25 of 25 rows used" in str(reasons)
    assert reasons.sources == ()


def test_decisions_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    """A dropped parameter that varied is logged at the first suggestion in the study's space, and not again."""
    sampler = make([past().assign(momentum=np.linspace(0, 1, 25))])
    assert "25 rows" in str(sampler.explain())
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.WARNING, logger=LOGGER):
        study.optimize(objective, n_trials=4)
    told = [record.getMessage() for record in caplog.records if "momentum" in record.getMessage()]
    assert len(told) == 1
    assert "! momentum" in str(sampler.explain())


def test_a_source_with_nothing_in_common_is_left_out_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    """Before the first trial if the space is given; otherwise a trial was paid for, and the study goes on."""
    strange = past()[["x", "loss"]].rename(columns={"x": "X"})
    with pytest.raises(InputError, match=r"No source has anything in common.*x, lr.*it has X.*rename"):
        make([strange], space={"x": FloatDistribution(-1, 1), "lr": FloatDistribution(1e-4, 1, log=True)})
    study = optuna.create_study(sampler=make([strange]))
    study.optimize(objective, n_trials=3)
    told = [record.getMessage() for record in caplog.records if "nothing in common" in record.getMessage()]
    assert len(told) == 1
    assert "it has X" in told[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "shgpp"}, r"There is no model 'shgpp'\. Did you mean 'shgp'\?"),
        ({"model": 3}, "a headstart model"),
        ({"acquisition": "ei"}, "acquisition must be one of logei, ucb"),
        ({"beta": -1.0}, "beta"),
        ({"objective": "accuracy"}, "no column 'accuracy'"),
        ({"sources": [past().assign(loss=math.nan)]}, "source 1.*has no result to learn from"),
    ],
)
def test_wrong_options_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    """Before any trial, with the choices there are."""
    with pytest.raises(InputError, match=message):
        make(**options)


# ── state ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pickled_sampler_goes_on() -> None:
    """In the middle of a study, as another process would, with what was learnt from the sources."""
    study = optuna.create_study(sampler=make())
    study.optimize(objective, n_trials=2)
    copy = pickle.loads(pickle.dumps(study.sampler))
    other = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=copy)
    other.optimize(objective, n_trials=1)
    assert len(study.trials) == 3
    assert other.trials[2].value is not None
    assert other.trials[2].value < 1.0


def test_notes_of_any_length_come_back() -> None:
    """They are cut into pieces for the database, objects other than plain values come back as text."""
    study = optuna.create_study()
    trial = study.ask()
    frozen = study._storage.get_trial(trial._trial_id)
    assert noted(frozen) is None
    params = {f"parameter {i}": "x" * 100 for i in range(60)} | {"odd": (1, 2), "none": None, "flag": True, "y": 0.1}
    note(study, frozen, params)
    frozen = study._storage.get_trial(trial._trial_id)
    assert noted(frozen) == params | {"odd": "(1, 2)"}
    assert parameters(frozen)["flag"] is True
    assert all(len(str(v)) <= 2045 for v in frozen.system_attrs.values())


def test_what_was_learnt_is_kept_on_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A second process reads it; a damaged file is replaced, and that is said; a folder must be one."""
    space: dict[str, BaseDistribution] = {"x": FloatDistribution(-1, 1)}
    source = past()[["x", "loss"]]

    def first_value() -> float:
        return optuna.create_study(sampler=make([source], cache_dir=tmp_path, space=space)).ask(space).params["x"]

    value = first_value()
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()
    assert first_value() == pytest.approx(value, abs=1e-9)
    assert "fitted anew" not in caplog.text
    file.write_bytes(before[:-9])
    first_value()
    assert len(file.read_bytes()) == len(before)
    assert "fitted anew" in caplog.text
    (tmp_path / "taken").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        make(cache_dir=tmp_path / "taken" / "cache")


def test_sources_are_learnt_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Per space; with a cache on disk another sampler does not learn at all."""
    learnt = []
    fit = sequential._fit_level

    def counted(*arguments: Any) -> Any:
        learnt.append(arguments)
        return fit(*arguments)

    monkeypatch.setattr(sequential, "_fit_level", counted)
    for _ in range(2):
        study = optuna.create_study(sampler=make(cache_dir=tmp_path / "cache"))
        study.optimize(objective, n_trials=3)
    assert len(learnt) == 2  # for the space as the table shows it, and for the study's own


def test_learning_that_takes_long_is_spoken_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What, how far, how long, once in a while; what takes less than two seconds is not."""
    now = LearningProgress("Learning from 30 sources (3000 rows)", 0.25, 3.0, 9.0)
    tell = SamplerLog().progress
    tell(LearningProgress("Learning from 1 source (9 rows)", 0.0, 0.0, 0.1))
    assert caplog.text == ""
    tell(now)
    tell(now)
    lines = [record.message for record in caplog.records]
    assert lines == ["Learning from 30 sources (3000 rows): 25% after 3 s, about 9 s to go."]


def test_a_gpu_that_is_not_there_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the study goes on with the CPU; the sampler can be pickled."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    sampler = make(device="cuda", n_jobs=2)
    study = optuna.create_study(sampler=pickle.loads(pickle.dumps(sampler)))
    study.optimize(objective, n_trials=1)
    assert caplog.text.count("the CPU does all the work") == 1


def test_what_a_suggestion_rests_on_is_kept_until_its_trial_ends() -> None:
    """But for the latest, which can be explained: a long study takes no more memory than a short one."""
    sampler = make()
    study = optuna.create_study(sampler=sampler)
    kept = []

    def asks(trial: optuna.Trial) -> Any:
        value = objective(trial)
        kept.append(list(sampler._adviser._recent))
        return value

    study.optimize(asks, n_trials=4)
    assert kept[1:] == [[1], [2], [3]]
    assert sampler._adviser._recent == {}
    assert sampler.last is not None
    assert sampler.last.trial_number == 3


def test_trials_are_read_and_encoded_once_per_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at all trials, one at those that run, to see whether another worker has the same point."""
    sampler = make()
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=3)
    looks, rows = [], []
    get_trials, encode = optuna.Study.get_trials, Space.encode

    def counted_look(self: optuna.Study, *arguments: Any, **options: Any) -> Any:
        looks.append(options.get("states"))
        return get_trials(self, *arguments, **options)

    def counted_rows(self: Space, own: Any) -> Any:
        rows.append(len(own))
        return encode(self, own)

    monkeypatch.setattr(optuna.Study, "get_trials", counted_look)
    monkeypatch.setattr(Space, "encode", counted_rows)
    study.optimize(objective, n_trials=1)
    assert looks == [None, (TrialState.RUNNING, TrialState.WAITING)]
    assert rows == [3]


def test_what_another_worker_was_given_meanwhile_is_seen() -> None:
    """What was read for one trial is not used after another one was given a point."""
    study = optuna.create_study(sampler=make())
    study.optimize(objective, n_trials=2)
    sampler = study.sampler
    older, younger = (study._storage.get_trial(study._storage.create_new_trial(study._study_id)) for _ in range(2))
    spaces = [sampler.infer_relative_search_space(study, trial) for trial in (older, younger)]
    first = sampler.sample_relative(study, older, spaces[0])
    second = sampler.sample_relative(study, younger, spaces[1])
    assert first["kind"] != second["kind"] or max(abs(first[n] - second[n]) for n in ("x", "lr")) > 1e-4
