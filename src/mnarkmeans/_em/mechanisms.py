"""Missingness mechanisms, for clusters N(mu_lj, v_lj) measured from the reference.

    mechanism  P(missing | x)                density of x | missing

    mcar       rate_j                        normal: mean mu, variance v
    class      rate_lj                       normal: mean mu, variance v
    decay      c exp(-t x^2)                 normal: mean mu / D, variance v / D,  D = 2 v t + 1
    threshold  1 where |x| < tau_j           normal, truncated to (-tau_j, tau_j)
    limit      Phi((c_j - x) / zeta_j)       normal x curve, renormalised

Each gives P_lj = P(missing | cluster l, feature j), mean and variance of x | missing, and what an
observed value adds to the log-likelihood, log(1 - P(missing | x)). ``update`` takes the clusters
and expected numbers of missing values G_lj of an EM iteration and never lowers

    sum_lj G_lj log P_lj + sum_observed log(1 - P(missing | x)) + log prior.

Features without missing values in the training table are left out of all this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import erfcx, expit, log_ndtr, logit, xlogy

from .._observed import ENTRIES_AT_ONCE, Observed, is_observed

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
MIN_LOG = -700.0  # of a probability
TINY = 1e-300  # smallest divisor
ROUNDING = 1e-12  # relative tolerance of log-likelihoods; exceeds their rounding error

# --- the observed values --------------------------------------------------------------------------


def entries(
    observed: Observed, features: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The observed entries of the chosen features (p,) of bool, in rows with a weight: rows,
    features in increasing order, and values less the reference. Several features at a time."""
    source = observed.source.tocsc() if observed.is_sparse else observed.source
    counted = observed.weights > 0
    chosen, at_once = np.flatnonzero(features), max(1, ENTRIES_AT_ONCE // observed.n_rows)
    for begin in range(0, len(chosen), at_once):
        block = source[:, chosen[begin : begin + at_once]]
        if observed.is_sparse:
            kept = counted[block.indices]
            rows, values = block.indices[kept], block.data[kept]
            numbers = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))[kept]
        else:
            kept = (is_observed(block, observed.missing) & counted[:, None]).T
            values, (numbers, rows) = block.T[kept], np.nonzero(kept)
        columns = chosen[begin + numbers]
        yield rows, columns, values.astype(np.float64) - observed.reference[columns]


class Bins(NamedTuple):
    """The values of each feature in quantile bins, narrower at the lower end."""

    centers: np.ndarray  # (p, bins) mean of each bin
    weights: np.ndarray  # (p, bins)
    scale: np.ndarray  # (p,) standard deviation of the observed values


CUTS = np.r_[np.linspace(0.0, 0.1, 24, endpoint=False), np.linspace(0.1, 1.0, 40)]


class Values:
    """Summaries of the observed values, less the reference, each computed on first use."""

    def __init__(self, observed: Observed):
        self.observed, self.has_gaps = observed, observed.has_gaps
        n_rows = max(float(observed.weights.sum()), TINY)
        self.missing_rate = np.clip(1.0 - observed.summary.counts / n_rows, 0.0, 1.0)  # (p,)
        self.missing_share = float(self.missing_rate.mean())

    @cached_property
    def histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Squares of the values of all features: geometric means of bins, and their weights."""
        width, lowest, n_bins = 0.1, math.log(TINY), 1 << 14  # of log x^2, up to the largest float
        weight, logs = np.zeros((2, n_bins))
        for rows, _, values in entries(self.observed, self.has_gaps):
            weights = self.observed.weights[rows]
            log = np.log(np.maximum(values**2, TINY))
            place = ((log - lowest) / width).astype(np.intp)
            weight += np.bincount(place, weights, n_bins)
            logs += np.bincount(place, weights * log, n_bins)
        used = weight > 0
        return np.exp(logs[used] / weight[used]), weight[used]

    @cached_property
    def scale(self) -> float:
        """Mean square of the values; 1 if no feature has missing values."""
        squares, weights = self.histogram
        return max(float(weights @ squares) / weights.sum(), TINY) if len(weights) else 1.0

    @cached_property
    def nearest(self) -> np.ndarray:
        """(p,) the smallest distance from the reference; inf if a feature has no missing value."""
        nearest = np.full(len(self.has_gaps), np.inf)
        for _, columns, values in entries(self.observed, self.has_gaps):
            np.minimum.at(nearest, columns, np.abs(values))
        return nearest

    @cached_property
    def bins(self) -> Bins:
        center = self.observed.means - self.observed.reference
        p, n_bins = len(center), len(CUTS)
        weight, sums = np.zeros((2, p * n_bins))
        squares = np.zeros(p)
        for rows, columns, values in entries(self.observed, self.has_gaps):
            order = np.lexsort((values, columns))
            values, weights = values[order], self.observed.weights[rows[order]]
            first = np.r_[True, (np.diff(values) > 0) | (np.diff(columns) > 0)]  # of equal values
            weights = np.bincount(np.cumsum(first) - 1, weights)
            values, columns = values[first], columns[first]
            total = np.bincount(columns, weights, p)
            before = np.cumsum(weights) - 0.5 * weights - (np.cumsum(total) - total)[columns]
            bins = np.searchsorted(CUTS, before / total[columns], side="right") - 1
            place = columns * n_bins + bins
            weight += np.bincount(place, weights, p * n_bins)
            sums += np.bincount(place, weights * values, p * n_bins)
            squares += np.bincount(columns, weights * (values - center[columns]) ** 2, p)
        weight, sums = weight.reshape(p, n_bins), sums.reshape(p, n_bins)
        total = weight.sum(axis=1)
        scale = np.sqrt(np.maximum(squares / np.maximum(total, TINY), 1e-24))
        return Bins(sums / np.maximum(weight, TINY), weight, np.where(total > 0, scale, 1.0))


def newton_step(value: Callable[[Any], Any], at: Any, width: Any, reach: Any) -> Any:
    """A step uphill in every coordinate of ``at``, each with a ``value`` of its own, which takes
    several points at once (their axis is the first).

    Derivatives are differences over ``width``; a step of at most ``reach`` is shortened until it
    does not lower the value by more than rounding, or not made.
    """
    now, less, more = value(np.array([at, at - width, at + width]))
    slope, bend = 0.5 * (more - less) / width, (more - 2.0 * now + less) / width**2
    step = np.clip(slope / np.maximum(np.abs(bend), 1e-12), -reach, reach)
    least = now - ROUNDING * np.abs(now)
    for _ in range(6):
        worse = np.logical_not(value(at + step) >= least)
        if not worse.any():
            break
        step = np.where(worse, 0.25 * step, step)
    return np.where(worse, at, at + step)


# --- what every mechanism can do ------------------------------------------------------------------


class Missing(NamedTuple):
    """Missing values under a mechanism, by cluster and feature (..., k, p)."""

    log_rate: np.ndarray  # log P(missing | cluster, feature)
    mean: np.ndarray  # of x | missing
    variance: np.ndarray
    log_observed: np.ndarray | None = None  # log P(observed), where it does not depend on x
    # Of Student's t: E[w | missing], which mean and variance are weighted by; E[x | missing];
    # and the nodes of w (m,) with their probabilities, given that a value is missing (m, k, p).
    weight: Any = 1.0
    expected: np.ndarray | None = None
    widths: tuple[np.ndarray, np.ndarray] | None = None


class Clusters(NamedTuple):
    """Clusters in an EM iteration; several widths may share a mean (Student's t)."""

    mean: np.ndarray  # (k, p), from the reference
    variance: np.ndarray  # (k, p)
    gaps: np.ndarray  # (k, p) expected number of missing values
    sizes: np.ndarray  # (k,) expected number of rows


class Parameter(NamedTuple):
    """The shape and range of a parameter, for the check of model files."""

    shape: str  # a letter for each axis: k clusters, p features, 1; none for a number
    most: float = math.inf
    least: float = 0.0


class Mechanism:
    """Base class; every mechanism is a frozen dataclass of its own parameters and ``has_gaps``."""

    name: ClassVar[str]
    own_parameters: ClassVar[dict[str, Parameter]]
    ignorable: ClassVar[bool] = False  # within a cluster, P(missing) does not depend on x
    uses_reference: ClassVar[bool] = False
    has_gaps: np.ndarray  # (p,)
    n_parameters: ClassVar[Any]  # an int

    @classmethod
    def start(cls, values: Values, clusters: Clusters) -> Self:
        """Where EM begins."""
        raise NotImplementedError

    @classmethod
    def is_possible(cls, values: Values) -> bool:
        """Whether no observed value contradicts it."""
        return True

    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.own_parameters}

    def missing(self, mean: np.ndarray, variance: np.ndarray) -> Missing:
        """Of normal clusters (..., k, p) measured from the reference.

        In a feature without missing values in the training table, a missing value is uninformative
        and distributed as the observed ones.
        """
        with np.errstate(divide="ignore"):
            log_rate, center, spread, *rest = self._given_missing(mean, variance)
        return Missing(
            np.where(self.has_gaps, np.maximum(log_rate, MIN_LOG), 0.0),
            np.where(self.has_gaps, center, mean),
            np.where(self.has_gaps, np.maximum(spread, 1e-12 * variance), variance),
            np.where(self.has_gaps, np.maximum(rest[0], MIN_LOG), 0.0) if rest else None,
        )

    def _given_missing(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """log P(missing), mean and variance of x | missing, and, where it does not depend on x,
        log P(observed), of features with missing values."""
        raise NotImplementedError

    def update(self, values: Values, clusters: Clusters) -> Self:
        raise NotImplementedError

    def log_prior(self, values: Values) -> float:
        return 0.0

    def log_observed(self, x: np.ndarray, features: Any = slice(None)) -> np.ndarray:
        """log(1 - P(missing | x)) of values of these features, unless ``missing`` gives it."""
        return np.zeros(x.shape)

    def total_log_observed(self, values: Values) -> float:
        """Its sum over the table."""
        return 0.0

    def probability(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """P(missing) of values (n, p) less the reference, in rows of clusters ``labels``."""
        return -np.expm1(self.log_observed(x))


# --- rates that do not depend on x ----------------------------------------------------------------


@dataclass(frozen=True)
class ByClass(Mechanism):
    """Every cluster has its own rates: one per feature, or one for all where BIC prefers that."""

    rates: np.ndarray  # (k, p)
    has_gaps: np.ndarray
    name: ClassVar[str] = "class"
    own_parameters: ClassVar = {"rates": Parameter("kp", most=1.0)}
    ignorable: ClassVar[bool] = True
    prior_rows: ClassVar[float] = 2.0  # weight of the feature's overall rate in every rate

    @classmethod
    def start(cls, values: Values, clusters: Clusters) -> Self:
        each = cls(cls._rates(values, clusters), values.has_gaps)
        shared = each._shared()
        _, sizes = cls._counts(clusters)
        gain = (sizes * _divergence(each.rates, shared.rates))[:, values.has_gaps].sum()
        more = each.n_parameters - shared.n_parameters
        return shared if gain <= 0.5 * more * math.log(max(sizes.sum(), 2.0)) else each

    def update(self, values: Values, clusters: Clusters) -> Self:
        new = replace(self, rates=self._rates(values, clusters))
        return new._shared() if self.is_shared else new

    @staticmethod
    def _counts(clusters: Clusters) -> tuple[np.ndarray, np.ndarray]:
        """Missing values (k, p) and rows (k, 1)."""
        return clusters.gaps, clusters.sizes[:, None]

    @classmethod
    def _rates(cls, values: Values, clusters: Clusters) -> np.ndarray:
        gaps, sizes = cls._counts(clusters)
        gaps = gaps + cls.prior_rows * values.missing_rate
        return np.clip(gaps / np.maximum(sizes + cls.prior_rows, TINY), 0.0, 1.0)

    @property
    def is_shared(self) -> bool:
        """Whether every cluster has the same rate in all features."""
        rates = self.rates[:, self.has_gaps]
        return bool((rates == rates[:, :1]).all())

    def _shared(self) -> Self:
        if not self.has_gaps.any():
            return self
        common = self.rates[:, self.has_gaps].mean(axis=1, keepdims=True)
        return replace(self, rates=np.where(self.has_gaps, common, self.rates))

    def log_prior(self, values: Values) -> float:
        """Minus ``prior_rows`` times the divergence of the rates from those of the table."""
        common = np.broadcast_to(values.missing_rate, self.rates.shape)
        return -self.prior_rows * float(_divergence(common, self.rates)[:, self.has_gaps].sum())

    def _given_missing(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        rates = np.broadcast_to(self.rates, mean.shape)
        return np.log(rates), mean, variance, np.log1p(-rates)

    def probability(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        rates = self.rates[labels] if len(self.rates) > 1 else self.rates
        return np.broadcast_to(rates, x.shape)

    @property
    def n_parameters(self) -> int:
        return len(self.rates) * (1 if self.is_shared else int(self.has_gaps.sum()))


@dataclass(frozen=True)
class ByChance(ByClass):
    """The same rates in all clusters (1, p)."""

    name: ClassVar[str] = "mcar"
    own_parameters: ClassVar = {"rates": Parameter("1p", most=1.0)}
    prior_rows: ClassVar[float] = 0.0

    @staticmethod
    def _counts(clusters: Clusters) -> tuple[np.ndarray, np.ndarray]:
        return clusters.gaps.sum(axis=0, keepdims=True), clusters.sizes.sum(keepdims=True)[:, None]


def _divergence(rates: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Log-likelihood ratio per row."""
    missing = xlogy(rates, rates / np.maximum(others, TINY))
    return missing + xlogy(1.0 - rates, (1.0 - rates) / np.maximum(1.0 - others, TINY))


# --- around the reference -------------------------------------------------------------------------

# Small share of missing values independent of x: one missing value in a distant cluster must not
# rule out the whole curve.
BACKGROUND_RATE = 1e-6
BOUND = 14.0  # of |log t|, in units of the mean square, and of |logit c|


@dataclass(frozen=True)
class Decaying(Mechanism):
    """P(missing | x) = c exp(-t x^2): MNAR0 of the paper (c = 1) and, nearly, MNAR1 (c = 1/2)."""

    t: float
    c: float
    has_gaps: np.ndarray
    name: ClassVar[str] = "decay"
    own_parameters: ClassVar = {"t": Parameter(""), "c": Parameter("", most=1.0)}
    uses_reference: ClassVar[bool] = True
    n_parameters: ClassVar[int] = 2

    @classmethod
    def start(cls, values: Values, clusters: Clusters) -> Self:
        """From the best point of a grid."""
        share = float(values.missing_rate[values.has_gaps].mean()) if values.has_gaps.any() else 0.5
        t = np.repeat(np.exp(np.linspace(-4.0, 8.0, 9)) / values.scale, 3)
        c = np.tile(share + (1.0 - share) * np.array([0.05, 0.5, 0.99]), 9)
        top = cls._value(values, clusters, t, c).argmax()
        best = cls(float(t[top]), float(c[top]), values.has_gaps)
        for _ in range(5):
            best = best.update(values, clusters)
        return best

    def update(self, values: Values, clusters: Clusters) -> Self:
        """A Newton step for log t, and one for logit c."""
        gaps, scale = clusters.gaps.sum(), values.scale

        def value_of_t(log_t: Any) -> Any:
            return self._value(values, clusters, np.exp(log_t) / scale, self.c)

        def value_of_c(logit_c: Any) -> Any:
            c = expit(logit_c)
            return gaps * np.log(c) + self._log_observed(values, t, c)

        log_t = newton_step(value_of_t, np.log(max(self.t * scale, TINY)), 1e-3, 2.0)
        t = math.exp(np.clip(log_t, -BOUND, BOUND)) / scale
        logit_c = newton_step(value_of_c, logit(self.c), 1e-3, 2.0)
        return replace(self, t=t, c=float(expit(np.clip(logit_c, -BOUND, BOUND))))

    @classmethod
    def _value(cls, values: Values, clusters: Clusters, t: Any, c: Any) -> Any:
        """Log-likelihood at points (...) of t and c, which may be numbers."""
        mean, variance, gaps = (each.ravel() for each in clusters[:3])
        rate = _by_curve(np.asarray(t)[..., None], mean, variance) + BACKGROUND_RATE
        return gaps.sum() * np.log(c) + np.log(rate) @ gaps + cls._log_observed(values, t, c)

    @staticmethod
    def _log_observed(values: Values, t: Any, c: Any) -> Any:
        """The part of the observed values."""
        squares, weights = values.histogram
        t, c = np.asarray(t)[..., None], np.asarray(c)[..., None]
        return _log_observed_at(t, c, squares) @ weights

    def _given_missing(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """A mixture of two normals: by the curve, or at the background rate."""
        by_curve = _by_curve(self.t, mean, variance)
        rate, pull = by_curve + BACKGROUND_RATE, 1.0 - 1.0 / (2.0 * variance * self.t + 1.0)
        share, apart = by_curve / rate, mean * pull
        shift = apart * share
        spread = variance - variance * pull * share + shift * (apart - shift)
        return np.log(self.c * rate), mean - shift, spread

    def log_observed(self, x: np.ndarray, features: Any = slice(None)) -> np.ndarray:
        return _log_observed_at(self.t, self.c, x**2)

    def total_log_observed(self, values: Values) -> float:
        return float(self._log_observed(values, self.t, self.c))


def _by_curve(t: Any, mean: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """P(missing) / c, without the background rate."""
    d = 2.0 * variance * t + 1.0
    return (1.0 - BACKGROUND_RATE) * np.exp(-t * mean**2 / d) / np.sqrt(d)


def _log_observed_at(t: Any, c: Any, squares: np.ndarray) -> np.ndarray:
    """log P(observed) of values with these squares."""
    rate = (1.0 - c) - c * (1.0 - BACKGROUND_RATE) * np.expm1(-t * squares)
    return np.log(np.maximum(rate, TINY))


LEAST_REACH = 1e-3  # of a threshold, in standard deviations of a cluster


@dataclass(frozen=True)
class WithinThreshold(Mechanism):
    """Missing where |x| < tau_j (MNAR2). The likeliest tau_j is the smallest observed |x|."""

    tau: np.ndarray  # (p,) > 0
    has_gaps: np.ndarray
    name: ClassVar[str] = "threshold"
    own_parameters: ClassVar = {"tau": Parameter("p")}
    uses_reference: ClassVar[bool] = True

    @classmethod
    def start(cls, values: Values, clusters: Clusters) -> Self:
        finite = values.nearest[np.isfinite(values.nearest)]
        tau = np.where(np.isfinite(values.nearest), values.nearest, finite.max(initial=0.0))
        return cls(np.maximum(tau, 1e-6 * math.sqrt(values.scale)), values.has_gaps)

    @classmethod
    def is_possible(cls, values: Values) -> bool:
        """No feature with missing values has an observed one at the reference itself."""
        return bool(values.nearest.min() > 1e-6 * math.sqrt(values.scale))

    def update(self, values: Values, clusters: Clusters) -> Self:
        return self.start(values, clusters)

    def _given_missing(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        """With m = |mu| / sd, reach = tau / sd, a = -reach - m and b = reach - m:

        P = Phi(b) - Phi(a),   E = sign(mu) sd (m - (phi(b) - phi(a)) / P),
        Var = v (1 + (a phi(a) - b phi(b)) / P - ((phi(b) - phi(a)) / P)^2).
        Differences lose their digits below LEAST_REACH, where P is proportional to the reach, and E
        and Var are to its square.
        """
        sd = np.sqrt(variance)
        reach, m = np.maximum(self.tau / sd, LEAST_REACH), np.abs(mean) / sd
        part = self.tau / sd / reach
        a, b = -reach - m, reach - m
        log_b = log_ndtr(b)
        log_p = log_b + np.log(-np.expm1(np.minimum(log_ndtr(a) - log_b, -TINY)))
        # Far from a narrow cluster the bounds below decide: no overflow before them.
        logs = (-0.5 * z * z - HALF_LOG_2PI - log_p for z in (a, b))
        at_a, at_b = (np.exp(np.minimum(log, 300.0)) for log in logs)
        drop = at_b - at_a
        center = np.clip(m - drop, 0.0, reach)
        spread = np.clip(1.0 + a * at_a - b * at_b - drop**2, 0.0, np.minimum(1.0, reach**2))
        center, spread = center * part**2, spread * part**2
        return log_p + np.log(part), np.copysign(sd * center, mean), variance * spread

    def probability(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return (np.abs(x) < self.tau).astype(np.float64)

    @property
    def n_parameters(self) -> int:
        """An end point is estimated with an error of 1/n instead of 1/sqrt(n): it counts twice."""
        return 2 * int(self.has_gaps.sum())


# --- below a detection limit ----------------------------------------------------------------------

SOFTNESS = (0.02, 0.1, 0.3, 0.8)  # zeta at first, in standard deviations; the smallest is a bound
MAX_SOFTNESS = 10.0


@dataclass(frozen=True)
class BelowLimit(Mechanism):
    """P(missing | x) = Phi((c_j - x) / zeta_j); zeta_j / standard deviation is one number.

    With d = sqrt(v + zeta^2), a = (c - mu) / d and h = phi(a) / Phi(a): P = Phi(a),
    E = mu - (v / d) h and Var = v - (v / d)^2 h (a + h).
    """

    c: np.ndarray  # (p,)
    zeta: np.ndarray  # (p,)
    has_gaps: np.ndarray
    name: ClassVar[str] = "limit"
    own_parameters: ClassVar = {"c": Parameter("p", least=-math.inf), "zeta": Parameter("p")}

    @classmethod
    def start(cls, values: Values, clusters: Clusters) -> Self:
        lowest = np.where(values.has_gaps, values.bins.centers[:, 0], 0.0)
        starts = [cls(lowest, soft * values.bins.scale, values.has_gaps) for soft in SOFTNESS]
        for _ in range(5):
            starts = [start._with_limits(values, clusters) for start in starts]
        return max(
            starts, key=lambda start: start._value(values, clusters, start.c, start.zeta).sum()
        )

    def update(self, values: Values, clusters: Clusters) -> Self:
        new, scale = self._with_limits(values, clusters), values.bins.scale

        def softer(log_ratio: np.ndarray) -> np.ndarray:
            zeta = self.zeta * np.exp(log_ratio)[..., None]
            return np.clip(zeta, SOFTNESS[0] * scale, MAX_SOFTNESS * scale)

        def value(log_ratio: np.ndarray) -> np.ndarray:
            return self._value(values, clusters, new.c, softer(log_ratio)).sum(axis=-1)

        return replace(new, zeta=softer(newton_step(value, np.zeros(()), 0.05, 0.7)))

    def _with_limits(self, values: Values, clusters: Clusters) -> Self:
        """A step of all limits at once."""
        value = partial(self._value, values, clusters, zeta=self.zeta)
        return replace(self, c=newton_step(value, self.c, 1e-3 * self.zeta, values.bins.scale))

    def _value(
        self, values: Values, clusters: Clusters, c: np.ndarray, zeta: np.ndarray
    ) -> np.ndarray:
        """(..., p) log-likelihood of each feature, for c and zeta (..., p); a feature without
        missing values has no weights."""
        c, zeta = c[..., None, :], zeta[..., None, :]
        log_rate = log_ndtr((c - clusters.mean) / np.sqrt(clusters.variance + zeta**2))
        missing = (clusters.gaps * np.maximum(log_rate, MIN_LOG)).sum(axis=-2)
        centers, weights, _ = values.bins
        observed = (weights.T * log_ndtr((centers.T - c) / zeta)).sum(axis=-2)
        return np.where(self.has_gaps, missing, 0.0) + observed

    def _given_missing(self, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, ...]:
        d = np.sqrt(variance + self.zeta**2)
        a = (self.c - mean) / d
        h, ratio = math.sqrt(2.0 / math.pi) / erfcx(-a / math.sqrt(2.0)), variance / d
        return log_ndtr(a), mean - ratio * h, variance - ratio**2 * np.clip(h * (a + h), 0.0, 1.0)

    def log_observed(self, x: np.ndarray, features: Any = slice(None)) -> np.ndarray:
        return log_ndtr((x - self.c[features]) / self.zeta[features])

    def total_log_observed(self, values: Values) -> float:
        centers, weights, _ = values.bins
        return float((weights.T * self.log_observed(centers.T)).sum())

    @property
    def n_parameters(self) -> int:
        return int(self.has_gaps.sum()) + 1


MECHANISMS: dict[str, Any] = {
    kind.name: kind for kind in (ByChance, Decaying, WithinThreshold, BelowLimit, ByClass)
}
