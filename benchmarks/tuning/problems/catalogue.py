"""All tuning problems, by name.

kind               problems
plain              kernel-ridge, gaussian-process, svm
mixed              neighbours, forest, boosted-trees, boosted-regression, logistic, elastic-net
conditional        pipeline, svm-kernels, classifier-choice, network-layers
awkward            diverging-sgd (some runs end at up to 1e30), pruned-network (most trials are not trained to the end)
"""

from __future__ import annotations

from benchmarks.tuning.problem import TuningProblem
from benchmarks.tuning.problems.branching import BRANCHING
from benchmarks.tuning.problems.classifiers import CLASSIFIERS
from benchmarks.tuning.problems.regressors import REGRESSORS
from benchmarks.tuning.problems.stepwise import STEPWISE
from headstart.errors import InputError

PROBLEMS: dict[str, TuningProblem] = {p.name: p for p in (*CLASSIFIERS, *REGRESSORS, *BRANCHING, *STEPWISE)}


def tuning_problem(name: str) -> TuningProblem:
    """The problem of that name."""
    if name not in PROBLEMS:
        raise InputError(f"There is no tuning problem {name!r}. The known ones are {', '.join(PROBLEMS)}.")
    return PROBLEMS[name]
