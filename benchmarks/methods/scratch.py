"""What other people use, from scratch.

    method       points                                                       on tables
    optuna-gp    Optuna's GPSampler with its defaults, asked and told         the free row nearest to what it asked for
    optuna-tpe   Optuna's TPESampler, the same                                the same
    botorch      2 (p + 1) Sobol points of p parameters, at most 8; then      the free row nearest to the Sobol point;
                 SingleTaskGP with its defaults and LogEI by optimize_acqf    then LogEI compared at all free rows
    gpbo-0.1     the plain process in an early state, never published         LogEI compared at all free rows
    best-past    the best row of every source in turn, then ``gpbo``          the free row nearest to it

The first four see no source. Optuna works with parameters of its own, BoTorch with the columns of X, in which a
category is one-hot; where there are categories or grids, ``optimize_acqf_mixed_alternating`` is its search.
Problems are done one after the other, each with random numbers of its own seed, so that a run is the same in any batch.
"""

from __future__ import annotations

import logging
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from benchmarks.methods.method import Choice, Proposer, Settings, predicting
from benchmarks.methods.model_method import ModelMethod
from benchmarks.problems.problem import Instance, stream
from headstart.data.dataset import Dataset
from headstart.data.ranges import Choices, DiscreteNumbers, FloatRange, IntRange
from headstart.data.space import Space
from headstart.data.units import OutputMap
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.errors import InputError, MissingExtraError
from headstart.gp.kernels import Kernel
from headstart.gp.threads import single_thread
from headstart.models.chain.layer import Layer
from headstart.models.family import GPBO
from headstart.models.posterior import FitResult, TransferPosterior

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution

_MOST_SOBOL = 8
_SEARCH: dict[str, Any] = {"q": 1, "num_restarts": 4, "raw_samples": 128}


def begin(name: str, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
    """The method of that name at work."""
    match name:
        case "optuna-gp" | "optuna-tpe":
            return _Optuna(name, instance, problem, seeds)
        case "botorch":
            return _BoTorch(instance, problem, seeds)
        case "gpbo-0.1":
            return _Gpbo01(instance, problem, seeds, settings)
        case "best-past":
            return _BestPast(instance, problem, seeds, settings)
    raise InputError(f"There is no rival {name!r}.")


def _seed(*key: object) -> int:
    return int(torch.randint(2**31, (), generator=stream(*key)))


def _nearest(search: Proposer, x: Float[Tensor, "P d"], allowed: Bool[Tensor, "P M"]) -> Int[Tensor, "P"]:
    """The free row of every problem that is nearest to its point."""
    assert search.instance.candidates is not None
    distance = torch.cdist(x.unsqueeze(-2), search.instance.candidates.X).squeeze(-2)
    return distance.masked_fill(~allowed, torch.inf).argmin(-1)


# ── Optuna ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Optuna(Proposer):
    """One study per problem."""

    def __init__(self, name: str, instance: Instance, problem: str, seeds: Sequence[int]) -> None:
        super().__init__(instance, problem, seeds)
        space = instance.space
        if space is None:
            space = Space.of({f"x{i}": FloatRange(0, 1) for i in range(instance.d)})
        self._space, self._distributions = space, optuna_distributions(space)
        with quietly():
            self._studies = [self._study(name, _seed(problem, seed, name)) for seed in seeds]
        self._asked: list[Trial] = []

    @staticmethod
    def _study(name: str, seed: int) -> Study:
        import optuna

        sampler = {"optuna-gp": optuna.samplers.GPSampler, "optuna-tpe": optuna.samplers.TPESampler}[name](seed=seed)
        return optuna.create_study(sampler=sampler)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """What the samplers ask for, having been told the last results."""
        started = time.process_time()
        with quietly(), single_thread():
            if target.n:
                self._tell(target, rows=allowed is not None)
            self._asked = [study.ask(self._distributions) for study in self._studies]
        x = self._space.encode([trial.params for trial in self._asked]).to(target.X.device)
        seconds = time.process_time() - started
        if allowed is None:
            return Choice(x, None, seconds, 0.0)
        return self.at_row(_nearest(self, x, allowed), seconds)

    def _tell(self, target: Dataset, *, rows: bool) -> None:
        """The last result: of the trial itself or, where a row stood in for it, of that row."""
        from optuna.trial import TrialState, create_trial

        values = target.y[:, -1].tolist()
        if not rows:
            for study, trial, value in zip(self._studies, self._asked, values, strict=True):
                study.tell(trial, value)
            return
        evaluated = self._space.decode(target.X[:, -1])
        for study, trial, value, params in zip(self._studies, self._asked, values, evaluated, strict=True):
            study.tell(trial, state=TrialState.FAIL)  # it was never run, and samplers pass it over
            study.add_trial(create_trial(value=value, params=params, distributions=self._distributions))


def optuna_distributions(space: Space) -> dict[str, BaseDistribution]:
    """The parameters as Optuna describes them."""
    try:
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
    except ImportError as error:
        raise MissingExtraError(
            "optuna-gp and optuna-tpe are Optuna's, which is not installed: pip install optuna."
        ) from error
    found: dict[str, BaseDistribution] = {}
    for name, one in space.distributions.items():
        match one:
            case FloatRange():
                found[name] = FloatDistribution(one.low, one.high, log=one.log, step=one.step)
            case IntRange():
                found[name] = IntDistribution(one.low, one.high, log=one.log, step=one.step)
            case DiscreteNumbers():
                found[name] = CategoricalDistribution(one.values)
            case Choices():
                found[name] = CategoricalDistribution(one.choices)
            case _:
                found[name] = one
    return found


@contextmanager
def quietly() -> Iterator[None]:
    """Without Optuna's log and warnings; both are as they were afterwards."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with silence():
            yield
    finally:
        optuna.logging.set_verbosity(before)


# ── BoTorch ───────────────────────────────────────────────────────────────────────────────────────────────────────


class OneByOne(Proposer):
    """A method of others that works on one problem at a time, with torch's own generator and in one thread."""

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The choice of every problem, one after the other."""
        device = target.X.device
        points, fitting, choosing = [], 0.0, 0.0
        for i, seed in enumerate(self.seeds):
            begun = time.process_time()
            with torch.random.fork_rng(devices=[]), silence(), single_thread():
                torch.manual_seed(_seed(self.problem, seed, "botorch", target.n))
                free = None if allowed is None else allowed[i].cpu()
                fitted, point = self.choose(i, target.X[i].cpu(), target.y[i].cpu(), free)
                points.append(point)
            fitting, choosing = fitting + fitted - begun, choosing + time.process_time() - fitted
        chosen = torch.stack(points).to(device)
        return Choice(chosen, None, fitting, choosing) if allowed is None else self.at_row(chosen, fitting, choosing)

    @abstractmethod
    def choose(
        self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], free: Bool[Tensor, "M"] | None
    ) -> tuple[float, Tensor]:
        """The time at which the model was fitted, and the next point or, where rows are ``free``, the next row."""

    def best_of(self, value: Any, problem: int, free: Bool[Tensor, "M"]) -> Int[Tensor, ""]:
        """The free row with the highest value of the acquisition function."""
        assert self.instance.candidates is not None
        with torch.no_grad():
            values: Tensor = value(self.instance.candidates.X[problem].cpu().unsqueeze(-2))
        return values.masked_fill(~free, -torch.inf).argmax(-1)


def highest_in_cube(value: Any, d: int) -> Float[Tensor, "d"]:
    """The point of the unit cube where the acquisition function is highest."""
    from botorch.optim.optimize import optimize_acqf

    bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, d)
    point: Tensor = optimize_acqf(value, bounds=bounds, **_SEARCH)[0][0]
    return point


@contextmanager
def silence() -> Iterator[None]:
    """Without warnings and log lines below an error; both are as they were afterwards."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


class _BoTorch(OneByOne):
    """BoTorch's own loop."""

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int]) -> None:
        super().__init__(instance, problem, seeds)
        parameters = instance.d if instance.space is None else len(instance.space.axes)
        n = min(2 * (parameters + 1), _MOST_SOBOL)
        self._start = torch.stack([self.domain.spread(n, stream(problem, seed, "sobol")) for seed in seeds])

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """A Sobol point, or the one with the highest LogEI."""
        if target.n >= self._start.shape[1]:
            return super().propose(target, allowed)
        x = self._start[:, target.n].to(target.X.device)
        return Choice(x, None, 0.0, 0.0) if allowed is None else self.at_row(_nearest(self, x, allowed))

    def choose(
        self, problem: int, X: Float[Tensor, "n d"], y: Float[Tensor, "n"], free: Bool[Tensor, "M"] | None
    ) -> tuple[float, Tensor]:
        if free is None:
            return self._highest(X, y)
        value, fitted = _log_ei(X, y), time.process_time()
        return fitted, self.best_of(value, problem, free)

    def _highest(self, X: Float[Tensor, "n d"], y: Float[Tensor, "n"]) -> tuple[float, Float[Tensor, "d"]]:
        """The point of the domain with the highest LogEI, and when the model was fitted."""
        from botorch.optim.optimize_mixed import optimize_acqf_mixed_alternating

        space = self.instance.space
        if space is None:
            value, fitted = _log_ei(X, y), time.process_time()
            return fitted, highest_in_cube(value, self.domain.d)
        compact = _Compact(space)
        value, fitted = _log_ei(X, y, compact), time.process_time()
        z, _ = optimize_acqf_mixed_alternating(
            value,
            bounds=compact.bounds,
            cat_dims={i: list(range(axis.width)) for i, axis in compact.categories.items()},
            discrete_dims={i: axis.grid().flatten().tolist() for i, axis in compact.grids.items()},
            **_SEARCH,
        )
        return fitted, self.domain.snap(z if compact.transform is None else compact.transform.transform(z))[0]


class _Compact:
    """A space with one column per parameter, as BoTorch's mixed search wants it: a coordinate, or a level's number."""

    def __init__(self, space: Space) -> None:
        self._axes = [axis for axis in space.axes if axis.width]
        self.categories = {i: axis for i, axis in enumerate(self._axes) if axis.categorical}
        self.grids = {i: axis for i, axis in enumerate(self._axes) if not axis.categorical and axis.count is not None}
        ends = torch.tensor([[0.0, axis.width - 1.0 if axis.categorical else 1.0] for axis in self._axes]).double()
        for i, axis in self.grids.items():
            ends[i] = axis.grid()[[0, -1], 0]
        self.bounds = ends.T

    def of(self, X: Float[Tensor, "n d"]) -> Float[Tensor, "n p"]:
        """From the columns of the space."""
        blocks = [X[:, axis.columns] for axis in self._axes]
        columns = [b.argmax(-1) if a.categorical else b[:, 0] for a, b in zip(self._axes, blocks, strict=True)]
        return torch.stack([column.double() for column in columns], dim=-1)

    @cached_property
    def transform(self) -> Any:
        """To the columns of the space; None where these are the same."""
        from botorch.models.transforms.input import NumericToCategoricalEncoding

        if not self.categories:
            return None
        grids = {i: axis.grid() for i, axis in self.categories.items()}
        return NumericToCategoricalEncoding(
            dim=len(self._axes),
            categorical_features={i: len(grid) for i, grid in grids.items()},
            encoders={i: partial(torch.nn.functional.embedding, weight=grid) for i, grid in grids.items()},
        )


def _log_ei(X: Float[Tensor, "n d"], y: Float[Tensor, "n"], compact: _Compact | None = None) -> Any:
    """LogEI on the lowest y, of ``SingleTaskGP`` as it comes: its priors, its standardised outputs.

    With ``compact`` it is a function of the compact columns; the model is that of the space's own.
    """
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(X, y.unsqueeze(-1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    if compact is not None:  # fitting through the transform would apply it at every step
        fitted = model.state_dict()
        model = SingleTaskGP(compact.of(X), y.unsqueeze(-1), input_transform=compact.transform)
        model.load_state_dict(fitted)
        model.eval()
    return LogExpectedImprovement(model, best_f=y.min(), maximize=False)


# ── the best of the past ──────────────────────────────────────────────────────────────────────────────────────────


class _BestPast(Proposer):
    """Repeat what was best before, then go on without the past."""

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> None:
        super().__init__(instance, problem, seeds)
        self._then = ModelMethod("gpbo", GPBO).begin(instance, problem, seeds, settings)

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        """The best row of source number n as long as there is one."""
        if target.n >= len(self.instance.sources):
            return self._then.propose(target, allowed)
        source = self.instance.sources[target.n]
        x = source.X[torch.arange(len(self.seeds), device=source.X.device), source.y.argmin(-1)]
        return Choice(x, None, 0.0, 0.0) if allowed is None else self.at_row(_nearest(self, x, allowed))


# ── headstart 0.1 ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Gpbo01(Proposer):
    """The plain process as it was in headstart 0.1, to which gains are still compared.

    It begins with one random point. Its kernel is RBF with a lengthscale for every column, also for the levels of a
    category; outputs are standardised and nothing more; hyperparameters are the most probable ones; and an improvement
    is one of f itself, whatever the noise of a measurement.
    """

    def __init__(self, instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> None:
        super().__init__(instance, problem, seeds)
        model = settings.applied_to(GPBO)
        self._prior = model.using(kernel=Kernel.RBF, output_map=OutputMap.NONE, fit=replace(model.fit, draws=0)).learn()
        self._kind, self._beta = Acquisition(settings.acquisition), settings.beta

    def propose(self, target: Dataset, allowed: Bool[Tensor, "P M"] | None) -> Choice:
        if target.n == 0:
            return self.at_random(target, allowed)
        begin = time.process_time()
        posterior = self._prior.condition(Dataset(target.X, target.y), seed=target.n)
        fitted = time.process_time()
        noiseless = _without_noise(posterior)
        row = None
        if allowed is None:
            x = suggest(noiseless, domain=self.domain, kind=self._kind, beta=self._beta, seed=target.n)
        else:
            row = self.best_rows(noiseless, allowed, kind=self._kind, beta=self._beta)
            x = self.at_row(row).x
        seconds = (fitted - begin, time.process_time() - fitted)
        silent = torch.ones_like(posterior.blind) if target.n < 2 else None
        return Choice(x, row, *seconds, predicting(posterior, x, silent))


def _without_noise(posterior: TransferPosterior) -> TransferPosterior:
    """The same beliefs about f, for somebody who takes the next measurement to be exact, and has begun already."""
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    exact = replace(layer, params=replace(layer.params, noise_var=torch.zeros_like(layer.params.noise_var)))
    return TransferPosterior(exact, FitResult(posterior.units, posterior.hyperparameters), posterior.train_targets)
