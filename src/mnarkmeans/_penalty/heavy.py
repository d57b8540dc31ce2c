"""Clusters with heavy tails: Student's t as normal clusters of many widths.

    x = mu + sqrt(v / w) z,   z normal,   w ~ Gamma(t / 2, t / 2)

For an observed value the mean of w is u = (t + 1) / (t + (x - mu)^2 / v): it pulls its cluster the
less the further out it lies (``src/core/mixture.h``). For a missing one w is cut into a few nodes
w_m of probability q_m, evenly over log w. Given w the cluster is normal with variance v / w, so
that every mechanism says

    P_lj = sum_m q_m P(mu, v / w_m),     r_m = q_m P(mu, v / w_m) / P_lj

and mean and variance of what is missing are those of the nodes, weighted by r_m w_m. The degrees of
freedom solve, with the mean over all entries,

    1 + log(t / 2) - digamma(t / 2) + mean( E[log w] - E[w] ) = 0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaincinv

from .._core.likelihood import SoftSums
from .mechanisms import Clusters, Lost, Widths

FIRST_FREEDOM = 5.0
LEAST_FREEDOM, MOST_FREEDOM = 1.5, 80.0
NODES = 8
BEYOND = 1e-4  # probability of a w beyond the first node, and beyond the last


@lru_cache(maxsize=64)
def nodes_of(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """w_m and q_m. The density of log w is smooth and dies away on both sides: evenly is best."""
    half = 0.5 * freedom
    first, last = np.log(gammaincinv(half, [BEYOND, 1.0 - BEYOND]) / half)
    at = np.linspace(float(first), float(last), NODES)
    log_density = half * (at - np.exp(at))
    weight = np.exp(log_density - log_density.max())
    return np.exp(at), weight / weight.sum()


def lost_of(mechanism: Any, mean: np.ndarray, variance: np.ndarray, freedom: float) -> Lost:
    """What a mechanism says of normal clusters (freedom 0) or of heavy ones."""
    if freedom <= 0 or mechanism.ignorable:
        return mechanism.lost(mean, variance)
    w, q = nodes_of(freedom)
    parts = [mechanism.lost(mean, variance / one) for one in w]
    logs = np.stack([part.log_missing for part in parts]) + np.log(q)[:, None, None]
    top = logs.max(axis=0)
    share = np.exp(logs - top)
    total = share.sum(axis=0)
    log_missing, share = top + np.log(total), share / total
    pulls = w[:, None, None] * share
    pull = pulls.sum(axis=0)
    means = np.stack([part.mean for part in parts])
    center = (pulls * means).sum(axis=0) / pull
    spread = np.stack([part.variance for part in parts]) + (means - center) ** 2
    variance = (pulls * spread).sum(axis=0) / pull
    expected = (share * means).sum(axis=0)
    return Lost(log_missing, center, variance, None, Widths(w, share, pull, expected))


def by_width(clusters: Clusters, lost: Lost | None) -> Clusters:
    """Heavy clusters as normal ones of several widths, for the step of the mechanism."""
    if lost is None or lost.widths is None:
        return clusters
    w, share = lost.widths[:2]
    m, (k, p) = len(w), clusters.mean.shape
    return Clusters(
        np.tile(clusters.mean, (m, 1)),
        (clusters.variance / w[:, None, None]).reshape(m * k, p),
        (clusters.gaps * share).reshape(m * k, p),
        np.tile(clusters.sizes, m),
    )


def next_freedom(sums: SoftSums, gaps: np.ndarray, lost: Lost | None, freedom: float) -> float:
    """The degrees of freedom that the observed entries, and the missing ones, ask for."""
    seen, half = float(sums.counts.sum()), 0.5 * (freedom + 1.0)
    total = seen * math.log1p(1.0 / freedom) - sums.tail
    total -= float(np.sum(sums.pulls))  # type: ignore[arg-type]
    total += seen * (digamma(half) - math.log(half))
    if lost is not None and lost.widths is not None:
        w, share = lost.widths[:2]
        total += float((gaps * np.tensordot(np.log(w) - w, share, axes=1)).sum())
        seen += float(gaps.sum())
    mean = total / max(seen, 1e-300)

    def slope(t: float) -> float:
        return 1.0 + math.log(0.5 * t) - digamma(0.5 * t) + mean

    if slope(LEAST_FREEDOM) <= 0:
        return LEAST_FREEDOM
    if slope(MOST_FREEDOM) >= 0:
        return MOST_FREEDOM
    return float(brentq(slope, LEAST_FREEDOM, MOST_FREEDOM, xtol=1e-6))
