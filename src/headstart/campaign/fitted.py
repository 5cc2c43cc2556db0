"""What a campaign's data say: a model of every outcome, learnt from the past files and the campaign's own results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.campaign.campaign import Campaign
from headstart.campaign.experiments import Experiment
from headstart.campaign.file import TOML, CampaignFile, ResultColumn
from headstart.campaign.toml.reading import wrong_at
from headstart.data.dataset import Dataset
from headstart.data.descriptors import Descriptors
from headstart.data.replicates import pool_replicates
from headstart.data.space import Space
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.models.device import CPU, ComputeDevice, device_from
from headstart.models.family import model_named
from headstart.models.learning import LearnContext, OnProgress, require_n_jobs
from headstart.models.model import Prior
from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
from headstart.models.posterior import TransferPosterior
from headstart.sources.alignment import (
    Alignment,
    Decision,
    align,
    any_result,
    outliers_in_words,
    own_outliers,
    split,
    with_outliers,
)
from headstart.sources.batches import Batches, in_batches
from headstart.sources.described import never_run
from headstart.sources.raw import RawTask, error_var

# Of 20 results 19 should lie in the intervals that are stated
LEVEL = 0.95
# A noise below this share of the model's unit (about the spread of a task) is none: repeating teaches nothing
_NO_NOISE = 1e-2
# Repeats show their own scatter if there are so many; below that it is left to the model, with all other results
_ENOUGH_REPEATS = 4
THIS = "this campaign"


_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])


class Range(NamedTuple, Generic[_Numbers]):
    """What is expected of one result or of many, in the user's units: the median, and the ends of a 95 % interval."""

    median: _Numbers
    low: _Numbers
    high: _Numbers

    @property
    def errors(self) -> NDArray[np.float64]:
        """How far the ends lie from the medians, below and above: what Matplotlib's error bars take."""
        return np.stack([self.median - self.low, self.high - self.median])


@dataclass(frozen=True, slots=True)
class Pooled:
    """A data set whose repeats are one row each, and the rows that are behind every one of them."""

    data: Dataset
    groups: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, data: Dataset) -> Pooled:
        """Repeats as their mean, with the error that it has, where errors are known or shown by enough repeats."""
        pooled, groups = pool_replicates(data)
        if data.error_var is not None or data.n - len(groups) >= _ENOUGH_REPEATS:
            return cls(pooled, groups)
        return cls(data, tuple((row,) for row in range(data.n)))

    def spread_out(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """What is said of the pooled rows, for the rows behind them."""
        every = np.zeros(sum(map(len, self.groups)), dtype=bool)
        for there, rows in zip(mask.tolist(), self.groups, strict=True):
            every[list(rows)] = there
        return every


@dataclass(frozen=True, slots=True)
class FittedOutcome:
    """The model of one outcome. Behind its sign smaller is better, and a limit an upper one."""

    campaign: Campaign
    column: ResultColumn
    alignment: Alignment  # of the past files that know it
    past: tuple[Pooled, ...]
    prior: Prior
    own: Pooled
    posterior: TransferPosterior

    @property
    def sign(self) -> float:
        """Turns the model's values into the user's."""
        return float(self.column.outcome.sign)

    @property
    def target(self) -> Dataset:
        """The campaign's own results, behind the sign."""
        return self.own.data

    @property
    def experiments(self) -> tuple[Experiment, ...]:
        """The campaign's experiments that have a result of it."""
        return self.campaign.measured(self.column.name)

    @property
    def values(self) -> NDArray[np.float64]:
        """Their results."""
        return np.array([e.results[self.column.name] for e in self.experiments], dtype=np.float64)

    @property
    def knows(self) -> bool:
        """Whether anything can be said about a result: from a past that is listened to, or from two results."""
        return not bool(self.posterior.knows_nothing)

    @property
    def deterministic(self) -> bool:
        """Whether results hardly scatter, compared with how much they vary."""
        return self.target.error_var is None and float(self.posterior.predictor.noise_var) < _NO_NOISE**2

    def expected(
        self, rows: Sequence[Mapping[str, Any]] | Float[Tensor, "m d"], *, measured: bool = False
    ) -> Range[NDArray[np.float64]] | None:
        """What is expected of the true values, or (``measured``) of results; None where nothing is known."""
        if not self.knows:
            return None
        X = rows if isinstance(rows, Tensor) else self.alignment.space.encode(rows)
        with torch.no_grad():
            found = self.posterior.quantiles(X, (0.5, 0.5 - LEVEL / 2, 0.5 + LEVEL / 2), noise=measured)
        median, one, other = (self.sign * part.numpy() for part in found)
        return Range(median, np.minimum(one, other), np.maximum(one, other))

    @property
    def outliers(self) -> NDArray[np.bool_]:
        """Which of the campaign's own results lie far from all others."""
        return self.own.spread_out(own_outliers(self.prior, self.target))

    @property
    def ordinary_past(self) -> tuple[tuple[pd.DataFrame, NDArray[np.float64]], ...]:
        """Settings and results of every past campaign that knows it, outliers left out."""
        masks = self.prior.outliers or [torch.zeros(one.data.n) > 0 for one in self.past]
        far = [one.spread_out(mask.numpy()) for one, mask in zip(self.past, masks, strict=True)]
        kept = [np.array(rows)[~mask] for rows, mask in zip(self.alignment.rows, far, strict=True)]
        return tuple(
            (task.rows.iloc[rows], task.y[rows]) for task, rows in zip(self.alignment.tasks, kept, strict=True)
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be looked at in the campaign's own results."""
        first = [self.experiments[rows[0]] for rows in self.own.groups]
        values, numbers = [e.results[self.column.name] for e in first], [e.number for e in first]
        far = outliers_in_words(self.prior, self.target, values, numbers, "row")
        which = f", {self.column.name}" if len(self.campaign.file.results) > 1 else ""
        return (f"{self.campaign.table.path}{which}: {far}",) if far else ()

    def scatter(self, row: Mapping[str, Any]) -> float:
        """The standard deviation of a measurement at these settings, in the user's units.

        Behind an output map it depends on how large the results are.
        """
        posterior = self.posterior
        with torch.no_grad():
            sd = posterior.predictor.noise_var.sqrt()
            middle = posterior.way.inward(posterior.quantile(self.alignment.space.encode([row]), 0.5, noise=False))
            return float((posterior.way.outward(middle + sd) - posterior.way.outward(middle - sd)).squeeze() / 2)


@dataclass(frozen=True, slots=True)
class Fitted:
    """The models of a campaign's outcomes, objectives first, in one space."""

    campaign: Campaign
    space: Space
    outcomes: tuple[FittedOutcome, ...]
    known: OutcomePosteriors
    device: ComputeDevice = CPU

    @property
    def first(self) -> FittedOutcome:
        """That of the first objective."""
        return self.outcomes[0]

    @property
    def goals(self) -> tuple[FittedOutcome, ...]:
        """Those of the objectives."""
        return self.outcomes[: len(self.campaign.file.outcomes.goals)]

    @property
    def knows(self) -> bool:
        """Whether anything can be said about any result."""
        return any(own.knows for own in self.outcomes)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided about the past files, each decision once."""
        return tuple(dict.fromkeys(decision for own in self.outcomes for decision in own.alignment.decisions))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be looked at."""
        warnings = [str(decision) for decision in self.decisions if decision.warning]
        return (*(remark for own in self.outcomes for remark in own.remarks), *warnings)

    def never_run(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """Sentences on categories of a row that nobody has tried yet, and what they are placed by."""
        seen = [data for own in self.outcomes for data in (*own.alignment.datasets, own.target)]
        return never_run(self.space, {name: row[name] for name in self.space.names}, seen)


def align_tasks(
    past: Sequence[RawTask], file: CampaignFile, descriptors: Mapping[str, Descriptors] | None = None
) -> dict[str, Alignment]:
    """The past files in the campaign's space: for every outcome those that know it, behind its sign."""
    distributions = {p.name: p.distribution() for p in file.parameters}
    before = {p.name: p.before for p in file.parameters if p.before is not None}
    found = align(
        past,
        distributions,
        fill=before | dict(file.fill),
        descriptors=descriptors,
        known={task.name: any_result(task.objectives) for task in past},
    )
    return split(found, {task.name: task.objectives for task in past}, file.outcomes)


@single_thread()
def fit_campaign(
    campaign: Campaign,
    *,
    seed: int = 0,
    model: str | None = None,
    jobs: int | None = None,
    device: str | None = None,
    told: OnProgress | None = None,
) -> Fitted:
    """Learn the past files, then the campaign's results, as the file says or otherwise; ``told`` is how far it is."""
    file, toml = campaign.file, str(campaign.folder / TOML)
    where = "model" if model else toml
    n_jobs = require_n_jobs(file.jobs, f"{toml}: jobs") if jobs is None else require_n_jobs(jobs, "jobs")
    if file.batch and (why := model_named(model or file.model, where=where).no_shifts):
        wrong = (
            f"model {model or file.model} knows no shifts between batches: {why}. Take another one, such as auto, or "
            f'delete batch = "{file.batch}": shifts then count as noise.'
        )
        raise InputError(wrong) if model else wrong_at(campaign.folder / TOML, "model", wrong)
    place = device_from(device or file.device)
    alone, chosen = (model_named(name, where=where).anywhere() for name in ("gpbo", model or file.model))
    alignments = align_tasks(campaign.past, file, campaign.settings.descriptors)
    space = next(iter(alignments.values())).space
    past = {name: tuple(Pooled.of(data) for data in own.datasets) for name, own in alignments.items()}
    context = LearnContext(n_jobs=n_jobs, on_progress=told, device=place)
    priors = {
        name: (chosen if own else alone).learn([one.data for one in own], seed=seed, context=context)
        for name, own in past.items()
    }
    measured = {column.name: Pooled.of(own_results(campaign, column, space)) for column in file.results}
    results = {name: one.data for name, one in measured.items()}
    known = OutcomePriors(file.outcomes, tuple(priors.values()), space.d).condition(results, seed=seed)
    outcomes = tuple(
        FittedOutcome(
            campaign,
            column,
            _with_outliers(alignments[name], past[name], priors[name]),
            past[name],
            priors[name],
            replace(measured[name], data=file.outcomes[name].signed(results[name])),
            known[name],
        )
        for name, column in ((column.name, column) for column in file.results)
    )
    return Fitted(campaign, space, outcomes, known, place)


def own_results(campaign: Campaign, column: ResultColumn, space: Space) -> Dataset:
    """The campaign's results of a column, as measured."""
    measured = campaign.measured(column.name)
    if not measured:
        return Dataset.empty(space.d, name=THIS, categories=space.categories)
    y = np.array([e.results[column.name] for e in measured])
    errors = np.array([e.errors.get(column.name, np.nan) for e in measured])
    X = space.encode([e.values for e in measured])
    batches = _batches_of(campaign, measured)
    return Dataset(X, y, THIS, categories=space.categories, error_var=error_var(errors), **batches)


def _batches_of(campaign: Campaign, measured: Sequence[Experiment]) -> dict[str, Any]:
    """What a ``Dataset`` of these experiments is told of their batches and the present one; nothing where none has."""
    if all(e.batch is None for e in measured):
        return {}
    file, labels = campaign.file, [*(e.batch for e in measured), campaign.batches.present]
    batches = Batches.of(labels, drift=file.drift, where=f"{campaign.table.path}, column {file.batch!r}")
    return in_batches(batches, range(len(measured)), float(batches.numbers[-1]))


def _with_outliers(alignment: Alignment, past: Sequence[Pooled], prior: Prior) -> Alignment:
    """The alignment, row by row, with decisions on outliers, which were found among pooled rows."""
    masks = [torch.from_numpy(one.spread_out(mask.numpy())) for one, mask in zip(past, prior.outliers, strict=False)]
    return with_outliers(alignment, masks)
