"""How well partitions explain the values, by absolute deviations.

With m_lj the mean of a cell of cluster and feature, over the observed entries,

    log-likelihood = -sum_i w_i log(sum_ij w_i |x_ij - m_lj| / sum_ij w_i)

that of Laplace's noise. Squares would let the few values of a heavy or skewed tail decide which
partition is best, and those are the same in all of them; for normal noise hardly anything is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._observed import Observed
from .._solver import assign_rows
from .cells import cell_means
from .rows import Rows, Start, stored_entries


def by_absolute_deviations(observed: Observed, rows: Rows, fits: Sequence[Start]) -> np.ndarray:
    """(R,) log-likelihood of the values; ``rows``: of the table."""
    _, S, C = rows.hard_sums(fits)
    means = cell_means(S, C) * rows.root
    centers = np.stack([fit.centers for fit in fits]) + observed.reference
    lams = np.stack([np.broadcast_to(fit.lam, observed.n_features) for fit in fits])
    labels = assign_rows(observed, centers, lams, rows.threads)
    values, features, per_row = stored_entries(observed)
    weights = None if (observed.weights == 1.0).all() else np.repeat(observed.weights, per_row)
    total = np.empty(len(fits))
    for index, own in enumerate(means):
        cell = np.repeat(labels[:, index] * own.shape[1], per_row) + features
        away = np.abs(values - own.ravel()[cell])
        total[index] = (away if weights is None else weights * away).sum()
    mean = np.maximum(total / (rows.root * rows.observed_weight), 1e-12)
    return -rows.observed_weight * np.log(mean)
