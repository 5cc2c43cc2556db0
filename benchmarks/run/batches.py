"""What a first batch of eight is worth: the true values of the points that are suggested together, before any result.

python -m benchmarks.run.batches [RUNS] [FILE.md]

For every family of functions and every laboratory function: the regrets of the eight points of AUTO and of SHGP, each
run a problem of its own, by the product's own path (``suggest(q=8)``). A batch's median and its best are averaged over
the runs, with bootstrap 95 % intervals of AUTO − SHGP over the same runs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.read.comparison import mean_interval
from benchmarks.read.sheet import write_lines
from headstart.data.dataset import Dataset
from headstart.decide.domain import Cube, Mixed
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.family import model_named

_FAMILIES = ("forrester", "alpine", "branin", "hartmann3", "hartmann6", *LABORATORY)
_MODELS = ("AUTO", "SHGP")
_TOGETHER = 8

Array = NDArray[np.float64]


def batch_regrets(problem: SyntheticProblem, model: str, seed: int) -> Array:
    """The regrets of the first eight points that the model suggests together."""
    instance = problem.draw([seed], 1)
    sources = [s.with_data(s.X[0], s.y[0]) for s in instance.sources]
    target = Dataset.empty(problem.d, categories=sources[0].categories)
    posterior = model_named(model).learn(sources).condition(target)
    domain = Cube(problem.d) if problem.space is None else Mixed(problem.space)
    X = suggest(posterior, q=_TOGETHER, seed=seed, domain=domain)
    assert instance.function is not None
    return np.asarray((instance.function(X.unsqueeze(0))[0] - instance.minimum).numpy())


def _difference(ours: Array, theirs: Array) -> str:
    away = mean_interval(ours - theirs)
    return f"{away.value:+.3g} ({away.low:+.2g} to {away.high:+.2g})"


@single_thread()
def main(runs: int = 100, out: Path | None = None) -> None:
    """Run all of it, print a line per problem, and write the table."""
    lines = [
        f"First batches of {_TOGETHER}, regrets, {runs} runs; AUTO − SHGP with 95 % intervals.",
        "",
        "| problem | median AUTO | SHGP | difference | best AUTO | SHGP | difference |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family in _FAMILIES:
        problem = SyntheticProblem(family)
        found = {m: np.stack([batch_regrets(problem, m, seed) for seed in range(runs)]) for m in _MODELS}
        row = [family]
        for summary in (np.median, np.min):
            ours, theirs = (summary(found[m], axis=-1) for m in _MODELS)
            row += [f"{ours.mean():.3g}", f"{theirs.mean():.3g}", _difference(ours, theirs)]
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], flush=True)
        write_lines(out, lines)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 100, Path(arguments[1]) if len(arguments) > 1 else None)
