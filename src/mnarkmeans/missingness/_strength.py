"""Strength and likelihood of each mechanism, clusters given.

With x measured from the reference and N(mu_lj, s) within a cluster, the pattern of gaps has

    log-likelihood = sum_missing log P_lj + sum_observed log(1 - P(missing | x))

where P_lj is P(missing | x) averaged over the cluster's distribution:

    mcar    a
    mnar0   exp(-a x^2)
    mnar1   1 / (1 + exp(a x^2))     Gauss-Hermite quadrature
    mnar2   |x| below a threshold of the feature; the likeliest is its smallest observed |x|

mnar1 has no closed form and is written here; the others are cases of `_penalty/mechanisms`. One
number per mechanism, so the likelihoods can be set side by side. They describe the table under one
clustering; they are no test.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit

from .._penalty.mechanisms import FAMILIES, MECHANISMS, Clusters
from .._penalty.rows import Rows

LEAST = 1e-12  # for gaps that a mechanism calls impossible
STEPS = 20  # towards the likeliest strength; most settle in five
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
IN_SHORT = {
    **{name: one.in_short for name, one in MECHANISMS.items()},
    "mnar0": MECHANISMS["decay"].in_short,
    "mnar1": "near the reference, at most every second one",
    "mnar2": MECHANISMS["threshold"].in_short,
}


class Fit(NamedTuple):
    mechanism: str
    strength: float
    log_likelihood: float


def fits_of(rows: Rows, clusters: Clusters) -> list[Fit]:
    """The likeliest strength of every mechanism."""
    chance, decay, threshold = (
        FAMILIES[family](rows, clusters).update(rows, clusters, STEPS)
        for family in ("one rate", "mnar0", "threshold")
    )
    share = chance.c
    return [
        Fit("mcar", share, _value(chance, rows, clusters)),
        Fit("mnar0", decay.t, _value(decay, rows, clusters)),
        _fit_mnar1(rows, clusters),
        Fit("mnar2", share, _value(threshold, rows, clusters)),
    ]


def _value(mechanism: Any, rows: Rows, clusters: Clusters) -> float:
    """The log-likelihood above; features without gaps have no part in it."""
    lost = mechanism.lost(clusters.mean, clusters.variance)
    gone = np.maximum(lost.log_missing, math.log(LEAST))
    value = float((clusters.gaps * gone).sum()) + mechanism.total_log_observed(rows)
    if lost.log_observed is not None:
        seen = clusters.sizes[:, None] - clusters.gaps
        value += float((seen * lost.log_observed).sum())
    return value


def _fit_mnar1(rows: Rows, clusters: Clusters) -> Fit:
    """Look over a grid of strengths, then refine around the best."""
    squares, weight = rows.magnitudes.square * rows.scale, rows.magnitudes.weight
    some = clusters.gaps > 0  # only these cells count, and many have no gap
    gaps = clusters.gaps[some]
    x = clusters.mean[some][:, None] + math.sqrt(float(clusters.variance[0, 0])) * NODES

    def log_likelihood(step: float) -> float:
        a = math.exp(step)
        p = expit(-a * np.square(x)) @ (WEIGHTS / WEIGHTS.sum())
        gone = float(gaps @ np.log(np.maximum(p, LEAST)))
        return gone + float(weight @ log_expit(a * squares))

    grid = np.linspace(math.log(1e-5), math.log(1e5), 24) - math.log(rows.scale)
    best = int(np.argmax([log_likelihood(step) for step in grid]))
    around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda step: -log_likelihood(step), bounds=around, method="bounded")
    return Fit("mnar1", math.exp(found.x), -float(found.fun))
