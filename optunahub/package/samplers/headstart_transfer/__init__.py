"""headstart's ``TransferSampler`` on OptunaHub."""

from .sampler import TransferSampler


__all__ = ["TransferSampler"]
