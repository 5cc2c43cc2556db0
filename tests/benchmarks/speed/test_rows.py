"""What the speed benchmark says about the likelihoods that fits reach."""

from __future__ import annotations

import json
from dataclasses import asdict

from benchmarks.speed.rows import Likelihoods, Row


def test_likelihoods_are_compared_data_set_by_data_set() -> None:
    """Higher, lower and equal (to a thousandth of a nat) are counted; the worst and the median difference are kept."""
    compared = Likelihoods.compared([1.0, 2.0, 3.0, -4.0], [1.0008, 1.0, 3.25, -4.0])
    assert (compared.data_sets, compared.higher, compared.lower) == (4, 1, 1)
    assert (compared.worst, compared.equal_or_better_on_all) == (-0.25, False)
    assert str(compared) == (
        "log p equal or better on 3 of 4 data sets (2 equal, 1 higher, 1 lower), median -0.0004, worst -0.2500"
    )


def test_one_lower_likelihood_spoils_the_verdict_and_a_tolerance_does_not() -> None:
    """Equal or better on all means on every data set, up to where optimisers stop."""
    assert Likelihoods.compared([1.0, 2.0], [1.0009, 1.0]).equal_or_better_on_all
    assert not Likelihoods.compared([1.0, 2.0], [1.0011, 1.0]).equal_or_better_on_all


def test_the_verdict_is_in_the_record() -> None:
    """A row of the JSON file holds the comparison in numbers."""
    row = Row("fit", "n = 1", {"headstart": 1.0}, 2.0, 1.0, log_p=Likelihoods.compared([1.0], [0.5]))
    record = json.loads(json.dumps(asdict(row)))
    assert record["log_p"]["worst"] == 0.5
    assert record["log_p"]["equal_or_better_on_all"] is True
