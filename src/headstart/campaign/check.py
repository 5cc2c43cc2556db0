"""May a campaign's past be trusted? AUTO's view of its past files, also where another model chooses."""

from __future__ import annotations

from collections.abc import Sequence

from headstart.campaign.file import DEFAULT_MODEL
from headstart.campaign.fitted import FittedOutcome, align_tasks
from headstart.campaign.init import Looked
from headstart.campaign.past import past_tasks
from headstart.models.auto.auto import AutoPrior
from headstart.models.auto.explanation import Explanation, SourceVerdict, Verdict, WhyUnusable, auto_only, explain
from headstart.models.family import model_named
from headstart.models.learning import LearnContext, OnProgress
from headstart.sources.alignment import Alignment

_UNUSABLE = {
    WhyUnusable.TOO_FEW: "Add the rest of its rows, if there are any.",
    WhyUnusable.LITTLE: "That is no fault of its rows: more of them, or fewer parameters, would make it count.",
    WhyUnusable.CONSTANT: "Look whether the right column was taken for the result.",
    WhyUnusable.NOISE: "Look for a slip of the decimal mark, a swapped column, another unit, or something that "
    "mattered and was not recorded.",
}


def align_files(looked: Looked) -> dict[str, Alignment]:
    """The past files in the space that was guessed from them, for every outcome those that know it."""
    return align_tasks(past_tasks(looked.tables, looked.file, []), looked.file)


def learn_past(alignment: Alignment, *, seed: int = 0, told: OnProgress | None = None) -> AutoPrior:
    """What AUTO learns from the past tasks; ``told`` is how far it is."""
    context = LearnContext(on_progress=told)
    return auto_only(model_named(DEFAULT_MODEL).anywhere().learn(alignment.datasets, seed=seed, context=context))


def auto_prior(fitted: FittedOutcome, told: OnProgress | None = None) -> AutoPrior | None:
    """What AUTO learnt from the past campaigns, also where the campaign is told to use another model.

    None where no past file knows the outcome.
    """
    if isinstance(fitted.prior, AutoPrior):
        return fitted.prior
    return learn_past(fitted.alignment, told=told) if fitted.alignment.datasets else None


def explained(fitted: FittedOutcome) -> Explanation | None:
    """The verdicts on an outcome's sources; None where its model does not weigh them."""
    return explain(fitted.prior, fitted.target) if isinstance(fitted.prior, AutoPrior) else None


def unusual_verdicts(explanation: Explanation | None) -> tuple[SourceVerdict, ...]:
    """The sources that are not simply used as they are: ignored, unrelated, or turned upside down."""
    usual = (Verdict.RELATED, Verdict.UNKNOWN, Verdict.UNTESTED)
    return () if explanation is None else tuple(s for s in explanation.sources if s.verdict not in usual)


def what_to_look_at(source: SourceVerdict, related: tuple[Sequence[str], Sequence[str]]) -> str:
    """What to look at when a campaign is ignored, unrelated, or upside down; "" where all is well.

    ``related`` are the campaigns that show the same, and those that show the reverse (``Explanation.related``).
    """
    same, others = related
    if source.verdict is Verdict.REVERSED or len(others) > len(same):
        reverse = ", ".join(others) if len(others) > len(same) else "this campaign"
        return (
            f"It shows the reverse of {reverse}: look whether its result counts the other way round (loss instead of "
            "yield), or two columns are swapped."
        )
    if source.unusable is not None:
        return _UNUSABLE[source.unusable]
    same_process = "Look whether it was really the same process, and the same way of measuring."
    return same_process if source.verdict is Verdict.UNRELATED else ""
