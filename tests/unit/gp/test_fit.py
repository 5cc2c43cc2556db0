"""Multi-start fitting, driven by an evidence whose optimum is known."""

from __future__ import annotations

import math
import re
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import pytest
import torch
from tests.problems import agree, tensor
from torch import Tensor

from headstart import FitOptions, FitReport, InputError, Kernel, NumericalError, Objective, Starts
from headstart.gp import fit as fitting
from headstart.gp.evidence import Evidence, GaussianEvidence
from headstart.gp.fit import Seed, fit, generator_from
from headstart.gp.hyperparameters import Inputs, gp_layout

LIKELIHOOD = FitOptions(objective=Objective.LIKELIHOOD, restarts=6)


@dataclass
class Bowl:
    """A quadratic bowl in θ around ``minimum[problem]``, not to be seen where the first parameter exceeds ``cliff``."""

    minimum: Tensor
    cliff: float = math.inf
    value_there: float = 0.0
    ok_there: bool = False
    steepness: float = 1.0
    n_observations: int = 4
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.layout = gp_layout(Inputs.of(self.minimum.shape[-1] - 2), residual=False)
        self.device = torch.device("cpu")
        self.n_problems = len(self.minimum)

    def evaluate(self, theta: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.evaluations += len(theta)
        away = theta - self.minimum[items]
        value, beyond = 0.5 * self.steepness * away.square().sum(-1), theta[:, 0] > self.cliff
        return torch.where(beyond, self.value_there, value), self.steepness * away, ~beyond | self.ok_there


MINIMUM = tensor([[-1.0, 0.5, -3.0]])


def _fit(evidence: Evidence, options: FitOptions, *, seed: Seed = 0, task: str = "target") -> tuple[Tensor, FitReport]:
    P = evidence.n_problems
    return fit(evidence, options, seed=seed, task=task, batch_shape=torch.Size(() if P == 1 else (P,)))


def _starts(options: FitOptions, seed: int = 0) -> Tensor:
    return gp_layout(Inputs.of(1), residual=False).starts(
        options.starts, options.restarts, torch.Generator().manual_seed(seed)
    )


# ── what is found ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_likelihood_finds_the_minimum_of_the_evidence() -> None:
    """With ``Objective.LIKELIHOOD`` θ is where the evidence is best."""
    theta, report = _fit(Bowl(MINIMUM), LIKELIHOOD)
    assert torch.allclose(theta, MINIMUM[0], atol=1e-4)
    assert bool(report.converged.all())


def test_map_weighs_the_evidence_against_the_prior() -> None:
    """With ``Objective.POSTERIOR`` each entry of θ is the mean of evidence and prior weighted by their precisions."""
    bowl = Bowl(MINIMUM)
    theta, _ = _fit(bowl, FitOptions(gtol=1e-9, ftol=0.0))
    precision, centre = bowl.layout.precision(), bowl.layout.centre()
    assert torch.allclose(theta, (MINIMUM[0] + precision * centre) / (1 + precision), atol=1e-6)


@pytest.mark.parametrize("loose", [replace(LIKELIHOOD, gtol=1e6), replace(LIKELIHOOD, ftol=1e6)], ids=["gtol", "ftol"])
def test_a_restart_ends_where_the_options_say(loose: FitOptions) -> None:
    """A wide tolerance of either kind is met sooner than the default."""
    early, late = (_fit(Bowl(MINIMUM), options)[1] for options in (loose, LIKELIHOOD))
    assert bool(early.converged.all())
    assert int(early.evaluations.sum()) < int(late.evaluations.sum())


def test_an_optimum_beyond_a_bound_ends_on_it() -> None:
    """θ stays inside the bounds of its layout."""
    theta, _ = _fit(Bowl(tensor([[-99.0, 99.0, -3.0]])), LIKELIHOOD)
    lower, upper = gp_layout(Inputs.of(1), residual=False).bounds()
    assert theta.tolist() == pytest.approx([lower[0].item(), upper[1].item(), -3.0], abs=1e-4)


@pytest.mark.parametrize("objective", list(Objective))
def test_without_observations_the_prior_decides(objective: Objective) -> None:
    """At n = 0 θ is the median of the prior, nothing is evaluated, and the report has no restarts."""
    bowl = Bowl(MINIMUM.expand(3, 3), n_observations=0)
    theta, report = _fit(bowl, FitOptions(objective=objective))
    assert torch.equal(theta, bowl.layout.centre().expand(3, 3))
    assert bowl.evaluations == 0
    assert report.objective.shape == report.evaluations.shape == report.converged.shape == (3, 0)
    assert str(report) == "target: 0 observations, 0 restarts, 0 of 0 converged, 0 evaluations, 0 failed factorisations"


def test_a_process_without_observations_has_the_documented_medians() -> None:
    """At n = 0 a process has lengthscale 0.3 √d, outputscale 1 and noise variance 0.01."""
    nothing = torch.empty(1, 0, 4, dtype=torch.float64)
    evidence = GaussianEvidence(nothing, nothing[..., 0], None, kernel=Kernel.RBF, residual=False, free_offset=True)
    theta, _ = _fit(evidence, FitOptions())
    params = evidence.params(theta[None])
    assert params.lengthscale[0].tolist() == pytest.approx([0.6] * 4)
    assert (params.outputscale.item(), params.noise_var.item(), params.offset.item()) == pytest.approx((1.0, 0.01, 0.0))


def test_every_problem_of_a_batch_gets_what_it_gets_alone() -> None:
    """Problems share their starting points, so a batch changes nothing for any of them."""
    minima = tensor([[-1.0, 0.5, -3.0], [0.2, -2.0, -5.0], [-2.0, 1.0, -0.1]])
    theta, report = _fit(Bowl(minima), LIKELIHOOD)
    for i in range(3):
        alone, its = _fit(Bowl(minima[i : i + 1]), LIKELIHOOD)
        assert torch.equal(theta[i], alone)
        assert torch.equal(report.evaluations[i], its.evaluations)
        assert torch.equal(report.objective[i], its.objective)


def test_equal_seeds_give_equal_results() -> None:
    """A seed, or a generator seeded with it, decides everything; another seed starts elsewhere."""
    one, report = _fit(Bowl(MINIMUM), LIKELIHOOD, seed=3)
    two, again = _fit(Bowl(MINIMUM), LIKELIHOOD, seed=torch.Generator().manual_seed(3))
    _, other = _fit(Bowl(MINIMUM), LIKELIHOOD, seed=4)
    assert torch.equal(one, two)
    assert torch.equal(report.objective, again.objective)
    assert not torch.equal(report.objective, other.objective)


def test_fitting_leaves_the_global_random_state_alone() -> None:
    """No seed of the user's is consumed."""
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    _fit(Bowl(MINIMUM), LIKELIHOOD, seed=None)
    assert torch.equal(torch.rand(1), expected)


def test_a_generator_is_used_as_it_is() -> None:
    """A generator given as a seed is advanced by the fit; none means a fresh one each time."""
    generator = torch.Generator().manual_seed(0)
    assert generator_from(generator) is generator
    before = generator.get_state()
    _fit(Bowl(MINIMUM), LIKELIHOOD, seed=generator)
    assert not torch.equal(generator.get_state(), before)
    assert generator_from(None).initial_seed() != generator_from(None).initial_seed()


def test_of_equal_optima_the_first_is_taken() -> None:
    """Where restarts end in the same optimum, rounding does not choose among them."""
    _, report = _fit(Bowl(MINIMUM), LIKELIHOOD)
    lowest = report.objective.min()
    assert bool((report.objective <= lowest + 1e-7).all())
    assert report.best.item() == 0


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value_there", "ok_there"), [(0.0, False), (math.nan, True), (-math.inf, True)], ids=["failed", "NaN", "-inf"]
)
def test_a_failed_factorisation_spoils_only_its_own_restart(value_there: float, ok_there: bool) -> None:
    """Restarts that begin where nothing can be computed are lost; the others do what they do without them."""
    starts = _starts(LIKELIHOOD)
    cliff = starts[:, 0].sort().values[3:5].mean().item()  # two of the six begin beyond it
    lost = starts[:, 0] > cliff
    bowl = Bowl(tensor([[starts[:, 0].min().item(), 0.5, -3.0]]), cliff, value_there, ok_there)
    theta, report = _fit(bowl, LIKELIHOOD)
    _, healthy = _fit(Bowl(bowl.minimum), LIKELIHOOD)
    assert int(lost.sum()) == 2
    assert torch.equal(report.failures > 0, lost)
    assert not bool(report.converged[lost].any())
    assert torch.equal(report.objective[~lost], healthy.objective[~lost])
    assert torch.equal(report.evaluations[~lost], healthy.evaluations[~lost])
    assert torch.allclose(theta, bowl.minimum[0], atol=1e-4)
    assert not bool(lost[report.best])


def test_a_line_search_steps_back_from_a_failure() -> None:
    """A restart that runs into a failed factorisation goes on from where it was."""
    theta, report = _fit(Bowl(MINIMUM, cliff=-0.9, steepness=100.0), replace(LIKELIHOOD, restarts=20))
    recovered = (report.failures > 0) & report.converged
    assert bool(recovered.any())
    assert report.objective[recovered].max().item() < 1e-6
    assert torch.allclose(theta, MINIMUM[0], atol=1e-4)


def test_if_every_restart_fails_the_error_says_what_to_do() -> None:
    """The message names the task, the restarts and the observations, says why and what helps."""
    message = (
        r"source 2 \('2019'\): the covariance matrix could not be factorised from any of 6 starting points "
        r"\(1 of 1 problems, 4 observations\).*repeated inputs.*FitOptions\.restarts.*merging repeated rows"
    )
    with pytest.raises(NumericalError, match=message):
        _fit(Bowl(MINIMUM, cliff=-math.inf), LIKELIHOOD, task="source 2 ('2019')")


def test_a_problem_that_fails_is_counted_in_its_batch() -> None:
    """If one problem of a batch cannot be fitted at all, the error says how many there are."""

    class OneIsBroken(Bowl):
        def evaluate(self, theta: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            value, gradient, ok = super().evaluate(theta, items)
            return value, gradient, ok & (items != 1)

    with pytest.raises(NumericalError, match=r"1 of 3 problems"):
        _fit(OneIsBroken(MINIMUM.expand(3, 3)), LIKELIHOOD)


# ── the report ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_report_says_what_every_restart_did() -> None:
    """Objective per observation, evaluations, convergence and failures of each restart, and which was best."""
    bowl = Bowl(MINIMUM)
    options = replace(LIKELIHOOD, max_iterations=1)
    theta, report = _fit(bowl, options)
    assert report.task == "target"
    assert report.n_observations == 4
    assert report.objective.shape == report.evaluations.shape == report.converged.shape == report.failures.shape == (6,)
    assert int(report.evaluations.sum()) == bowl.evaluations
    assert not bool(report.failures.any())
    assert report.best.item() == report.objective.argmin().item()
    assert report.objective.min().item() == pytest.approx(
        0.5 * (theta - MINIMUM[0]).square().sum().item() / 4, abs=1e-12
    )
    assert not bool(report.converged.all())


def test_the_report_of_one_problem_prints_a_line_per_restart() -> None:
    """A star marks the best restart; failures and early stops are spelled out."""
    report = FitReport(
        task="source 0",
        objective=tensor([1.5, -0.25, 1e10]),
        evaluations=torch.tensor([12, 7, 1]),
        converged=torch.tensor([False, True, False]),
        failures=torch.tensor([0, 0, 1]),
        joined=torch.tensor([1, -1, -1]),
        best=torch.tensor(1),
        n_observations=9,
    )
    head, *rows = str(report).splitlines()
    assert head == "source 0: 9 observations, 3 restarts, 1 of 3 converged, 20 evaluations, 1 failed factorisations"
    assert rows[0] == "    0   objective +1.500000  evaluations   12  stopped early, with restart 1"
    assert rows[1] == "    1 * objective -0.250000  evaluations    7  converged"
    assert re.fullmatch(r"    2   objective \+10000000000.000000  evaluations    1  stopped early  failures 1", rows[2])


def test_the_report_of_a_batch_prints_one_line() -> None:
    """For many problems only the sums are printed."""
    _, report = _fit(Bowl(MINIMUM.expand(5, 3)), LIKELIHOOD)
    assert re.fullmatch(
        r"target: 4 observations, 6 restarts, 30 of 30 converged, \d+ evaluations, 0 failed factorisations", str(report)
    )
    assert report.best.shape == (5,)


def test_the_report_is_frozen() -> None:
    """What happened cannot be changed."""
    _, report = _fit(Bowl(MINIMUM), LIKELIHOOD)
    with pytest.raises(FrozenInstanceError):
        report.task = "another"  # type: ignore[misc]


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_papers_settings() -> None:
    """Maximum likelihood, 10 restarts, starts softplus(N(0, 1))."""
    paper = FitOptions.paper()
    assert (paper.objective, paper.starts, paper.restarts) == (Objective.LIKELIHOOD, Starts.SOFTPLUS, 10)


def test_the_default_is_map_from_the_prior() -> None:
    """MAP, starting at the prior's median, in the unit cube."""
    default = FitOptions()
    assert (default.objective, default.starts, default.unit_cube) == (Objective.POSTERIOR, Starts.PRIOR, True)


@pytest.mark.parametrize(
    "bad",
    [
        {"restarts": 0},
        {"restarts": -1},
        {"restarts": 2.5},
        {"max_iterations": 0},
        {"ftol": -1e-9},
        {"gtol": -1.0},
        {"ftol": math.nan},
        {"gtol": math.nan},
        {"objective": "map"},
        {"starts": "softplus"},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    """Numbers that cannot be used, and strings where an enum is meant, are an ``InputError`` that names the option."""
    with pytest.raises(InputError, match=next(iter(bad))):
        FitOptions(**bad)


def test_options_are_frozen() -> None:
    """Other settings are another object."""
    with pytest.raises(FrozenInstanceError):
        FitOptions().restarts = 3  # type: ignore[misc]


# ── a real evidence ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_process_is_fitted_where_its_gradient_vanishes() -> None:
    """At the fitted θ of a Gaussian process the derivative of the objective is 0, or the bound holds it."""
    X = torch.rand(1, 20, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.sin(6 * X).sum(-1)
    evidence = GaussianEvidence(X, y, None, kernel=Kernel.RBF, residual=False, free_offset=False)
    theta, report = _fit(evidence, replace(FitOptions.paper(), ftol=0.0, gtol=1e-7))
    value, gradient, ok = evidence.evaluate(theta[None], torch.zeros(1, dtype=torch.int64))
    lower, upper = evidence.layout.bounds()
    inside = (theta > lower + 1e-9) & (theta < upper - 1e-9)
    assert bool(ok.all())
    assert agree(value / 20, report.objective.min()[None], rtol=1e-10)
    assert float(gradient[0, inside].abs().max()) / 20 < 1e-5


def _smooth(seed: int, n: int = 60, problems: int = 1) -> GaussianEvidence:
    """Sums of sines of six inputs with a tenth of noise, standardised."""
    sets = []
    for i in range(problems):
        generator = torch.Generator().manual_seed(seed + i)
        X = torch.rand(n, 6, generator=generator, dtype=torch.float64)
        y = torch.sin(4 * X).sum(-1) + X[:, 0] * X[:, 1] + 0.1 * torch.randn(n, generator=generator).double()
        sets.append((X, (y - y.mean()) / y.std()))
    X, y = (torch.stack(column) for column in zip(*sets, strict=True))
    return GaussianEvidence(X, y, None, kernel=Kernel.RBF, residual=False, free_offset=False)


def test_restarts_without_priors_join_where_they_differ_in_nothing_that_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The best likelihood is that of restarts which all go to their own end, for fewer evaluations."""
    evidence = _smooth(3, n=30)
    _, joined = _fit(evidence, FitOptions.paper())
    monkeypatch.setattr(fitting, "Joining", lambda *_: None)
    _, alone = _fit(evidence, FitOptions.paper())
    assert bool((joined.joined >= 0).any())
    assert joined.objective.min().item() == pytest.approx(alone.objective.min().item(), abs=1e-6)
    assert int(joined.evaluations.sum()) < int(alone.evaluations.sum())


def test_every_problem_of_a_batch_of_processes_is_fitted_as_it_is_alone() -> None:
    """With a real evidence, to the last bit."""
    options = replace(FitOptions.paper(), restarts=4)
    theta, report = _fit(_smooth(3, n=12, problems=3), options)
    for i in range(3):
        alone, its = _fit(_smooth(3 + i, n=12), options)
        assert torch.equal(theta[i], alone)
        assert torch.equal(report.evaluations[i], its.evaluations)
        assert torch.equal(report.objective[i], its.objective)


def test_a_warm_start_takes_the_place_of_the_last_start() -> None:
    """With a single restart it is the only one; the others are drawn as without it."""
    bowl, there = Bowl(MINIMUM), MINIMUM + 1e-3
    once = replace(LIKELIHOOD, restarts=1, max_iterations=1)
    _, report = fit(bowl, once, seed=0, task="", batch_shape=torch.Size(), warm_start=there)
    assert report.objective.item() <= 0.5 * 3e-6 / 4
    few = replace(LIKELIHOOD, max_iterations=1)
    _, with_it = fit(bowl, few, seed=0, task="", batch_shape=torch.Size(), warm_start=there)
    _, without = fit(bowl, few, seed=0, task="", batch_shape=torch.Size())
    assert torch.equal(with_it.objective[:-1], without.objective[:-1])
    assert with_it.objective[-1] < without.objective[-1]
