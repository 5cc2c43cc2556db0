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
    from headstart.data.dataset import Dataset as Dataset
    from headstart.data.outcomes import Goal as Goal
    from headstart.data.outcomes import Limit as Limit
    from headstart.data.outcomes import Outcomes as Outcomes
    from headstart.data.ranges import Choices as Choices
    from headstart.data.ranges import DiscreteNumbers as DiscreteNumbers
    from headstart.data.ranges import FloatRange as FloatRange
    from headstart.data.ranges import IntRange as IntRange
    from headstart.data.rules.rule import Clause as Clause
    from headstart.data.rules.rule import FixedValue as FixedValue
    from headstart.data.rules.rule import Forbidden as Forbidden
    from headstart.data.rules.rule import LinearRule as LinearRule
    from headstart.data.rules.rule import OnSteps as OnSteps
    from headstart.data.rules.rule import Relation as Relation
    from headstart.data.rules.rule import SettingRule as SettingRule
    from headstart.data.rules.text import parse_rule as parse_rule
    from headstart.data.space import Space as Space
    from headstart.data.units import OutputMap as OutputMap
    from headstart.data.units import OutputUnits as OutputUnits
    from headstart.data.units import Units as Units
    from headstart.decide.acquisition import Acquisition as Acquisition
    from headstart.decide.domain import Candidates as Candidates
    from headstart.decide.domain import Cube as Cube
    from headstart.decide.domain import Mixed as Mixed
    from headstart.decide.ruled.ruled import Ruled as Ruled
    from headstart.decide.stopping import Advice as Advice
    from headstart.decide.stopping import Further as Further
    from headstart.decide.stopping import Outlook as Outlook
    from headstart.decide.stopping import further_gain as further_gain
    from headstart.decide.stopping import outlook as outlook
    from headstart.decide.suggest import suggest as suggest
    from headstart.errors import HeadstartError as HeadstartError
    from headstart.errors import InputError as InputError
    from headstart.errors import MissingExtraError as MissingExtraError
    from headstart.errors import NoPlaceError as NoPlaceError
    from headstart.errors import NoPointLeftError as NoPointLeftError
    from headstart.errors import NoSettingError as NoSettingError
    from headstart.errors import NothingInCommonError as NothingInCommonError
    from headstart.errors import NumericalError as NumericalError
    from headstart.gp.fit import FitOptions as FitOptions
    from headstart.gp.fit import FitReport as FitReport
    from headstart.gp.fit import Objective as Objective
    from headstart.gp.hyperparameters import GPParams as GPParams
    from headstart.gp.hyperparameters import Starts as Starts
    from headstart.gp.kernels import Kernel as Kernel
    from headstart.models.auto.auto import Auto as Auto
    from headstart.models.auto.candidates import Candidate as Candidate
    from headstart.models.auto.explanation import Explanation as Explanation
    from headstart.models.auto.explanation import explain as explain
    from headstart.models.family import AUTO as AUTO
    from headstart.models.family import BHGP as BHGP
    from headstart.models.family import FAMILY as FAMILY
    from headstart.models.family import GPBO as GPBO
    from headstart.models.family import HGP as HGP
    from headstart.models.family import MHGP as MHGP
    from headstart.models.family import MTGP as MTGP
    from headstart.models.family import MTKGP as MTKGP
    from headstart.models.family import MWSGP as MWSGP
    from headstart.models.family import RGPE as RGPE
    from headstart.models.family import SCAML as SCAML
    from headstart.models.family import SHGP as SHGP
    from headstart.models.family import STAR as STAR
    from headstart.models.family import TSTR as TSTR
    from headstart.models.family import WSGP as WSGP
    from headstart.models.model import Prior as Prior
    from headstart.models.model import TransferModel as TransferModel
    from headstart.models.outcomes import OutcomePosteriors as OutcomePosteriors
    from headstart.models.outcomes import OutcomePriors as OutcomePriors
    from headstart.models.params import AutoParams as AutoParams
    from headstart.models.params import ChainParams as ChainParams
    from headstart.models.params import CoregionalParams as CoregionalParams
    from headstart.models.params import EnsembleParams as EnsembleParams
    from headstart.models.params import StarParams as StarParams
    from headstart.models.params import WeightedParams as WeightedParams
    from headstart.models.posterior import TransferPosterior as TransferPosterior
    from headstart.sampler.sampler import TransferSampler as TransferSampler
    from headstart.sources.past import Sources as Sources

__version__ = "0.2.0"

_HOMES = {
    "data.dataset": ("Dataset",),
    "data.outcomes": ("Goal", "Limit", "Outcomes"),
    "data.ranges": ("Choices", "DiscreteNumbers", "FloatRange", "IntRange"),
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
        *("MWSGP", "RGPE", "SCAML", "SHGP", "STAR", "TSTR", "WSGP"),
    ),
    "models.auto.auto": ("Auto",),
    "models.auto.candidates": ("Candidate",),
    "models.auto.explanation": ("Explanation", "explain"),
    "models.model": ("Prior", "TransferModel"),
    "models.params": (
        *("AutoParams", "ChainParams", "CoregionalParams", "EnsembleParams", "StarParams", "WeightedParams"),
    ),
    "sampler.sampler": ("TransferSampler",),
    "sources.past": ("Sources",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # type checkers read the imports above


def __getattr__(name: str) -> Any:
    """Import a public name's module when it is first asked for."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'headstart' has no attribute {name!r}")
    return getattr(import_module(f"headstart.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])
