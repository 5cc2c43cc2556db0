"""Units of measurement: how they are spelled, and what one is in another.

Units of one quantity, and ratios of such, are converted into each other. No others are: a mass is no share, and a wt%
is no vol%.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# What a last word such as _min stands for; capitals count where the same letter means two things
UNIT_WORDS = {
    "percent": "%", "pct": "%", "perc": "%", "Prozent": "%", "prozent": "%", "wtpct": "wt%", "molpct": "mol%",
    "ppm": "ppm", "ppb": "ppb",
    "degC": "°C", "degc": "°C", "C": "°C", "celsius": "°C", "K": "K", "kelvin": "K", "F": "°F", "degF": "°F",
    "ms": "ms", "s": "s", "sec": "s", "seconds": "s", "min": "min", "mins": "min", "minutes": "min", "h": "h",
    "hr": "h", "hrs": "h", "hours": "h", "days": "d",
    "bar": "bar", "mbar": "mbar", "Pa": "Pa", "kPa": "kPa", "MPa": "MPa", "psi": "psi", "torr": "torr", "atm": "atm",
    "nm": "nm", "um": "µm", "mm": "mm", "cm": "cm", "m": "m",
    "mg": "mg", "g": "g", "kg": "kg", "ul": "µL", "uL": "µL", "ml": "mL", "mL": "mL", "l": "L", "L": "L",
    "mol": "mol", "mmol": "mmol", "umol": "µmol", "M": "mol/L", "mM": "mmol/L", "uM": "µmol/L", "equiv": "equiv",
    "eq": "equiv", "rpm": "rpm", "Hz": "Hz", "kHz": "kHz", "V": "V", "mV": "mV", "kV": "kV", "A": "A", "mA": "mA",
    "W": "W", "kW": "kW", "eV": "eV", "N": "N", "kN": "kN", "usd": "USD", "eur": "EUR",
}  # fmt: skip


# base value = factor · value + offset, with a base unit for every quantity
_SCALES: dict[str, dict[str, tuple[float, float]]] = {
    "temperature": {"K": (1.0, 0.0), "°C": (1.0, 273.15), "°F": (5 / 9, 459.67 * 5 / 9)},
    "time": {"ms": (1e-3, 0.0), "s": (1.0, 0.0), "min": (60.0, 0.0), "h": (3600.0, 0.0), "d": (86400.0, 0.0)},
    "pressure": {
        "Pa": (1.0, 0.0), "kPa": (1e3, 0.0), "MPa": (1e6, 0.0), "mbar": (100.0, 0.0), "bar": (1e5, 0.0),
        "psi": (6894.757293168361, 0.0), "torr": (101325 / 760, 0.0), "atm": (101325.0, 0.0),
    },
    "length": {"nm": (1e-9, 0.0), "µm": (1e-6, 0.0), "mm": (1e-3, 0.0), "cm": (1e-2, 0.0), "m": (1.0, 0.0)},
    "mass": {"µg": (1e-6, 0.0), "mg": (1e-3, 0.0), "g": (1.0, 0.0), "kg": (1e3, 0.0)},
    "area": {"mm2": (1e-6, 0.0), "cm2": (1e-4, 0.0), "dm2": (1e-2, 0.0), "m2": (1.0, 0.0)},
    "volume": {
        "µL": (1e-6, 0.0), "mL": (1e-3, 0.0), "L": (1.0, 0.0), "mm3": (1e-6, 0.0), "cm3": (1e-3, 0.0),
        "dm3": (1.0, 0.0), "m3": (1e3, 0.0),
    },
    "amount": {"µmol": (1e-6, 0.0), "mmol": (1e-3, 0.0), "mol": (1.0, 0.0)},
    "frequency": {"rpm": (1 / 60, 0.0), "Hz": (1.0, 0.0), "kHz": (1e3, 0.0)},
    "voltage": {"mV": (1e-3, 0.0), "V": (1.0, 0.0), "kV": (1e3, 0.0)},
    "current": {"mA": (1e-3, 0.0), "A": (1.0, 0.0)},
    "power": {"W": (1.0, 0.0), "kW": (1e3, 0.0)},
    "force": {"N": (1.0, 0.0), "kN": (1e3, 0.0)},
    "rotation": {"rev": (1.0, 0.0)},
}  # fmt: skip
_QUANTITY = {unit: quantity for quantity, units in _SCALES.items() for unit in units}
_DIVIDE = ("time", "length", "area", "volume", "mass", "amount", "rotation")  # what stands below in ratios
_OTHER_SPELLINGS = {
    "°c": "°C", "° C": "°C", "°": "°C", "grad": "°C", "grad c": "°C", "deg c": "°C", "deg": "°C", "°f": "°F",
    "prozent": "%", "proz": "%", "v.h.": "%", "sek": "s", "sekunden": "s", "minuten": "min", "minute": "min",
    "std": "h", "stunde": "h", "stunden": "h", "hour": "h", "tag": "d", "tage": "d", "d": "d", "day": "d",
    "u/min": "rpm", "1/min": "rpm", "min-1": "rpm", "upm": "rpm", "µg": "µg", "ug": "µg", "äq": "equiv", "äq.": "equiv",
    "eq.": "equiv", "equiv.": "equiv", "mol-%": "mol%", "mol%": "mol%", "mol %": "mol%", "wt%": "wt%", "wt-%": "wt%",
    "wt %": "wt%", "gew.-%": "wt%", "gew-%": "wt%", "m%": "wt%", "vol%": "vol%", "vol-%": "vol%", "vol.-%": "vol%",
    "vol %": "vol%", "v/v%": "vol%", "€": "EUR", "mm/u": "mm/rev",
    "mm/r": "mm/rev",
}  # fmt: skip
_EXACT = {**{unit: unit for unit in (*_QUANTITY, *UNIT_WORDS.values())}, **UNIT_WORDS}
_FOLDED: dict[str, set[str]] = {}
for _spelling, _unit in (*_EXACT.items(), *_OTHER_SPELLINGS.items()):
    _FOLDED.setdefault(_spelling.casefold(), set()).add(_unit)


def canonical_unit(text: str) -> str:
    """The unit that a text is a spelling of, "" where it is none: ``°C`` of ``° c``, ``min`` of ``Minuten``.

    Capitals count where they tell two units apart: mM is none of mm, and M none of m.
    """
    text = spelled_plainly(text)
    text = text.removesuffix(".") if text.removesuffix(".") in _EXACT else text
    if text in _EXACT:
        return _EXACT[text]
    for spelling in (text.casefold(), text.casefold().replace(" ", ""), text.casefold().removesuffix(".")):
        found = _FOLDED.get(spelling, set())
        if len(found) == 1:
            return next(iter(found))
    above, slash, below = text.partition("/")
    ratio = f"{canonical_unit(above)}/{canonical_unit(below)}" if slash else ""
    return ratio if _scale_of(ratio) is not None else ""


def spelled_plainly(unit: str) -> str:
    """A unit, known or not, as others write it too: ``mL/min`` of ``mL·min⁻¹``, ``mAh/cm2`` of ``mAh / cm²``."""
    text = unicodedata.normalize("NFC", " ".join(unit.split())).replace("℃", "°C").replace("º", "°")
    text = unicodedata.normalize("NFKC", text.replace("μ", "µ").replace("µ", "\0")).replace("\0", "µ")
    text = re.sub("^u(?=[mgLl]|mol)", "µ", text.replace("−", "-"))
    text = re.sub(r"[ ·*]([^\W\d]+)\^?-([123])$", lambda m: f"/{m[1]}{m[2].replace('1', '')}", text)
    return re.sub(r"\s*([/·*])\s*|\^(?=\d)", r"\1", text)


@cache
def _scale_of(unit: str) -> tuple[str, float, float] | None:
    """What a unit measures, its factor and its offset; of ratios, as in g/L, by their two units."""
    if unit in _QUANTITY:
        return _QUANTITY[unit], *_SCALES[_QUANTITY[unit]][unit]
    above, _, below = unit.partition("/")
    if above not in _QUANTITY or _QUANTITY.get(below) not in _DIVIDE or _QUANTITY[above] == _QUANTITY[below]:
        return None
    factors = [_SCALES[_QUANTITY[part]][part][0] for part in (above, below)]
    return f"{_QUANTITY[above]}/{_QUANTITY[below]}", factors[0] / factors[1], 0.0


def converts(unit: str, into: str) -> bool:
    """Whether values in the one unit are known in the other."""
    one, other = _scale_of(unit), _scale_of(into)
    return _without_marks(unit) == _without_marks(into) or (
        one is not None and other is not None and one[0] == other[0]
    )


def _without_marks(unit: str) -> str:
    """mPas of ``mPa·s`` and ``mPa s``."""
    return re.sub("[ ·*]", "", unit)


def quantity_of(unit: str) -> str:
    """What a unit measures, as in temperature; "" where that is not known."""
    return _QUANTITY.get(unit, "")


def converted(value: float, unit: str, into: str) -> float:
    """The value in another unit, for units that convert: (a · value + b − b′) / a′, without the dust of arithmetic."""
    if _without_marks(unit) == _without_marks(into):
        return value
    one, other = _scale_of(unit), _scale_of(into)
    if one is None or other is None:
        raise ValueError(f"{unit} cannot be converted to {into}.")
    (_, factor, offset), (_, other_factor, other_offset) = one, other
    return float(f"{(factor * value + offset - other_offset) / other_factor:.12g}")
