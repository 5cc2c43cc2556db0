"""What known errors are worth: the log density of results that were held out, each with its own error.

python -m benchmarks.run.known_errors [RUNS] [FILE.md]

Every result of sources and target has an error of its own, whose standard deviation is between 0.05 and 0.5 of the
spread of the task's values, evenly in its logarithm. The same rows are learnt twice: with ``error_var``, and without,
when one common noise has to stand for all errors. Held out are results with errors like those. Values are nats per
result, with error_var and without, and their difference with a bootstrap 95 % interval over the runs.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.read.comparison import mean_interval
from benchmarks.read.sheet import write_lines
from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.gp.threads import single_thread
from headstart.models.family import model_named
from headstart.models.model import TransferModel, log_density_of

_FAMILIES = ("forrester", "branin", "hartmann3")
_MODELS = ("GPBO", "SHGP", "AUTO")
_LEAST, _TIMES = 0.05, 10.0  # standard errors, in spreads of the task
_SEEN, _HELD_OUT = 15, 40


def _with_errors(task: Dataset, generator: torch.Generator) -> Dataset:
    """The values with errors drawn for them, and their variances."""
    n = task.y.shape
    size = _LEAST * _TIMES ** torch.rand(n, generator=generator, dtype=torch.float64) * task.y.std()
    error = size * torch.randn(n, generator=generator, dtype=torch.float64)
    return replace(task, y=task.y + error, error_var=size.square())


def held_out_densities(problem: SyntheticProblem, model: TransferModel, seed: int) -> tuple[float, float]:
    """Nats per result that was held out: with known errors, and with one common noise."""
    instance = problem.draw([seed], 1)
    generator = torch.Generator().manual_seed(seed)
    assert instance.function is not None
    X = torch.rand(_SEEN + _HELD_OUT, problem.d, generator=generator, dtype=torch.float64)
    target = _with_errors(Dataset(X, instance.function(X.unsqueeze(0))[0]), generator)
    sources = [_with_errors(Dataset(s.X[0], s.y[0], s.name), generator) for s in instance.sources]
    seen, held_out = target.head(_SEEN), target.rows(slice(_SEEN, None))
    knowing = model.learn(sources).condition(seen)
    common = model.learn([replace(s, error_var=None) for s in sources]).condition(replace(seen, error_var=None))
    with torch.no_grad():
        ours = log_density_of(knowing, held_out)
        theirs = log_density_of(common, replace(held_out, error_var=None))
    return float(ours.mean()), float(theirs.mean())


@single_thread()
def main(runs: int = 50, out: Path | None = None) -> None:
    """Run all of it, print a line per problem and model, and write the table."""
    lines = [
        f"Log density of results held out, nats per result, {runs} runs; differences with 95 % intervals.",
        "",
        "| problem | output map | model | with errors | one noise | difference |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for family in _FAMILIES:
        for output_map in OutputMap:
            for name in _MODELS:
                model = model_named(name).using(output_map=output_map)
                found = np.array([held_out_densities(SyntheticProblem(family), model, seed) for seed in range(runs)])
                away = mean_interval(found[:, 0] - found[:, 1])
                ours, theirs = found.mean(0)
                gain = f"{away.value:+.2f} ({away.low:+.2f} to {away.high:+.2f})"
                lines.append(f"| {family} | {output_map.value} | {name} | {ours:.2f} | {theirs:.2f} | {gain} |")
                print(lines[-1], flush=True)
        write_lines(out, lines)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 50, Path(arguments[1]) if len(arguments) > 1 else None)
