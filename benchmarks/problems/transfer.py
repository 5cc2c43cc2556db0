"""The paper's synthetic experiments: random source tasks of a family with noisy data, and a random target."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from benchmarks.problems.family import Family
from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.plateaus import PLATEAUS
from benchmarks.problems.problem import Instance, Problem, stream
from benchmarks.problems.synthetic import FAMILIES
from headstart.data.dataset import Dataset
from headstart.errors import InputError


class SyntheticProblem(Problem):
    """``n_sources`` random tasks of a family at ``source_points`` random points each, and a random target.

    ``noise`` is the standard deviation of the error of every measurement. Where the family fixes its sources and all
    of them are asked for, they come in their order. Tasks are keyed by (family, seed) alone, so an ablation over the
    noise or the number of points meets the same ones. With ``reverse`` the same sources, with the same data, come the
    other way round: chains build the target on the last one.
    """

    def __init__(
        self,
        of: Family | str,
        *,
        n_sources: int = 1,
        source_points: int | None = None,
        noise: float | None = None,
        reverse: bool = False,
    ) -> None:
        self.family = family(of) if isinstance(of, str) else of
        self.n_sources = n_sources
        self.source_points = self.family.source_points if source_points is None else source_points
        self.noise = self.family.noise_std if noise is None else noise
        if n_sources < 1 or self.source_points < 1 or not self.noise >= 0:
            raise InputError(
                f"A synthetic problem needs sources, points and noise that is not negative, but it was given "
                f"{n_sources} sources, {self.source_points} points and noise {self.noise}."
            )
        self.d, self.space, self.reverse = self.family.d, self.family.space, reverse
        order = ",order=reversed" * reverse
        self.name = f"{self.family.name}[sources={n_sources},points={self.source_points},noise={self.noise:g}{order}]"

    def draw(self, seeds: Sequence[int], steps: int) -> Instance:
        """The tasks of these seeds, their source data and the noise of their targets."""
        params, targets, X, errors, noise = [], [], [], [], []
        for seed in seeds:
            tasks = stream(self.family.name, seed, "tasks")
            fixed = self.family.fixed_sources
            if fixed and len(fixed) == self.n_sources:
                params.append(torch.tensor(fixed, dtype=torch.float64))
            else:
                params.append(self.family.sample(self.n_sources, tasks))
            targets.append(self.family.sample_target(1, tasks)[0])
            rows = stream(self.family.name, seed, "rows")
            shape = (self.n_sources, self.source_points)
            X.append(self.family.random_points(*shape, rows))
            errors.append(self.noise * torch.randn(*shape, generator=rows, dtype=torch.float64))
            own = stream(self.family.name, seed, "noise")
            noise.append(self.noise * torch.randn(steps, generator=own, dtype=torch.float64))
        source_params, target_params = torch.stack(params), torch.stack(targets)
        X_all = torch.stack(X)
        y_all = self.family.evaluate(source_params, X_all) + torch.stack(errors)
        minimum = self.family.minimum(target_params)
        levels = () if self.space is None else self.space.categories
        sources = tuple(
            Dataset(X_all[:, i], y_all[:, i], f"source {i}", categories=levels) for i in range(self.n_sources)
        )
        return Instance(
            sources=sources[::-1] if self.reverse else sources,
            minimum=minimum,
            scale=torch.ones_like(minimum),
            noise=torch.stack(noise),
            labels=tuple(f"{self.family.name} {[round(v, 4) for v in p.tolist()]}" for p in target_params),
            function=partial(_on_device, self.family, target_params),
            space=self.space,
        )


def family(name: str) -> Family:
    """The family of that name, in any case of letters."""
    known = {**FAMILIES, **LABORATORY, **PLATEAUS}
    if name.lower() not in known:
        raise InputError(f"There is no function family {name!r}. Known are: {', '.join(known)}.")
    return known[name.lower()]


def _on_device(of: Family, params: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """The family at X, wherever X is."""
    return of.evaluate(params.to(X.device), X)
