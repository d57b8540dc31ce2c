"""Are features cut off at their least values, as by a hard limit?

Of the values between the least one and the mean, the share that lies in the lowest fifth: a fifth
where the density does not fall towards the edge, next to nothing in a tail, be it that of a soft
limit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .rows import stored_entries

LOWEST = 0.2  # of the way from the least value to the mean
SHARP = 0.12  # share of the values below the mean from which edges are called sharp
SHARP_ALONE = 0.17  # the edge of one feature, whose values are few
BLUNT_ALONE = 0.08


class Edges(NamedTuple):
    """Of each feature with gaps, the weight of its values in the lowest fifth and below the mean;
    the least values themselves do not count."""

    lowest: np.ndarray
    below: np.ndarray

    def share(self, features: np.ndarray | None = None) -> float:
        """Of some of them together."""
        lowest, below = (part if features is None else part[features] for part in self)
        return float(lowest.sum() / max(below.sum(), 1e-300))

    @property
    def sharp(self) -> np.ndarray:
        """Which of them, each by itself, are cut off."""
        return self.lowest > SHARP_ALONE * self.below

    @property
    def blunt(self) -> np.ndarray:
        """Which of them, each by itself, are not."""
        return self.lowest < BLUNT_ALONE * self.below


def edges_of(observed: Observed) -> Edges:
    values, features, per_row = stored_entries(observed)
    weights = np.repeat(observed.weights, per_row)
    p = observed.n_features
    least = np.full(p, np.inf)
    np.minimum.at(least, features, values)
    length = observed.means - observed.reference - least
    place = (values - least[features]) / np.where(length > 0, length, np.nan)[features]
    counts = [
        np.bincount(features, weights * ((place > 0.0) & (place < end)), p)[observed.has_gaps]
        for end in (LOWEST, 1.0)
    ]
    return Edges(*counts)
