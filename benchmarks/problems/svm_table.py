"""Our own real table: a support vector machine tuned on 24 classification tasks, 300 configurations each.

``scripts/make_svm_table.py`` made it from the data sets inside scikit-learn, and says which tasks it left out and why;
loading it needs no scikit-learn. The four hyperparameters are those of the paper's SVM benchmark, the objective is a
repeated 3-fold cross-validated error.

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

from importlib.resources import as_file, files

from benchmarks.problems.table import TableProblem, TaskTable, read_table

UNUSED_GAMMA = 1.0  # the middle of 2⁻¹⁰ … 2¹⁰ on a log scale
UNUSED_DEGREE = 3.5  # the middle of 2 … 5
_FILE = "svm_sklearn.csv.gz"


def svm_sklearn() -> TaskTable:
    """The table, with cost and gamma on log scales and the kernel one-hot."""
    with as_file(files("headstart.demo") / "data" / _FILE) as path:
        return read_table(path, task="task", objective="error", log=("cost", "gamma"), name="svm_sklearn")


def svm_sklearn_problem(*, n_sources: int = 10, rows: int | None = 60) -> TableProblem:
    """The paper's meta-learning experiment on this table: 10 sources of 60 rows, over the target's own rows."""
    return TableProblem(svm_sklearn(), n_sources=n_sources, rows=rows)
