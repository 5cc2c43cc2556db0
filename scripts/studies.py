"""Small studies whose answers stand in docs/: python scripts/studies.py known-errors|stopping|batches [RUNS].

known-errors  Log density of held-out results, each with an error of its own (0.05 to 0.5 of its task's spread): with
              ``error_var``, and without, when one common noise stands for all errors. docs/outcomes.md
stopping      A run goes on until ``outlook`` says that going on is unlikely to be worth it, then for ten more. What
              these gain, in standard deviations of the noise, beside what ten gain after the eighth. docs/outcomes.md
batches       Regrets of the first eight points that are suggested together, by AUTO and by SHGP. docs/scratch.md
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import torch

from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.transfer import SyntheticProblem
from benchmarks.read.comparison import mean_interval
from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.decide.domain import Cube, Mixed
from headstart.decide.stopping import Advice, outlook
from headstart.decide.suggest import suggest
from headstart.gp.threads import single_thread
from headstart.models.family import AUTO, GPBO, model_named
from headstart.models.model import TransferModel, log_density_of
from headstart.tuning import AUTO_TUNING

ENOUGH = AUTO_TUNING.few_results  # before that nobody is told to stop


def _with_errors(task: Dataset, generator: torch.Generator) -> Dataset:
    n = task.y.shape
    size = 0.05 * 10.0 ** torch.rand(n, generator=generator, dtype=torch.float64) * task.y.std()
    error = size * torch.randn(n, generator=generator, dtype=torch.float64)
    return replace(task, y=task.y + error, error_var=size.square())


def held_out_densities(problem: SyntheticProblem, model: TransferModel, seed: int) -> tuple[float, float]:
    """Nats per result of 40 that were held out, 15 known: with known errors, and with one common noise."""
    instance, generator = problem.draw([seed], 1), torch.Generator().manual_seed(seed)
    assert instance.function is not None
    X = torch.rand(55, problem.d, generator=generator, dtype=torch.float64)
    target = _with_errors(Dataset(X, instance.function(X.unsqueeze(0))[0]), generator)
    sources = [_with_errors(Dataset(s.X[0], s.y[0], s.name), generator) for s in instance.sources]
    seen, held_out = target.head(15), target.rows(slice(15, None))
    knowing = model.learn(sources).condition(seen)
    common = model.learn([replace(s, error_var=None) for s in sources]).condition(replace(seen, error_var=None))
    with torch.no_grad():
        ours, theirs = log_density_of(knowing, held_out), log_density_of(common, replace(held_out, error_var=None))
    return float(ours.mean()), float(theirs.mean())


def known_errors(runs: int) -> None:
    """Print a line per family, output map and model."""
    for family in ("forrester", "branin", "hartmann3"):
        for output_map in OutputMap:
            for name in ("GPBO", "SHGP", "AUTO"):
                model = model_named(name).using(output_map=output_map)
                found = np.array([held_out_densities(SyntheticProblem(family), model, seed) for seed in range(runs)])
                gain = mean_interval(found[:, 0] - found[:, 1])
                print(family, output_map.value, name, found.mean(0).round(2), f"difference {gain:+.2f}", flush=True)


def gains_after(problem: SyntheticProblem, seed: int, *, past: bool) -> tuple[float, float, float]:
    """After how many evaluations a run was told to stop, what ten more gained, and what ten gained after the eighth."""
    instance = problem.draw([seed], 40)
    assert instance.function is not None
    prior = AUTO.learn([Dataset(s.X[0], s.y[0], s.name) for s in instance.sources]) if past else GPBO.learn([])
    data, values, told, last = Dataset.empty(problem.d), list[float](), np.nan, 30
    while True:
        n, posterior = data.n, prior.condition(data, seed=data.n)
        if np.isnan(told) and ENOUGH <= n <= 30 and n % 2 == 0 and outlook(posterior, seed=n).advice is Advice.UNLIKELY:
            told, last = n, n + 10
        if n == last:
            break
        x = suggest(posterior, seed=n)
        values.append(float(instance.function(x.reshape(1, 1, -1))[0, 0]))
        data = data.with_point(x, torch.tensor(values[-1] + float(instance.noise[0, n]), dtype=torch.float64))
    gains = [
        np.nan if np.isnan(at) else max(min(values[: int(at)]) - min(values[int(at) : int(at) + 10]), 0) / problem.noise
        for at in (told, float(ENOUGH))
    ]
    return (float(told), *map(float, gains))


def stopping(runs: int) -> None:
    """Print a line per problem, with past tasks and without; seeds from 1000 on: others set the bounds."""
    for family, noise in (("forrester", 0.5), ("branin", 1.0), ("hartmann3", 0.1)):
        for past in (True, False):
            problem = SyntheticProblem(family, n_sources=3, noise=noise)
            found = np.array([gains_after(problem, seed, past=past) for seed in range(1000, 1000 + runs)])
            stopped = found[~np.isnan(found[:, 0])]
            early = f"after the 8th {mean_interval(found[:, 2]):.2f}"
            late = f"after {np.median(stopped[:, 0]):.0f}: {mean_interval(stopped[:, 1]):.2f}" if len(stopped) else ""
            print(family, "past" if past else "no past", f"told {len(stopped)} of {runs}", late, early, flush=True)


def batch_regrets(problem: SyntheticProblem, model: str, seed: int) -> np.ndarray:
    """The regrets of the first eight points that the model suggests together."""
    instance = problem.draw([seed], 1)
    sources = [s.with_data(s.X[0], s.y[0]) for s in instance.sources]
    posterior = model_named(model).learn(sources).condition(Dataset.empty(problem.d, categories=sources[0].categories))
    domain = Cube(problem.d) if problem.space is None else Mixed(problem.space)
    X = suggest(posterior, q=8, seed=seed, domain=domain)
    assert instance.function is not None
    return np.asarray((instance.function(X.unsqueeze(0))[0] - instance.minimum).numpy())


def batches(runs: int) -> None:
    """Print a line per family: median and best of eight, AUTO − SHGP."""
    for family in ("forrester", "alpine", "branin", "hartmann3", "hartmann6", *LABORATORY):
        problem = SyntheticProblem(family)
        auto, shgp = (
            np.stack([batch_regrets(problem, model, seed) for seed in range(runs)]) for model in ("AUTO", "SHGP")
        )
        gaps = (mean_interval(summary(auto, axis=-1) - summary(shgp, axis=-1)) for summary in (np.median, np.min))
        print(family, *(f"{word} {gap:+.3g}" for word, gap in zip(("median", "best"), gaps, strict=True)), flush=True)


if __name__ == "__main__":
    which, *more = sys.argv[1:] or [""]
    studies = {"known-errors": known_errors, "stopping": stopping, "batches": batches}
    if which not in studies:
        sys.exit(__doc__)
    with single_thread():
        studies[which](int(more[0]) if more else 50)
