"""What is made of runs: hand-made regrets whose means, intervals, ranks and speed-ups are known."""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.benchmarks.read.runs import run_of

from benchmarks.read.analysis import Results, collect, load, marks, mean_and_error, require_marks, series, table
from benchmarks.read.comparison import differences, evaluations_to, ranks, speed_ups
from benchmarks.read.report import compare, overall_sheet, seconds_sheet, speed_sheets
from benchmarks.read.sheet import Sheet, with_notes, write_series, write_sheets
from benchmarks.read.styles import ORDER, is_table, setting, style, title
from benchmarks.store import Run, Store
from benchmarks.timing.complexity import STATED, StepTiming, slopes
from headstart import InputError

FUNCTION, TABLE = "hartmann6[sources=1,points=120,noise=0.1]", "past[error,sources=2,rows=10]"


def _run(method: str, seed: int, regret: Sequence[float], problem: str = FUNCTION, **settings: Any) -> Run:
    return run_of(problem, method, seed, regret, **settings)


def _results(traces: Mapping[str, Sequence[Sequence[float]]], problem: str = FUNCTION) -> Results:
    return collect([_run(m, seed, trace, problem) for m, rows in traces.items() for seed, trace in enumerate(rows)])


# ── collecting ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_become_cells_in_the_order_of_their_seeds() -> None:
    """Whatever the order in the store; methods come in the order of every legend, problems by their numbers."""
    other = "hartmann6[sources=1,points=30,noise=0.1]"
    results = collect(
        [_run("shgp", 1, [2.0]), _run("shgp", 0, [1.0]), _run("gpbo", 0, [3.0]), _run("xyz", 0, [1], other)]
    )
    assert results.problems == (other, FUNCTION)
    assert results.methods == ("gpbo", "shgp", "xyz")
    cell = results.on(FUNCTION)["shgp"]
    assert cell.seeds == (0, 1)
    assert cell.regret.tolist() == [[1.0], [2.0]]
    assert cell.step_seconds.tolist() == [1.5, 1.5]
    assert cell.of([1, 0]).tolist() == [[2.0], [1.0]]
    assert list(results.on(other)) == ["xyz"]
    assert results.among([other]).problems == (other,)


def test_of_several_settings_the_one_with_most_evaluations_counts() -> None:
    """The others are left out, and it is said in what they differ."""
    runs = [_run("shgp", s, [1.0, 0.5]) for s in range(3)] + [_run("shgp", s, [9.0]) for s in range(4)]
    results = collect(runs)
    assert results.on(FUNCTION)["shgp"].regret.shape == (3, 2)
    assert results.remarks == (f"{FUNCTION}, shgp: 4 runs with other settings (steps = 1); left out.",)


def test_a_run_that_is_not_whole_is_left_out_and_said_so() -> None:
    """Fewer regrets than steps, or one that is not a number."""
    results = collect([_run("shgp", 0, [1.0]), _run("shgp", 1, [1.0], steps=3), _run("shgp", 2, [math.nan])])
    assert results.on(FUNCTION)["shgp"].seeds == (0,)
    assert len(results.remarks) == 2
    assert "seed 1: 1 regrets in 3 steps" in results.remarks[0]


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    """So is a store in which no line is a run; a damaged one is read, with remarks."""
    with pytest.raises(InputError, match=r"there are no results, for there is no runs\.jsonl"):
        load(tmp_path)
    store = Store(tmp_path)
    store.path.write_text("{broken\n")
    with pytest.raises(InputError, match=r"no run that can be read\. .*line 1: cut off"):
        load(tmp_path)
    store.append([_run("shgp", 0, [1.0])])
    assert load(tmp_path).remarks == (f"{store.path}, line 1: cut off in the middle, left out.",)


def test_a_method_without_runs_cannot_be_asked_for() -> None:
    """The message lists those that can."""
    results = _results({"gpbo": [[1.0]], "shgp": [[1.0]]})
    assert results.only(["shgp"]).methods == ("shgp",)
    with pytest.raises(InputError, match=r"no runs of 'hgp'\. There are runs of gpbo, shgp"):
        results.only(["hgp"])


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_marks_end_with_the_last_evaluation() -> None:
    """1, 5, 10, 20, 30 as far as they were reached."""
    assert marks(30) == (1, 5, 10, 20, 30)
    assert marks(15) == (1, 5, 10, 15)
    assert marks(1) == (1,)
    assert require_marks([5, 1, 5]) == [1, 5]
    assert require_marks(None) is None
    with pytest.raises(InputError, match="counted from 1, but 0"):
        require_marks([0])


def test_mean_and_standard_error() -> None:
    """Of 1, 2, 3 they are 2 and 1/√3; one run has no standard error."""
    mean, error = mean_and_error(np.array([[1.0], [2.0], [3.0]]))
    assert mean.tolist() == [2.0]
    assert error[0] == pytest.approx(1 / math.sqrt(3), abs=1e-15)
    assert np.isnan(mean_and_error(np.array([[1.0]]))[1]).all()


def test_the_table_says_what_its_numbers_are() -> None:
    """Simple regret for functions, ADTM for tables, and the numbers of runs."""
    (sheet,) = table(_results({"shgp": [[1.0], [3.0]]}, TABLE))
    assert sheet.note.startswith("ADTM")
    assert (sheet.columns, sheet.cells) == (("method", "runs", "1"), (("SHGP", "2", "2 ± 1 (2)"),))
    assert table(_results({"shgp": [[1.0]]}))[0].note.startswith("simple regret")


# ── differences ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_paired_differences_and_their_bootstrap_interval() -> None:
    """log₁₀ differences −1, −1, 0, −1: the mean is −¾, and by Bin(4, ¼) the interval is exactly [−1, −¼]."""
    traces = {"gpbo": [[1.0], [1.0], [1.0], [10.0]], "shgp": [[0.1], [0.1], [1.0], [1.0]]}
    (found,) = differences(_results(traces), "gpbo")
    assert (found.method, found.baseline, found.evaluations, found.pairs) == ("shgp", "gpbo", 1, 4)
    assert found.log10.value == pytest.approx(-0.75)
    assert (found.log10.low, found.log10.high) == pytest.approx((-1.0, -0.25))
    assert found.regret.value == pytest.approx(-2.7)
    assert (found.wins, found.ties, found.losses) == (3, 1, 0)


def test_only_common_seeds_are_paired() -> None:
    """A seed that one method lacks does not enter; a method without a common seed is not compared."""
    runs = [_run("gpbo", s, [1.0]) for s in (0, 1, 2)] + [_run("shgp", s, [0.5]) for s in (1, 2, 3)]
    (found,) = differences(collect([*runs, _run("mhgp", 9, [0.1])]), "gpbo")
    assert (found.method, found.pairs) == ("shgp", 2)
    assert (found.regret.value, found.regret.low, found.regret.high) == (-0.5, -0.5, -0.5)


def test_the_bootstrap_agrees_with_scipys_and_repeats() -> None:
    """The percentile interval of a mean, to the accuracy of 10,000 resamples; equal seeds give equal intervals."""
    values = np.random.default_rng(1).exponential(size=40)
    results = _results({"gpbo": [[0.0]] * 40, "shgp": [[v] for v in values]})
    (found,) = differences(results, "gpbo")
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=10_000, rng=np.random.default_rng(2))
    spread = theirs.confidence_interval.high - theirs.confidence_interval.low
    assert found.regret.low == pytest.approx(theirs.confidence_interval.low, abs=0.05 * spread)
    assert found.regret.high == pytest.approx(theirs.confidence_interval.high, abs=0.05 * spread)
    assert differences(results, "gpbo") == (found,)


def test_a_regret_of_zero_has_a_logarithm_all_the_same() -> None:
    """It counts as 1e-6 on functions and as 1e-4 of the range on tables."""
    traces = {"gpbo": [[1e-2]], "shgp": [[0.0]]}
    assert differences(_results(traces), "gpbo")[0].log10.value == pytest.approx(-4)
    assert differences(_results(traces, TABLE), "gpbo")[0].log10.value == pytest.approx(-2)


def test_an_unknown_baseline_is_refused() -> None:
    """The message lists the methods there are."""
    with pytest.raises(InputError, match=r"no runs of the baseline 'gpbo'\. There are runs of shgp"):
        differences(_results({"shgp": [[1.0]]}), "gpbo")


# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_ranks_over_problems_and_seeds() -> None:
    """Mean ranks, Friedman's p as SciPy's, and Nemenyi's critical difference with Demšar's q = 2.343 for three."""
    values = np.random.default_rng(0).uniform(size=(12, 3))
    names = ("gpbo", "mhgp", "shgp")
    runs = [
        _run(m, seed % 6, [values[seed, j]], FUNCTION if seed < 6 else TABLE)
        for seed in range(12)
        for j, m in enumerate(names)
    ]
    found = ranks(collect(runs))
    expected = stats.rankdata(values, axis=1).mean(0)
    assert found.methods == names
    assert found.blocks == 12
    assert found.mean_ranks == pytest.approx(expected)
    assert found.p_value == pytest.approx(stats.friedmanchisquare(*values.T).pvalue)
    assert found.critical_difference == pytest.approx(2.343 * math.sqrt(3 * 4 / (6 * 12)), abs=1e-3)


def test_ties_share_their_rank() -> None:
    """Two equal bests have rank 1½ each; equal everywhere there is no difference at all."""
    found = ranks(_results({"gpbo": [[1.0]], "mhgp": [[1.0]], "shgp": [[2.0]]}))
    assert found.mean_ranks == (1.5, 1.5, 3.0)
    same = ranks(_results({"gpbo": [[1.0], [1.0]], "shgp": [[1.0], [1.0]]}))
    assert (same.mean_ranks, same.p_value) == ((1.5, 1.5), 1.0)
    assert same.critical_difference == pytest.approx(1.960 * math.sqrt(2 * 3 / (6 * 2)), abs=1e-3)


def test_a_method_without_runs_on_every_problem_is_not_ranked() -> None:
    """It is named; and blocks are seeds that all the others have."""
    runs = [_run(m, s, [1.0 + (m == "gpbo")]) for m in ("gpbo", "shgp") for s in range(3)]
    runs += [_run(m, s, [1.0], TABLE) for m in ("gpbo", "shgp", "mhgp") for s in range(2 if m == "gpbo" else 4)]
    found = ranks(collect(runs))
    assert found.left_out == ("mhgp",)
    assert found.blocks == 3 + 2
    with pytest.raises(InputError, match="two methods"):
        ranks(_results({"gpbo": [[1.0]]}))
    with pytest.raises(InputError, match="there are none"):
        ranks(collect([_run("gpbo", 0, [1.0]), _run("shgp", 1, [1.0])]))


def test_over_several_problems_regrets_are_ranked_and_divided_by_the_baselines() -> None:
    """Mean rank · geometric mean of the ratios of mean regrets; no regret counts as a ten thousandth of the largest."""
    runs = [_run("gpbo", s, [2.0 + s, 4.0]) for s in (-1, 1)] + [_run("shgp", s, [1.0, 2.0]) for s in (-1, 1)]
    runs += [_run("gpbo", 0, [1.0, 1.0], TABLE), _run("shgp", 0, [8.0, 0.0], TABLE)]
    (sheet,) = overall_sheet(collect(runs), "gpbo", [1, 2])
    assert [row[1:] for row in sheet.rows] == [("1.50 · 1.00", "2.00 · 1.00"), ("1.50 · 2.00", "1.00 · 0.02")]
    more = [*runs, _run("gpbo", 2, [50.0, 50.0])]  # a run that only one of them has does not count
    assert overall_sheet(collect(more), "gpbo", [1, 2])[0].rows == sheet.rows
    assert (
        overall_sheet(
            collect([*runs[:4], _run("gpbo", 0, [1.0, 1.0], TABLE), _run("shgp", 1, [1.0, 1.0], TABLE)]), "gpbo"
        )
        == ()
    )
    assert overall_sheet(_results({"gpbo": [[1.0]], "shgp": [[1.0]]}), "gpbo") == ()


# ── speed-ups ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_evaluations_to_a_level() -> None:
    """The first at or below it, and ∞ where there is none."""
    assert evaluations_to(0.5, np.array([[2.0, 0.5, 0.1], [2.0, 1.0, 0.9]])).tolist() == [2.0, math.inf]


def test_the_speed_up_is_the_baselines_evaluations_over_the_methods() -> None:
    """All seeds alike, the interval is a point; the level is the baseline's last mean regret unless given."""
    traces = {"gpbo": [[4.0, 3.0, 2.0, 1.0]] * 3, "shgp": [[2.0, 1.0, 0.5, 0.1]] * 3}
    (found,) = speed_ups(_results(traces), "gpbo")
    assert (found.evaluations, found.baseline_evaluations, found.pairs) == (2, 4, 3)
    assert (found.ratio.value, found.ratio.low, found.ratio.high) == (2.0, 2.0, 2.0)
    (found,) = speed_ups(_results(traces), "gpbo", level=2.0)
    assert (found.evaluations, found.baseline_evaluations, found.ratio.value) == (1, 3, 3.0)


def test_the_interval_of_a_speed_up_is_over_the_seeds() -> None:
    """Of two seeds a resample has (0, 0), (0, 1) or (1, 1): speed-ups 4, 2 and 4/3, with ¼, ½ and ¼ of the chances."""
    traces = {"gpbo": [[1.0, 1.0, 1.0, 0.0]] * 2, "shgp": [[0.0, 0.0, 0.0, 0.0], [0.4, 0.2, 0.0, 0.0]]}
    (found,) = speed_ups(_results(traces), "gpbo", level=0.1)
    assert (found.evaluations, found.ratio.value) == (2, 2.0)
    assert (found.ratio.low, found.ratio.high) == pytest.approx((4 / 3, 4.0))


def test_a_level_that_is_never_reached() -> None:
    """By the method: 0. By the baseline: ∞. By both: not a number, and nothing is said about it."""
    traces = {"gpbo": [[2.0, 1.0]], "shgp": [[3.0, 3.0]], "bhgp": [[0.1, 0.1]]}
    by_method = {s.method: s.ratio.value for s in speed_ups(_results(traces), "gpbo", level=1.0)}
    assert by_method == {"shgp": 0.0, "bhgp": 2.0}
    by_method = {s.method: s.ratio.value for s in speed_ups(_results(traces), "gpbo", level=0.5)}
    assert by_method["bhgp"] == math.inf
    assert math.isnan(by_method["shgp"])
    (sheet,) = speed_sheets(_results(traces), "gpbo", 0.5)
    assert [row[3:] for row in sheet.rows] == [("never", "never", ""), ("1", "never", "> 2.00 × [∞, ∞]")]
    with pytest.raises(InputError, match="must not be negative"):
        speed_ups(_results(traces), "gpbo", level=-1.0)


# ── sheets ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_comparison_has_differences_speed_ups_and_ranks() -> None:
    """A verdict takes at least ten pairs."""
    few = compare(_results({"gpbo": [[1.0]] * 9, "shgp": [[0.5]] * 9}), "gpbo")
    many = compare(_results({"gpbo": [[1.0]] * 10, "shgp": [[0.5]] * 10, "mhgp": [[2.0]] * 10}), "gpbo")
    names = [
        "differences",
        "speed-up",
        "targets",
        *["profile"] * 3,
        "correlation",
        "ranks",
        "tasks",
        "verdicts",
        "clear",
    ]
    assert [sheet.name for sheet in many] == names
    assert [row[4] for row in few[0].rows] == [""]
    assert [row[4] for row in many[0].rows] == ["worse", "better"]
    assert [row[0] for row in many[names.index("ranks")].rows] == ["SHGP", "GPBO", "MHGP"]
    with pytest.raises(InputError, match="nothing to compare"):
        compare(_results({"gpbo": [[1.0]]}), "gpbo")


def test_sheets_are_one_markdown_file_where_repeated_notes_stand_once(tmp_path: Path) -> None:
    """A bar does not break a cell."""
    sheets = [
        Sheet("a", "first", ("x", "y"), (("p|q", 1.23456789),), "note"),
        Sheet("a", "second", ("x", "y"), (("r", 2.0),), "note"),
        Sheet("b", "third", ("z",), ((3,),)),
    ]
    assert [note for _, note in with_notes(sheets)] == ["", "note", ""]
    text = write_sheets(sheets, tmp_path / "new", name="all", heading="All").read_text()
    assert text.startswith("## All\n\n### first\n\n| x | y |\n| --- | ---: |\n| p\\|q | 1.23 |\n")
    assert text.count("note") == 1


def test_what_cannot_be_written_is_an_input_error(tmp_path: Path) -> None:
    """A file in the place of a folder."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="the folder cannot be made"):
        write_sheets([], tmp_path / "file" / "sub", name="a", heading="a")


def test_seconds_and_regrets_are_written_down(tmp_path: Path) -> None:
    """Seconds per step and of learning; four digits of every regret, and nothing where a method stopped earlier."""
    results = _results({"gpbo": [[1 / 3, 0.25]], "shgp": [[2.0]]})
    assert seconds_sheet(results).rows[1][:4] == (FUNCTION, "shgp", 1, 1.5)
    text = gzip.decompress(write_series(series(results), tmp_path).read_bytes()).decode()
    assert text.splitlines()[1:] == [f'"{FUNCTION}",gpbo,0,regret,0.3333,0.25', f'"{FUNCTION}",shgp,0,regret,2,']


# ── complexity ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_slopes_are_fitted_beside_those_of_the_stated_complexity() -> None:
    """Seconds ∝ N_s² have slope 2; (N_t + N_s)³ has less than 3 as long as N_t counts."""
    timings = [StepTiming("hgp", n, 0.0, 1e-6 * n**2, 1e-6 * n**2, 0.0, 0.0) for n in (10, 100, 1000, 2000)]
    measured, stated = slopes(timings, "hgp")
    assert measured == pytest.approx(2.0)
    assert stated == pytest.approx(3 * math.log(2100 / 1100) / math.log(2))
    assert math.isnan(slopes(timings[:1], "hgp")[0])


@pytest.mark.parametrize("model", STATED)
def test_stated_complexities_grow_with_their_exponent(model: str) -> None:
    """Far out the operations grow like N_s to the exponent, which is that of the paper's table."""
    stated = STATED[model]
    growth = math.log10(stated.operations(1e9, 10.0) / stated.operations(1e8, 10.0))
    assert growth == pytest.approx(stated.exponent, abs=1e-4)


# ── names and styles ──────────────────────────────────────────────────────────────────────────────────────────────


def test_no_two_methods_look_alike() -> None:
    """Colours are all different, and so are the pairs of dash and marker; unknown methods have a style too."""
    styles = [style(name) for name in ORDER]
    assert len({s.color for s in styles}) == len({(str(s.line), s.marker) for s in styles}) == len(ORDER)
    assert style("mine").label == "mine"


def test_a_problems_name_tells_its_settings() -> None:
    """Numbers, and whether it is a table."""
    assert setting(FUNCTION, "points") == 120
    assert setting(FUNCTION, "rows") is None
    assert (title(FUNCTION), title(TABLE), title("my_table")) == ("Hartmann-6", "Past", "My table")
    assert (is_table(TABLE), is_table(FUNCTION)) == (True, False)
