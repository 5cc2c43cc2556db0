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

Use: ``prior = SHGP.learn(sources)``, ``posterior = prior.condition(target)``, ``posterior.posterior(X)``.
Options: ``SHGP.using(kernel=Kernel.MATERN52)``, and ``SHGP.paper()`` for the paper's own training.
"""

from __future__ import annotations

from headstart.models.coregion import Free, Hierarchical, SharedKernel, WeightedSource
from headstart.models.ensemble import RankingWeighted
from headstart.models.joint import Joint
from headstart.models.layer import Propagation
from headstart.models.model import TransferModel
from headstart.models.sequential import Sequential
from headstart.models.single import Single

__all__ = ["BHGP", "FAMILY", "GPBO", "HGP", "MHGP", "MTGP", "MTKGP", "RGPE", "SHGP", "WSGP"]

HGP = Joint(coregion=Hierarchical())
WSGP = Joint(coregion=WeightedSource())
MTKGP = Joint(coregion=SharedKernel())
MTGP = Joint(coregion=Free())
SHGP = Sequential(propagation=Propagation.EXACT)
BHGP = Sequential(propagation=Propagation.BOOSTED)
MHGP = Sequential(propagation=Propagation.MEAN)
GPBO = Single()
RGPE = RankingWeighted()

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
}
