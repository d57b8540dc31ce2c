"""Gaps below a soft limit: P(missing | x) = Phi((c_j - x) / zeta), zeta -> 0 being the hard one.

The dropout curve of mass spectrometry. With clusters N(mu_lj, s), d = sqrt(s + zeta^2),
a = (c_j - mu_lj) / d and h = phi(a) / Phi(a),

    P_lj                     =  Phi(a)
    E[x | missing]           =  mu - (s / d) h
    Var[x | missing]         =  s - (s / d)^2 h (a + h)
    E[x | observed]          =  mu + (s / d) phi(a) / Phi(-a)

All of it on one side: unlike around a reference, what was lost lies below the limit, and the
penalty that makes up for it, lam_lj = 1 - (E[x | missing] - r) / (mu_lj - r), is 1 or more for the
hard limit with r = c.

How the missing share of clusters and features falls with their centres (`cells`) gives c and zeta:
a logistic curve with slope b is close to Phi with d = 1.702 / b, and the last formula, with
Var[x | observed] = s - (s / d)^2 k (k - a), k = phi(a) / Phi(-a), leads from what is observed to
centres and s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, log_ndtr, ndtri

from .cells import Cells

LOGISTIC = 1.702  # the logistic curve is within .01 of Phi of this times its argument
ROUNDS = 20
LARGEST = 10.0  # near and below the reference the formula of lam has no meaning
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Limit:
    """Limits (p,), their softness, and the variance within a cluster, in one unit."""

    c: np.ndarray
    zeta: float
    s: float

    @property
    def d(self) -> float:
        return math.sqrt(self.s + self.zeta**2)

    def log_missing(self, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log P_lj, and the penalty lam_lj that belongs to it (reference 0)."""
        log_p, mean, _ = self.moments(M)
        with np.errstate(divide="ignore", invalid="ignore"):
            lam = np.where(M > 0, 1.0 - mean / M, 0.0)
        return log_p, np.clip(lam, 0.0, LARGEST)

    def moments(self, M: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log P_lj, and mean and variance of what is missing."""
        return moments(M, self.s, self.c, self.zeta)


def moments(M: np.ndarray, s, c: np.ndarray, zeta) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log P_lj, and mean and variance of what is missing.

    s: a number, or one for every entry of M; zeta: a number, or one for every feature.
    """
    d = np.sqrt(s + zeta**2)
    a = (c - M) / d
    log_p = log_ndtr(a)
    h, ratio = np.exp(-0.5 * a * a - _HALF_LOG_2PI - log_p), s / d
    return log_p, M - ratio * h, np.maximum(s - ratio**2 * h * (a + h), 0.0)


def limit_of(cells: Cells) -> tuple[Limit, np.ndarray]:
    """The limits (of the features with gaps) and the centres that a falling missing share means,
    of one partition.

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
        centers = cells.means - (s / d) * over
    weight = cells.gaps + cells.observed
    c = (weight * (centers + d * a)).sum(axis=1) / np.maximum(weight.sum(axis=1), 1e-9)
    return Limit(c[0], math.sqrt(max(d * d - s, 0.0)), s), centers[0]
