"""Values get lost around the reference: P(missing | x) = c exp(-t x^2), or |x| < tau_j."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..decay import decayed
from ..rows import Rows
from ..threshold import tails
from .contract import Clusters, Lost

_NEWTON_STEPS = 2  # per round: the next round takes more
_SOFT_BOUND = 14.0  # of logit c


@dataclass(frozen=True)
class Decaying:
    """P(missing | x) = c exp(-t x^2)."""

    t: float
    c: float
    has_gaps: np.ndarray
    name: ClassVar[str] = "decay"
    ignorable: ClassVar[bool] = False

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters) -> Decaying:
        """The best point of a grid that covers all strengths, then Newton."""
        share = min(max(rows.missing_share, 1e-6), 1.0 - 1e-6)
        grid = [
            cls(t / rows.scale, share + (1.0 - share) * part, rows.has_gaps)
            for t in np.exp(np.linspace(-4.0, 8.0, 13))
            for part in (0.02, 0.3, 0.7, 0.99)
        ]
        best = max(grid, key=lambda one: one._value(rows, clusters, one._theta())[0])
        return best.update(rows, clusters, steps=10)

    def update(self, rows: Rows, clusters: Clusters, steps: int = _NEWTON_STEPS) -> Decaying:
        theta = self._theta()
        value, slope = self._value(rows, clusters, theta)
        for _ in range(steps):
            step = _uphill(lambda at: self._value(rows, clusters, at)[1], theta, slope)
            for _ in range(12):
                new = np.clip(theta + step, [-60.0, -_SOFT_BOUND], [60.0, _SOFT_BOUND])
                new_value, new_slope = self._value(rows, clusters, new)
                if new_value >= value:
                    break
                step = step / 3.0
            else:
                break
            gained, theta, value, slope = new_value - value, new, new_value, new_slope
            if gained < 1e-6:
                break
        return replace(self, t=math.exp(theta[0]), c=1.0 / (1.0 + math.exp(-theta[1])))

    def _theta(self) -> np.ndarray:
        c = min(max(self.c, 1e-6), 1.0 - 1e-6)
        return np.array([math.log(max(self.t, 1e-26)), math.log(c) - math.log1p(-c)])

    def _value(self, rows: Rows, clusters: Clusters, theta: np.ndarray):
        """The likelihood at (log t, logit c), and its slope."""
        t, c = math.exp(theta[0]), 1.0 / (1.0 + math.exp(-theta[1]))
        gaps = clusters.gaps[:, self.has_gaps]
        mean, variance = clusters.mean[:, self.has_gaps], clusters.variance[:, self.has_gaps]
        log_q, d = decayed(mean, variance, t)
        square, weight = rows.magnitudes.square * rows.scale, rows.magnitudes.weight
        near = np.exp(-t * square)
        seen = (1.0 - c) - c * np.expm1(-t * square)
        value = gaps.sum() * math.log(c) + (gaps * log_q).sum() + weight @ np.log(seen)
        by_t = weight @ (c * near * square / seen) - (gaps * (variance + mean**2 / d) / d).sum()
        by_c = gaps.sum() * (1.0 - c) - c * (1.0 - c) * (weight @ (near / seen))
        return float(value), np.array([t * by_t, by_c])

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        log_q, d = decayed(mean, variance, self.t)
        log_missing = np.where(self.has_gaps, math.log(self.c) + np.maximum(log_q, -600.0), 0.0)
        d = np.where(self.has_gaps, d, 1.0)
        return Lost(log_missing, mean / d, variance / d)

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        seen = (1.0 - self.c) - self.c * np.expm1(-self.t * np.square(values))
        return np.where(self.has_gaps[features], np.log(np.maximum(seen, 1e-300)), 0.0)

    def total_log_observed(self, rows: Rows) -> float:
        square = rows.magnitudes.square * rows.scale
        seen = (1.0 - self.c) - self.c * np.expm1(-self.t * square)
        return float(rows.magnitudes.weight @ np.log(np.maximum(seen, 1e-300)))

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.where(self.has_gaps, self.c * np.exp(-self.t * np.square(values)), 0.0)

    def n_parameters(self, k: int) -> float:
        return 2

    def parameters(self) -> dict[str, Any]:
        return {"t": self.t, "c": self.c}


def _uphill(slope_at, theta: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Newton's step where the surface bends down, otherwise up the slope; at most 2 long."""
    small, m = 1e-4, len(theta)
    bend = np.stack([(slope_at(theta + small * e) - slope) / small for e in np.eye(m)])
    values, vectors = np.linalg.eigh(0.5 * (bend + bend.T))
    step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-8))
    return step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))


@dataclass(frozen=True)
class BelowThreshold:
    """Missing where |x| < tau_j; no observed value is closer, so tau_j is the least one."""

    tau: np.ndarray
    has_gaps: np.ndarray
    name: ClassVar[str] = "threshold"
    ignorable: ClassVar[bool] = False

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters) -> BelowThreshold:
        return cls(np.maximum(rows.least, 1e-6) * rows.root, rows.has_gaps)

    def update(self, rows: Rows, clusters: Clusters) -> BelowThreshold:
        return self

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        sd = np.sqrt(variance)
        log_p, mu, a, b, phi_a, phi_b = tails(mean, sd, self.tau)
        below = phi_b - phi_a
        away = np.where(mean < 0, -1.0, 1.0) * sd * np.clip(mu - below, 0.0, self.tau / sd)
        spread = variance * np.clip(1.0 + a * phi_a - b * phi_b - below**2, 1e-12, 1.0)
        return Lost(
            np.where(self.has_gaps, np.maximum(log_p, -600.0), 0.0),
            np.where(self.has_gaps, away, mean),
            np.where(self.has_gaps, spread, variance),
        )

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Values beyond their threshold: nothing to add."""
        return np.zeros(len(values))

    def total_log_observed(self, rows: Rows) -> float:
        return 0.0

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return ((np.abs(values) < self.tau) & self.has_gaps).astype(np.float64)

    def n_parameters(self, k: int) -> float:
        """An end point is known to 1/n, not to 1/sqrt(n): it costs twice as much."""
        return 2 * int(self.has_gaps.sum())

    def parameters(self) -> dict[str, Any]:
        return {"tau": self.tau}
