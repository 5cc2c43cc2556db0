"""The monotone map of outputs: there and back, what it is learnt from, and what it leaves alone."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.problems import tensor
from torch import Tensor

from headstart import Dataset
from headstart.data.units import robust_spread
from headstart.data.warp import Warp
from headstart.tuning import PLAIN_TUNING

FENCE, GOOD = PLAIN_TUNING.outlier_fence, PLAIN_TUNING.good_fence
POWERS = (0.0, 0.025, 0.3, 0.5, 1.0)


def dataset(y: Tensor) -> Dataset:
    """Values at inputs that lie far apart."""
    return Dataset(torch.arange(y.shape[-1], dtype=torch.float64).expand(y.shape).unsqueeze(-1), y)


def warp(power: float, *, centre: float = 0.7, spread: float = 2.5, known_spread: float = 0.0) -> Warp:
    return Warp(tensor(centre), tensor(spread), tensor(power), tensor(known_spread), tensor(0.0), tensor(0.0))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ── there and back ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("power", POWERS)
def test_what_goes_in_comes_out(power: float) -> None:
    """To 1e-10 of its distance from the centre, from a millionth of a spread to a million of them."""
    away = torch.logspace(-6, 6, 49, dtype=torch.float64)
    own = warp(power)
    y = own.centre + own.spread * torch.cat([-away, tensor([0.0]), away])
    back = own.outward(own.inward(y))
    assert float(((back - y).abs() / (y - own.centre).abs().clamp_min(1.0)).max()) < 1e-10
    w = torch.linspace(-9, 9, 41, dtype=torch.float64)
    torch.testing.assert_close(own.inward(own.outward(w)), w, rtol=1e-10, atol=1e-10)


def test_the_map_is_the_one_of_yeo_and_johnson() -> None:
    """The formulas of the head of the module, in plain floating point; λ = 1 changes nothing but the units."""
    z = torch.linspace(-3, 3, 25, dtype=torch.float64)
    for power in POWERS:
        high = ((1 + z.clamp_min(0)) ** power - 1) / power if power else torch.log(1 + z.clamp_min(0))
        low = -((1 - z.clamp_max(0)) ** (2 - power) - 1) / (2 - power)
        own = warp(power)
        torch.testing.assert_close(own.inward(own.centre + own.spread * z), torch.where(z < 0, low, high))
    torch.testing.assert_close(warp(1.0, centre=0.0, spread=1.0).inward(z), z)


@given(
    power=st.sampled_from(POWERS),
    values=st.lists(st.floats(-1e12, 1e12, allow_nan=False), min_size=2, max_size=8),
)
def test_order_is_kept_both_ways(power: float, values: list[float]) -> None:
    """Of two values the higher one is never the lower one behind the map, nor when it comes out again."""
    y = tensor(values).sort().values
    own = warp(power)
    assert bool((own.inward(y).diff() >= 0).all())
    assert bool((own.outward(y / 1e10).diff() >= 0).all())


@pytest.mark.parametrize("power", POWERS)
def test_whatever_is_predicted_has_a_place_in_the_users_units(power: float) -> None:
    """Far beyond all data the result is still a number, the larger the further."""
    w = tensor([-1e9, -1e3, 0.0, 1e3, 1e9])
    y = warp(power).outward(w)
    assert bool(y.isfinite().all())
    assert bool((y.diff() >= 0).all())


@pytest.mark.parametrize("power", POWERS)
def test_the_slope_is_the_derivative(power: float) -> None:
    """log dw/dy, by automatic differentiation and by differences, on both sides of the centre and close to it."""
    own = warp(power)
    y = tensor([-40.0, -3.0, 0.699, 0.701, 2.0, 90.0, 1e4])
    variable = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(own.inward(variable).sum(), variable)
    torch.testing.assert_close(own.log_slope(y), slope.log(), rtol=1e-9, atol=1e-9)
    h = 1e-4 * (y - own.centre).abs()
    differences = (own.inward(y + h) - own.inward(y - h)) / (2 * h)
    torch.testing.assert_close(own.log_slope(y).exp(), differences, rtol=1e-6, atol=0)


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("where", [(-1.5, 0.3), (0.0, 0.5), (1.2, 0.4)])
def test_moments_are_those_of_many_draws(power: float, where: tuple[float, float]) -> None:
    """Mean and variance in the user's units of what is normal in mapped ones."""
    own, (mean, sd) = warp(power), where
    drawn = own.outward(mean + sd * normal(400_000))
    first, second = own.moments(tensor([mean]), tensor([sd**2]))
    assert first.item() == pytest.approx(drawn.mean().item(), abs=5 * drawn.std().item() / 400_000**0.5)
    assert second.item() == pytest.approx(drawn.var().item(), rel=0.03)


def test_moments_of_a_map_that_is_affine_are_exact() -> None:
    """λ = 1: centre + spread · mean and spread² · var."""
    own, mean, var = warp(1.0), normal(5), normal(5, seed=1).square()
    first, second = own.moments(mean, var)
    torch.testing.assert_close(first, own.centre + own.spread * mean, rtol=1e-15, atol=0)
    torch.testing.assert_close(second, own.spread**2 * var, rtol=1e-15, atol=0)


@pytest.mark.parametrize("power", POWERS)
def test_variances_next_to_a_large_value_are_not_lost(power: float) -> None:
    """Around 1e15 a variance of 1 is still what it is around 0."""
    here, there = (warp(power, centre=centre, spread=1.0) for centre in (0.0, 1e15))
    w, var = tensor([-0.5, 0.3]), tensor([1.0, 0.2])
    torch.testing.assert_close(there.moments(w, var)[1], here.moments(w, var)[1], rtol=1e-12, atol=0)


def test_moments_without_variance_are_the_value_itself() -> None:
    """And a variance that rounding made negative is none."""
    own, w = warp(0.4), tensor([-1.0, 0.5])
    for nothing in (0.0, -1e-18):
        mean, var = own.moments(w, torch.full_like(w, nothing))
        torch.testing.assert_close(mean, own.outward(w))
        assert float(var.abs().max()) < 1e-12


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_moments_have_gradients_by_mean_and_variance(power: float) -> None:
    """They pass through the map to whoever searches: automatic differentiation against differences."""
    own = warp(power)
    mean, var = tensor([-0.7, 0.2, 1.1]).requires_grad_(), tensor([0.2, 0.5, 0.1]).requires_grad_()
    assert torch.autograd.gradcheck(own.moments, (mean, var))


# ── what it is learnt from ────────────────────────────────────────────────────────────────────────────────────────


def test_a_tail_of_high_values_is_shortened_and_normal_values_are_left_alone() -> None:
    """λ is below 1 for log-normal values, 1 for normal ones and for those whose tail is of low values."""
    z = normal(200)
    assert Warp.of_target(dataset(z.exp())).power.item() < 0.5
    assert Warp.of_target(dataset(z)).power.item() >= 0.9
    assert Warp.of_target(dataset(-z.exp())).power.item() == 1.0
    own = Warp.of_target(dataset(z.exp()))
    skew = [float(((v - v.mean()) / v.std()).pow(3).mean()) for v in (z.exp(), own.inward(z.exp()))]
    assert abs(skew[1]) < 0.3 * skew[0]


def test_all_sources_have_a_say_in_one_power() -> None:
    """Sources with a tail bring it down, those without up; each has its own centre and spread."""
    tail, none = dataset(normal(40).exp()), dataset(100 + 30 * normal(40, seed=1))
    maps, target = Warp.of_sources([tail, none])
    alone = [Warp.of_sources([source])[1].power.item() for source in (tail, none)]
    assert alone[0] < maps[0].power.item() < alone[1]
    assert maps[0].power.item() == maps[1].power.item() == target.power.item()
    for own, source in zip(maps, (tail, none), strict=True):
        assert own.centre.item() == pytest.approx(source.y.quantile(0.5).item())
        assert own.spread.item() == pytest.approx(robust_spread(source.y).item())


def test_a_target_is_expected_to_be_as_the_median_source_is() -> None:
    """Its centre is the median of the centres, its spread the median of the spreads."""
    sources = [
        dataset(shift + scale * normal(20, seed=i)) for i, (shift, scale) in enumerate([(0, 1), (5, 2), (90, 3)])
    ]
    maps, target = Warp.of_sources(sources)
    assert target.centre.item() == maps[1].centre.item()
    assert target.spread.item() == sorted(m.spread.item() for m in maps)[1]


@given(
    kind=st.sampled_from(["normal", "exp", "few", "ties", "plateau"]),
    log_scale=st.floats(-9, 9),
    shift=st.floats(-30, 30),
    seed=st.integers(0, 5),
)
def test_the_map_follows_affine_changes_of_units(kind: str, log_scale: float, shift: float, seed: int) -> None:
    """y → a·y + b on all tasks leaves λ and all mapped values as they are, the outliers too."""
    scale = 10**log_scale
    y = normal(4 if kind == "few" else 15, seed=seed)
    y = y.exp() if kind == "exp" else y.round() if kind == "ties" else y
    y = y.clamp_max(-0.2) if kind == "plateau" else y
    y[0] = y[0] + 100
    values = (y, 2 * normal(9, seed=seed + 10))
    first = Warp.of_sources([dataset(v) for v in values])
    changed = Warp.of_sources([dataset(scale * (v + shift)) for v in values])
    assert changed[1].power.item() == first[1].power.item()
    for a, b, v in zip(first[0], changed[0], values, strict=True):
        torch.testing.assert_close(
            b.task_inward(dataset(scale * (v + shift))).y, a.task_inward(dataset(v)).y, rtol=1e-9, atol=1e-9
        )
    torch.testing.assert_close(
        changed[1].outward(tensor([-1.0, 2.0])) / scale - shift,
        first[1].outward(tensor([-1.0, 2.0])),
        rtol=1e-8,
        atol=1e-8,
    )


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_batch_is_mapped_as_its_problems_are_alone(scale: float) -> None:
    """Centre, spread, λ, outliers and moments of every problem are its own, bit for bit."""
    y = scale * normal(3, 12)
    y[1] = y[1].exp() if scale == 1 else y[1].clamp_max(-0.2 * scale)
    y[2, 4] = 1e8 * scale
    other = scale * (normal(3, 7, seed=1) + 3)
    maps, target = Warp.of_sources([dataset(y), dataset(other)])
    mean, var = normal(3, 4, seed=2), normal(3, 4, seed=3).square()
    own = Warp.of_target(dataset(y))
    for i in range(3):
        single, of_target = Warp.of_sources([dataset(y[i]), dataset(other[i])])
        for together, alone in ((maps[0], single[0]), (target, of_target), (own, Warp.of_target(dataset(y[i])))):
            for name in ("centre", "spread", "power", "known_spread", "known_reach"):
                assert getattr(together, name)[i].item() == getattr(alone, name).item()
        assert torch.equal(maps[0].task_inward(dataset(y)).y[i], single[0].task_inward(dataset(y[i])).y)
        assert torch.equal(maps[0].outliers(dataset(y))[i], single[0].outliers(dataset(y[i])))
        for every, one in zip(target.moments(mean, var), of_target.moments(mean[i], var[i]), strict=True):
            torch.testing.assert_close(every[i], one, rtol=1e-13, atol=0)
    assert maps[0].outliers(dataset(y))[:, 4].tolist()[2]


# ── outliers ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_diverged_run_of_seven_is_pulled_in(sign: float) -> None:
    """It stays the worst (or the best), close beyond the fence, and leaves λ and the others nearly as they are."""
    y = normal(7)
    clean, spoilt = dataset(y), dataset(torch.where(torch.arange(7) == 2, sign * 1e8, y))
    own, other = Warp.of_target(clean), Warp.of_target(spoilt)
    assert abs(own.power.item() - other.power.item()) <= 0.2
    mapped = other.task_inward(spoilt).y
    assert other.outliers(spoilt).tolist() == [i == 2 for i in range(7)]
    assert torch.equal(mapped.argsort(), spoilt.y.argsort())
    assert float(mapped.abs().max()) < (FENCE + 4) * float(robust_spread(mapped)) + float(mapped.quantile(0.5).abs())
    rest = torch.arange(7) != 2
    torch.testing.assert_close(mapped[rest], other.inward(y)[rest])


SUCCESSES = [0.05, 0.3, 0.4, 0.55, 0.7, 0.8, 0.9, 1.0]


def test_successes_among_equal_results_count_by_what_they_are() -> None:
    """Of a score that is 0 nearly everywhere eight of 39 are no outliers: their distances are kept."""
    y = -torch.cat([torch.zeros(31, dtype=torch.float64), tensor(SUCCESSES)])
    maps, target = Warp.of_sources([dataset(y), dataset(1.2 * y)])
    for own in (maps[0], Warp.of_target(dataset(y))):
        mapped = own.task_inward(dataset(y)).y
        assert not own.outliers(dataset(y)).any()
        torch.testing.assert_close(mapped, own.inward(y))
        differences = -mapped[-8:].diff()
        torch.testing.assert_close(differences / differences.sum(), tensor(SUCCESSES).diff() / 0.95)
    first = tensor([0.0, 0.0, -0.9])  # a target's first success is one as those of the sources
    assert not target.outliers(dataset(first)).any()
    assert target.outliers(dataset(-first * 1e3)).tolist() == [False, False, True]


def test_successes_among_results_that_hardly_differ_count_by_their_logarithm() -> None:
    """No outliers: twice as good is further by log 2 spreads, and a bad result as far away is one."""
    y = -torch.cat([0.002 * normal(31), tensor(SUCCESSES)])
    for sign in (1.0, -1.0):
        own = Warp.of_target(dataset(sign * y))
        assert own.outliers(dataset(sign * y)).tolist() == [False] * 31 + [sign < 0] * 8
    own = Warp.of_target(dataset(y))
    mapped = own.task_inward(dataset(y)).y
    assert torch.equal(mapped.argsort(stable=True), y.argsort(stable=True))
    assert (mapped[33] - mapped[36]).item() == pytest.approx(math.log(2) * robust_spread(mapped).item(), rel=0.03)


def test_good_values_go_on_by_their_logarithm_without_a_jump_or_a_kink() -> None:
    """Beyond G spreads from the median: the formula of the head of the module, and slope 1 at its beginning."""
    y = torch.linspace(-2.5, 2.5, 41, dtype=torch.float64)
    own, size = warp(1.0, centre=0.0, spread=1.0), robust_spread(torch.cat([y, tensor([-9.0, -9.0])])).item()
    middle = y[19].item()  # the lower median of 43 values

    def moved(m: float) -> float:
        """Where two values go that are m spreads from the median."""
        at = middle - m * size
        mapped = own.task_inward(dataset(torch.cat([y, tensor([at, at])]))).y
        return (middle - mapped[-1].item()) / size

    for m in (4.5, 6.0, 40.0):
        assert moved(m) == pytest.approx(GOOD + math.log(1 + m - GOOD), rel=1e-9)
    assert moved(GOOD - 1e-6) == pytest.approx(GOOD - 1e-6, rel=1e-9)
    assert (moved(GOOD + 1e-4) - moved(GOOD)) / 1e-4 == pytest.approx(1.0, rel=1e-3)


def test_one_good_slip_is_pulled_in_and_leaves_real_successes_apart() -> None:
    """1e9 among successes up to 1 stays the best, but not by so much that nothing else differs."""
    y = -torch.cat([torch.zeros(31, dtype=torch.float64), tensor(SUCCESSES), tensor([1e9])])
    for own in (Warp.of_target(dataset(y)), Warp.of_sources([dataset(y)])[0][0]):
        mapped = own.task_inward(dataset(y)).y
        assert own.outliers(dataset(y)).tolist() == [False] * 39 + [True]
        assert torch.equal(mapped[31:].argsort(descending=True), torch.arange(9))
        assert float(mapped[38] - mapped[39]) < 10 * float(mapped[31] - mapped[38])


def test_bad_results_are_pulled_in_whatever_good_ones_there_are() -> None:
    """A penalty counts by the spread of the rest, not by how far its best ones reach."""
    y = torch.cat([normal(20), tensor([-40.0, -50.0, -60.0, 50.0])])
    own = Warp.of_target(dataset(y))
    assert own.outliers(dataset(y)).tolist() == [False] * 23 + [True]


def test_outliers_keep_their_order() -> None:
    """Of 1e3, 1e6 and 1e12 each is beyond the one before."""
    y = torch.cat([normal(12), tensor([1e3, 1e6, 1e12, -1e5])])
    own = Warp.of_target(dataset(y))
    mapped = own.task_inward(dataset(y)).y
    assert torch.equal(mapped.argsort(), y.argsort())
    assert own.outliers(dataset(y)).tolist() == [False] * 12 + [True] * 4


def test_the_pull_begins_without_a_jump() -> None:
    """A value just beyond the fence is mapped to just beyond it."""
    y = torch.linspace(-1, 1, 21, dtype=torch.float64)
    own = warp(1.0, centre=0.0, spread=1.0)
    edge = FENCE * robust_spread(torch.cat([y, tensor([9.0])])).item()
    mapped = [own.task_inward(dataset(torch.cat([y, tensor([edge * f])]))).y[-1].item() for f in (1 + 1e-3, 1.1)]
    assert edge < mapped[0] < mapped[1] < 1.1 * edge
    assert mapped[0] == pytest.approx(edge, rel=0.01)


def test_few_values_have_no_outliers_unless_the_sources_know_how_much_is_usual() -> None:
    """Of two values of a target either may be the failed run; the sources' spread tells, the lower one is kept."""
    y = tensor([0.3, 1e6])
    assert not bool(warp(1.0).outliers(dataset(y)).any())
    known = warp(1.0, centre=0.0, spread=1.0, known_spread=1.0)
    assert known.outliers(dataset(y)).tolist() == [False, True]
    mapped = known.task_inward(dataset(y)).y
    assert mapped[0].item() == pytest.approx(0.3)
    assert FENCE < mapped[1].item() < FENCE + 4


# ── little data ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_few_values_of_a_target_alone_are_taken_as_they_are(n: int) -> None:
    """They do not show what they are like."""
    y = normal(4)[:n].exp()
    own = Warp.of_target(dataset(y))
    torch.testing.assert_close(own.task_inward(dataset(y)).y, y)
    assert own.power.item() == 1.0


SMALL = {
    "one": [3.0],
    "two": [1.0, 2.0],
    "four": [1.0, 2.0, 5.0, 100.0],
    "constant": [7.0] * 6,
    "zero": [0.0] * 6,
    "mostly equal": [1.0] * 9 + [2.0],
    "repeated": [1.0, 1.0, 2.0, 2.0, 2.0, 3.0],
    "nearly constant": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + 1e-12],
    "one of another size": [1.0, 1.1, 0.9, 1.05, 1e15],
}


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("values", SMALL.values(), ids=SMALL.keys())
def test_small_and_odd_tasks_have_a_map(values: list[float], scale: float) -> None:
    """Finite, with a positive spread, and with a way back; alone, among others, and as a target."""
    task = dataset(scale * tensor(values))
    others = [dataset(scale * normal(8)), dataset(torch.zeros(3, dtype=torch.float64))]
    found = [Warp.of_target(task)]
    for sources in ([task], [task, *others], [task, task]):
        maps, target = Warp.of_sources(sources)
        found += [maps[0], target]
        found.append(target.moved_to(task))
    for own in found:
        assert bool((own.spread > 0).all())
        assert 0 <= own.power.item() <= 1
        mapped = own.task_inward(task).y
        assert bool(mapped.isfinite().all())
        assert bool((mapped.diff()[task.y.diff() >= 0] >= 0).all())
        assert bool(own.log_slope(task.y).isfinite().all())
        assert bool(own.outward(mapped).isfinite().all())
        back = own.outward(own.inward(task.y))
        torch.testing.assert_close(back, task.y, rtol=1e-9, atol=1e-9 * float(own.spread))


def test_the_spread_comes_from_the_quartiles() -> None:
    """That of a normal sample is its standard deviation, an outlier does not change it, a constant has none."""
    y = 3 * normal(20_000)
    assert robust_spread(y).item() == pytest.approx(3, rel=0.03)
    assert robust_spread(torch.cat([y, tensor([1e12])])).item() == pytest.approx(3, rel=0.03)
    assert robust_spread(torch.full((6,), 0.1, dtype=torch.float64)).item() == 0.0
    assert robust_spread(tensor([1.0, 1.0, 1.0, 1.0, 1.0, 4.0])).item() == pytest.approx(1.118, abs=1e-3)


def test_a_spread_is_at_most_three_times_that_of_the_good_half() -> None:
    """Penalties for more than a quarter of the runs are no spread; where the good half is all equal, they are."""
    good = 3 * normal(700, seed=2)
    good = good - good.quantile(0.5)
    failed = torch.cat([good, torch.full((400,), 1e6, dtype=torch.float64)])
    half = (failed.quantile(0.5) - failed.quantile(0.25)) / (1.349 / 2)
    assert robust_spread(failed).item() == pytest.approx(3 * half.item(), rel=1e-12)
    assert robust_spread(-failed).item() == pytest.approx(
        ((failed.quantile(0.75) - failed.quantile(0.25)) / 1.349).item()
    )
    assert robust_spread(tensor([1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 9.0])).item() == pytest.approx(4 / 1.349)


def test_a_plateau_counts_once_for_the_spread() -> None:
    """What a quarter of all values are: the spread is that of the others with it, and no slip among them is one."""
    others = torch.cat([-tensor(SUCCESSES), tensor([0.01, 0.02])])
    flat = torch.cat([torch.zeros(31, dtype=torch.float64), others])
    assert robust_spread(flat).item() == pytest.approx(0.7 / 1.349)  # of 11 values the third from either end: −0.7, 0
    slipped = torch.cat([flat, tensor([-1e9])])
    assert robust_spread(slipped).item() < 1.5 * robust_spread(flat).item()
    weights = torch.rand(len(flat), generator=torch.Generator().manual_seed(1), dtype=torch.float64) + 0.5
    assert robust_spread(flat, counts=weights).item() == pytest.approx(robust_spread(flat).item(), rel=0.4)
    fewer = torch.cat([torch.zeros(3, dtype=torch.float64), -tensor(SUCCESSES), tensor([0.01, 0.02])])
    low, high = fewer.quantile(0.25), fewer.quantile(0.75)
    assert robust_spread(fewer).item() == pytest.approx(((high - low) / 1.349).item())  # 3 of 13: no plateau


# ── a target elsewhere ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_target_far_from_the_sources_has_its_centre_by_its_first_value() -> None:
    """One spread above it, once and for all: later values change nothing. Nearby ones leave the centre alone."""
    own = warp(0.5, centre=10.0, spread=2.0)
    far = dataset(tensor([110.0, 3.0, 500.0]))
    assert own.moved_to(far).centre.item() == 112.0
    assert own.moved_to(far.head(1)).centre.item() == 112.0
    assert own.moved_to(dataset(tensor([-90.0]))).centre.item() == -88.0
    assert own.moved_to(dataset(tensor([15.9, 1e6]))).centre.item() == 10.0
    assert own.moved_to(dataset(tensor([]))) is own
    batch = replace(own, **{f.name: getattr(own, f.name).expand(2) for f in fields(own) if f.name != "bounds"})
    assert batch.moved_to(dataset(tensor([[110.0], [11.0]]))).centre.tolist() == [112.0, 10.0]


def test_a_target_may_lie_as_far_away_as_sources_lie_apart() -> None:
    """The mean square of their medians around the median one, in spreads, with one more source of variance ¼."""
    y = normal(41, seed=3)
    y = y - y.quantile(0.5)
    spread = robust_spread(y).item()
    maps, target = Warp.of_sources([dataset(y + level * spread) for level in (-2.0, 0.0, 1.0)])
    assert target.level_var.item() == pytest.approx((4 + 1 + 0.25) / 3, rel=1e-9)
    assert [own.level_var.item() for own in maps] == [0.0, 0.0, 0.0]
    assert Warp.of_sources([dataset(y)])[1].level_var.item() == pytest.approx(0.25)
    assert Warp.of_target(dataset(y)).level_var.item() == 0.0


def test_points_of_a_search_that_lie_together_count_as_one() -> None:
    """Twenty values from one place, noise of the best point, leave the map of the ten others nearly as it was."""
    spread_out, noise = normal(10).exp(), 0.01 * normal(20, seed=1) + 0.05
    X = torch.cat([torch.linspace(0, 1, 10, dtype=torch.float64), 0.5 + 1e-3 * torch.rand(20, dtype=torch.float64)])
    found = Warp.of_target(Dataset(X.unsqueeze(-1), torch.cat([spread_out, noise])))
    alone = Warp.of_target(dataset(spread_out))
    assert 0.4 < float(found.spread / alone.spread) < 1.6
    apart = Warp.of_target(dataset(torch.cat([spread_out, noise])))
    assert float(apart.spread) < 0.1 * float(alone.spread)
    assert not bool(found.outliers(Dataset(X.unsqueeze(-1), torch.cat([spread_out, noise])))[:10].any())


@pytest.mark.parametrize("power", [0.0, 0.4, 1.0])
def test_known_variances_go_through_the_map_by_its_slope_squared(power: float) -> None:
    """A small error is multiplied by (dw/dy)² at the value, here by differences; 0 stays 0."""
    nothing = tensor(0.0)
    warp = Warp(tensor(2.0), tensor(0.5), tensor(power), nothing, nothing, nothing)
    y, error_var = tensor([0.3, 1.9, 2.2, 3.0, 4.4]), tensor([0.04, 0.01, 0.0, 0.09, 0.5])
    task = Dataset(torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1), y, error_var=error_var)
    h = 1e-5
    slope = (warp.inward(y + h) - warp.inward(y - h)) / (2 * h)
    found = warp.task_inward(task).error_var
    assert found is not None
    torch.testing.assert_close(found, slope.square() * error_var, rtol=1e-8, atol=0)
    assert found[2].item() == 0


def test_an_outlier_is_known_no_better_for_being_pulled_in() -> None:
    """Its error is the one that it has without."""
    y = tensor([1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 500.0])
    task = Dataset(torch.linspace(0, 1, 7, dtype=torch.float64).unsqueeze(-1), y, error_var=torch.ones_like(y))
    warp = Warp.of_target(task)
    assert warp.outliers(task).tolist() == [False] * 6 + [True]
    found = warp.task_inward(task).error_var
    assert found is not None
    torch.testing.assert_close(found, (2 * warp.log_slope(y)).exp(), rtol=1e-12, atol=0)
