"""What there is to expect of going on."""

from __future__ import annotations

import pytest
import torch
from tests.outcome_problems import FUNCTIONS, LIMITED, TWO, known
from tests.problems import generator, points, quick, tensor

from headstart import AUTO, SHGP, Dataset, InputError, TransferModel, TransferPosterior, suggest
from headstart.data.units import OutputMap
from headstart.decide.stopping import further_gain
from headstart.models.mixture import components

N = 400_000


def _posterior(model: TransferModel, n: int = 6) -> TransferPosterior:
    """Of values that vary by orders of magnitude, so that the output map is far from straight."""

    def task(X: torch.Tensor, shift: float) -> Dataset:
        return Dataset(X, (4 * (X - 0.4 - shift).square().sum(-1)).exp())

    return model.learn([task(points(15, seed=i), 0.1) for i in range(2)]).condition(task(points(n, seed=5), 0.0))


def _draws(posterior: TransferPosterior, X: torch.Tensor) -> torch.Tensor:
    """f at all rows of X together, drawn from the members, in the user's units."""
    g, parts = generator(0), components(posterior.predictor)
    weights = tensor([1.0 if w is None else float(w) for _, w in parts])
    counts = torch.multinomial(weights, N, replacement=True, generator=g).bincount(minlength=len(parts))
    found = []
    for (member, _), n in zip(parts, counts.tolist(), strict=True):
        mean, cov = member.predict(X)
        L = torch.linalg.cholesky(cov + 1e-12 * torch.eye(len(X)))
        found.append(mean + torch.randn(n, len(X), generator=g, dtype=torch.float64) @ L.mT)
    mapped = posterior.units.offset + posterior.units.scale * torch.cat(found)
    return mapped if posterior.warp is None else posterior.warp.outward(mapped)


@pytest.mark.parametrize(
    ("model", "q"),
    [
        (quick(AUTO), 1),
        (quick(SHGP), 3),
        (quick(SHGP).using(output_map=OutputMap.NONE), 1),
        pytest.param(AUTO, 3, marks=pytest.mark.slow),
    ],
    ids=["AUTO, one", "SHGP, three", "SHGP without a map, one", "AUTO, three"],
)
def test_the_gain_is_the_mean_of_what_may_be_gained(model: TransferModel, q: int) -> None:
    """In the user's units, through the output map, by all members."""
    posterior = _posterior(model)
    X = suggest(posterior, q=q)
    further = further_gain(posterior, X)
    assert further is not None
    X = X.reshape(q, 2)
    best = posterior.predict(posterior.train_inputs[0])[0].min()
    better = (best - _draws(posterior, X)).clamp_min(0.0).amax(-1)
    error = float(better.std()) / N**0.5
    assert further.gain == pytest.approx(float(better.mean()), abs=5 * error, rel=2e-3 if q == 1 else 0.05)
    assert further.ratio == pytest.approx(further.gain / (further.noise or 0.0))


@pytest.mark.parametrize("q", [1, 3])
def test_what_results_will_show_is_the_gain_of_the_mean_after_them(q: int) -> None:
    """Results are drawn, and the mean that they leave at the points is compared with the best; f itself gains more."""
    model = quick(SHGP).using(output_map=OutputMap.NONE)
    X = points(8, seed=5)
    scatter = 0.3 * torch.randn(8, generator=generator(1), dtype=torch.float64)
    error_var = torch.full((8,), 0.5, dtype=torch.float64)
    target = Dataset(X, (X - 0.4).square().sum(-1) + scatter, error_var=error_var)
    posterior = model.learn([Dataset(points(15, seed=1), points(15, seed=1).sum(-1))]).condition(target)
    # again at the best of the results, where all that there is to gain is doubt
    at = X[posterior.predict(X)[0].argsort()[:q]]
    found, of_f = further_gain(posterior, at, shown=True), further_gain(posterior, at)
    assert found is not None
    assert of_f is not None
    best = posterior.predict(X)[0].min()
    with torch.no_grad():
        mvn = posterior.posterior(at)
    mean, cov = mvn.mean.squeeze(-1), mvn.distribution.covariance_matrix
    noise = posterior.predictor.noise_var * posterior.units.scale.square() + 0.5
    K = cov + noise * torch.eye(q, dtype=torch.float64)
    y = mean + torch.randn(N, q, generator=generator(2), dtype=torch.float64) @ torch.linalg.cholesky(K).mT
    after = mean + (y - mean) @ torch.linalg.solve(K, cov)
    better = (best - after).clamp_min(0.0).amax(-1)
    error = float(better.std()) / N**0.5
    assert found.gain == pytest.approx(float(better.mean()), abs=5 * error, rel=0.05)
    assert found.gain < 0.9 * of_f.gain
    assert found.noise == of_f.noise


def test_the_noise_is_that_of_a_measurement_near_the_best() -> None:
    """Half the distance between the values at mean ± noise, in the user's units."""
    posterior = _posterior(AUTO)
    further = further_gain(posterior, points(1, seed=3))
    assert further is not None
    assert further.noise is not None
    assert posterior.warp is not None
    best = posterior.predict(posterior.train_inputs[0])[0].min().reshape(1)
    step = 1e-4 * posterior.predictor.noise_var.sqrt() * posterior.units.scale
    inner = posterior.warp.inward(best)
    slope = (posterior.warp.outward(inner + step) - posterior.warp.outward(inner - step)) / 2e-4
    assert further.noise == pytest.approx(float(slope), rel=1e-4)


def test_with_more_results_less_is_left_to_gain() -> None:
    """At the points that are suggested."""
    gains = []
    for n in (2, 14):
        posterior = _posterior(quick(SHGP), n)
        further = further_gain(posterior, suggest(posterior))
        assert further is not None
        gains.append(further.gain)
    assert gains[1] < 0.5 * gains[0]


def test_what_breaks_a_limit_gains_nothing() -> None:
    """The objective is lowest where the limit surely does not hold; before anything is within it there is no answer."""
    found = known(LIMITED, 0, X=tensor([[0.6, 0.5], [0.5, 0.45], [0.2, 0.9], [0.9, 0.1]]))
    inside, outside = (further_gain(found, tensor(x)) for x in ([0.45, 0.5], [0.2, 0.5]))
    assert inside is not None
    assert outside is not None
    alone = further_gain(found.posteriors[0], tensor([0.2, 0.5]))
    assert alone is not None
    assert outside.gain < 0.05 * alone.gain
    both = further_gain(found, tensor([[0.45, 0.5], [0.2, 0.5]]))
    assert both is not None
    assert both.gain == pytest.approx(inside.gain, rel=0.2)
    assert further_gain(known(LIMITED, 0, X=tensor([[0.1, 0.1], [0.2, 0.5]])), tensor([0.5, 0.5])) is None
    assert further_gain(known(LIMITED, 0), tensor([0.5, 0.5])) is None


def test_of_several_objectives_the_gain_is_a_share_of_the_volume() -> None:
    """More for a point between the ends of the front than for a corner; there is no noise to compare it with."""
    X = tensor([[0.2, 0.5], [0.8, 0.5], [0.2, 0.1]])
    found = known(TWO, 0, X=X)
    between, corner = further_gain(found, tensor([0.5, 0.5])), further_gain(found, tensor([0.0, 0.0]))
    assert between is not None
    assert corner is not None
    # from two ends to three points of the front, in units where its extent is 1
    assert 0.1 < between.gain < 10
    assert corner.gain < 0.01 * between.gain
    assert between.noise is None
    assert between.ratio is None
    with pytest.raises(InputError, match="worked out for one point"):
        further_gain(found, X)
    assert FUNCTIONS["cost"](X)[0] == 0
