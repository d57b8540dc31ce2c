"""Observed: the form in which every algorithm reads the data, with its missing values.

The table is kept as the caller gave it: a dense array with missing values (NaN, or a code), or a
CSR matrix whose unstored entries are missing. ``table`` is how the core reads it, without copying
values.

    observed(x)  =  not isnan(x)  and  x != missing

(``Dense::is_gap`` in ``src/core/rows.h`` is the same for the core.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from ._core import Table, first_pass

# --- missing values -------------------------------------------------------------------------------


def is_observed(values: np.ndarray, missing: float) -> np.ndarray:
    """Where values are observed."""
    observed = ~np.isnan(values)
    if not math.isnan(missing):
        observed &= values != missing
    return observed


def with_nan(X: Any, missing: float) -> Any:
    """An array or sparse matrix with NaN for every entry that is missing; X itself if it has."""
    missing = float(X.dtype.type(missing))  # in the precision of the table
    if math.isnan(missing):
        return X
    if isinstance(X, np.ndarray):
        return np.where(is_observed(X, missing), X, X.dtype.type(np.nan))
    X = X.tocsr(copy=True)
    X.data = with_nan(X.data, missing)
    return X


def without_mask(X: Any) -> Any:
    """A masked array as floats with NaN where it is masked; anything else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    values: Any = X if X.dtype.kind == "f" else X.astype(float)
    return values.filled(np.nan)


def zero_filled(X: Any, point: np.ndarray, missing: float = math.nan) -> tuple[Any, Any]:
    """Values minus a point (p,), 0 where missing; and 1 where observed, else 0; float64.

    Both dense, or both CSR of the same structure.
    """
    stored = sparse.issparse(X)
    entries, point = (X.data, point[X.indices]) if stored else (X, point)
    observed = is_observed(entries, missing)
    # R's NA is a signalling NaN: missing values take no part in the subtraction.
    values = np.subtract(entries, point, where=observed, out=np.zeros(observed.shape))
    parts = values, observed.astype(np.float64)
    if not stored:
        return parts
    values, observed = (sparse.csr_array((a, X.indices, X.indptr), shape=X.shape) for a in parts)
    return values, observed


ENTRIES_AT_ONCE = 1 << 20


def sums_by_cluster(
    X: Any, memberships: Any, point: np.ndarray, missing: float = math.nan
) -> np.ndarray:
    """(3, k, p): counts, sums and sums of squares of the observed values minus a point (p,), where
    row i counts for cluster l by ``memberships`` (n, k), dense or CSR."""
    entries, (n, p) = X.nnz if sparse.issparse(X) else X.size, X.shape
    totals = np.zeros((3, memberships.shape[1], p))
    for rows in gen_batches(n, max(1, ENTRIES_AT_ONCE * n // max(entries, 1))):
        values, observed = zero_filled(X[rows], point, missing)
        shares = memberships[rows].T
        if sparse.issparse(shares) or not sparse.issparse(X):
            shares = sparse.csr_array(shares)  # most are 0, and BLAS would take all cores
        for total, part in zip(totals, (observed, values, values * values), strict=True):
            product = shares @ part
            total += product.toarray() if sparse.issparse(product) else product
    return totals


# --- the table ------------------------------------------------------------------------------------

LARGEST_WHOLE = 2.0**53  # sums of whole numbers up to this are exact


class Summary(NamedTuple):
    """Counts, sums and extremes of a table. Weights are those of rows that observe anything."""

    n_rows: int
    n_usable: int  # rows with a weight and an observed value
    n_unobserved: int  # rows without an observed value
    weight: float  # of all rows
    whole_weights: bool  # all weights are whole numbers
    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of its values
    observed: np.ndarray  # (p,) rows that observe the feature, whatever their weight
    minimum: np.ndarray  # (p,) of the rows with a weight; inf where none observes it
    maximum: np.ndarray  # (p,) likewise, -inf
    lowest: np.ndarray  # (p,) of all rows: those without a weight get labels too
    highest: np.ndarray  # (p,) likewise

    @property
    def has_gaps(self) -> np.ndarray:
        """(p,) bool: some row does not observe the feature."""
        return self.observed < self.n_rows

    @property
    def total_weight(self) -> tuple[bool, float]:
        """Whether sums of weights are exact, and the sum of all."""
        return self.whole_weights and self.weight <= LARGEST_WHOLE, self.weight

    def means(self, reference: np.ndarray) -> np.ndarray:
        """(p,) of the observed values, by weight; the reference where there are none."""
        observed = self.counts > 0
        return np.where(observed, self.sums / np.where(observed, self.counts, 1.0), reference)


def summary_of(
    source: Any, missing: float, weights: np.ndarray, threads: int = 1,
    first: Any = None,
) -> tuple[np.ndarray, Summary]:  # fmt: skip
    """The weights, made 0 for rows without an observed value, and the summary of a table.

    ``first``: the result of the first pass over it, if there was one.
    """
    every = first = first or first_pass(Table(source, missing, weights), threads)
    if not weights.all():
        every = first_pass(Table(source, missing, np.ones(len(weights))), threads)
    unobserved = first.row_counts == 0
    weights = np.where(unobserved, 0.0, weights) if unobserved.any() else weights
    return weights, Summary(
        len(weights), int(np.count_nonzero(weights)), int(np.count_nonzero(unobserved)),
        float(weights.sum()), bool(np.all(weights == np.floor(weights))),
        first.counts, first.sums, first.observed, first.lowest, first.highest,
        every.lowest, every.highest,
    )  # fmt: skip


def merge_summaries(parts: list[Summary]) -> Summary:
    """Of all blocks of rows together."""
    smallest, largest = partial(np.min, axis=0), partial(np.max, axis=0)
    merge: dict[str, Any] = {
        "whole_weights": all, "minimum": smallest, "maximum": largest,
        "lowest": smallest, "highest": largest,
    }  # fmt: skip
    columns = zip(Summary._fields, zip(*parts, strict=True), strict=True)
    return Summary(**{name: merge.get(name, sum)(values) for name, values in columns})


@dataclass(frozen=True)
class Observed:
    """A table with missing values, its row weights and what is known of it."""

    source: Any  # (n, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (n,) float64; 0 for rows that take no part in the centres
    summary: Summary  # of a sample that was only drawn: of the table it is from
    reference: np.ndarray  # (p,) the point towards which gaps pull
    means: np.ndarray  # (p,) weighted mean of the observed values; the reference where none is

    @classmethod
    def of(
        cls, source: Any, weights: np.ndarray, reference: np.ndarray,
        missing: float = math.nan, threads: int = 1,
    ) -> Observed:  # fmt: skip
        """A table that needs no validation."""
        weights, summary = summary_of(source, missing, weights, threads)
        return cls(source, missing, weights, summary, reference, summary.means(reference))

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

    @property
    def has_gaps(self) -> np.ndarray:
        """(p,) bool: some row does not observe the feature."""
        return self.summary.has_gaps

    @cached_property
    def table(self) -> Table:
        return Table(self.source, self.missing, self.weights, has_gaps=self.has_gaps)

    def filled_and_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The whole table as a dense array, and where it is missing (any value may stand there)."""
        if isinstance(self.source, np.ndarray):
            return self.source, ~is_observed(self.source, self.missing)
        gaps = np.ones(self.source.shape, bool)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.source.indptr))
        gaps[rows, self.source.indices] = False
        return self.source.toarray(), gaps

    def draw(self, rows: np.ndarray) -> Observed:
        """Some rows, with the summary (but for the weight) and the means of the whole table."""
        weights = self.weights[rows]
        summary = self.summary._replace(weight=float(weights.sum()))
        return replace(self, source=self.source[rows], weights=weights, summary=summary)

    def take(self, rows: np.ndarray) -> Observed:
        """The table of some rows."""
        return Observed.of(self.source[rows], self.weights[rows], self.reference, self.missing)

    def take_columns(self, columns: np.ndarray) -> Observed:
        """The table of some features; rows that observe none of them do not count."""
        source, reference = self.source[:, columns], self.reference[columns]
        part = Observed.of(source, self.weights, reference, self.missing)
        return replace(part, means=self.means[columns])

    def sample(self, size: int) -> np.ndarray:
        """Numbers, in increasing order, of ``size`` random rows with a weight, or of all these."""
        counting = np.flatnonzero(self.weights)
        if len(counting) <= size:
            return counting
        drawn = np.random.default_rng(0).choice(len(counting), size, replace=False)
        return counting[np.sort(drawn)]
