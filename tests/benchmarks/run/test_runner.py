"""Runs in lockstep: each seed gets what it would get alone, and every method meets the same tasks."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from benchmarks.methods.method import Settings
from benchmarks.problems.problem import Problem
from benchmarks.problems.table import TableProblem, read_table
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.run.experiment import ProblemSpec
from benchmarks.run.runner import run_batch
from benchmarks.store import Run
from headstart import SHGP, Dataset

FAST = Settings(restarts=2, max_iterations=30)
SEEDS = (0, 1, 2)


def _table_problem(rows: int = 12, short: int = 0) -> TableProblem:
    draw = np.random.default_rng(0)
    n = 4 * rows
    frame = pd.DataFrame(
        {"task": np.repeat(list("abcd"), rows), "x": draw.uniform(size=n), "z": draw.choice(["p", "q"], n)}
    )
    frame["error"] = (frame.x - 0.4) ** 2 + 0.1 * (frame.z == "p") + 0.05 * draw.uniform(size=n)
    frame = frame.drop(frame[frame.task == "d"].index[: short or 0])
    return TableProblem(read_table(frame, name="table", objective="error", inputs=("x", "z")), n_sources=2, rows=6)


def _both(problem: Problem, method: str, steps: int, settings: Settings = FAST) -> tuple[list[Run], list[Run]]:
    together = run_batch(problem, method, SEEDS, steps=steps, settings=settings)
    alone = [run_batch(problem, method, [seed], steps=steps, settings=settings)[0] for seed in SEEDS]
    return together, alone


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gpbo", "mhgp", "shgp", "bhgp", "rgpe", "hgp", "wsgp", "random"])
def test_on_a_table_lockstep_and_one_by_one_choose_the_same_rows(method: str) -> None:
    """Exactly: the choice is among a dozen rows, and rounding decides between none of them."""
    together, alone = _both(_table_problem(), method, steps=5)
    for a, b in zip(together, alone, strict=True):
        assert (a.label, a.seed, a.x, a.y, a.value, a.regret) == (b.label, b.seed, b.x, b.y, b.value, b.regret)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gpbo", "mhgp", "shgp", "bhgp", "rgpe", "hgp", "wsgp"])
def test_on_a_function_lockstep_and_one_by_one_reach_the_same_regrets(method: str) -> None:
    """To 1e-4, on values that range over about 20.

    A factorisation rounds differently at another place in memory, by some 1e-16, unless it was asked not to before the
    first computation of the process (``rounding``; the commands do, and there nothing differs at all). The optimisers
    stop at a gradient of 1e-5, so that hyperparameters and points agree to about 1e-6, and what differs in one step
    enters the next: 1e-7 to 1e-5 of the regret after four.
    """
    together, alone = _both(
        SyntheticProblem("forrester", source_points=8), method, steps=4, settings=Settings(restarts=3)
    )
    for a, b in zip(together, alone, strict=True):
        assert a.label == b.label
        assert a.regret == pytest.approx(b.regret, abs=1e-4)


@pytest.mark.parametrize(
    "problem", [SyntheticProblem("forrester", source_points=8), _table_problem()], ids=["f", "table"]
)
def test_every_method_meets_the_same_tasks(problem: Problem) -> None:
    """The same targets and the same noise."""
    random, gpbo, shgp = (run_batch(problem, m, SEEDS, steps=2, settings=FAST) for m in ("random", "gpbo", "shgp"))
    for a, b, c in zip(random, gpbo, shgp, strict=True):
        assert a.label == b.label == c.label
        noise = [np.subtract(run.y, run.value) for run in (a, b, c)]
        assert all(own == pytest.approx(noise[0], abs=1e-8) for own in noise)
    assert any(a.x[0] != c.x[0] for a, c in zip(random, shgp, strict=True))


def test_a_method_without_sources_does_not_notice_how_much_source_data_there_is() -> None:
    """GPBO makes the same run whatever the number of source points: tasks, noise and first point are the family's."""
    few, many = (
        run_batch(SyntheticProblem("forrester", source_points=n), "gpbo", [0], steps=3, settings=FAST)[0]
        for n in (5, 9)
    )
    assert few.problem != many.problem
    assert (few.x, few.y, few.regret) == (many.x, many.y, many.regret)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["random", "gpbo", "shgp", "rgpe"])
def test_a_table_never_gives_a_row_twice(method: str) -> None:
    """Over all of its rows: each exactly once, and the regret ends at 0, whatever the sizes of the targets are."""
    problem = _table_problem(rows=9, short=2)
    for run in run_batch(problem, method, range(6), steps=7, settings=FAST):
        assert len({tuple(x) for x in run.x}) == 7
        assert run.y == run.value
        if run.label == "d":
            assert run.regret[-1] == 0.0
        assert max(run.regret) <= 1.0


@pytest.mark.parametrize("method", ["random", "gpbo"])
def test_with_repeats_a_row_can_be_evaluated_again(method: str) -> None:
    """More evaluations than the target has rows: some come twice, with the same value."""
    table = _table_problem(rows=6).table
    problem = TableProblem(table, n_sources=2, rows=6, repeats=True)
    (run,) = run_batch(problem, method, [0], steps=6, settings=FAST)
    values: dict[tuple[float, ...], float] = {}
    assert all(values.setdefault(tuple(x), y) == y for x, y in zip(run.x, run.y, strict=True))
    assert len(values) < 6
    assert run.provenance["data"] == table.fingerprint


def test_a_record_says_all_there_is_to_say() -> None:
    """One entry per step everywhere; the regret is that of the best noiseless value so far, and never rises."""
    problem = SyntheticProblem("forrester", source_points=8)
    (run,) = run_batch(problem, "shgp", [3], steps=4, settings=FAST)
    instance = problem.draw([3], 4)
    assert {len(v) for v in (run.x, run.y, run.value, run.regret, run.fit_seconds, run.acquisition_seconds)} == {4}
    best = np.minimum.accumulate(run.value) - float(instance.minimum)
    assert run.regret == pytest.approx(best, abs=1e-8)
    assert instance.function is not None
    X = torch.tensor(run.x, dtype=torch.float64).unsqueeze(0)
    assert instance.function(X).flatten().tolist() == pytest.approx(run.value, abs=1e-6)
    assert run.settings["steps"] == 4
    assert run.settings["restarts"] == 2
    assert {"headstart", "torch", "botorch", "commit", "hardware"} <= set(run.provenance)


@pytest.mark.parametrize(
    "problem", [SyntheticProblem("forrester", source_points=8), _table_problem()], ids=["f", "table"]
)
def test_a_record_says_what_the_model_expected(problem: Problem) -> None:
    """P(result ≤ y) and the log density of y/scale, by the model that knew the results before and no other."""
    (run,) = run_batch(problem, "shgp", [3], steps=4, settings=FAST)
    instance = problem.draw([3], 4)
    within = [float(source.y.var(correction=0)) * source.n for source in instance.sources]
    spread = math.sqrt(sum(within) / sum(source.n for source in instance.sources))
    scale = float(instance.scale) if instance.function is None else spread
    prior = FAST.applied_to(SHGP).learn(instance.sources, seed=0)
    X, y = (torch.tensor([values], dtype=torch.float64) for values in (run.x, run.y))
    assert scale != pytest.approx(1.0, rel=0.01)
    for n in range(4):
        model = prior.condition(Dataset(X[:, :n], y[:, :n]), seed=n)
        at = X[:, n : n + 1], y[:, n : n + 1]
        assert run.pit[n] == pytest.approx(model.cdf(*at).item(), abs=1e-4)
        assert run.log_density[n] == pytest.approx(model.log_density(*at).item() + math.log(scale), abs=1e-3)
        if instance.function is None:  # values of one sign, which keep it
            continue
        said = model.posterior(at[0], observation_noise=True)
        law = stats.norm(said.mean.item() / scale, said.variance.sqrt().item() / scale)
        assert run.pit[n] == pytest.approx(law.cdf(run.y[n] / scale), abs=1e-4)
        assert run.log_density[n] == pytest.approx(law.logpdf(run.y[n] / scale), abs=1e-3)


def test_a_point_chosen_without_a_model_was_not_predicted() -> None:
    """GPBO's first two, whose size is not known, every one of a random search, and AUTO's where no source is let in."""
    problem = SyntheticProblem("forrester", source_points=8)
    gpbo, random = (run_batch(problem, m, [0], steps=3, settings=FAST)[0] for m in ("gpbo", "random"))
    assert [value is None for value in gpbo.pit] == [True, True, False]
    assert [value is None for value in gpbo.log_density] == [True, True, False]
    assert random.pit == random.log_density == [None] * 3
    noise = ProblemSpec(family="forrester", points=8, spoilt="noise").build()
    default = Settings(paper=False, restarts=2, max_iterations=30)
    blind = run_batch(noise, "auto", SEEDS, steps=3, settings=default)
    source = noise.draw(SEEDS, 3).sources[0]  # whose best point is where a design begins
    best = [source.X[i, source.y[i].argmin()].tolist() for i in range(len(SEEDS))]
    shut = [run.x[0] == pytest.approx(x, abs=1e-9) for run, x in zip(blind, best, strict=True)]
    assert any(shut)
    assert [run.pit[0] is None for run in blind] == shut
    assert [run.pit[1] is None for run in blind] == shut
    assert all(run.pit[2] is not None for run in blind)


def test_reversed_sources_are_the_same_data_the_other_way_round() -> None:
    """And the target is the same."""
    one, other = (SyntheticProblem("alpine", n_sources=5, source_points=4, reverse=r) for r in (False, True))
    assert (one.name, other.name) == (
        "alpine[sources=5,points=4,noise=0.1]",
        "alpine[sources=5,points=4,noise=0.1,order=reversed]",
    )
    a, b = (problem.draw([0, 1], 2) for problem in (one, other))
    for source, mirrored in zip(a.sources, reversed(b.sources), strict=True):
        assert torch.equal(source.X, mirrored.X)
        assert torch.equal(source.y, mirrored.y)
    assert (a.labels, a.noise.tolist()) == (b.labels, b.noise.tolist())


def test_a_run_needs_neither_optuna_nor_scikit_learn() -> None:
    """In a process that cannot import them an experiment is run, stored and read."""
    program = (
        "import sys, tempfile\n"
        "from pathlib import Path\n"
        "sys.modules['optuna'] = sys.modules['sklearn'] = None\n"
        "from benchmarks.read.analysis import load, table\n"
        "from benchmarks.run.experiment import BenchExperiment, ProblemSpec, execute\n"
        "from benchmarks.store import Store\n"
        "problems = (ProblemSpec(family='forrester', points=5), ProblemSpec(table='svm', sources=1, rows=5))\n"
        "folder = Path(tempfile.mkdtemp())\n"
        "experiment = BenchExperiment('e', problems, ('random', 'auto'), runs=1, steps=1)\n"
        "assert execute([experiment], Store(folder)) == []\n"
        "assert len(table(load(folder))) == 2\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
