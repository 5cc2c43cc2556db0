"""The sampler lives in the headstart package, where it is developed and tested."""

from headstart.study.sampler import TransferSampler

__all__ = ["TransferSampler"]
