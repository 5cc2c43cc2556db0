"""A source that did not record an input is a constant function along it."""

from __future__ import annotations

import pytest
import torch
from tests.problems import behind_the_map, most_probable

from headstart import BHGP, GPBO, MHGP, RGPE, SHGP, Dataset, InputError
from headstart.models.model import TransferModel

ALONG = torch.tensor([[0.3, 0.0], [0.3, 0.5], [0.3, 1.0]], dtype=torch.float64)


def _source(unseen: tuple[int, ...]) -> Dataset:
    x = torch.linspace(0, 1, 12, dtype=torch.float64)
    return Dataset(torch.stack([x, torch.full_like(x, 0.5)], dim=-1), torch.sin(5 * x), "old", unseen)


@pytest.mark.parametrize("model", [MHGP, SHGP, BHGP, RGPE], ids=["MHGP", "SHGP", "BHGP", "RGPE"])
def test_a_prediction_does_not_change_along_an_unseen_column(model: TransferModel) -> None:
    """Mean and variance of the zero-shot prediction are equal along it, and would not be otherwise."""
    mean, var = model.learn([_source((1,))]).condition().predict(ALONG)
    torch.testing.assert_close(mean, mean[:1].expand(3), rtol=0, atol=1e-12)
    if model is not SHGP and model is not BHGP:
        return  # whose target kernel alone has a variance; it is equal everywhere
    torch.testing.assert_close(var, var[:1].expand(3), rtol=0, atol=1e-12)
    _, seen = model.learn([_source(())]).condition().predict(ALONG)
    assert seen[0] > seen[1] + 1e-6


def test_a_blind_fit_is_the_fit_without_the_column() -> None:
    """The hyperparameters of what was recorded are those of the smaller data set, up to the prior of distances."""
    blind = SHGP.learn([_source((1,))]).condition().hyperparameters.levels[0]  # type: ignore[union-attr]
    assert blind.lengthscale[1] == torch.inf
    assert blind.lengthscale[0].isfinite()


def test_a_blind_model_can_be_read_back_and_rebuilt() -> None:
    """``at`` with the hyperparameters found reproduces the prediction, infinite lengthscale included."""
    source = _source((1,))
    target = Dataset([[0.2, 0.1], [0.7, 0.9]], [0.5, -0.2])
    prior = most_probable(SHGP).learn([source])
    posterior = behind_the_map(prior.condition(target))
    again = SHGP.at(posterior.hyperparameters, sources=prior.sources, target=prior.inward(target))
    torch.testing.assert_close(again.predict(ALONG)[0], posterior.predict(ALONG)[0])
    torch.testing.assert_close(again.predict(ALONG)[1], posterior.predict(ALONG)[1])


def test_the_target_still_learns_along_what_its_source_did_not_see() -> None:
    """The target's own kernel sees every column."""
    x = torch.rand(15, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = Dataset(x, torch.sin(5 * x[:, 0]) + 2 * x[:, 1])
    mean, _ = SHGP.learn([_source((1,))]).condition(target).predict(ALONG)
    assert mean[2] - mean[0] > 1.5


def test_the_columns_stay_with_the_data() -> None:
    """Adding a point keeps them."""
    assert _source((1,)).with_point([0.1, 0.5], 0.0).unseen == (1,)


def test_a_column_that_does_not_exist_is_refused() -> None:
    """The message names the columns there are."""
    with pytest.raises(InputError, match=r"unseen columns of data set 'old' must be among 0 … 1"):
        _source((2,))


def test_an_infinite_lengthscale_is_the_only_infinite_value_allowed() -> None:
    """A target alone may not have an infinite outputscale."""
    target = Dataset([[0.2, 0.1]], [0.5])
    found = GPBO.learn([]).condition(target).hyperparameters.levels[0]  # type: ignore[union-attr]
    with pytest.raises(InputError, match="outputscale"):
        type(found).of(lengthscale=found.lengthscale, outputscale=float("inf"), noise_var=0.1)
