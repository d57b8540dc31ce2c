"""The first pass over a table, whole or in blocks: what is found adds up over any cut of the rows.

Infinite values and sums that overflow are refused here, in memory and on a cluster alike.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .. import _core as core
from . import csr
from .observed import LARGEST_WHOLE, TotalWeight


class Found(NamedTuple):
    """What the first pass tells. Weights are those of the rows that observe anything."""

    n_rows: int
    n_usable: int  # rows with a weight and an observed value
    n_unseen: int  # rows without an observed value
    n_entries: int  # observed entries
    weight: float  # of all rows
    whole_weights: bool  # all weights are whole numbers
    counts: np.ndarray  # (p,) weight of the rows that observe the feature
    sums: np.ndarray  # (p,) weighted sum of its values
    least: np.ndarray  # (p,) of the rows with a weight; inf where none observes it
    observed: np.ndarray  # (p,) rows that observe the feature, whatever their weight
    lowest: np.ndarray  # (p,) of all rows; inf where none observes it
    highest: np.ndarray  # (p,) likewise, -inf

    @property
    def has_gaps(self) -> np.ndarray:
        """(p,) bool: some row does not observe the feature."""
        return self.observed < self.n_rows

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """(p,) least and largest value of any row."""
        return self.lowest, self.highest

    @property
    def total_weight(self) -> TotalWeight:
        return TotalWeight(self.whole_weights and self.weight <= LARGEST_WHOLE, self.weight)

    def means(self, reference: np.ndarray) -> np.ndarray:
        """(p,) of the observed values, by weight; the reference where there are none."""
        seen = self.counts > 0
        return np.where(seen, self.sums / np.where(seen, self.counts, 1.0), reference)


class Looked(NamedTuple):
    """A table that the solvers can rely on."""

    source: np.ndarray | sparse.csr_array  # as it came, or a CSR matrix mended
    weights: np.ndarray  # (n,) 0 for rows without an observed value
    found: Found


def look_over(X, missing: float, weights: np.ndarray, threads: int) -> Looked:
    """The first pass; a CSR matrix that is not in canonical form is mended."""
    X = csr.narrowed(X) if sparse.issparse(X) else X
    first = core.first_pass(core.Table(X, missing, weights), threads)
    if first.malformed >= 0:
        X = csr.mended(X)
        first = core.first_pass(core.Table(X, missing, weights), threads)
    if first.infinite >= 0:
        _refuse_infinite(X, first.infinite)
    if sparse.issparse(X) and csr.stores_gaps(X, missing, first.sums):
        X = csr.without_gaps(X, missing)
        first = core.first_pass(core.Table(X, missing, weights), threads)
    everywhere = first
    if not weights.all():  # rows without a weight are left out of `least`, but get labels too
        everywhere = core.first_pass(core.Table(X, missing, np.ones(len(weights))), threads)
    unseen = first.seen == 0
    if unseen.any():
        weights = np.where(unseen, 0.0, weights)
    found = Found(
        n_rows=len(unseen),
        n_usable=int(np.count_nonzero(weights)),
        n_unseen=int(np.count_nonzero(unseen)),
        n_entries=int(first.seen.sum(dtype=np.int64)),
        weight=float(weights.sum()),
        whole_weights=bool(np.all(weights == np.floor(weights))),
        counts=first.counts,
        sums=first.sums,
        least=first.least,
        observed=first.observed,
        lowest=everywhere.least,
        highest=everywhere.most,
    )
    return Looked(X, weights, found)


def merged(parts: list[Found]) -> Found:
    """What was found in all blocks together."""
    columns: Any = Found._make(zip(*parts, strict=True))
    return Found(
        n_rows=sum(columns.n_rows),
        n_usable=sum(columns.n_usable),
        n_unseen=sum(columns.n_unseen),
        n_entries=sum(columns.n_entries),
        weight=sum(columns.weight),
        whole_weights=all(columns.whole_weights),
        counts=np.sum(columns.counts, axis=0),
        sums=np.sum(columns.sums, axis=0),
        least=np.min(columns.least, axis=0),
        observed=np.sum(columns.observed, axis=0),
        lowest=np.min(columns.lowest, axis=0),
        highest=np.max(columns.highest, axis=0),
    )


def check_found(found: Found, *, allow_all_missing: bool = False) -> None:
    """Refuse tables that have nothing to cluster, or too large values."""
    if not found.n_entries and not allow_all_missing:
        raise ValueError(
            f"All {found.n_rows} x {len(found.counts)} values are missing; there is nothing to "
            "cluster. Check missing_values and how the table was read."
        )
    if not found.n_usable and not allow_all_missing:
        raise ValueError(
            "sample_weight is zero for every row that has an observed value; at least one row must "
            "count."
        )
    if not np.isfinite(found.sums).all():
        raise ValueError(
            f"The values of column {int(np.flatnonzero(~np.isfinite(found.sums))[0])} are too "
            "large: their sum overflows. Rescale the data."
        )


def check_enough_rows(n_usable: int, n_rows: int, n_clusters: int, name="n_clusters") -> None:
    if n_usable < n_clusters:
        raise ValueError(
            f"n_samples={n_usable} usable rows (with a weight and an observed value, of {n_rows}) "
            f"should be >= {name}={n_clusters}. Ask for fewer clusters."
        )


def _refuse_infinite(X, row: int):
    values = X[[row]]
    values = values if isinstance(values, np.ndarray) else values.toarray()
    column = int(np.flatnonzero(np.isinf(values[0]))[0])
    raise ValueError(
        f"Input X contains infinity: {values[0, column]} in row {row}, column {column}. "
        "Mark values that are not known as NaN, and cap or remove the others."
    )
