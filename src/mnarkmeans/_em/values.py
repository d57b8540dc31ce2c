"""The observed values of a table, summarised once for the fit of a missingness mechanism.

Features without missing values say nothing about the mechanism and have no part in it. Values are
measured from the reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._observed import Observed, seen_in

ROWS_AT_ONCE = 1 << 15
FEW_VALUES = 4096  # so many are kept one by one
SQUARE_BINS = 400
SMALLEST_SQUARE = 1e-12  # of the mean square; anything below is at the reference


class Histogram(NamedTuple):
    """Squared distances from the reference, of all features with missing values together."""

    squares: np.ndarray  # (m,) each bin at the geometric mean of its members
    weights: np.ndarray  # (m,)


class Bins(NamedTuple):
    """Values of each feature in bins, narrower at the lower end."""

    centers: np.ndarray  # (p, bins) mean of each bin
    weights: np.ndarray  # (p, bins)
    scale: np.ndarray  # (p,) standard deviation of the observed values


class Values:
    """Observed values as mechanisms need them; the parts are computed on first use."""

    def __init__(self, observed: Observed):
        self.observed, self.reference = observed, observed.reference
        self.has_gaps, self.weights = observed.has_gaps, observed.weights
        self.n_rows = float(self.weights.sum())
        seen = observed.observed_weight
        self.missing_rate = np.clip(1.0 - seen / max(self.n_rows, 1e-300), 0.0, 1.0)  # (p,)
        self.missing_share = float(self.missing_rate.mean())

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values, their features and row weights, of features with missing values."""
        for begin in range(0, self.observed.n_rows, ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            values, features, per_row = entries(self.observed, rows)
            weights = np.repeat(self.weights[rows], per_row)
            some = self.has_gaps[features] & (weights > 0)
            yield values[some], features[some], weights[some]

    @cached_property
    def scale(self) -> float:
        """Mean square of the values."""
        total = square = 0.0
        for values, _, weights in self.blocks():
            total += weights.sum()
            square += weights @ values**2
        return max(square / max(total, 1e-300), 1e-300)

    @cached_property
    def histogram(self) -> Histogram:
        least = SMALLEST_SQUARE * self.scale
        if self.observed.observed_weight[self.has_gaps].sum() <= FEW_VALUES:
            parts = [(np.maximum(v**2, least), w) for v, _, w in self.blocks()]
            squares, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
            squares, place = np.unique(squares, return_inverse=True)
            return Histogram(squares, np.bincount(place, weights, len(squares)))
        weight, logs = np.zeros(SQUARE_BINS), np.zeros(SQUARE_BINS)
        first, step = math.log(least), math.log(1e6 / SMALLEST_SQUARE) / SQUARE_BINS
        for values, _, weights in self.blocks():
            log = np.log(np.maximum(values**2, least))
            place = np.minimum((log - first) / step, SQUARE_BINS - 1).astype(np.intp)
            weight += np.bincount(place, weights, SQUARE_BINS)
            logs += np.bincount(place, weights * log, SQUARE_BINS)
        used = weight > 0
        return Histogram(np.exp(logs[used] / weight[used]), weight[used])

    @cached_property
    def nearest(self) -> np.ndarray:
        """(p,) the smallest distance from the reference; inf where no value could be missing."""
        nearest = np.full(len(self.has_gaps), np.inf)
        for values, features, _ in self.blocks():
            np.minimum.at(nearest, features, np.abs(values))
        return nearest

    @cached_property
    def bins(self) -> Bins:
        cuts = np.r_[np.linspace(0.0, 0.1, 24, endpoint=False), np.linspace(0.1, 1.0, 40)]
        shape = len(self.has_gaps), len(cuts)
        centers, weight, scale = np.zeros(shape), np.zeros(shape), np.ones(shape[0])
        for j in np.flatnonzero(self.has_gaps):
            values, weights = self._column(int(j))
            if len(values) == 0:
                continue
            values, place = np.unique(values, return_inverse=True)
            weights = np.bincount(place, weights)
            total = weights.sum()
            middle = (np.cumsum(weights) - 0.5 * weights) / total
            bins = np.searchsorted(cuts, middle, side="right") - 1
            weight[j] = np.bincount(bins, weights, len(cuts))
            centers[j] = np.bincount(bins, weights * values, len(cuts))
            centers[j] /= np.maximum(weight[j], 1e-300)
            spread = weights @ (values - weights @ values / total) ** 2 / total
            scale[j] = math.sqrt(max(spread, 1e-24))
        return Bins(centers, weight, scale)

    @cached_property
    def _columns(self):
        source = self.observed.source
        return source if isinstance(source, np.ndarray) else source.tocsc()

    def _column(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        if self.observed.is_sparse:
            stored = slice(self._columns.indptr[j], self._columns.indptr[j + 1])
            values, weights = (
                self._columns.data[stored],
                self.weights[self._columns.indices[stored]],
            )
        else:
            seen = seen_in(self._columns[:, j], self.observed.missing)
            values, weights = self._columns[seen, j], self.weights[seen]
        return values[weights > 0].astype(np.float64) - self.reference[j], weights[weights > 0]


def entries(
    observed: Observed, rows: slice = slice(None)
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed values less the reference, their features, and how many each row has."""
    source = observed.source[rows]
    if observed.is_sparse:
        values = source.data.astype(np.float64) - observed.reference[source.indices]
        return values, source.indices, np.diff(source.indptr)
    seen = observed.seen(rows)
    features = np.nonzero(seen)[1]
    values = source[seen].astype(np.float64) - observed.reference[features]
    return values, features, np.count_nonzero(seen, axis=1)
