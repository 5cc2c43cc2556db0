"""What is said of shifts between batches: their size, which is odd, in which units and words; and when nothing is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.problems import most_probable, plainly, points, quick, tensor

from headstart import AUTO, GPBO, SHGP, ChainParams, Dataset, GPParams, explain
from headstart.models.batch_shifts import BatchShift, Shifts, shifts_in_words, shifts_of_posterior
from headstart.models.mixture import components
from headstart.models.posterior import TransferPosterior

NOISE = 0.1


def task(
    shifts: list[float], rows: int = 4, *, seed: int = 0, name: str = "", a: float = 1.0, b: float = 0.0
) -> Dataset:
    """A valley in batches of some rows, each with its shift in noise levels; results as a·y + b."""
    X, noise = points(rows * len(shifts), seed=seed), torch.randn(rows * len(shifts), generator=_generator(seed))
    batch = torch.arange(len(shifts)).repeat_interleave(rows).double()
    y = 3 * (X - 0.4).square().sum(-1) + NOISE * (tensor(shifts)[batch.long()] + noise.double())
    return Dataset(X, a * y + b, name, batch=batch)


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _drawn(size: float, batches: int, seed: int) -> list[float]:
    return (size * torch.randn(batches, generator=_generator(1000 + seed))).tolist()


def at_the_truth(data: Dataset, size: float) -> TransferPosterior:
    """At the hyperparameters that data of ``task`` may well have."""
    var = max(size, 0.1) ** 2 * NOISE**2
    p = GPParams.of(lengthscale=[1.0, 1.0], outputscale=2.0, noise_var=NOISE**2, offset=float(data.y.mean()))
    return GPBO.at(ChainParams((replace(p, batch_var=tensor(var)),)), target=data)


def found(posterior: TransferPosterior) -> Shifts:
    """What is said of its shifts."""
    said = shifts_of_posterior(posterior)
    assert said is not None
    return said


@pytest.mark.parametrize("size", [0.0, 1.0, 10.0])
def test_where_no_batch_is_odd_at_most_one_task_of_twenty_has_one(size: float) -> None:
    """Of a hundred tasks whose shifts have one size, whatever it is: nine are still what chance makes of five."""
    odd = [bool(found(at_the_truth(task(_drawn(size, 6, i), seed=i), size)).odd) for i in range(100)]
    assert sum(odd) <= (0 if size == 0 else 9)


def test_without_shifts_hardly_any_fitted_process_calls_a_batch_odd() -> None:
    """Its noise is estimated, too: of a hundred tasks of 6 batches with 4 rows, five at most."""
    model = most_probable(quick(GPBO))
    assert sum(bool(found(model.learn().condition(task([0.0] * 6, seed=i))).odd) for i in range(100)) <= 5


def test_a_batch_far_from_all_others_is_odd_and_no_other_is() -> None:
    """Twelve noise levels above shifts of one: in 18 of 20 tasks at least, on its side and by what it lies off."""
    hits = 0
    for i in range(20):
        shifts = _drawn(1.0, 7, i)
        shifts[2] = -12.0
        said = found(at_the_truth(task(shifts, seed=i), 4.0))
        hits += [one.label for one in said.odd] == ["2"]
        assert said.batches[2].shift == pytest.approx(NOISE * (-12 - sum(shifts) / 7), abs=0.25)
    assert hits >= 18


@pytest.mark.parametrize("batches", [2, 3])
def test_of_less_than_four_batches_none_is_odd(batches: int) -> None:
    """Two others do not show how large shifts are; so no chance is told either."""
    said = found(at_the_truth(task([30.0, *[0.0] * (batches - 1)]), 3.0))
    assert said.odd == ()
    assert all(math.isnan(one.chance) for one in said.batches)


def test_one_batch_says_nothing() -> None:
    """Neither do rows without batches, no rows at all, nor many problems at once."""
    data = task([0.0])
    for one in (data, replace(data, present=tensor(5.0)), Dataset(data.X, data.y), Dataset.empty(2)):
        assert shifts_of_posterior(quick(GPBO).learn().condition(one)) is None
    assert shifts_of_posterior(quick(GPBO).learn().condition(task([0.0, 1.0]).repeated(2))) is None


def test_shifts_of_three_noise_levels_are_told_as_such() -> None:
    """A fitted process finds them, the noise within a batch and what the settings do, each about as large as it is."""
    data = task(_drawn(3.0, 8, 1), seed=1)
    said = found(quick(GPBO).learn().condition(data))
    assert said.low <= 3 * NOISE <= said.high
    assert said.size == pytest.approx(3 * NOISE, rel=0.6)
    assert said.noise == pytest.approx(NOISE, rel=0.5)
    assert said.settings == pytest.approx(float((3 * (data.X - 0.4).square().sum(-1)).std()), rel=0.3)
    assert said.clear
    without = found(quick(GPBO).learn().condition(task([0.0] * 8, seed=1)))
    assert without.size < NOISE
    assert not without.clear


@settings(max_examples=10, deadline=None)
@given(log_scale=st.integers(-8, 8), b=st.floats(-5, 5))
def test_sizes_and_shifts_follow_a_change_of_units(log_scale: int, b: float) -> None:
    """y → a·y + b multiplies all of them by a, and changes neither chances nor which batch is odd."""
    a, shifts = 2.0**log_scale, [0.0, 1.0, -1.0, 15.0, 0.5, -0.5]
    model = plainly(quick(GPBO))
    one, other = (found(model.learn().condition(task(shifts, a=k, b=k * c))) for k, c in ((1.0, 0.0), (a, b)))
    for what in ("size", "low", "high", "noise", "settings"):
        assert getattr(other, what) == pytest.approx(a * getattr(one, what), rel=1e-3)
    for here, there in zip(one.batches, other.batches, strict=True):
        assert (there.label, there.odd) == (here.label, here.odd)
        assert (there.shift, there.sd) == pytest.approx((a * here.shift, a * here.sd), rel=1e-3, abs=1e-4 * a)
        assert there.chance == pytest.approx(here.chance, rel=1e-2, abs=1e-4)


def test_behind_an_output_map_sizes_are_those_in_the_middle_of_the_results() -> None:
    """In the user's units the noise and the size of shifts are the model's over the slope at the median result."""
    data = task(_drawn(3.0, 6, 2), seed=2)
    data = replace(data, y=(2 * data.y).exp())
    posterior = most_probable(quick(GPBO)).learn().condition(data)
    assert posterior.warp is not None
    (member, weight), *_ = components(posterior.predictor)
    assert weight is None
    slope = posterior.warp.log_slope(data.y.median().unsqueeze(-1)).exp()
    said, unit = found(posterior), posterior.units.scale / slope
    assert said.noise == pytest.approx(float(member.noise_var.sqrt() * unit))
    free = found(TransferPosterior(member, posterior._outcome, posterior.train_targets, None))
    assert said.size == pytest.approx(free.size * float(1 / slope))


def test_of_a_mixture_shifts_are_averaged_with_its_weights() -> None:
    """Means with the weights of the members, and where these disagree the uncertainty grows."""
    sources = [task(_drawn(3.0, 5, i), seed=i, name=f"s{i}") for i in (3, 4)]
    posterior = quick(AUTO).learn(sources).condition(task(_drawn(3.0, 5, 5), seed=5))
    said = found(posterior)
    parts = components(posterior.predictor)
    each = []
    for member, _ in parts:
        alone = TransferPosterior(member, posterior._outcome, posterior.train_targets, posterior.warp)
        each.append(torch.stack([tensor([(b.shift, b.sd) for b in found(alone).batches])]))
    weights = torch.stack([weight for _, weight in parts if weight is not None])
    shifts, sds = torch.cat(each).unbind(-1)
    mean = weights @ shifts
    var = weights @ (sds.square() + (shifts - mean).square())
    assert [b.shift for b in said.batches] == pytest.approx(mean.tolist(), rel=1e-6)
    assert [b.sd for b in said.batches] == pytest.approx(var.sqrt().tolist(), rel=1e-6)
    assert said.low < said.size < said.high


def test_the_size_of_shifts_is_told_by_the_results_alone() -> None:
    """Whatever size the process has, and whatever its sources say: 19 of 20 ranges hold the size that was put in."""
    data = task(_drawn(3.0, 6, 6), seed=6)
    small, large = (found(at_the_truth(data, size)) for size in (0.5, 10.0))
    assert (small.low, small.size, small.high) == pytest.approx((large.low, large.size, large.high))
    for size in (0.0, 1.0, 5.0):
        each = [found(at_the_truth(task(_drawn(size, 6, i), seed=i), size)) for i in range(60)]
        assert sum(one.low <= size * NOISE <= one.high for one in each) >= 54
        assert sum(one.low == 0 for one in each) >= (54 if size == 0 else 0)
    assert sum(one.low > 0 for one in each) >= 50  # of five noise levels


def test_shifts_that_drift_are_told_by_time() -> None:
    """A day that breaks out of a slow drift is odd, though shifts are large in the long run."""
    days = torch.arange(12, dtype=torch.float64)
    slow = (8 * (days / 4).sin()).tolist()
    slow[6] += 15
    said = found(at_the_truth(replace(task(slow, seed=7), drift=10.0), 8.0))
    assert said.drifts
    assert [one.label for one in said.odd] == ["6"]
    assert said.sentences("%")[0].startswith("Results drift by ± 1.4 % over time (95 %: ")


def test_an_explanation_has_the_shifts_of_target_and_sources() -> None:
    """Those of tasks with several batches, the target first; it prints them, and a notebook shows them."""
    sources = [
        task([0.0] * 5, seed=10, name="calm"),
        task([0.0], rows=20, seed=11, name="one day"),
        task([*_drawn(0.5, 5, 12), 25.0], seed=12, name="slip"),
    ]
    prior = quick(AUTO).learn(sources)
    before = explain(prior)
    assert [one.task for one in before.shifts] == ["calm", "slip"]
    target = replace(task(_drawn(3.0, 5, 13), seed=13), name="today")
    said = explain(prior, target)
    assert [one.task for one in said.shifts] == ["today", "calm", "slip"]
    assert [one.label for one in said.shifts[2].odd] == ["5"]
    lines = str(said).splitlines()
    assert any(line.startswith("today: Results differ by ± ") for line in lines)
    assert any(
        line.startswith("slip: Results differ by ") and "Batch 5 is odd: its results lie" in line for line in lines
    )
    assert any(line.startswith("calm: shifts from one batch to another are not clearly larger") for line in lines)
    assert "Batch 5 is odd" in said._repr_html_()


def test_without_batches_an_explanation_is_what_it_was() -> None:
    """There is no line on shifts."""
    sources = [Dataset(one.X, one.y, "s") for one in (task([0.0] * 4, seed=14),)]
    said = explain(quick(AUTO).learn(sources))
    assert said.shifts == ()
    assert "Results differ" not in str(said)


def test_a_chain_has_shifts_too() -> None:
    """What is said of the target's shifts needs no AUTO."""
    sources = [task(_drawn(2.0, 4, 20), seed=20)]
    said = found(quick(SHGP).learn(sources).condition(task([0.0, 10.0, 0.0], seed=21)))
    assert [one.shift > 0 for one in said.batches] == [False, True, False]


def some(name: str = "new", *, odd: bool = False, low: float = 2.0) -> Shifts:
    """Shifts of three days."""
    each = [("2026-03-03", -2.0), ("2026-03-04", 6.0), ("2026-03-05", -4.0)]
    batches = tuple(BatchShift(day, shift, 2.0, 0.001, odd and shift == 6) for day, shift in each)
    return Shifts(name, 4.2, low, 9.0, 1.04, 12.3, batches, noun="day")


def test_sentences_are_in_the_units_and_words_of_the_user() -> None:
    """An odd batch lies off the mean of the others, which is further than off the mean of all."""
    size, odd = some(odd=True).sentences("%")
    assert size == (
        "Results differ by ± 4.2 % from one day to another (95 %: 2 to 9 %); by ± 1 % within one day; settings move "
        "them by ± 12 %."
    )
    assert some(low=0.0).sentences("%")[0] == (
        "Results may differ by up to ± 9 % from one day to another (95 %), or not at all; by ± 1 % within one day; "
        "settings move them by ± 12 %."
    )
    assert odd == "Day 2026-03-04 is odd: its results lie 9 % (± 3) above those of the others."
    numbers = replace(some(), noun="batch", batches=tuple(replace(b, label="batch 7") for b in some(odd=True).batches))
    assert numbers.sentences()[1] == "Batch 7 is odd: its results lie 9 (± 3) above those of the others."
    turned = some(odd=True).named("lot", {}, sign=-1.0)
    assert turned.sentences()[1] == "Lot 2026-03-04 is odd: its results lie 9 (± 3) below those of the others."


def test_batches_are_called_as_they_were_recorded() -> None:
    """By their numbers; one that has no name keeps its number."""
    said = found(at_the_truth(task([0.0, 1.0, 2.0]), 1.0)).named("lot", {0.0: "A", 2.0: "C"})
    assert [one.label for one in said.batches] == ["A", "1", "C"]


def test_sources_whose_shifts_are_not_clear_share_a_line() -> None:
    """One line for each that is clear or the target, one for all others."""
    calm = [some(name, low=0.5) for name in ("a", "b")]
    calm[1] = replace(calm[1], size=1.0)
    lines = shifts_in_words([some("new", low=0.1), some("c"), *calm, some("d", low=0.1, odd=True)], "new", "mg")
    assert [line.split(":")[0] for line in lines] == ["new", "c", "d", "a, b"]
    assert lines[-1] == (
        "a, b: shifts from one day to another are not clearly larger than the noise, ± 1 to 4.2 mg beside ± 1 mg."
    )
    assert shifts_in_words([], "new") == []
