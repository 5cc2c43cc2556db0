"""``gpbo-0.1``: the plain process as it was in headstart 0.1, to which gains are still compared.

It begins with one random point. Its kernel is RBF with a lengthscale for every column, also for the levels of a
category; outputs are standardised and nothing more; hyperparameters are the most probable ones; and an improvement is
one of f itself, whatever the noise of a measurement.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool
from torch import Tensor

from benchmarks.methods.method import Choice, Proposer, Settings
from benchmarks.methods.prediction import predicting
from benchmarks.problems.problem import Instance
from headstart.data.dataset import Dataset
from headstart.data.units import OutputMap
from headstart.decide.acquisition import Acquisition
from headstart.decide.suggest import suggest
from headstart.gp.kernels import Kernel
from headstart.models.chain.layer import Layer
from headstart.models.family import GPBO
from headstart.models.posterior import FitResult, TransferPosterior


def begin(instance: Instance, problem: str, seeds: Sequence[int], settings: Settings) -> Proposer:
    """Nothing is learnt from the sources."""
    return _Gpbo01(instance, problem, seeds, settings)


class _Gpbo01(Proposer):
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
