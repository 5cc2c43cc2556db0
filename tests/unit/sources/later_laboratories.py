"""Ten more made-up laboratories, written when the words of the first twelve were known to the program."""

from __future__ import annotations

from tests.unit.sources.laboratory import (
    CODE,
    DAY,
    LOT,
    NOTE,
    NOTIZ,
    TAG,
    LabFile,
    LabSet,
    always,
    between,
    counted,
    decades,
    one_of,
    some,
    steps,
)

LATER = (
    LabSet(
        "brewing",
        {
            "mash": steps(60, 72, 1),
            "rest": steps(20, 90, 10),
            "hops": between(0.5, 6, 1),
            "boil": steps(45, 120, 15),
            "yeast": one_of("US-05", "W34/70", "S-04"),
            "pitch": steps(8, 22, 1),
            "abv": between(3, 7, 2),
            "ibu": between(10, 70, 0),
            "score": between(20, 48, 1),
            "brew": counted("#{}"),
            "day": TAG,
            "who": one_of("Tom", "Ina"),
            "note": NOTIZ,
            "malt": CODE,
        },
        "mash rest hops boil yeast pitch",
        "+score",
        (
            LabFile(
                "Sude 2022.csv",
                "Sud = brew | Maischetemperatur [°C] = mash | Rastdauer [min] = rest | Hopfengabe [g/L] = hops | "
                "Kochzeit [min] = boil | Hefe = yeast | Anstelltemperatur [°C] = pitch | Alkohol [%] = abv | "
                "Bittere [IBU] = ibu | Punkte = score | Braumeister = who",
                commas=True,
            ),
            LabFile(
                "brews.csv",
                "brew no = brew | date = day | mash temp [F] = mash in °F | mash rest (min) = rest | "
                "hops g/L = hops | boil_min = boil | yeast strain = yeast | pitch temp [F] = pitch in °F | "
                "tasting score = score",
            ),
            LabFile(
                "Bier C.xlsx",
                "Datum = day | Maische °C = mash | Rast min = rest | Hopfen (g/L) = hops | Kochen (min) = boil | "
                "Hefestamm = yeast | Anstellen °C = pitch | Malz-Charge = malt | Bewertung = score | "
                "Anmerkungen = note",
            ),
        ),
    ),
    LabSet(
        "dyeing",
        {
            "T": steps(40, 130, 5),
            "liquor": steps(5, 30, 5),
            "salt": between(5, 80, 0),
            "pH": between(4, 11, 1),
            "dye": one_of("RB19", "RR120", "DB71"),
            "t": steps(20, 120, 10),
            "ks": between(2, 24, 2),
            "fast": steps(1, 5, 0.5),
            "n": counted(),
            "day": DAY,
            "tech": one_of("MK", "OP"),
            "note": NOTE,
            "roll": LOT,
        },
        "T liquor salt pH dye t",
        "+ks",
        (
            LabFile(
                "dye trials.csv",
                "trial = n | dyebath temp (C) = T | liquor ratio = liquor | salt (g/L) = salt | pH = pH | "
                "dyestuff = dye | dwell time (min) = t | K/S = ks | wash fastness = fast | lab tech = tech",
            ),
            LabFile(
                "Färbung.csv",
                "Lfd Nr = n | Färbetemperatur °C = T | Flottenverhältnis = liquor | Salzmenge [g/L] = salt | "
                "pH-Wert = pH | Farbstoff = dye | Färbezeit [min] = t | Farbstärke K/S = ks | Rolle Nr. = roll",
                commas=True,
            ),
            LabFile(
                "dyeing_3.xlsx",
                "Date = day | Temp = T | Liquor ratio = liquor | NaCl g/L = salt | bath pH = pH | Dye = dye | "
                "Time [h] = t in h | K/S value = ks | Fastness = fast | Obs. = note",
            ),
        ),
    ),
    LabSet(
        "moulding",
        {
            "melt": steps(200, 300, 10),
            "mould": steps(20, 100, 10),
            "hold": steps(200, 900, 50),
            "inj": between(10, 120, 0),
            "cool": between(5, 40, 0),
            "grade": one_of("PA6", "PP", "POM"),
            "warp": between(0.05, 1.8, 3),
            "cycle": between(15, 60, 1),
            "shot": counted("{}", 501),
            "day": DAY,
            "who": one_of("shift A", "shift B"),
            "note": NOTE,
            "lot": LOT,
        },
        "melt mould hold inj cool grade",
        "-warp",
        (
            LabFile(
                "moulding.csv",
                "shot = shot | melt temperature [°C] = melt | mould temperature [°C] = mould | "
                "holding pressure [bar] = hold | injection speed [mm/s] = inj | cooling time [s] = cool | "
                "resin = grade | warpage [mm] = warp | cycle time [s] = cycle",
            ),
            LabFile(
                "Spritzguss.csv",
                "Schuss = shot | Massetemperatur [°C] = melt | Werkzeugtemperatur [°C] = mould | "
                "Nachdruck [bar] = hold | Einspritzgeschwindigkeit [mm/s] = inj | Kühlzeit [s] = cool | "
                "Material = grade | Verzug [mm] = warp | Schicht = who",
                commas=True,
            ),
            LabFile(
                "molding_us.xlsx",
                "warpage_mm = warp | melt_temp_F = melt in °F | mold_temp_F = mould in °F | "
                "hold_pressure_MPa = hold in MPa | inj_speed_mm_s = inj | cooling_time_s = cool | "
                "resin = grade | resin lot = lot | comments = note",
            ),
        ),
    ),
    LabSet(
        "particles",
        {
            "frr": between(1, 6, 1),
            "tfr": between(2, 20, 1),
            "lipid": between(2, 25, 1),
            "np": between(2, 9, 1),
            "buffer": one_of("citrate", "acetate", "MES"),
            "peg": between(0.5, 5, 1),
            "size": between(60, 220, 0),
            "pdi": between(0.03, 0.4, 3),
            "ee": between(40, 99, 1),
            "f": counted("LNP-{:02d}"),
            "day": DAY,
            "who": one_of("A.K.", "J.W."),
            "note": NOTE,
        },
        "frr tfr lipid np buffer peg",
        "+ee",
        (
            LabFile(
                "lnp_1.csv",
                "formulation = f | flow rate ratio = frr | total flow rate [mL/min] = tfr | "
                "lipid conc. [mM] = lipid | N/P = np | buffer = buffer | PEG-lipid [mol%] = peg | "
                "size [nm] = size | PDI = pdi | encapsulation efficiency [%] = ee",
            ),
            LabFile(
                "lnp_2.xlsx",
                "ID = f | FRR = frr | TFR (mL/min) = tfr | Lipids (mmol/L) = lipid | N/P ratio = np | "
                "Buffer = buffer | PEG lipid (mol%) = peg | Z-average (nm) = size | PDI = pdi | EE (%) = ee | "
                "Scientist = who",
            ),
            LabFile(
                "LNP Serie.csv",
                "Formulierung = f | Flussratenverhältnis = frr | Gesamtflussrate [mL/min] = tfr | "
                "Lipidkonzentration [mmol/L] = lipid | N/P-Verhältnis = np | Puffer = buffer | "
                "PEG-Lipid [mol%] = peg | Größe [nm] = size | Verkapselung [%] = ee | Datum = day",
                commas=True,
            ),
        ),
    ),
    LabSet(
        "battery",
        {
            "solids": between(48, 68, 1),
            "binder": steps(1, 4, 0.5),
            "black": between(1, 6, 1),
            "speed": steps(200, 2000, 100),
            "mix": steps(10, 120, 10),
            "temp": steps(60, 140, 10),
            "loading": between(1.5, 5.5, 2),
            "grade": one_of("PVDF 5130", "CMC/SBR", "PAA"),
            "viscosity": between(800, 6000, 0),
            "porosity": between(24, 42, 1),
            "retention": between(61, 98, 1),
            "cell": counted("CC-{:03d}"),
            "lot": CODE,
            "day": DAY,
            "note": some(0.3, "delaminated", "ok", "edge cracks"),
        },
        "solids binder black speed mix temp loading grade",
        "+retention",
        (
            LabFile(
                "electrodes_jan.csv",
                "cell = cell | lot_NMC = lot | solid content [wt%] = solids | binder [wt%] = binder | "
                "carbon black [wt%] = black | mixing speed [rpm] = speed | mixing time [min] = mix | "
                "drying temp. [°C] = temp | areal loading [mAh/cm²] = loading | binder type = grade | "
                "viscosity [mPa·s] = viscosity | porosity [%] = porosity | capacity retention [%] = retention",
            ),
            LabFile(
                "Elektroden Feb.csv",
                "Zelle = cell | Feststoffgehalt (Gew.-%) = solids | Bindergehalt (Gew.-%) = binder | "
                "Leitruß (Gew.-%) = black | Mischdrehzahl (1/min) = speed | Mischzeit (h) = mix in h | "
                "Trockentemperatur (°C) = temp | Flächenbeladung (mAh/cm²) = loading | Binder = grade | "
                "Viskosität (mPa s) = viscosity | Porosität (%) = porosity | Kapazitätserhalt (%) = retention | "
                "Bemerkung = note",
                commas=True,
                title="Elektrodenfertigung Februar",
            ),
            LabFile(
                "coin cells march.xlsx",
                "Cell ID = cell | date = day | solids wt% = solids | binder wt% = binder | CB wt% = black | "
                "mixer rpm = speed | t_mix (s) = mix in s | T_dry °C = temp | loading (mAh/cm2) = loading | "
                "binder_type = grade | porosity % = porosity | retention after 200 cycles % = retention",
            ),
        ),
    ),
    LabSet(
        "laser",
        {
            "power": steps(1, 6, 0.25),
            "speed": between(0.8, 9, 1),
            "focus": steps(-6, 2, 0.5),
            "gas": one_of("N2", "O2", "air"),
            "pressure": between(1, 20, 1),
            "gap": steps(0.4, 1.6, 0.2),
            "sheet": one_of(2, 3, 6, 8),
            "rough": between(9, 70, 1),
            "burr": between(8, 480, 0),
            "cost": between(0.4, 3.2, 2),
            "part": counted("T{:04d}", 310),
            "who": one_of("Yilmaz", "Brandt"),
            "day": TAG,
        },
        "power speed focus gas pressure gap sheet",
        "-burr",
        (
            LabFile(
                "Laserschnitt 1.csv",
                "Teil-Nr. = part | Bediener = who | Laserleistung [kW] = power | "
                "Schnittgeschwindigkeit [m/min] = speed | "
                "Fokuslage [mm] = focus | Schneidgas = gas | Gasdruck [bar] = pressure | Düsenabstand [mm] = gap | "
                "Blechdicke [mm] = sheet | Rz [µm] = rough | Kosten [€/m] = cost | Grathöhe [µm] = burr",
                commas=True,
            ),
            LabFile(
                "cut_trials.csv",
                "part no = part | laser power / kW = power | cutting speed / m/min = speed | "
                "focus position / mm = focus | "
                "assist gas = gas | gas pressure / MPa = pressure in MPa | stand-off / mm = gap | "
                "sheet thickness / mm = sheet | cost per m = cost | roughness Rz / µm = rough | "
                "burr height / µm = burr",
            ),
            LabFile(
                "Versuche Halle 3.xlsx",
                "Datum = day | P in kW = power | v in m/min = speed | Fokus in mm = focus | Gas = gas | "
                "p in bar = pressure | Abstand Düse in mm = gap | Dicke in mm = sheet | Grat in µm = burr | "
                "Rauheit Rz in µm = rough",
            ),
        ),
    ),
    LabSet(
        "crystals",
        {
            "cool": decades(0.05, 2),
            "start": steps(50, 80, 5),
            "end": steps(0, 20, 5),
            "seed": between(0, 3, 1),
            "rpm": steps(100, 500, 50),
            "solvent": one_of("EtOH", "iPrOH", "MeCN", "EtOAc"),
            "anti": between(0, 60, 0),
            "purity": between(96, 99.9, 2),
            "d50": between(20, 210, 0),
            "mass": between(2, 9, 2),
            "yield": between(41, 94, 1),
            "run": counted("KR{}"),
            "chem": one_of("LM", "TB", "AO"),
            "note": NOTIZ,
        },
        "cool start end seed rpm solvent anti",
        "+yield",
        (
            LabFile(
                "kristallisation_1.csv",
                "Versuch = run | Reinheit (HPLC) [%] = purity | Ausbeute [%] = yield | d50 [µm] = d50 | "
                "Kühlrate [K/min] = cool | Starttemperatur [°C] = start | Endtemperatur [°C] = end | "
                "Impfkristalle [%] = seed | Rührerdrehzahl [rpm] = rpm | Lösungsmittel = solvent | "
                "Antisolvent [Vol%] = anti | Notiz = note",
                commas=True,
            ),
            LabFile(
                "cryst 2.csv",
                "Exp = run | Solvent = solvent | Cooling rate (°C/min) = cool | T start (°C) = start | "
                "T end (°C) = end | "
                "Seeds (%) = seed | Stirring (rpm) = rpm | Antisolvent (vol%) = anti | purity HPLC (area%) = purity | "
                "Mass isolated (g) = mass | D50 (µm) = d50 | Yield (%) = yield | Chemist = chem",
            ),
            LabFile(
                "cryst_3.xlsx",
                "run = run | solvent = solvent | cooling_rate_K_min = cool | T_start_C = start | T_end_C = end | "
                "seed_pct = seed | stir_rpm = rpm | antisolvent_volpct = anti | purity_pct = purity | "
                "particle_size_um = d50 | isolated_yield_pct = yield | chemist = chem",
            ),
        ),
    ),
    LabSet(
        "concrete",
        {
            "cement": steps(220, 480, 10),
            "water": between(0.32, 0.7, 2),
            "ash": steps(0, 140, 10),
            "plast": between(0, 2.5, 1),
            "sand": steps(500, 900, 10),
            "type": one_of("CEM I 42.5", "CEM II/A-LL", "CEM III/B"),
            "cure": one_of("water", "film", "air"),
            "slump": steps(20, 240, 10),
            "density": between(2180, 2460, 0),
            "early": between(8, 35, 1),
            "strength": between(18, 78, 1),
            "price": between(70, 160, 0),
            "cube": counted(first=1201),
            "lab": one_of("Halle", "Mobil"),
            "day": TAG,
        },
        "cement water ash plast sand type cure",
        "+strength",
        (
            LabFile(
                "Betonrezepte.csv",
                "Würfel Nr. = cube | Datum = day | Zementart = type | Zement [kg/m³] = cement | w/z = water | "
                "Flugasche [kg/m³] = ash | Fließmittel [% v.z.] = plast | Sand [kg/m³] = sand | "
                "Nachbehandlung = cure | Ausbreitmaß [mm] = slump | Rohdichte [kg/m³] = density | "
                "Kosten [€/m³] = price | Druckfestigkeit 28d [MPa] = strength | Labor = lab",
                commas=True,
            ),
            LabFile(
                "mixes.csv",
                "cube = cube | cement type = type | cement (kg/m3) = cement | w/c = water | fly ash (kg/m3) = ash | "
                "superplasticizer (%) = plast | sand (kg/m3) = sand | curing = cure | slump (mm) = slump | "
                "compressive strength 7d (MPa) = early | compressive strength 28d (MPa) = strength",
            ),
            LabFile(
                "mix design 2024.xlsx",
                "ID = cube | Cement_type = type | Cement_kg_m3 = cement | w/c ratio = water | Fly_ash_kg_m3 = ash | "
                "SP_percent = plast | Sand_kg_m3 = sand | Curing = cure | Cost_EUR_m3 = price | Slump_mm = slump | "
                "fc_28d_MPa = strength",
                title="mix design",
            ),
        ),
    ),
    LabSet(
        "drilling",
        {
            "vc": between(40, 180, 0),
            "feed": steps(0.05, 0.3, 0.05),
            "dia": one_of(4, 6, 8.5, 10),
            "coolant": one_of("MQL", "emulsion", "dry"),
            "coating": one_of("TiN", "TiAlN", "uncoated"),
            "angle": steps(118, 140, 2),
            "thrust": between(210, 1900, 0),
            "torque": between(0.8, 14, 2),
            "rz": between(4, 40, 1),
            "wear": between(20, 310, 0),
            "hole": counted(first=1),
            "mat": always("Ti-6Al-4V"),
            "note": some(0.3, "chatter", "BUE"),
            "day": TAG,
        },
        "vc feed dia coolant coating angle",
        "-wear",
        (
            LabFile(
                "drill_a.csv",
                "hole # = hole | material = mat | Vc m/min = vc | feed mm/rev = feed | drill dia. (mm) = dia | "
                "coolant = coolant | coating = coating | point angle (°) = angle | thrust force [N] = thrust | "
                "torque [Nm] = torque | flank wear [µm] = wear | remarks = note",
            ),
            LabFile(
                "Bohrversuche.csv",
                "Bohrung = hole | Schnittgeschw. [m/min] = vc | Vorschub [mm/U] = feed | Durchmesser [mm] = dia | "
                "Kühlung = coolant | Beschichtung = coating | Spitzenwinkel [°] = angle | Vorschubkraft [N] = thrust | "
                "Drehmoment [Nm] = torque | Rz [µm] = rz | Verschleiß VB [µm] = wear | Datum = day",
                commas=True,
            ),
            LabFile(
                "drill_series_3.xlsx",
                "hole = hole | cutting_speed_m_min = vc | feed_mm_rev = feed | diameter_mm = dia | cooling = coolant | "
                "tool_coating = coating | point_angle_deg = angle | Fz_N = thrust | wear_um = wear",
                title="Ti drilling 2024",
            ),
        ),
    ),
    LabSet(
        "culture",
        {
            "glc": between(2, 12, 1),
            "gln": between(0.5, 8, 1),
            "seed": between(0.2, 1.5, 2),
            "temp": steps(31, 37, 0.5),
            "ph": between(6.7, 7.3, 2),
            "do": steps(20, 60, 10),
            "feed": one_of("daily", "continuous", "bolus d3"),
            "lac": between(0.3, 4.4, 2),
            "via": between(61, 98, 1),
            "vcd": between(4, 24, 1),
            "titer": between(0.4, 5.2, 2),
            "reactor": one_of("A1", "A2", "B1", "B2"),
            "batch": CODE,
            "who": one_of("mh", "so"),
            "day": DAY,
        },
        "glc gln seed temp ph do feed",
        "+titer",
        (
            LabFile(
                "CHO_1.csv",
                "batch = batch | reactor no = reactor | glucose [g/L] = glc | glutamine [mM] = gln | "
                "seeding density [1e6/mL] = seed | temp [°C] = temp | pH = ph | DO [%] = do | feeding = feed | "
                "lactate [g/L] = lac | viability [%] = via | VCD [1e6/mL] = vcd | mAb titer [g/L] = titer",
            ),
            LabFile(
                "CHO Lauf 2.csv",
                "Charge = batch | Glukose [g/L] = glc | Glutamin [mmol/L] = gln | Animpfdichte [1e6/mL] = seed | "
                "Temperatur [°C] = temp | pH-Wert = ph | pO2 [%] = do | Fütterung = feed | Viabilität [%] = via | "
                "Lebendzellzahl [1e6/mL] = vcd | Produkttiter [mg/L] = titer in mg/L | Kürzel = who",
                commas=True,
            ),
            LabFile(
                "cho_run_3.xlsx",
                "date = day | batch ID = batch | Glc g/L = glc | Gln mM = gln | seed density 1e6/mL = seed | "
                "T °C = temp | "
                "pH = ph | DO % = do | feed = feed | lactate g/L = lac | titer g/L = titer",
            ),
        ),
    ),
)
