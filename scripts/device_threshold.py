"""From which size on a GPU pays: seconds to fit and to search with a source of n rows, on the CPU and on the GPU.

    python scripts/device_threshold.py [--device cuda] [--rows 100,200,500,1000,2000,5000]

The two thresholds of ``headstart.models.device`` come from its table: the first n from which on the GPU is
faster in every row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from headstart import SHGP, STAR, Dataset, suggest
from headstart.models.device import ComputeDevice, elements_in
from headstart.models.learning import LearnContext

_INPUTS = 6


def _source(n: int, seed: int) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n, _INPUTS, generator=generator, dtype=torch.float64)
    noise = 0.05 * torch.randn(n, generator=generator, dtype=torch.float64)
    return Dataset(X, torch.sin(3 * X[:, 0]) + X[:, 1:].square().sum(-1) + noise)


def _seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """The median of some runs, after one that does not count: a GPU loads its routines with the first."""
    work()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", default="100,200,300,500,700,1000,1500,2000,3000,5000")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    devices = [ComputeDevice(), ComputeDevice(arguments.device, fit_rows=0, search_elements=0)]
    heads = [f"{what} on {device.name}" for what in ("fit", "search") for device in devices]
    print(f"{'rows':>6} {'elements':>10} " + " ".join(f"{head:>16}" for head in heads), flush=True)
    for n in map(int, arguments.rows.split(",")):
        source, target = _source(n, 0), _source(10, 1)
        fits, searches = [], []
        posterior = SHGP.learn([source]).condition(target)
        for device in devices:

            def learn(device: ComputeDevice = device, source: Dataset = source) -> object:
                return STAR.learn([source], context=LearnContext(device=device))

            def search(device: ComputeDevice = device, known: object = posterior) -> object:
                return device.searching(known, lambda own, _: suggest(own, seed=0))

            fits.append(_seconds(learn, device.name, arguments.repeats))
            searches.append(_seconds(search, device.name, arguments.repeats))
        numbers = " ".join(f"{seconds:16.3f}" for seconds in (*fits, *searches))
        print(f"{n:6} {elements_in(posterior):10} {numbers}", flush=True)


if __name__ == "__main__":
    main()
