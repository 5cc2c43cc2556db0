"""Sixteen tables that others measured, by name. They are no part of headstart: a folder with the files is needed.

    name                file                              tasks × rows   inputs                            sources
    random_forest       openml_random_forest.csv.gz       92 × 500       3 categorical, 3 numeric          10
    adaboost            openml_adaboost.csv.gz            100 × 400      2 categorical, 2 numeric, 1 log   10
    xgboost             xgboost_openml.csv.gz             9 × 5000       8 numeric                         8
    direct_arylation    direct_arylation_by_temp.csv.gz   3 × 576        3 categorical, 1 numeric          2
    mlp_hpobench        mlp_hpobench.csv.gz               8 × 2000       3 numeric, 2 log                  7
    mlp_lcbench         mlp_lcbench.csv.gz                35 × 500       3 numeric, 4 log                  10
    deepar_forecasts    deepar_forecasts.csv.gz           11 × 212–249   4 numeric, 2 log                  10
    x264_encoder        x264_encoder.csv.gz               21 × 1000      15 switches, 0 or 1               10
    aryl_halides        aryl_halides.csv.gz               15 × 274–276   3 categorical                     10
    oer_catalysts       oer_catalysts.csv.gz              4 × 2120       11 numeric, which add up to 1     3
    suzuki_reizman      suzuki_reizman.csv.gz             4 × 80–95      1 categorical, 3 numeric          3
    gpu_dedispersion    gpu_dedispersion.csv.gz           6 × 2000       5 numeric, 1 log                  5
    laser_graphene      laser_graphene.csv.gz             3 × 208–210    1 categorical, 3 numeric          2
    text_classifiers    text_classifiers.csv.gz           50 × 384       5 categorical, 1 numeric          10
    forest_surrogate    forest_surrogate.csv.gz           106 × 250      3 categorical, 5 numeric          10
    tree_surrogate      tree_surrogate.csv.gz             115 × 250      1 categorical, 3 numeric, 1 log   10

They are from: van Rijn and Hutter (KDD 2018), the first two, of 94 random forest tasks two are constant; Salinas et al.
(ICML 2020), who leave out the task skin_nonskin, and so does ``shared_problem``; Shields et al. (2021), where a task is
a temperature; HPOBench; LCBench; Salinas et al. again; Jamshidi et al. (ASE 2017); Ahneman et al. (2018); Olympus;
Reizman et al. (2016); the Auto-Tuning Association's benchmark_hub; lig-model-opt; openml-defaults; YAHPO's rbv2_ranger
and rbv2_rpart. Yields, scores, accuracies and gd_ratio are maximised, everything else is minimised. Further outcomes of
LCBench and of the Suzuki couplings are no inputs. Sources have 60 random rows. The folder is that of the environment
variable HEADSTART_DATA.

A seventeenth, ``svm``, lies with it: a support vector machine tuned on 24 classification tasks, 300 configurations
each. ``scripts/make_svm_table.py`` made it from the data sets inside scikit-learn, and says which it left out and why;
loading it needs no scikit-learn. The four hyperparameters are those of the paper's SVM benchmark, the objective is a
repeated 3-fold cross-validated error. ``switches`` is made up.

    column   values                                     used by the kernel
    cost     2⁻¹⁰ … 2¹⁰, log-uniform                    all
    gamma    2⁻¹⁰ … 2¹⁰, log-uniform                    poly, rbf
    degree   2, 3, 4, 5                                 poly
    kernel   linear, poly, rbf
    error    share of wrong predictions on held-out rows

A kernel does not use every hyperparameter. Where it does not, the value says nothing, and the table has the middle of
the range there (of the log range for gamma): such rows are equally far from both ends, and are no further from one
another than the hyperparameters they do use put them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.problems.table import TableProblem, TaskTable, read_table
from headstart.errors import InputError, MissingDataError

_VARIABLE = "HEADSTART_DATA"
UNUSED_GAMMA = 1.0  # the middle of 2⁻¹⁰ … 2¹⁰ on a log scale
UNUSED_DEGREE = 3.5  # the middle of 2 … 5


@dataclass(frozen=True, slots=True)
class SharedTable:
    """Where a table is, how it is read, and how many sources it is used with."""

    file: str
    objective: str
    inputs: str  # names of columns
    logs: str = ""  # those of them on a log scale
    maximize: bool = False
    left_out: tuple[str, ...] = ()
    n_sources: int = 10


def switches() -> TaskTable:
    """Twelve made-up tasks of 50 switches, 1000 random rows each: seconds = exp(Σ w_i s_i + Σ v_ij s_i s_j).

    Of the effects w eight are large, and twelve pairs have an effect v; a task has each of them times 1 + 0.3 N(0, 1),
    and ten large effects of its own.
    """
    import numpy as np
    import pandas as pd

    draw, n, pairs = np.random.default_rng(0), 50, 12
    w, v = 0.02 * draw.standard_normal(n), 0.2 * draw.standard_normal(pairs)
    w[draw.permutation(n)[:8]] = 0.2 * draw.standard_normal(8)
    first, second = draw.permutation(n)[: 2 * pairs].reshape(2, pairs)
    frames = []
    for task in range(12):
        x = draw.integers(0, 2, (1000, n))
        own = w * (1 + 0.3 * draw.standard_normal(n))
        own[draw.permutation(n)[:10]] += 0.3 * draw.standard_normal(10)
        log = x @ own + (x[:, first] * x[:, second]) @ (v * (1 + 0.3 * draw.standard_normal(pairs)))
        frame = pd.DataFrame(x, columns=[f"s{i}" for i in range(n)])
        frames.append(frame.assign(task=f"task {task}", seconds=np.exp(log + 0.01 * draw.standard_normal(1000))))
    inputs = [f"s{i}" for i in range(n)]
    return read_table(pd.concat(frames), name="switches", objective="seconds", inputs=inputs)


SHARED: dict[str, SharedTable] = {
    "random_forest": SharedTable(
        "openml_random_forest.csv.gz",
        "error",
        "bootstrap criterion imputation max_features min_samples_leaf min_samples_split",
    ),
    "adaboost": SharedTable(
        "openml_adaboost.csv.gz",
        "error",
        "algorithm imputation learning_rate max_depth n_estimators",
        "learning_rate",
    ),
    "xgboost": SharedTable(
        "xgboost_openml.csv.gz",
        "metric_error",
        "hp_log2_min_child_weight hp_subsample hp_colsample_bytree hp_log2_gamma hp_log2_lambda hp_eta "
        "hp_max_depth_index hp_log2_alpha",
        left_out=("skin_nonskin",),
        n_sources=8,
    ),
    "direct_arylation": SharedTable(
        "direct_arylation_by_temp.csv.gz",
        "yield",
        "Base Ligand Solvent Concentration",
        maximize=True,
        n_sources=2,
    ),
    "mlp_hpobench": SharedTable(
        "mlp_hpobench.csv.gz",
        "score",
        "alpha batch_size depth learning_rate_init width",
        "alpha learning_rate_init",
        maximize=True,
        n_sources=7,
    ),
    "mlp_lcbench": SharedTable(
        "mlp_lcbench.csv.gz",
        "accuracy",
        "batch_size max_dropout max_units num_layers learning_rate momentum weight_decay",
        "batch_size max_units learning_rate momentum",
        maximize=True,
    ),
    "deepar_forecasts": SharedTable(
        "deepar_forecasts.csv.gz",
        "crps",
        "num_layers num_cells dropout_rate learning_rate num_batches_per_epoch context_length_ratio",
        "learning_rate num_batches_per_epoch",
    ),
    "x264_encoder": SharedTable(
        "x264_encoder.csv.gz",
        "seconds",
        "non-deterministic no-asm no-mixed-refs no-chroma-me no-8x8dct no-fast-pskip no-dct-decimate no-scenecut "
        "no-cabac no-deblock no-mbtree no-weightb no-psy no-progress dts-compress",
    ),
    "aryl_halides": SharedTable("aryl_halides.csv.gz", "yield", "base ligand additive", maximize=True),
    "oer_catalysts": SharedTable(
        "oer_catalysts.csv.gz",
        "overpotential",
        "ca_load ce_load co_load cu_load fe_load la_load mn_load ni_load sb_load sn_load ta_load",
        n_sources=3,
    ),
    "suzuki_reizman": SharedTable(
        "suzuki_reizman.csv.gz",
        "yield",
        "catalyst t_res temperature catalyst_loading",
        maximize=True,
        n_sources=3,
    ),
    "gpu_dedispersion": SharedTable(
        "gpu_dedispersion.csv.gz",
        "milliseconds",
        "block_size_x block_size_y tile_size_x tile_size_y tile_stride_x tile_stride_y",
        "block_size_x",
        n_sources=5,
    ),
    "laser_graphene": SharedTable(
        "laser_graphene.csv.gz", "gd_ratio", "power time pressure gas", maximize=True, n_sources=2
    ),
    "text_classifiers": SharedTable(
        "text_classifiers.csv.gz",
        "accuracy",
        "algorithm representation stopword stemmer feature_selection sparsity",
        maximize=True,
    ),
    "forest_surrogate": SharedTable(
        "forest_surrogate.csv.gz",
        "accuracy",
        "num_trees sample_fraction mtry_power min_node_size num_random_splits respect_unordered_factors replace "
        "imputation",
        maximize=True,
    ),
    "tree_surrogate": SharedTable(
        "tree_surrogate.csv.gz", "accuracy", "cp maxdepth minbucket minsplit imputation", "cp", maximize=True
    ),
}


def svm_sklearn() -> TaskTable:
    """Our own table, with cost and gamma on log scales and the kernel one-hot."""
    path = Path(__file__).parent / "data" / "svm_sklearn.csv.gz"
    inputs = ("cost", "gamma", "degree", "kernel")
    return read_table(path, name="svm_sklearn", objective="error", inputs=inputs, log=("cost", "gamma"))


OWN = {"svm": svm_sklearn, "switches": switches}  # tables that need no folder


def shared_table(name: str, *, outcome: str | None = None) -> TaskTable:
    """The table of that name, with all its tasks; where an ``outcome`` is named, its values as measured."""
    which = _named(name)
    return read_table(
        _path(name, which),
        name=name,
        objective=which.objective if outcome is None else outcome,
        inputs=which.inputs.split(),
        log=which.logs.split(),
        maximize=which.maximize and outcome is None,
    )


@cache
def table_problem(
    name: str,
    *,
    sources: int | None = None,
    rows: int | None = 60,
    in_turn: bool = False,
    repeats: bool = False,
) -> TableProblem:
    """A name of ``OWN`` or ``SHARED``. Without ``sources`` there are as many as usual; ``rows=None`` takes all rows."""
    table = OWN[name]() if name in OWN else shared_table(name)
    usual, left_out = (10, ()) if name in OWN else (SHARED[name].n_sources, SHARED[name].left_out)
    tasks = tuple(task for task in table.tasks if task not in left_out)
    return TableProblem(table, usual if sources is None else sources, rows, tasks, in_turn=in_turn, repeats=repeats)


def is_here(name: str) -> bool:
    """Whether the environment names a folder that has the table."""
    folder = os.environ.get(_VARIABLE)
    return bool(folder) and (Path(folder or "") / _named(name).file).is_file()


def _named(name: str) -> SharedTable:
    if name not in SHARED:
        raise InputError(f"There is no table {name!r}. Known are: {', '.join((*OWN, *SHARED))}.")
    return SHARED[name]


def _path(name: str, which: SharedTable) -> Path:
    folder = os.environ.get(_VARIABLE)
    if not folder:
        raise MissingDataError(
            f"The table {name!r} does not come with headstart. Set the environment variable {_VARIABLE} "
            f"to the folder that has {which.file}."
        )
    wanted = f"The table {name!r} is to be read from the folder {folder} of {_VARIABLE}"
    if not Path(folder).is_dir():
        raise MissingDataError(f"{wanted}, but there is no such folder.")
    path = Path(folder) / which.file
    if not path.is_file():
        raise MissingDataError(f"{wanted}, but {which.file} is not there.")
    return path
