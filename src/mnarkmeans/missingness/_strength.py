"""Strength and likelihood of each mechanism, clusters given.

With x measured from the reference and N(mu_lj, s) within a cluster, the pattern of gaps has

    log-likelihood = sum_missing log P_lj + sum_observed log(1 - P(missing | x))

where P_lj is P(missing | x) averaged over the cluster's distribution:

    mcar    a
    mnar0   exp(-a x^2)              closed form
    mnar1   1 / (1 + exp(a x^2))     Gauss-Hermite quadrature
    mnar2   |x| below a threshold of the feature; the likeliest is its smallest observed |x|

One number per mechanism, so the likelihoods can be set side by side. They describe the table under
one clustering; they are no test.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from scipy.stats import norm

LEAST = 1e-12  # for gaps that a mechanism calls impossible
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)


class Fit(NamedTuple):
    mechanism: str
    strength: float
    log_likelihood: float


class Pattern(NamedTuple):
    """What the mechanisms need of a table."""

    squares: np.ndarray  # observed x^2
    centers: np.ndarray  # (k, p), from the reference
    gaps: np.ndarray  # (k, p) missing entries
    sigma2: float
    least: np.ndarray  # (p,) smallest observed |x|


def fit_mechanisms(pattern: Pattern) -> list[Fit]:
    """The likeliest strength of every mechanism."""
    missing, observed = float(pattern.gaps.sum()), float(len(pattern.squares))
    share = missing / (missing + observed)
    at_random = missing * math.log(share) + observed * math.log1p(-share)
    return [
        Fit("mcar", share, at_random),
        _strongest("mnar0", _mnar0, pattern),
        _strongest("mnar1", _mnar1, pattern),
        Fit("mnar2", share, _mnar2(pattern)),
    ]


def _strongest(name: str, log_likelihood: Any, pattern: Pattern) -> Fit:
    """Look over a grid of strengths, then refine around the best."""
    scale = float(pattern.squares.mean()) or 1.0
    grid = np.linspace(math.log(1e-5), math.log(1e5), 24) - math.log(scale)
    values = [log_likelihood(math.exp(step), pattern) for step in grid]
    best = int(np.argmax(values))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda step: -log_likelihood(math.exp(step), pattern), bounds=around, method="bounded"
    )
    return Fit(name, math.exp(found.x), -float(found.fun))


def _mnar0(a: float, pattern: Pattern) -> float:
    d = 2.0 * pattern.sigma2 * a + 1.0
    log_p = -0.5 * math.log(d) - a / d * np.square(pattern.centers)
    seen = -np.expm1(-a * pattern.squares)
    return _total(log_p, pattern) + float(np.log(np.maximum(seen, LEAST)).sum())


def _mnar1(a: float, pattern: Pattern) -> float:
    lost = pattern.gaps > 0  # only these cells count, and many have no gap
    x = pattern.centers[lost][:, None] + math.sqrt(pattern.sigma2) * NODES
    p = expit(-a * np.square(x)) @ (WEIGHTS / WEIGHTS.sum())
    gaps = float(pattern.gaps[lost] @ np.log(np.maximum(p, LEAST)))
    return gaps + float(log_expit(a * pattern.squares).sum())


def _mnar2(pattern: Pattern) -> float:
    scale = math.sqrt(pattern.sigma2)
    below = norm.cdf((pattern.least - pattern.centers) / scale)
    below -= norm.cdf((-pattern.least - pattern.centers) / scale)
    return _total(np.log(np.maximum(below, LEAST)), pattern)


def _total(log_p: np.ndarray, pattern: Pattern) -> float:
    return float((pattern.gaps * np.maximum(log_p, math.log(LEAST))).sum())
