"""The sampler lives in the headstart package, where it is developed and tested."""

from headstart import TransferSampler


__all__ = ["TransferSampler"]
