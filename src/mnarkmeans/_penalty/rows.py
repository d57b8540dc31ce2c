"""The rows of a table as the choices of this folder see them, and fits to begin with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._core import Starts, pass_
from .._core.likelihood import SoftSums
from .._core.pattern import Distances, distances_from
from .._observed import Observed

ROWS_AT_ONCE = 1 << 15
_MAGNITUDE_BINS = 96
_SMALLEST_MAGNITUDE = 1e-12  # share of the mean square below which x counts as x = reference


class Start(NamedTuple):
    """A fit to begin with: centres (k, p) and the lam that led to them."""

    centers: np.ndarray
    lam: Any  # a number, or one for every feature


@dataclass(frozen=True)
class Magnitudes:
    """Histogram of the observed squared distances to the reference, in units of their mean.

    Bins are equal in the logarithm and stand at the mean of their members. A feature without gaps
    has no part in it: it says nothing about how values get lost.
    """

    square: np.ndarray
    weight: np.ndarray
    mean_square: float  # of all observed values; 0 if none could have been lost
    total: float  # their weight; a part of it may not have been at risk of being lost

    @classmethod
    def of(cls, found: Distances) -> Magnitudes:
        used = found.weights > 0
        weight = found.weights[used]
        mean_square = found.square / found.total if len(weight) else 0.0
        return cls(np.exp(found.logs[used] / weight), weight, mean_square, found.total)


class Rows:
    """The rows of a table, measured from the reference in units of the root mean square.

    Nothing is copied: the core reads the table as it is, and what comes out is brought into these
    units, in which bounds and tolerances suit any scale.
    """

    def __init__(self, observed: Observed, threads: int = 1):
        weights = observed.weights
        self.observed, self.table, self.threads = observed, observed.table, threads
        self.reference, self.has_gaps = observed.reference, observed.has_gaps
        found = distances_from(
            self.table, self.reference, self.has_gaps, _MAGNITUDE_BINS, _SMALLEST_MAGNITUDE
        )
        self.magnitudes = Magnitudes.of(found)
        self.scale = self.magnitudes.mean_square or 1.0
        self.root = math.sqrt(self.scale)
        self.weights = weights
        self.n_rows = float(weights.sum())
        self.observed_weight = found.total
        self.gaps_per_row = observed.n_features - found.per_row
        # A sum of products, not a matrix product: its threads would only wait for each other.
        self.missing_weight = float((weights * self.gaps_per_row).sum())
        self.share_below = found.below / max(self.observed_weight, 1e-300)
        least = found.least
        # Of a feature never observed, the largest of the others.
        some = np.isfinite(least)
        most = least[some].max() if some.any() else 0.0
        self.least = np.where(some, least, most) / self.root
        self._summed: list[Start] = []  # fits, and what `hard_sums` said of them
        self._sums: Any = None

    @property
    def reach_reference(self) -> bool:
        """A feature with gaps has a value at the reference itself: no threshold around it."""
        return bool(self.least[self.has_gaps].min() <= 1e-6)

    @property
    def tell_nothing(self) -> bool:
        """No gaps, or no value away from the reference."""
        return min(self.missing_weight, self.observed_weight, self.magnitudes.mean_square) <= 0

    @property
    def missing_share(self) -> float:
        return self.missing_weight / (self.missing_weight + self.observed_weight)

    def hard_sums(self, starts: Sequence[Start]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes (R, k), sums and counts (R, k, p) of the rows by the labels that fits give them.

        Fits that were among the last ones asked for need no other look at the rows.
        """
        among = {id(start): index for index, start in enumerate(self._summed)}
        if all(id(start) in among for start in starts):
            chosen = [among[id(start)] for start in starts]
            sizes, sums, counts = self._sums
            return sizes[chosen], sums[chosen], counts[chosen]
        self._summed, self._sums = list(starts), self._hard_sums(starts)
        return self._sums

    def _hard_sums(self, starts: Sequence[Start]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mu = np.array([start.centers for start in starts])
        mu += self.reference
        lam = np.empty((len(mu), mu.shape[2]))
        for own, start in zip(lam, starts, strict=True):
            own[:] = start.lam
        fits = Starts(
            mu, lam, self.reference, self.reference, n_rows=self.table.n, max_iter=1, tol=0.0,
            weights=(False, self.n_rows),
        )  # fmt: skip
        pass_(self.table, fits, np.arange(len(mu)), fresh=True, known=None, threads=self.threads)
        return fits.stats.sizes, fits.stats.sums / self.root, fits.stats.counts


def stored_entries(observed: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed values less the reference, their features, and how many each row has."""
    source = observed.source
    if observed.is_sparse:
        values = source.data.astype(np.float64) - observed.reference[source.indices]
        return values, source.indices, np.diff(source.indptr)
    seen = observed.seen()
    entries = np.flatnonzero(seen)
    features = entries % observed.n_features
    values = source.take(entries).astype(np.float64) - observed.reference[features]
    return values, features, np.count_nonzero(seen, axis=1)


def sums_of(observed: Observed, memberships: np.ndarray, shift: np.ndarray) -> SoftSums:
    """The sums that memberships (n, k) give, of values less the shift; a slab of rows at a time."""
    (n, k), p = memberships.shape, observed.n_features
    sums, counts, squares = (np.zeros((k, p)) for _ in range(3))
    shared = memberships * observed.weights[:, None]
    for begin in range(0, n, ROWS_AT_ONCE):
        part = slice(begin, begin + ROWS_AT_ONCE)
        R = shared[part].T
        source = observed.source[part]
        if observed.is_sparse:
            seen = source.copy()
            values = source.astype(np.float64)
            values.data = values.data - shift[values.indices]
            seen.data = np.ones(len(seen.data))
            counts += R @ seen
            sums += R @ values
            values.data = values.data**2
            squares += R @ values
            continue
        seen = observed.seen(part)
        values = np.subtract(source, shift, where=seen, out=np.zeros(source.shape))
        counts += R @ seen.astype(np.float64)
        sums += R @ values
        squares += R @ values**2
    return SoftSums(shared.sum(axis=0), sums, counts, squares, 0.0)
