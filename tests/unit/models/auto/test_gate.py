"""Whether a source is informative at all."""

from __future__ import annotations

import math

import pytest
import torch
from tests.problems import gp_params, quick, tensor
from torch import Tensor

from headstart import STAR, Dataset, GPParams, Kernel
from headstart.data.units import OutputMap
from headstart.gp.hyperparameters import blind_to
from headstart.models.auto.gate import Informative, informative, informative_together
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.learning import LearnContext
from headstart.models.star.independent import fit_pooled, rows_pooled
from headstart.models.star.star import StarPrior


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def layer_of(X: Tensor, y: Tensor, params: GPParams) -> Layer:
    nothing = NoBeliefs(X.shape[:-2])
    return Layer.observe(nothing, params, Dataset(X, y), kernel=Kernel.RBF, propagation=Propagation.EXACT)


def log_normal(y: float, mean: float, var: float) -> float:
    return -0.5 * ((y - mean) ** 2 / var + math.log(2 * math.pi * var))


def gate_of(*sources: Dataset) -> Informative:
    """As AUTO asks for it."""
    prior = quick(STAR).learn(sources)
    assert isinstance(prior, StarPrior)
    return informative(prior.alone.layers, [prior.alone.known.inward(source) for source in prior.sources])


def smooth(X: Tensor) -> Tensor:
    return torch.sin(5 * X).sum(-1)


def together(*sources: Dataset) -> Informative:
    """As AUTO asks for it."""
    prior = quick(STAR).using(output_map=OutputMap.NONE).learn(sources)
    assert isinstance(prior, StarPrior)
    as_one = fit_pooled(prior.alone, prior.model, 0, LearnContext())
    return informative_together(as_one.layers[0], as_one.known.inward(as_one.sources[0]), rows_pooled(sources))


def test_a_part_of_the_pooled_rows_gains_over_the_constant_of_all_rows() -> None:
    """Every value is predicted from all others of all sources, by the process and by a constant."""
    X, y, params = draw(9, 2, seed=1).sigmoid(), 0.3 * smooth(draw(9, 2, seed=1).sigmoid()), gp_params(2)
    gains = []
    for i in range(9):
        others = [j for j in range(9) if j != i]
        mean, var = layer_of(X[others], y[others], params).predict_marginal(X[i : i + 1])
        process = log_normal(y[i].item(), mean.item(), var.item() + params.noise_var.item())
        seen = y[others]
        gains.append(process - log_normal(y[i].item(), seen.mean().item(), seen.var().item() * (1 + 1 / 8)))
    found = informative_together(layer_of(X, y, params), Dataset(X, y), [4, 5])
    each, whole = [tensor(gains[:4]), tensor(gains[4:])], tensor(gains)
    parts = Informative(
        torch.stack([g.mean() for g in each]) - 4 / 9, torch.stack([g.std() / len(g) ** 0.5 for g in each])
    )
    limit = Informative((whole.mean() - 4 / 9).expand(2), (whole.std() / 3).expand(2))
    torch.testing.assert_close(found.trust, torch.minimum(parts.trust, limit.trust))


def test_sources_too_small_on_their_own_are_trusted_together() -> None:
    """Nine rows in twelve inputs show little; those of six sources do, and a seventh of noise is not let in."""
    X = [draw(9, 12, seed=i).sigmoid() for i in range(7)]
    sources = [Dataset(x, x @ torch.linspace(1, 2, 12, dtype=torch.float64) + 0.1 * i) for i, x in enumerate(X[:6])]
    sources.append(Dataset(X[6], draw(9, seed=99)))
    alone, all_of_them = gate_of(*sources).trust, together(*sources).trust
    assert alone[:6].mean().item() < 0.5
    assert all_of_them[:6].min().item() > 0.9
    assert all_of_them[6].item() == 0


def test_noise_is_no_more_trusted_together_than_alone() -> None:
    """Sources of nothing but noise: a process that knows the level and spread of all has nothing over a constant."""
    trust = []
    for seed in range(6):
        sources = [
            Dataset(draw(20, 2, seed=10 * seed + i).sigmoid(), draw(20, seed=500 + 10 * seed + i)) for i in range(4)
        ]
        trust.append(together(*sources).trust)
    assert torch.cat(trust).mean().item() < 0.1


@pytest.mark.parametrize("rough", [False, True], ids=["smooth", "rough"])
@pytest.mark.parametrize("n", [3, 7])
def test_the_gain_is_that_of_predicting_every_point_from_the_others(n: int, rough: bool) -> None:
    """Refitting nothing but the data: the process and a constant see all points but one, and predict that one.

    No point speaks for or against the process with more than 10 nats.
    """
    X, params = draw(n, 2, seed=n).sigmoid(), gp_params(2)
    y = 0.3 + 1.5 * draw(n, seed=n + 1) if rough else 0.3 * smooth(0.3 * X)
    gains = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        mean, var = layer_of(X[others], y[others], params).predict_marginal(X[i : i + 1])
        process = log_normal(y[i].item(), mean.item(), var.item() + params.noise_var.item())
        seen = y[others]
        gains.append(process - log_normal(y[i].item(), seen.mean().item(), seen.var().item() * (1 + 1 / (n - 1))))
    assert (max(map(abs, gains)) > 10) is rough
    expected = tensor(gains).clamp(-10, 10)
    gate = informative([layer_of(X, y, params)], [Dataset(X, y)])
    taken_off = {3: 0.7, 7: 4 / 7}[n]  # two lengthscales, two scales; with three points that would be more than 0.7
    assert gate.gain.item() == pytest.approx(expected.mean().item() - taken_off, abs=1e-9)
    assert gate.error.item() == pytest.approx(expected.std().item() / math.sqrt(n), abs=1e-9)


def test_an_input_that_was_not_recorded_is_no_hyperparameter() -> None:
    """A blind lengthscale costs nothing: the gain is higher by one nat for each, over n observations."""
    X, y, params = draw(6, 2, seed=0).sigmoid(), draw(6, seed=1), gp_params(2)
    X[:, 1] = 0.5
    seeing = informative([layer_of(X, y, params)], [Dataset(X, y)])
    blind = informative([layer_of(X, y, blind_to(params, [1]))], [Dataset(X, y)])
    assert (blind.gain - seeing.gain).item() == pytest.approx(1 / 6, abs=1e-9)


def test_trust_rises_with_the_gain_in_standard_errors() -> None:
    """Φ(2 (z − 0.6)) with z = gain/error, and nothing where that is below 0.15; an error of 0 is certainty."""
    z = [-1.0, 0.0, 0.07, 0.1, 0.6, 1.0, 3.0]
    gate = Informative(0.2 * tensor(z), tensor([0.2] * len(z)))
    expected = [0.5 * math.erfc(-2 * (one - 0.6) / math.sqrt(2)) for one in z]
    assert gate.trust.tolist() == pytest.approx([one if one > 0.15 else 0.0 for one in expected])
    assert gate.open.tolist() == [False, False, False, True, True, True, True]
    assert Informative(tensor([0.1, -0.1]), tensor([0.0, 0.0])).trust.tolist() == [1.0, 0.0]


def test_smooth_sources_open_and_noise_stays_outside() -> None:
    """Of twenty smooth sources all are trusted, with and without some noise; twenty of pure noise hardly are."""
    X = [draw(25, 2, seed=i).sigmoid() for i in range(20)]
    good = gate_of(*(Dataset(x, smooth(x) + 0.1 * draw(25, seed=100 + i)) for i, x in enumerate(X)))
    assert float(good.trust.min()) > 0.95
    noise = gate_of(*(Dataset(x, draw(25, seed=200 + i)) for i, x in enumerate(X)))
    assert float(noise.trust.mean()) < 0.2
    assert float(good.gain.min()) > float(noise.gain.max())


def test_few_rows_of_many_columns_may_be_let_in() -> None:
    """Of 18 rows with 18 columns (three categories) most are let in that follow from them, noise is not."""
    categories = [range(6 * j, 6 * j + 6) for j in range(3)]
    levels = [torch.randint(6, (18, 3), generator=torch.Generator().manual_seed(i)) for i in range(10)]
    X = [torch.nn.functional.one_hot(level, 6).flatten(-2).double() / math.sqrt(2) for level in levels]
    effect = draw(3, 6, seed=0)
    values = [sum(effect[j, level[:, j]] for j in range(3)) for level in levels]
    noisy = [y + 0.05 * draw(18, seed=50 + i) for i, y in enumerate(values)]
    good = gate_of(*(Dataset(x, y, categories=categories) for x, y in zip(X, noisy, strict=True)))
    assert float(good.trust.mean()) > 0.6
    noise = gate_of(*(Dataset(x, draw(18, seed=100 + i), categories=categories) for i, x in enumerate(X)))
    assert float(noise.trust.mean()) < 0.2


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_constant_source_is_shut(value: float, scale: float) -> None:
    """Alone, or beside one that varies by much more or much less than 1."""
    X = draw(10, 2, seed=0).sigmoid()
    flat, varying = Dataset(X, torch.full((10,), value * scale, dtype=torch.float64)), Dataset(X, scale * smooth(X))
    assert gate_of(flat).open.tolist() == [False]
    assert gate_of(varying, flat).open.tolist() == [True, False]


@pytest.mark.parametrize("n", [1, 2])
def test_a_source_of_one_or_two_points_is_shut(n: int) -> None:
    """Nothing can be said of it, and nothing is not a number."""
    X = draw(12, 1, seed=0).sigmoid()
    gate = gate_of(Dataset(X, smooth(X)), Dataset(X[:n], smooth(X[:n])))
    assert gate.open.tolist() == [True, False]
    assert bool(gate.gain.isfinite().all())
    assert bool(gate.error.isfinite().all())


def test_a_batch_of_sources_is_each_alone() -> None:
    """Every problem has its own gates."""
    X = draw(2, 8, 2, seed=0).sigmoid()
    y = torch.stack([smooth(X[0]), draw(8, seed=1)])
    params = gp_params(2)
    together = informative(
        (
            layer_of(
                X,
                y,
                GPParams.of(
                    lengthscale=params.lengthscale.expand(2, 2),
                    outputscale=params.outputscale.expand(2),
                    noise_var=params.noise_var.expand(2),
                    offset=params.offset.expand(2),
                ),
            ),
        ),
        [Dataset(X, y)],
    )
    for i in range(2):
        alone = informative([layer_of(X[i], y[i], params)], [Dataset(X[i], y[i])])
        torch.testing.assert_close(together.gain[i], alone.gain)
        torch.testing.assert_close(together.error[i], alone.error)
