"""What the advice to stop is worth: how much ten further evaluations really gain once it was given.

python -m benchmarks.run.ending.stopping [RUNS] [FILE.md]

A run goes on until ``outlook`` says that going on is unlikely to be worth it, at most for 30 evaluations, and then for
ten more. What these gain is the true value of the best point before them less that of the best point after them, in
standard deviations of the noise. Beside it stands what ten evaluations gain after the eighth, the first at which the
advice may be to stop. It is asked for after every other evaluation.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.read.comparison import mean_interval
from benchmarks.read.sheet import write_lines
from headstart.data.dataset import Dataset
from headstart.decide.stopping import ENOUGH, Advice, outlook
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.family import AUTO, GPBO

# Noise that matters beside what there is to gain
_PROBLEMS = (("forrester", 0.5), ("branin", 1.0), ("hartmann3", 0.1))
_SOURCES = 3
_LONGEST, _FURTHER, _EVERY = 30, 10, 2
_FIRST = 1000  # seed: the bounds were looked at with others


@dataclass(frozen=True, slots=True)
class StoppedRun:
    """A run that was told to stop after ``told`` evaluations, or never: None.

    ``expected`` is what was expected of the next points then; ``gained`` what ten more have gained, and ``early`` what
    ten gained after the eighth. All are in standard deviations of the noise.
    """

    told: int | None
    expected: float
    gained: float
    early: float


def run_until_told(problem: SyntheticProblem, seed: int, *, past: bool) -> StoppedRun:
    """One run, with the past tasks or without them."""
    instance = problem.draw([seed], _LONGEST + _FURTHER)
    assert instance.function is not None
    sources = [Dataset(s.X[0], s.y[0], s.name) for s in instance.sources]
    prior = AUTO.learn(sources) if past else GPBO.learn([])
    data, values = Dataset.empty(problem.d), list[float]()
    told, expected, last = None, np.nan, _LONGEST
    n = 0
    while True:
        posterior = prior.condition(data, seed=n)
        if told is None and ENOUGH <= n <= _LONGEST and n % _EVERY == 0:
            found = outlook(posterior, seed=n)
            if found.advice is Advice.UNLIKELY and found.further is not None:
                told, expected, last = n, found.further.gain / problem.noise, n + _FURTHER
        if n == last:
            break
        x = suggest(posterior, seed=n)
        values.append(float(instance.function(x.reshape(1, 1, -1))[0, 0]))
        y = torch.tensor(values[-1] + float(instance.noise[0, n]), dtype=torch.float64)
        data, n = data.with_point(x, y), n + 1
    gains = [
        np.nan if at is None else max(min(values[:at]) - min(values[at : at + _FURTHER]), 0.0) / problem.noise
        for at in (told, ENOUGH)
    ]
    return StoppedRun(told, float(expected), *gains)


@single_thread()
def main(runs: int = 50, out: Path | None = None) -> None:
    """Run all of it, print a line per problem, and write the table."""
    lines = [
        f"Told that going on is unlikely to be worth it, and what ten further evaluations gained: {runs} runs, up to "
        f"{_LONGEST} evaluations before they are told. Gains in standard deviations of the noise, means with 95 % "
        "intervals over the runs.",
        "",
        "| problem | past | told | after (median) | expected of the next 5 | gained by 10 more | of these above 1 | "
        "gained by 10 after the 8th |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for family, noise in _PROBLEMS:
        for past in (True, False):
            problem = SyntheticProblem(family, n_sources=_SOURCES, noise=noise)
            lines.append(
                _line(family, past, [run_until_told(problem, seed, past=past) for seed in range(_FIRST, _FIRST + runs)])
            )
            print(lines[-1], flush=True)
            write_lines(out, lines)


def _line(family: str, past: bool, found: list[StoppedRun]) -> str:
    stopped = [run for run in found if run.told is not None]
    early = mean_interval(np.array([run.early for run in found]))
    cells = [family, "3 tasks" if past else "none", f"{len(stopped)} of {len(found)}"]
    if stopped:
        gained = np.array([run.gained for run in stopped])
        mean = mean_interval(gained)
        cells += [
            f"{np.median([run.told or 0 for run in stopped]):.0f}",
            f"{np.mean([run.expected for run in stopped]):.2f}",
            f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f})",
            f"{int((gained > 1).sum())}",
        ]
    else:
        cells += ["–"] * 4
    return f"| {' | '.join([*cells, f'{early.value:.2f} ({early.low:.2f} to {early.high:.2f})'])} |"


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(int(arguments[0]) if arguments else 50, Path(arguments[1]) if len(arguments) > 1 else None)
