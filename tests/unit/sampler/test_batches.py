"""Batches of trials: the lot or day of a result, the present one, and the shifts between them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
import torch
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial
from tests.problems import points

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.gp.fit import FitOptions
from headstart.models.family import AUTO, GPBO, SHGP
from headstart.models.model import observed
from headstart.sampler.explanation import Suggested
from headstart.sampler.sampler import TransferSampler

FIT = FitOptions(restarts=1, max_iterations=30)
QUICK = SHGP.using(fit=FIT)
SPACE: dict[str, BaseDistribution] = {"x": FloatDistribution(0, 1)}
SHIFT = {"A": 0.0, "B": 3.0, "C": -2.0}

pytestmark = [
    pytest.mark.usefixtures("quiet_optuna", "heard"),
    pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning"),  # metric names, journals
]


def make(sources: Any = (), **options: Any) -> TransferSampler:
    defaults: dict[str, Any] = {"model": QUICK, "seed": 0, "batch": "lot"}
    return TransferSampler(sources, **(defaults | options))


def bowl(x: float, lot: str = "A", best: float = 0.6) -> float:
    return 4 * (x - best) ** 2 + SHIFT[lot]


def table(lots: str = "AB", *, best: float = 0.5, n: int = 8) -> pd.DataFrame:
    """So many rows of every lot, spread over x."""
    rows = [{"x": (i + 0.5) / n, "lot": lot, "loss": bowl((i + 0.5) / n, lot, best)} for lot in lots for i in range(n)]
    frame = pd.DataFrame(rows)
    frame.attrs["name"] = "past"
    return frame


def ended(x: float, value: float, lot: Any, name: str = "lot") -> FrozenTrial:
    return create_trial(params={"x": x}, distributions=SPACE, value=value, user_attrs={name: lot})


def past() -> optuna.Study:
    made = optuna.create_study(study_name="past")
    for row in table().to_dict("records"):
        attributes = {"lot": row["lot"]}
        made.add_trial(
            create_trial(params={"x": row["x"]}, distributions=SPACE, value=row["loss"], user_attrs=attributes)
        )
    return made


def last_of(sampler: TransferSampler) -> Suggested:
    assert isinstance(sampler.last, Suggested)
    return sampler.last


def known_to(sampler: TransferSampler) -> Dataset:
    """The study's results as the latest suggestion saw them."""
    return observed(last_of(sampler).posterior)


def batches_of(data: Dataset) -> tuple[list[float], float]:
    assert data.batch is not None
    assert data.present is not None
    return data.batch.tolist(), float(data.present)


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def run(study: optuna.Study, lots: str, *, in_trials: bool = False) -> None:
    """A trial in every lot, which the study or the objective says."""

    def objective(trial: optuna.Trial, lot: str) -> float:
        if in_trials:
            trial.set_user_attr("lot", lot)
        return bowl(trial.suggest_float("x", 0, 1), lot)

    for lot in lots:
        if not in_trials:
            study.set_user_attr("lot", lot)
        study.optimize(lambda trial, lot=lot: objective(trial, lot), n_trials=1)  # type: ignore[misc]


@pytest.mark.parametrize("storage", [None, "sqlite", "journal"])
@pytest.mark.parametrize("in_trials", [False, True], ids=["study", "trials"])
def test_the_batches_of_a_study_reach_the_model(storage: str | None, in_trials: bool, tmp_path: Path) -> None:
    """Said by the study before a trial is asked for, or by the trial: the present one is that of the next trial."""
    where: Any = {
        None: lambda: None,
        "sqlite": lambda: f"sqlite:///{tmp_path}/study.db",
        "journal": lambda: JournalStorage(JournalFileBackend(f"{tmp_path}/log")),
    }[storage]()
    sampler = make([table()], objective="loss")
    study = optuna.create_study(storage=where, sampler=sampler, study_name="mine")
    run(study, "BBAC", in_trials=in_trials)
    assert [trial.user_attrs["lot"] for trial in study.trials] == list("BBAC")
    assert batches_of(known_to(sampler)) == ([0, 0, 1], 2)
    named = last_of(sampler).batch
    assert named is not None
    assert dict(named.names) == {0: "B", 1: "A", 2: "C"}
    (data,) = last_of(sampler).alignment.datasets
    assert data.batch is not None
    assert data.batch.tolist() == [0] * 8 + [1] * 8
    if storage is not None:  # another process goes on
        again = make([table()], objective="loss")
        loaded = optuna.load_study(study_name="mine", storage=where, sampler=again)
        again.explain(loaded)
        loaded.optimize(lambda trial: bowl(trial.suggest_float("x", 0, 1), "C"), n_trials=1)
        assert batches_of(known_to(again)) == ([0, 0, 1, 2], 2)
        assert ("lot" in loaded.trials[-1].user_attrs) is not in_trials


def test_a_trial_that_says_none_is_of_the_batch_of_the_trial_before_it() -> None:
    """Whatever became of that one; what waits has not begun, and the first ones may be of no batch by name."""
    study = optuna.create_study(sampler=make(space=SPACE))
    states = [TrialState.COMPLETE, TrialState.COMPLETE, TrialState.FAIL, TrialState.COMPLETE]
    for i, (lot, state) in enumerate(zip([None, "B", "A", None], states, strict=True)):
        value = None if state == TrialState.FAIL else i / 4
        attributes = {} if lot is None else {"lot": lot}
        study.add_trial(
            create_trial(params={"x": i / 4}, distributions=SPACE, value=value, state=state, user_attrs=attributes)
        )
    assert isinstance(study.sampler, TransferSampler)
    adviser = study.sampler._adviser
    now = adviser.fitter.read(study)
    fitted = adviser.fitter.fit(now)
    assert batches_of(fitted.results(fitted.encode(now))) == ([0, 1, 2], 2)
    study.enqueue_trial({"x": 0.9}, user_attrs={"lot": "later"})
    now = adviser.fitter.read(study)
    assert batches_of(fitted.results(fitted.encode(now))) == ([0, 1, 2], 2)
    study.set_user_attr("lot", "B")
    assert batches_of(fitted.results(fitted.encode(now))) == ([0, 1, 2], 1)
    study.set_user_attr("lot", "")
    asking = study.ask()  # the one that waited: what it says itself goes first
    asking.suggest_float("x", 0, 1)
    now = adviser.fitter.read(study)
    assert batches_of(fitted.results(fitted.encode(now, study.trials[-1]))) == ([0, 1, 2], 3)


def test_what_the_study_says_is_written_into_a_trial_that_says_nothing() -> None:
    """Before the objective runs, which sees it and may say otherwise; also where every parameter is enqueued."""
    study = optuna.create_study(sampler=make(space=SPACE))
    study.set_user_attr("lot", "A")
    seen = []

    def objective(trial: optuna.Trial) -> float:
        seen.append(trial.user_attrs["lot"])
        if trial.number == 2:
            trial.set_user_attr("lot", "C")
        return trial.suggest_float("x", 0, 1)

    study.enqueue_trial({"x": 0.5})
    study.enqueue_trial({"x": 0.4}, user_attrs={"lot": "B"})
    study.optimize(objective, n_trials=4)
    assert seen == ["A", "B", "A", "A"]
    assert [trial.user_attrs["lot"] for trial in study.trials] == ["A", "B", "C", "A"]


@pytest.mark.parametrize("model", [QUICK, AUTO.using(fit=FIT), "gpbo"], ids=["shgp", "auto", "gpbo"])
def test_a_single_batch_changes_nothing(model: Any) -> None:
    """Bit for bit, whatever it is called, in the study and in its sources."""
    found = []
    one = table("A").assign(lot="only")
    for named in (True, False):
        source = one if named else one.drop(columns="lot")
        sampler = make(
            [source] if model != "gpbo" else [], model=model, objective="loss", batch="lot" if named else None
        )
        study = optuna.create_study(sampler=sampler)
        study.set_user_attr("lot", "mine")
        study.optimize(lambda trial: bowl(trial.suggest_float("x", 0, 1)), n_trials=9)
        outlook = str(sampler.explain(study).outlook)
        found.append(([trial.params for trial in study.trials], repr(sampler.last), outlook, str(sampler.explain())))
        assert ("lot" in study.trials[-1].user_attrs) is named
    assert found[0] == found[1]


def test_shifts_between_lots_are_found() -> None:
    """Half of the results are 3 higher: named, the bowl is predicted as in the present lot; not named, it is not."""
    errors = {}
    grid = torch.linspace(0, 1, 21, dtype=torch.float64).unsqueeze(-1)
    for batch in ("lot", None):
        sampler = make([past()], batch=batch, model=AUTO.using(fit=FIT))
        study = optuna.create_study(sampler=sampler)
        for i in range(6):
            lot, x = "AB"[i % 2], (i + 0.5) / 6
            study.add_trial(ended(x, bowl(x, lot), lot))
        for present in ("A", "B"):
            study.set_user_attr("lot", present)
            trial = study.ask()
            x = trial.suggest_float("x", 0, 1)
            mean, _ = last_of(sampler).posterior.predict(grid)
            expected = torch.tensor([bowl(v, present) for v in grid.squeeze(-1).tolist()])
            errors[batch, present] = float((mean - expected).abs().mean())
            study.tell(trial, bowl(x, present))
    assert max(errors["lot", "A"], errors["lot", "B"]) < 0.3
    assert min(errors[None, "A"], errors[None, "B"]) > 0.8


def test_every_outcome_has_the_batches() -> None:
    """Several objectives, constraints and limited quantities: of trials, and of tables with gaps."""

    def several(trial: optuna.Trial) -> tuple[float, float]:
        x = trial.suggest_float("x", 0, 1)
        trial.set_constraint("heat", x - 0.9)
        if trial.number != 1:
            trial.set_user_attr("impurity", x)
        return bowl(x), -x

    frame = table("AB", n=4).assign(gain=0.5, heat=-0.1, impurity=0.2).rename(columns={"loss": "cost"})
    frame.loc[0, "gain"] = np.nan
    sampler = make([frame], objective=["cost", "gain"], constraints={"heat": "heat"}, limits=["impurity <= 2"])
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.set_metric_names(["cost", "gain"])
    for lot in "AABC":
        study.set_user_attr("lot", lot)
        study.optimize(several, n_trials=1)
    last = last_of(sampler)
    found = {name: observed(last.known[name]) for name in last.known.outcomes.names}
    assert list(found) == ["cost", "gain", "constraint heat", "impurity"]
    assert {name: batches_of(own) for name, own in found.items()} == {
        **dict.fromkeys(["cost", "gain", "constraint heat"], ([0.0, 0.0, 1.0], 2.0)),
        "impurity": ([0.0, 1.0], 2.0),
    }
    batches = {name: prior.sources[0].batch for name, prior in last.fitted.priors.items()}
    assert {name: None if own is None else own.tolist() for name, own in batches.items()} == {
        **dict.fromkeys(["cost", "constraint heat", "impurity"], [0.0] * 4 + [1.0] * 4),
        "gain": [0.0] * 3 + [1.0] * 4,
    }


def test_threads_take_turns_in_a_batch() -> None:
    """Two at once; every trial is written down as of the lot that the study said."""
    sampler = make([table()], objective="loss")
    study = optuna.create_study(sampler=sampler)
    for lot in "AB":
        study.set_user_attr("lot", lot)
        study.optimize(lambda trial, lot=lot: bowl(trial.suggest_float("x", 0, 1), lot), n_trials=4, n_jobs=2)  # type: ignore[misc]
    assert [trial.user_attrs["lot"] for trial in study.trials] == list("AAAABBBB")
    assert batches_of(known_to(sampler))[1] == 1
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def test_the_part_of_a_study_that_hyperband_shows_has_its_batch() -> None:
    """It has no attributes of its own; the storage has."""
    study = optuna.create_study(sampler=make(space=SPACE), pruner=optuna.pruners.HyperbandPruner(min_resource=1))
    run(study, "AAB")
    assert [trial.user_attrs["lot"] for trial in study.trials] == list("AAB")


def test_days_drift() -> None:
    """Dates as a database keeps them are days since 1970; a label that is none is told, and of the day before."""
    sampler = make(space=SPACE, batch="day", drift=30)
    study = optuna.create_study(sampler=sampler, study_name="mine")
    for i, day in enumerate(["2026-03-01", "2026-03-02T12:00", "Monday"]):
        study.add_trial(ended(i / 3, i / 3, day, "day"))
    study.set_user_attr("day", "2026-03-20")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    data = known_to(sampler)
    batch, present = batches_of(data)
    np.testing.assert_allclose(np.array([*batch, present]) - batch[0], [0, 1.5, 1.5, 19])
    assert data.drift == 30
    study.set_user_attr("day", "Tuesday")
    with pytest.raises(InputError, match=r"Study 'mine': batch 'day': 'Tuesday' is neither a date nor a number"):
        study.ask()


def test_a_day_that_is_none_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A trial that has ended cannot be corrected."""
    study = optuna.create_study(sampler=make(space=SPACE, drift=30), study_name="mine")
    for x, day in ((0.2, "2026-03-01"), (0.6, "Monday")):
        study.add_trial(ended(x, x, day))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    told = [line for line in warned(caplog) if "Monday" in line]
    assert len(told) == 1
    assert told[0].startswith("Study 'mine', trial 1: batch 'lot': 'Monday' is neither a date nor a number")
    assert told[0].endswith("It counts as of the batch before it.")


def test_a_name_that_nothing_has_is_told_once_a_trial_is_finished(caplog: pytest.LogCaptureFixture) -> None:
    """With the name that may be meant; not where the study, a trial or a source has it."""
    for name, column, said, misses in (
        ("lott", "lot", "", True),
        ("lott", "lott", "", False),
        ("lott", "lot", "lott", False),
    ):
        caplog.clear()
        source = table().rename(columns={"lot": column})
        study = optuna.create_study(sampler=make([source], objective="loss", batch=name))
        if said:
            study.set_user_attr(said, "A")
        study.optimize(lambda trial: bowl(trial.suggest_float("x", 0, 1)), n_trials=1)
        assert not [line for line in warned(caplog) if line.startswith("batch")]
        study.optimize(lambda trial: bowl(trial.suggest_float("x", 0, 1)), n_trials=3)
        told = [line for line in warned(caplog) if line.startswith("batch")]
        assert len(told) == misses
        if told:
            assert "neither this study, nor a trial of it, nor a source has 'lott'" in told[0]
            assert told[0].endswith("Did you mean 'lot'?")


def test_models_that_know_no_shifts_are_refused_at_once() -> None:
    """Where batches are named, or a data set has several; one batch of a data set is no matter."""
    for model in ("rgpe", "hgp", "wsgp", SHGP.paper()):
        with pytest.raises(InputError, match=r"batch='lot': \w+ knows no shifts between batches .* or leave batch out"):
            make([table()], objective="loss", model=model)
    X = np.linspace(0, 1, 6)[:, None]
    data = Dataset(X, X[:, 0], "old", batch=[0, 0, 0, 1, 1, 1])
    with pytest.raises(InputError, match=r"old \(Dataset\): \w+ knows no shifts"):
        make([data], model="rgpe", batch=None, space=SPACE)
    make([Dataset(X, X[:, 0], "old", batch=[0] * 6)], model="rgpe", batch=None, space=SPACE)


def test_a_data_set_keeps_its_batches_beside_those_of_the_study() -> None:
    """Its numbers and drift are its own; the study need not name any."""
    X = np.linspace(0, 1, 6)[:, None]
    data = Dataset(X, 4 * (X[:, 0] - 0.5) ** 2, "old", batch=[7.0, 7.0, 7.0, 9.0, 9.0, 9.0], drift=4.0)
    for batch in (None, "lot"):
        sampler = make([data], batch=batch, space=SPACE)
        run(optuna.create_study(sampler=sampler), "AB")
        (own,) = last_of(sampler).alignment.datasets
        assert own.drift == 4
        assert batches_of(own)[0] == [7, 7, 7, 9, 9, 9]
        assert (known_to(sampler).batch is None) is (batch is None)


@pytest.mark.parametrize(("lots", "repeats"), [("AA", True), ("AB", False)])
def test_another_result_in_another_batch_shows_no_noise(lots: str, repeats: bool) -> None:
    """It may be the shift; in the same batch it is noise, after which a point of few may be repeated."""
    space: dict[str, BaseDistribution] = {"n": IntDistribution(1, 5)}
    study = optuna.create_study(sampler=make(space=space))
    for lot, value in zip(lots, (0.0, 3.0), strict=True):
        study.add_trial(create_trial(params={"n": 2}, distributions=space, value=value, user_attrs={"lot": lot}))
    assert isinstance(study.sampler, TransferSampler)
    adviser = study.sampler._adviser
    now = adviser.fitter.read(study)
    fitted = adviser.fitter.fit(now)
    domain = adviser._domain(now, fitted.alignment.space).domain
    assert (adviser._avoided(domain, fitted.encode(now)) is None) is repeats


# ── controls ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_trial_that_repeats_another_to_show_a_shift_says_so() -> None:
    """Where the other candidates are alike, so that only a repetition shows the level of the new lot."""
    run = points(12, seed=3)
    alike = 1 - 0.02 * points(4, seed=30)
    names: dict[str, BaseDistribution] = {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)}
    study = optuna.create_study()
    for i, x in enumerate(run.tolist()):
        y = float(np.sin(5 * np.array(x)).sum()) + (0.0, 3.0, -3.0)[i // 4]
        params = dict(zip(names, x, strict=True))
        study.add_trial(create_trial(params=params, distributions=names, value=y, user_attrs={"lot": "ABC"[i // 4]}))
    rows = [dict(zip(names, x, strict=True)) for x in [*run.tolist(), *alike.tolist()]]
    study.sampler = make(model=GPBO.using(fit=FIT), candidates=pd.DataFrame(rows))
    study.set_user_attr("lot", "D")
    trial = study.ask(names)
    assert trial.params in rows[:12]
    assert study.trials[trial.number].user_attrs["headstart: control"] == 1
    last = study.sampler.last
    assert last is not None
    assert last.control
    assert "a control: it repeats a trial of another batch" in repr(last)
    study.tell(trial, 1.0)
    following = study.ask(names)
    assert "headstart: control" not in study.trials[following.number].user_attrs
    assert following.params in rows[12:]
