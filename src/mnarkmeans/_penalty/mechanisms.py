"""How values get lost, for clusters N(mu_lj, v_lj) with variances of their own.

Every mechanism says for cluster l and feature j

    P_lj,   E[x | missing],   Var[x | missing]

and what an observed value adds to the likelihood, log(1 - P(missing | x)):

    mcar       rate_j                      mu,         v
    class      rate_lj                     mu,         v
    decay      c exp(-t x^2)               mu / D,     v / D,    D = 2 v t + 1     (`decay`)
    threshold  |x| < tau_j                 normal between -tau_j and tau_j         (`threshold`)
    limit      Phi((c_j - x) / zeta_j)     normal below it                         (`limit`)

x, mu measured from the reference. A feature that never lost anything has no part in it: whatever a
new row lacks there says nothing of its cluster.

`update` takes the clusters and soft gaps G_lj of one round of EM and raises

    sum_lj G_lj log P_lj + sum_observed log(1 - P(missing | x)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, xlogy

from .decay import decayed
from .limit import moments
from .mixture import Rows
from .threshold import tails

PRIOR_ROWS = 2.0  # a cluster's missing rate begins with so many rows of the feature's own
_NEWTON_STEPS = 2  # per round: the next round takes more
_SOFT_BOUND = 14.0  # of logit c
_SOFTNESS = (0.02, 0.1, 0.3, 0.8)  # of a limit, in spreads of the feature: the least, and starts
_SOFTEST = 10.0  # so soft a limit is chance
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class Lost(NamedTuple):
    """What a mechanism says of clusters and features, each (k, p)."""

    log_missing: np.ndarray
    mean: np.ndarray  # of what is missing
    variance: np.ndarray
    log_observed: np.ndarray | None = None  # where it depends on the cluster, not on x


class Clusters(NamedTuple):
    """Clusters as a round of EM has them: centres from the reference, and soft weights."""

    mean: np.ndarray  # (k, p)
    variance: np.ndarray  # (k, p)
    gaps: np.ndarray  # (k, p) soft weight of missing entries
    sizes: np.ndarray  # (k,) of all rows


def _log_rates(rates: np.ndarray, has_gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log rate and log(1 - rate); nothing where no feature lost a value."""
    with np.errstate(divide="ignore"):
        lost = np.maximum(np.log(rates), -700.0)
        seen = np.maximum(np.log1p(-rates), -700.0)
    return np.where(has_gaps, lost, 0.0), np.where(has_gaps, seen, 0.0)


@dataclass(frozen=True)
class ByClass:
    """Every cluster loses a feature at its own rate (k, p)."""

    rates: np.ndarray
    has_gaps: np.ndarray
    name: ClassVar[str] = "class"
    ignorable: ClassVar[bool] = True  # within a cluster, gaps know nothing of the value

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters) -> ByClass:
        return cls(np.zeros_like(clusters.mean), rows.has_gaps).update(rows, clusters)

    def update(self, rows: Rows, clusters: Clusters) -> ByClass:
        """A few rows of the feature's mean rate keep small clusters from certainty."""
        sizes = clusters.sizes[:, None]
        of_feature = clusters.gaps.sum(axis=0) / max(float(clusters.sizes.sum()), 1e-300)
        rates = (clusters.gaps + PRIOR_ROWS * of_feature) / (sizes + PRIOR_ROWS)
        return replace(self, rates=np.clip(rates, 0.0, 1.0))

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        missing, observed = _log_rates(self.rates, self.has_gaps)
        return Lost(missing, mean, variance, observed)

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Of values less the reference: all of it depends on the cluster."""
        return np.zeros(len(values))

    def total_log_observed(self, rows: Rows) -> float:
        return 0.0

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """P(missing) of values (n, p) less the reference."""
        return np.where(self.has_gaps, self.rates[labels], 0.0)

    def n_parameters(self, k: int) -> float:
        return k * int(self.has_gaps.sum())

    def parameters(self) -> dict[str, Any]:
        return {"rates": self.rates}


@dataclass(frozen=True)
class ByChance(ByClass):
    """One rate for all features, or one for each where that is worth its price: (1, p)."""

    name: ClassVar[str] = "mcar"

    def update(self, rows: Rows, clusters: Clusters) -> ByChance:
        size = max(float(clusters.sizes.sum()), 1e-300)
        own = np.clip(clusters.gaps.sum(axis=0) / size, 0.0, 1.0)
        common = np.where(
            self.has_gaps, own[self.has_gaps].sum() / max(self.has_gaps.sum(), 1), own
        )
        gain = xlogy(own, own / np.maximum(common, 1e-300)) + xlogy(
            1.0 - own, (1.0 - own) / np.maximum(1.0 - common, 1e-300)
        )
        price = 0.5 * (self.has_gaps.sum() - 1) * math.log(max(size, 2.0))
        rates = own if size * gain[self.has_gaps].sum() > price else common
        return replace(self, rates=rates[None])

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        missing, observed = (
            np.broadcast_to(part, mean.shape) for part in _log_rates(self.rates, self.has_gaps)
        )
        return Lost(missing, mean, variance, observed)

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.broadcast_to(np.where(self.has_gaps, self.rates, 0.0), values.shape)

    def n_parameters(self, k: int) -> float:
        return len(np.unique(self.rates[0, self.has_gaps]))


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
                seen = ~(np.isnan(source[:, j]) | (source[:, j] == rows.table.struct.missing))
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
class BelowLimit:
    """P(missing | x) = Phi((c_j - x) / zeta_j), zeta_j one share of the spread of each feature.

    The moments are those of `limit`.
    """

    c: np.ndarray  # (p,)
    zeta: np.ndarray  # (p,)
    has_gaps: np.ndarray
    bins: Any = None  # Bins, while it is being fitted
    name: ClassVar[str] = "limit"
    ignorable: ClassVar[bool] = False

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters) -> BelowLimit:
        bins = Bins.of(rows)
        least = np.where(rows.has_gaps, bins.at[:, 0], 0.0)
        starts = [cls(least, soft * bins.scale, rows.has_gaps, bins) for soft in _SOFTNESS]
        starts = [start._with_limits(clusters, 8) for start in starts]
        return max(starts, key=lambda one: one._value(clusters).sum()).update(rows, clusters)

    def update(self, rows: Rows, clusters: Clusters) -> BelowLimit:
        return self._with_limits(clusters, _NEWTON_STEPS)._with_softness(clusters)

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
                worse = new_value < value
                if not worse.any():
                    break
                step = np.where(worse, step / 4.0, step)
            now = replace(now, c=np.where(worse, now.c, new.c))
            value = np.where(worse, value, new_value)
        return now

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        log_p, away, spread = moments(mean, variance, self.c, self.zeta)
        return Lost(
            np.where(self.has_gaps, np.maximum(log_p, -600.0), 0.0),
            np.where(self.has_gaps, away, mean),
            np.where(self.has_gaps, np.maximum(spread, 1e-12 * variance), variance),
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

    def parameters(self) -> dict[str, Any]:
        return {"c": self.c, "zeta": self.zeta}


MECHANISMS: dict[str, Any] = {
    one.name: one for one in (ByChance, Decaying, BelowThreshold, BelowLimit, ByClass)
}


def finished(mechanism: Any) -> Any:
    """Without what only fitting needs."""
    return replace(mechanism, bins=None) if mechanism.name == "limit" else mechanism


def mechanism_of(name: str, parameters: dict[str, Any], has_gaps: np.ndarray) -> Any:
    """From what `parameters` gives."""
    return MECHANISMS[name](**parameters, has_gaps=has_gaps)
