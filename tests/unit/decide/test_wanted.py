"""What somebody wants of outcomes: thresholds, targets, ranges, and a least probability of keeping limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.outcome_problems import FUNCTIONS, LIMITED, TWO, known
from tests.problems import generator, points

from headstart import suggest
from headstart.data.outcomes import Goal, Limit, Outcomes
from headstart.decide.acquisition import Acquisition
from headstart.decide.aim import Aim
from headstart.decide.stopping import further_gain
from headstart.models.outcomes import OutcomePosteriors

SEEN = points(400, seed=11)


def _two(*thresholds: float | None) -> Outcomes:
    return Outcomes(tuple(replace(own, threshold=t) for own, t in zip(TWO.goals, thresholds, strict=True)))


def _wanting(found: OutcomePosteriors, outcomes: Outcomes) -> OutcomePosteriors:
    return OutcomePosteriors(outcomes, found.posteriors)


def _reference(found: OutcomePosteriors) -> list[float]:
    """In the user's units."""
    aim = Aim.of(found)
    cells = aim.value(SEEN, SEEN[:0], generator(0)).cells
    assert cells is not None
    ends = [levels.amax().reshape(1) for levels in cells.levels]
    return [float(outward(end)[0]) for outward, end in zip(aim.outward, ends, strict=True)]


# ── thresholds ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [0, 5])
def test_a_threshold_is_the_reference_of_its_objective(n: int) -> None:
    """Of the other the usual one stays; where it is worse than the usual one it changes nothing."""
    found = known(TWO, n)
    usual = _reference(found)
    near, mixed, far = (_wanting(found, _two(*own)) for own in ((0.1, 0.2), (0.1, None), (1e6, 1e6)))
    assert _reference(near) == pytest.approx([0.1, 0.2])
    assert _reference(mixed) == pytest.approx([0.1, usual[1]])
    assert _reference(far) == pytest.approx(usual)
    assert torch.equal(suggest(far, n_candidates=128), suggest(found, n_candidates=128))


def test_a_threshold_at_the_usual_reference_gives_the_same_suggestion() -> None:
    """It is nothing else than that reference."""
    found = known(TWO, 4)
    value = Aim.of(found).value(SEEN, SEEN[:0], generator(0))
    same = Aim.of(_wanting(found, _two(*_reference(found)))).value(SEEN, SEEN[:0], generator(0))
    torch.testing.assert_close(same(SEEN), value(SEEN), rtol=1e-9, atol=1e-9)


def test_thresholds_keep_suggestions_where_something_is_of_interest() -> None:
    """Costs up to 0.05 are only around the cost's own best: no suggestion goes to the other end of the front."""
    found = _wanting(known(TWO, 4), _two(0.05, None))
    X = suggest(found, q=3, n_candidates=128)
    assert bool((FUNCTIONS["cost"](X) < 0.08).all())
    free = suggest(known(TWO, 4), q=3, n_candidates=128)
    assert bool((FUNCTIONS["cost"](free) > 0.1).any())


def test_one_objective_improves_on_its_threshold_until_a_result_is_better() -> None:
    """The expected improvement is that below the threshold; one that is worse than the best changes nothing."""
    found = known(Outcomes((Goal("cost"),)), 4)
    best = float(found.goals[0].predict(Aim.of(found).results)[0].amin())
    inner = []
    for t in (0.5 * best, 2 * best):
        aim = Aim.of(_wanting(found, Outcomes((Goal("cost", threshold=t),))))
        incumbents = aim.value(SEEN, SEEN[:0], generator(0)).best_f
        assert incumbents is not None
        inner.append(float(incumbents[0, 0]))
    (own,) = found.goals
    expected = [float(own.way.inward(torch.tensor([y], dtype=torch.float64))[0]) for y in (0.5 * best, best)]
    assert inner == pytest.approx(expected, abs=1e-3)
    far = _wanting(found, Outcomes((Goal("cost", threshold=1e6),)))
    assert torch.equal(suggest(far), suggest(found))


@pytest.mark.parametrize("n", [3, 8])
def test_thresholds_that_nothing_reaches_do_not_send_points_astray(n: int) -> None:
    """Alone or together: the suggestion is that without them, and so is the volume's reference."""
    one = known(Outcomes((Goal("cost"),)), n)
    beyond = _wanting(one, Outcomes((Goal("cost", threshold=-50.0),)))
    assert torch.equal(suggest(beyond), suggest(one))
    assert further_gain(beyond, SEEN[:3]) == further_gain(one, SEEN[:3])
    two = known(TWO, n)
    usual = _reference(two)
    assert _reference(_wanting(two, _two(-50.0, 0.2))) == pytest.approx(usual)


# ── targets ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _near(target: float, n: int) -> OutcomePosteriors:
    return _wanting(known(Outcomes((Goal("cost"),)), n), Outcomes((Goal("cost", target=target),)))


@pytest.mark.parametrize("n", [0, 6])
@pytest.mark.parametrize("kind", Acquisition)
def test_a_target_is_sought_from_both_sides(n: int, kind: Acquisition) -> None:
    """Neither the lowest nor the highest value, but the one that was asked for."""
    for target in (0.05, 0.2):
        found = _near(target, n)
        X = suggest(found, kind=kind, beta=0.5, n_candidates=128)
        assert abs(float(found.predict(X.unsqueeze(0))["cost"][0]) - target) < 0.03
        assert n == 0 or abs(float(FUNCTIONS["cost"](X)) - target) < 0.05


def test_the_gain_towards_a_target_is_the_mean_over_draws_in_the_users_units() -> None:
    """Of every member, through its output map; exact where that is straight, and close where it is bent."""
    found = _near(0.1, 5)
    aim = Aim.of(found)
    value = aim.value(SEEN, SEEN[:0], generator(0))
    (own,) = aim.expected
    assert value.best_f is not None
    best = (found.goals[0].predict(aim.results)[0] - 0.1).abs().amin()
    assert float(value.best_f[0, 0]) == pytest.approx(float(best), rel=0.02)
    quiet = replace(own, noise_var=np.zeros_like(own.noise_var))
    X = SEEN[:60]
    mean, var = map(torch.from_numpy, quiet.predict(X.numpy()))
    e = torch.randn(40_000, 1, generator=generator(1), dtype=torch.float64)
    gain = torch.zeros(40_000, 60, dtype=torch.float64)
    for k, weight in enumerate(quiet.weights):
        y = found.goals[0].way.outward(mean[k] + var[k].sqrt() * e)
        gain += weight * (best - (y - 0.1).abs()).clamp_min(0.0)
    wide = gain.mean(0) > 0.02 * best  # elsewhere the draws are too few
    expected = replace(value, goals=(quiet,))(X).exp()
    assert int(wide.sum()) >= 3
    torch.testing.assert_close(expected[wide], gain.mean(0)[wide], rtol=0.15, atol=0.0)


def test_a_target_and_an_objective_share_the_points_out_between_them() -> None:
    """A front of distances and losses, in the user's units; a threshold is how far is still of interest."""
    outcomes = Outcomes((Goal("cost", target=0.1, threshold=0.25), Goal("loss")))
    found = _wanting(known(TWO, 4), outcomes)
    X = suggest(found, q=3, n_candidates=128)
    away = (FUNCTIONS["cost"](X) - 0.1).abs()
    assert bool((away < 0.17).all())
    assert float(away.amin()) < 0.05
    assert _reference(found)[0] == pytest.approx(0.15)


def test_going_on_towards_a_target_pays_until_it_is_hit() -> None:
    """The expected gain is in the user's units and no larger than the distance that is left."""
    far, hit = _near(0.2, 2), known(Outcomes((Goal("cost"),)), 0, X=torch.tensor([[0.2, 0.5]] * 2, dtype=torch.float64))
    gain = further_gain(far, suggest(far))
    assert gain is not None
    left = float((far.goals[0].predict(Aim.of(far).results)[0] - 0.2).abs().amin())
    assert 0.3 * left < gain.gain <= left
    there = _wanting(hit, Outcomes((Goal("cost", target=0.0),)))
    more = further_gain(there, suggest(there))
    assert more is not None
    assert more.gain < 0.2 * gain.gain


# ── ranges and the least probability ──────────────────────────────────────────────────────────────────────────────


def test_a_range_is_kept_on_both_sides_and_its_probability_is_a_difference() -> None:
    """Within 0.1 to 0.15 the cost's lowest values are just above 0.1; a wide range is a limit."""
    limits = [
        Limit("impurity", at_least=0.1, at_most=0.15),
        Limit("impurity", at_most=0.15),
        Limit("impurity", at_most=0.1),
    ]
    found = known(LIMITED, 6)
    p = [_wanting(found, Outcomes(LIMITED.goals, (limit,))).probability_within(SEEN) for limit in limits]
    torch.testing.assert_close(p[0], p[1] - p[2], rtol=0, atol=1e-12)
    between = suggest(_wanting(found, Outcomes((Goal("cost", maximize=False),), tuple(limits[:1]))))
    assert 0.09 < float(FUNCTIONS["impurity"](between)) < 0.16
    wide = _wanting(found, Outcomes(LIMITED.goals, (Limit("impurity", at_least=-1e6, at_most=0.04),)))
    torch.testing.assert_close(suggest(wide), suggest(found), rtol=0, atol=1e-6)


def test_the_probability_that_is_shown_is_the_one_that_decides() -> None:
    """Σ w Φ over the members that the acquisition value has."""
    for n in (0, 6):
        found = known(LIMITED, n)
        torch.testing.assert_close(
            found.probability_within(SEEN), Aim.of(found).log_within(SEEN).exp(), atol=2e-3, rtol=0
        )


@pytest.mark.parametrize("least", [0.5, 0.9, 0.99])
def test_no_point_is_suggested_that_keeps_the_limits_less_probably(least: float) -> None:
    """As long as some point does; a batch keeps to it too, before it keeps to what is expected to be good."""
    found = known(LIMITED, 0, X=torch.cat([points(4, seed=5), torch.tensor([[0.55, 0.5]], dtype=torch.float64)]))
    assert len(Aim.of(found).within(Aim.of(found).results)) == 1
    careful = _wanting(found, Outcomes(LIMITED.goals, LIMITED.limits, least))
    X = suggest(careful, q=2, n_candidates=256)
    assert float(careful.probability_within(X).amin()) > least - 2e-3


def test_a_least_probability_that_no_point_has_or_every_point_has_decides_nothing() -> None:
    """Nor is there one before a result is within the limits."""
    X = torch.tensor([[0.1, 0.1], [0.2, 0.5], [0.1, 0.9]], dtype=torch.float64)
    outside = known(LIMITED, 3, X=X)
    none, high = (_wanting(outside, Outcomes(LIMITED.goals, LIMITED.limits, least)) for least in (0, 0.999))
    assert torch.equal(suggest(none), suggest(high))
    assert Aim.of(high).probability_limit(SEEN) is None
    found = known(LIMITED, 0, X=torch.tensor([[0.6, 0.5], [0.2, 0.5], [0.1, 0.9]], dtype=torch.float64))
    unreachable = _wanting(found, Outcomes(LIMITED.goals, (Limit("impurity", at_most=0.001),), 1 - 1e-12))
    passes, p = Aim.of(unreachable).probability_limit(SEEN), unreachable.probability_within(SEEN)
    assert passes is not None
    assert torch.equal(passes(SEEN), p >= 0.5 * p.amax())
    wide = Outcomes(LIMITED.goals, (Limit("impurity", at_most=1e6),))
    with_one, without = (_wanting(found, replace(wide, least_probability=p)) for p in (0.9, 0))
    assert torch.equal(suggest(with_one), suggest(without))
