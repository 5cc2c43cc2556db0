"""Words in names of columns, in English and German, and which of them mean the same thing.

A line has the words for one thing; a + stands between words that are one together. Capitals count in single letters:
T is a temperature, t a time. What is not here is compared by its letters, so that the list need not be complete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from headstart.sources.files.names import folded, split_unit

_SAME = """
temperature temperatur temp T
time zeit dauer duration t
concentration konzentration conc konz c
pressure druck p
solvent lösungsmittel lösemittel lm solv
antisolvent anti+solvent
catalyst katalysator cat kat
ligand
base
loading load beladung menge amount
equivalents equivalent äquivalente äquivalent equiv equivs eq äq
ratio verhältnis
yield ausbeute yld
conversion conv umsatz
selectivity selektivität sel
purity reinheit
titer titre
flow fluss durchfluss
rotation drehzahl agitation stirring rührgeschwindigkeit stirrer+speed spin+speed rotation+speed rührer+drehzahl rpm
speed geschwindigkeit
cuttingspeed cutting+speed schnitt+geschwindigkeit vc
feed vorschub f
cutdepth depth+of+cut schnitt+tiefe cutting+depth ap
radius
nose ecken corner
cooling kühlung coolant kühlschmierung
roughness rauheit rauigkeit rautiefe
thickness dicke
layer schicht film
size größe korngröße
particle partikel
hardener härter
share anteil content gehalt
hardness härte hv hrc
strength festigkeit
adhesion haftung haft
tensile zug
uts tensile+strength zug+festigkeit ultimate+tensile+strength
efficiency wirkungsgrad effizienz pce stromausbeute
wear verschleiß
distortion verzug
density dichte
current strom
voltage spannung
power leistung
energy energie
weight gewicht mass masse
volume volumen
humidity luftfeuchte feuchte luftfeuchtigkeit rh
curing härtung cure aushärtung
annealing anneal ausheiz
tempering anlas
austenitizing austenitisierung
quenching quench quenchant abschreck abschreckmittel quench+medium
residence verweil
reaction reaktion rxn
extraction extraktion
bath bad
medium media
material werkstoff
ph ph+wert ph+value
learningrate learning+rate lr
batchsize batch+size bs
weightdecay weight+decay wd
layers n+layers num+layers schichten
optimizer optimiser
validation val valid
training train
accuracy acc
roughness rauheit
"""
_HEADS = (
    "temperatur", "zeit", "druck", "dicke", "radius", "geschwindigkeit", "drehzahl", "dichte", "ausbeute", "festigkeit",
    "größe", "anteil", "verhältnis", "fluss", "rate", "tiefe", "menge", "konzentration", "leistung", "dauer", "temp",
    "gehalt", "höhe", "erhalt", "kosten",
)  # fmt: skip
_FILLERS = frozenset(
    {"of", "the", "der", "die", "das", "des", "in", "und", "and", "value", "wert", "rel", "relative", "set", "ist"}
    | {"soll", "no", "nr", "final", "total", "gesamt", "mean"}
)
_LINES = [line.split() for line in _SAME.strip().splitlines()]
_MEANING = {word: line[0] for line in _LINES for word in line if "+" not in word}
_PHRASES = sorted(
    ((tuple(word.split("+")), line[0]) for line in _LINES for word in line if "+" in word), key=lambda p: -len(p[0])
)
_SHORTEST, _LONG_START = 3, 5


def words_of(column: str) -> list[str]:
    """The words of a name without its unit, small, with German compounds taken apart: Reaktionszeit is two."""
    base = folded(split_unit(column)[0], case=True)
    base = re.sub(r"(?<=[a-zäöüß]{2})(?=[A-ZÄÖÜ])", " ", base)
    found: list[str] = []
    for part in re.findall(r"[^\W\d_]+\d*|\d+", base):
        word = part if len(part) == 1 else part.lower()
        found += _apart(word)
    return found


def _apart(word: str) -> list[str]:
    """A German compound in its parts: Gesamtflussrate is gesamt, fluss, rate."""
    one = word.removesuffix("n") if word.endswith("raten") else word
    head = next((h for h in _HEADS if one.endswith(h) and len(one) >= len(h) + _SHORTEST), "")
    if not head or word in _MEANING:
        return [word]
    before = one.removesuffix(head)
    parts = _apart(before)
    return [*(parts if len(parts) > 1 else [before.removesuffix("s")]), head]


def meanings_of(column: str) -> tuple[str, ...]:
    """What the words of a name mean; fillers are left out unless there is nothing else."""
    words = words_of(column)
    for phrase, meaning in _PHRASES:
        for i in range(len(words) - len(phrase) + 1):
            if tuple(words[i : i + len(phrase)]) == phrase:
                words[i : i + len(phrase)] = [meaning]
    found = [_MEANING.get(word, word) for word in words if word not in _FILLERS]
    return tuple(dict.fromkeys(found or words))


def likeness(a: Sequence[str], b: Sequence[str]) -> float:
    """How far the meanings of two names agree, 0 … 1: (Σ best of a + Σ best of b) / (|a| + |b|)."""
    if not a or not b:
        return 0.0
    best_a = [max(_alike(one, other) for other in b) for one in a]
    best_b = [max(_alike(one, other) for other in a) for one in b]
    return (sum(best_a) + sum(best_b)) / (len(a) + len(b))


def initials(a: str, b: str) -> bool:
    """Whether one of two names is the initials of the other's words: FRR of flow rate ratio."""
    first, second = words_of(a), words_of(b)
    return any(
        len(short) == 1 and len(short[0]) == len(long) > 1 and short[0] == "".join(word[0].lower() for word in long)
        for short, long in ((first, second), (second, first))
    )


def contained(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether all that the one name says the other says too: temperature, and curing temperature."""
    return all(max((_alike(one, other) for other in b), default=0.0) > 0 for one in a)


def _alike(a: str, b: str) -> float:
    """1 for the same meaning, less for words that begin alike: conc and concentration; Glukose is glucose."""
    a, b = (re.sub("[cz]", "k", word).removesuffix("e") if len(word) > 1 else word for word in (a, b))
    if a == b:
        return 1.0
    short, long = sorted((a, b), key=len)
    if len(short) >= _SHORTEST and long.startswith(short):
        return 0.9
    return 0.75 if len(short) > _LONG_START and short[:_LONG_START] == long[:_LONG_START] else 0.0
