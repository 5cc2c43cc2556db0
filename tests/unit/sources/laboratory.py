"""Twelve made-up laboratories with three files each, and what every column of them really is.

They were written before the program that proposes it. A header is followed by what it means, and by the unit if that is
not the quantity's first one. Names are English and German, files are CSV (also with decimal commas) and .xlsx.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from openpyxl import Workbook

Cell = str | float
Maker = Callable[[Random, int], Cell]
SETTING, HIGH, LOW, OTHER = "setting", "maximise", "minimise", "left out"


def steps(low: float, high: float, step: float) -> Maker:
    """A number on a grid."""
    places = round((high - low) / step)
    return lambda r, i: round(low + step * r.randint(0, places), 6)


def between(low: float, high: float, digits: int) -> Maker:
    """Any number, with so many decimals."""
    return lambda r, i: round(r.uniform(low, high), digits)


def decades(low: float, high: float) -> Maker:
    """A number with two digits, small ones as often as large ones."""
    return lambda r, i: float(f"{low * (high / low) ** r.random():.1e}")


def one_of(*texts: Cell) -> Maker:
    """A category."""
    return lambda r, i: texts[r.randrange(len(texts))]


def always(text: Cell) -> Maker:
    """The same in every row."""
    return lambda r, i: text


def counted(form: str = "{}", first: int = 1) -> Maker:
    """A number that counts the rows."""
    return lambda r, i: form.format(first + i) if form != "{}" else first + i


def some(share: float, *texts: str) -> Maker:
    """A remark in some of the rows."""
    return lambda r, i: texts[r.randrange(len(texts))] if r.random() < share else ""


DAY: Maker = lambda r, i: f"2023-{1 + i % 9:02d}-{1 + (7 * i) % 28:02d}"  # noqa: E731
TAG: Maker = lambda r, i: f"{1 + (7 * i) % 28:02d}.{1 + i % 9:02d}.2022"  # noqa: E731
LOT: Maker = lambda r, i: f"12.{301 + i // 4}"  # noqa: E731
CODE: Maker = lambda r, i: f"B{r.randrange(20, 24)}-{r.randrange(100, 999)}"  # noqa: E731
NOTE = some(0.5, "ok", "stirred badly", "repeat", "colour change after 10 min", "see page 12")
NOTIZ = some(0.4, "ok", "trüb", "Rührer ausgefallen", "wiederholen!")

IN_UNIT: dict[str, Callable[[float], float]] = {
    "K": lambda c: c + 273.15,
    "°F": lambda c: c * 9 / 5 + 32,
    "h": lambda minutes: minutes / 60,
    "s": lambda minutes: minutes * 60,
    "mmol/L": lambda molar: molar * 1000,
    "MPa": lambda bar: bar / 10,
    "kPa": lambda bar: bar * 100,
    "µm": lambda mm: mm * 1000,
    "mL": lambda litre: litre * 1000,
    "Hz": lambda rpm: rpm / 60,
    "mA": lambda ampere: ampere * 1000,
    "mg/L": lambda gram: gram * 1000,
}


@dataclass(frozen=True)
class LabFile:
    """A file: its name, and its columns 'header = what it is' or 'header = what it is in unit', with bars between."""

    name: str
    told: str
    commas: bool = False  # semicolons and decimal commas
    title: str = ""

    @property
    def columns(self) -> list[tuple[str, str, str]]:
        """The header, what it is, and the unit, "" if it is the quantity's first one."""
        pairs = [column.rsplit(" = ", 1) for column in self.told.split(" | ")]
        return [(header, *told.partition(" in ")[::2]) for header, told in pairs]


@dataclass(frozen=True)
class LabSet:
    """Three files, how the cells of each quantity come about, and what the quantities are for."""

    name: str
    makers: dict[str, Maker]
    settings: str
    goal: str  # with + where it is to be high, - where it is to be low
    files: tuple[LabFile, ...]

    def role(self, quantity: str) -> str:
        """What a quantity is for; what is not said is left out."""
        if quantity == self.goal[1:]:
            return HIGH if self.goal[0] == "+" else LOW
        return SETTING if quantity in self.settings.split() else OTHER

    def write(self, folder: Path) -> list[Path]:
        """The three files."""
        r = Random(self.name)
        return [_write(folder, own, self.makers, r) for own in self.files]


def _write(folder: Path, file: LabFile, makers: dict[str, Maker], r: Random) -> Path:
    rows = []
    for i in range(r.randint(12, 18)):
        values = {quantity: make(r, i) for quantity, make in makers.items()}
        rows.append([_in(values[quantity], unit) for _, quantity, unit in file.columns])
    header = [column[0] for column in file.columns]
    path = folder / file.name
    if path.suffix == ".xlsx":
        book = Workbook()
        assert book.active is not None
        for record in ([[file.title]] if file.title else []) + [header, *rows]:
            book.active.append(record)
        book.save(path)
        return path
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";" if file.commas else ",")
    for record in [[file.title], []] if file.title else []:
        writer.writerow(record)
    writer.writerows([header, *([_text(cell, file.commas) for cell in row] for row in rows)])
    path.write_text(out.getvalue(), encoding="utf-8")
    return path


def _in(value: Cell, unit: str) -> Cell:
    return float(f"{IN_UNIT[unit](float(value)):.6g}") if unit else value


def _text(cell: Cell, commas: bool) -> str:
    return cell if isinstance(cell, str) else f"{cell:.10g}".replace(".", ",") if commas else f"{cell:.10g}"


SETS = (
    LabSet(
        "suzuki",
        {
            "T": steps(40, 120, 5),
            "t": steps(30, 720, 30),
            "c": decades(0.02, 1.0),
            "solvent": one_of("DMF", "THF", "dioxane"),
            "base": one_of("K3PO4", "Cs2CO3", "KF"),
            "load": between(0.5, 5, 1),
            "yield": between(3, 96, 1),
            "conv": between(10, 99, 1),
            "run": counted(),
            "who": one_of("AB", "CD", "EF"),
            "day": DAY,
            "note": NOTE,
            "lot": LOT,
        },
        "T t c solvent base load",
        "+yield",
        (
            LabFile(
                "2021 suzuki.csv",
                "run = run | Temperature [°C] = T | Time [h] = t in h | Concentration [mol/L] = c | "
                "Solvent = solvent | Base = base | Cat. loading [mol%] = load | Yield [%] = yield | "
                "Conversion [%] = conv | Operator = who | Date = day | Comment = note",
            ),
            LabFile(
                "2022_export.csv",
                "No. = run | T / °C = T | t / min = t | concentration (mmol/L) = c in mmol/L | "
                "solvent = solvent | base = base | catalyst loading (mol%) = load | yield (%) = yield | "
                "Charge = lot",
            ),
            LabFile(
                "suzuki c.xlsx",
                "yield_percent = yield | temperature_C = T | reaction_time_min = t | concentration_M = c | "
                "solvent = solvent | base = base | cat_loading_molpct = load | conv_percent = conv | "
                "notes = note",
                title="Series C, January",
            ),
        ),
    ),
    LabSet(
        "amid",
        {
            "T": steps(20, 110, 10),
            "t": steps(15, 240, 15),
            "c": decades(0.01, 0.8),
            "solvent": one_of("DMF", "MeCN", "Toluol", "THF"),
            "eq": between(1, 3, 2),
            "yield": between(2, 97, 1),
            "purity": between(80, 99, 1),
            "nr": counted(),
            "who": one_of("Kim", "Ole", "Ayşe"),
            "day": TAG,
            "note": NOTIZ,
            "lot": LOT,
        },
        "T t c solvent eq",
        "+yield",
        (
            LabFile(
                "Amid A.csv",
                "Nr = nr | Datum = day | Temperatur [°C] = T | Zeit [min] = t | Konz. [mol/L] = c | "
                "Lösungsmittel = solvent | Äquivalente = eq | Ausbeute [%] = yield | Reinheit [%] = purity | "
                "Bearbeiter = who | Bemerkung = note",
                commas=True,
                title="Versuchsreihe Amid A",
            ),
            LabFile(
                "Amid B.xlsx",
                "Versuch = nr | Temp. °C = T | Dauer in h = t in h | Konzentration mmol/L = c in mmol/L | "
                "LM = solvent | Äq. = eq | Ausbeute in % = yield | Chargennummer = lot | Kürzel = who",
            ),
            LabFile(
                "amide_c.csv",
                "exp = nr | temperature [K] = T in K | time [min] = t | conc [M] = c | solvent = solvent | "
                "equiv = eq | yield [%] = yield | purity [%] = purity | operator = who",
            ),
        ),
    ),
    LabSet(
        "training",
        {
            "lr": decades(1e-5, 0.1),
            "bs": one_of(16, 32, 64, 128),
            "drop": between(0, 0.6, 2),
            "wd": decades(1e-6, 1e-2),
            "opt": one_of("adam", "sgd", "lamb"),
            "layers": steps(2, 8, 1),
            "val": between(0.2, 2.5, 4),
            "train": between(0.05, 2.0, 4),
            "acc": between(0.4, 0.95, 3),
            "seconds": between(100, 4000, 0),
            "id": counted("run-{:03d}"),
            "seed": counted("{}", 100),
            "note": NOTE,
        },
        "lr bs drop wd opt layers",
        "-val",
        (
            LabFile(
                "sweep1.csv",
                "run_id = id | learning_rate = lr | batch_size = bs | dropout = drop | weight_decay = wd | "
                "optimizer = opt | n_layers = layers | train_loss = train | val_loss = val | val_acc = acc | "
                "runtime_s = seconds",
            ),
            LabFile(
                "sweep2.csv",
                "validation loss = val | lr = lr | batch size = bs | dropout rate = drop | weight decay = wd | "
                "optimiser = opt | layers = layers | seed = seed",
            ),
            LabFile(
                "sweep3.xlsx",
                "id = id | Learning Rate = lr | Batch Size = bs | Dropout = drop | wd = wd | Optimizer = opt | "
                "Layers = layers | Val Loss = val | Train Loss = train | Comments = note",
            ),
        ),
    ),
    LabSet(
        "turning",
        {
            "vc": steps(100, 300, 20),
            "f": between(0.05, 0.4, 2),
            "ap": between(0.2, 2.5, 1),
            "r": one_of(0.4, 0.8, 1.2, 1.6),
            "cool": one_of("dry", "flood", "MQL"),
            "Ra": between(0.4, 6, 2),
            "wear": between(0.05, 0.4, 3),
            "nr": counted(),
            "who": one_of("Meier", "Schulz"),
            "day": TAG,
            "note": NOTIZ,
            "lot": LOT,
        },
        "vc f ap r cool",
        "-Ra",
        (
            LabFile(
                "Drehen 2021.csv",
                "Nr. = nr | Schnittgeschwindigkeit [m/min] = vc | Vorschub [mm/U] = f | Schnitttiefe [mm] = ap | "
                "Eckenradius [mm] = r | Kühlung = cool | Ra [µm] = Ra | Verschleiß [mm] = wear | "
                "Bediener = who | Charge = lot",
                commas=True,
            ),
            LabFile(
                "turning_2022.csv",
                "surface roughness Ra [um] = Ra | cutting speed [m/min] = vc | feed [mm/rev] = f | "
                "depth of cut [mm] = ap | nose radius [mm] = r | cooling = cool | tool wear [mm] = wear | "
                "date = day",
            ),
            LabFile(
                "Drehversuche.xlsx",
                "vc = vc | f = f | ap = ap | Radius = r | Kühlung = cool | Ra = Ra | Bemerkungen = note",
            ),
        ),
    ),
    LabSet(
        "fermentation",
        {
            "T": steps(25, 40, 1),
            "pH": between(5.5, 7.5, 1),
            "rpm": steps(200, 1000, 50),
            "feed": between(0.5, 8, 1),
            "medium": one_of("LB", "TB", "M9"),
            "iptg": decades(0.01, 2),
            "od": between(5, 80, 1),
            "titer": between(0.1, 7.5, 2),
            "id": counted("F{:03d}"),
            "who": one_of("LM", "PK", "SR"),
            "day": DAY,
            "note": NOTE,
            "lot": CODE,
        },
        "T pH rpm feed medium iptg",
        "+titer",
        (
            LabFile(
                "fed-batch 1.xlsx",
                "Run ID = id | Temperature (°C) = T | pH = pH | Stirrer speed (rpm) = rpm | "
                "Feed rate (mL/h) = feed | Medium = medium | IPTG (mM) = iptg | OD600 = od | "
                "Titer (g/L) = titer | Technician = who",
            ),
            LabFile(
                "fed-batch 2.csv",
                "date = day | temp_C = T | ph = pH | agitation_rpm = rpm | feed_rate_mL_h = feed | "
                "medium = medium | iptg_mM = iptg | final_od600 = od | product titer [g/L] = titer | lot = lot",
            ),
            LabFile(
                "Fermentation 3.csv",
                "Ansatz = id | Temperatur in °C = T | pH-Wert = pH | Rührerdrehzahl [1/min] = rpm | "
                "Feedrate [mL/h] = feed | Medium = medium | IPTG [mmol/L] = iptg | Titer [g/L] = titer | "
                "Notiz = note",
                commas=True,
            ),
        ),
    ),
    LabSet(
        "coating",
        {
            "T": steps(120, 220, 10),
            "t": steps(5, 60, 5),
            "thick": between(20, 120, 0),
            "hardener": between(2, 15, 1),
            "pigment": one_of("TiO2", "Fe2O3", "none"),
            "adhesion": between(1, 12, 1),
            "gloss": between(20, 95, 0),
            "nr": counted("P{:02d}"),
            "day": TAG,
            "who": one_of("hb", "tw"),
            "note": NOTIZ,
            "rh": between(30, 60, 0),
        },
        "T t thick hardener pigment rh",
        "+adhesion",
        (
            LabFile(
                "Lack 1.csv",
                "Probe = nr | Härtungstemperatur [°C] = T | Härtungszeit [min] = t | Schichtdicke [µm] = thick | "
                "Härteranteil [%] = hardener | Pigment = pigment | Haftfestigkeit [MPa] = adhesion | "
                "Glanz = gloss",
                commas=True,
            ),
            LabFile(
                "Lack 2.xlsx",
                "Probennummer = nr | Datum = day | Temp [°C] = T | Zeit [min] = t | Dicke [µm] = thick | "
                "Härter [%] = hardener | Pigment = pigment | Haftung [MPa] = adhesion | Mitarbeiter = who | "
                "Kommentar = note",
            ),
            LabFile(
                "coatings.csv",
                "sample = nr | curing temperature (°C) = T | curing time (min) = t | "
                "film thickness (µm) = thick | hardener (%) = hardener | pigment = pigment | "
                "rel. humidity (%) = rh | adhesion strength (MPa) = adhesion",
            ),
        ),
    ),
    LabSet(
        "printing",
        {
            "nozzle": steps(190, 260, 5),
            "bed": steps(40, 110, 10),
            "speed": steps(20, 120, 10),
            "layer": one_of(0.1, 0.15, 0.2, 0.3),
            "infill": steps(10, 100, 10),
            "material": one_of("PLA", "PETG", "ABS"),
            "strength": between(12, 60, 1),
            "elong": between(1, 9, 2),
            "id": counted("S-{}"),
            "who": one_of("anna", "ben"),
            "day": DAY,
            "note": NOTE,
            "spool": CODE,
            "fan": always(100),
        },
        "nozzle bed speed layer infill material",
        "+strength",
        (
            LabFile(
                "prints_jan.csv",
                "specimen = id | nozzle temperature [°C] = nozzle | bed temperature [°C] = bed | "
                "print speed [mm/s] = speed | layer height [mm] = layer | infill [%] = infill | "
                "material = material | tensile strength [MPa] = strength | elongation [%] = elong | "
                "printed by = who",
            ),
            LabFile(
                "prints_feb.csv",
                "tensile_strength_MPa = strength | nozzle_temp_C = nozzle | bed_temp_C = bed | "
                "speed_mm_s = speed | layer_height_um = layer in µm | infill_pct = infill | fan_pct = fan | "
                "material = material | spool = spool",
            ),
            LabFile(
                "prints march.xlsx",
                "Sample ID = id | Date = day | Nozzle T (°C) = nozzle | Bed T (°C) = bed | "
                "Print speed (mm/s) = speed | Layer (mm) = layer | Infill density (%) = infill | "
                "Material = material | UTS (MPa) = strength | Remarks = note",
            ),
        ),
    ),
    LabSet(
        "flow",
        {
            "tau": between(0.5, 20, 1),
            "T": steps(40, 200, 10),
            "p": steps(2, 20, 1),
            "ratio": between(1, 4, 2),
            "cat": one_of("Pd/C", "Ni", "Ru"),
            "conv": between(5, 99, 1),
            "sel": between(50, 99, 1),
            "n": counted(),
            "day": DAY,
            "who": one_of("JS", "MT"),
            "note": NOTE,
            "lot": CODE,
        },
        "tau T p ratio cat",
        "+conv",
        (
            LabFile(
                "flow_a.csv",
                "entry = n | residence time [min] = tau | temperature [°C] = T | back pressure [bar] = p | "
                "H2 ratio = ratio | catalyst = cat | conversion [%] = conv | selectivity [%] = sel",
            ),
            LabFile(
                "flow_b.xlsx",
                "Exp. No. = n | Residence time (s) = tau in s | Temp (K) = T in K | Pressure (MPa) = p in MPa | "
                "H2/substrate ratio = ratio | Catalyst = cat | Conv. (%) = conv | Performed by = who | "
                "Batch no. = lot",
            ),
            LabFile(
                "Durchfluss.csv",
                "Nr. = n | Verweilzeit [min] = tau | Temperatur [°C] = T | Druck [bar] = p | "
                "H2-Verhältnis = ratio | Katalysator = cat | Umsatz [%] = conv | Selektivität [%] = sel | "
                "Anmerkung = note",
                commas=True,
            ),
        ),
    ),
    LabSet(
        "extraction",
        {
            "p": steps(100, 350, 25),
            "T": steps(35, 80, 5),
            "flow": between(0.5, 4, 1),
            "co": between(0, 15, 1),
            "size": one_of(0.25, 0.5, 1.0),
            "t": steps(30, 180, 30),
            "yield": between(1, 14, 2),
            "cost": between(3, 40, 2),
            "nr": counted(),
            "day": TAG,
            "who": one_of("R.", "K."),
            "note": NOTIZ,
            "lot": LOT,
        },
        "p T flow co size t",
        "+yield",
        (
            LabFile(
                "SFE Hopfen.csv",
                "Nr = nr | Druck [bar] = p | Temperatur [°C] = T | CO2-Fluss [kg/h] = flow | Ethanol [%] = co | "
                "Partikelgröße [mm] = size | Extraktionszeit [min] = t | Ausbeute [g/100g] = yield | "
                "Kosten [€] = cost | Rohstoff-Charge = lot",
                commas=True,
            ),
            LabFile(
                "SFE hops.csv",
                "run = nr | pressure [MPa] = p in MPa | temperature [°C] = T | CO2 flow [kg/h] = flow | "
                "ethanol [%] = co | particle size [mm] = size | extraction time [h] = t in h | "
                "extraction yield [g/100g] = yield | analyst = who",
            ),
            LabFile(
                "SFE_2020.xlsx",
                "Datum = day | p (bar) = p | T (°C) = T | Fluss CO2 (kg/h) = flow | Cosolvens Ethanol (%) = co | "
                "Partikel (mm) = size | t (min) = t | Ausbeute (g/100g) = yield | Kommentare = note",
                title="SFE 2020",
            ),
        ),
    ),
    LabSet(
        "plating",
        {
            "j": between(0.5, 8, 1),
            "T": steps(20, 70, 5),
            "pH": between(2, 5, 1),
            "t": steps(5, 60, 5),
            "additive": decades(0.01, 1.0),
            "anode": one_of("Ni", "Pt"),
            "eff": between(60, 99, 1),
            "rough": between(0.1, 3, 2),
            "i": counted(),
            "day": DAY,
            "who": one_of("Z.", "Y.", "X."),
            "note": NOTE,
            "bath": CODE,
        },
        "j T pH t additive anode",
        "+eff",
        (
            LabFile(
                "plating1.csv",
                "# = i | current density [A/dm2] = j | bath temperature [°C] = T | pH = pH | "
                "plating time [min] = t | saccharin [g/L] = additive | anode = anode | "
                "current efficiency [%] = eff | roughness [µm] = rough | who = who",
            ),
            LabFile(
                "plating2.csv",
                "Efficiency (%) = eff | Current density (A/dm2) = j | Temp. (°C) = T | pH value = pH | "
                "Time (s) = t in s | Saccharin (g/L) = additive | Anode = anode | Bath lot = bath | Date = day",
            ),
            LabFile(
                "Galvanik.xlsx",
                "Lfd. Nr. = i | Stromdichte [A/dm2] = j | Badtemperatur [°C] = T | pH-Wert = pH | "
                "Zeit [min] = t | Saccharin [g/L] = additive | Anode = anode | Stromausbeute [%] = eff | "
                "Bemerkung = note",
            ),
        ),
    ),
    LabSet(
        "steel",
        {
            "Ta": steps(820, 1000, 20),
            "ta": steps(10, 90, 10),
            "Tt": steps(150, 600, 50),
            "tt": steps(30, 180, 30),
            "quench": one_of("oil", "water", "gas"),
            "hv": between(250, 780, 0),
            "dist": between(0.01, 0.4, 3),
            "nr": counted("{}", 17),
            "day": TAG,
            "who": one_of("Wolf", "Lutz"),
            "note": NOTIZ,
            "heat": LOT,
        },
        "Ta ta Tt tt quench",
        "+hv",
        (
            LabFile(
                "Vergüten A.csv",
                "Versuch-Nr. = nr | Austenitisierungstemperatur [°C] = Ta | Austenitisierungszeit [min] = ta | "
                "Anlasstemperatur [°C] = Tt | Anlasszeit [min] = tt | Abschreckmittel = quench | "
                "Härte [HV] = hv | Verzug [mm] = dist | Schmelze = heat",
                commas=True,
            ),
            LabFile(
                "heat treatment B.csv",
                "austenitizing temperature [°C] = Ta | austenitizing time [min] = ta | "
                "tempering temperature [°C] = Tt | tempering time [min] = tt | quench medium = quench | "
                "hardness [HV] = hv | distortion [mm] = dist | remarks = note",
            ),
            LabFile(
                "heat C.xlsx",
                "No = nr | Date = day | Austenitizing T / K = Ta in K | Austenitizing t / h = ta in h | "
                "Tempering T / K = Tt in K | Tempering t / h = tt in h | Quenchant = quench | HV = hv | "
                "Operator = who",
            ),
        ),
    ),
    LabSet(
        "solar",
        {
            "spin": steps(1000, 6000, 500),
            "Ta": steps(80, 160, 10),
            "ta": steps(5, 60, 5),
            "conc": between(0.6, 1.6, 2),
            "solvent": one_of("DMF", "DMSO", "GBL"),
            "anti": one_of("toluene", "CB", "EA"),
            "pce": between(4, 21, 2),
            "voc": between(0.8, 1.2, 3),
            "jsc": between(12, 24, 1),
            "ff": between(45, 82, 1),
            "dev": counted("D{:03d}"),
            "day": DAY,
            "who": one_of("ml", "gk"),
            "note": NOTE,
            "batch": counted("{}", 2201),
            "hum": between(10, 45, 0),
        },
        "spin Ta ta conc solvent anti hum",
        "+pce",
        (
            LabFile(
                "psc batch 22.csv",
                "device = dev | spin speed [rpm] = spin | anneal temperature [°C] = Ta | "
                "anneal time [min] = ta | precursor conc. [mol/L] = conc | solvent = solvent | "
                "antisolvent = anti | PCE [%] = pce | Voc [V] = voc | Jsc [mA/cm2] = jsc | FF [%] = ff | "
                "batch = batch",
            ),
            LabFile(
                "psc_23.xlsx",
                "PCE (%) = pce | Spin speed (rpm) = spin | Annealing temp. (°C) = Ta | "
                "Annealing time (min) = ta | Precursor concentration (M) = conc | Solvent = solvent | "
                "Anti-solvent = anti | Humidity (%) = hum | Made by = who",
            ),
            LabFile(
                "Perowskit 24.csv",
                "Nr. = dev | Datum = day | Drehzahl [1/min] = spin | Ausheiztemperatur [°C] = Ta | "
                "Ausheizzeit [min] = ta | Konzentration [mol/L] = conc | Lösungsmittel = solvent | "
                "Antisolvent = anti | Wirkungsgrad [%] = pce | Notizen = note",
                commas=True,
            ),
        ),
    ),
)

# Written after the program, with other words, and never looked at while it was changed
