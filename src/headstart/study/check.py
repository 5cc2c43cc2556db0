"""May the past be trusted? What past campaigns say about themselves and each other, and what becomes of them.

``check_past``       before the first experiment: which past campaigns are noise, which agree, which contradict
``explanation_of``   with results of the target: a verdict per source, and what a prediction rests on
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from headstart.data.dataset import Dataset
from headstart.data.units import spread_of
from headstart.errors import InputError
from headstart.models.auto import AutoPrior
from headstart.models.botorch import TransferPosterior
from headstart.models.explanation import Explanation, SourceVerdict, Verdict, agreement, explain, says_little
from headstart.models.model import Prior
from headstart.study.alignment import Alignment, align
from headstart.study.campaign import past_tasks
from headstart.study.campaign_file import DEFAULT_MODEL
from headstart.study.campaign_init import Looked
from headstart.study.campaign_model import THIS, Fitted, model_named
from headstart.study.shares import shares

__all__ = [
    "PastCheck",
    "Reasons",
    "align_files",
    "check_past",
    "explanation_of",
    "remarkable",
    "weighing",
]

NOISE, LITTLE, CONSTANT, TOO_FEW = "noise", "says little", "constant", "too few rows"
# A correlation below this is no agreement, however many rows it comes from; with few rows twice chance (1/√n) counts
_WEAK = 0.3
_FEW_ROWS = 3  # with less, nothing can be left out and predicted from the others


@dataclass(frozen=True, slots=True)
class PastCheck:
    """What past campaigns say about themselves (``gains`` ± ``errors``, nats per row) and about each other.

    ``silent`` says why a campaign says nothing: it is "noise" that does not even predict itself, "says little" where it
    has few rows for that, is "constant", or has "too few rows"; "" where it does. ``agreement[i, j]`` is the
    correlation of what i predicts with what j measured; NaN where i says nothing, or j has nothing to compare with.
    """

    verdicts: tuple[SourceVerdict, ...]
    rows: tuple[int, ...]
    gains: tuple[float, ...]
    errors: tuple[float, ...]
    silent: tuple[str, ...]
    agreement: NDArray[np.float64]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the campaigns, in order."""
        return tuple(v.name for v in self.verdicts)

    def relation(self, i: int, j: int) -> float | None:
        """The correlation of two campaigns, the mean of both directions; None where it may be chance."""
        both = float(self.agreement[i, j] + self.agreement[j, i]) / 2
        chance = max(_WEAK, 2 / math.sqrt(min(self.rows[i], self.rows[j])))
        return both if abs(both) > chance else None

    def agrees(self, i: int) -> tuple[str, ...]:
        """The campaigns that show what this one shows."""
        return self._related(i, 1.0)

    def contradicts(self, i: int) -> tuple[str, ...]:
        """The campaigns that show the reverse."""
        return self._related(i, -1.0)

    def _related(self, i: int, sign: float) -> tuple[str, ...]:
        others = ((name, self.relation(i, j)) for j, name in enumerate(self.names) if j != i)
        return tuple(name for name, r in others if r is not None and sign * r > 0)


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why a model predicts what it predicts: a verdict per source, and the shares of the tasks at given points.

    ``names`` are those of the sources in order, and of the target; ``shares`` has a row per point, which sums to 1.
    """

    explanation: Explanation
    names: tuple[str, ...]
    shares: Float[Tensor, "m k"]

    def __str__(self) -> str:
        """The explanation, and a line per point."""
        lines = [str(self.explanation)]
        for row in self.shares.tolist():
            parts = (f"{name} {share:.0%}" for name, share in zip(self.names, row, strict=True) if share >= 0.005)
            lines.append(f"rests on: {', '.join(parts)}")
        return "\n".join(lines)


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
    return _auto(model_named(DEFAULT_MODEL).learn(alignment.datasets, seed=seed))


def weighing(fitted: Fitted) -> AutoPrior:
    """What AUTO learnt from the past campaigns, also where the campaign is told to use another model."""
    if isinstance(fitted.prior, AutoPrior):
        return fitted.prior
    if not fitted.alignment.datasets:
        raise InputError(f"{fitted.campaign.folder}: the campaign has no past files, so there is nothing to check.")
    return learn_past(fitted.alignment)


def check_past(prior: Prior) -> PastCheck:
    """What the sources say about themselves and each other."""
    auto = _auto(prior)
    with torch.no_grad():
        between = agreement(auto.alone.layers, auto.sources).numpy().copy()
    silent = tuple(_silent(auto, i) for i in range(len(auto.sources)))
    between[[bool(why) for why in silent]] = math.nan
    between[:, [why in (CONSTANT, TOO_FEW) for why in silent]] = math.nan
    return PastCheck(
        verdicts=_explanation(auto, None).sources,
        rows=tuple(source.n for source in auto.sources),
        gains=tuple(auto.gate.gain.tolist()),
        errors=tuple(auto.gate.error.tolist()),
        silent=silent,
        agreement=between,
    )


def explanation_of(
    prior: Prior,
    target: Dataset,
    X: Float[Tensor, "m d"] | None = None,
    *,
    names: Sequence[str] = (),
    posterior: TransferPosterior | None = None,
) -> Reasons:
    """The verdicts on AUTO's sources given the target's data, and what the predictions at X rest on.

    ``names`` are what the sources, and last the target, are to be called. ``posterior`` spares conditioning again.
    """
    auto = _auto(prior)
    explanation = _explanation(auto, target)
    names = tuple(names) or (*(s.name for s in explanation.sources), target.name or THIS)
    if len(names) != len(auto.sources) + 1:
        raise InputError(
            f"names must be those of the {len(auto.sources)} sources and of the target, but there are {len(names)}."
        )
    called = tuple(replace(s, name=name) for s, name in zip(explanation.sources, names, strict=False))
    each = torch.zeros(0, len(names), dtype=torch.float64)
    if X is not None:
        each = shares(auto, prior.condition(target) if posterior is None else posterior, X)
    return Reasons(replace(explanation, sources=called), names, each)


def explained(fitted: Fitted) -> Explanation | None:
    """The verdicts on a campaign's sources; None where its model does not weigh them."""
    return _explanation(fitted.prior, fitted.target) if isinstance(fitted.prior, AutoPrior) else None


def remarkable(explanation: Explanation | None) -> tuple[SourceVerdict, ...]:
    """The sources that are not simply used as they are: ignored, down-weighted, or turned upside down."""
    if explanation is None:
        return ()
    return tuple(s for s in explanation.sources if s.verdict is not Verdict.USED or s.weight + s.weight_sd < 0)


def _auto(prior: Prior) -> AutoPrior:
    if not isinstance(prior, AutoPrior):
        raise InputError(
            f"Only AUTO weighs its sources and can say why, but the model is {type(prior.model).__name__}. Use "
            'model = "auto".'
        )
    return prior


def _explanation(prior: AutoPrior, target: Dataset | None) -> Explanation:
    explanation = explain(prior, target)
    sources = tuple(_reasoned(s, _silent(prior, i), prior.sources[i].n) for i, s in enumerate(explanation.sources))
    return replace(explanation, sources=sources)


def _silent(prior: AutoPrior, i: int) -> str:
    y = prior.sources[i].y
    if bool(prior.gate.open[i]):
        return ""
    if len(y) < _FEW_ROWS:
        return TOO_FEW
    if float(spread_of(y, y.mean(-1))) == 0:
        return CONSTANT
    return LITTLE if says_little(prior.sources[i]) else NOISE


def _reasoned(source: SourceVerdict, silent: str, n: int) -> SourceVerdict:
    """With a plainer reason where there is one."""
    if silent == TOO_FEW:
        return replace(source, reason=f"It has {n} row{'s'[: n - 1]}: too few to see whether it predicts itself.")
    if silent == CONSTANT:
        return replace(source, reason="All its results are the same: nothing shows what matters.")
    return source
