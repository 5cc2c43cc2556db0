"""Units in the names of columns: ``temperature [°C]``, ``time_min``, ``Pressure (bar)``, ``yield_percent``."""

from __future__ import annotations

import re
import unicodedata

_BRACKETS = re.compile(r"(?P<base>.*?\S)\s*[\[(](?P<unit>[^\[\]()]{1,20})[\])]\s*")
_SLASH = re.compile(r"(?P<base>.*?\S)\s+/\s+(?P<unit>\S{1,20})\s*")  # temperature / °C
_LAST_WORD = re.compile(r"(?P<base>.*[^\W_])[_ ](?P<unit>[^\W_]+)")
# What a last word such as _min stands for; capitals count where the same letter means two things
UNIT_WORDS = {
    "percent": "%", "pct": "%", "perc": "%", "wtpct": "wt%", "ppm": "ppm", "ppb": "ppb",
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


def split_unit(column: str) -> tuple[str, str]:
    """("temperature", "°C") of ``temperature [°C]``; the unit is empty where the name shows none."""
    for pattern in (_BRACKETS, _SLASH):
        if match := pattern.fullmatch(column):
            unit = match["unit"].strip()
            return match["base"].strip(" _"), UNIT_WORDS.get(unit, unit)
    if (match := _LAST_WORD.fullmatch(column)) and match["unit"] in UNIT_WORDS:
        return match["base"], UNIT_WORDS[match["unit"]]
    return column, ""


def plain(column: str) -> str:
    """The name without unit, case and separators: what two spellings of a column have in common."""
    return re.sub(r"[\W_]+", "", split_unit(folded(column, case=True))[0]).casefold()


def folded(text: str, *, case: bool = False) -> str:
    """The text as it is compared: composed umlauts, single spaces and, unless it counts, no capitals."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return text if case else text.casefold()


def with_unit(column: str, unit: str) -> str:
    """The name and its unit for people: ``time [min]`` for the column ``time_min``."""
    base = split_unit(column)[0] if split_unit(column)[1] == unit else column
    return f"{base} [{unit}]" if unit else base
