"""The sixteen tables that others measured: read where the folder is there, and a clear message where it is not."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import pytest
import torch

from benchmarks.problems.shared_tables import SHARED, shared_table, table_problem
from headstart import InputError
from headstart.data.ranges import Choices, FloatRange

here = pytest.mark.skipif(
    not os.environ.get("HEADSTART_DATA"), reason="HEADSTART_DATA does not name the folder with the shared tables"
)


@here
@pytest.mark.parametrize(
    ("name", "tasks", "rows", "d"),
    [
        ("random_forest", 92, 500, 10),
        ("adaboost", 100, 400, 8),
        ("xgboost", 10, 5000, 8),
        ("direct_arylation", 3, 576, 21),
        ("mlp_hpobench", 8, 2000, 5),
        ("mlp_lcbench", 35, 500, 7),
        ("deepar_forecasts", 11, (212, 249), 6),
        ("x264_encoder", 21, 1000, 15),
        ("aryl_halides", 15, (274, 276), 30),
        ("oer_catalysts", 4, (2119, 2121), 11),
        ("suzuki_reizman", 4, (80, 95), 11),
        ("gpu_dedispersion", 6, 2000, 6),
        ("laser_graphene", 3, (208, 210), 6),
        ("text_classifiers", 50, 384, 18),
        ("forest_surrogate", 106, 250, 13),
        ("tree_surrogate", 115, 250, 7),
    ],
)
def test_a_shared_table_has_its_tasks_and_rows(name: str, tasks: int, rows: int | tuple[int, int], d: int) -> None:
    """Every task has all its rows; of the random forest's tasks the two constant ones are left out."""
    table = shared_table(name)
    assert (table.name, len(table.tasks), table.d) == (name, tasks, d)
    sizes = [data.n for data in table.tasks.values()]
    assert (min(sizes), max(sizes)) == (rows if isinstance(rows, tuple) else (rows, rows))


@here
def test_the_columns_have_the_kinds_of_the_papers() -> None:
    """The learning rate of AdaBoost is on a log scale; text and true and false are categorical."""
    both = {**shared_table("adaboost").space.distributions, **shared_table("random_forest").space.distributions}
    assert {name for name, one in both.items() if isinstance(one, FloatRange) and one.log} == {"learning_rate"}
    categorical = {"algorithm", "imputation", "bootstrap", "criterion"}
    assert {name for name, one in both.items() if isinstance(one, Choices)} == categorical


@here
def test_the_yield_is_maximised() -> None:
    """The lowest y at 105 °C is the best yield, 100 %, negated; so are scores and accuracies."""
    assert shared_table("direct_arylation").tasks["105"].y.min() == -100
    assert {name for name, table in SHARED.items() if table.maximize} == {
        "direct_arylation",
        "mlp_hpobench",
        "mlp_lcbench",
        "aryl_halides",
        "suzuki_reizman",
        "laser_graphene",
        "text_classifiers",
        "forest_surrogate",
        "tree_surrogate",
    }


def test_no_outcome_is_an_input() -> None:
    """Neither the objective of a table nor what else was measured with it."""
    outcomes = {"cross_entropy", "model_parameters", "turnover"}
    assert not any({table.objective, *outcomes} & set(table.inputs.split()) for table in SHARED.values())


@here
@pytest.mark.parametrize(
    ("name", "n_sources"),
    [
        ("xgboost", 8),
        ("direct_arylation", 2),
        ("adaboost", 10),
        ("mlp_hpobench", 7),
        ("mlp_lcbench", 10),
        ("deepar_forecasts", 10),
        ("x264_encoder", 10),
        ("aryl_halides", 10),
        ("oer_catalysts", 3),
        ("suzuki_reizman", 3),
        ("gpu_dedispersion", 5),
        ("laser_graphene", 2),
        ("text_classifiers", 10),
    ],
)
def test_a_shared_problem_has_the_usual_sources(name: str, n_sources: int) -> None:
    """Sixty rows of as many sources as usual; the target's values reach from its minimum to minimum + scale."""
    drawn = table_problem(name).draw([0, 1], 30)
    assert len(drawn.sources) == n_sources
    assert {source.n for source in drawn.sources} == {60}
    assert drawn.space is not None
    assert drawn.space.d == drawn.d
    assert drawn.candidates is not None
    regret = (drawn.candidates.values - drawn.minimum[:, None]) / drawn.scale[:, None]
    assert torch.equal(regret.amin(-1), torch.zeros(2, dtype=torch.float64))
    regret = regret.where(drawn.candidates.real, 0.0)
    assert torch.allclose(regret.amax(-1), torch.ones(2, dtype=torch.float64))


@here
def test_xgboost_goes_without_skin_nonskin_and_with_all_rows() -> None:
    """The nine tasks of the GC3P authors, with 5000 rows of each source where all are asked for."""
    problem = table_problem("xgboost", rows=None)
    assert "skin_nonskin" not in problem.draw(range(60), 1).labels
    assert {source.n for source in problem.draw([0], 50).sources} == {5000}


# ── without the folder ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_unknown_name_lists_the_known_ones() -> None:
    """The message has all their names."""
    with pytest.raises(InputError, match=r"'none'. Known are: svm, switches, random_forest, adaboost"):
        shared_table("none")


def test_without_a_folder_the_message_says_how_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable and the file are named."""
    monkeypatch.delenv("HEADSTART_DATA", raising=False)
    with pytest.raises(
        InputError, match=r"'xgboost' does not come with headstart. Set .*HEADSTART_DATA.*xgboost_openml.csv"
    ):
        shared_table("xgboost")


def test_a_folder_or_file_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says where it looked."""
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"gone of HEADSTART_DATA, but there is no such folder"):
        shared_table("adaboost")
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    with pytest.raises(InputError, match=rf"the folder {tmp_path} of .*, but openml_adaboost.csv.gz is not there"):
        shared_table("adaboost")


def test_a_small_file_of_the_same_form_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader needs the columns of the file, and no more than that."""
    lines = ["task,algorithm,learning_rate,max_depth,n_estimators,imputation,error"]
    lines += [
        f"{task},{'AB'[i % 2]},{0.01 * 10**i},{i + 1.5},{i + 0.5},mean,0.{i}" for task in (3, 6) for i in range(4)
    ]
    (tmp_path / "openml_adaboost.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    monkeypatch.setenv("HEADSTART_DATA", str(tmp_path))
    table = shared_table("adaboost")
    assert list(table.tasks) == ["3", "6"]
    assert "imputation" not in table.space.distributions, "it is mean in every row"
    assert torch.allclose(table.tasks["3"].X[:, table.d - 3], torch.arange(4, dtype=torch.float64) / 3), (
        "the learning rate is on a log scale"
    )
    table_problem.cache_clear()
    drawn = table_problem("adaboost", sources=1, rows=3).draw([0], 2)
    table_problem.cache_clear()  # it was not the real table
    assert drawn.sources[0].X.shape == (1, 3, table.d)
    assert math.isclose(float(drawn.scale[0]), 0.3)
