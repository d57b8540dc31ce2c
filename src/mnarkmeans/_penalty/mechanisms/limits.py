"""Values get lost below a soft limit: P(missing | x) = Phi((c_j - x) / zeta_j), zeta -> 0: hard.

The dropout curve of mass spectrometry. With clusters N(mu_lj, v_lj), d = sqrt(v + zeta^2),
a = (c_j - mu_lj) / d and h = phi(a) / Phi(a),

    P_lj = Phi(a),   E[x | missing] = mu - (v / d) h,   Var[x | missing] = v - (v / d)^2 h (a + h)

All of it on one side: unlike around a reference, what was lost lies below the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from ..._observed import seen_in
from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

_SOFTNESS = (0.02, 0.1, 0.3, 0.8)  # of a limit, in spreads of the feature: the least, and starts
_SOFTEST = 10.0  # so soft a limit is chance
_ROUNDING = 1e-13  # of a likelihood: a step is no worse by less
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Bins(NamedTuple):
    """Observed values of every feature, in bins that are finer where values are small."""

    at: np.ndarray  # (p, bins) mean of each bin, from the reference
    weight: np.ndarray  # (p, bins)
    scale: np.ndarray  # (p,) spread of the observed values

    @classmethod
    def of(cls, rows: Rows) -> Bins:
        source: Any = rows.table.source
        p = len(rows.has_gaps)
        cuts = np.concatenate(
            [np.linspace(0.0, 0.1, 24, endpoint=False), np.linspace(0.1, 1.0, 40)]
        )
        at, weight, scale = np.zeros((p, len(cuts))), np.zeros((p, len(cuts))), np.ones(p)
        columns: Any = source if isinstance(source, np.ndarray) else source.tocsc()
        for j in np.flatnonzero(rows.has_gaps):
            if isinstance(source, np.ndarray):
                seen = seen_in(source[:, j], rows.table.struct.missing)
                values, own = source[seen, j].astype(np.float64), rows.weights[seen]
            else:
                stored = slice(columns.indptr[j], columns.indptr[j + 1])
                values = columns.data[stored].astype(np.float64)
                own = rows.weights[columns.indices[stored]]
            values, own = values[own > 0] - rows.reference[j], own[own > 0]
            if len(values) == 0:
                continue
            values, place = np.unique(values, return_inverse=True)  # a row twice, or weight 2
            own = np.bincount(place, own)
            reached = np.cumsum(own) - 0.5 * own
            bins = np.searchsorted(cuts, reached / own.sum(), side="right") - 1
            weight[j] = np.bincount(bins, own, len(cuts))
            at[j] = np.bincount(bins, own * values, len(cuts)) / np.maximum(weight[j], 1e-300)
            mean = own @ values / own.sum()
            scale[j] = math.sqrt(max(own @ (values - mean) ** 2 / own.sum(), 1e-24))
        return cls(at, weight, scale)


def _hazard(a: np.ndarray) -> np.ndarray:
    """phi(a) / Phi(a)."""
    return np.exp(-0.5 * a * a - _HALF_LOG_2PI - log_ndtr(a))


@dataclass(frozen=True)
class BelowLimit(Mechanism):
    """P(missing | x) = Phi((c_j - x) / zeta_j), zeta_j one share of the spread of each feature."""

    c: np.ndarray  # (p,)
    zeta: np.ndarray  # (p,)
    has_gaps: np.ndarray
    bins: Any = None  # Bins, while it is being fitted
    name: ClassVar[str] = "limit"
    sentence: ClassVar[str] = "Low values are missing more often, as below a detection limit"
    in_short: ClassVar[str] = "below a soft detection limit"
    curve: ClassVar[str] = "one-sided"
    own_parameters: ClassVar = {"c": Parameter("p", least=-math.inf), "zeta": Parameter("p")}

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None) -> BelowLimit:
        bins = Bins.of(rows)
        least = np.where(rows.has_gaps, bins.at[:, 0], 0.0)
        starts = [cls(least, soft * bins.scale, rows.has_gaps, bins) for soft in _SOFTNESS]
        starts = [start._with_limits(clusters, 8) for start in starts]
        return max(starts, key=lambda one: one._value(clusters).sum())

    def before(self, rows: Rows) -> BelowLimit:
        bins = Bins.of(rows)
        is_new = rows.has_gaps & ~self.has_gaps
        c = np.where(is_new, bins.at[:, 0], self.c)
        zeta = np.where(is_new, _SOFTNESS[1] * bins.scale, self.zeta)
        return BelowLimit(c, zeta, rows.has_gaps, bins)

    def update(self, rows: Rows, clusters: Clusters, steps: int = 2) -> BelowLimit:
        return self._with_limits(clusters, steps)._with_softness(clusters)

    def _with_softness(self, clusters: Clusters) -> BelowLimit:
        """A step along log zeta, by the parabola through three points."""

        def value(step: float) -> float:
            return float(self._softer(step)._value(clusters).sum())

        now, less, more = value(0.0), value(-0.05), value(0.05)
        slope, bend = (more - less) / 0.1, (more - 2.0 * now + less) / 0.0025
        step = slope / max(abs(bend), 1e-8)
        step = min(max(step, -0.7), 0.7)
        for _ in range(5):
            if value(step) > now:
                return self._softer(step)
            step /= 4.0
        return self

    def _softer(self, step: float) -> BelowLimit:
        bounds = _SOFTNESS[0] * self.bins.scale, _SOFTEST * self.bins.scale
        return replace(self, zeta=np.clip(self.zeta * math.exp(step), *bounds))

    def _value(self, clusters: Clusters) -> np.ndarray:
        """(p,) the likelihood of each feature."""
        gone = log_ndtr((self.c - clusters.mean) / np.sqrt(clusters.variance + self.zeta**2))
        seen = log_ndtr((self.bins.at - self.c[:, None]) / self.zeta[:, None])
        value = (clusters.gaps * gone).sum(axis=0) + (self.bins.weight * seen).sum(axis=1)
        return np.where(self.has_gaps, value, 0.0)

    def _with_limits(self, clusters: Clusters, steps: int) -> BelowLimit:
        """Newton's steps for every limit at once; the likelihood is concave in each."""
        now, value = self, self._value(clusters)
        d, zeta = np.sqrt(clusters.variance + self.zeta**2), self.zeta[:, None]
        for _ in range(steps):
            a, u = (now.c - clusters.mean) / d, (now.bins.at - now.c[:, None]) / zeta
            h, g = _hazard(a), _hazard(u)
            slope = (clusters.gaps * h / d).sum(axis=0) - (now.bins.weight * g / zeta).sum(axis=1)
            bend = (clusters.gaps * h * (a + h) / d**2).sum(axis=0)
            bend += (now.bins.weight * g * (u + g) / zeta**2).sum(axis=1)
            most = self.bins.scale
            step = np.clip(slope / np.maximum(bend, 1e-12), -most, most)
            for _ in range(6):
                new = replace(now, c=np.where(self.has_gaps, now.c + step, now.c))
                new_value = new._value(clusters)
                worse = new_value < value - _ROUNDING * np.abs(value)
                if not worse.any():
                    break
                step = np.where(worse, step / 4.0, step)
            now = replace(now, c=np.where(worse, now.c, new.c))
            value = np.where(worse, value, new_value)
        return now

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        d = np.sqrt(variance + self.zeta**2)
        a = (self.c - mean) / d
        h, ratio = _hazard(a), variance / d
        spread = np.maximum(variance - ratio**2 * h * (a + h), 1e-12 * variance)
        return Lost(
            np.where(self.has_gaps, np.maximum(log_ndtr(a), -600.0), 0.0),
            np.where(self.has_gaps, mean - ratio * h, mean),
            np.where(self.has_gaps, spread, variance),
        )

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        seen = log_ndtr((values - self.c[features]) / self.zeta[features])
        return np.where(self.has_gaps[features], seen, 0.0)

    def total_log_observed(self, rows: Rows) -> float:
        seen = log_ndtr((self.bins.at - self.c[:, None]) / self.zeta[:, None])
        return float((self.bins.weight * seen).sum(axis=1)[self.has_gaps].sum())

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.where(self.has_gaps, ndtr((self.c - values) / self.zeta), 0.0)

    def n_parameters(self, k: int) -> float:
        return int(self.has_gaps.sum()) + 1

    def finished(self) -> BelowLimit:
        return replace(self, bins=None)
