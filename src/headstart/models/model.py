"""The three verbs of every model: ``learn`` the sources, ``condition`` on the target, ask the ``posterior``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from headstart.data.bounds import Seen
from headstart.data.dataset import Dataset, require_compatible, require_unit_cube, task_name
from headstart.data.units import OutputMap, OutputUnits
from headstart.data.warp import Warp
from headstart.errors import InputError
from headstart.gp.fit import FitOptions, FitReport, Seed
from headstart.gp.kernels import Kernel
from headstart.models.learning import LearnContext, require_n_jobs
from headstart.models.params import ModelParams
from headstart.models.posterior import TransferPosterior
from headstart.models.refits import TargetCache, at_last_refit, refit_size


@dataclass(frozen=True, kw_only=True)
class Prior(ABC):
    """What was learnt from the sources, once. Conditioning on the target reuses it at every step.

    Args:
        model: The model that learnt it.
        sources: The sources as the model sees them, behind their output maps.
        fit_reports: How the sources' hyperparameters were found; empty where they are only learnt with the target.
        warp: The map of a target of which nothing is known yet; None where values are taken as they are.
        outliers: Which values of every source were pulled in.
        seen: The range of the sources' results as measured.
    """

    model: TransferModel
    sources: tuple[Dataset, ...]
    fit_reports: tuple[FitReport, ...] = ()
    warp: Warp | None = None
    outliers: tuple[Bool[Tensor, "*b _"], ...] = ()
    seen: Seen | None = None
    _cache: TargetCache = field(default_factory=TargetCache, repr=False, compare=False)

    def condition(self, target: Dataset | None = None, *, seed: Seed = 0) -> TransferPosterior:
        """The target's posterior.

        Args:
            target: The target's observations; without any it is the zero-shot prediction.
            seed: Where random numbers of the fit come from.

        Returns:
            A BoTorch model in the user's units.

        Raises:
            InputError: The target does not fit the sources, or lies outside the unit cube.
        """
        if target is None:
            if not self.sources:
                raise InputError(
                    "With no sources the target must be given: Dataset.empty(d) says how many inputs it has."
                )
            like = self.sources[0]
            target = Dataset.empty(like.d, batch_shape=like.batch_shape, device=like.X.device)
        require_compatible(self.sources, target)
        self.model.require_known_batches([target])
        if not target.categories and self.sources:
            target = replace(target, categories=self.sources[0].categories)
        if self.model.fit.unit_cube:
            require_unit_cube(target, "the target")
        with torch.no_grad():
            warp = self.warp_of(target)
            inward = target if warp is None else warp.task_inward(target, refit_size(target.n))
            posterior = self._condition(inward, seed)
            posterior = posterior if warp is None else posterior._seen_through(warp, target.y)
            seen = Seen.of([target], self.seen)
            return posterior._with_facts(**_facts_of(target), past_bests=self._past_bests(), seen=seen)

    def _past_bests(self) -> Float[Tensor, "*b s d"] | None:
        """The best point of every source; None where some source has none."""
        if not self.model.needs_sources or not all(source.n for source in self.sources):
            return None
        best = [source.y.argmin(-1)[..., None, None] for source in self.sources]
        rows = [s.X.gather(-2, i.expand(*i.shape[:-1], s.d)) for s, i in zip(self.sources, best, strict=True)]
        return torch.cat(rows, dim=-2)

    def warp_of(self, target: Dataset) -> Warp | None:
        """The output map of a target with these data.

        Args:
            target: The target as measured.

        Returns:
            The map; None where values are taken as they are.
        """
        if self.warp is not None:
            return self.warp.moved_to(target)
        if self.model.output_map is not OutputMap.LEARNT:
            return None
        # of a long target it is found anew when the hyperparameters are
        return Warp.of_target(target.head(refit_size(target.n)))

    def inward(self, target: Dataset) -> Dataset:
        """The target as the model sees it.

        Args:
            target: The target as measured.

        Returns:
            Its values behind the output map.
        """
        warp = self.warp_of(target)
        return target if warp is None else warp.task_inward(target, refit_size(target.n))

    def _condition(self, target: Dataset, seed: Seed) -> TransferPosterior:
        """The posterior of a target behind its map: with the hyperparameters of its last refit, which is cached."""
        return at_last_refit(self._fitted, target, seed, self._cache)

    def _fitted(self, target: Dataset, seed: Seed) -> TransferPosterior:
        """The same, with hyperparameters found from all of the target's results."""
        raise NotImplementedError


def _facts_of(target: Dataset) -> dict[str, Any]:
    return {name: getattr(target, name) for name in ("error_var", "batch", "present", "drift")}


def observed(posterior: TransferPosterior) -> Dataset:
    """The target's data that a posterior knows, in the user's units.

    What is fantasised has no known error, and is of the present batch.
    """
    X, y, facts = posterior.train_inputs[0], posterior.train_targets, posterior._outcome
    error_var, batch, now = facts.error_var, facts.batch, facts.present
    if error_var is not None:
        error_var = _with_rest(error_var, torch.zeros_like(y))
    if batch is not None and now is not None:
        now = now.expand(y.shape[:-1])
        batch = _with_rest(batch, now.unsqueeze(-1).expand(y.shape))
    return Dataset(X, y, error_var=error_var, batch=batch, present=now, drift=facts.drift)


def _with_rest(first: Tensor, every: Tensor) -> Tensor:
    """``every``, but for its first values."""
    n = first.shape[-1]
    return torch.cat([first.expand(*every.shape[:-1], n), every[..., n:]], dim=-1)


_KINDS = (("kernel", Kernel), ("fit", FitOptions), ("units", OutputUnits), ("output_map", OutputMap))


@dataclass(frozen=True, kw_only=True)
class TransferModel(ABC):
    """A way of training and a choice of W, with the options every model has.

    Args:
        kernel: Matérn-5/2, or RBF, the paper's.
        fit: How hyperparameters are found.
        units: Where the model's output units come from.
        output_map: Whether outputs go through a monotone map first.
    """

    kernel: Kernel = Kernel.MATERN52
    fit: FitOptions = field(default_factory=FitOptions)
    units: OutputUnits = OutputUnits.SHARED
    output_map: OutputMap = OutputMap.LEARNT

    needs_sources = True
    no_shifts = ""  # why the model knows no shifts between batches, if it does not
    paper_units = OutputUnits.PER_LEVEL

    def __post_init__(self) -> None:
        """Check the kinds of the options."""
        for name, kind in _KINDS:
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} must be a {kind.__name__}, but it is {getattr(self, name)!r}.")

    def using(self, **options: Any) -> Self:
        """The same model with other options: ``SHGP.using(kernel=Kernel.MATERN52)``.

        Args:
            options: Fields of the model and their new values.

        Returns:
            A model of the same class.
        """
        return replace(self, **options)

    def require_known_batches(self, tasks: Sequence[Dataset]) -> None:
        """Raise an ``InputError`` where rows have shifts in common and the model does not know of such.

        Args:
            tasks: The tasks that it is learnt from.
        """
        shifted = [task for task in tasks if task.has_shifts]
        why = self.no_shifts
        if not why and self.units is OutputUnits.PER_LEVEL:
            why = "with OutputUnits.PER_LEVEL no task has an offset, beside which shifts could be found"
        if shifted and why:
            what = f"data set {shifted[0].name!r}" if shifted[0].name else "a data set"
            raise InputError(
                f"{type(self).__name__} knows no shifts between batches ({why}), but {what} has rows of several. Take "
                "AUTO, GPBO, a chain or a star with OutputUnits.SHARED, or leave batch out: shifts then count as noise."
            )

    def anywhere(self) -> Self:
        """The same model for sources that were also run outside the present ranges, and so outside the unit cube.

        Returns:
            A model that takes inputs outside the unit cube.
        """
        return self.using(fit=replace(self.fit, unit_cube=False))

    def paper(self) -> Self:
        """The same model as the paper trained it: RBF, likelihood, softplus starts, standardised residuals.

        Returns:
            A model with those options, and without an output map.
        """
        return self.using(kernel=Kernel.RBF, fit=FitOptions.paper(), units=self.paper_units, output_map=OutputMap.NONE)

    def learn(
        self,
        sources: Sequence[Dataset] = (),
        *,
        seed: Seed = 0,
        n_jobs: int | str = 1,
        context: LearnContext | None = None,
    ) -> Prior:
        """Everything the sources can teach before the target's first observation.

        Args:
            sources: The data of related tasks, one ``Dataset`` each, in the unit cube.
            seed: An integer or a generator for the starting points of the fits.
            n_jobs: How many processes fit sources that do not rest on each other, where that saves some seconds; −1 is
                one for every processor, "ray" the Ray cluster that the program is connected to. The result is the same.
            context: A cache of fits, the processes, a device, and who is told how far it is; then ``n_jobs`` is not
                looked at.

        Returns:
            What was learnt, to be conditioned on the target.

        Raises:
            InputError: Sources are missing, or do not fit together.
        """
        context = LearnContext(n_jobs=require_n_jobs(n_jobs)) if context is None else context
        if isinstance(sources, Dataset):
            raise InputError("sources must be a list of data sets, but it is one: put it in brackets.")
        sources = tuple(sources)
        if self.needs_sources and not sources:
            raise InputError(
                f"{type(self).__name__} needs at least one source, but sources is empty. Without any, use GPBO."
            )
        require_compatible(sources, None)
        self.require_known_batches(sources)
        if self.fit.unit_cube:
            for i, source in enumerate(sources):
                require_unit_cube(source, task_name(source, i))
        with torch.no_grad():
            if not self.needs_sources:
                return self._learn(sources, seed, context)
            seen = Seen.of(sources)
            if self.output_map is OutputMap.NONE:
                return replace(self._learn(sources, seed, context), seen=seen)
            maps, warp = Warp.of_sources(sources)
            inward = tuple(own.task_inward(source) for own, source in zip(maps, sources, strict=True))
            outliers = tuple(own.outliers(source) for own, source in zip(maps, sources, strict=True))
            return replace(self._learn(inward, seed, context), warp=warp, outliers=outliers, seen=seen)

    @abstractmethod
    def _learn(self, sources: tuple[Dataset, ...], seed: Seed, context: LearnContext) -> Prior: ...

    def at(self, params: ModelParams, *, sources: Sequence[Dataset] = (), target: Dataset) -> TransferPosterior:
        """The posterior at given hyperparameters: nothing is fitted, and neither units nor output maps are applied.

        Args:
            params: Hyperparameters in the form that the model has (``TransferPosterior.hyperparameters``).
            sources: The sources; ``Prior.sources`` are those behind their maps.
            target: The target; ``Prior.inward(target)`` is the one behind its map.

        Returns:
            A BoTorch model in the units of the data.
        """
        require_compatible(tuple(sources), target)
        self.require_known_batches([*sources, target])
        with torch.no_grad():
            return self._at(params, tuple(sources), target)._with_facts(**_facts_of(target))

    @abstractmethod
    def _at(self, params: ModelParams, sources: tuple[Dataset, ...], target: Dataset) -> TransferPosterior: ...
