"""Gaps below a threshold (MNAR2): a value is missing when it is closer to the reference than tau_j.

With x measured from the reference, clusters N(mu_lj, s) and a, b = (-/+ tau_j - mu_lj) / sqrt(s),

    P_lj                         =  Phi(b) - Phi(a)
    E[x | missing]               =  mu_lj - sqrt(s) (phi(b) - phi(a)) / P_lj
    E[(x - mu)^2 | missing]      =  s (1 + (a phi(a) - b phi(b)) / P_lj)

and the penalty that makes up for the missing values is lam_lj = 1 - E[x | missing] / mu_lj. No
observed value lies below its threshold, so the likeliest tau_j is the smallest observed |x|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr

_LEAST_CENTER = 1e-4  # in standard deviations: the formulas divide by the centre
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Threshold:
    """The thresholds, and the variance within a cluster."""

    tau: np.ndarray  # (p,) > 0
    s: float
    share_at_reference = 1.0

    @property
    def t(self) -> float:
        """Of the curve exp(-t x^2) with the same area as the mean threshold."""
        return math.pi / (4.0 * float(self.tau.mean()) ** 2)

    def log_missing(self, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log P_lj, and the penalty lam_lj that belongs to it."""
        log_p, mu, _, _, phi_a, phi_b = tails(M, math.sqrt(self.s), self.tau)
        return log_p, np.clip((phi_b - phi_a) / mu, 0.0, 1.0)

    def log_observed(self, magnitudes: Any) -> float:
        """Observed values lie beyond their threshold: nothing to add."""
        return 0.0

    def with_spread(self, M: np.ndarray, gaps: np.ndarray, residual: float, seen: float):
        """The same thresholds, s from the observed residuals and the expected missing ones."""
        _, _, a, b, phi_a, phi_b = tails(M, math.sqrt(self.s), self.tau)
        hidden = self.s * np.maximum(1.0 + a * phi_a - b * phi_b, 0.0)
        s = (residual + float((gaps * hidden).sum())) / (seen + float(gaps.sum()))
        return Threshold(self.tau, max(s, 1e-12))


def tails(M: np.ndarray, sd, tau: np.ndarray):
    """log P, |mu|, a and b in standard deviations, and phi(a) / P, phi(b) / P.

    sd: a number, or one for every entry of M.
    """
    mu = np.maximum(np.abs(M) / sd, _LEAST_CENTER)
    a, b = -tau / sd - mu, tau / sd - mu
    below_b = log_ndtr(b)
    log_p = below_b + np.log(-np.expm1(np.minimum(log_ndtr(a) - below_b, -1e-15)))
    phi_a = np.exp(-0.5 * a * a - _HALF_LOG_2PI - log_p)
    phi_b = np.exp(-0.5 * b * b - _HALF_LOG_2PI - log_p)
    return log_p, mu, a, b, phi_a, phi_b
