"""What a dashboard shows of a trial."""

from __future__ import annotations

import json
import re

import optuna
import pytest
import torch
from tests.problems import generator, points, quick
from torch import Tensor

from headstart import AUTO, FAMILY, GPBO, SHGP, Dataset, TransferSampler
from headstart.models.auto.auto import Auto, AutoPrior
from headstart.models.auto.candidates import Candidate
from headstart.models.auto.explanation import auto_only, explain
from headstart.sampler.explanation import attributes_of


def _hill(X: Tensor) -> Tensor:
    return -torch.exp(-8 * (X[:, 0] - 0.6).square() - 3 * (X[:, 1] - 0.4).square())


def _target(n: int) -> Dataset:
    X = points(n, seed=20)
    return Dataset(X, _hill(X))


@pytest.fixture(scope="module")
def prior() -> AutoPrior:
    """A source like the target, one upside down, one of noise and one of a single row."""
    X = [points(n, seed=seed) for seed, n in enumerate((20, 20, 20, 1))]
    noise = torch.randn(20, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = (_hill(X[0]), 2 - 3 * _hill(X[1]), noise, _hill(X[3]))
    names = ("like it", "upside down", "noise", "short")
    return auto_only(AUTO.learn([Dataset(x, y, name) for x, y, name in zip(X, values, names, strict=True)]))


@pytest.mark.parametrize("results", [0, 1, 9])
def test_weights_and_beliefs_are_those_of_an_explanation(prior: AutoPrior, results: int) -> None:
    """Rounded to three digits, and JSON can write them."""
    target = _target(results)
    found = attributes_of(prior, prior.condition(target))
    assert json.loads(json.dumps(found)) == found
    explanation = explain(prior, target)
    assert str(found["headstart: model"]).startswith(f"AUTO after {results} results: ")
    for source in explanation.sources:
        assert found[f"headstart: weight of {source.name}"] == pytest.approx(source.weight, abs=5.1e-4)
    believed = dict(re.findall(r"(\w+) ([\d.]+)(?:,|$)", str(found["headstart: model"]).partition(": ")[2]))
    assert {name: float(share) for name, share in believed.items()} == pytest.approx(explanation.candidates, abs=5.1e-4)


def test_verdicts_are_those_of_an_explanation(prior: AutoPrior) -> None:
    """Those that are not trusted say why."""
    found = attributes_of(prior, prior.condition(_target(20)))
    assert [str(s.verdict) for s in explain(prior, _target(20)).sources] == [
        "related",
        "upside down",
        "ignored",
        "ignored",
    ]
    assert set(str(found["headstart: sources"]).split("; ")) == {
        "like it related",
        "upside down upside down",
        "noise ignored: noise",
        "short ignored: too few rows",
    }


def test_asking_forgets_nothing(prior: AutoPrior) -> None:
    """What the model keeps for the next step is still there, and nothing is fitted again."""
    posterior = prior.condition(_target(5))
    cached = {kind: dict(entries) for kind, entries in prior._cache._kinds.items()}
    first = attributes_of(prior, posterior)
    assert attributes_of(prior, posterior) == first
    for kind, before in cached.items():
        assert all(prior._cache._kinds[kind][key] is value for key, value in before.items())


def test_many_sources_are_a_dozen_and_one_line() -> None:
    """The largest weights first; long names are cut and equal ones told apart."""
    long = "a study with a name that goes on and on " * 5
    sources = [Dataset(X, _hill(X), long) for X in (points(8, seed=seed) for seed in range(15))]
    prior = quick(AUTO).learn(sources)
    found = attributes_of(prior, prior.condition(_target(4)))
    weights = {key: float(value) for key, value in found.items() if " weight of " in key}
    assert len(weights) == 5
    assert max(len(key) for key in found) < 120
    sizes = [abs(weight) for weight in weights.values()]
    assert sizes == sorted(sizes, reverse=True)
    told = str(found["headstart: sources"]).split("; ")
    assert len(told) == 13
    assert told[-1].startswith("3 others with weights up to ")
    assert float(told[-1].split()[-1]) <= min(sizes)


WEIGHED = ("AUTO", "RGPE", "TST-R")  # tests/unit/sampler/test_rank_weighted.py has the latter two
AT_ONCE = ("SHGP", "WSGP", "STAR", "GPBO")  # one of each way of training


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in AT_ONCE else [pytest.mark.slow]) for n in FAMILY if n not in WEIGHED],
)
def test_a_model_without_weights_says_its_name(name: str) -> None:
    """Whatever its options, and how many results there are."""
    prior = quick(FAMILY[name]).anywhere().learn([Dataset(points(6, seed=0), _hill(points(6, seed=0)))])
    assert attributes_of(prior, prior.condition(_target(2))) == {"headstart: model": f"{name} after 2 results"}


def test_candidates_without_weights_are_believed_all_the_same() -> None:
    """A chain and a plain process: there are no weights to show."""
    model = Auto(candidates=(Candidate("past", SHGP, 0.7), Candidate("scratch", GPBO, 0.3)))
    prior = quick(model).learn([Dataset(points(9, seed=0), _hill(points(9, seed=0)))])
    found = attributes_of(prior, prior.condition(_target(3)))
    assert list(found) == ["headstart: model"]
    assert "past 0." in str(found["headstart: model"])


def test_a_storage_takes_them(prior: AutoPrior) -> None:
    """As user attributes of a trial, in a relational database, too."""
    study = optuna.create_study(storage="sqlite:///:memory:")
    trial = study.ask()
    found = attributes_of(prior, prior.condition(_target(3)))
    for key, value in found.items():
        trial.set_user_attr(key, value)
    assert study.trials[0].user_attrs == found


@pytest.mark.parametrize("model", ["auto", "gpbo"])
def test_an_explanation_says_how_large_shifts_are_in_the_words_of_the_study(model: str) -> None:
    """Of study and sources, in the study's direction; also where the model has no verdicts."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    shifts = {"L0": 0.0, "L1": 5.0, "L2": -5.0}

    def objective(trial: optuna.Trial) -> float:
        lot = f"L{trial.number // 4}"
        trial.set_user_attr("lot", lot)
        x, z = (trial.suggest_float(name, 0, 1) for name in ("x", "z"))
        return shifts[lot] - 4 * (x - 0.4) ** 2 - z + 0.1 * float(torch.randn(1, generator=generator(trial.number)))

    past = optuna.create_study(study_name="last", direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    past.optimize(objective, n_trials=12)
    sampler = TransferSampler([past] if model == "auto" else None, model=model, batch="lot", seed=0)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(objective, n_trials=12)
    said = sampler.explain(study)
    assert [one.task for one in said.shifts] == (["this study", "last"] if model == "auto" else ["this study"])
    for one in said.shifts:
        assert one.noun == "lot"
        assert {b.label: round(b.shift / 5) * 5.0 for b in one.batches} == shifts
    assert "this study: Results differ by ± " in str(said)
    assert "from one lot to another" in said._repr_html_()
