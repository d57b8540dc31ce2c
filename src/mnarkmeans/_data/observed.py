"""Observed: the one form in which every algorithm sees the data.

The table is kept as the caller gave it: a dense array with gaps (NaN, or a code), or a CSR matrix
whose unstored entries are the gaps. ``table`` is how the core reads it, without copying values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core import Table, first_pass
from .gaps import seen_in

LARGEST_WHOLE = 2.0**53  # sums of whole numbers up to this are exact


class TotalWeight(NamedTuple):
    """Of all rows: whether sums of weights are exact, and their sum."""

    exact: bool
    sum: float


@dataclass(frozen=True)
class Observed:
    """A table with gaps, its row weights and what one pass over it told."""

    source: Any  # (n, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (n,) float64; 0 for rows that take no part in the centres
    means: np.ndarray  # (p,) weighted mean of the observed values; the reference where none is
    reference: np.ndarray  # (p,) the point towards which gaps pull
    observed_weight: np.ndarray  # (p,) weight of the rows that observe the feature
    has_gaps: np.ndarray  # (p,) bool: some row does not observe the feature
    extent: tuple[np.ndarray, np.ndarray] | None = None  # (p,) least and largest value of any row

    @property
    def n_rows(self) -> int:
        return self.source.shape[0]

    @property
    def n_features(self) -> int:
        return self.source.shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.source.dtype

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.source, np.ndarray)

    @cached_property
    def table(self) -> Table:
        return Table(self.source, self.missing, self.weights, has_gaps=self.has_gaps)

    @cached_property
    def total_weight(self) -> TotalWeight:
        total = float(self.weights.sum())
        whole = total <= LARGEST_WHOLE and bool(np.all(self.weights == np.floor(self.weights)))
        return TotalWeight(whole, total)

    def seen(self, rows: slice = slice(None)) -> np.ndarray:
        """(n, p) bool, of a dense table: which entries are observed, in all rows or in some."""
        return seen_in(self.source[rows], self.missing)

    def filled_and_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The whole table as a dense array (anything in the gaps), and where the gaps are."""
        if isinstance(self.source, np.ndarray):
            return self.source, ~self.seen()
        gaps = np.ones(self.source.shape, bool)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.source.indptr))
        gaps[rows, self.source.indices] = False
        return self.source.toarray(), gaps

    def take(self, rows: np.ndarray, means: np.ndarray | None = None) -> Observed:
        """The table of some rows, with the same reference; means of its own unless given."""
        source, weights = self.source[rows], self.weights[rows]
        if means is not None:
            return replace(self, source=source, weights=weights, means=means)
        first = first_pass(Table(source, self.missing, weights), threads=1)
        seen = first.counts > 0
        own = np.where(seen, first.sums / np.where(seen, first.counts, 1.0), self.reference)
        return Observed(
            source, self.missing, weights, own, self.reference, first.counts,
            first.observed < len(weights), (first.least, first.most),
        )  # fmt: skip

    def take_columns(self, columns: np.ndarray) -> Observed:
        """The table of some features; rows that observe none of them do not count."""
        source = self.source[:, columns]
        extent = self.extent and (self.extent[0][columns], self.extent[1][columns])
        part = replace(
            self, source=source, means=self.means[columns], reference=self.reference[columns],
            observed_weight=self.observed_weight[columns], has_gaps=self.has_gaps[columns],
            extent=extent,
        )  # fmt: skip
        seen = first_pass(part.table, threads=1).seen > 0
        return part if seen.all() else replace(part, weights=np.where(seen, self.weights, 0.0))

    def zero_filled(self) -> tuple[Any, Any]:
        """Values measured from the reference with gaps as 0, and 1 where observed; float64.

        Both dense, or both CSR of the same structure.
        """
        if isinstance(self.source, np.ndarray):
            seen = self.seen()
            # R's NA is a NaN that complains when it is subtracted from: gaps are left alone.
            shifted = np.subtract(self.source, self.reference, where=seen, out=np.zeros(seen.shape))
            return shifted, seen.astype(np.float64)
        source = self.source
        values = source.data.astype(np.float64) - self.reference[source.indices]
        return tuple(
            sparse.csr_array((entries, source.indices, source.indptr), shape=source.shape)
            for entries in (values, np.ones(len(values)))
        )
