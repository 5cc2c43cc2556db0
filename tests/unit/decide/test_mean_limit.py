"""Where a point may be while the past is all there is."""

from __future__ import annotations

import pytest
import torch
from tests.outcome_problems import TWO, known
from tests.problems import points, quick, tensor
from torch import Tensor

from headstart import AUTO, GPBO, SHGP, Dataset, TransferPosterior
from headstart.decide.acquisition import Acquisition
from headstart.decide.aim import Aim, Filter
from headstart.decide.domain import Candidates
from headstart.decide.front import front_of
from headstart.decide.suggest import suggest
from headstart.tuning import AUTO_TUNING

CAREFUL, VERY_CAREFUL = AUTO_TUNING.few_results, AUTO_TUNING.first_points


def _bowl(X: Tensor) -> Tensor:
    return (X - 0.3).square().sum(-1)


def _posterior(n: int) -> TransferPosterior:
    """A target like its source, n results of which are known."""
    X, target = points(30, seed=0), points(n, seed=1)
    return quick(AUTO).learn([Dataset(X, _bowl(X))]).condition(Dataset(target, _bowl(target)))


def _limit(posterior: TransferPosterior, X: Tensor, n_awaited: int = 0) -> Filter | None:
    return Aim.of(posterior).mean_limit(X, points(n_awaited, seed=2))


@pytest.mark.parametrize("n", [0, VERY_CAREFUL - 1, VERY_CAREFUL, CAREFUL - 1])
def test_a_point_alone_is_expected_to_be_good_and_later_no_worse_than_typical(n: int) -> None:
    """Typical is the median of what the mixture expects of the points that are compared."""
    posterior, X = _posterior(n), points(41, seed=3)
    mean = Aim.of(posterior).expected[0].means(X)
    limit = _limit(posterior, X)
    assert limit is not None
    expected = mean.min() + 0.4 * (mean.median() - mean.min()) if n < VERY_CAREFUL else mean.median()
    assert torch.equal(limit(X), mean <= expected + 1e-9)
    assert n < VERY_CAREFUL or int(limit(X).sum()) == 21


@pytest.mark.parametrize("n", [0, VERY_CAREFUL])
def test_with_several_objectives_the_whole_front_is_allowed_and_not_its_ends_alone(n: int) -> None:
    """What counts is the distance from the front of what is expected; of each objective as far as of it alone."""
    aim, X = Aim.of(known(TWO, n)), points(400, seed=3)
    limit = aim.mean_limit(X, X[:0])
    assert limit is not None
    between = tensor([[0.3, 0.5], [0.5, 0.5], [0.7, 0.5]])
    assert bool(limit(between).all())
    means = torch.stack([own.means(X) for own in aim.expected], dim=-1)
    share = AUTO_TUNING.first_points_reach if n < VERY_CAREFUL else 1.0
    room = share * (means.quantile(0.5, dim=0) - means.amin(0))
    near = (means.unsqueeze(1) <= means[front_of(means)] + room + 1e-9).all(-1).any(-1)
    assert torch.equal(limit(X), near)
    assert 0 < int(near.sum()) < len(X)


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


def test_one_point_in_four_explores_also_where_each_is_asked_for_alone_with_as_many_awaited() -> None:
    """With three places that are always taken and a fourth that gets free, not every point is as bad as typical."""
    X, everywhere = points(41, seed=3), points(2000, seed=6)
    allowed = []
    for n in range(5):
        limit = _limit(_posterior(n), X, 3)
        assert limit is not None
        allowed.append(int(limit(everywhere).sum()))
    assert min(allowed[0], allowed[4]) > 2 * max(allowed[1:4])


def test_without_a_past_a_point_of_a_batch_is_no_worse_than_typical() -> None:
    """However many are awaited."""
    X = points(41, seed=3)
    blind = quick(GPBO).learn().condition(Dataset(X[:5], _bowl(X[:5])))
    own = Aim.of(blind).expected[0]
    for n_awaited in (1, 2, 3):
        limit = _limit(blind, X, n_awaited)
        assert limit is not None
        assert torch.equal(limit(X), own.means(X) <= own.means(torch.cat([X, points(n_awaited, seed=2)])).quantile(0.5))


@pytest.mark.parametrize("n", [0, 5, 6])
def test_rows_of_a_list_are_chosen_below_the_same_limit(n: int) -> None:
    """Of a list no row is chosen that all together expect to be worse than most, also where one of them decides."""
    posterior, X = _posterior(n), points(41, seed=4)
    own = Aim.of(posterior).expected[0]
    for rows in (X, X[own.means(X) > own.means(X).median()]):
        x = suggest(posterior, domain=Candidates(rows))
        assert float(own.means(x.unsqueeze(0))) <= float(own.means(rows).median()) + 1e-12


def test_autos_first_point_is_the_one_with_the_lowest_mean_and_others_ask_for_improvement() -> None:
    """With no result there is nothing to improve on, so the mixture's mean counts and not its doubts."""
    posterior, X = _posterior(0), points(60, seed=5)
    x = suggest(posterior, domain=Candidates(X))
    assert torch.equal(x, X[Aim.of(posterior).expected[0].means(X).argmin()])

    def beta(posterior: TransferPosterior, kind: Acquisition = Acquisition.LOG_EI) -> float | None:
        return Aim.of(posterior, kind, 2.0).value(X, X[:0], torch.Generator()).beta

    assert beta(posterior) == 0.0
    assert beta(posterior, Acquisition.LCB) == 2.0
    assert beta(_posterior(1)) is None
    assert beta(quick(SHGP).learn([Dataset(X, _bowl(X))]).condition(Dataset(X[:0], _bowl(X[:0])))) is None
