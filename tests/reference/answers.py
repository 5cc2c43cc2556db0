"""What a model says, in the form of the dense formulas."""

from __future__ import annotations

import torch
from tests.reference.dense import Array, Gaussian
from torch import Tensor

from headstart import TransferPosterior
from headstart.models.chain.beliefs import ExactBeliefs, log_normal
from headstart.models.chain.layer import Layer


def tensor(values: object) -> Tensor:
    """A float64 tensor."""
    return torch.as_tensor(values, dtype=torch.float64)


def answer(posterior: TransferPosterior, Xq: Array) -> Gaussian:
    """What a model says about f at X_q."""
    mvn = posterior.posterior(tensor(Xq)).distribution
    return Gaussian(mvn.mean.numpy(), mvn.covariance_matrix.numpy())


def joint_log_evidence(posterior: TransferPosterior) -> Tensor:
    """log p(y_s) + log p(y_t | y_s) of a model that is a joint process, from what it keeps of the sources."""
    layer = posterior.predictor
    assert isinstance(layer, Layer)
    target = layer.log_evidence()
    return target + log_normal(layer.below.L, layer.below.z) if isinstance(layer.below, ExactBeliefs) else target
