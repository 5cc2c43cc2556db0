"""How methods and problems are called and drawn: one colour, dash and marker per method, in every figure.

The colours are of the palettes of Okabe and Ito and of Paul Tol, which colour-blind readers can tell apart. No two
methods differ in colour alone: the models that are trained level by level have solid lines, the jointly trained ones
are dash-dotted, those that are no transfer models dashed or dotted. AUTO is a solid black line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Style:
    """How a method is drawn."""

    label: str
    color: str
    line: Any
    marker: str


_DASHED, _DOTTED = (0, (5, 2)), (0, (1, 1.4))
_DASH_DOT, _DASH_DOT_DOT = (0, (6, 1.5, 1, 1.5)), (0, (4, 1.5, 1, 1.5, 1, 1.5))

_STYLES = {
    "auto": Style("AUTO", "#000000", "-", "*"),
    "gpbo": Style("GPBO", "#D55E00", _DASHED, "s"),
    "mhgp": Style("MHGP", "#56B4E9", "-", "v"),
    "shgp": Style("SHGP", "#0072B2", "-", "o"),
    "bhgp": Style("BHGP", "#009E73", "-", "^"),
    "hgp": Style("HGP", "#CC79A7", _DASH_DOT, "D"),
    "wsgp": Style("WSGP", "#E69F00", _DASH_DOT, "P"),
    "mtkgp": Style("MTKGP", "#882255", _DASH_DOT_DOT, "X"),
    "mtgp": Style("MTGP", "#332288", _DASH_DOT_DOT, "d"),
    "star": Style("STAR", "#AA3377", "-", "p"),
    "scaml": Style("SCAML", "#44BB99", "-", "H"),
    "mwsgp": Style("MWSGP", "#BBCC33", "-", ">"),
    "rgpe": Style("RGPE", "#999933", _DASHED, "<"),
    "tst-r": Style("TST-R", "#6699CC", _DASHED, ">"),
    "gc3p": Style("GC3P", "#661100", _DASHED, "h"),
    "optuna-gp": Style("Optuna, GP", "#117733", _DASHED, "1"),
    "optuna-tpe": Style("Optuna, TPE", "#DDAA33", _DOTTED, "4"),
    "botorch": Style("BoTorch", "#AA4499", _DASHED, "8"),
    "botorch-mtgp": Style("BoTorch, MTGP", "#CC3311", _DASH_DOT, "2"),
    "ax": Style("Ax", "#0077BB", _DASH_DOT, "3"),
    "baybe": Style("BayBE", "#EE3377", _DASH_DOT, "|"),
    "best-past": Style("best past row", "#DDCC77", _DASHED, "+"),
    "gpbo-again": Style("GPBO again (control)", "#BBBBBB", _DASHED, "_"),
    "random": Style("random", "#888888", _DOTTED, "x"),
}
CONTROL = "gpbo-again"  # the negative control of ``methods.registry``
# The order of rows and legends
ORDER = tuple(_STYLES)


def style(method: str) -> Style:
    """The style of a method; one that is not known here is black with a thin dash."""
    return _STYLES.get(method.lower(), Style(method, "#333333", (0, (2, 2)), "1"))


def in_order(methods: Iterable[str]) -> tuple[str, ...]:
    """Each method once, in the order of every table and legend."""
    known = set(methods)
    return (*(m for m in ORDER if m in known), *sorted(known - set(ORDER)))


def settings_of(problem: str) -> tuple[str, dict[str, str]]:
    """``hartmann6[sources=1,points=120]`` as ("hartmann6", {"sources": "1", "points": "120"})."""
    name, _, inside = problem.removesuffix("]").partition("[")
    pairs = (item.partition("=") for item in inside.split(",") if "=" in item)
    return name, {key: value for key, _, value in pairs}


def setting(problem: str, key: str) -> float | None:
    """A number in a problem's name, or None where there is none."""
    try:
        return float(settings_of(problem)[1][key])
    except (KeyError, ValueError):
        return None


def is_table(problem: str) -> bool:
    """Whether the problem is a table, whose mean regret is the ADTM."""
    return "rows" in settings_of(problem)[1]


_NAMES = {
    "hartmann3": "Hartmann-3",
    "hartmann6": "Hartmann-6",
    "svm_sklearn": "SVM",
    "xgboost": "XGBoost",
    "mlp_hpobench": "MLP (HPOBench)",
    "mlp_lcbench": "MLP (LCBench)",
    "x264_encoder": "x264",
    "oer_catalysts": "OER catalysts",
}


def title(problem: str) -> str:
    """The problem for people, without what ``setting`` gives: Hartmann-6."""
    name, _ = settings_of(problem)
    return _NAMES.get(name, name.replace("_", " ").capitalize() if name.islower() else name)


def problem_order(problem: str) -> tuple[str, list[tuple[str, float]]]:
    """Sort key: by family, then by the numbers in the name."""
    numbers = [(key, float(value)) for key, value in re.findall(r"(\w+)=([-+.\de]+)(?=[,\]])", problem)]
    return settings_of(problem)[0], numbers
