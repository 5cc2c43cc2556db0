"""Fits and predictions against BoTorch's, side by side: ``python -m benchmarks time fits``.

Where both engines fit the same model from the same starts, the likelihoods they reach are compared as well: ``log p``
is how many nats ours is above the other's, the least and the median over the data sets.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import rivals
from benchmarks.timing.measurement import Figures, Timing, take_turns
from headstart.data.dataset import Dataset
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Starts
from headstart.gp.kernels import Kernel
from headstart.models.family import BHGP, HGP, MHGP, SHGP
from headstart.models.joint.coregion import WeightedSource
from headstart.models.joint.joint import ArrowEvidence, DenseEvidence
from headstart.models.sequential import SequentialPrior

D = 6
PAPER = FitOptions.paper()
NONE = torch.Size()
_ROWS = 10  # evaluations of an evidence at once


def fit_timings(*, quick: bool) -> Iterator[Timing]:
    """Everything that is timed; ``quick`` has small sizes and one round."""
    rounds, n_sets = (1, 1) if quick else (3, 12)
    # data sets of every size: few for the large ones, which keep BoTorch busy for most of a minute each
    sizes = {20: 1, 60: 1} if quick else {20: n_sets, 60: n_sets, 200: 5, 500: 2}
    sources = (60,) if quick else (60, 120, 250, 500)
    yield from (Timing(f"GP fit, 10 restarts, n = {n}", partial(plain_fit, n, sets)) for n, sets in sizes.items())
    yield from (Timing(f"SHGP target of 20, N_s = {n}", partial(shgp_fit, n, n_sets)) for n in sources)
    yield from (Timing(f"HGP, 10 restarts, N_s = {n} + 20", partial(hgp_fit, n)) for n in sources)
    yield from (Timing(f"evidence, compiled, n = {n}", partial(compiled_evidence, n, 5 * rounds)) for n in sizes)
    yield from (Timing(f"fits as they come, n = {n}", partial(as_they_come, n, 3 * k)) for n, k in sizes.items())
    yield Timing("WSGP evidence, 10 × 60 + 20", partial(wsgp_evaluation, 5 * rounds))
    yield from (Timing(f"prediction, {n} × 30 + 20", partial(prediction, n, 5 * rounds)) for n in (1, 3, 10, 30))
    yield Timing("50 fits in lockstep, N_t = 10", partial(lockstep, rounds))
    yield Timing("import headstart", partial(import_time, 5))


def _figures(milliseconds: dict[str, float]) -> dict[str, dict[str, float]]:
    return {name: {"ms": value} for name, value in milliseconds.items()}


def _with_likelihoods(milliseconds: dict[str, float], ours: list[float], theirs: list[float]) -> Figures:
    """The times, and how far our log p(y) is above the other's on the same data sets."""
    gains, found = [a - b for a, b in zip(ours, theirs, strict=True)], _figures(milliseconds)
    found["headstart"] |= {"log p, least": min(gains), "log p, median": median(gains)}
    return found


def smooth_data(n: int, generator: torch.Generator, shift: float = 0.0) -> Dataset:
    """A smooth function of six inputs with a tenth of noise, standardised."""
    X = torch.rand(n, D, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * X + shift).sum(-1) + X[:, 0] * X[:, 1] + 0.1 * torch.randn(n, generator=generator).double()
    return Dataset(X, (y - y.mean()) / y.std())


def _set_gp(model: Any, theta: Tensor) -> None:
    """θ = [log lengthscale, log outputscale, log noise] into a rival."""
    kernel = model.covar_module
    kernel = kernel.kernel if isinstance(kernel, rivals.FixedCovariance) else kernel
    kernel.base_kernel.lengthscale = theta[:D].exp()
    kernel.outputscale = theta[D].exp()
    model.likelihood.noise = theta[D + 1].exp()


def over_data_sets(
    engines: Callable[[int], dict[str, Callable[[], Any]]], n_sets: int
) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Median milliseconds over data sets 0, 1, …, one turn of every engine on each, and all results.

    How many steps a fit takes depends on its data: one data set more often says more than one more repetition.
    """
    turns = [take_turns(engines(i), 1) for i in range(n_sets)]
    names = turns[0][0]
    return {name: median(times[name] for times, _ in turns) for name in names}, [results for _, results in turns]


def _evidence(X: Tensor, y: Tensor, kernel: Kernel = Kernel.RBF) -> GaussianEvidence:
    return GaussianEvidence(X[None], y[None], None, kernel=kernel, residual=False, free_offset=False)


def plain_fit(n: int, n_sets: int) -> Figures:
    """Ten restarts of a plain GP."""

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        data = smooth_data(n, torch.Generator().manual_seed(n + 1000 * i))
        evidence = _evidence(data.X, data.y)
        starts = evidence.layout.starts(Starts.SOFTPLUS, PAPER.restarts, torch.Generator().manual_seed(0))
        return {
            "headstart": lambda: fit(evidence, PAPER, seed=0, task="", batch_shape=NONE)[1],
            "botorch": lambda: rivals.fit_from_starts(
                lambda: rivals.single_task(data.X, data.y, rivals.scaled_rbf(D)), _set_gp, starts
            ),
            "botorch, softplus": lambda: rivals.fit_from_starts(
                lambda: rivals.single_task(data.X, data.y, rivals.softplus_rbf(D), softplus=True), _set_gp, starts
            ),
            "botorch default, 1 fit": lambda: rivals.fit_default(data.X, data.y),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    reached = [-n * float(r["headstart"].objective.min()) for r in results]
    return _with_likelihoods(milliseconds, reached, [r["botorch"] for r in results])


def shgp_fit(n_source: int, n_sets: int) -> Figures:
    """The target of SHGP: everything ``condition`` does, against BoTorch's fit of the same target evidence alone."""
    model = SHGP.paper().using(fit=PAPER)

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        generator = torch.Generator().manual_seed(n_source + 1000 * i)
        quick = model.using(fit=replace(PAPER, restarts=1)).learn([smooth_data(n_source, generator)])
        assert isinstance(quick, SequentialPrior)
        prior = replace(quick, model=model)
        target = smooth_data(20, generator, 0.3)
        at = prior.below.at(target.X)
        residual = target.y - at.mean
        scale = residual.std(correction=0)
        y, C = (residual - residual.mean()) / scale, prior.below.cov(at, at) / scale**2
        evidence = GaussianEvidence(
            target.X[None], y[None], C[None], kernel=Kernel.RBF, residual=False, free_offset=False
        )
        starts = evidence.layout.starts(Starts.SOFTPLUS, PAPER.restarts, torch.Generator().manual_seed(0))
        return {
            "headstart": lambda: prior.condition(target, seed=0).fit_reports[-1],
            "botorch": lambda: rivals.fit_from_starts(
                lambda: rivals.single_task(target.X, y, rivals.FixedCovariance(rivals.scaled_rbf(D), C)),
                _set_gp,
                starts,
            ),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    ours = [-20 * float(r["headstart"].objective.min()) for r in results]
    return _with_likelihoods(milliseconds, ours, [r["botorch"] for r in results])


def hgp_fit(n_source: int) -> Figures:
    """All of HGP: ten restarts of the joint evidence of a source and 20 target points, once.

    BoTorch takes minutes; its model has one noise for both tasks.
    """
    generator = torch.Generator().manual_seed(n_source)
    source, target = smooth_data(n_source, generator), smooth_data(20, generator, 0.3)
    X = torch.cat([source.X, target.X])
    task = torch.cat([torch.zeros(n_source, 1), torch.ones(20, 1)]).double()
    y = torch.cat([source.y, target.y])
    evidence = DenseEvidence([source, target], coregion=HGP.coregion, kernel=Kernel.RBF, free_offset=False)
    starts = evidence.layout.starts(Starts.SOFTPLUS, PAPER.restarts, torch.Generator().manual_seed(0))

    def set_start(model: Any, theta: Tensor) -> None:
        values = evidence.layout.named(theta)
        ell = values["lengthscale"].reshape(2, D)
        joint = model.covar_module
        joint.source.base_kernel.lengthscale, joint.residual.base_kernel.lengthscale = ell
        joint.source.outputscale, joint.residual.outputscale = values["outputscale"], values["residual_outputscale"]
        model.likelihood.noise = values["noise_var"].mean()

    milliseconds, results = take_turns(
        {
            "headstart": lambda: fit(evidence, PAPER, seed=0, task="", batch_shape=NONE),
            "botorch": lambda: rivals.fit_from_starts(
                lambda: rivals.single_task(torch.cat([X, task], dim=-1), y, rivals.HierarchicalKernel(D)),
                set_start,
                starts,
            ),
        },
        1,
    )
    ours = -len(y) * float(results["headstart"][1].objective.min())
    return _with_likelihoods(milliseconds, [ours], [results["botorch"]])


def wsgp_evaluation(rounds: int) -> Figures:
    """One batch of ten evaluations of WSGP's evidence: arrow form against a dense matrix with autograd."""
    generator = torch.Generator().manual_seed(0)
    tasks = [*(smooth_data(60, generator, 0.1 * i) for i in range(10)), smooth_data(20, generator, 0.5)]
    arrow = ArrowEvidence(tasks, kernel=Kernel.RBF, free_offset=False)
    dense = DenseEvidence(tasks, coregion=WeightedSource(), kernel=Kernel.RBF, free_offset=False)
    theta = arrow.layout.starts(Starts.PRIOR, 10, generator)
    items = torch.zeros(10, dtype=torch.int64)
    X = torch.cat([t.X for t in tasks])
    y = torch.cat([t.y for t in tasks])
    of = torch.cat([torch.full((t.n,), i) for i, t in enumerate(tasks)])

    def autograd() -> Tensor:
        leaf = theta.clone().requires_grad_(True)
        ell, values, noise = dense.named(leaf)
        W = WeightedSource().W(values, len(tasks))
        K = torch.diag_embed(noise[:, of])
        for nu in range(len(tasks)):
            Z = X / ell[:, nu].unsqueeze(-2)
            K = K + W[:, nu][:, of[:, None], of[None, :]] * torch.exp(-0.5 * torch.cdist(Z, Z).square())
        L = torch.linalg.cholesky(K)
        z = torch.linalg.solve_triangular(L, y.expand(10, -1).unsqueeze(-1), upper=False)
        value = 0.5 * z.square().sum((-2, -1)) + L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        value.sum().backward()
        assert leaf.grad is not None
        return leaf.grad

    milliseconds, _ = take_turns(
        {
            "headstart": lambda: arrow.evaluate(theta, items)[1],
            "dense autograd": autograd,
            "headstart dense": lambda: dense.evaluate(theta, items)[1],
        },
        rounds,
    )
    return _figures(milliseconds)


def prediction(n_sources: int, rounds: int) -> Figures:
    """Mean and variance at 1000 points, given so many sources of 30 points."""
    X = torch.rand(1000, D, dtype=torch.float64)
    generator = torch.Generator().manual_seed(n_sources)
    sources = [smooth_data(30, generator, 0.05 * i) for i in range(n_sources)]
    target, fast = smooth_data(20, generator, 0.5), FitOptions(restarts=1, max_iterations=20)
    models = {
        name: model.using(fit=fast).learn(sources).condition(target)
        for name, model in (("SHGP", SHGP), ("BHGP", BHGP), ("MHGP", MHGP))
    }
    return _figures(take_turns({name: partial(model.predict, X) for name, model in models.items()}, rounds)[0])


def lockstep(rounds: int) -> Figures:
    """Fifty SHGP targets of ten points with ten restarts each: together, and one by one."""
    generator = torch.Generator().manual_seed(0)
    tasks = [smooth_data(10, generator, 0.1 * i) for i in range(50)]
    X, y = torch.stack([t.X for t in tasks]), torch.stack([t.y for t in tasks])

    def one(X: Tensor, y: Tensor) -> Tensor:
        evidence = GaussianEvidence(X, y, None, kernel=Kernel.RBF, residual=False, free_offset=True)
        return fit(evidence, PAPER, seed=0, task="", batch_shape=X.shape[:1])[0]

    milliseconds, _ = take_turns(
        {
            "headstart": lambda: one(X, y),
            "one by one": lambda: [one(X[i : i + 1], y[i : i + 1]) for i in range(len(X))],
        },
        rounds,
    )
    return _figures(milliseconds)


def import_time(rounds: int) -> Figures:
    """Starting Python with ``import headstart``, less starting Python."""

    def run(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    bare, ours = zip(*[(run("pass"), run("import headstart")) for _ in range(max(3, rounds))], strict=True)
    return {"headstart": {"ms": 1e3 * (median(ours) - median(bare))}}


def compiled_evidence(n: int, rounds: int) -> Figures:
    """One batch of ten evaluations of a plain evidence and its gradient: compiled, and with torch."""
    data = smooth_data(n, torch.Generator().manual_seed(n))
    evidence = _evidence(data.X, data.y, Kernel.MATERN52)
    theta = evidence.layout.starts(Starts.PRIOR, _ROWS, torch.Generator().manual_seed(0))
    items, repeats = torch.zeros(_ROWS, dtype=torch.int64), max(1, 20_000 // n**2)

    def repeated(evaluate: Callable[..., Any]) -> Any:
        with torch.inference_mode():
            return [evaluate(theta, items) for _ in range(repeats)][-1]

    milliseconds, _ = take_turns(
        {
            "headstart": lambda: repeated(evidence.evaluate),
            "torch": lambda: repeated(evidence.evaluate_by_torch),
        },
        rounds,
    )
    milliseconds = {name: value / repeats for name, value in milliseconds.items()}
    return _figures(milliseconds)


def _data(n: int, i: int) -> tuple[Tensor, Tensor]:
    """Functions of two to eight inputs that are smooth, rough, noisy, exact, of two inputs alone, or with a step."""
    generator = torch.Generator().manual_seed(1000 * i + n)
    X = torch.rand(n, 2 + (3 * i) % 7, generator=generator, dtype=torch.float64)
    w = 2 * torch.rand(X.shape[-1], generator=generator, dtype=torch.float64)
    error = torch.randn(n, generator=generator, dtype=torch.float64)
    y = [
        torch.sin(4 * X * w).sum(-1) + X[:, 0] * X[:, -1] + 0.1 * error,
        torch.sin(15 * X * w).sum(-1) + 0.05 * error,
        torch.sin(4 * X * w).sum(-1) + error,
        torch.exp(-3 * ((X - 0.4).square() * w).sum(-1)),
        torch.sin(6 * X[:, 0]) + (X[:, 1] - 0.5).square() + 0.05 * error,
        (X[:, 0] > 0.5) + X.sum(-1) + 0.02 * error,
    ][i % 6]
    return X, (y - y.mean()) / y.std()


def as_they_come(n: int, n_sets: int) -> Figures:
    """The paper's ten restarts and our defaults against the time of one default fit of BoTorch's.

    The likelihood is compared with one fit by BoTorch of the same model, inside the same bounds.
    """

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        X, y = _data(n, i)
        evidence = _evidence(X, y)
        same = rivals.single_task(X, y, rivals.scaled_rbf(X.shape[-1]))
        return {
            "headstart": lambda: fit(evidence, PAPER, seed=0, task="", batch_shape=NONE)[1],
            "headstart, MAP": lambda: fit(evidence, FitOptions(), seed=0, task="", batch_shape=NONE)[1],
            "botorch, 1 fit": lambda: rivals.fit_from_starts(lambda: same, lambda *_: None, torch.zeros(1)),
            "botorch default, 1 fit": lambda: rivals.fit_default(X, y),
        }

    milliseconds, results = over_data_sets(engines, n_sets)
    reached = [-n * float(r["headstart"].objective.min()) for r in results]
    return _with_likelihoods(milliseconds, reached, [r["botorch, 1 fit"] for r in results])
