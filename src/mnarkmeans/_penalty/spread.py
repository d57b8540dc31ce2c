"""How far the variances of clusters are believed, each by itself.

A cluster has seen a feature C_lj times; that is few where much is missing, and a variance that is
too small makes the mixture too sure of itself. So every variance begins with d rows of the one
common to all clusters,

    v_lj = (squares_lj + d v_j) / (C_lj + d),       v_j = sum_l squares_lj / sum_l C_lj

and the variances themselves say how large d is: they would differ by chance alone,
Var(log v_lj) = trigamma(C_lj / 2), and differ by trigamma(d / 2) more if d is right (the moments
of Smyth 2004, for genes).
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

MOST_ROWS = 200.0  # so many are as good as one variance for all
FEWEST_SEEN = 3.0  # values without which a variance says nothing


def prior_rows(variances: np.ndarray, seen: np.ndarray) -> float:
    """d, from variances (k, p) of ``seen`` values each."""
    told = seen >= FEWEST_SEEN
    free = np.maximum(told.sum(axis=0) - 1, 0)
    if free.sum() == 0:
        return 0.0
    half = 0.5 * np.maximum(seen, FEWEST_SEEN)
    logs = np.log(np.maximum(variances, 1e-300)) - digamma(half) + np.log(half)
    mean = np.where(told, logs, 0.0).sum(axis=0) / np.maximum(told.sum(axis=0), 1)
    away = np.where(told & (free > 0), (logs - mean) ** 2, 0.0).sum() / free.sum()
    more = away - polygamma(1, half)[told].mean()
    if more <= polygamma(1, 0.5 * MOST_ROWS):
        return MOST_ROWS
    return 2.0 * float(brentq(lambda y: polygamma(1, y) - more, 1e-4, MOST_ROWS))
