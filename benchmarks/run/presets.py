"""The paper's experiments as presets: what ``python -m benchmarks reproduce`` runs.

    preset       in the paper                                   problems
    fig2         figure "single-source benchmarks"              Branin, Hartmann-3, Hartmann-6; 20 points per input
    fig3         figure "runtime, source data, noise", b and c  Hartmann-3, number of source points and noise varied
    fig4         figure "multi-source benchmarks"               Hartmann-6 (3 sources), Alpine (5), SVM table (10)
    one-dim      appendix, one-dimensional functions            Forrester, Alpine with one source
    ablation     appendix, ablation studies                     Hartmann-6, source points × noise
    runtime      appendix, time per BO step                     Hartmann-6, number of source points varied
    order        nowhere: what the order of the sources does    Alpine (5 sources), one way and the other
    gc3p         Salinas et al. 2020, XGBoost                   9 targets in turn, all rows of 8 sources
    default-settings  nowhere: headstart's own training         those of fig2 and fig4
    compare      nowhere: AUTO, single models and baselines     functions: families, problems.laboratory, .plateaus;
                                                                all tables, LCBench also with 30 sources × 200 rows
    adversarial  nowhere: sources that mislead                  families and five tables × problems.adversarial
    scratch      nowhere: methods without sources               the families, and those of problems.laboratory
    scarce       nowhere: do joint models pay with few data     families: 3 and 5 points per input; five tables: 15
    large        nowhere: a source of many rows                 Hartmann-6, 2000 source points
    rivals       nowhere: AUTO against others' libraries        six tables with one source of 40 rows: a fit of theirs
                                                                takes a second, with three sources ten

Settings of the last six are headstart's defaults with LogEI; shared tables that are not there are left out. Those of
the others are the paper's (``Settings()``): maximum likelihood from ten softplus starts, lower confidence bound with
β = 3, no initial samples. The paper gives HGP and WSGP three starts and twenty steps on the SVM table "for complexity
reasons"; so does fig4 there, and MTKGP with them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.methods.method import Settings
from benchmarks.problems.adversarial import Scenario
from benchmarks.problems.laboratory import LABORATORY
from benchmarks.problems.shared_tables import OWN, SHARED, is_here
from benchmarks.run.experiment import BenchExperiment, ProblemSpec
from headstart.errors import InputError

logger = logging.getLogger(__name__)

CHEAP = ("random", "gpbo", "mhgp", "shgp", "bhgp", "rgpe")
JOINT = ("hgp", "wsgp", "mtkgp")
_RUNS = {"hgp": 50, "wsgp": 50, "mtkgp": 50, "gc3p": 50, "mtgp": 10}
PAPER_RUNS = {"fig2": 50, "fig3": 50, "fig4": 50, "one-dim": 200, "runtime": 7, "ablation": 50}
_PAPER_SVM_RUNS = 500
_SHORT = Settings(restarts=3, max_iterations=20)

_HARTMANN3_POINTS = tuple(
    ProblemSpec(family="hartmann3", points=points, noise=0.01) for points in (10, 20, 40, 60, 120, 250)
)
_HARTMANN3_NOISE = tuple(
    ProblemSpec(family="hartmann3", points=60, noise=noise) for noise in (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
)

_DEFAULT = Settings(paper=False, acquisition="log_ei")
_INPUTS = {"forrester": 1, "alpine": 1, "branin": 2, "hartmann3": 3, "hartmann6": 6}
_FAMILIES = tuple(ProblemSpec(family=name) for name in _INPUTS)
_SEVERAL = (
    ProblemSpec(family="hartmann6", sources=3, points=60),
    ProblemSpec(family="alpine", sources=5, points=20),
)
_PLATEAUS = tuple(
    ProblemSpec(family=f"flat_{name}", sources=sources, points=points)
    for name, sources, points in (
        ("success", 3, 39),
        ("needle", 4, 40),
        ("accuracy", 2, 40),
        ("yield", 3, 50),
        ("reward", 3, 60),
    )
)
_LABORATORY = tuple(ProblemSpec(family=name) for name in LABORATORY)
_FUNCTIONS = (*_FAMILIES, *_SEVERAL, *_LABORATORY, *_PLATEAUS)
_TABLES = tuple(ProblemSpec(table=name) for name in (*OWN, *SHARED))
_MANY_ROWS = ProblemSpec(table="mlp_lcbench", sources=30, rows=200)
_FEW_ROWS = tuple(
    ProblemSpec(table=name, sources=1, rows=40)
    for name in ("adaboost", "random_forest", "mlp_lcbench", "tree_surrogate", "laser_graphene", "suzuki_reizman")
)
_FIVE_TABLES = tuple(
    ProblemSpec(table=name) for name in ("svm", "random_forest", "adaboost", "xgboost", "direct_arylation")
)
_SCARCE = (
    *(ProblemSpec(family=name, points=points * inputs) for points in (3, 5) for name, inputs in _INPUTS.items()),
    *(replace(spec, sources=2, rows=15) for spec in _FIVE_TABLES),
)
# one input, or one numeric input, cannot be exchanged with another
_NOTHING_TO_SWAP = ("forrester", "alpine", "direct_arylation")


def _spoilt(specs: tuple[ProblemSpec, ...]) -> tuple[ProblemSpec, ...]:
    return tuple(
        replace(spec, spoilt=scenario.value)
        for scenario in Scenario
        for spec in specs
        if scenario is not Scenario.SWAPPED or (spec.family or spec.table) not in _NOTHING_TO_SWAP
    )


def _ours(
    name: str, problems: tuple[ProblemSpec, ...], methods: str, runs: int = 100, steps: int = 20
) -> BenchExperiment:
    """An experiment that is not the paper's: headstart's defaults, LogEI."""
    return BenchExperiment(name, problems, tuple(methods.split()), runs, steps, _DEFAULT)


PRESETS: dict[str, tuple[BenchExperiment, ...]] = {
    "compare": (
        _ours("compare", _FUNCTIONS, "gpbo gpbo-again mhgp shgp bhgp star rgpe gc3p auto", runs=50),
        _ours(
            "compare",
            (*_TABLES, _MANY_ROWS),
            "random gpbo gpbo-again star rgpe gc3p best-past auto",
            runs=25,
            steps=30,
        ),
    ),
    "adversarial": (_ours("adversarial", (*_spoilt(_FAMILIES), *_spoilt(_FIVE_TABLES)), "gpbo auto", runs=50),),
    "scratch": (
        _ours("scratch", (*_FAMILIES, *_LABORATORY), "gpbo optuna-gp optuna-tpe botorch random", runs=20, steps=30),
    ),
    "scarce": (_ours("scarce", _SCARCE, "gpbo shgp hgp auto", runs=50),),
    "large": (_ours("large", (ProblemSpec(family="hartmann6", points=2000),), "gpbo shgp auto", runs=10, steps=15),),
    "rivals": (_ours("rivals", _FEW_ROWS, "gpbo auto rgpe gc3p best-past botorch-mtgp ax baybe", runs=10, steps=15),),
    "fig2": (
        BenchExperiment(
            name="fig2",
            problems=tuple(ProblemSpec(family=name) for name in ("branin", "hartmann3", "hartmann6")),
            methods=(*CHEAP, *JOINT, "gc3p", "mtgp"),
            runs_of=_RUNS,
        ),
    ),
    "fig3": (
        BenchExperiment(
            name="fig3",
            problems=tuple(dict.fromkeys((*_HARTMANN3_POINTS, *_HARTMANN3_NOISE))),
            methods=("gpbo", "mhgp", "shgp", "bhgp", "rgpe", "hgp", "wsgp"),
            steps=20,
        ),
    ),
    "fig4": (
        BenchExperiment(
            name="fig4",
            problems=(
                ProblemSpec(family="hartmann6", sources=3, points=60),
                ProblemSpec(family="alpine", sources=5, points=20),
            ),
            methods=(*CHEAP, *JOINT, "gc3p"),
            runs_of=_RUNS,
        ),
        BenchExperiment(
            name="fig4",
            problems=(ProblemSpec(table="svm"),),
            methods=(*CHEAP, *JOINT, "gc3p"),
            runs_of=_RUNS,
            settings_of=dict.fromkeys(JOINT, _SHORT),
        ),
    ),
    "one-dim": (
        BenchExperiment(
            name="one-dim",
            problems=(ProblemSpec(family="forrester"), ProblemSpec(family="alpine")),
            methods=(*CHEAP, *JOINT, "gc3p", "mtgp"),
            runs=200,
            steps=20,
            runs_of={**_RUNS, "mtgp": 20},
        ),
    ),
    "ablation": (
        BenchExperiment(
            name="ablation",
            problems=tuple(
                ProblemSpec(family="hartmann6", points=points, noise=noise)
                for points in (30, 60, 120, 250, 500)
                for noise in (0.001, 0.01, 0.1)
            ),
            methods=("gpbo", "mhgp", "shgp", "bhgp", "rgpe", "hgp", "wsgp"),
            runs_of={"hgp": 20, "wsgp": 20},
        ),
    ),
    # the paper has 7 runs throughout; one of a joint model takes a minute or two with 250 points, up to ten with 500
    "runtime": tuple(
        BenchExperiment(
            name="runtime",
            problems=tuple(ProblemSpec(family="hartmann6", points=points) for points in sizes),
            methods=("gpbo", "mhgp", "shgp", "bhgp", "rgpe", *JOINT),
            runs=7,
            steps=25,
            runs_of=dict.fromkeys(JOINT, joint),
        )
        for sizes, joint in (((30, 60, 120), 7), ((250,), 2), ((500,), 1))
    ),
    "order": (
        BenchExperiment(
            name="order",
            problems=tuple(ProblemSpec(family="alpine", sources=5, points=20, reverse=r) for r in (False, True)),
            methods=("gpbo", "mhgp", "shgp", "bhgp"),
        ),
    ),
    # 30 runs of each task, and its candidates can be evaluated again, as in the authors' code
    "gc3p": (
        BenchExperiment(
            name="gc3p",
            problems=tuple(ProblemSpec(table="xgboost", rows=None, in_turn=True, repeats=r) for r in (True, False)),
            methods=("random", "gc3p"),
            runs=270,
            steps=50,
        ),
    ),
}
# the default training of those that the paper trains as well; with several sources a run of a joint model takes minutes
_PAPERS = ("mhgp", "shgp", "bhgp", "rgpe")
PRESETS["default-settings"] = tuple(
    replace(
        e,
        name="default-settings",
        methods=methods,
        runs_of=dict.fromkeys(("hgp", "wsgp"), 20),
        settings=Settings(paper=False),
        settings_of={},
    )
    for of, methods in (("fig2", (*_PAPERS, "hgp", "wsgp")), ("fig4", _PAPERS))
    for e in PRESETS[of]
)


def paper_runs(experiment: BenchExperiment, spec: ProblemSpec) -> int:
    """How many runs the paper has of every method on a problem; of what is not in the paper those of the preset."""
    return _PAPER_SVM_RUNS if spec.table == "svm" else PAPER_RUNS.get(experiment.name, experiment.runs)


def preset(
    name: str, *, runs: int | None = None, quick: bool = False, full: bool = False
) -> tuple[BenchExperiment, ...]:
    """The experiments of a preset; ``quick`` keeps the cheap methods, five runs and fifteen steps.

    ``runs`` says how many runs there are; methods that are expensive keep their own lower number. With ``full`` all
    methods have as many as the paper has.
    """
    if name not in PRESETS:
        raise InputError(f"There is no preset {name!r}. The known ones are {', '.join(PRESETS)}.")
    experiments = tuple(_at_hand(e) for e in PRESETS[name])
    if quick:
        experiments = tuple(
            replace(
                e,
                methods=tuple(m for m in e.methods if m in (*CHEAP, "auto", name)),
                runs=min(5, e.runs),
                steps=min(15, e.steps),
            )
            for e in experiments
        )
    if full:
        experiments = tuple(replace(e, runs=paper_runs(e, e.problems[0]), runs_of={}) for e in experiments)
    return experiments if runs is None else tuple(replace(e, runs=runs) for e in experiments)


def _at_hand(experiment: BenchExperiment) -> BenchExperiment:
    """Without the shared tables that are not here, unless nothing else would be left."""
    there = tuple(spec for spec in experiment.problems if spec.table not in SHARED or is_here(spec.table))
    if len(there) in (0, len(experiment.problems)):
        return experiment
    missing = dict.fromkeys(spec.table for spec in experiment.problems if spec not in there)
    logger.warning(
        "%s: left out, because they do not come with headstart and HEADSTART_DATA names no folder with them: %s.",
        experiment.name,
        ", ".join(map(str, missing)),
    )
    return replace(experiment, problems=there)


def requested(
    name: str,
    *,
    methods: Sequence[str] = (),
    runs: int | None = None,
    evaluations: int | None = None,
    quick: bool = False,
) -> tuple[BenchExperiment, ...]:
    """The experiments of a preset, with other methods, runs or evaluations where those are given."""
    experiments = preset(name, runs=runs, quick=quick)
    if methods:
        experiments = tuple(replace(e, methods=tuple(methods)) for e in experiments)
    return experiments if evaluations is None else tuple(replace(e, steps=evaluations) for e in experiments)
