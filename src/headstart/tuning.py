"""Tuning: every number that shapes what AUTO and the plain process believe and suggest, with its reason.

``AUTO_TUNING`` is read by what weighs and uses sources, ``PLAIN_TUNING`` by every model and by the search. Both are
frozen. To try another value, replace the instance in a fresh process before anything else of headstart is imported:

    import dataclasses, headstart.tuning as tuning
    tuning.AUTO_TUNING = dataclasses.replace(tuning.AUTO_TUNING, switch_rate=0.5)

Guards against rounding, sizes of blocks and caches, and thresholds of sentences are not here: no suggestion depends
on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AutoTuning:
    """Numbers of AUTO: its candidates, how they are weighed, and how far sources are used."""

    # ── candidates and beliefs ────────────────────────────────────────────────────────────────────────────────────
    # Prior beliefs, as proportions: most pasts are of one kind, and each of the other cases does happen
    kin_belief: float = 0.6
    star_belief: float = 0.15
    pooled_belief: float = 0.1
    plain_belief: float = 0.15
    # Rows of all sources that are pooled: they share one matrix
    pooled_rows: int = 400

    # ── weights from predictive scores ────────────────────────────────────────────────────────────────────────────
    # After result t the best candidate is drawn anew with probability switch_rate/t: a change costs log t nats
    switch_rate: float = 1.0
    # Nats by which one row can speak for or against a source: an outlier must not decide
    max_log_ratio: float = 10.0
    # With less weight the plain process is used at its most probable hyperparameters: the other candidates explore
    plain_mixture_from_weight: float = 0.5
    # Results from which the plain process is scored in units of its own, and the ratio of scales at which it is: of
    # fewer, or at a smaller ratio, it is too sure of the next value
    own_scale_from_results: int = 5
    own_scale_ratio: float = 10.0

    # ── first points ──────────────────────────────────────────────────────────────────────────────────────────────
    # Up to so many results every point lies near the best that is expected
    first_points: int = 5

    # ── star prior: weights of sources ────────────────────────────────────────────────────────────────────────────
    # Mean of all weights together, in spreads: with 0.3 a single source counts with the wrong sign with probability 0.4
    star_weight_mean: float = 0.3
    # Standard deviation of all weights together: the target is about as large as a source
    star_weight_sd: float = 1.0
    # Standard deviation of log ρ, the size of the target: a factor of 4 each way with 95 %
    star_amplitude_log_sd: float = 0.7
    # How far kin's weights are known to sum to their mean: 1 is for certain
    kin_balance: float = 0.9
    # A source that varies less, in model units, is not blown up to the size of the target
    min_source_spread: float = 0.05

    # ── likeness: sources predicted from each other ───────────────────────────────────────────────────────────────
    # Shares of the sources' kernels that a task may have of its own, from hardly any to as much as sources have, and
    # their prior, whose mean is taken where sources do not show it
    own_shares: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
    own_share_prior: tuple[float, ...] = (0.2, 0.3, 0.3, 0.2)
    # The prior of the candidates' proportions counts as so many sources
    likeness_prior_sources: float = 2.0
    # Rows of a source that are enough to see how it is predicted from others, and restarts of such a small fit
    likeness_rows: int = 20
    likeness_restarts: int = 2

    # ── gate: is a source more than noise? ────────────────────────────────────────────────────────────────────────
    # Nats per row that a process gains from noise, at most: tables of 10 to 25 rows of noise gained 0.1 to 0.6
    gate_max_complexity_penalty: float = 0.7
    # Rows that are enough to tell a source from noise
    gate_max_rows: int = 500
    # Trust is Φ(slope (z − midpoint)), z the gain in standard errors, and 0 up to the cutoff: noise has z ≈ −1
    gate_trust_midpoint: float = 0.6
    gate_trust_slope: float = 2.0
    gate_trust_cutoff: float = 0.15

    # ── many sources ──────────────────────────────────────────────────────────────────────────────────────────────
    # Sources used at a time, and predicted from each other: their average is then known up to 1/32 of their variance;
    # small ones are noisier
    max_sources: int = 32
    max_small_sources: int = 128
    # Rows of all sources used at a time, which bounds what a suggestion costs
    source_row_budget: int = 3200

    # ── careful first points (decide) ─────────────────────────────────────────────────────────────────────────────
    # Few results: before there are this many, a point is expected to be no worse than typical, sources are not selected
    # by their correlation with the target, and nothing is said against going on (without sources before twice as many)
    few_results: int = 8
    # How far the first points may be from the best that is expected to a typical value
    first_points_reach: float = 0.4

    # ── ranges of results with sources ────────────────────────────────────────────────────────────────────────────
    # Degrees of freedom of Student's distribution before the first result: how well sources show a target's scale
    range_freedom_before_results: float = 8.0

    @property
    def own_share(self) -> float:
        """The geometric mean of ``own_shares`` under their prior."""
        return math.exp(
            sum(p * math.log(share) for share, p in zip(self.own_shares, self.own_share_prior, strict=True))
        )


@dataclass(frozen=True, kw_only=True)
class PlainTuning:
    """Numbers of every Gaussian process and of the search, with or without sources."""

    # ── hyperparameter priors (gp) ────────────────────────────────────────────────────────────────────────────────
    # Medians of the lengthscales of numbers and of categories, times √g: distances among g inputs grow like that
    number_lengthscale_median: float = 0.3
    category_lengthscale_median: float = 1.0  # two levels are at distance 1
    # Standard deviation of the logarithm of lengthscales and outputscales: 95 % within a factor of 7
    scale_spread: float = 1.0
    # Median and spread of the outputscale on top of another task: what is left after a good source is smaller
    residual_outputscale_median: float = 0.3
    residual_outputscale_spread: float = 1.5
    # Median and spread of the noise variance: a tenth of the outputs' spread is a common error
    noise_var_median: float = 0.01
    noise_var_spread: float = 2.0
    # Median and spread of the variance of shifts between batches: as the noise, in which they are otherwise. A median a
    # tenth of that misses shifts as large as the outputs' spread in nine results, and predicts no better without shifts
    batch_var_median: float = 0.01
    batch_var_spread: float = 2.0
    # Standard deviation of its logarithm between tasks
    batch_var_between_tasks: float = 1.0
    # Prior variance of a task's offset around the mean of its results, in units of their variance: nearly free
    offset_var: float = 9.0

    # Degrees of freedom with which the common scatter of replicates counts in that of each group
    replicate_freedom: float = 4.0

    # ── uncertain hyperparameters: draws (gp, models) ─────────────────────────────────────────────────────────────
    # Results up to which hyperparameters are drawn: more leave little doubt, and every draw costs a process
    draws_up_to_results: int = 24
    # Draws around the mode, in opposite pairs
    draws: int = 8
    # Standard deviations of log hyperparameters in any direction, at most: beyond, Laplace's approximation is none
    draws_widest: float = 2.0
    # The draws' weights are flattened until they count as this many: a single one would be a guess again
    draws_effective: float = 3.0

    # ── long targets: refits ──────────────────────────────────────────────────────────────────────────────────────
    # Results up to which every one brings new hyperparameters: later one among hundreds changes next to nothing
    refit_every_result_up_to: int = 128
    # Refits in every doubling of the results after that
    refits_per_doubling: int = 4
    # Rows from which the hyperparameters of a long target are found: an evaluation costs their cube
    refit_rows: int = 256
    # Hundreds of results leave a fit little to choose between
    refit_restarts: int = 2

    # ── tasks of many rows (models) ───────────────────────────────────────────────────────────────────────────────
    # Rows up to which a task is fitted, and observed, row by row
    every_row_up_to: int = 500
    # Rows that all restarts of a larger fit see: from the best of them a single run goes on with twice as many
    first_fit_rows: int = 300
    # Rows of the last run: this many of a task, or this share, never more than the last. It takes as long as the layer
    last_fit_rows: int = 1200
    last_fit_share: float = 0.36
    last_fit_max_rows: int = 2400
    # Twice as many rows change nothing if no parameter changes its effect by more than that, in logarithms
    fit_settled_within: float = 0.1
    # Rows up to which a source, with those below it, is exact: their factor has 200 MB and takes four seconds
    exact_up_to_rows: int = 5000
    # Large sources side by side that are each exact to that size: 800 MB
    exact_large_sources: int = 4
    # Points through which a larger source is predicted
    inducing_points: int = 2000
    # Rows or points of a source that shares its matrix with others: on top of them, or in a joint model
    rows_beside_others: int = 1000
    # Rows that are worked through, and multiplications (rows · points²), which take some ten seconds
    condensed_max_rows: int = 100_000
    condensed_max_work: float = 8e10

    # ── improvement margin, acquisition (decide) ──────────────────────────────────────────────────────────────────
    # An improvement counts by what exceeds this share of a measurement's standard error: less would not be noticed
    improvement_margin: float = 0.5
    # In model units: the improvement that is left next to a bound of the results, so that points remain comparable
    improvement_at_bound: float = 1e-3
    # Pairs of opposite draws of the awaited results: of one objective, and of several, where each draw has a front
    pending_pairs: int = 16
    pending_pairs_of_fronts: int = 6
    # How far a point of a batch may be from the best that is expected to a typical value: the improvement that is left
    # once the best points are awaited is one that no member expects
    batch_reach: float = 0.2
    # One point of a batch in so many may be as far as a typical one: where the sources are wrong, it finds out
    batch_explores_every: int = 4

    # ── search for a suggestion (decide) ──────────────────────────────────────────────────────────────────────────
    # Points that are compared, and how many of the best are polished
    search_candidates: int = 512
    search_starts: int = 4
    # Points of the lowest mean around which the search looks closer, and points there for every point all over
    search_anchors: int = 4
    search_near_share: float = 0.25
    # Rounds of polishing and of exchanging discrete values, the first of which nearly always settles it, or further
    # looks around where all points seem to be used up; and the points that go into later rounds
    search_rounds: int = 4
    search_kept: int = 2
    # Iterations of L-BFGS-B: more than nearly all descents take
    search_iterations: int = 100
    # A member of a mixture with less weight is not evaluated: it takes as long as one that counts
    member_min_weight: float = 1e-3

    # ── output map (data) ─────────────────────────────────────────────────────────────────────────────────────────
    # λ ~ N(1, this²), at most 1: values go in as they are unless they show a tail of bad ones
    warp_power_sd: float = 0.5
    warp_max_power: float = 1.0
    # Spreads from the median, of a good value reaches, beyond which a value is an outlier, and is pulled in
    outlier_fence: float = 6.0
    # Spreads from the median beyond which good values go on by their logarithm: with 3 as good; with 6 some of the gain
    # is lost, and without it one trial on Hartmann-6 with three sources had 1.4 times the regret
    good_fence: float = 4.0
    # A spread is at most so many times that of the better half: the upper quartile may be a penalty for failed runs
    max_spread_ratio: float = 3.0
    # Points of a search within this distance, in every coordinate of the unit cube, count as one value
    together_within: float = 0.02
    # Variance of the tasks' levels, in spreads², as one further source would have it
    level_var: float = 0.25
    # A first value so many spreads from the sources' median is of a target that lies elsewhere, so many spreads below
    # the target's own median
    moved_from_spreads: float = 3.0
    first_value_below_median: float = 1.0

    # ── bounds of results (data) ──────────────────────────────────────────────────────────────────────────────────
    # Standard deviations of a measurement within which a bound is approached: with half of it medians lie nearly at the
    # bound itself, and with twice of it ranges leave out results that come close to the bound
    bound_reach: float = 0.25
    # Probability that a bound which no result was at is none, or is reached: below 1/40 no 95 % range crosses it
    bound_doubt: float = 0.01

    # ── several outcomes (decide) ─────────────────────────────────────────────────────────────────────────────────
    # Power of the gain before any result is within the limits: with 1 the first such result came later by a seventh
    gain_power_before_feasible: float = 0.25
    # A point is suggested with at least this probability to keep the limits, if there is such a point
    least_probability: float = 0.2
    # Thresholds count where some point is as probable to reach all of them; with one far beyond what can be all further
    # points explored, and results got worse and worse
    threshold_in_reach: float = 0.01
    # Points are likely to be within the limits with this share of the highest probability of all points
    likely_share: float = 0.5
    # The reference of several objectives is no better than this quantile of what is expected over the domain: by the
    # front alone one good result left nothing to gain but in its neighbourhood (a volume of .94 instead of .99)
    reference_quantile: float = 0.9
    # How far beyond the worst values of the front the reference lies, as a share of the front's range
    reference_beyond: float = 0.1

    # ── controls (decide) ─────────────────────────────────────────────────────────────────────────────────────────
    # The best results that are compared as controls, and other points beside a single planned one: any result that is
    # known well shows a shift
    control_candidates: int = 16
    # Draws of the results of a plan by which controls are compared
    control_draws: int = 256

    # ── stopping (decide) ─────────────────────────────────────────────────────────────────────────────────────────
    # Points whose common gain is looked at: a single one may gain little where five gain much
    stopping_points: int = 5
    # A gain is small below this share of a measurement's standard error, which nobody would notice
    stopping_noise_share: float = 0.1
    # or below this share of the way from a typical result to the best
    stopping_spread_share: float = 0.01
    # or, with several objectives, of the volume of their front, for the next point alone
    stopping_volume_share: float = 0.002
    # Draws of the next points' values by which their common gain is found
    stopping_draws: int = 1024


AUTO_TUNING = AutoTuning()
PLAIN_TUNING = PlainTuning()
