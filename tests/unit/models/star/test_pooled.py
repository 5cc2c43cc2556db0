"""Sources pooled into one: which rows it has, and the model on top of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from tests.problems import agree, params_for, predictions, quick, tensor, transfer_problem

from headstart import STAR, Dataset
from headstart.data.units import OutputMap
from headstart.models.learning import LearnContext
from headstart.models.params import StarParams
from headstart.models.star.independent import fit_independently, fit_pooled, pooled, rows_pooled
from headstart.tuning import AUTO_TUNING

PROBLEM = transfer_problem(sizes=(7, 5, 9), n_target=4)


def task(n: int) -> Dataset:
    X = torch.rand(n, 2, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return Dataset(X, X.sum(-1))


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [((10, 20, 30), [10, 20, 30]), ((10, 900, 900), [10, 195, 195]), ((900,) * 4, [100] * 4), ((5, 3), [5, 3])],
)
def test_small_sources_are_pooled_whole_and_large_ones_alike(sizes: tuple[int, ...], kept: list[int]) -> None:
    """As many rows as ``pooled_rows`` in all."""
    assert AUTO_TUNING.pooled_rows == 400
    sources = [task(n) for n in sizes]
    assert rows_pooled(sources) == kept
    assert pooled(sources).n == sum(kept)


def test_every_source_is_around_its_own_mean() -> None:
    """Sources that differ by a constant are one task without noise; known errors and doubts are added."""
    first = PROBLEM.sources[0]
    known = replace(first, y=first.y + 5, error_var=torch.full_like(first.y, 0.2))
    together = pooled([first, known], tensor([0.0, 3.0]))
    torch.testing.assert_close(together.y, torch.cat([first.y - first.y.mean()] * 2))
    assert together.error_var is not None
    assert together.error_var.tolist() == pytest.approx([0.0] * first.n + [3.2] * first.n)
    assert pooled([first, first]).error_var is None


def test_a_column_that_some_source_did_not_record_is_not_seen() -> None:
    """The rows of that source say nothing about it, and would be placed wrongly."""
    first, second = PROBLEM.sources[:2]
    assert pooled([first, replace(second, unseen=(1,))]).unseen == (1,)


def test_a_pooled_star_is_a_star_of_the_pooled_source() -> None:
    """At given hyperparameters, with a doubt in one of the sources, and with none at all."""
    params = params_for("STAR")
    assert isinstance(params, StarParams)
    one = replace(
        params,
        levels=(params.levels[0], params.levels[-1]),
        **{name: getattr(params, name)[:1] for name in ("weights", "weight_var", "own")},
    )
    for doubt in (None, tensor([0.0, 4.0, 0.1])):
        together = pooled(PROBLEM.sources, doubt)
        expected = STAR.at(one, sources=[together], target=PROBLEM.target)
        found = STAR.using(pooled=True).at(replace(one, doubt=doubt), sources=PROBLEM.sources, target=PROBLEM.target)
        assert torch.equal(predictions(found, PROBLEM.Xq), predictions(expected, PROBLEM.Xq))


def test_a_source_that_is_doubted_without_end_says_nothing() -> None:
    """The prediction is that of the other sources, pooled at the same hyperparameters."""
    model = quick(STAR).using(output_map=OutputMap.NONE)
    as_one = fit_pooled(fit_independently(PROBLEM.sources, model, 0, LearnContext()), model, 0, LearnContext())
    layer, known = as_one.layers[0], as_one.known
    endless = layer.with_observations(known.inward(pooled(PROBLEM.sources, tensor([0.0, 1e12, 0.0]))))
    without = layer.with_observations(known.inward(pooled(PROBLEM.sources[::2])))
    assert agree(endless.predict_marginal(PROBLEM.Xq)[0], without.predict_marginal(PROBLEM.Xq)[0], rtol=1e-6)


def test_trust_is_noise_of_the_source_s_rows() -> None:
    """τ = ¼ adds three variances of a unit; full trust adds nothing."""
    model = quick(STAR).using(output_map=OutputMap.NONE)
    alone = fit_independently(PROBLEM.sources, model, 0, LearnContext())
    assert fit_pooled(alone, model, 0, LearnContext()).doubt is None
    as_one = fit_pooled(replace(alone, trust=tensor([1.0, 0.25, 1.0])), model, 0, LearnContext())
    assert as_one.doubt is not None
    torch.testing.assert_close(as_one.doubt, 3 * alone.known.scale.square() * tensor([0.0, 1.0, 0.0]))
