"""Small transfer problems for hypothesis, as frozen values, and how to ask a model and a dense formula about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st
from tests.problems import weighted_params
from tests.reference import dense
from tests.reference.answers import answer
from tests.reference.dense import Array, Gaussian, Level, Task

from headstart import ChainParams, Dataset, GPParams, Kernel, TransferModel, TransferPosterior, WeightedParams
from headstart.models.params import ModelParams

N_QUERIES = 4


def gp_params(level: Level) -> GPParams:
    """The package's form of a level."""
    return GPParams.of(
        lengthscale=level.lengthscale,
        outputscale=level.outputscale,
        noise_var=level.noise_var,
        offset=level.offset,
    )


def dataset(task: Task) -> Dataset:
    """The package's form of a task."""
    return Dataset(task.X, task.y)


@dataclass(frozen=True)
class Problem:
    """Tasks and a level of hyperparameters for each, the target last; the weights are WSGP's."""

    kernel: Kernel
    tasks: tuple[Task, ...]
    levels: tuple[Level, ...]
    weights: tuple[float, ...]
    Xq: Array

    @property
    def kind(self) -> dense.Kind:
        """The dense formulas' name of the kernel."""
        return "rbf" if self.kernel is Kernel.RBF else "matern52"

    @property
    def sources(self) -> list[Dataset]:
        """All tasks but the target."""
        return [dataset(task) for task in self.tasks[:-1]]

    @property
    def target(self) -> Dataset:
        """The last task."""
        return dataset(self.tasks[-1])

    @property
    def chain(self) -> ChainParams:
        """For GPBO (of one level), MHGP, SHGP, BHGP and HGP."""
        return ChainParams(tuple(gp_params(level) for level in self.levels))

    @property
    def star(self) -> WeightedParams:
        """For WSGP."""
        return weighted_params(self.chain.levels, self.weights)

    @property
    def dense(self) -> tuple[dense.Kind, tuple[Task, ...], tuple[Level, ...]]:
        """What every dense formula of a chain begins with."""
        return self.kind, self.tasks, self.levels

    def posterior(self, model: TransferModel, params: ModelParams | None = None) -> TransferPosterior:
        """The model at the problem's hyperparameters, those of a chain unless others are given."""
        at = self.chain if params is None else params
        return model.using(kernel=self.kernel).at(at, sources=self.sources, target=self.target)

    def ask(self, model: TransferModel, params: ModelParams | None = None) -> Gaussian:
        """The model's answer at X_q."""
        return answer(self.posterior(model, params), self.Xq)

    def first(self, n_tasks: int, Xq: Array | None = None) -> Problem:
        """Only the first tasks, the last of which is the target now."""
        Xq = self.Xq if Xq is None else Xq
        return replace(
            self, tasks=self.tasks[:n_tasks], levels=self.levels[:n_tasks], weights=self.weights[: n_tasks - 1], Xq=Xq
        )

    def last(self) -> Problem:
        """Only the target."""
        return replace(self, tasks=self.tasks[-1:], levels=self.levels[-1:], weights=())


def _steps(low: int, high: int, denominator: int) -> st.SearchStrategy[float]:
    """Numbers on a grid: short to read when a test fails, and repeated now and then."""
    return st.integers(low, high).map(lambda i: i / denominator)


def _points(n: int, d: int) -> st.SearchStrategy[Array]:
    rows = st.lists(st.tuples(*[_steps(0, 40, 40)] * d), min_size=n, max_size=n)
    return rows.map(lambda values: np.array(values, dtype=float).reshape(n, d))


def _task(n: int, d: int) -> st.SearchStrategy[Task]:
    y = st.lists(_steps(-30, 30, 10), min_size=n, max_size=n).map(lambda values: np.array(values, dtype=float))
    return st.builds(Task, X=_points(n, d), y=y)


def levels(d: int) -> st.SearchStrategy[Level]:
    """Hyperparameters of one process, neither tiny nor huge."""
    return st.builds(
        Level,
        lengthscale=st.tuples(*[_steps(2, 30, 20)] * d),
        outputscale=_steps(2, 40, 20),
        noise_var=_steps(1, 30, 100),
        offset=_steps(-20, 20, 20),
    )


@st.composite
def transfer_problems(
    draw: st.DrawFn, *, min_sources: int = 1, max_sources: int = 3, min_target: int = 0, max_target: int = 5
) -> Problem:
    """Sources of 1 to 6 points each, a target of 0 to 5, one or two inputs, either kernel."""
    d = draw(st.integers(1, 2))
    n_sources = draw(st.integers(min_sources, max_sources))
    sizes = [draw(st.integers(1, 6)) for _ in range(n_sources)] + [draw(st.integers(min_target, max_target))]
    return Problem(
        kernel=draw(st.sampled_from(Kernel)),
        tasks=tuple(draw(_task(n, d)) for n in sizes),
        levels=tuple(draw(levels(d)) for _ in sizes),
        weights=tuple(draw(_steps(0, 40, 20)) for _ in range(n_sources)),
        Xq=draw(_points(N_QUERIES, d)),
    )


def fixed_problem(sizes: Sequence[int], *, kernel: Kernel = Kernel.RBF, d: int = 1, seed: int = 0) -> Problem:
    """One unremarkable problem, for claims that something differs, and for averages over many draws."""
    rng = np.random.default_rng(seed)

    def level() -> Level:
        ell = tuple(rng.uniform(0.2, 0.6, d).tolist())
        return Level(ell, rng.uniform(0.5, 1.5), rng.uniform(0.02, 0.2), rng.uniform(-0.5, 0.5))

    return Problem(
        kernel=kernel,
        tasks=tuple(Task(rng.uniform(size=(n, d)), rng.normal(size=n)) for n in sizes),
        levels=tuple(level() for _ in sizes),
        weights=tuple(rng.uniform(0.3, 1.5, len(sizes) - 1).tolist()),
        Xq=rng.uniform(size=(N_QUERIES, d)),
    )


def assert_same(a: Gaussian, b: Gaussian, tolerance: float = 1e-9) -> None:
    """Means and covariances agree, relative to their own size where that is above one."""
    np.testing.assert_allclose(a.mean, b.mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a.cov, b.cov, rtol=tolerance, atol=tolerance)
