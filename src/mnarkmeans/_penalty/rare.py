"""Are values close to the reference rare?

Where values get lost around it they are, on both sides. Below a limit they are not: the further
below, the fewer are left. Both questions compare a density that is halved within a distance of the
reference with one that is not, by the values within three times that distance,

    log-likelihood ratio = within log(3/5) + beyond log(6/5)

for a third of them lies within if nothing is rare there, a fifth if half of those are lost.
"""

from __future__ import annotations

import math

import numpy as np

from .._observed import Observed
from .rows import stored_entries

CLOSE = (0.15, 0.3, 0.6)  # root mean squares of the feature
EMPTY = 0.1  # share of the values around that may lie within
RARE = 3.0  # log-likelihood from which values close to the reference are called rare
ONE_SIDED = 0.05  # share of the observed values that may lie below a limit


def rare_at_reference(observed: Observed) -> float:
    """The log-likelihood ratio, of features with gaps and values on both sides; the best of CLOSE,
    of larger distances only where next to nothing is left within."""
    sizes, weights, below, features = _distances(observed)
    count = np.maximum(np.bincount(features, weights, observed.n_features), 1e-300)
    share = np.bincount(features, weights * below, observed.n_features) / count
    two_sided = np.minimum(share, 1.0 - share)[features] >= ONE_SIDED
    ratios = [_ratio(sizes[two_sided], weights[two_sided], distance) for distance in CLOSE]
    return max(
        ratio for number, (ratio, empty) in enumerate(ratios) if number == 0 or empty < EMPTY
    )


def rare_below_reference(observed: Observed) -> float:
    """The log-likelihood ratio of the values below the reference alone, of features with gaps; the
    best of CLOSE. Below a limit it is negative for all of them."""
    sizes, weights, below, _ = _distances(observed)
    return max(_ratio(sizes[below], weights[below], distance)[0] for distance in CLOSE)


def _distances(observed: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Of the values of features with gaps: distance from the reference in root mean squares of the
    feature, weight, whether they lie below it, and feature."""
    values, features, per_row = stored_entries(observed)
    weights = np.repeat(observed.weights, per_row)
    if not observed.has_gaps.all():
        some = observed.has_gaps[features]
        values, features, weights = values[some], features[some], weights[some]
    square = np.bincount(features, weights * values * values, observed.n_features)
    count = np.maximum(np.bincount(features, weights, observed.n_features), 1e-300)
    spread = np.sqrt(square / count)
    sizes = np.abs(values) / np.where(spread > 0, spread, np.nan)[features]
    return sizes, weights, values < 0, features


def _ratio(sizes: np.ndarray, weights: np.ndarray, distance: float) -> tuple[float, float]:
    """The log-likelihood ratio for a distance, and the share within of the values around."""
    within = float(weights[sizes < distance].sum())
    around = float(weights[sizes < 3.0 * distance].sum())
    ratio = within * math.log(3 / 5) + (around - within) * math.log(6 / 5)
    return ratio, within / around if around > 0 else 1.0
