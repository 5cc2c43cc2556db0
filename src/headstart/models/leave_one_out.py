"""Every observation predicted from the others, in closed form (Rasmussen and Williams 2006, section 5.4.2)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from headstart.gp.linalg import solve_lower
from headstart.models.chain.layer import Layer


def leave_one_out(layer: Layer, y: Float[Tensor, "*b n"]) -> tuple[Float[Tensor, "*b n"], Float[Tensor, "*b n"]]:
    """Mean and variance of every observation predicted from the others: y_i − α_i/[K⁻¹]_ii and 1/[K⁻¹]_ii."""
    identity = torch.eye(layer.L.shape[-1], dtype=layer.L.dtype, device=layer.L.device)
    L_inverse = solve_lower(layer.L, identity)
    precision = L_inverse.square().sum(-2)
    alpha = (layer.z.unsqueeze(-2) @ L_inverse).squeeze(-2)
    return y - alpha / precision, 1 / precision
