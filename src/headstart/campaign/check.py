"""May a campaign's past be trusted? AUTO's view of its past files, also where another model chooses."""

from __future__ import annotations

from headstart.campaign.campaign import past_tasks
from headstart.campaign.file import DEFAULT_MODEL
from headstart.campaign.init import Looked
from headstart.campaign.model import Fitted
from headstart.errors import InputError
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict, auto_only, explain
from headstart.models.family import model_named
from headstart.sources.aligned import Alignment
from headstart.sources.alignment import align

__all__ = ["align_files", "auto_prior", "explained", "learn_past", "unusual_verdicts"]


def align_files(looked: Looked) -> Alignment:
    """The past files in the space that was guessed from them."""
    file = looked.file
    return align(
        past_tasks(looked.tables, file, []),
        {p.name: p.distribution() for p in file.parameters},
        minimize=not file.maximize,
    )


def learn_past(alignment: Alignment, *, seed: int = 0) -> AutoPrior:
    """What AUTO learns from the past tasks."""
    return auto_only(model_named(DEFAULT_MODEL).anywhere().learn(alignment.datasets, seed=seed))


def auto_prior(fitted: Fitted) -> AutoPrior:
    """What AUTO learnt from the past campaigns, also where the campaign is told to use another model."""
    if isinstance(fitted.prior, AutoPrior):
        return fitted.prior
    if not fitted.alignment.datasets:
        raise InputError(f"{fitted.campaign.folder}: the campaign has no past files, so there is nothing to check.")
    return learn_past(fitted.alignment)


def explained(fitted: Fitted) -> Explanation | None:
    """The verdicts on a campaign's sources; None where its model does not weigh them."""
    return explain(fitted.prior, fitted.target) if isinstance(fitted.prior, AutoPrior) else None


def unusual_verdicts(explanation: Explanation | None) -> tuple[SourceVerdict, ...]:
    """The sources that are not simply used as they are: ignored, down-weighted, or turned upside down."""
    if explanation is None:
        return ()
    return tuple(s for s in explanation.sources if s.verdict is not Verdict.USED or s.weight + s.weight_sd < 0)
