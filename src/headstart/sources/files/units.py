"""Units of measurement: how they are spelled, and what one is in another.

Units of one quantity are converted into each other. No others are: a mass is no share, and a wt% is no vol%.
"""

from __future__ import annotations

import re
import unicodedata

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
    "volume": {"µL": (1e-6, 0.0), "mL": (1e-3, 0.0), "L": (1.0, 0.0)},
    "amount": {"µmol": (1e-6, 0.0), "mmol": (1e-3, 0.0), "mol": (1.0, 0.0)},
    "concentration": {"µmol/L": (1e-6, 0.0), "mmol/L": (1e-3, 0.0), "mol/L": (1.0, 0.0)},
    "frequency": {"rpm": (1 / 60, 0.0), "Hz": (1.0, 0.0), "kHz": (1e3, 0.0)},
    "voltage": {"mV": (1e-3, 0.0), "V": (1.0, 0.0), "kV": (1e3, 0.0)},
    "current": {"mA": (1e-3, 0.0), "A": (1.0, 0.0)},
    "power": {"W": (1.0, 0.0), "kW": (1e3, 0.0)},
    "force": {"N": (1.0, 0.0), "kN": (1e3, 0.0)},
    "mass concentration": {"mg/L": (1e-3, 0.0), "g/L": (1.0, 0.0), "mg/mL": (1.0, 0.0)},
    "flow": {
        "µL/min": (1e-6, 0.0), "mL/min": (1e-3, 0.0), "mL/h": (1e-3 / 60, 0.0), "L/h": (1 / 60, 0.0),
        "L/min": (1.0, 0.0),
    },
    "speed": {"mm/min": (1e-3 / 60, 0.0), "mm/s": (1e-3, 0.0), "m/min": (1 / 60, 0.0), "m/s": (1.0, 0.0)},
    "feed": {"mm/rev": (1.0, 0.0), "µm/rev": (1e-3, 0.0)},
}  # fmt: skip
_QUANTITY = {unit: quantity for quantity, units in _SCALES.items() for unit in units}
_OTHER_SPELLINGS = {
    "°c": "°C", "° C": "°C", "°": "°C", "grad": "°C", "grad c": "°C", "deg c": "°C", "deg": "°C", "°f": "°F",
    "prozent": "%", "proz": "%", "v.h.": "%", "sek": "s", "sekunden": "s", "minuten": "min", "minute": "min",
    "std": "h", "stunde": "h", "stunden": "h", "hour": "h", "tag": "d", "tage": "d", "d": "d", "day": "d",
    "u/min": "rpm", "1/min": "rpm", "min-1": "rpm", "upm": "rpm", "µg": "µg", "ug": "µg", "äq": "equiv", "äq.": "equiv",
    "eq.": "equiv", "equiv.": "equiv", "mol-%": "mol%", "mol%": "mol%", "mol %": "mol%", "wt%": "wt%", "wt-%": "wt%",
    "wt %": "wt%", "gew.-%": "wt%", "gew-%": "wt%", "m%": "wt%", "vol%": "vol%", "vol-%": "vol%", "vol.-%": "vol%",
    "vol %": "vol%", "v/v%": "vol%", "g/l": "g/L", "mg/ml": "mg/mL", "mg/l": "mg/L", "ml/min": "mL/min", "€": "EUR",
    "mm/u": "mm/rev", "mm/r": "mm/rev", "mol/l": "mol/L", "mmol/l": "mmol/L",
}  # fmt: skip
_EXACT = {**{unit: unit for unit in (*_QUANTITY, *UNIT_WORDS.values())}, **UNIT_WORDS}
_FOLDED: dict[str, set[str]] = {}
for _spelling, _unit in (*_EXACT.items(), *_OTHER_SPELLINGS.items()):
    _FOLDED.setdefault(_spelling.casefold(), set()).add(_unit)


def canonical_unit(text: str) -> str:
    """The unit that a text is a spelling of, "" where it is none: ``°C`` of ``° c``, ``min`` of ``Minuten``.

    Capitals count where they tell two units apart: mM is none of mm, and M none of m.
    """
    text = unicodedata.normalize("NFC", " ".join(text.split())).replace("℃", "°C").replace("º", "°")
    text = re.sub("^[μu](?=[mgLl]|mol)", "µ", text.replace("μ", "µ"))
    text = text.removesuffix(".") if text.removesuffix(".") in _EXACT else text
    if text in _EXACT:
        return _EXACT[text]
    for spelling in (text.casefold(), text.casefold().replace(" ", ""), text.casefold().removesuffix(".")):
        found = _FOLDED.get(spelling, set())
        if len(found) == 1:
            return next(iter(found))
    return ""


def converts(unit: str, into: str) -> bool:
    """Whether values in the one unit are known in the other."""
    return unit == into or (unit in _QUANTITY and _QUANTITY[unit] == _QUANTITY.get(into))


def quantity_of(unit: str) -> str:
    """What a unit measures, as in temperature; "" where that is not known."""
    return _QUANTITY.get(unit, "")


def converted(value: float, unit: str, into: str) -> float:
    """The value in another unit, for units that convert: (a · value + b − b′) / a′, without the dust of arithmetic."""
    if unit == into:
        return value
    scale = _SCALES[_QUANTITY[unit]]
    (factor, offset), (other_factor, other_offset) = scale[unit], scale[into]
    return float(f"{(factor * value + offset - other_offset) / other_factor:.12g}")
