"""The prediction along each parameter through any point, of every outcome, as lines that a page draws by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headstart.campaign.fitted import ExpectedResults, Fitted, FittedOutcome
from headstart.campaign.suggestions import Range, ranges_at
from headstart.errors import InputError
from headstart.gp.threads import single_thread
from headstart.sources.files.cells import number
from headstart.sources.parameters import Kind, Parameter

WIDTH, HEIGHT = 340, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 36
_POINTS = 21
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis, where it stands and what it says."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a panel's axes are: pixels of the drawing."""

    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


@dataclass(frozen=True, slots=True)
class SlicePanel:
    """One outcome along one parameter. ``band`` and ``line`` are points to draw; ``bars`` stand for categories."""

    outcome: str
    label: str
    index: int  # of the parameter among all
    parameter: Parameter
    line: str
    band: str
    bars: tuple[tuple[float, float, float, float], ...]  # where, median, low, high
    dots: tuple[tuple[float, float], ...]
    here: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    described: str


def point_of(fitted: Fitted, asked: Mapping[str, str], reference: Mapping[str, Any]) -> dict[str, Any]:
    """The reference point with other values, named v0, v1 … by the parameters' places; a comma is fine."""
    found = dict(reference)
    for i, p in enumerate(fitted.campaign.file.parameters):
        text = asked.get(f"v{i}", "").strip()
        if not text or p.kind is Kind.FIXED:
            continue
        if p.is_text:
            if text not in p.choices:
                raise InputError(f"{p.name}: {text[:60]!r} is none of the choices ({', '.join(p.choices)}).")
            found[p.name] = text
            continue
        value = number(text, ".")
        if value is None or not p.low <= value <= p.high:
            raise InputError(f"{p.name}: {text[:60]!r} is no number between {p.low:g} and {p.high:g}.")
        found[p.name] = round(value) if p.kind is Kind.INT else value
    return found


@single_thread()
def expected_at(fitted: Fitted, row: Mapping[str, Any]) -> list[tuple[str, Range]]:
    """What a measurement of every outcome is expected to be at a point."""
    return [(own.column.label, ranges_at(own, [row])[0]) for own in fitted.outcomes]


@single_thread()
def within_at(fitted: Fitted, row: Mapping[str, Any]) -> float:
    """How probably all limits hold at a point."""
    return float(fitted.probability_within([row])[0])


@single_thread()
def panels_at(fitted: Fitted, point: Mapping[str, Any]) -> list[SlicePanel]:
    """A panel for every outcome and parameter."""
    free = [(i, p) for i, p in enumerate(fitted.campaign.file.parameters) if p.kind is not Kind.FIXED]
    values = [_values(p) for _, p in free]
    rows = [{**point, p.name: value} for (_, p), own in zip(free, values, strict=True) for value in own]
    panels = []
    for own in fitted.outcomes:
        found = own.expected(rows)
        if found is None:
            continue
        low, high = _view(own, found)
        at = 0
        for (i, p), each in zip(free, values, strict=True):
            part = slice(at, at + len(each))
            at += len(each)
            panels.append(_panel(own, i, p, each, found, part, (low, high), point))
    return panels


def _values(p: Parameter) -> list[Any]:
    if p.is_text:
        return list(p.choices)
    grid = np.geomspace(p.low, p.high, _POINTS) if p.log else np.linspace(p.low, p.high, _POINTS)
    return [min(max(float(v), p.low), p.high) for v in grid]


def _view(own: FittedOutcome, found: ExpectedResults) -> tuple[float, float]:
    """The values that are in view: all that was measured here, and the band where it is not much wider than that."""
    middle = np.concatenate([own.values, found.median])
    reach = max(float(np.ptp(middle)), 1e-9)
    low = max(float(found.low.min()), float(middle.min()) - reach)
    high = min(float(found.high.max()), float(middle.max()) + reach)
    return min(low, float(middle.min())), max(high, float(middle.max()))


def _across(p: Parameter, value: Any) -> float:
    frame = Frame()
    if p.is_text:
        share = (p.choices.index(value) + 0.5) / len(p.choices) if value in p.choices else -1.0
    elif p.log:
        share = math.log(value / p.low) / math.log(p.high / p.low) if value > 0 else -1.0
    else:
        share = (value - p.low) / (p.high - p.low)
    return round(frame.left + share * (frame.right - frame.left), 2)


def _panel(
    own: FittedOutcome,
    index: int,
    p: Parameter,
    values: Sequence[Any],
    found: ExpectedResults,
    part: slice,
    view: tuple[float, float],
    point: Mapping[str, Any],
) -> SlicePanel:
    frame = Frame()

    def up(value: float) -> float:
        share = (min(max(value, view[0]), view[1]) - view[0]) / (view[1] - view[0])
        return round(frame.bottom - share * (frame.bottom - frame.top), 2)

    x = [_across(p, value) for value in values]
    median, low, high = ([up(float(v)) for v in side[part]] for side in (found.median, found.low, found.high))
    line = " ".join(f"{a},{b}" for a, b in zip(x, median, strict=True))
    there = [*zip(x, high, strict=True), *reversed(list(zip(x, low, strict=True)))]
    dots = [(_across(p, e.values[p.name]), up(y)) for e, y in zip(own.experiments, own.values.tolist(), strict=True)]
    ends = found.median[part]
    told = f"{own.column.label} along {p.label}: the median goes from {ends[0]:.3g} to {ends[-1]:.3g}"
    return SlicePanel(
        own.column.name,
        own.column.label,
        index,
        p,
        "" if p.is_text else line,
        "" if p.is_text else " ".join(f"{a},{b}" for a, b in there),
        tuple(zip(x, median, low, high, strict=True)) if p.is_text else (),
        tuple(dot for dot in dots if frame.left <= dot[0] <= frame.right),
        _across(p, point[p.name]),
        _x_ticks(p),
        tuple(Tick(up(v), f"{v:g}") for v in _round_values(*view)),
        told,
    )


def _x_ticks(p: Parameter) -> tuple[Tick, ...]:
    if p.is_text:
        return tuple(Tick(_across(p, c), c if len(c) <= 10 else f"{c[:9]}…") for c in p.choices)
    if p.log:
        powers = range(math.ceil(math.log10(p.low) - 1e-9), math.floor(math.log10(p.high) + 1e-9) + 1)
        values = [10.0**k for k in powers]
        values = values if len(values) > 1 else [p.low, p.high]
    else:
        values = _round_values(p.low, p.high)
    return tuple(Tick(_across(p, v), f"{v:g}") for v in values)


def _round_values(low: float, high: float) -> list[float]:
    """Three to six round numbers between the two."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / _TICKS))
    step = next(m * power for m in (1, 2, 5, 10) if (high - low) / (m * power) <= _TICKS + 1)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, math.floor(high / step + 1e-9) + 1)]
