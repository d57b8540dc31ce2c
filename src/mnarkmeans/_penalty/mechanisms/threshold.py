"""Values closer to the reference than tau_j get lost (MNAR2).

With clusters N(mu_lj, v_lj), measured from the reference, and a, b = (-/+ tau_j - mu_lj) / sqrt(v),

    P_lj                     =  Phi(b) - Phi(a)
    E[x | missing]           =  mu_lj - sqrt(v) (phi(b) - phi(a)) / P_lj
    E[(x - mu)^2 | missing]  =  v (1 + (a phi(a) - b phi(b)) / P_lj)

No observed value lies below its threshold, so the likeliest tau_j is the smallest observed |x|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

_LEAST_CENTER = 1e-4  # in standard deviations: where both sides are the same to all digits
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class WithinThreshold(Mechanism):
    """Missing where |x| < tau_j."""

    tau: np.ndarray  # (p,) > 0
    has_gaps: np.ndarray
    name: ClassVar[str] = "threshold"
    sentence: ClassVar[str] = "Values within a distance of the reference are missing"
    in_short: ClassVar[str] = "all those closest to the reference"
    curve: ClassVar[str] = "decaying"
    own_parameters: ClassVar = {"tau": Parameter("p")}
    share_at_reference: ClassVar[float] = 1.0

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None) -> WithinThreshold:
        return cls(np.maximum(rows.least, 1e-6) * rows.root, rows.has_gaps)

    @classmethod
    def is_possible(cls, rows: Rows) -> bool:
        return not rows.reach_reference

    def before(self, rows: Rows) -> WithinThreshold:
        """No observed value is closer, so the threshold is the least one."""
        return replace(self, tau=np.maximum(rows.least, 1e-6) * rows.root, has_gaps=rows.has_gaps)

    @property
    def t(self) -> float:
        """Of the curve exp(-t x^2) with the same area as the mean threshold."""
        return math.pi / (4.0 * float(self.tau.mean()) ** 2)

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        sd = np.sqrt(variance)
        log_p, mu, a, b, phi_a, phi_b = _tails(mean, sd, self.tau)
        below = phi_b - phi_a
        away = np.where(mean < 0, -1.0, 1.0) * sd * np.clip(mu - below, 0.0, self.tau / sd)
        spread = variance * np.clip(1.0 + a * phi_a - b * phi_b - below**2, 1e-12, 1.0)
        return Lost(
            np.where(self.has_gaps, np.maximum(log_p, -600.0), 0.0),
            np.where(self.has_gaps, away, mean),
            np.where(self.has_gaps, spread, variance),
        )

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return ((np.abs(values) < self.tau) & self.has_gaps).astype(np.float64)

    def n_parameters(self, k: int) -> float:
        """An end point is known to 1/n, not to 1/sqrt(n): it costs twice as much."""
        return 2 * int(self.has_gaps.sum())


def _tails(mean: np.ndarray, sd: np.ndarray, tau: np.ndarray):
    """log P, |mu|, a and b in standard deviations, and phi(a) / P, phi(b) / P."""
    mu = np.maximum(np.abs(mean) / sd, _LEAST_CENTER)
    a, b = -tau / sd - mu, tau / sd - mu
    below_b = log_ndtr(b)
    log_p = below_b + np.log(-np.expm1(np.minimum(log_ndtr(a) - below_b, -1e-15)))
    phi_a = np.exp(-0.5 * a * a - _HALF_LOG_2PI - log_p)
    phi_b = np.exp(-0.5 * b * b - _HALF_LOG_2PI - log_p)
    return log_p, mu, a, b, phi_a, phi_b
