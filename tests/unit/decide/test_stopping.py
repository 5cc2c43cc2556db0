"""What people are told about going on."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from tests.outcome_problems import LIMITED, TWO, known
from tests.problems import points, quick, tensor

from headstart import GPBO, SHGP, Candidates, Dataset, TransferPosterior, further_gain, suggest
from headstart.data.units import OutputMap
from headstart.decide.stopping import Advice, Further, Outlook, outlook
from headstart.tuning import AUTO_TUNING, PLAIN_TUNING

ENOUGH = AUTO_TUNING.few_results
AHEAD = PLAIN_TUNING.stopping_points
OF_NOISE, OF_SPREAD = PLAIN_TUNING.stopping_noise_share, PLAIN_TUNING.stopping_spread_share
OF_VOLUME = PLAIN_TUNING.stopping_volume_share


def _posterior(n: int, noise: float = 0.0, *, seed: int = 5) -> TransferPosterior:
    def task(n: int, seed: int, shift: float) -> Dataset:
        X = points(n, seed=seed)
        scatter = noise * torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return Dataset(X, (X - 0.4 - shift).square().sum(-1) + scatter)

    return quick(SHGP).learn([task(20, 1, 0.1)]).condition(task(n, seed, 0.0))


@pytest.mark.parametrize(
    ("gain", "noise", "spread", "advice"),
    [
        (1.01 * OF_NOISE, 1.0, 0.0, Advice.GO_ON),
        (0.99 * OF_NOISE, 1.0, 0.0, Advice.UNLIKELY),
        (1.01 * OF_SPREAD, 0.0, 1.0, Advice.GO_ON),
        (0.99 * OF_SPREAD, 0.0, 1.0, Advice.UNLIKELY),
        (0.99 * OF_SPREAD, 0.1 * OF_SPREAD, 1.0, Advice.UNLIKELY),
    ],
)
def test_a_gain_is_small_below_either_bound(gain: float, noise: float, spread: float, advice: Advice) -> None:
    """Of the noise, or of the way from a typical result to the best."""
    assert Outlook(Further(gain, noise), AHEAD, ENOUGH, spread).advice is advice


def test_of_several_objectives_the_share_of_the_volume_decides() -> None:
    """And the sentence says it in per cent of the volume."""
    found = Outlook(Further(0.99 * OF_VOLUME, None), 1, ENOUGH, None, several=True)
    assert found.advice is Advice.UNLIKELY
    assert str(found) == (
        "The next experiment is expected to add 0.2 % to the volume of the front: "
        "further experiments are unlikely to be worth it."
    )
    assert replace(found, further=Further(1.01 * OF_VOLUME, None)).advice is Advice.GO_ON


def test_a_front_without_a_volume_has_no_share_of_it() -> None:
    """As long as no result beats the reference in every objective there is nothing to add a share of."""
    found = Outlook(Further(math.inf, None), 1, 3, several=True)
    assert str(found) == (
        "No result is better than the reference in every objective yet: "
        "too early to say with 3 of at least 8 results, so go on."
    )


def test_the_sentence_has_the_units_and_the_noise() -> None:
    """With the names that the user has for things."""
    found = Outlook(Further(0.5, 2.0), 5, 12, 10.0, objective="yield", thing="trial")
    assert str(found) == (
        "The next 5 trials are expected to improve yield by 0.5, 0.25 times the error of one measurement: go on."
    )
    unlikely = str(replace(found, further=Further(0.05, 2.0)))
    assert unlikely.endswith("0.025 times the error of one measurement: further trials are unlikely to be worth it.")
    assert str(replace(found, results=3)).endswith("too early to say with 3 of at least 8 results, so go on.")
    assert str(replace(found, further=None)) == "No result is known to be within the limits yet: go on."
    assert str(replace(found, further=None, results=0)) == "There are no results yet: go on."
    assert "has been tried" in str(replace(found, ahead=0))


def test_the_gain_is_that_of_the_next_points_together() -> None:
    """Those that would be suggested as a batch, five of them, and more than one alone would gain."""
    posterior = _posterior(8, 0.05)
    found = outlook(posterior, seed=3)
    assert found.further == further_gain(posterior, suggest(posterior, q=AHEAD, seed=3), shown=True)
    alone = further_gain(posterior, suggest(posterior, seed=3), shown=True)
    assert found.further is not None
    assert alone is not None
    assert found.further.gain > alone.gain
    assert (found.ahead, found.results) == (5, 8)
    mean = posterior.predict(posterior.train_inputs[0])[0]
    assert found.spread == pytest.approx(float(mean.quantile(0.5) - mean.min()))


def test_once_the_best_point_of_a_simple_function_was_tried_it_is_unlikely() -> None:
    """Before, it pays to go there, however many results there are; with few it is too early."""
    posterior = _posterior(20)
    assert outlook(posterior).advice is Advice.GO_ON
    x = tensor([[0.4, 0.4]])
    X, y = torch.cat([posterior.train_inputs[0], x]), torch.cat([posterior.train_targets, tensor([0.0])])
    assert outlook(quick(GPBO).learn([]).condition(Dataset(X, y))).advice is Advice.UNLIKELY
    assert outlook(_posterior(ENOUGH - 1)).advice is Advice.TOO_EARLY


def test_without_a_past_it_takes_twice_as_many_results() -> None:
    """A process on its own may take a valley for noise."""
    X = torch.cat([points(2 * ENOUGH - 4, seed=5), tensor([[0.4, 0.4], [0.45, 0.4], [0.4, 0.45]])])
    found = outlook(quick(GPBO).learn([]).condition(Dataset(X, (X - 0.4).square().sum(-1))))
    assert found.small
    assert found.advice is Advice.TOO_EARLY
    assert str(found).endswith("too early to say with 15 of at least 16 results, so go on.")
    X = torch.cat([X, tensor([[0.9, 0.1]])])
    assert outlook(quick(GPBO).learn([]).condition(Dataset(X, (X - 0.4).square().sum(-1)))).advice is Advice.UNLIKELY


def test_limits_and_several_objectives() -> None:
    """Before anything is within the limits one goes on; of several objectives the next point counts."""
    outside = outlook(known(LIMITED, 0, X=tensor([[0.1, 0.1], [0.2, 0.5]])))
    assert outside.further is None
    two = outlook(known(TWO, 0, X=points(9, seed=2)))
    assert two.several
    assert two.ahead == 1
    assert two.further is not None
    assert two.further.gain > 0


def test_a_list_that_is_nearly_used_up_is_looked_at_as_far_as_it_goes() -> None:
    """Two rows are left, then none."""
    X = points(10, seed=5)
    posterior = quick(GPBO).learn([]).condition(Dataset(X[:8], X[:8].sum(-1)))
    found = outlook(posterior, Candidates(X), avoid=X[:8])
    assert found.ahead == 2
    assert outlook(posterior, Candidates(X[:8]), avoid=X[:8]).advice is Advice.NOTHING_LEFT


def test_a_known_error_is_part_of_the_noise() -> None:
    """The median of those that are stated; a row without one does not count."""
    X = points(9, seed=5)
    error_var = tensor([0.0, 0.0, 1.0, 4.0, 4.0, 4.0, 9.0, 9.0, 1.0])
    model = quick(GPBO).using(output_map=OutputMap.NONE)
    posterior = model.learn([]).condition(Dataset(X, 10 * X.sum(-1), error_var=error_var))
    further = further_gain(posterior, X[0])
    assert further is not None
    assert posterior.warp is None
    own = float(posterior.predictor.noise_var * posterior.units.scale.square())
    assert further.noise == pytest.approx((own + 4.0) ** 0.5)
