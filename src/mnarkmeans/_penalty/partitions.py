"""What partitions of the rows are worth: their loss, and how well they predict rows left out.

With S, C and N the sums, observed counts and sizes of the clusters of a partition,

    loss(lam) = sum x^2 - sum_lj S^2 / (C + lam (N - C)),    centres S / (C + lam (N - C))

measured from the reference; lam is a number, or one per feature. The loss of the rows themselves
always falls with better fitting noise; of rows that are left out it does not. So every row is left
out in turn: with m_j the mean of a feature and mu_j the centre of the row's cluster, both without
that row and a gap counting as the reference with weight h (the penalty of the theory),

    r = x - m,    d = mu - m,    gain_j = (sum_i r d)_+^2 / sum_i d^2,    predicted = sum_j gain_j

gain_j is what the clusters explain of the left-out values if the feature itself says how far its
centres are to be believed: a feature that is noise has d independent of r and explains nothing,
however many there are of them. Measured in the units of each feature's own noise that is

    predicted = -n/2 sum_j log(1 - gain_j / sum_i r^2)

which counts features of small spread as much as others.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._observed import Observed

NOTHING = 1e-9  # weight that is none


class Sums(NamedTuple):
    """Of a partition: sums of the values, observed entries and gaps, each (k, p)."""

    S: np.ndarray
    C: np.ndarray
    gaps: np.ndarray

    def loss(self, lam: Any) -> np.ndarray:
        """(k, p), less the sum of squares, which is the same for all partitions."""
        return -(self.S * self.S / np.maximum(self.C + lam * self.gaps, NOTHING))

    def centers(self, lam: Any) -> np.ndarray:
        """(k, p), from the reference."""
        weight = self.C + lam * self.gaps
        return self.S / np.where(weight > 0, weight, 1.0)


class Partitions:
    """Partitions (R, n) of the rows of a table, and their sums."""

    def __init__(self, observed: Observed, labels: np.ndarray, k: int):
        self.labels, self.k = labels, k
        self.values, self.seen = dense_values(observed)
        self.weights = observed.weights[:, None]
        self.reference = observed.reference
        weighted = self.values, self.seen
        if (self.weights != 1.0).any():
            weighted = self.values * self.weights, self.seen * self.weights
        self._sums = [self._sums_of(own, *weighted) for own in labels]

    def _sums_of(self, own: np.ndarray, values: np.ndarray, seen: np.ndarray) -> Sums:
        """(No matrix products: their threads would only wait for each other.)"""
        members = [np.flatnonzero(own == l) for l in range(self.k)]
        S = np.stack([values[rows].sum(axis=0) for rows in members])
        C = np.stack([seen[rows].sum(axis=0) for rows in members])
        sizes = np.array([self.weights[rows].sum() for rows in members])
        return Sums(S, C, sizes[:, None] - C)

    def losses(self, lam: Any) -> np.ndarray:
        """(R,) less the sum of squares."""
        return np.array([own.loss(lam).sum() for own in self._sums])

    def lead(self, index: int, lam: float) -> float:
        """By how many standard errors over the features a partition costs less than any other."""
        own = self._sums[index].loss(lam).sum(axis=0)
        ahead = [math.inf]
        for other in range(len(self.labels)):
            if other != index:
                more = self._sums[other].loss(lam).sum(axis=0) - own
                error = math.sqrt(len(more)) * float(more.std())
                ahead.append(float(more.sum()) / max(error, NOTHING))
        return min(ahead)

    def best_for(self, lams: np.ndarray) -> list[int]:
        """For every lam, which partition costs least."""
        return [int(np.argmin(self.losses(lam))) for lam in lams]

    def centers(self, index: int, lam: Any) -> np.ndarray:
        """(k, p), in the units of the data."""
        return self.reference + self._sums[index].centers(lam)

    def predicted(self, chosen: list[int], penalty: Any) -> np.ndarray:
        """(2, R): what each of the chosen partitions explains of the values left out, in the units
        of the data and in those of the features (see above)."""
        counts = np.where(self.seen > 0, 1.0, penalty)
        left = np.minimum(self.weights, 1.0)  # one row of those that a weight stands for
        own_sum, own_weight = left * self.values, left * counts
        S, C, gaps = self._sums[0]
        sums, weights = S.sum(axis=0), (C + penalty * gaps).sum(axis=0)
        mean = _ratio(sums - own_sum, weights - own_weight, 0.0)
        counts *= self.weights
        rest = (self.values - mean) * counts
        total = np.einsum("ij,ij->j", rest, self.values - mean)
        gains = []
        for index in chosen:
            S, C, gaps = self._sums[index]
            own = self.labels[index]
            away = _ratio(S[own] - own_sum, (C + penalty * gaps)[own] - own_weight, mean)
            away -= mean
            agree = np.maximum(np.einsum("ij,ij->j", rest, away), 0.0)
            room = np.einsum("ij,ij,ij->j", away, away, counts)
            gain = agree * _ratio(agree, room, 0.0)
            left_over = np.maximum(1.0 - _ratio(gain, total, 0.0), NOTHING)
            own_units = -0.5 * self.weights.sum() * np.log(left_over).sum()
            gains.append((float(gain.sum()), float(own_units)))
        return np.array(gains).T


def distinct(labels: np.ndarray, k: int) -> np.ndarray:
    """Those of the partitions (R, n) that differ by more than the names of the clusters."""
    n = labels.shape[1]
    is_l = [labels == l for l in range(k)]
    first = np.stack([np.where(own.any(axis=1), own.argmax(axis=1), n) for own in is_l], axis=1)
    renamed = np.take_along_axis(first.argsort(axis=1).argsort(axis=1), labels, axis=1)
    _, kept = np.unique([own.tobytes() for own in renamed], return_index=True)
    return labels[np.sort(kept)]


def dense_values(observed: Observed) -> tuple[np.ndarray, np.ndarray]:
    """Values measured from the reference with gaps as 0, and 1 where observed, not as CSR."""
    values, seen = observed.zero_filled()
    return (values.toarray(), seen.toarray()) if observed.is_sparse else (values, seen)


def _ratio(above: np.ndarray, below: np.ndarray, otherwise) -> np.ndarray:
    return np.where(below > NOTHING, above / np.maximum(below, NOTHING), otherwise)
