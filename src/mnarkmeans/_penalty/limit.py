"""The limit below which values get lost, from a partition.

How the missing share of clusters and features falls with their centres (`cells`) gives the limit
c and its softness zeta (`mechanisms`): a logistic curve with slope b is close to Phi with
d = sqrt(s + zeta^2) = 1.702 / b, and with a = (c_j - mu_lj) / d and k = phi(a) / Phi(-a),

    E[x | observed] = mu + (s / d) k,     Var[x | observed] = s - (s / d)^2 k (k - a)

lead from what is observed to centres and s. The penalty that makes up for what was lost,
lam_lj = 1 - (E[x | missing] - r) / (mu_lj - r), is 1 or more for the hard limit with r = c.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_ndtr, ndtri

from .cells import Cells
from .mechanisms import BelowLimit

LOGISTIC = 1.702  # the logistic curve is within .01 of Phi of this times its argument
ROUNDS = 20
SETTLED = 1e-3  # root mean squares by which no centre moves any more
LARGEST = 10.0  # near and below the reference the formula of lam has no meaning
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Limited(NamedTuple):
    """Limits and their softness, of features with gaps, and the clusters they were found with."""

    mechanism: BelowLimit
    s: float  # variance within a cluster
    centers: np.ndarray  # (k, features with gaps), from the reference

    @property
    def share_at_reference(self) -> float:
        """P(missing) of a cluster there, mean over features."""
        lost = self.mechanism.lost(np.zeros((1, self.centers.shape[1])), np.array([[self.s]]))
        return float(np.exp(lost.log_missing).mean())

    @property
    def penalties(self) -> np.ndarray:
        """lam_lj, for the reference 0."""
        M, mean = self.centers, self.mechanism.lost(self.centers, np.array([[self.s]])).mean
        with np.errstate(divide="ignore", invalid="ignore"):
            lam = np.where(M > 0, 1.0 - mean / M, 0.0)
        return np.clip(lam, 0.0, LARGEST)


def limit_of(cells: Cells) -> Limited:
    """The limits and the centres that a falling missing share means, of one partition.

    From centres to the curve of missing shares over them and back, a few times: what is observed is
    what is left above the limit.
    """
    seen = cells.observed / max(float(cells.observed.sum()), 1e-9)
    variance = float(cells.variance[0])
    centers, s = cells.means, variance
    for _ in range(ROUNDS):
        fit = cells.fit("limit", centers)
        d = LOGISTIC / max(float(fit.slope[0]), 1e-6)
        a = ndtri(np.clip(expit(fit.logits(centers)), 1e-6, 1.0 - 1e-6))
        over = np.exp(-0.5 * a * a - _HALF_LOG_2PI - log_ndtr(-a))
        s = min(variance + (s / d) ** 2 * float((seen * over * (over - a)).sum()), d * d)
        before, centers = centers, cells.means - (s / d) * over
        if np.abs(centers - before).max() < SETTLED:
            break
    weight = cells.gaps + cells.observed
    c = (weight * (centers + d * a)).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9)
    zeta = np.full(c.shape[1], math.sqrt(max(d * d - s, 0.0)))
    return Limited(BelowLimit(c[0], zeta, np.ones(c.shape[1], bool)), s, centers[0])
