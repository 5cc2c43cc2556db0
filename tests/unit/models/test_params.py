"""The forms of hyperparameters: what they accept, and what models accept of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.problems import (
    NAMES,
    TRANSFER,
    coregional_params,
    ensemble_params,
    gp_params,
    params_for,
    tensor,
    transfer_problem,
    weighted_params,
)

from headstart import (
    FAMILY,
    AutoParams,
    ChainParams,
    CoregionalParams,
    GPParams,
    InputError,
)
from headstart.models.params import rescaled

PROBLEM = transfer_problem()
FORMS = {
    "chain": "SHGP",
    "weighted": "WSGP",
    "one kernel": "MTKGP",
    "free": "MTGP",
    "ensemble": "RGPE",
    "star": "STAR",
    "auto": "AUTO",
}
LEVELS = (gp_params(2), gp_params(2))
EYE = torch.eye(2, dtype=torch.float64)[None]


def _at(name: str, params: Any, **tasks: Any) -> Any:
    sources = () if name == "GPBO" else PROBLEM.sources
    arguments: dict[str, Any] = {"sources": sources, "target": PROBLEM.target} | tasks
    return FAMILY[name].at(params, **arguments)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: weighted_params(LEVELS, [0.1, 0.2]),
            r"weights must be a tensor with one value per source \(1\).*\(2,\)",
        ),
        (lambda: weighted_params(LEVELS, [-0.1]), r"weights must not be negative.*\[-0.1\]"),
        (lambda: weighted_params(LEVELS, [math.nan]), "weights"),
        (lambda: weighted_params(LEVELS, [math.inf]), "weights"),
        (lambda: ensemble_params(LEVELS, [1.0]), r"weights must be a tensor with one value per task \(2\).*\(1,\)"),
        (lambda: ensemble_params(LEVELS, [1.5, -0.5]), "weights must not be negative"),
        (lambda: ensemble_params(LEVELS, [0.5, math.inf]), "weights"),
        (lambda: ensemble_params(LEVELS, [0.5, 0.5], scales=[1.0, 0.0]), "scales"),
        (lambda: ensemble_params(LEVELS, [0.5, 0.5], offsets=[1.0, math.nan]), "offsets"),
    ],
)
def test_weights_that_make_no_model_are_refused(make: Any, message: str) -> None:
    """A wrong number of weights, negative ones, NaN or infinity are an ``InputError`` that names the argument."""
    with pytest.raises(InputError, match=message):
        make().require()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": [0.1, 0.2]}, "lengthscale must have shape"),
        ({"lengthscale": [[0.1, 0.2]] * 2}, "lengthscale must have shape"),
        ({"lengthscale": [[0.1, 0.0]]}, "lengthscale must be positive"),
        ({"lengthscale": [[0.1, math.inf]]}, "lengthscale"),
        ({"W": EYE[0]}, "W"),
        ({"W": EYE[:, :1]}, "W"),
        ({"W": [[[1.0, 2.0], [2.0, 1.0]]]}, "positive semi-definite, but the lowest eigenvalue is -1"),
        ({"W": [[[1.0, 0.5], [0.0, 1.0]]]}, "symmetric"),
        ({"W": [[[1.0, math.nan], [math.nan, 1.0]]]}, "W"),
        ({"noise_var": [0.1, -0.1]}, "noise_var of the tasks is a variance and must not be negative"),
        ({"noise_var": [0.1]}, "noise_var must be a tensor with one value per task"),
        ({"noise_var": [0.1, math.inf]}, "noise_var"),
        ({"mean": [1.0, 2.0, 3.0]}, "mean"),
        ({"mean": [1.0, math.nan]}, "mean"),
    ],
)
def test_coregional_values_that_make_no_model_are_refused(change: dict[str, Any], message: str) -> None:
    """Shapes that disagree, W that is not positive semi-definite, negative noise, NaN: the argument is named."""
    good: dict[str, Any] = {"lengthscale": [[0.1, 0.2]], "W": EYE, "noise_var": [0.1, 0.1], "mean": 0.0}
    params = coregional_params(**good)
    params.require()
    for name, value in change.items():
        object.__setattr__(params, name, torch.as_tensor(value, dtype=torch.float64))
    with pytest.raises(InputError, match=message):
        params.require()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_takes_only_its_own_form(name: str) -> None:
    """Hyperparameters of another form, or for another number of tasks, are an ``InputError``."""
    for owner in FORMS.values():
        params = params_for(owner)
        sized_alike = name not in ("GPBO", "MTKGP", "MTGP") and type(params) is type(params_for(name))
        if sized_alike or name == owner:
            _at(name, params)
        else:
            with pytest.raises(InputError):
                _at(name, params)


@pytest.mark.parametrize("n_sources", [1, 3])
@pytest.mark.parametrize("name", TRANSFER)
def test_the_number_of_tasks_must_agree(name: str, n_sources: int) -> None:
    """Hyperparameters for more or fewer tasks than there are data sets are refused."""
    with pytest.raises(InputError, match=r"3 tasks|3, 3\)"):
        _at(name, params_for(name, n_sources=n_sources))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_lengthscales_must_agree(name: str, d: int) -> None:
    """Hyperparameters for another number of inputs are refused before anything is computed."""
    with pytest.raises(InputError, match="lengthscale"):
        _at(name, params_for(name, d=d))


def test_a_weight_too_many_is_refused_by_the_model() -> None:
    """However the weights came about, there must be one per source."""
    params = params_for("WSGP")
    with pytest.raises(InputError, match="weights"):
        _at("WSGP", replace(params, weights=tensor([0.1, 0.2, 0.3])))


@pytest.mark.parametrize("name", NAMES)
def test_negative_noise_is_refused_by_every_model(name: str) -> None:
    """However the hyperparameters came about, a negative noise variance is an ``InputError``, not arithmetic."""
    params = params_for(name)

    def negative(form: Any) -> Any:
        if isinstance(form, CoregionalParams):
            return replace(form, noise_var=-form.noise_var)
        return replace(form, levels=tuple(replace(level, noise_var=-level.noise_var) for level in form.levels))

    bads = [] if isinstance(params, AutoParams) else [negative(params)]
    if isinstance(params, AutoParams):
        each = params.candidates
        bads = [replace(params, candidates=(*each[:k], negative(each[k]), *each[k + 1 :])) for k in range(len(each))]
    for bad in bads:
        with pytest.raises(InputError, match="noise_var"):
            _at(name, bad)


def test_scaled_hyperparameters_are_those_of_scaled_outputs() -> None:
    """A chain's first level carries the offset; every variance grows by the square of the scale."""
    scaled = rescaled(ChainParams(LEVELS), tensor(3.0), tensor(5.0))
    assert isinstance(scaled, ChainParams)
    assert [level.noise_var.item() for level in scaled.levels] == pytest.approx(
        [9 * p.noise_var.item() for p in LEVELS]
    )
    offsets = [level.offset.item() for level in scaled.levels]
    assert offsets == pytest.approx([3 * LEVELS[0].offset.item() + 5, 3 * LEVELS[1].offset.item()])


def test_a_level_of_hyperparameters_is_a_process() -> None:
    """The levels of a chain are ``GPParams``."""
    assert all(isinstance(level, GPParams) for level in params_for("SHGP").levels)
