"""Campaigns with shifts between batches, their runs, and what is said of them."""

from __future__ import annotations

import csv
import gzip
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from benchmarks.batches.problems import STEPS, Drift, batch_numbers, campaign, centred, source_data
from benchmarks.batches.report import (
    BatchRuns,
    batch_series,
    batch_sheets,
    best,
    controls,
    final,
    held,
    ratio,
    recovered,
)
from benchmarks.batches.runs import METHODS, BatchUnit, batch_problems, batch_units, shift_size
from benchmarks.cli import app
from benchmarks.problems.problem import stream
from benchmarks.read.sheet import read_sheets
from benchmarks.store import Run, Store, provenance
from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.models.batch_shifts import shifts_of_posterior
from headstart.models.family import GPBO


def test_a_batch_has_five_to_ten_results() -> None:
    """The last one may be cut off; every number of results in between is there."""
    sizes = set()
    for seed in range(30):
        batch = batch_numbers(100, stream(seed))
        assert batch.shape == (100,)
        assert batch.diff().unique().tolist() == [0.0, 1.0]
        sizes |= set(batch.unique(return_counts=True)[1][:-1].tolist())
    assert sizes == set(range(5, 11))


@pytest.mark.parametrize("name", ["coupling", "roasting", "turning"])
def test_shifts_are_one_per_batch_and_grow_with_their_size_alone(name: str) -> None:
    """y(size) = y(0) + size · z, z the same for all rows of a batch and of the size of the noise."""
    of = campaign(name, 3)
    z = []
    for source in of.sources:
        y = [source_data(source, size, of.domain.categories, "ignored").y for size in (0.0, 1.0, 5.0)]
        torch.testing.assert_close(y[2] - y[0], 5 * (y[1] - y[0]))
        own = [(y[1] - y[0])[source.batch == batch] for batch in source.batch.unique()]
        assert all(float(shift.max() - shift.min()) < 1e-9 for shift in own)
        z += [float(shift[0]) for shift in own]
    assert len({round(shift, 6) for shift in z}) == len(z)
    x = of.domain.uniform(1, stream(0))[0]
    step = STEPS - 1
    gone = of.measured(x, step, 0.0)
    assert of.measured(x, step, 2.0) - gone == pytest.approx(2 * (of.measured(x, step, 1.0) - gone))
    assert gone == pytest.approx(float(of.f(x.unsqueeze(0))[0]) + float(of.noise[step]))
    assert [of.changes(step) for step in range(1, STEPS)] == (of.batch.diff() > 0).tolist()
    assert not of.changes(0)


def test_noise_and_shifts_of_size_one_are_equally_large() -> None:
    """In standard deviations of the noise, over many campaigns."""
    of = [campaign("roasting", seed) for seed in range(60)]
    shifts = [float(c.z[i]) / c.noise_std for c in of for i in range(STEPS) if i == 0 or c.changes(i)]
    assert np.std(shifts) == pytest.approx(1, abs=0.15)
    noise = torch.cat([c.noise / c.noise_std for c in of])
    assert float(noise.std()) == pytest.approx(1, abs=0.1)


def test_every_batch_of_the_past_explores_another_corner() -> None:
    """The number of a batch is nearly a linear function of its settings, as it would not be in a random order."""

    def explained(X: torch.Tensor, batch: torch.Tensor) -> float:
        A = torch.cat([X, torch.ones(len(X), 1, dtype=X.dtype)], dim=-1)
        left = batch - A @ (torch.linalg.pinv(A) @ batch)
        return 1 - float(left.var(correction=0) / batch.var(correction=0))

    mixed = torch.randperm(40, generator=stream("mixed"))
    for seed in range(4):
        for source in campaign("roasting", seed).sources:
            assert explained(source.X, source.batch) > 0.8
            assert explained(source.X, source.batch[mixed]) < 0.6


def test_campaigns_belong_to_the_name_and_the_seed() -> None:
    """Drawn again they are the same; other seeds and other functions are others."""
    one, other = campaign("roasting", 5), campaign("roasting", 6)
    campaign.cache_clear()
    again = campaign("roasting", 5)
    assert one is not again
    assert torch.equal(one.sources[1].y, again.sources[1].y)
    assert torch.equal(one.z, again.z)
    assert not torch.equal(one.noise, other.noise)
    assert one.minimum == again.minimum != other.minimum


def test_a_table_is_a_campaign_with_noise_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its rows can be chosen, its values are the truth, the regret counts in shares of its range."""
    random = np.random.default_rng(0)
    rows = pd.DataFrame(random.random((180, 3)), columns=["power", "time", "pressure"])
    rows = rows.assign(
        gas=random.choice(["air", "argon"], 180), task=np.repeat(["a", "b", "c"], 60), gd_ratio=random.random(180)
    )
    rows.to_csv(tmp_path / "laser_graphene.csv.gz", index=False)
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    assert batch_problems() == ("coupling", "turning", "roasting", "laser_graphene")
    campaign.cache_clear()
    of = campaign("laser_graphene", 0)
    campaign.cache_clear()
    listing = of.domain.listing
    assert listing is not None
    values = of.f(listing)
    assert len(values) == 60
    assert (of.minimum, of.scale) == (float(values.min()), float(values.max() - values.min()))
    assert of.noise_std == pytest.approx(0.08 * float(values.std()))
    assert [len(source.y) for source in of.sources] == [40, 40]


def test_centred_results_do_not_depend_on_shifts() -> None:
    """But for one number that all of them have in common."""
    y, batch = torch.arange(7.0).double() ** 2, torch.tensor([0, 0, 0, 1, 1, 2, 2]).double()
    shifted = y + torch.tensor([3.0, -7.0, 40.0]).double()[batch.long()]
    apart = centred(shifted, batch) - centred(y, batch)
    torch.testing.assert_close(apart, apart[:1].expand(7))
    for number in range(3):
        torch.testing.assert_close(centred(y, batch)[batch == number].mean(), y.mean())
    source = campaign("roasting", 0).sources[0]
    same = [source_data(source, size, (), "centred").y for size in (0.0, 5.0)]
    torch.testing.assert_close(same[0] - same[0].mean(), same[1] - same[1].mean())


def test_batches_are_given_to_the_model_where_they_are_named_alone() -> None:
    """Named or not, the results are the same."""
    source = campaign("roasting", 0).sources[0]
    named, ignored, mean_free = (source_data(source, 2.0, (), t) for t in ("named", "ignored", "centred"))
    assert named.batch is not None
    assert torch.equal(named.batch, source.batch)
    assert ignored.batch is mean_free.batch is None
    assert torch.equal(named.y, ignored.y)


def _units(**given: object) -> list[BatchUnit]:
    wanted = {"problems": ["roasting"], "methods": METHODS, "drifts": list(Drift), "sizes": (0.0, 2.0), "seeds": 2}
    return list(batch_units(**{**wanted, **given}))  # type: ignore[arg-type]


def test_every_cell_is_run_once_seed_by_seed() -> None:
    """GPBO does not see the past, so only its target can drift; without shifts all ways to ignore them are one."""
    units = _units()
    assert len(set(units)) == len(units)
    assert [u.seed for u in units] == sorted(u.seed for u in units)
    cells = {method: [(u.drift, u.size) for u in units if u.method == method and u.seed == 1] for method in METHODS}
    both = [(str(drift), size) for drift in Drift for size in (0.0, 2.0)]
    assert cells["auto-named"] == cells["auto-centred"] == both
    assert cells["auto-ignored"] == [("", 0.0), *(cell for cell in both if cell[1])]
    assert cells["gpbo-named"] == [("target", 0.0), ("target", 2.0)]
    assert cells["gpbo-ignored"] == [("", 0.0), ("target", 2.0)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problems": ["rosting"]}, "no problem 'rosting'"),
        ({"methods": ["auto"]}, "no method 'auto'"),
        ({"methods": ["botorch-named"]}, "no method 'botorch-named'"),
        ({"drifts": ["future"]}, "no drift 'future'"),
        ({"sizes": [-1.0]}, "from 0 on, but it is -1"),
        ({"sizes": [math.nan]}, "from 0 on, but it is nan"),
    ],
)
def test_what_there_is_not_is_refused(given: dict[str, object], message: str) -> None:
    """With what there is."""
    with pytest.raises(InputError, match=message):
        _units(**given)


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str, float], Run]:
    """GPBO with shifts and without, batches named, ignored and centred: the nine results that need the first change."""
    cells = [(m, d, s) for m, d in (("gpbo-named", "target"), ("gpbo-centred", "target")) for s in (0.0, 5.0)]
    cells += [("gpbo-ignored", "", 0.0), ("gpbo-ignored", "target", 5.0)]
    found = {}
    for method, drift, size in cells:
        unit = BatchUnit("roasting", method, drift, size, _changing_seed(), 9)
        (run,) = unit.run("cpu")
        assert unit.left({run.key}) is None
        assert unit.left(set()) is unit
        found[method, drift, size] = run
    return found


def _changing_seed() -> int:
    """A campaign whose second batch begins with the sixth result."""
    return next(seed for seed in range(100) if campaign("roasting", seed, 9).changes(5))


def test_a_run_has_every_measure_after_every_result(runs: dict[tuple[str, str, float], Run]) -> None:
    """What is recommended was measured, and is no better than the best of what was."""
    for run in runs.values():
        for trace in ("recommended", "held", "width", "first", "control", "tau"):
            assert len(run.traces[trace]) == 9, trace
        assert len(run.fit_seconds) == len(run.acquisition_seconds) == len(run.y) == len(run.regret) == 9
        regrets = np.array(run.value) - campaign("roasting", run.seed, 9).minimum
        for n in range(9):
            assert min(abs(regrets[: n + 1] - run.traces["recommended"][n])) < 1e-6
            assert run.regret[n] == pytest.approx(min(regrets[: n + 1]), abs=1e-6)
        assert run.traces["held"][:2] == [None, None]  # GPBO knows nothing before its second result
        assert set(run.traces["held"][2:]) <= {True, False}
        assert run.traces["first"] == [False] * 5 + [True] + [False] * 3


def test_results_have_the_shifts_that_were_put_in(runs: dict[tuple[str, str, float], Run]) -> None:
    """And noise that belongs to their number, whatever the method."""
    for (_, _, size), run in runs.items():
        of = campaign("roasting", run.seed, 9)
        shown = np.array(run.y) - np.array(run.value)
        np.testing.assert_allclose(shown, (of.noise + size * of.z).numpy(), atol=1e-6)


def test_batches_matter_from_the_second_one_on(runs: dict[tuple[str, str, float], Run]) -> None:
    """In one batch named and ignored are the same run; τ is fitted where they are named."""
    named, ignored = runs["gpbo-named", "target", 5.0], runs["gpbo-ignored", "target", 5.0]
    assert named.value[:5] == ignored.value[:5]
    assert named.value != ignored.value or named.traces["width"] != ignored.traces["width"]
    assert ignored.traces["tau"] == [None] * 9
    size, low, high = named.traces["tau"][-1]
    assert 0 <= low < size < high


def test_centred_runs_are_the_same_whatever_the_shifts(runs: dict[tuple[str, str, float], Run]) -> None:
    """GPBO takes no notice of a level that all results have in common: the points are the same to rounding."""
    none, large = (runs["gpbo-centred", "target", size] for size in (0.0, 5.0))
    np.testing.assert_allclose(none.value, large.value, rtol=1e-3)


def test_the_fitted_size_of_shifts_is_in_the_units_of_the_results() -> None:
    """Shifts of 30 are 3, where the standard deviation of the noise is 10; of results without batches there is none."""
    random = stream("sizes")
    X = torch.rand(60, 2, generator=random, dtype=torch.float64)
    batch = torch.arange(60).double() // 5
    shifts = 30 * torch.randn(12, generator=random, dtype=torch.float64)[batch.long()]
    y = 1000 + shifts + torch.randn(60, generator=random, dtype=torch.float64)
    prior = GPBO.anywhere().learn([], seed=0)
    found = shift_size(shifts_of_posterior(prior.condition(Dataset(X, y, batch=batch))), 10.0)
    assert found is not None
    size, low, high = found
    assert low <= size <= high
    assert 1.5 < size < 6
    assert shift_size(shifts_of_posterior(prior.condition(Dataset(X, y))), 10.0) is None


# ── the report ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _run(problem: str, method: str, drift: str, size: float, seed: int, regret: float, **traces: list[Any]) -> Run:
    shown: dict[str, list[Any]] = {
        "recommended": [9.0, regret],
        "tau": [None, None],
        "held": [None, True],
        "first": [False, True],
    }
    shown["control"] = [False, False]
    return Run(
        problem=problem,
        method=method,
        seed=seed,
        settings={"drift": drift, "size": size, "steps": 2},
        regret=[9.0, regret / 2],
        fit_seconds=[1.0, 1.0],
        acquisition_seconds=[0.0, 2.0],
        traces={"width": [None, 2.0], "sources": [], **shown, **traces},
    )


def test_ratios_are_of_mean_regrets_and_their_geometric_mean() -> None:
    """Over the seeds that both have, problem by problem; without shifts is what shifts that are known leave."""
    every = [
        *(_run("roasting", "auto-named", "both", 2.0, seed, r) for seed, r in enumerate((1.0, 3.0, 100.0))),
        *(_run("roasting", "auto-ignored", "both", 2.0, seed, r) for seed, r in enumerate((2.0, 6.0))),
        *(_run("coupling", "auto-named", "both", 2.0, seed, 8.0) for seed in range(2)),
        *(_run("coupling", "auto-ignored", "both", 2.0, seed, 1.0) for seed in range(2)),
        *(_run("roasting", "auto-ignored", "", 0.0, seed, 1.0) for seed in range(2)),
        replace_steps(_run("roasting", "auto-named", "both", 2.0, 0, 77.0)),
    ]
    found = BatchRuns.of(every, steps=2)
    pairs = found.pairs("auto", "both", 2.0, "named", "ignored", found.problems)
    assert [(problem, len(own)) for problem, own in pairs] == [("roasting", 2), ("coupling", 2)]
    value = ratio(pairs)
    assert value is not None
    assert value.value == pytest.approx(math.sqrt(0.5 * 8))
    assert value.low <= value.value <= value.high
    assert ratio(pairs, best) == value
    known = ratio(found.pairs("auto", "both", 2.0, "known", "ignored", found.problems))
    assert known is not None
    assert known.value == pytest.approx(1 / 4)
    assert ratio([]) is None
    assert list(found.shown()) == [("auto", "both", 2.0)]
    regret, *_, roasting, coupling = batch_sheets(found)
    assert regret.rows[0][:4] == ("auto", "both", "2", 4)
    assert regret.rows[0][-1] == pytest.approx(1.0)
    assert (roasting.name, coupling.name) == ("roasting", "coupling")
    assert roasting.rows[0][3:5] == (2, 4.0)
    last = {(problem, method): values for problem, method, *_, values in batch_series(found)}
    assert last["roasting", "auto-named"] == [1.0, 3.0, 100.0]
    assert final(every[0]) == 1.0


def replace_steps(run: Run) -> Run:
    """A run of another length, which is of another experiment."""
    run.settings["steps"] = 3
    return run


def test_a_ratio_of_pairs_is_more_certain_than_one_of_runs() -> None:
    """Seeds are resampled together, so what is hard for both does not widen the interval."""
    runs = [
        (_run("roasting", "a", "both", 2.0, s, 2.0 * 10**s), _run("roasting", "b", "both", 2.0, s, 10.0**s))
        for s in range(5)
    ]
    found = ratio([("roasting", runs)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((2.0, 2.0))


def test_ranges_are_counted_for_the_first_of_a_batch_and_the_others() -> None:
    """What had no range does not count."""
    run = _run("roasting", "a", "both", 2.0, 0, 1.0)
    run.traces["held"], run.traces["first"] = [None, True, False, True, False], [False, False, True, False, True]
    assert held([run]).value == pytest.approx(50)
    assert held([run], first=True).value == pytest.approx(0)
    assert held([run], first=False).value == pytest.approx(100)


def test_a_size_is_recovered_where_its_range_holds_it() -> None:
    """Of all sizes that were told."""
    assert recovered(([2.0, 1.0, 3.0], [9.0, 8.0, 10.0], [2.0, 2.0, 5.0]), 2.0).value == pytest.approx(200 / 3)


def test_controls_are_counted_among_the_batches_that_begin() -> None:
    """A point that is repeated later in a batch is none."""
    run = _run("roasting", "a", "both", 2.0, 0, 1.0)
    run.traces["control"], run.traces["first"] = [False, True, True, False], [False, True, False, True]
    assert controls([run]).value == pytest.approx(50)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_quick_bench_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says which tables are not there, writes its tables and the regrets behind them, and a rerun runs nothing."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    arguments = ["batches", "--quick", "--methods", "gpbo-named,gpbo-ignored", "--store", str(tmp_path / "runs")]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "tables")])
    assert result.exit_code == 0, result.output
    assert "Without the tables direct_arylation, oer_catalysts, laser_graphene" in result.stderr
    text = (tmp_path / "tables" / "batches.md").read_text()
    commit, python, runs = (read_sheets(tmp_path / "tables" / "batches.md")[-1].rows[0][i] for i in (0, 3, -2))
    assert (commit, python, runs) == (provenance()["commit"], provenance()["python"], "4")
    for heading in (
        "Regret over that",
        "Results within their 95 % ranges",
        "The size of shifts that is told",
        "### roasting",
    ):
        assert heading in text
    rows = list(csv.reader(gzip.decompress((tmp_path / "tables" / "runs.csv.gz").read_bytes()).decode().splitlines()))
    assert {row[1] for row in rows[1:]} == {"gpbo-named", "gpbo-ignored"}
    before = Store(tmp_path / "runs").read().runs
    assert len(before) == 4
    again = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "tables")])
    assert again.exit_code == 0, again.output
    assert Store(tmp_path / "runs").read().runs == before


def test_bad_options_of_the_bench_give_one_line() -> None:
    """And exit code 2."""
    for wrong in (["--sizes", "two"], ["--drifts", "future"], ["--seeds", "0"]):
        result = CliRunner().invoke(app, ["batches", *wrong])
        assert result.exit_code == 2, wrong
        assert wrong[1] in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


def test_the_bench_needs_no_optuna() -> None:
    """A run, and the table of it, where Optuna cannot be imported."""
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from benchmarks.batches.report import BatchRuns, batch_sheets\n"
        "from benchmarks.batches.runs import BatchUnit\n"
        "runs = BatchUnit('roasting', 'gpbo-named', 'target', 1.0, 0, 2).run('cpu')\n"
        "print(len(batch_sheets(BatchRuns.of(runs, steps=2))))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "4", done.stderr
