"""Observed: the one form in which every algorithm sees the data, gaps and all.

The table is kept as the caller gave it: a dense array with missing values (NaN, or a code), or a
CSR matrix whose unstored entries are missing. ``table`` is how the core reads it, without copying
values.

    observed(x)  =  not isnan(x)  and  x != missing

(``Dense::is_gap`` in ``src/core/rows.h`` is the same for the core.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from . import _core as core
from ._core import Table, first_pass

# --- missing values -------------------------------------------------------------------------------


def code_in(dtype: np.dtype, missing: float) -> float:
    """The code of a gap as it reads in the precision of a table; NaN if there is none."""
    return float(dtype.type(missing))


def seen_in(values: np.ndarray, missing: float) -> np.ndarray:
    """Where values are observed."""
    seen = ~np.isnan(values)
    if not math.isnan(missing):
        seen &= values != missing
    return seen


def with_nan(X: Any, missing: float) -> Any:
    """An array or sparse matrix with NaN in every gap that has an entry; X itself if it is so."""
    missing = code_in(X.dtype, missing)
    if math.isnan(missing):
        return X
    if isinstance(X, np.ndarray):
        return np.where(seen_in(X, missing), X, X.dtype.type(np.nan))
    X = X.tocsr(copy=True)
    X.data = with_nan(X.data, missing)
    return X


def without_mask(X: Any) -> Any:
    """A masked array as floats with NaN where it is masked; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    values: Any = X if X.dtype.kind == "f" else X.astype(float)
    return values.filled(np.nan)


def values_with_nan(X: Any, missing_values: Any = np.nan) -> Any:
    """An array, frame or sparse matrix as floats with NaN in the gaps; None codes no gap.

    For what describes a table; what is fitted is validated (``_validation``).
    """
    X = without_mask(X)
    to_numpy = getattr(X, "to_numpy", None)
    values = X if sparse.issparse(X) else np.asarray(to_numpy() if to_numpy is not None else X)
    if values.dtype != np.float32:  # in which the code of a gap is another number
        values = values.astype(float, copy=False)
    values = with_nan(values, np.nan if missing_values is None else missing_values)
    return values.astype(float, copy=False)


def zero_filled(X: Any, point: np.ndarray, missing: float = math.nan) -> tuple[Any, Any]:
    """Values minus a point (p,) with gaps as 0, and 1 where observed; float64.

    Both dense, or both CSR of the same structure.
    """
    stored = sparse.issparse(X)
    entries, point = (X.data, point[X.indices]) if stored else (X, point)
    seen = seen_in(entries, missing)
    # R's NA is a NaN that complains when it is subtracted from: gaps are left alone.
    values = np.subtract(entries, point, where=seen, out=np.zeros(seen.shape))
    parts = values, seen.astype(np.float64)
    if not stored:
        return parts
    values, seen = (sparse.csr_array((part, X.indices, X.indptr), shape=X.shape) for part in parts)
    return values, seen


# --- the table ------------------------------------------------------------------------------------

CACHED_ENTRIES = 1 << 15  # of a block of rows that stays in the cache
LARGEST_WHOLE = 2.0**53  # sums of whole numbers up to this are exact


@dataclass(frozen=True)
class Observed:
    """A table with missing values, its row weights and what one pass over it has summed up."""

    source: Any  # (n, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (n,) float64; 0 for rows that take no part in the centres
    means: np.ndarray  # (p,) weighted mean of the observed values; the reference where none is
    reference: np.ndarray  # (p,) the point towards which gaps pull
    observed_weight: np.ndarray  # (p,) weight of the rows that observe the feature
    has_gaps: np.ndarray  # (p,) bool: some row does not observe the feature
    extent: tuple[np.ndarray, np.ndarray] | None = (
        None  # (p,) smallest and largest value of any row
    )

    @property
    def n_rows(self) -> int:
        return self.source.shape[0]

    @property
    def n_usable(self) -> int:
        """Rows with a weight and an observed value."""
        return int(np.count_nonzero(self.weights))

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
    def total_weight(self) -> tuple[bool, float]:
        """Whether sums of weights are exact, and the sum of all."""
        total = float(self.weights.sum())
        whole = total <= LARGEST_WHOLE and bool(np.all(self.weights == np.floor(self.weights)))
        return whole, total

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
            first.observed < len(weights), (first.lowest, first.highest),
        )  # fmt: skip

    def sample(self, size: int, seed: int = 0) -> np.ndarray:
        """Numbers of ``size`` rows that have a weight, drawn at random; all of them if there are no
        more. In the order of the table."""
        counting = np.flatnonzero(self.weights)
        if len(counting) <= size:
            return counting
        drawn = np.random.default_rng(seed).choice(len(counting), size, replace=False)
        return counting[np.sort(drawn)]

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
        """Values measured from the reference with gaps as 0, and 1 where observed."""
        return zero_filled(self.source, self.reference, self.missing)

    def filled_with(self, point: np.ndarray) -> Any:
        """The values less a point (p,), 0 in the gaps, divided by the largest of them; float32.

        Dense, or CSR. None if all are 0, or some have no square.
        """
        assert self.extent is not None  # only samples of rows on a cluster have none
        lowest, highest = self.extent
        scale = np.max(np.maximum(point - lowest, highest - point), initial=0.0)
        if not 0.0 < scale < math.inf:
            return None
        source = self.source
        if not isinstance(source, np.ndarray):
            values = ((source.data - point[source.indices]) / scale).astype(np.float32)
            return sparse.csr_array((values, source.indices, source.indptr), source.shape)
        filled = np.empty(source.shape, np.float32)
        step = max(1, CACHED_ENTRIES // self.n_features)
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            values = core.fill_rows(self.table, np.arange(start, stop), point) - point
            filled[start:stop] = values / scale
        return filled

    def impute(self, centers: np.ndarray, labels: np.ndarray, threads: int) -> np.ndarray:
        """(n, p) of the table's type: gaps filled from the centre (k, p) of the row's label."""
        filled = np.empty(self.source.shape, self.dtype)
        mu = np.ascontiguousarray(centers, dtype=np.float64)
        core.impute(self.table, mu, labels, filled, threads)
        return filled
