"""What holds for every model of the family, with every option and any number of observations."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from typing import Any

import pytest
import torch
from tests.problems import (
    BY_LEVEL,
    JOINT,
    NAMES,
    REPRESENTATIVES,
    TRANSFER,
    VARIANTS,
    agree,
    behind_the_map,
    contents_of,
    in_turn,
    most_probable,
    predictions,
    quick,
    tensors_in,
    transfer_problem,
)
from torch import Tensor

from headstart import BHGP, FAMILY, GPBO, HGP, MHGP, SHGP, Dataset, FitOptions, InputError, Kernel, OutputUnits
from headstart.data.units import OutputMap
from headstart.models.auto.auto import Auto
from headstart.models.chain.layer import Propagation
from headstart.models.family import model_named
from headstart.models.joint.coregion import Free, Hierarchical, SharedKernel, WeightedSource
from headstart.models.joint.joint import Joint
from headstart.models.sequential import Sequential
from headstart.models.star.star import Star
from headstart.models.star.weights import FittedWeights, Integrated

PROBLEM = transfer_problem()


# ── the table ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_family_is_the_papers_table() -> None:
    """The class is the way of training, its argument the choice of W; the stars and AUTO come after it."""
    papers = ["GPBO", "MHGP", "SHGP", "BHGP", "HGP", "WSGP", "MTKGP", "MTGP", "RGPE", "TST-R"]
    assert list(FAMILY) == [*papers, "STAR", "SCAML", "MWSGP", "AUTO"]
    stars = {name: model.weighting for name, model in FAMILY.items() if isinstance(model, Star)}
    assert stars == {"STAR": Integrated(), "SCAML": FittedWeights(), "MWSGP": FittedWeights(modular=True)}
    assert isinstance(FAMILY["AUTO"], Auto)
    joint = {name: model.coregion for name, model in FAMILY.items() if isinstance(model, Joint)}
    assert joint == {"HGP": Hierarchical(), "WSGP": WeightedSource(), "MTKGP": SharedKernel(), "MTGP": Free()}
    stacked = {name: model.propagation for name, model in FAMILY.items() if isinstance(model, Sequential)}
    assert stacked == {"MHGP": Propagation.MEAN, "SHGP": Propagation.EXACT, "BHGP": Propagation.BOOSTED}


def test_a_model_is_found_by_its_name() -> None:
    """In upper and in lower case."""
    assert [name for name in NAMES if not model_named(name) is model_named(name.lower()) is FAMILY[name]] == []


def test_an_unknown_name_is_met_with_the_nearest_or_with_all() -> None:
    """And with the place where it was read, if that is known."""
    with pytest.raises(InputError, match=r"^There is no model 'SHPG'\. Did you mean 'shgp'\?$"):
        model_named("SHPG")
    with pytest.raises(InputError, match=r"^a\.toml: there is no model 'forest'\. The known ones are 'gpbo', .*'auto'"):
        model_named("forest", where="a.toml")


@pytest.mark.parametrize("name", NAMES)
def test_options_make_another_model(name: str) -> None:
    """``using`` and ``paper`` leave the model alone and return one with other options."""
    model = FAMILY[name]
    assert model.using(kernel=Kernel.RBF).kernel is Kernel.RBF
    paper = model.paper()
    per_task = OutputUnits.SHARED if name == "AUTO" else OutputUnits.PER_LEVEL  # AUTO compares its candidates in one
    assert (paper.fit, paper.units, paper.kernel) == (FitOptions.paper(), per_task, Kernel.RBF)
    assert (model.fit, model.units, model.kernel) == (FitOptions(), OutputUnits.SHARED, Kernel.MATERN52)
    assert (paper.output_map, model.output_map) == (OutputMap.NONE, OutputMap.LEARNT)
    assert (paper.fit.draws, model.fit.draws) == (0, 8)
    assert type(paper) is type(model)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_models_and_what_they_learnt_are_frozen(name: str) -> None:
    """Neither a model nor a prior nor hyperparameters can be changed in place."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    posterior = prior.condition(PROBLEM.target)
    with pytest.raises(FrozenInstanceError):
        prior.model.kernel = Kernel.MATERN52  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        prior.sources = ()  # type: ignore[misc]
    params: Any = posterior.hyperparameters
    with pytest.raises(FrozenInstanceError):
        setattr(params, next(iter(fields(params))).name, ())
    with pytest.raises(AttributeError):
        posterior.hyperparameters = params  # type: ignore[misc]


# ── few observations ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS, NAMES))
def test_predictions_exist_for_any_number_of_target_observations(name: str, variant: str) -> None:
    """With 0, 1, 2 and 5 target observations means are finite and variances positive."""
    prior = VARIANTS[variant](FAMILY[name]).learn(PROBLEM.sources)
    for n in (0, 1, 2, 5):
        mean, var = prior.condition(PROBLEM.head(n)).predict(PROBLEM.Xq)
        assert mean.shape == var.shape == (7,)
        assert bool(mean.isfinite().all())
        assert bool((var > 0).all())
        assert bool(var.isfinite().all())


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_no_target_is_an_empty_target(name: str) -> None:
    """``condition()`` is the zero-shot prediction: an empty target data set gives the same."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    empty = predictions(prior.condition(Dataset.empty(2)), PROBLEM.Xq)
    assert torch.equal(predictions(prior.condition(), PROBLEM.Xq), empty)


@pytest.mark.parametrize("name", TRANSFER)
def test_sources_help_before_the_first_observation(name: str) -> None:
    """Zero-shot predictions of a target like its sources follow its shape: correlated, where GPBO is flat."""
    problem = transfer_problem(sizes=(25, 25), n_target=30)
    mean, _ = problem.posterior(quick(FAMILY[name]), n=0).predict(problem.target.X)
    assert torch.corrcoef(torch.stack([mean, problem.target.y]))[0, 1].item() > 0.8
    flat, _ = problem.posterior(GPBO, n=0).predict(problem.target.X)
    assert flat.std().item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_predictions_approach_the_observations(name: str) -> None:
    """With enough target data predictions pass close to what was observed, those of an ensemble less so."""
    problem = transfer_problem(n_target=25)
    mean, var = problem.posterior(quick(FAMILY[name])).predict(problem.target.X)
    error = (mean - problem.target.y).square().mean().sqrt()
    assert error.item() < (0.25 if name in ("RGPE", "TST-R") else 0.05) * problem.target.y.std().item()
    assert var.max().item() < problem.target.y.var().item()


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_sources_may_differ_in_size(name: str) -> None:
    """Three sources of 7, 1 and 4 observations are learnt from like others."""
    problem = transfer_problem(sizes=(7, 1, 4), n_target=3)
    mean, var = problem.posterior(quick(FAMILY[name])).predict(problem.Xq)
    assert bool(mean.isfinite().all())
    assert bool((var > 0).all())


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_one_input_and_one_source_are_enough(name: str) -> None:
    """d = 1 with a single source works."""
    problem = transfer_problem(sizes=(6,), d=1, n_target=2)
    assert bool(predictions(problem.posterior(quick(FAMILY[name])), problem.Xq).isfinite().all())


# ── hyperparameters ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "variant"), in_turn(VARIANTS, NAMES))
def test_hyperparameters_read_back_reproduce_the_posterior(name: str, variant: str) -> None:
    """``model.at(posterior.hyperparameters)`` is the same posterior behind the map: same predictions, same evidence."""
    model = most_probable(VARIANTS[variant](FAMILY[name]))
    prior = model.learn(PROBLEM.sources)
    for n in (0, 2, 5):
        posterior = behind_the_map(prior.condition(PROBLEM.head(n)))
        sources = () if name == "GPBO" else prior.sources
        again = model.at(posterior.hyperparameters, sources=sources, target=prior.inward(PROBLEM.head(n)))
        for a, b in zip(again.predict(PROBLEM.Xq), posterior.predict(PROBLEM.Xq), strict=True):
            assert agree(a, b, rtol=1e-9)
        covariances = [p.posterior(PROBLEM.Xq).distribution.covariance_matrix for p in (again, posterior)]
        assert agree(*covariances, rtol=1e-9)
        assert agree(again.log_evidence, posterior.log_evidence, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_posterior_at_given_hyperparameters_gives_them_back(name: str) -> None:
    """Nothing is fitted and no units are changed by ``at``."""
    model = quick(FAMILY[name])
    params = PROBLEM.posterior(model).hyperparameters
    again = model.at(params, sources=() if name == "GPBO" else PROBLEM.sources, target=PROBLEM.target)
    assert again.fit_reports == ()
    pairs = zip(tensors_in(again.hyperparameters), tensors_in(params), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    ("name", "units"),
    # AUTO compares its candidates in the units of all
    [case for case in in_turn(OutputUnits) if case.values[0] != "AUTO" or case.values[1] is OutputUnits.SHARED],
)
def test_predictions_follow_a_change_of_units(name: str, units: OutputUnits) -> None:
    """y → a·y + b changes predictions by that map, for GPBO and in the paper's units from two points on."""
    model = quick(FAMILY[name]).using(units=units)
    a, b = 250.0, -40.0

    def moved(task: Dataset) -> Dataset:
        return Dataset(task.X, a * task.y + b)

    few = (0, 1, 2, 5) if units is OutputUnits.SHARED and name != "GPBO" else (2, 5)
    prior, other = model.learn(PROBLEM.sources), model.learn([moved(s) for s in PROBLEM.sources])
    for n in few:
        mean, var = prior.condition(PROBLEM.head(n)).predict(PROBLEM.Xq)
        mean_, var_ = other.condition(moved(PROBLEM.head(n))).predict(PROBLEM.Xq)
        assert agree(mean_, a * mean + b, rtol=1e-4), n
        assert agree(var_, a**2 * var, rtol=1e-4), n


# ── randomness ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_equal_seeds_give_equal_posteriors(name: str) -> None:
    """Learning and conditioning twice with one seed gives the same numbers, whatever the global random state."""
    model = quick(FAMILY[name].paper(), restarts=2)
    torch.manual_seed(1)
    one = predictions(PROBLEM.posterior(model, seed=5), PROBLEM.Xq)
    torch.manual_seed(2)
    assert torch.equal(one, predictions(PROBLEM.posterior(model, seed=5), PROBLEM.Xq))


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_the_seed_reaches_the_fit(name: str) -> None:
    """Another seed starts elsewhere: the reports differ."""
    model = quick(FAMILY[name].paper())
    # AUTO's target fits begin where its size says, so that a run can be judged again: the sources' fits show the seed
    which = 0 if name == "AUTO" else -1
    one, two = (PROBLEM.posterior(model, seed=seed).fit_reports[which] for seed in (0, 1))
    assert not torch.equal(one.objective, two.objective)


# ── learn once ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_prior_can_be_used_again(name: str) -> None:
    """Conditioning changes nothing in the prior: later calls give what the first gave."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    before = contents_of(prior)
    assert sum(isinstance(leaf, Tensor) for leaf in before.values()) >= 4, "the sources at least are to be found in it"
    first = predictions(prior.condition(PROBLEM.head(3)), PROBLEM.Xq)
    predictions(prior.condition(PROBLEM.target, seed=1), PROBLEM.Xq)
    after = contents_of(prior)  # what was remembered on the way may be new, and nothing else is
    for path, leaf in before.items():
        same = torch.equal(leaf, after[path]) if isinstance(leaf, Tensor) else leaf == after[path]
        assert same, f"prior{path} has changed"
    assert torch.equal(predictions(prior.condition(PROBLEM.head(3)), PROBLEM.Xq), first)


@pytest.mark.parametrize("name", BY_LEVEL)
def test_adding_a_target_point_never_fits_a_source_again(name: str) -> None:
    """The sources' reports and hyperparameters are the prior's own, however the target grows."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    assert [report.task for report in prior.fit_reports] == ["source 0", "source 1"]
    some, more = prior.condition(PROBLEM.head(2)), prior.condition(PROBLEM.head(3))
    for posterior in (some, more):
        assert len(posterior.fit_reports) == 3
        assert all(a is b for a, b in zip(posterior.fit_reports, prior.fit_reports, strict=False))
        assert posterior.fit_reports[-1].task == "target"
    assert (some.fit_reports[-1].n_observations, more.fit_reports[-1].n_observations) == (2, 3)
    a, b = (list(tensors_in(p.hyperparameters.levels[:-1])) for p in (some, more))  # type: ignore[union-attr]
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", JOINT)
def test_a_joint_model_is_fitted_to_all_tasks_at_once(name: str) -> None:
    """Its prior has no reports, its posterior a single one that counts every observation."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    assert prior.fit_reports == ()
    (report,) = prior.condition(PROBLEM.target).fit_reports
    assert (report.task, report.n_observations) == ("all tasks", 20)


def test_gpbo_looks_at_no_source() -> None:
    """GPBO with sources and without is the same model."""
    with_sources = predictions(GPBO.learn(PROBLEM.sources).condition(PROBLEM.target), PROBLEM.Xq)
    assert torch.equal(with_sources, predictions(GPBO.learn().condition(PROBLEM.target), PROBLEM.Xq))


def test_reports_call_tasks_by_their_names() -> None:
    """A source with a name is reported under it."""
    named = [Dataset(s.X, s.y, f"run {i}") for i, s in enumerate(PROBLEM.sources)]
    tasks = [report.task for report in quick(SHGP).learn(named).condition(PROBLEM.target).fit_reports]
    assert tasks == ["source 0 ('run 0')", "source 1 ('run 1')", "target"]


# ── relations ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mhgp_and_bhgp_agree_on_the_mean() -> None:
    """Their training is the same, so the fitted means are too; BHGP is less certain."""
    boosted, bold = (behind_the_map(PROBLEM.posterior(quick(model))).predict(PROBLEM.Xq) for model in (BHGP, MHGP))
    assert agree(boosted[0], bold[0], rtol=1e-10)
    assert bool((boosted[1] > bold[1]).all())


def test_hgp_and_shgp_are_one_model_at_equal_hyperparameters() -> None:
    """They differ in training only: at HGP's fitted hyperparameters SHGP predicts the same."""
    params = PROBLEM.posterior(quick(HGP)).hyperparameters
    one, two = (m.at(params, sources=PROBLEM.sources, target=PROBLEM.target) for m in (HGP, SHGP))
    assert agree(predictions(one, PROBLEM.Xq), predictions(two, PROBLEM.Xq), rtol=1e-9)


def test_inputs_outside_the_unit_cube_can_be_meant() -> None:
    """With ``unit_cube=False`` a fit takes any inputs."""
    wide = [Dataset(1 + 2 * s.X, s.y) for s in PROBLEM.sources]
    target = Dataset(1 + 2 * PROBLEM.target.X, PROBLEM.target.y)
    with pytest.raises(InputError, match="source 0 must lie in the unit cube"):
        quick(SHGP).learn(wide)
    model = quick(SHGP).using(fit=replace(SHGP.fit, restarts=1, unit_cube=False))
    assert bool(predictions(model.learn(wide).condition(target), 1 + 2 * PROBLEM.Xq).isfinite().all())
