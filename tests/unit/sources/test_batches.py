"""Batches of rows as they were recorded."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest

from headstart.errors import InputError
from headstart.sources.batches import Batches, in_batches


def test_labels_are_numbered_in_their_order_and_keep_their_names() -> None:
    """Equal labels are one batch, whatever they are; an empty one is that of the row above, as merged cells."""
    found = Batches.of(["B", "A", None, "", "B", float("nan"), 7.0, 7, "7"])
    assert found.numbers.tolist() == [0, 1, 1, 1, 0, 0, 2, 2, 2]
    assert dict(found.names) == {0: "B", 1: "A", 2: "7"}
    first = Batches.of([None, "A"])
    assert first.numbers.tolist() == [0, 1]
    assert first.names[0.0] == ""
    assert len(found) == 9
    assert found.only(np.array([0, 6])).numbers.tolist() == [0, 2]


def test_times_belong_to_their_day() -> None:
    """Dates, times of day and pandas' timestamps of one day are one batch."""
    found = Batches.of([date(2026, 3, 1), datetime(2026, 3, 1, 17), pd.Timestamp("2026-03-02 08:00"), pd.NaT])
    assert found.numbers.tolist() == [0, 0, 1, 1]
    assert list(found.names.values()) == ["2026-03-01", "2026-03-02"]


def test_with_a_drift_numbers_are_times() -> None:
    """Days since 1970 with their fraction, or the numbers as they are."""
    found = Batches.of([date(1970, 1, 11), datetime(1970, 1, 12, 12), None], drift=30)
    assert found.numbers.tolist() == [10.0, 11.5, 11.5]
    assert found.names[11.5] == "1970-01-12"
    assert found.drift == 30
    assert Batches.of([None, 4, 9.5], drift=2.0).numbers.tolist() == [4.0, 4.0, 9.5]
    with pytest.raises(InputError, match=r"column lot: 'A' is neither a date nor a number.*Leave drift out"):
        Batches.of(["A"], drift=2.0, where="column lot")


def test_they_are_arguments_of_a_data_set() -> None:
    """Of some rows, with the batch that is predicted; nothing where nobody named batches."""
    found = in_batches(Batches.of(["A", "B", "A"], drift=None), (2, 1), present=5.0)
    assert found["batch"].tolist() == [0.0, 1.0]
    assert (found["present"], found["drift"]) == (5.0, None)
    assert in_batches(None, (2, 1)) == {}


def test_texts_in_the_form_of_iso_dates_are_dates() -> None:
    """Where all labels are; one that is not leaves every text what it is, but with a drift each is told by itself."""
    texts = ["2026-03-01T08:00", "2026-03-01 17:30:12Z", "2026-03-02", None]
    assert Batches.of(texts).numbers.tolist() == [0, 0, 1, 1]
    assert list(Batches.of([*texts, date(2026, 3, 1)]).names.values()) == ["2026-03-01", "2026-03-02"]
    assert list(Batches.of([*texts, "B"]).names.values()) == [*texts[:3], "B"]
    assert Batches.of(["1970-01-11", "1970-01-12T12:00"], drift=30).numbers.tolist() == [10.0, 11.5]
    for lot in ("20260301", "2026-03", "2026-13-01", "2026-03-01-a"):
        assert list(Batches.of([lot]).names.values()) == [lot]
