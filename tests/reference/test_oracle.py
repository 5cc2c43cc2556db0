"""Every model against numbers computed from the dense joint formulas in 50 digits (data/posteriors.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.problems import coregional_params, weighted_params
from tests.reference.answers import joint_log_evidence, tensor

from headstart import (
    FAMILY,
    ChainParams,
    Dataset,
    GPParams,
    Kernel,
    TransferPosterior,
)
from headstart.models.params import ModelParams

TOLERANCE = 1e-8
ORACLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "posteriors.json").read_text())
CASES = [pytest.param(case, id=f"{case['model']}-{case['dataset']}-{case['n_target']}") for case in ORACLE["cases"]]


def params_of(case: dict[str, Any]) -> ModelParams:
    """The oracle's hyperparameters in the form that the model takes (``conventions`` in the file)."""
    given = ORACLE["hyperparameters"][case["dataset"]]
    levels = tuple(
        GPParams.of(lengthscale=k["lengthscales"], outputscale=k["variance"], noise_var=k["noise_variance"])
        for k in given["levels"]
    )
    noise_var = [k["noise_variance"] for k in given["levels"]]
    match case["model"]:
        case "GPBO":
            return ChainParams(levels[-1:])
        case "WSGP":
            return weighted_params(levels, given["wsgp_w"])
        case "MTKGP":
            shared = given["mtgp"]
            w = tensor(shared["W_rank1"])
            W = shared["variance"] * (w @ w.mT + torch.diag(tensor(shared["kappa"])))
            return coregional_params(lengthscale=[shared["lengthscales"]], W=W.unsqueeze(0), noise_var=noise_var)
        case "MTGP":
            variance = tensor([k["variance"] for k in given["levels"]])
            W = tensor(given["mtgp_full_W"]) * variance[:, None, None]
            ell = [k["lengthscales"] for k in given["levels"]]
            return coregional_params(lengthscale=ell, W=W, noise_var=noise_var)
        case _:
            return ChainParams(levels)


def posterior_of(case: dict[str, Any]) -> TransferPosterior:
    data, n = ORACLE["datasets"][case["dataset"]], case["n_target"]
    target = Dataset(tensor(data["target"]["X"])[:n], tensor(data["target"]["y"])[:n])
    sources = [Dataset(source["X"], source["y"]) for source in data["sources"]]
    return FAMILY[case["model"]].using(kernel=Kernel.RBF).at(params_of(case), sources=sources, target=target)


def test_the_oracle_has_every_model_of_the_paper() -> None:
    """Eight models, one source and three, five target points and none."""
    assert {(case["model"], case["dataset"], case["n_target"]) for case in ORACLE["cases"]} == {
        (model, data, n)
        for model in ("GPBO", "MHGP", "SHGP", "BHGP", "HGP", "WSGP", "MTKGP", "MTGP")
        for data in ("d1_s1", "d1_s3")
        for n in (0, 5)
    }


@pytest.mark.parametrize("case", CASES)
def test_the_posterior_is_the_oracle_s(case: dict[str, Any]) -> None:
    """Mean, variance and covariance at the seven query points agree to 1e-8."""
    posterior = posterior_of(case)
    Xq = tensor(ORACLE["datasets"][case["dataset"]]["Xq"])
    joint = posterior.posterior(Xq)
    np.testing.assert_allclose(joint.mean.squeeze(-1), case["mean"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(joint.variance.squeeze(-1), case["var"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(joint.distribution.covariance_matrix, case["cov"], rtol=0, atol=TOLERANCE)
    one_by_one = posterior.posterior(Xq.unsqueeze(-2))
    np.testing.assert_allclose(one_by_one.mean.flatten(), case["mean"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(one_by_one.variance.flatten(), case["var"], rtol=0, atol=TOLERANCE)
    mean, var = posterior.predict(Xq)
    np.testing.assert_allclose(mean, case["mean"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(var, case["var"], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("case", CASES)
def test_the_evidence_is_the_oracle_s(case: dict[str, Any]) -> None:
    """log p(y_t | D_s), and log p of all data where the model is a joint process, agree to 1e-8."""
    posterior = posterior_of(case)
    assert posterior.log_evidence.item() == pytest.approx(case["lml_target_given_sources"], rel=0, abs=TOLERANCE)
    if "lml_joint" in case:
        assert joint_log_evidence(posterior).item() == pytest.approx(case["lml_joint"], rel=0, abs=TOLERANCE)
