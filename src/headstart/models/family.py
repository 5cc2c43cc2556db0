"""The paper's table as code: the class is the way of training, its argument the choice of W.

    model   tasks are trained   what the target inherits from the sources        target training
    MTGP    together            a kernel and a W for every task                  O((N_t + N_s)³)
    MTKGP   together            one kernel, one W                                O((N_t + N_s)³)
    WSGP    together            a weighted sum of independent sources            O(N_t³ + N_t² N_s + Σ N_ν³)
    HGP     together            the previous task plus something of its own      O((N_t + N_s)³)
    SHGP    one by one          the same, sources never hear of the target       O(N_t³ + N_t² N_s + N_t N_s²)
    BHGP    one by one          the same mean as MHGP, its error added up        O(N_t³ + N_t² N_s + N_t N_s²)
    MHGP    one by one          the mean alone                                   O(N_t³ + N_t N_s)
    GPBO    alone               nothing                                          O(N_t³)
    RGPE    each alone          a weighted vote (Feurer et al. 2018)             O(N_t³ + N_t N_s²)
    TST-R   each alone          a weighted mean (Wistuba et al. 2016)            O(N_t³ + N_t N_s²)

Beyond the paper, stars: the sources are learnt side by side, their order does not matter (models.star.weights):

    STAR    each alone          a weighted sum, the weights integrated out       O(N_t³ + s N_t² + N_t Σ N_ν²)
    SCAML   each alone          a weighted sum, the weights fitted               the same
    MWSGP   each alone          WSGP whose sources do not hear of the target     the same
    AUTO    several of these and a plain process, weighed by what they predicted (models.auto.auto): the default
"""

from __future__ import annotations

from headstart.errors import InputError, nearest
from headstart.models.auto.auto import Auto
from headstart.models.chain.layer import Propagation
from headstart.models.ensemble import RankAgreement, RankingWeighted
from headstart.models.joint.coregion import Free, Hierarchical, SharedKernel, WeightedSource
from headstart.models.joint.joint import Joint
from headstart.models.model import TransferModel
from headstart.models.sequential import Sequential, Single
from headstart.models.star.star import Star
from headstart.models.star.weights import FittedWeights, Integrated

HGP = Joint(coregion=Hierarchical())
WSGP = Joint(coregion=WeightedSource())
MTKGP = Joint(coregion=SharedKernel())
MTGP = Joint(coregion=Free())
SHGP = Sequential(propagation=Propagation.EXACT)
BHGP = Sequential(propagation=Propagation.BOOSTED)
MHGP = Sequential(propagation=Propagation.MEAN)
GPBO = Single()
RGPE = RankingWeighted()
TSTR = RankingWeighted(weighting=RankAgreement())
STAR = Star(weighting=Integrated())
SCAML = Star(weighting=FittedWeights())
MWSGP = Star(weighting=FittedWeights(modular=True))
AUTO = Auto()

FAMILY: dict[str, TransferModel] = {
    "GPBO": GPBO,
    "MHGP": MHGP,
    "SHGP": SHGP,
    "BHGP": BHGP,
    "HGP": HGP,
    "WSGP": WSGP,
    "MTKGP": MTKGP,
    "MTGP": MTGP,
    "RGPE": RGPE,
    "TST-R": TSTR,
    "STAR": STAR,
    "SCAML": SCAML,
    "MWSGP": MWSGP,
    "AUTO": AUTO,
}


def model_named(name: str, *, where: str = "") -> TransferModel:
    """The model of that name, in any case; an ``InputError`` that suggests the nearest, and begins with ``where``."""
    if (known := name.upper()) in FAMILY:
        return FAMILY[known]
    hint = nearest(name, map(str.lower, FAMILY))
    raise InputError(f"{f'{where}: there' if where else 'There'} is no model {name!r}. {hint}")


def model_name(model: TransferModel) -> str:
    """The model's name in the family, whatever its options."""
    if isinstance(model, Auto):
        return "AUTO"
    for name, known in FAMILY.items():
        if known.using(kernel=model.kernel, fit=model.fit, units=model.units, output_map=model.output_map) == model:
            return name
    return type(model).__name__
