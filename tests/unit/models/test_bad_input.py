"""What every model refuses, before anything is computed."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest
import torch
from tests.problems import NAMES, TRANSFER, params_for, quick, tensor, transfer_problem
from torch import Tensor

from headstart import FAMILY, GPBO, SHGP, Dataset, InputError, TransferPosterior

PROBLEM = transfer_problem()
X, y = PROBLEM.target.X, PROBLEM.target.y


def _posterior(n_target: int = 5) -> TransferPosterior:
    return SHGP.at(params_for("SHGP"), sources=PROBLEM.sources, target=PROBLEM.head(n_target))


# ── learning and conditioning ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", TRANSFER)
def test_a_model_that_needs_sources_says_so(name: str) -> None:
    """An empty list of sources is refused, with the model to use instead."""
    with pytest.raises(InputError, match=r"needs at least one source, but sources is empty.*GPBO"):
        FAMILY[name].learn([])


def test_without_any_data_the_number_of_inputs_is_unknown() -> None:
    """GPBO needs no sources, but then it must be told how many inputs there are."""
    with pytest.raises(InputError, match=r"Dataset\.empty\(d\)"):
        GPBO.learn().condition()
    assert GPBO.learn().condition(Dataset.empty(3)).predict(torch.rand(4, 3, dtype=torch.float64))[0].shape == (4,)


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "WSGP", "RGPE"])  # one of every class: ``learn`` is common to all
@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(Dataset(X[:, :1], y), "source 0 has 2 and source 1 has 1", id="columns"),
        pytest.param(Dataset(X[None], y[None]), r"source 0 has \(\) and source 1 has \(1,\)", id="batch"),
        pytest.param(Dataset.empty(2, name="nil"), r"source 1 \('nil'\) has no observations", id="empty"),
        pytest.param(Dataset(X + 1, y, "far"), r"source 1 \('far'\) must lie in the unit cube, but row 0", id="cube"),
        pytest.param((X, y), "source 1 must be a headstart.Dataset, but it is a tuple", id="no data set"),
    ],
)
def test_a_source_that_does_not_fit_is_named(name: str, source: Any, message: str) -> None:
    """Every model names the source, and the row where there is one."""
    with pytest.raises(InputError, match=message):
        quick(FAMILY[name]).learn([PROBLEM.sources[0], source])


@pytest.mark.parametrize("name", ["GPBO", "SHGP", "WSGP", "RGPE"])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param(Dataset(X[:, :1], y), "source 0 has 2 and the target has 1", id="columns"),
        pytest.param(Dataset.empty(3), "source 0 has 2 and the target has 3", id="columns of an empty one"),
        pytest.param(Dataset(X[None], y[None]), r"source 0 has \(\) and the target has \(1,\)", id="batch"),
        pytest.param(Dataset(X - 2, y), "the target must lie in the unit cube, but row 0, column 0 is -1", id="cube"),
        pytest.param((X, y), "the target must be a headstart.Dataset, but it is a tuple", id="no data set"),
    ],
)
def test_a_target_that_does_not_fit_is_named(name: str, target: Any, message: str) -> None:
    """Every model names the target, and the row where there is one."""
    prior = quick(FAMILY[name]).learn(PROBLEM.sources)
    with pytest.raises(InputError, match=message):
        prior.condition(target)


@pytest.mark.parametrize("name", NAMES)
def test_tasks_at_given_hyperparameters_are_checked_too(name: str) -> None:
    """``at`` refuses tasks that do not fit together as ``learn`` does."""
    with pytest.raises(InputError, match="same number of inputs"):
        FAMILY[name].at(params_for(name), sources=PROBLEM.sources, target=Dataset(X[:, :1], y))


def test_the_problem_outside_the_unit_cube_is_named() -> None:
    """In a batch the message says in which problem the row is."""
    batch = transfer_problem(batch_shape=(3,))
    outside = batch.target.X.clone()
    outside[2, 1, 0] = 1.5
    prior = quick(SHGP).learn(batch.sources)
    with pytest.raises(InputError, match=r"row 1, column 0 of problem \(2,\) is 1.5"):
        prior.condition(Dataset(outside, batch.target.y))


def test_one_data_set_is_not_a_list_of_sources() -> None:
    """``learn(dataset)`` without the brackets is an ``InputError`` that says so."""
    with pytest.raises(InputError, match="sources"):
        SHGP.learn(PROBLEM.sources[0])  # type: ignore[arg-type]


@pytest.mark.parametrize("option", [{"kernel": "rbf"}, {"units": "shared"}, {"fit": "paper"}], ids=str)
def test_an_option_of_the_wrong_kind_is_refused(option: dict[str, Any]) -> None:
    """A string where an enum or ``FitOptions`` is meant is refused where it enters, not in the middle of a fit."""
    with pytest.raises(InputError, match=next(iter(option))):
        SHGP.using(**option)


# ── asking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ask(verb: str, *arguments: Any, n_target: int = 5, **options: Any) -> Any:
    """Ask as a user does: without the tests' own check of shapes, which would speak first."""
    return inspect.unwrap(getattr(TransferPosterior, verb))(_posterior(n_target=n_target), *arguments, **options)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(X[:, :1], r"X must have shape \(\*batch, q, 2\), but it is \(5, 1\)", id="columns"),
        pytest.param(X[0], r"X must have shape \(\*batch, q, 2\), but it is \(2,\)", id="1-D"),
        pytest.param(X.tolist(), r"X must have shape \(\*batch, q, 2\), but it is list", id="list"),
        pytest.param(X.float(), "X must be float64 on cpu, but it is torch.float32 on cpu", id="float32"),
        pytest.param(X.to("meta"), "X must be float64 on cpu, but it is torch.float64 on meta", id="device"),
        pytest.param(torch.full_like(X, math.nan), "X must be finite", id="NaN"),
        pytest.param(torch.full_like(X, math.inf), "X must be finite", id="inf"),
    ],
)
@pytest.mark.parametrize("verb", ["posterior", "predict", "condition_on_observations"])
def test_a_query_that_does_not_fit_is_refused(verb: str, query: Any, message: str) -> None:
    """Wrong shape, type or device, NaN and infinity are an ``InputError`` that says what was expected."""
    with pytest.raises(InputError, match=message):
        _ask(verb, query, *([y[:, None]] if verb == "condition_on_observations" else []))


@pytest.mark.parametrize("n_target", [0, 5])
@pytest.mark.parametrize(
    "Y",
    [
        pytest.param(tensor([[math.nan]] * 5), id="NaN"),
        pytest.param(tensor([[math.inf]] * 5), id="inf"),
        pytest.param(y[:3, None], id="length"),
        pytest.param(y[:, None].float(), id="float32"),
        pytest.param(y, id="no output dimension"),
        pytest.param(y[:, None].expand(5, 2), id="two outputs"),
    ],
)
def test_observations_that_do_not_fit_are_refused(Y: Tensor, n_target: int) -> None:
    """Conditioning needs one finite float64 value per row of X, with a last dimension of 1."""
    with pytest.raises(InputError, match="Y"):
        _ask("condition_on_observations", X, Y, n_target=n_target)


@pytest.mark.parametrize(
    ("verb", "arguments", "option"),
    [("posterior", (X,), "observation_noise"), ("condition_on_observations", (X, y[:, None]), "noise")],
)
def test_negative_noise_is_refused(verb: str, arguments: tuple[Tensor, ...], option: str) -> None:
    """A noise variance below zero is an ``InputError`` wherever one can be given."""
    negative = tensor([[-0.01]] * 5)
    with pytest.raises(InputError, match="noise"):
        _ask(verb, *arguments, n_target=5, **{option: negative})


def test_a_model_has_one_output() -> None:
    """Any other output is refused."""
    posterior = _posterior()
    assert posterior.subset_output([0]) is posterior
    assert torch.equal(posterior.posterior(X, output_indices=[0]).mean, posterior.posterior(X).mean)
    with pytest.raises(InputError, match="one output"):
        posterior.subset_output([1])
    with pytest.raises(InputError, match="one output"):
        posterior.posterior(X, output_indices=[1])
