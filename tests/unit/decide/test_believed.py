"""Where a point alone may be while the past is all there is."""

from __future__ import annotations

import pytest
import torch
from tests.problems import points, quick
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, Dataset, TransferPosterior
from headstart.decide.acquisition import Acquisition, acquisition_values
from headstart.decide.average import voices
from headstart.decide.believed import CAREFUL, VERY_CAREFUL, Believed, opening
from headstart.decide.domain import Candidates
from headstart.decide.fast.slopes import means_at
from headstart.decide.rows import suggest_row
from headstart.decide.suggest import suggest


def _bowl(X: Tensor) -> Tensor:
    return (X - 0.3).square().sum(-1)


def _posterior(n: int) -> TransferPosterior:
    """A target like its source, n results of which are known."""
    X, target = points(30, seed=0), points(n, seed=1)
    return quick(AUTO).learn([Dataset(X, _bowl(X))]).condition(Dataset(target, _bowl(target)))


def _limit(posterior: TransferPosterior, X: Tensor, n_awaited: int = 0) -> Believed | None:
    return Believed.among(posterior, *voices(posterior.predictor), X, points(n_awaited, seed=2))


@pytest.mark.parametrize("n", [0, VERY_CAREFUL - 1, VERY_CAREFUL, CAREFUL - 1])
def test_a_point_alone_is_expected_to_be_good_and_later_no_worse_than_typical(n: int) -> None:
    """Typical is the median of what the mixture expects of the points that are compared."""
    posterior, X = _posterior(n), points(41, seed=3)
    mean = means_at(*voices(posterior.predictor), X)
    limit = _limit(posterior, X)
    assert limit is not None
    expected = mean.min() + 0.4 * (mean.median() - mean.min()) if n < VERY_CAREFUL else mean.median()
    torch.testing.assert_close(limit.limit, expected)
    assert int(limit(X).sum()) == int((mean <= expected + 1e-9).sum())
    assert n < VERY_CAREFUL or int(limit(X).sum()) == 21


def test_with_enough_results_or_nothing_to_believe_a_point_alone_may_be_anywhere() -> None:
    """There is a limit in a batch only, as there is where a model is given and no past with it."""
    X = points(40, seed=3)
    some = Dataset(X[:3], _bowl(X[:3]))
    known, blind = _posterior(CAREFUL), quick(GPBO).learn().condition(some)
    assert bool(blind.blind)
    given = GPBO.at(blind.hyperparameters, target=some)
    assert not bool(given.blind)
    for posterior in (known, blind, given):
        assert _limit(posterior, X) is None
        assert _limit(posterior, X, 1) is not None


def test_in_a_batch_of_problems_each_has_a_limit_of_its_own() -> None:
    """Where the sources say nothing a point alone may be anywhere, whatever is known of the other problem."""
    X = points(30, seed=0)
    y = torch.stack([_bowl(X), torch.randn(30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)])
    posterior = quick(AUTO).learn([Dataset(X.expand(2, 30, 2), y)]).condition()
    assert posterior.blind.tolist() == [False, True]
    limit = Believed.among(
        posterior, *voices(posterior.predictor), points(41, seed=3).expand(2, 41, 2), X[:0].expand(2, 0, 2)
    )
    assert limit is not None
    assert limit.limit.isfinite().tolist() == [True, False]
    few, all_of_them = limit(points(41, seed=3).expand(2, 41, 2)).sum(-1).tolist()
    assert 1 <= few < 21
    assert all_of_them == 41


@pytest.mark.parametrize("n", [0, 5, 6])
def test_rows_of_a_list_are_chosen_below_the_same_limit(n: int) -> None:
    """Of a list no row is chosen that all together expect to be worse than most, also where one of them decides."""
    posterior, X = _posterior(n), points(41, seed=4)
    mean = means_at(*voices(posterior.predictor), X)
    row = int(suggest_row(posterior, X, torch.ones(41, dtype=torch.bool)))
    assert torch.equal(X[row], suggest(posterior, domain=Candidates(X)))
    assert float(mean[row]) <= float(mean.median())
    worse = mean > mean.median()
    row = int(suggest_row(posterior, X, worse))
    assert torch.equal(X[row], suggest(posterior, domain=Candidates(X[worse])))
    assert float(mean[row]) <= float(mean[worse].median())


def _improvement(posterior: TransferPosterior, X: Tensor) -> Tensor:
    mean, var = posterior.predictor.predict_marginal(X)
    return acquisition_values(Acquisition.LOG_EI, mean, var, best_f=mean.min(), noise_var=posterior.predictor.noise_var)


def test_autos_first_point_is_the_one_with_the_lowest_mean_and_the_second_is_not_bound_to_it() -> None:
    """With no result there is nothing to improve on, so what counts is what the mixture expects and not its doubts."""
    past = [points(30, seed=seed) for seed in (0, 1)]
    agree_on_the_left = [sign * 0.7 * X[:, 0].square() for X, sign in zip(past, (1, -1), strict=True)]
    sources = [Dataset(X, _bowl(X) + apart) for X, apart in zip(past, agree_on_the_left, strict=True)]
    posterior = quick(AUTO).learn(sources).condition(Dataset(past[0][:0], _bowl(past[0][:0])))
    X = points(60, seed=4)
    mean, _ = posterior.predictor.predict_marginal(X)
    sure, unsure = next(
        (i, j)
        for i in range(60)
        for j in range(60)
        if mean[i] < mean[j] and _improvement(posterior, X[[i, j]]).argmax() == 1
    )
    pair = X[[unsure, sure]]
    assert int(suggest_row(posterior, pair, torch.ones(2).bool())) == 1
    torch.testing.assert_close(suggest(posterior, domain=Candidates(pair)), X[sure])
    anywhere = suggest(posterior, n_candidates=64)
    assert float(posterior.predictor.predict_marginal(anywhere.unsqueeze(0))[0]) <= float(mean.min())
    assert opening(_posterior(1), Acquisition.LOG_EI, 2.0) == (Acquisition.LOG_EI, 2.0)
    assert opening(posterior, Acquisition.LCB, 2.0) == (Acquisition.LCB, 2.0)


def test_other_models_ask_for_improvement_from_the_first_point_on() -> None:
    """The rule is AUTO's: a single model decides as the paper's."""
    X = points(30, seed=0)
    single = quick(SHGP).learn([Dataset(X, _bowl(X))]).condition(Dataset(X[:0], _bowl(X[:0])))
    assert opening(single, Acquisition.LOG_EI, 2.0) == (Acquisition.LOG_EI, 2.0)
