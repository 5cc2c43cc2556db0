"""headstart: Bayesian optimisation that starts from what you already measured.

    from headstart import SHGP, Dataset

    prior = SHGP.learn([Dataset(X_past, y_past)])        # once per set of sources
    model = prior.condition(Dataset(X, y))               # every step: a BoTorch model
    model.posterior(X_new)

Names are loaded on first use, so that importing the package does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headstart.data.dataset import Dataset
    from headstart.data.outcomes import Goal, Limit, Outcomes
    from headstart.data.ranges import Choices, FloatRange, IntRange
    from headstart.data.rules.rule import Clause, FixedValue, Forbidden, LinearRule, OnSteps, Relation, SettingRule
    from headstart.data.rules.text import parse_rule
    from headstart.data.space import Space
    from headstart.data.units import OutputMap, OutputUnits, Units
    from headstart.decide.acquisition import Acquisition
    from headstart.decide.domain import Candidates, Cube, Mixed
    from headstart.decide.ruled.ruled import Ruled
    from headstart.decide.stopping import Advice, Further, Outlook, further_gain, outlook
    from headstart.decide.suggest import suggest
    from headstart.errors import (
        HeadstartError,
        InputError,
        MissingExtraError,
        NoPlaceError,
        NoPointLeftError,
        NoSettingError,
        NothingInCommonError,
        NumericalError,
    )
    from headstart.gp.fit import FitOptions, FitReport, Objective
    from headstart.gp.hyperparameters import GPParams, Starts
    from headstart.gp.kernels import Kernel
    from headstart.models.auto.auto import Auto
    from headstart.models.auto.candidates import Candidate
    from headstart.models.auto.explanation import Explanation, explain
    from headstart.models.family import (
        AUTO,
        BHGP,
        FAMILY,
        GPBO,
        HGP,
        MHGP,
        MTGP,
        MTKGP,
        MWSGP,
        RGPE,
        SCAML,
        SHGP,
        STAR,
        WSGP,
    )
    from headstart.models.model import Prior, TransferModel
    from headstart.models.outcomes import OutcomePosteriors, OutcomePriors
    from headstart.models.params import (
        AutoParams,
        ChainParams,
        CoregionalParams,
        EnsembleParams,
        StarParams,
        WeightedParams,
    )
    from headstart.models.posterior import TransferPosterior
    from headstart.sampler.sampler import TransferSampler
    from headstart.sources.past import Sources

__version__ = "0.1.0"

_HOMES = {
    "data.dataset": ("Dataset",),
    "data.outcomes": ("Goal", "Limit", "Outcomes"),
    "data.ranges": ("Choices", "FloatRange", "IntRange"),
    "data.rules.rule": ("Clause", "FixedValue", "Forbidden", "LinearRule", "OnSteps", "Relation", "SettingRule"),
    "data.rules.text": ("parse_rule",),
    "data.space": ("Space",),
    "data.units": ("OutputMap", "OutputUnits", "Units"),
    "decide.acquisition": ("Acquisition",),
    "decide.domain": ("Candidates", "Cube", "Mixed"),
    "models.outcomes": ("OutcomePosteriors", "OutcomePriors"),
    "decide.stopping": ("Advice", "Further", "Outlook", "further_gain", "outlook"),
    "decide.ruled.ruled": ("Ruled",),
    "decide.suggest": ("suggest",),
    "errors": (
        *("HeadstartError", "InputError", "NoPlaceError", "NoPointLeftError", "NoSettingError"),
        *("NothingInCommonError", "MissingExtraError", "NumericalError"),
    ),
    "gp.fit": ("FitOptions", "FitReport", "Objective"),
    "gp.hyperparameters": ("GPParams", "Starts"),
    "gp.kernels": ("Kernel",),
    "models.posterior": ("TransferPosterior",),
    "models.family": (
        *("AUTO", "BHGP", "FAMILY", "GPBO", "HGP", "MHGP", "MTGP", "MTKGP"),
        *("MWSGP", "RGPE", "SCAML", "SHGP", "STAR", "WSGP"),
    ),
    "models.auto.auto": ("Auto",),
    "models.auto.candidates": ("Candidate",),
    "models.auto.explanation": ("Explanation", "explain"),
    "models.model": ("Prior", "TransferModel"),
    "models.params": (
        "AutoParams",
        "ChainParams",
        "CoregionalParams",
        "EnsembleParams",
        "StarParams",
        "WeightedParams",
    ),
    "sampler.sampler": ("TransferSampler",),
    "sources.past": ("Sources",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AUTO",
    "BHGP",
    "FAMILY",
    "GPBO",
    "HGP",
    "MHGP",
    "MTGP",
    "MTKGP",
    "MWSGP",
    "RGPE",
    "SCAML",
    "SHGP",
    "STAR",
    "WSGP",
    "Acquisition",
    "Advice",
    "Auto",
    "AutoParams",
    "Candidate",
    "Candidates",
    "ChainParams",
    "Choices",
    "Clause",
    "CoregionalParams",
    "Cube",
    "Dataset",
    "EnsembleParams",
    "Explanation",
    "FitOptions",
    "FitReport",
    "FixedValue",
    "FloatRange",
    "Forbidden",
    "Further",
    "GPParams",
    "Goal",
    "HeadstartError",
    "InputError",
    "IntRange",
    "Kernel",
    "Limit",
    "LinearRule",
    "MissingExtraError",
    "Mixed",
    "NoPlaceError",
    "NoPointLeftError",
    "NoSettingError",
    "NothingInCommonError",
    "NumericalError",
    "Objective",
    "OnSteps",
    "OutcomePosteriors",
    "OutcomePriors",
    "Outcomes",
    "Outlook",
    "OutputMap",
    "OutputUnits",
    "Prior",
    "Relation",
    "Ruled",
    "SettingRule",
    "Sources",
    "Space",
    "StarParams",
    "Starts",
    "TransferModel",
    "TransferPosterior",
    "TransferSampler",
    "Units",
    "WeightedParams",
    "explain",
    "further_gain",
    "outlook",
    "parse_rule",
    "suggest",
]


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(f"headstart.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
