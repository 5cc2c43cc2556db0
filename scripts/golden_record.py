"""A golden record: what headstart suggests, predicts and explains on many small problems, as numbers and texts.

    python scripts/golden_record.py write record.json
    python scripts/golden_record.py compare record.json

``write`` notes what the headstart says that can be imported; ``compare`` works it out again, names every problem that
came out otherwise, and ends with status 1 if there is one. Only public names, Optuna and the command line are used, so
a record says whether a change inside changes anything outside. Data and seeds are fixed. Records are of one machine and
one set of libraries: others round otherwise.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import difflib
import json
import math
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import optuna
import pandas as pd
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.sampling.normal import SobolQMCNormalSampler
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor
from typer.testing import CliRunner

import headstart as hs

Value = float | str | list[float]
Record = dict[str, Value]
Problem = Callable[[], Record]

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
TOLERANCE = 1e-9
ALONE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MKL_CBWR": "COMPATIBLE", "MPLBACKEND": "Agg"}
LINES_SHOWN = 6

PROBLEMS: dict[str, Problem] = {}


def problem(name: str, *arguments: Any) -> Callable[[Callable[..., Record]], Callable[..., Record]]:
    """Enter a function, with these arguments, under a name."""

    def enter(solve: Callable[..., Record]) -> Callable[..., Record]:
        PROBLEMS[name] = partial(solve, *arguments)
        return solve

    return enter


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def surface(X: np.ndarray, shift: float) -> np.ndarray:
    """A bowl with ripples; smaller is better."""
    return np.asarray(((X - 0.35 - shift) ** 2).sum(-1) + 0.12 * np.sin(7 * (X + shift)).sum(-1))


def task(
    seed: int, n: int, d: int = 2, *, shift: float = 0.0, noise: float = 0.02, sign: float = 1.0, **options: Any
) -> hs.Dataset:
    """Noisy values of the surface at random points."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return hs.Dataset(X, sign * surface(X, shift) + noise * rng.standard_normal(n), **options)


def sources(count: int, n: int = 14, d: int = 2) -> list[hs.Dataset]:
    """Tasks that are more and more like the target."""
    return [task(10 + i, n + i % 3, d, shift=0.3 / (i + 1), name=f"task {i}") for i in range(count)]


def target(n: int, d: int = 2) -> hs.Dataset:
    """The first results of the target; each is the same however many there are."""
    if n == 0:
        return hs.Dataset.empty(d)
    whole = task(99, 64, d, shift=0.05)
    return whole.head(n)


def points(d: int = 2, m: int = 6) -> Tensor:
    """Where predictions are asked for."""
    return torch.as_tensor(np.random.default_rng(7).random((m, d)))


# ── what is noted ─────────────────────────────────────────────────────────────────────────────────────────────────


def flat(value: Any, key: str) -> Record:
    """Numbers and texts of tensors, data classes, mappings and sequences, by their way there."""
    if isinstance(value, Enum):
        return {key: str(value.value)}
    if isinstance(value, str) or value is None:
        return {key: str(value)}
    if isinstance(value, bool | int | float | np.number):
        return {key: float(value)}
    if isinstance(value, Tensor | np.ndarray):
        return {key: torch.as_tensor(value).detach().double().flatten().tolist()}
    if dataclasses.is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        parts = dict(value)
    else:
        parts = {str(i): part for i, part in enumerate(value)}
    return {name: leaf for own, part in parts.items() for name, leaf in flat(part, f"{key}.{own}").items()}


def predicted(model: hs.TransferPosterior, X: Tensor, key: str = "") -> Record:
    """Mean and variance, and what a measurement will be."""
    with torch.no_grad():
        mean, var = model.predict(X)
        joint = model.posterior(X)
        low, high = model.interval(X, 0.9)
        found = {"mean": mean, "variance": var, "posterior": joint.mean, "low": low, "high": high}
        found["density"] = model.log_density(X, mean + 0.1)
        found["evidence"] = model.log_evidence
    return flat(found, f"{key}predicted")


def asked(model: hs.TransferPosterior, key: str = "", **options: Any) -> Record:
    """The next point, and the next three."""
    one, three = hs.suggest(model, **options), hs.suggest(model, q=3, **options)
    return {**flat(one, f"{key}suggested.one"), **flat(three, f"{key}suggested.three")}


def explained(prior: hs.Prior, data: hs.Dataset, key: str = "") -> Record:
    """The explanation, as text and as numbers."""
    told = hs.explain(prior, data)
    return {f"{key}explanation": str(told), **flat(told, f"{key}explained")}


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────


def family(name: str) -> Record:
    """A model of the family, from its sources to its suggestions."""
    prior = hs.FAMILY[name].learn(sources(2, 12))
    model = prior.condition(target(5))
    found = {**predicted(model, points()), **asked(model), **flat(model.hyperparameters, "hyperparameters")}
    reports = model.fit_reports
    located = model.predict(points())
    first = prior.condition(target(0)) if name != "GPBO" else model
    return {
        **found,
        **flat(located, "located"),
        **flat([report.task for report in reports], "fitted"),
        **predicted(first, points(), "before."),
    }


for _name in hs.FAMILY:
    PROBLEMS[f"family {_name}"] = partial(family, _name)


@problem("AUTO, no source", 0)
@problem("AUTO, 1 source", 1)
@problem("AUTO, 3 sources", 3)
@problem("AUTO, 8 sources", 8)
def auto(count: int) -> Record:
    """AUTO as the target goes on; without any source it is left to GPBO, and AUTO's refusal is noted."""
    found: Record = {}
    try:
        prior = hs.AUTO.learn(sources(count, 12))
    except hs.InputError as error:
        found["refused"] = str(error)
        prior = hs.GPBO.learn()
    for n in (0, 2, 6):
        model = prior.condition(target(n))
        found |= {**predicted(model, points(), f"{n}."), **flat(hs.suggest(model), f"{n}.suggested")}
        if count:
            found |= explained(prior, target(n), f"{n}.")
    return found


@problem("AUTO, misleading sources")
def misleading() -> Record:
    """One source upside down, one of noise, one that says nothing, and one of use."""
    rng = np.random.default_rng(3)
    noise = hs.Dataset(rng.random((18, 2)), rng.standard_normal(18), name="noise")
    constant = hs.Dataset(rng.random((8, 2)), np.ones(8), name="constant")
    few = task(5, 2, name="few")
    past = [task(4, 18, sign=-1.0, name="negated"), noise, constant, few, task(6, 16, shift=0.1, name="good")]
    prior = hs.AUTO.learn(past)
    data = target(8)
    model = prior.condition(data)
    return {**predicted(model, points()), **asked(model), **explained(prior, data)}


OPTIONS: dict[str, Callable[[], hs.TransferModel]] = {
    "SHGP as in the paper": lambda: hs.SHGP.paper(),
    "STAR as in the paper": lambda: hs.STAR.paper(),
    "SHGP, RBF": lambda: hs.SHGP.using(kernel=hs.Kernel.RBF),
    "SHGP, values as they are": lambda: hs.SHGP.using(output_map=hs.OutputMap.NONE),
    "BHGP, units per level": lambda: hs.BHGP.using(units=hs.OutputUnits.PER_LEVEL, output_map=hs.OutputMap.NONE),
    "SHGP, one start": lambda: hs.SHGP.using(fit=hs.FitOptions(restarts=1, max_iterations=40)),
    "SHGP, likelihood": lambda: hs.SHGP.using(fit=hs.FitOptions(objective=hs.Objective.LIKELIHOOD, restarts=3)),
    "GPBO, the mode alone": lambda: hs.GPBO.using(fit=hs.FitOptions(draws=0)),
    "AUTO, RBF": lambda: hs.AUTO.using(kernel=hs.Kernel.RBF),
}


@problem("options")
def options() -> Record:
    """Models with other kernels, fits, units and output maps."""
    found: Record = {}
    for name, make in OPTIONS.items():
        made = make()
        prior = made.learn(sources(2, 12) if made.needs_sources else ())
        model = prior.condition(target(5))
        found |= {**predicted(model, points(), f"{name}. "), **flat(hs.suggest(model), f"{name}. suggested")}
        found |= flat(model.hyperparameters, f"{name}. hyperparameters")
    return found


@problem("given hyperparameters")
def given() -> Record:
    """Posteriors at hyperparameters that were found before."""
    found: Record = {}
    for name in ("SHGP", "HGP", "WSGP", "STAR", "RGPE"):
        prior = hs.FAMILY[name].learn(sources(2, 10))
        model = prior.condition(target(4))
        again = hs.FAMILY[name].at(model.hyperparameters, sources=prior.sources, target=prior.inward(target(4)))
        found |= flat(again.predict(points()), name)
    return found


@problem("known errors")
def known_errors() -> Record:
    """Results whose variances are known, of sources and target."""
    rng = np.random.default_rng(11)
    found: Record = {}
    past = [hs.Dataset(s.X, s.y, name=s.name, error_var=0.02 * rng.random(s.n)) for s in sources(2)]
    data = hs.Dataset(target(6).X, target(6).y, error_var=0.05 * rng.random(6))
    for name in ("AUTO", "SHGP", "HGP"):
        prior = hs.FAMILY[name].learn(past)
        model = prior.condition(data)
        found |= {**predicted(model, points(), f"{name}."), **asked(model, f"{name}.")}
    return found | explained(hs.AUTO.learn(past), data)


@problem("replicates")
def replicates() -> Record:
    """Rows that are measured several times."""
    rng = np.random.default_rng(12)
    X = np.repeat(rng.random((5, 2)), 4, axis=0)
    past = [hs.Dataset(X, surface(X, 0.1) + 0.05 * rng.standard_normal(20), name="repeats"), *sources(1)]
    own = target(3)
    data = hs.Dataset(own.X.repeat(2, 1), torch.cat([own.y, own.y + 0.03]))
    prior = hs.AUTO.learn(past)
    model = prior.condition(data)
    return {**predicted(model, points()), **asked(model), **explained(prior, data)}


@problem("bounds and outliers")
def bounded() -> Record:
    """Results that cannot be outside a range, and a source with a result that is far from all others."""
    bounds = hs.Goal("y", low=-1, high=3).bounds
    wild = task(21, 16, name="wild")
    y = wild.y.clone()
    y[3] = 1e6
    found: Record = {}
    assert bounds is not None
    model = hs.AUTO.learn(sources(2, 10)).condition(target(4)).within_bounds(bounds)
    found |= {**predicted(model, points(), "bounded."), **asked(model, "bounded.")}
    prior = hs.AUTO.learn([wild.with_data(wild.X, y), *sources(1)])
    model = prior.condition(target(4))
    return found | predicted(model, points(), "wild.") | explained(prior, target(4), "wild.")


@problem("one input")
def one_input() -> Record:
    """A single column."""
    prior = hs.AUTO.learn(sources(2, 10, 1))
    model = prior.condition(target(4, 1))
    return {**predicted(model, points(1)), **asked(model), **explained(prior, target(4, 1))}


@problem("unseen column")
def unseen() -> Record:
    """A source that did not record one of three inputs."""
    past = [task(31, 12, 3, name="lacking", unseen=(2,)), *sources(1, 14, 3)]
    found: Record = {}
    for name in ("AUTO", "SHGP", "WSGP"):
        model = hs.FAMILY[name].learn(past).condition(target(4, 3))
        found |= {**predicted(model, points(3), f"{name}."), **flat(hs.suggest(model), f"{name}.suggested")}
    return found


@problem("batch of problems")
def in_lockstep() -> Record:
    """Three independent problems at once."""
    found: Record = {}
    one, two, own = ([task(s + i, n) for i in range(3)] for s, n in ((40, 12), (50, 12), (60, 4)))
    stacked = [hs.Dataset(torch.stack([t.X for t in part]), torch.stack([t.y for t in part])) for part in (one, two)]
    data = hs.Dataset(torch.stack([t.X for t in own]), torch.stack([t.y for t in own]))
    for name in ("AUTO", "SHGP", "GPBO"):
        model = hs.FAMILY[name].learn(stacked if name != "GPBO" else ()).condition(data)
        mean, var = model.predict(points().expand(3, -1, -1))
        found |= {**flat((mean, var), name), **flat(hs.suggest(model, design_seeds=[1, 2, 3]), f"{name}.suggested")}
    return found


@problem("700 rows", "AUTO", 700)
@problem("3000 rows", "SHGP", 3000)
@problem("5100 rows", "AUTO", 5100)
def large_source(name: str, n: int) -> Record:
    """A source with more rows than are simply fitted."""
    prior = hs.FAMILY[name].learn([task(71, 12, name="small"), task(72, n, shift=0.1, noise=0.1, name="large")])
    model = prior.condition(target(4))
    found = {**predicted(model, points()), **flat(hs.suggest(model), "suggested")}
    return found | (explained(prior, target(4)) if name == "AUTO" else {})


@problem("20 sources")
def many_sources() -> Record:
    """More sources than are asked each time."""
    prior = hs.AUTO.learn([task(80 + i, 8, shift=0.02 * i, name=f"task {i}") for i in range(20)])
    model = prior.condition(target(4))
    return {**predicted(model, points()), **flat(hs.suggest(model), "suggested"), **explained(prior, target(4))}


@problem("long target")
def long_target() -> Record:
    """A target with 40 results."""
    prior = hs.AUTO.learn(sources(2, 10))
    model = prior.condition(target(40))
    alone = hs.GPBO.learn().condition(target(40))
    found = {**predicted(model, points()), **asked(model), **predicted(alone, points(), "alone.")}
    return found | flat(hs.outlook(model), "outlook") | {"sentence": str(hs.outlook(model))}


@problem("very long target")
def very_long_target() -> Record:
    """A target whose hyperparameters are not found anew with every result, one result after the other."""
    found: Record = {}
    data = task(98, 300, shift=0.05)
    for name, prior in (("AUTO", hs.AUTO.learn(sources(1, 10))), ("GPBO", hs.GPBO.learn())):
        for n in (270, 271, 300):
            model = prior.condition(data.head(n))
            found |= flat(model.predict(points()), f"{name}.{n}")
        found |= flat(hs.suggest(model), f"{name}.suggested")
    return found


# ── where to look ─────────────────────────────────────────────────────────────────────────────────────────────────


def mixed_space() -> hs.Space:
    """Numbers, a logarithm, steps and categories."""
    ranges: dict[str, Any] = {"a": hs.FloatRange(0, 1), "b": hs.FloatRange(0.01, 10, log=True)}
    ranges |= {"k": hs.IntRange(1, 9, step=2), "kind": hs.Choices(("red", "green", "blue"))}
    return hs.Space.of(ranges)


def mixed_task(seed: int, n: int, space: hs.Space, *, shift: float = 0.0, name: str = "") -> hs.Dataset:
    """Results in a mixed space."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = [
        {
            "a": float(rng.random()),
            "b": float(10 ** rng.uniform(-2, 1)),
            "k": int(rng.choice([1, 3, 5, 7, 9])),
            "kind": str(rng.choice(["red", "green", "blue"])),
        }
        for _ in range(n)
    ]
    y = [
        (row["a"] - 0.4 - shift) ** 2
        + 0.1 * (math.log10(row["b"]) - shift) ** 2
        + 0.02 * abs(row["k"] - 5)
        + 0.2 * (row["kind"] != "green")
        for row in rows
    ]
    return hs.Dataset(
        space.encode(rows), np.array(y) + 0.01 * rng.standard_normal(n), name, categories=space.categories
    )


def rows_of(space: hs.Space, X: Tensor, key: str) -> Record:
    """Points as values of the parameters."""
    return flat(space.decode(X.reshape(-1, space.d)), key)


@problem("mixed space")
def mixed() -> Record:
    """Categories, steps and logarithms; with points that are awaited, avoided and pinned."""
    space = mixed_space()
    prior = hs.AUTO.learn([mixed_task(1, 18, space, shift=0.2, name="one"), mixed_task(2, 16, space, name="two")])
    data = mixed_task(3, 5, space, shift=0.05)
    model = prior.condition(data)
    domain = hs.Mixed(space)
    found = predicted(model, mixed_task(4, 6, space).X) | explained(prior, data)
    found |= rows_of(space, hs.suggest(model, domain=domain, q=3), "three")
    awaited, used = mixed_task(5, 2, space).X, data.X
    found |= rows_of(space, hs.suggest(model, domain=domain, pending=awaited, avoid=used), "awaited")
    pinned = hs.Mixed(space, {"kind": "blue", "k": 3})
    return found | rows_of(space, hs.suggest(model, domain=pinned, q=2), "pinned")


@problem("grid")
def grid() -> Record:
    """A space with few points, all of which are compared."""
    space = hs.Space.of({"a": hs.FloatRange(0, 1, step=0.25), "k": hs.IntRange(0, 3)})
    model = hs.SHGP.learn(sources(2, 10)).condition(target(3))
    domain = hs.Mixed(space)
    found = rows_of(space, hs.suggest(model, domain=domain, q=3), "three")
    fine = hs.Mixed(hs.Space.of({"a": hs.FloatRange(0, 1, step=0.01), "k": hs.IntRange(0, 400)}))
    return found | rows_of(fine.space, hs.suggest(model, domain=fine, q=2), "fine")


@problem("candidates")
def candidates() -> Record:
    """One of a list, of points and of rows that keep rules."""
    model = hs.AUTO.learn(sources(2, 10)).condition(target(3))
    shelf = hs.Candidates(points(2, 25))
    found = {**asked(model, domain=shelf), **flat(hs.outlook(model, shelf), "outlook")}
    found |= flat(hs.suggest(model, domain=shelf, pending=shelf.X[:4], avoid=shelf.X[4:9]), "others")
    space = hs.Space.of({"a": hs.FloatRange(0, 1), "b": hs.FloatRange(0, 1)})
    rows = [{"a": i / 10, "b": (i * 7 % 11) / 10} for i in range(11)]
    listed = hs.Candidates.of(space, rows, ["a + b <= 1.2"])
    return found | rows_of(space, hs.suggest(model, domain=listed, q=2), "listed")


@problem("rules")
def ruled() -> Record:
    """Sums, equations, steps, fixed values and forbidden combinations."""
    cube = hs.Space.of({name: hs.FloatRange(0, 1) for name in "abc"})
    model = hs.AUTO.learn(sources(2, 12, 3)).condition(target(4, 3))
    linear = hs.LinearRule((("a", 2.0), ("b", 1.0)), hs.Relation.AT_MOST, 0.9)
    asked_for: dict[str, list[Any]] = {
        "sum": ["a + b + c <= 1"],
        "mixture": ["a + b + c = 1"],
        "steps": ["a in steps of 0.05", hs.OnSteps("b", 0.1, 0.0), "a + b >= 0.4"],
        "fixed": [hs.FixedValue("c", 0.25), linear],
        "forbidden": [
            hs.Forbidden((hs.Clause("a", hs.Relation.ABOVE, 0.3), hs.Clause("b", hs.Relation.BELOW, 0.5))),
            "forbid: a < 0.2 and c > 0.4",
        ],
    }
    found: Record = {}
    for name, rules in asked_for.items():
        domain = hs.Ruled(cube, rules)
        found[f"{name}.text"] = "; ".join(map(str, domain.rules))
        found |= rows_of(cube, hs.suggest(model, domain=domain), f"{name}.one")
    domain = hs.Ruled(cube, asked_for["mixture"])
    pending = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64)
    found |= rows_of(cube, hs.suggest(model, domain=domain, q=2, pending=pending), "mixture.pending")
    try:
        hs.Ruled(cube, ["a + b >= 1.5", "a <= 0.2"])
    except hs.InputError as error:
        found["contradiction"] = str(error)
    return found


@problem("rules in a mixed space")
def ruled_mixed() -> Record:
    """The same with categories and integers."""
    space = mixed_space()
    model = hs.SHGP.learn([mixed_task(1, 16, space, shift=0.1)]).condition(mixed_task(3, 5, space))
    rules = ["forbid: kind = green and k > 3", "a + k <= 7", "forbid: kind = red"]
    domain = hs.Ruled(space, rules)
    found = rows_of(space, hs.suggest(model, domain=domain, q=2), "two")
    found |= {f"rule {i}": str(hs.parse_rule(rule, space)) for i, rule in enumerate([*rules, "kind = blue"])}
    return found | rows_of(space, hs.suggest(model, domain=hs.Ruled(space, ["kind = blue", "b <= 2"])), "fixed")


@problem("acquisitions")
def acquisitions() -> Record:
    """Every acquisition function, alone, with awaited points and in a batch."""
    found: Record = {}
    auto_model = hs.AUTO.learn(sources(2, 12)).condition(target(6))
    chain = hs.SHGP.learn(sources(2, 12)).condition(target(6))
    for kind in hs.Acquisition:
        for name, model in (("AUTO", auto_model), ("SHGP", chain)):
            found |= asked(model, f"{kind.name}.{name}.", kind=kind, beta=2.0)
            pending = hs.suggest(model, kind=kind, pending=points(2, 2), seed=3, n_candidates=64, n_starts=2)
            found |= flat(pending, f"{kind.name}.{name}.pending")
    return found


def turned(Y: Tensor, X: Tensor | None = None) -> Tensor:  # noqa: ARG001
    """An objective that is to be low, for acquisition functions that look for what is high."""
    return -Y[..., 0]


@problem("BoTorch")
def with_botorch() -> Record:
    """BoTorch's own acquisition functions, conditioning and fantasies."""
    found: Record = {}
    X = points(2, 5)
    for name in ("AUTO", "SHGP", "WSGP", "GPBO"):
        learnt = hs.FAMILY[name].learn(sources(2, 12) if name != "GPBO" else ())
        model = learnt.condition(target(5))
        best = target(5).y.min()
        found |= flat(LogExpectedImprovement(model, best_f=best, maximize=False)(X.unsqueeze(-2)), f"{name}.log_ei")
        draws = SobolQMCNormalSampler(torch.Size([16]), seed=0)
        lower = GenericMCObjective(turned)
        several = qLogExpectedImprovement(model, best_f=-best, sampler=draws, objective=lower, X_pending=X[3:])
        found |= flat(several(X[:3].unsqueeze(-2)), f"{name}.q_log_ei")
        later = model.condition_on_observations(X[:2], torch.tensor([[0.1], [0.2]], dtype=torch.float64))
        found |= flat(later.predict(X), f"{name}.later")
        fantasies = model.fantasize(X[:2], sampler=SobolQMCNormalSampler(torch.Size([4]), seed=0))
        found |= flat(fantasies.posterior(X[2:]).mean, f"{name}.fantasies")
        draws = SobolQMCNormalSampler(torch.Size([2]), seed=0)
        found |= flat(draws(model.posterior(X, observation_noise=True)), f"{name}.draws")
    return found


# ── several outcomes ──────────────────────────────────────────────────────────────────────────────────────────────


def outcomes_of(data: hs.Dataset, outcomes: hs.Outcomes) -> dict[str, hs.Dataset]:
    """Every outcome at the data's inputs, made of its values."""
    made = {"yield": -data.y, "cost": data.X.sum(-1) + 0.1 * data.y, "heat": data.X[:, 0] + 0.5 * data.y}
    return {name: hs.Dataset(data.X, made[name], data.name) for name in outcomes.names}


SEVERAL: dict[str, hs.Outcomes] = {
    "a limit": hs.Outcomes((hs.Goal("yield", maximize=True, high=2),), (hs.Limit("heat", at_most=0.6),)),
    "two objectives": hs.Outcomes((hs.Goal("yield", maximize=True), hs.Goal("cost"))),
    "two objectives and a limit": hs.Outcomes(
        (hs.Goal("yield", maximize=True), hs.Goal("cost")), (hs.Limit("heat", at_least=0.2),)
    ),
    "an impossible limit": hs.Outcomes((hs.Goal("cost"),), (hs.Limit("heat", at_most=-5.0),)),
}


@problem("several: a limit", "a limit")
@problem("several: two objectives", "two objectives")
@problem("several: two objectives and a limit", "two objectives and a limit")
@problem("several: an impossible limit", "an impossible limit")
def several(name: str) -> Record:
    """What is suggested and expected where several things are measured."""
    outcomes = SEVERAL[name]
    past = [outcomes_of(source, outcomes) for source in sources(2, 11)]
    priors = hs.OutcomePriors.learn(outcomes, {own: [source[own] for source in past] for own in outcomes.names})
    known = priors.condition(outcomes_of(target(5), outcomes))
    one = hs.suggest(known)
    three = hs.suggest(known, q=3, n_candidates=128, n_starts=2)
    awaited = hs.suggest(known, pending=points(2, 2), avoid=target(5).X, seed=1, n_candidates=128)
    found = {**flat(one, "one"), **flat(three, "three"), **flat(awaited, "awaited")}
    found |= flat(hs.suggest(priors.condition(), n_candidates=128), "first")
    found |= {**flat(known.predict(points()), "predicted"), **flat(known.probability_within(points()), "within")}
    next_ones = three if len(outcomes.goals) == 1 else one  # of several objectives one point is looked at
    found |= flat(hs.further_gain(known, next_ones), "gain") | flat(hs.further_gain(known, one, shown=True), "shown")
    ahead = hs.outlook(known)
    return found | {**flat(ahead, "outlook"), "sentence": str(ahead), "advice": str(ahead.advice)}


@problem("several: rules and an outcome without a past")
def several_ruled() -> Record:
    """Two objectives and a limit that no source knows, in a space with rules."""
    outcomes = SEVERAL["two objectives and a limit"]
    past = [outcomes_of(source, outcomes) for source in sources(2, 11)]
    learnt = {own: [source[own] for source in past] for own in ("yield", "cost")}
    known = hs.OutcomePriors.learn(outcomes, learnt, model=hs.SHGP).condition(outcomes_of(target(4), outcomes))
    space = hs.Space.of({"a": hs.FloatRange(0, 1), "b": hs.FloatRange(0, 1, step=0.1)})
    domain = hs.Ruled(space, ["a + b <= 1.1"])
    posteriors = hs.OutcomePosteriors(outcomes, known.posteriors)
    found = rows_of(space, hs.suggest(posteriors, domain=domain, q=2, n_candidates=128), "two")
    return found | flat(posteriors.predict(points()), "predicted")


@problem("further gain and outlook")
def going_on() -> Record:
    """What the next points are expected to gain, of one objective."""
    found: Record = {}
    for n in (0, 3, 12):
        model = hs.SHGP.learn(sources(2, 12)).condition(target(n))
        found |= flat(hs.further_gain(model, points(2, 1)), f"{n}.one") | flat(hs.outlook(model), f"{n}.outlook")
        found |= flat(hs.further_gain(model, points(2, 4)), f"{n}.four") | {f"{n}.told": str(hs.outlook(model))}
    return found


# ── Optuna ────────────────────────────────────────────────────────────────────────────────────────────────────────


def tuned(trial: optuna.Trial, shift: float = 0.05) -> float:
    """A mixed objective with a branch."""
    x = trial.suggest_float("x", 0, 1)
    rate = trial.suggest_float("rate", 1e-4, 1, log=True)
    kind = trial.suggest_categorical("kind", ["plain", "deep"])
    value = (x - 0.4 - shift) ** 2 + 0.05 * (math.log10(rate) + 2 + shift) ** 2
    if kind == "deep":
        layers = trial.suggest_int("layers", 1, 6)
        return value + 0.03 * (layers - 3) ** 2
    return value + 0.15


def flat_two(trial: optuna.Trial, shift: float = 0.05) -> tuple[float, float]:
    """Two objectives of two numbers, and a constraint."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_constraint("heat", x + y - 1.2 - shift)
    return (x - 0.2 - shift) ** 2 + y**2, 1 - (x - 0.8) ** 2 - (y - 0.6 - shift) ** 2


def constrained(trial: optuna.Trial, shift: float = 0.05) -> float:
    """The first of the two, with the constraint."""
    return flat_two(trial, shift)[0]


def shares(trial: optuna.Trial, shift: float = 0.0) -> float:
    """A mixture of three parts and a temperature."""
    parts = [trial.suggest_float(name, 0, 1) for name in "ABC"]
    T = trial.suggest_float("T", 20, 220)
    solvent = trial.suggest_categorical("solvent", ["toluene", "water"])
    best = (0.2 + shift, 0.3, 0.5 - shift)
    away = sum((a - b) ** 2 for a, b in zip(parts, best, strict=True))
    return away + (T / 100 - 1.5) ** 2 + 0.1 * (solvent == "water")


def past_study(objective: Callable[..., Any], number: int, **made: Any) -> optuna.Study:
    """A past study of random trials."""
    made = {"study_name": f"past {number}", **made}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=number), **made)
    study.optimize(lambda trial: objective(trial, 0.1 * number), n_trials=12)
    return study


def ran(sampler: hs.TransferSampler, objective: Callable[..., Any], n: int, **made: Any) -> Record:
    """Some trials of a new study, and all that the sampler says about them."""
    study = optuna.create_study(sampler=sampler, study_name="now", **made)
    study.optimize(objective, n_trials=n)
    found: Record = {"last": str(sampler.last), "sampler": repr(sampler)}
    for trial in study.trials:
        found |= {**flat(trial.params, f"trial {trial.number}"), **flat(trial.values, f"trial {trial.number}.values")}
    found["explained"] = str(sampler.explain())
    found["explained later"] = str(sampler.explain(study))
    return found


@problem("sampler: mixed and branching", {})
@problem("sampler: bound", {"acquisition": "ucb", "beta": 2.0})
@problem("sampler: deterministic, steps", {"deterministic_objective": True, "steps": {"x": 0.125}})
def sampled(made: dict[str, Any]) -> Record:
    """Six trials after two past studies."""
    sampler = hs.TransferSampler([past_study(tuned, 2), past_study(tuned, 1)], seed=0, **made)
    return ran(sampler, tuned, 6)


@problem("sampler: SHGP, storage, maximise")
def sampled_from_storage() -> Record:
    """Past studies in a database, a chain, and a study that is to be high."""
    with somewhere():
        url = "sqlite:///past.db"
        for number in (2, 1):
            past_study(lambda t, s: -tuned(t, s), number, storage=url, direction="maximize")
        read = hs.Sources.from_storage(url, include="past *")
        study = optuna.create_study(study_name="now", direction="maximize", storage=url)
        found: Record = {"read": str(read)}
        for _ in range(2):  # the second reads what the first has learnt
            study.sampler = sampler = hs.TransferSampler(read, seed=0, model="shgp", cache_dir="kept")
            study.optimize(lambda trial: -tuned(trial), n_trials=2)
            found |= {f"last {len(study.trials)}": repr(sampler.last), "report": sampler.explain().report}
        for trial in study.trials:
            found |= flat(trial.params, f"trial {trial.number}")
        return found


@problem("sampler: tables")
def sampled_tables() -> Record:
    """Tables with other names, a column that one lacks, and a value for one that the other lacks."""
    rng = np.random.default_rng(5)
    one = pd.DataFrame({"X": rng.random(14), "rate": 10 ** rng.uniform(-4, 0, 14), "kind": ["plain", "deep"] * 7})
    one["loss"] = (one["X"] - 0.5) ** 2 + 0.05 * (np.log10(one["rate"]) + 2) ** 2 + 0.1 * (one["kind"] == "plain")
    two = pd.DataFrame({"x": rng.random(12), "kind": ["deep", "other", "plain"] * 4})
    two["loss"] = (two["x"] - 0.4) ** 2 + 0.1 * (two["kind"] == "plain")
    made: dict[str, Any] = {"rename": {"X": "x"}, "fill": {"layers": 3}, "model": "auto"}
    return ran(hs.TransferSampler([two, one], objective="loss", seed=0, **made), tuned, 4)


@problem("sampler: constraints")
def sampled_constrained() -> Record:
    """One objective and a constraint, which past studies know."""
    past = [past_study(constrained, number) for number in (2, 1)]
    return ran(hs.TransferSampler(past, seed=0), constrained, 5)


@problem("sampler: two objectives")
def sampled_two() -> Record:
    """Two objectives and a constraint."""
    directions = ["minimize", "maximize"]
    past = [past_study(flat_two, number, directions=directions) for number in (2, 1)]
    sampler = hs.TransferSampler(past, seed=0)
    found = ran(sampler, flat_two, 4, directions=directions)
    return found | {"second": str(sampler.explain(outcome="1"))}


@problem("sampler: rules")
def sampled_ruled() -> Record:
    """A mixture with forbidden combinations, steps and a fixed part, from past studies that keep no rule."""
    past = [past_study(shares, number) for number in (2, 1)]
    rules = ["A + B + C = 1", "2*A - B <= 0.5", "forbid: T > 180 and solvent = toluene"]
    sampler = hs.TransferSampler(past, rules=rules, steps={"T": 5}, fixed={"B": 0.3}, seed=0)
    return ran(sampler, shares, 4)


@problem("sampler: candidates")
def sampled_candidates() -> Record:
    """One of a list each time, from a table."""
    table = pd.DataFrame([{"A": i / 15, "B": (i * 7 % 16) / 15} for i in range(16)])
    table["loss"] = (table["A"] - 0.3) ** 2 + (table["B"] - 0.6) ** 2
    shelf = [{"A": a / 10, "B": (10 - a) / 10} for a in range(11)]
    sampler = hs.TransferSampler([table], objective="loss", candidates=shelf, rules=["A <= 0.8"], seed=0)
    return ran(
        sampler,
        lambda trial: (trial.suggest_float("A", 0, 1) - 0.35) ** 2 + (trial.suggest_float("B", 0, 1) - 0.6) ** 2,
        5,
    )


@problem("sampler: from scratch")
def sampled_from_scratch() -> Record:
    """No source: the first trials are laid out, then a process on its own decides."""
    space = {
        "x": FloatDistribution(0, 1),
        "rate": FloatDistribution(1e-4, 1, log=True),
        "kind": CategoricalDistribution(["plain", "deep"]),
        "layers": IntDistribution(1, 6),
    }
    sampler = hs.TransferSampler(seed=0, space=space)
    study = optuna.create_study(sampler=sampler, study_name="now")
    study.optimize(tuned, n_trials=8)
    found: Record = {"last": str(sampler.last)}
    for trial in study.trials:
        found |= flat(trial.params, f"trial {trial.number}")
    return found


@problem("sampler: known errors, enqueued and running trials")
def sampled_parallel() -> Record:
    """Errors in user attributes, a trial that somebody enqueued, and three that run at once."""

    def noted(trial: optuna.Trial, shift: float = 0.0) -> float:
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        trial.set_user_attr("sd", 0.02 + 0.1 * x)
        return float(surface(np.array([x, y]), shift))

    sampler = hs.TransferSampler([past_study(noted, 1)], error="sd", seed=0)
    study = optuna.create_study(sampler=sampler, study_name="now")
    study.enqueue_trial({"x": 0.9})
    study.optimize(noted, n_trials=3)
    found: Record = {}
    for i in range(3):
        running = study.ask()
        found |= flat((running.suggest_float("x", 0, 1), running.suggest_float("y", 0, 1)), f"running {i}")
    for trial in study.trials[:3]:
        found |= flat(trial.params, f"trial {trial.number}")
    return found | {"last": repr(sampler.last), "explained": str(sampler.explain())}


# ── the folder ────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def somewhere(examples: str = "") -> Iterator[None]:
    """A folder of its own to work in, with the past files of an example."""
    with tempfile.TemporaryDirectory() as folder:
        if examples:
            shutil.copytree(EXAMPLES / examples, Path(folder) / "past")
        with chdir(folder):
            yield


def told(*arguments: str) -> str:
    """What a command prints, remarks and status included."""
    from headstart.cli.main import app

    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, list(arguments))
    failed = "" if result.exception is None or isinstance(result.exception, SystemExit) else repr(result.exception)
    return f"{result.stdout}\n--- remarks ---\n{result.stderr}\n--- status {result.exit_code} {failed}".rstrip()


def fill_in(**columns: Callable[[int], float]) -> None:
    """Type results into the rows of current.csv that have none."""
    path = Path("current.csv")
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    for i, row in enumerate(rows[1:]):
        for name, value in columns.items():
            column = rows[0].index(name)
            row[column] = row[column] or f"{value(i):.3g}"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def written() -> Record:
    """The files of the campaign."""
    return {name: Path(name).read_text("utf-8-sig") for name in ("headstart.toml", "current.csv")}


AMIDE = ("past/2023-amide-a.csv", "past/2024-amide-b.csv", "past/2025-amide-c.csv")
BLEND = ("past/2023-batch-a.csv", "past/2024-batch-b.csv", "past/2025-batch-c.csv")
RENAMED = ("--rename", "T [°C]=temperature_C")


@problem("folder: one objective")
def folder() -> Record:
    """Begin, suggest, fill in, suggest again, look at it."""
    with somewhere("past"):
        found: Record = {"init": told("init", *AMIDE, "--objective", "yield", "--maximize", *RENAMED)}
        found["suggest"] = told("suggest", "-n", "3", "--quiet")
        fill_in(yield_percent=lambda i: 60 + 11 * math.sin(i + 1))
        found["again"] = told("suggest", "-n", "2", "--quiet")
        found["status"] = told("status", "--quiet")
        found["check"] = told("check", "--quiet")
        return found | written()


@problem("folder: check of past files")
def folder_check() -> Record:
    """The past files before the first experiment."""
    with somewhere("past"):
        return {"check": told("check", *AMIDE, "--objective", "yield", "--maximize", *RENAMED, "--quiet")}


@problem("folder: rules")
def folder_rules() -> Record:
    """One objective, with rules about the settings; another model."""
    rules = ("--rule", "temperature_C + time_min <= 160", "--rule", "forbid: solvent = DMF and temperature_C > 90")
    with somewhere("past"):
        found: Record = {"init": told("init", *AMIDE, "--objective", "yield", "--maximize", *RENAMED, *rules)}
        found["suggest"] = told("suggest", "-n", "2", "--quiet")
        fill_in(yield_percent=lambda i: 50.0 + 9 * i)
        found["again"] = told("suggest", "-n", "1", "--model", "shgp", "--quiet")
        found["status"] = told("status", "--model", "star", "--quiet")
        return found | written()


@problem("folder: several results")
def folder_several() -> Record:
    """Two objectives, a limit, known errors, a mixture and a forbidden combination."""
    aims = ("--objective", "strength:maximize", "--objective", "cost:minimize", "--limit", "shrinkage<=0.5")
    rules = ("--rule", "resin + hardener + filler = 1", "--rule", "forbid: oven_C > 110 and catalyst = none")
    with somewhere("blend/past"):
        found: Record = {"init": told("init", *BLEND, *aims, "--error", "strength=strength_sd", *rules)}
        found["suggest"] = told("suggest", "-n", "2", "--quiet")
        fill_in(
            strength_MPa=lambda i: 60.0 + 4 * i,
            strength_sd=lambda i: 1.0 + i,
            cost=lambda i: 3.0 - 0.3 * i,
            shrinkage_percent=lambda i: 0.3 + 0.1 * i,
        )
        found["again"] = told("suggest", "-n", "1", "--quiet")
        found["status"] = told("status", "--quiet")
        return found | written()


@problem("folder: a limit and a list")
def folder_candidates() -> Record:
    """One objective and a limit, of a list of settings."""
    with somewhere("blend/past"):
        rows = [("resin", "hardener", "filler", "oven_C", "catalyst", "place")]
        for i in range(12):
            resin, hardener = 0.2 + 0.05 * (i % 7), 0.1 + 0.05 * (i % 5)
            parts = (f"{resin:.2f}", f"{hardener:.2f}", f"{1 - resin - hardener:.2f}")
            rows.append((*parts, str(60 + 10 * (i % 6)), ("zinc", "tin", "none")[i % 3], f"shelf {i}"))
        with Path("shelf.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        aims = ("--objective", "strength", "--maximize", "--limit", "shrinkage<=0.5", "--ignore", "cost")
        others = ("--ignore", "strength_sd", "--candidates", "shelf.csv")
        found: Record = {"init": told("init", *BLEND, *aims, *others)}
        found["suggest"] = told("suggest", "-n", "2", "--quiet")
        fill_in(strength_MPa=lambda i: 55.0 + 3 * i, shrinkage_percent=lambda i: 0.4 + 0.2 * i)
        found["status"] = told("status", "--quiet")
        return found | written()


@problem("folder: descriptors")
def folder_descriptors() -> Record:
    """Categories that are described by numbers, one of which was never run, and a model without explanation."""
    with somewhere("past"):
        described = "solvent,polarity,donor\nDMF,0.386,26.6\nMeCN,0.46,14.1\nNMP,0.355,27.3\n"
        Path("solvents.csv").write_text(f"{described}THF,0.207,20\ntoluene,0.099,0.1\n", "utf-8")
        aims = ("--objective", "yield", "--maximize", *RENAMED, "--descriptors", "solvent=solvents.csv")
        found: Record = {"init": told("init", *AMIDE, *aims, "--model", "wsgp")}
        found["suggest"] = told("suggest", "-n", "2", "--quiet")
        found["auto"] = told("suggest", "-n", "1", "--model", "auto", "--quiet")
        return found | written()


@problem("folder: no past")
def folder_alone() -> Record:
    """A campaign that begins with nothing, and mistakes that are told in one line."""
    toml = """past = []
model = "auto"

[objectives.loss]
direction = "minimize"

[parameters.a]
kind = "float"
low = 0
high = 1

[parameters.b]
kind = "int"
low = 1
high = 9
"""
    with somewhere("past"):
        found: Record = {"missing": told("suggest", "--quiet")}
        Path("headstart.toml").write_text(toml, "utf-8")
        Path("current.csv").write_text("a,b,loss\n0.2,3,0.5\n0.7,5,0.1\n0.5,8,0.3\n", "utf-8")
        found["suggest"] = told("suggest", "-n", "2", "--quiet")
        found["status"] = told("status", "--quiet")
        found["unknown column"] = told("check", *AMIDE, "--objective", "yeld")
        return found | written()


# ── writing and comparing ─────────────────────────────────────────────────────────────────────────────────────────


def solved(solve: Problem) -> tuple[Record, float]:
    """The record of one problem, or what it raised; and the seconds that it took."""
    os.environ.update(ALONE)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    np.random.seed(0)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = solve()
        except Exception as error:
            found = {"raised": f"{type(error).__name__}: {error}"}
    return found, time.process_time() - begun


def all_solved(names: Sequence[str], jobs: int, *, timed: bool) -> dict[str, Record]:
    """The records of these problems, in their order."""
    os.environ.update(ALONE)
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        found = joblib.Parallel(n_jobs=jobs)(joblib.delayed(solved)(PROBLEMS[name]) for name in names)
    if timed:
        for seconds, name in sorted(((took, name) for name, (_, took) in zip(names, found, strict=True)), reverse=True):
            print(f"{seconds:7.2f} s  {name}")
    print(f"{sum(took for _, took in found):.0f} s of CPU time")
    return {name: record for name, (record, _) in zip(names, found, strict=True)}


def apart(before: Value, now: Value) -> float:
    """How far two values are from each other, relative and absolute; infinite where they are of another kind."""
    if isinstance(before, str) or isinstance(now, str):
        return 0.0 if before == now else math.inf
    one, two = np.atleast_1d(np.asarray(before, float)), np.atleast_1d(np.asarray(now, float))
    if isinstance(before, list) is not isinstance(now, list) or one.shape != two.shape:
        return math.inf
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    if not (np.isfinite(one) & np.isfinite(two))[~same].all():
        return math.inf
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(one - two) / (1 + np.abs(one)))
    return float(difference.max(initial=0.0))


def differences(before: Record, now: Record, tolerance: float) -> list[str]:
    """Sentences on what differs: keys, the numbers that are farthest from each other, and texts."""
    lines = [f"{key}: only {'before' if key in before else 'now'}" for key in sorted(before.keys() ^ now.keys())]
    away = {key: apart(before[key], now[key]) for key in before if key in now}
    numbers = {key: how for key, how in away.items() if how > tolerance and not isinstance(before[key], str)}
    if numbers:
        worst = max(numbers, key=lambda key: numbers[key])
        lines.append(
            f"{len(numbers)} of {len(away)} keys have other numbers; farthest {worst}: {numbers[worst]:.3g}, "
            f"{before[worst]} is now {now[worst]}"
        )
    for key, value in before.items():
        if isinstance(value, str) and key in now and value != now[key]:
            told = difflib.unified_diff(value.splitlines(), str(now[key]).splitlines(), lineterm="", n=0)
            changed = [line for line in told if not line.startswith(("---", "+++", "@@"))]
            lines += [f"{key}: the text differs", *(f"    {line}" for line in changed[:LINES_SHOWN])]
    return lines


def compare(path: Path, names: Sequence[str], jobs: int, tolerance: float, *, timed: bool) -> int:
    """Say what differs from the record, or is not in it; 1 if anything is."""
    before: dict[str, Record] = json.loads(path.read_text("utf-8"))
    now = all_solved(names, jobs, timed=timed)
    equal = 0
    for name in names:
        lines = differences(before[name], now[name], tolerance) if name in before else ["not in the record"]
        equal += not lines
        for line in [name, *lines] if lines else ():
            print(line if line == name else f"  {line}")
    print(f"{len(names)} problems, {equal} equal")
    return int(equal < len(names))


def write(path: Path, names: Sequence[str], jobs: int, *, timed: bool) -> int:
    """Write the record, and say which problems raised."""
    found = all_solved(names, jobs, timed=timed)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    for name, record in found.items():
        if "raised" in record:
            print(f"{name} raised {record['raised']}")
    values = sum(len(value) if isinstance(value, list) else 1 for record in found.values() for value in record.values())
    print(f"{len(found)} problems, {values} numbers and texts: {path}")
    return 0


def main() -> int:
    """Read the arguments, and write or compare."""
    parser = argparse.ArgumentParser(description="Note what headstart says on small problems, or compare with notes.")
    parser.add_argument("action", choices=["write", "compare"])
    parser.add_argument("file", type=Path, help="the record, a JSON file")
    parser.add_argument("--only", default="", metavar="TEXT", help="problems whose name contains it")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="relative and absolute, of numbers")
    parser.add_argument("--timed", action="store_true", help="show the CPU time of every problem")
    arguments = parser.parse_args()
    names = [name for name in PROBLEMS if arguments.only.lower() in name.lower()]
    if not names:
        parser.error(f"no problem has {arguments.only!r} in its name; there are: {', '.join(PROBLEMS)}")
    print(f"headstart of {Path(hs.__file__).parent}")
    if arguments.action == "write":
        return write(arguments.file, names, arguments.jobs, timed=arguments.timed)
    return compare(arguments.file, names, arguments.jobs, arguments.tolerance, timed=arguments.timed)


if __name__ == "__main__":
    sys.exit(main())
