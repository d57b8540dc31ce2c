"""Candidates for lam when none are given.

Below 1 lam calibrates the centres for the values that are missing; far above 1 it shrinks centres
to the reference wherever there are gaps and so switches noise features off. The grid covers both,
in steps of a factor 1.3 to 2, and includes 0 (k-POD) and the answer of the likelihood. It ends
where centres begin to fall together at the reference for most data; candidates that do so earlier
are found by their fits and never chosen.
"""

from __future__ import annotations

import numpy as np

STEPS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 12.0)


def candidate_lams(likelihood_lam: float, has_gaps: bool) -> np.ndarray:
    """The grid, with the likelihood's answer in it; without gaps every lam is the same, so 0."""
    if not has_gaps:
        return np.zeros(1)
    steps = np.array(STEPS)
    # A step next to the likelihood's answer would only be fitted twice.
    apart = np.abs(steps - likelihood_lam) > 0.1 * likelihood_lam
    return np.unique(np.append(steps[apart], likelihood_lam))
