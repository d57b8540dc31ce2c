"""Observed: the one form in which every algorithm sees the data.

The table is kept as the caller gave it (a dense array with gaps, or a CSR matrix whose
unstored entries are the gaps) and handed out in blocks of consecutive rows. A block is a
plain named tuple of arrays, which compiled kernels take apart by its type:

- ``Dense(values, missing)``: C-contiguous rows; an entry is a gap when it is NaN or equal to
  ``missing``.
- ``Csr(data, indices, indptr)``: stored entries are observed, all others are gaps.

The rows are cut into *slabs*. The cut depends on the shape of the problem only, never on the
number of threads, and sums are added in slab order: that is what makes results bit-identical
whatever the number of threads.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

# Tables with fewer entries than this are one slab: they are solved in one compiled call.
ENTRIES_OF_ONE_SLAB = 1 << 19
ENTRIES_PER_SLAB = 1 << 18
MOST_SLABS = 64


class Dense(NamedTuple):
    """Rows of a dense table; NaN and ``missing`` mark the gaps."""

    values: np.ndarray  # (n, p) float32 or float64, C-contiguous
    missing: float


class Packed(NamedTuple):
    """Dense rows together with their panels (``_panel_rows.pack``)."""

    values: np.ndarray
    missing: float
    panels: np.ndarray  # float32, the values of one panel after the other
    masks: np.ndarray  # float32, the same; empty where gaps are filled
    squares: np.ndarray  # float32, |x'|^2 of the rows
    complete: np.ndarray  # bool, panels that have no gaps


class Csr(NamedTuple):
    """Rows of a CSR matrix; what is not stored is a gap."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray  # (n + 1,), offsets into the whole of data


@dataclass(frozen=True)
class Observed:
    """A table with gaps, its row weights and what one pass over it told."""

    source: Any  # (n, p): an ndarray with gaps, or a CSR array of the observed entries
    missing: float
    weights: np.ndarray  # (n,) float64; 0 for rows that take no part in the centres
    means: np.ndarray  # (p,) weighted mean of the observed values; the reference where none is
    reference: np.ndarray  # (p,) the point towards which gaps pull
    observed_weight: np.ndarray  # (p,) weight of the rows that observe the feature
    whole_weights: bool  # all weights are whole numbers: sums of weights are exact

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
    def _entries(self) -> int:
        """Entries a pass has to look at: the stored ones of a sparse table."""
        return self.source.nnz if self.is_sparse else self.n_rows * self.n_features

    @property
    def shift(self) -> np.ndarray:
        """What is subtracted from every value inside the sums, so that they do not cancel.

        The dense kernels may use any shift; the CSR kernel needs the reference itself.
        """
        return self.reference if self.is_sparse else self.means

    def block(self, start: int = 0, stop: int | None = None) -> Dense | Csr:
        """Rows ``start`` to ``stop``; a view wherever the memory layout allows it."""
        stop = self.n_rows if stop is None else stop
        if not isinstance(self.source, np.ndarray):
            return Csr(self.source.data, self.source.indices, self.source.indptr[start : stop + 1])
        return Dense(np.ascontiguousarray(self.source[start:stop]), self.missing)

    def filled_and_gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """The whole table as a dense array (anything in the gaps), and where the gaps are."""
        if isinstance(self.source, np.ndarray):
            return self.source, np.isnan(self.source) | (self.source == self.missing)
        gaps = np.ones(self.source.shape, bool)
        rows = np.repeat(np.arange(self.n_rows), np.diff(self.source.indptr))
        gaps[rows, self.source.indices] = False
        return self.source.toarray(), gaps

    def take(self, rows: np.ndarray, means: np.ndarray | None = None) -> Observed:
        """The table of some rows, with the same reference; means of its own unless given."""
        source = self.source[rows]
        part = replace(self, source=source, weights=self.weights[rows])
        if means is not None:
            return replace(part, means=means)
        if self.is_sparse:
            seen = sparse.csr_array((np.ones(len(source.data)), source.indices, source.indptr),
                                    shape=source.shape)  # fmt: skip
            counts, sums = part.weights @ seen, part.weights @ source
        else:
            gaps = np.isnan(source) | (source == self.missing)
            counts = part.weights @ ~gaps
            sums = part.weights @ np.where(gaps, 0.0, source)
        own = np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), self.reference)
        return replace(part, means=own, observed_weight=counts)

    def zero_filled(self) -> tuple[Any, Any]:
        """Values measured from the reference with gaps as 0, and 1 where observed; float64.

        Both dense, or both CSR of the same structure.
        """
        if isinstance(self.source, np.ndarray):
            values, gaps = self.filled_and_gaps()
            return np.where(gaps, 0.0, values - self.reference), (~gaps).astype(np.float64)
        source = self.source
        values = source.data.astype(np.float64) - self.reference[source.indices]
        return tuple(
            sparse.csr_array((entries, source.indices, source.indptr), shape=source.shape)
            for entries in (values, np.ones(len(values)))
        )

    def slabs(self, bytes_of_sums: int = 0, budget: int = 1 << 27) -> list[tuple[int, int]]:
        """Cut the rows into slabs, few enough that their sums fit into ``budget`` bytes."""
        n, entries = self.n_rows, self._entries
        count = 1 if entries <= ENTRIES_OF_ONE_SLAB else entries // ENTRIES_PER_SLAB
        count = min(count, MOST_SLABS, n, max(1, budget // max(bytes_of_sums, 1)))
        edges = np.linspace(0, n, max(count, 1) + 1).astype(np.int64).tolist()
        return list(itertools.pairwise(edges))
