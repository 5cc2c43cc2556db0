"""RGPE and TST-R: how the members of the ensemble are weighted, and what they predict together."""

from __future__ import annotations

import pytest
import torch
from tests.problems import agree, ensemble_params, gp_params, plainly, predictions, quick, tensor, transfer_problem
from torch import Tensor

from headstart import GPBO, RGPE, TSTR, ChainParams, Dataset, EnsembleParams, InputError, Kernel, TransferModel
from headstart.models.chain.beliefs import NoBeliefs
from headstart.models.chain.layer import Layer, Propagation
from headstart.models.ensemble import RankAgreement, misranked_pairs


def _weights(sources: list[Dataset], target: Dataset, model: TransferModel = RGPE) -> Tensor:
    params = plainly(quick(model)).learn(sources).condition(target).hyperparameters
    assert isinstance(params, EnsembleParams)
    return params.weights


def _wave(n: int, *, sign: float = 1.0, seed: int = 0) -> Dataset:
    X = torch.rand(n, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Dataset(X, sign * torch.sin(12 * X[:, 0]))


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("f", "y", "pairs"),
    [
        pytest.param([1, 2, 3], [10, 20, 30], 0, id="same order"),
        pytest.param([3, 2, 1], [10, 20, 30], 6, id="reversed: each of 3 pairs counts both ways"),
        pytest.param([1, 3, 2], [10, 20, 30], 2, id="one pair swapped"),
        pytest.param([1, 1, 1], [10, 20, 30], 3, id="f is flat: each pair is missed one way"),
        pytest.param([1, 2, 3], [10, 10, 10], 3, id="y is flat: each pair is invented one way"),
        pytest.param([5, 5, 5], [10, 10, 10], 0, id="both flat"),
        pytest.param([1, 1, 2], [10, 10, 20], 0, id="the same tie"),
        pytest.param([1, 2, 3], [10, 10, 20], 1, id="a tie in y"),
        pytest.param([7], [3], 0, id="one value has no pair"),
        pytest.param([], [], 0, id="none"),
    ],
)
def test_misranked_pairs_are_counted(f: list[float], y: list[float], pairs: int) -> None:
    """Ordered pairs (j, k) with f_j < f_k where y_j ≥ y_k, or the reverse; a tie on one side counts once."""
    assert misranked_pairs(tensor(f), tensor(y)).item() == pairs


def test_only_the_order_counts() -> None:
    """Any increasing map of f or y leaves the count alone."""
    f, y = (torch.randn(9, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1))
    assert misranked_pairs(f, y) == misranked_pairs(f.exp(), y**3)


def test_samples_and_problems_are_counted_side_by_side() -> None:
    """Leading dimensions broadcast: every sample of every problem has its own count."""
    generator = torch.Generator().manual_seed(0)
    f = torch.randn(4, 3, 6, generator=generator, dtype=torch.float64)
    y = torch.randn(4, 1, 6, generator=generator, dtype=torch.float64)
    counts = misranked_pairs(f, y)
    assert counts.shape == (4, 3)
    assert counts[2, 1] == misranked_pairs(f[2, 1], y[2, 0])


@pytest.mark.parametrize("kernel", list(Kernel))
def test_leave_one_out_equals_leaving_one_out(kernel: Kernel) -> None:
    """The closed form equals the prediction of y_i by the process conditioned on all the others."""
    data, params = transfer_problem(n_target=6).target, gp_params(2)

    def process(X: Tensor, y: Tensor) -> Layer:
        below = NoBeliefs(torch.Size(()))
        return Layer.observe(below, params, Dataset(X, y), kernel=kernel, propagation=Propagation.EXACT)

    mean, var = process(data.X, data.y).leave_one_out(data.y)
    for i in range(data.n):
        others = torch.arange(data.n) != i
        mean_i, var_i = process(data.X[others], data.y[others]).predict_marginal(data.X[i : i + 1])
        assert mean[i].item() == pytest.approx(mean_i.item(), rel=1e-10)
        assert var[i].item() == pytest.approx(var_i.item() + params.noise_var.item(), rel=1e-10)


# ── weights ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("s", [1, 3])
def test_without_a_pair_the_sources_share_the_weight(n: int, s: int) -> None:
    """With fewer than two observations nothing can be ranked: each source has 1/s, the target 0."""
    problem = transfer_problem(sizes=(4,) * s, n_target=1)
    assert _weights(list(problem.sources), problem.head(n)).tolist() == pytest.approx([1 / s] * s + [0.0])


def test_a_source_that_ranks_perfectly_gets_nearly_all_the_weight() -> None:
    """A source that is the target itself beats a target model of few observations, and a useless source."""
    weights = _weights([_wave(40), _wave(40, sign=-1.0)], _wave(8, seed=1))
    assert weights[0].item() > 0.95
    assert weights[1].item() == 0.0


def test_a_reversed_source_ends_up_with_nothing() -> None:
    """After enough observations a source that ranks the wrong way round has weight 0, and the target all of it."""
    weights = _weights([_wave(40, sign=-1.0)], _wave(12, seed=1))
    assert weights.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("n", [2, 3, 8])
def test_weights_are_shares(n: int) -> None:
    """They are not negative and sum to 1."""
    problem = transfer_problem(n_target=n)
    weights = _weights(list(problem.sources), problem.target)
    assert bool((weights >= 0).all())
    assert weights.sum().item() == pytest.approx(1)


def test_ties_are_shared() -> None:
    """Two identical sources that rank without a doubt have the same weight."""
    source = _wave(40)
    weights = _weights([source, source], _wave(5, seed=1))
    assert weights[0].item() == pytest.approx(weights[1].item(), abs=0.02)


def test_a_source_dropped_for_good_leaves_the_target_alone() -> None:
    """With all the weight on the target the ensemble is GPBO."""
    target = _wave(12, seed=1)
    ensemble = plainly(quick(RGPE)).learn([_wave(40, sign=-1.0)]).condition(target)
    X = _wave(9, seed=2).X
    alone = plainly(quick(GPBO)).learn().condition(target)
    assert agree(predictions(ensemble, X), predictions(alone, X), rtol=1e-9)


def test_after_the_horizon_every_worse_source_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The horizon is when dropping becomes certain: with a short one a poor source has no weight."""
    monkeypatch.setattr("headstart.models.ensemble._HORIZON", 1)
    poor = _wave(20, seed=3)
    poor = Dataset(poor.X, torch.cos(3 * poor.X[:, 0]))
    assert _weights([poor], _wave(9, seed=1))[0].item() == 0.0


# ── TST-R ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _on_a_line(values: list[float]) -> Dataset:
    """Results at equal steps of one input."""
    return Dataset(torch.linspace(0, 1, len(values), dtype=torch.float64).unsqueeze(-1), tensor(values))


def _kernel_weights(means: list[list[float]], y: list[float], bandwidth: float) -> list[float]:
    """TST-R's weights, pair by pair: a pair that only one side finds equal is half a wrong one."""
    kernel = []
    for mean in [*means, y]:
        pairs = wrong = 0.0
        for j in range(len(y)):
            for k in range(j):
                pairs += 1
                by_mean, by_result = mean[j] - mean[k], y[j] - y[k]
                wrong += 1.0 if by_mean * by_result < 0 else 0.5 if (by_mean == 0) != (by_result == 0) else 0.0
        t = wrong / pairs / bandwidth
        kernel.append(0.75 * (1 - t * t) if t <= 1 else 0.0)
    return [own / sum(kernel) for own in kernel]


@pytest.mark.parametrize(
    ("y", "rates"),
    [
        pytest.param([0, 1, 2, 3, 4, 5], (0 / 15, 15 / 15), id="each pair counts once"),
        pytest.param([0, 1, 2, 3, 5, 4], (1 / 15, 14 / 15), id="one pair swapped"),
        pytest.param([0, 1, 2, 3, 4, 4], (0.5 / 15, 14.5 / 15), id="a tie is half a pair"),
        pytest.param([1, 0, 3, 2, 4, 5], (2 / 15, 13 / 15), id="two pairs swapped: beyond the bandwidth"),
    ],
)
@pytest.mark.parametrize("bandwidth", [0.1, 0.5])
def test_a_source_is_weighted_by_the_rate_of_pairs_it_ranks_wrongly(
    y: list[float], rates: tuple[float, float], bandwidth: float
) -> None:
    """¾ (1 − t²) of t = rate/bandwidth, nothing from t = 1 on, and ¾ for the target; then divided by the sum."""
    rising, falling = _on_a_line([0, 1, 2, 3, 4, 5]), _on_a_line([5, 4, 3, 2, 1, 0])
    kernel = [*(0.75 * max(0.0, 1 - (rate / bandwidth) ** 2) for rate in rates), 0.75]
    model = TSTR.using(weighting=RankAgreement(bandwidth=bandwidth))
    weights = _weights([rising, falling], _on_a_line(y), model)
    assert weights.tolist() == pytest.approx([own / sum(kernel) for own in kernel])


def test_tst_r_is_its_formula() -> None:
    """Weights pair by pair from the sources' means at the target's points; the variance is the target process's own."""
    problem = transfer_problem(n_target=9, sizes=(12, 9, 8))
    kin, other, reverse = problem.sources
    sources = [kin, Dataset(other.X, other.X[:, 0]), Dataset(reverse.X, 7 - 3 * reverse.y)]
    weighting = RankAgreement(bandwidth=1.5)  # so wide that all sources have a weight
    model = plainly(quick(TSTR)).using(weighting=weighting).learn(sources).condition(problem.target)
    params = model.hyperparameters
    assert isinstance(params, EnsembleParams)
    tasks = (*sources, problem.target)
    alone = [
        GPBO.using(kernel=Kernel.RBF).at(ChainParams((own,)), target=t)
        for own, t in zip(params.levels, tasks, strict=True)
    ]
    at_target = [own.predict(problem.target.X)[0].tolist() for own in alone[:-1]]
    weights = tensor(_kernel_weights(at_target, problem.target.y.tolist(), 1.5))
    assert len({round(float(w), 6) for w in weights if w > 0}) == 4
    assert agree(params.weights, weights, rtol=1e-12)
    own = problem.target.y.mean(), problem.target.y.std(correction=0)
    standardised = [
        (one.posterior(problem.Xq).distribution.mean - t.y.mean()) / t.y.std(correction=0)
        for one, t in zip(alone, tasks, strict=True)
    ]
    found = model.posterior(problem.Xq).distribution
    assert agree(
        found.mean, own[0] + own[1] * sum(w * mean for w, mean in zip(weights, standardised, strict=True)), rtol=1e-9
    )
    assert agree(found.covariance_matrix, alone[-1].posterior(problem.Xq).distribution.covariance_matrix, rtol=1e-9)


@pytest.mark.parametrize("n", [0, 1])
def test_tst_r_without_a_pair_trusts_everyone(n: int) -> None:
    """No pair is ranked wrongly where there is none: sources and target have the same weight."""
    problem = transfer_problem(n_target=1)
    assert _weights(list(problem.sources), problem.head(n), TSTR).tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("bandwidth", [0, -0.1, float("nan"), float("inf"), "wide", True])
def test_a_bandwidth_is_a_rate(bandwidth: object) -> None:
    """Anything but a number above 0 is refused."""
    with pytest.raises(InputError, match="bandwidth must be a rate of pairs, a number above 0, but it is"):
        RankAgreement(bandwidth=bandwidth)  # type: ignore[arg-type]


# ── predictions ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ensemble_is_the_weighted_sum_of_its_members() -> None:
    """mean Σ w_i μ_i and covariance Σ w_i² Σ_i, where every member is a process of its own task."""
    problem = transfer_problem()
    levels = tuple(gp_params(2, seed=i) for i in range(3))
    tasks = (*problem.sources, problem.target)
    params = ensemble_params(levels, [0.5, 0.2, 0.3])
    ensemble = RGPE.at(params, sources=problem.sources, target=problem.target).posterior(problem.Xq).distribution
    members = [
        GPBO.at(ChainParams((level,)), target=task).posterior(problem.Xq).distribution
        for level, task in zip(levels, tasks, strict=True)
    ]
    mean = sum(w * m.mean for w, m in zip((0.5, 0.2, 0.3), members, strict=True))
    cov = sum(w**2 * m.covariance_matrix for w, m in zip((0.5, 0.2, 0.3), members, strict=True))
    assert agree(ensemble.mean, mean, rtol=1e-12)
    assert agree(ensemble.covariance_matrix, cov, rtol=1e-12)


def test_a_member_speaks_in_the_units_of_the_target() -> None:
    """A source in other units, with its offset and scale given, says the same about the target."""
    problem = transfer_problem(sizes=(8,))
    (source,), (one, two) = problem.sources, (gp_params(2, seed=i) for i in range(2))
    moved = Dataset(source.X, 50 + 20 * source.y)
    plain = ensemble_params((one, two), [0.6, 0.4])
    other = ensemble_params((one.scaled(tensor(20.0), tensor(50.0)), two), [0.6, 0.4], [50.0, 0.0], [20.0, 1.0])
    a = RGPE.at(plain, sources=[source], target=problem.target)
    b = RGPE.at(other, sources=[moved], target=problem.target)
    assert agree(predictions(a, problem.Xq), predictions(b, problem.Xq), rtol=1e-12)
