"""When the hyperparameters of a growing target are found anew: with every result, then ever more rarely.

Up to EVERY results each of them may change what is believed, and a fit takes a moment. Later one among hundreds changes
next to nothing, and a fit takes seconds. So from then on hyperparameters are those of the first ``refit_size(n)``
results, four numbers in every doubling (128, 160, 192, 224, 256, 320 …), and the results since then are rows that are
added to the factor, O(n²). The numbers are fixed: a study read from a file has the fits of one that was followed.
"""

from __future__ import annotations

from dataclasses import replace

from headstart.gp.fit import FitOptions
from headstart.tuning import PLAIN_TUNING

EVERY = PLAIN_TUNING.refit_every_result_up_to
FITTED_ON = PLAIN_TUNING.refit_rows


def refit_size(n: int) -> int:
    """Of how many of n results the hyperparameters are found: all up to EVERY, at least four fifths of them later."""
    if n <= EVERY:
        return n
    octave = 1 << (n.bit_length() - 1)
    return n - (n - octave) % (octave // PLAIN_TUNING.refits_per_doubling)


def fit_of_many(options: FitOptions) -> FitOptions:
    """How the hyperparameters of a long target are found: from fewer starts."""
    return replace(options, restarts=min(options.restarts, PLAIN_TUNING.refit_restarts))
