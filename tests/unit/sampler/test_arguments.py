"""What the sampler refuses before the first trial runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from headstart import InputError, TransferSampler

SPACE = {"x": FloatDistribution(0, 1), "dropout": FloatDistribution(0, 0.5)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": "a"}, "seed must be a whole number, or None for another one every time, but it is 'a'"),
        ({"seed": True}, "seed must be a whole number"),
        ({"space": {"x": (0, 1)}}, r"space gives \(0, 1\) for 'x', but it takes Optuna's distributions"),
        ({"space": [("x", 1)]}, "space must map names to values"),
        ({"beta": "a"}, "beta is how much uncertainty attracts, a number from 0 on, but it is 'a'"),
        ({"beta": float("nan")}, "beta is how much"),
        ({"cache_dir": 3}, "cache_dir must be the path of a folder, but it is 3"),
        ({"n_jobs": 0}, "n_jobs is how many processes learn at once, from 1 on, or -1 .*, but it is 0"),
        ({"n_jobs": "two"}, "n_jobs is a number of processes, or \"ray\", but it is 'two'"),
        ({"device": "gpu"}, 'device must be "cpu", "cuda" or one of several, .*, but it is \'gpu\''),
        ({"independent_sampler": "tpe"}, "independent_sampler must be one of Optuna's, such as TPESampler"),
        ({"fill": ["x"]}, "fill must map names to values"),
        ({"space": SPACE, "fill": {"dropuot": 0.1}}, "fill gives a value for 'dropuot', .*dropout"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    """In one sentence that names the argument, what came, and what is expected."""
    with pytest.raises(InputError, match=message):
        TransferSampler(model="gpbo", **options)


def test_what_can_be_meant_is_taken() -> None:
    """Without a space any name may be a parameter; a seed may be left out."""
    TransferSampler(model="gpbo", seed=None, fill={"anything": 1})
    TransferSampler(model="gpbo", seed=np.int64(3), space=SPACE, fill={"dropout": 0.0})  # type: ignore[arg-type]
