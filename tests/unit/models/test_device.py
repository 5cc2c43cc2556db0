"""A GPU is used where that pays, and never needed; what it is given is all on it, and comes back."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
import torch
from tests.problems import quick
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.errors import InputError
from headstart.models.device import CPU, ComputeDevice, device_from, elements_in, moved
from headstart.models.family import FAMILY, STAR
from headstart.models.learning import LearnContext
from headstart.models.posterior import TransferPosterior


def source(seed: int, n: int = 12) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, 2, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(3 * X[:, 0]) + X[:, 1])


def tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in it."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, TransferPosterior):
        for part in (value._predictor, value._outcome, value._y, value._warp):
            yield from tensors(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from tensors(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            yield from tensors(getattr(value, f.name))


@pytest.mark.parametrize("name", ["AUTO", "SHGP", "BHGP", "STAR", "RGPE", "WSGP", "GPBO"])
def test_a_copy_has_all_of_it_and_nothing_of_the_old(name: str) -> None:
    """It predicts the same, and every tensor of it is another one, on the device that was named."""
    target = source(5, 4)
    posterior = quick(FAMILY[name]).learn([source(0), source(1)]).condition(target)
    copy = moved(posterior, "cpu")
    X = torch.rand(6, 2, dtype=torch.float64)
    torch.testing.assert_close(copy.predict(X), posterior.predict(X), rtol=0, atol=0)
    assert sum(1 for _ in tensors(posterior)) > 5
    assert {tensor.device.type for tensor in tensors(moved(posterior, "meta"))} == {"meta"}


def test_elements_are_counted_once() -> None:
    """A source of n rows has n² of them, whoever refers to it."""
    posterior = quick(STAR).learn([source(0, 40)]).condition(source(1, 3))
    assert 1600 <= elements_in(posterior) <= 1600 + 40 * 10
    assert elements_in((posterior, posterior)) == elements_in(posterior)


def test_without_a_gpu_it_is_the_cpu_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence; a name that is no device is an error."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    said: list[str] = []
    found = device_from("cuda", said.append)
    assert found.name == "cpu"
    assert len(said) == 1
    assert "the CPU does all the work" in said[0]
    assert device_from("cpu", said.append).name == "cpu"
    assert len(said) == 1
    for wrong in ("gpu", "meta", "", 3):
        with pytest.raises(InputError, match="device must be"):
            device_from(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert device_from("cuda:0", said.append).name == "cuda:0"
    assert device_from("cuda:1", said.append).name == "cpu"


def test_what_is_too_large_for_a_gpu_is_done_by_the_cpu() -> None:
    """And that is said. On the CPU itself there is nothing to fall back on."""
    said: list[str] = []
    device = ComputeDevice("cuda", said.append)
    asked = []

    def work(where: str) -> str:
        asked.append(where)
        if where == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return where

    assert device.run(work) == "cpu"
    assert asked == ["cuda", "cpu"]
    assert len(said) == 1
    with pytest.raises(torch.OutOfMemoryError):
        CPU.run(lambda _: work("cuda"))


def test_only_what_is_large_goes_to_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits by their rows, there and back, posteriors by their elements."""
    went: list[tuple[str, int]] = []

    def noted(value: Any, device: str) -> Any:
        rows = value[0][0].n if isinstance(value, tuple) and isinstance(value[0], tuple) else 0
        went.append((device, rows))
        return value

    monkeypatch.setattr("headstart.models.device.moved", noted)
    monkeypatch.setattr("headstart.models.learning.moved", noted)
    device = ComputeDevice("cuda", fit_rows=20, search_elements=500)
    sources = [source(0), source(1, 25), source(2, 15)]
    prior = quick(STAR).learn(sources, context=LearnContext(device=device))
    assert went == [("cuda", 25), ("cpu", 0)]
    went.clear()
    small, large = quick(STAR).learn([source(0)]).condition(), prior.condition()
    assert device.searching(small, lambda known, where: where) == "cpu"
    assert device.searching(large, lambda known, where: where) == "cuda"
    assert went == [("cuda", 0)]
    assert CPU.searching(large, lambda known, where: where) == "cpu"
    assert pickle.loads(pickle.dumps(device)).name == "cuda"
