"""Student's t clusters, as normal clusters of random width (ECM).

    x = mu + sqrt(v / w) z,   z ~ N(0, 1),   w ~ Gamma(nu / 2, rate nu / 2)

An observed value weighs E[w | x] = (nu + 1) / (nu + (x - mu)^2 / v) in its cluster's mean and
variance (``src/core/mixture.h``). For a missing value w is replaced by nodes w_m with probabilities
q_m, so that for every mechanism

    P_lj = sum_m q_m P(mu, v / w_m),     r_m = P(w_m | missing) = q_m P(mu, v / w_m) / P_lj.

The degrees of freedom nu solve  1 + log(nu / 2) - digamma(nu / 2) + mean(E[log w] - E[w]) = 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammainccinv, gammaincinv, polygamma

from .._core.likelihood import SoftSums
from .mechanisms import Clusters, Missing

FIRST_FREEDOM = 5.0
LEAST_FREEDOM, MOST_FREEDOM = 1.5, 80.0
# Nodes of log w: probability below the first one and above the last, and the step in standard
# deviations or 1, whichever is less. They give log P_lj to 1e-4 for rates down to 1e-9.
BELOW, ABOVE, STEP = 1e-10, 1e-8, 0.7


class Widths(NamedTuple):
    """Nodes of w, given that a value is missing."""

    w: np.ndarray  # (m,)
    posterior: np.ndarray  # (m, k, p)
    weight: np.ndarray  # (k, p) E[w | missing]
    mean: np.ndarray  # (k, p) E[x | missing]


@lru_cache(maxsize=64)
def nodes(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """w_m and q_m by the trapezoidal rule in log w, whose density is smooth and dies away."""
    half = 0.5 * freedom
    first = math.log(gammaincinv(half, BELOW) / half)
    last = math.log(gammainccinv(half, ABOVE) / half)
    step = STEP * min(1.0, math.sqrt(polygamma(1, half)))
    at = np.linspace(first, last, 1 + math.ceil((last - first) / step))
    log_density = half * (at - np.exp(at))
    weight = np.exp(log_density - log_density.max())
    return np.exp(at), weight / weight.sum()


def missing_values(
    mechanism: Any, mean: np.ndarray, variance: np.ndarray, freedom: float
) -> tuple[Missing, Widths | None]:
    """What a mechanism says of normal clusters (freedom 0) or of Student's t.

    Mean and variance of x | missing are then those weighted by w, as the M-step needs them.
    """
    if freedom <= 0 or mechanism.ignorable:
        return mechanism.missing(mean, variance), None
    w, q = nodes(freedom)
    wide = w[:, None, None]
    own = mechanism.missing(np.broadcast_to(mean, (len(w), *mean.shape)), variance / wide)
    logs = own.log_rate + np.log(q)[:, None, None]
    top = logs.max(axis=0)
    posterior = np.exp(logs - top)
    total = posterior.sum(axis=0)
    posterior /= total
    weights = wide * posterior
    weight = weights.sum(axis=0)
    center = (weights * own.mean).sum(axis=0) / weight
    spread = (weights * (own.variance + (own.mean - center) ** 2)).sum(axis=0) / weight
    widths = Widths(w, posterior, weight, (posterior * own.mean).sum(axis=0))
    return Missing(top + np.log(total), center, spread), widths


def by_width(clusters: Clusters, widths: Widths | None) -> Clusters:
    """Student's t clusters as normal ones of every width, for the update of the mechanism."""
    if widths is None:
        return clusters
    m, (k, p) = len(widths.w), clusters.mean.shape
    return Clusters(
        np.tile(clusters.mean, (m, 1)),
        (clusters.variance / widths.w[:, None, None]).reshape(m * k, p),
        (clusters.gaps * widths.posterior).reshape(m * k, p),
        np.tile(clusters.sizes, m),
    )


def next_freedom(sums: SoftSums, gaps: np.ndarray, widths: Widths | None, freedom: float) -> float:
    """The degrees of freedom that maximise the expected log-likelihood."""
    count, half = float(sums.counts.sum()), 0.5 * (freedom + 1.0)
    total = count * (math.log1p(1.0 / freedom) + digamma(half) - math.log(half)) - sums.tail
    total -= float(np.sum(sums.pulls))  # type: ignore[arg-type]
    if widths is not None:
        expected = np.tensordot(np.log(widths.w) - widths.w, widths.posterior, axes=1)
        total += float((gaps * expected).sum())
        count += float(gaps.sum())
    mean = total / max(count, 1e-300)

    def slope(nu: float) -> float:
        return 1.0 + math.log(0.5 * nu) - digamma(0.5 * nu) + mean

    if slope(LEAST_FREEDOM) <= 0:
        return LEAST_FREEDOM
    if slope(MOST_FREEDOM) >= 0:
        return MOST_FREEDOM
    return float(brentq(slope, LEAST_FREEDOM, MOST_FREEDOM, xtol=1e-6))
