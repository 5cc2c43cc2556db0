"""What the speed benchmark times, one function per line of its table."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.speed import rivals
from benchmarks.speed.rows import Likelihoods, Row
from headstart.data.dataset import Dataset
from headstart.gp.evidence import GaussianEvidence
from headstart.gp.fit import FitOptions, fit
from headstart.gp.hyperparameters import Starts
from headstart.gp.kernels import Kernel
from headstart.models.family import BHGP, HGP, MHGP, SHGP
from headstart.models.joint.coregion import WeightedSource
from headstart.models.joint.evidence import ArrowEvidence, DenseEvidence
from headstart.models.sequential import SequentialPrior

D = 6
PAPER = FitOptions.paper()
NONE = torch.Size()


def take_turns(engines: dict[str, Callable[[], Any]], rounds: int) -> tuple[dict[str, float], dict[str, Any]]:
    """Median CPU milliseconds of every engine over the rounds, one after the other in each, and the last results."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, run in engines.items():
            begin = time.process_time()
            results[name] = run()
            times[name].append(time.process_time() - begin)
    return {name: 1e3 * median(values) for name, values in times.items()}, results


def smooth_data(n: int, generator: torch.Generator, shift: float = 0.0) -> Dataset:
    """A smooth function of six inputs with a tenth of noise, standardised."""
    X = torch.rand(n, D, generator=generator, dtype=torch.float64)
    y = torch.sin(4 * X + shift).sum(-1) + X[:, 0] * X[:, 1] + 0.1 * torch.randn(n, generator=generator).double()
    return Dataset(X, (y - y.mean()) / y.std())


def floor_ms(n: int) -> float:
    """Milliseconds of one Cholesky factorisation and inversion: no evaluation of the evidence can do without."""
    A = torch.rand(n, n, dtype=torch.float64)
    K = A @ A.mT + n * torch.eye(n, dtype=torch.float64)
    repeats = max(5, int(3e8 / n**3))
    begin = time.process_time()
    for _ in range(repeats):
        torch.cholesky_inverse(torch.linalg.cholesky_ex(K)[0])
    return 1e3 * (time.process_time() - begin) / repeats


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


def plain_fit(n: int, n_sets: int, required: float) -> Row:
    """Ten restarts of a plain GP."""

    def engines(i: int) -> dict[str, Callable[[], Any]]:
        data = smooth_data(n, torch.Generator().manual_seed(n + 1000 * i))
        evidence = GaussianEvidence(
            data.X[None], data.y[None], None, kernel=Kernel.RBF, residual=False, free_offset=False
        )
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
    reports = [r["headstart"] for r in results]
    milliseconds["floor"] = floor_ms(n) * median(int(report.evaluations.sum()) for report in reports)
    reached = [-n * float(r.objective.min()) for r in reports]
    log_p = Likelihoods.compared(reached, [r["botorch"] for r in results])
    return Row("GP fit, 10 restarts", f"n = {n}", milliseconds, _ratio(milliseconds), required, str(log_p), log_p)


def _ratio(milliseconds: dict[str, float]) -> float:
    return milliseconds["botorch"] / milliseconds["headstart"]


def shgp_fit(n_source: int, n_sets: int) -> Row:
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
    log_p = Likelihoods.compared(ours, [r["botorch"] for r in results])
    what, size = "SHGP target, N_t = 20", f"N_s = {n_source}"
    return Row(what, size, milliseconds, _ratio(milliseconds), 40.0, str(log_p), log_p)


def hgp_fit(n_source: int, rounds: int) -> Row:
    """All of HGP: ten restarts of the joint evidence of a source and 20 target points."""
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
        rounds,
    )
    ours = -len(y) * float(results["headstart"][1].objective.min())
    note = f"log p: {ours:.4f} against {results['botorch']:.4f} (theirs: one noise for both tasks)"
    return Row("HGP, 10 restarts", f"N_s = {n_source} + 20", milliseconds, _ratio(milliseconds), 4.0, note)


def wsgp_evaluation(rounds: int) -> Row:
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

    milliseconds, results = take_turns(
        {
            "headstart": lambda: arrow.evaluate(theta, items)[1],
            "botorch": autograd,
            "headstart dense": lambda: dense.evaluate(theta, items)[1],
        },
        rounds,
    )
    gap = float((results["headstart"] - results["botorch"]).abs().max())
    row = Row("WSGP evidence and gradient", "10 × 60 + 20", milliseconds, _ratio(milliseconds), 20.0)
    milliseconds["dense autograd"] = milliseconds.pop("botorch")
    return replace(row, note=f"gradients agree to {gap:.0e}")


def prediction(rounds: int) -> list[Row]:
    """Mean and variance at 1000 points with 1, 3, 10 and 30 sources of 30 points, and how the cost grows."""
    rows = []
    X = torch.rand(1000, D, dtype=torch.float64)
    seen: dict[str, dict[int, float]] = {}
    for n_sources in (1, 3, 10, 30):
        generator = torch.Generator().manual_seed(n_sources)
        sources = [smooth_data(30, generator, 0.05 * i) for i in range(n_sources)]
        target = smooth_data(20, generator, 0.5)
        fast = FitOptions(restarts=1, max_iterations=20)
        models = {
            name: model.using(fit=fast).learn(sources).condition(target)
            for name, model in (("SHGP", SHGP), ("BHGP", BHGP), ("MHGP", MHGP))
        }
        milliseconds, _ = take_turns({name: partial(model.predict, X) for name, model in models.items()}, rounds)
        for name, value in milliseconds.items():
            seen.setdefault(name, {})[n_sources] = value
        rows.append(Row("prediction at 1000 points", f"{n_sources} × 30 + 20", milliseconds, None, None))
    growth = {name: values[30] / values[3] for name, values in seen.items()}
    worst = max(growth["SHGP"], growth["BHGP"])
    note = "times " + ", ".join(f"{name} {value:.0f}" for name, value in growth.items()) + " (at most 120 asked for)"
    rows.append(Row("from 3 to 30 sources", "10 × the points", {}, 120 / worst, 1.0, note))
    return rows


def lockstep(rounds: int) -> Row:
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
    ratio = milliseconds["one by one"] / milliseconds["headstart"]
    return Row("lockstep of 50 fits", "N_t = 10, 10 restarts", milliseconds, ratio, 3.0)


def import_time(rounds: int) -> Row:
    """Starting Python with ``import headstart``, less starting Python."""

    def run(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    bare, ours = zip(*[(run("pass"), run("import headstart")) for _ in range(max(3, rounds))], strict=True)
    extra = 1e3 * (median(ours) - median(bare))
    return Row("import headstart", "", {"headstart": extra}, 300 / max(extra, 1e-9), 1.0, "at most 300 ms asked for")
