"""What goes into the core: tables, centres, sums, starts.

``src/core/core.h`` documents the structs; what goes into one is checked there (``library``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .library import structs

# The cut into slabs depends on the shape of a problem only, so that threads change nothing.
ENTRIES_OF_ONE_SLAB = 1 << 19
ENTRIES_PER_SLAB = 1 << 18
FEW_ROWS = 256  # of a wide table, cut into slabs, hardly fill the lanes of a panel

# glibc hands memory back to the system when more of it lies free than twice the largest block it
# has seen freed, up to 32 MB: in a process that had no large array yet, every step of a search
# among wide tables would ask for the same pages anew. Nobody touches this block; it is freed at
# once.
np.empty(31 << 20, np.uint8)


def shaped(array: np.ndarray | None, *shape: int) -> np.ndarray | None:
    """An array of the shape that the core takes it for; its type is checked where it goes in."""
    if array is not None and array.shape != shape:
        raise TypeError(f"the core takes an array of shape {shape} here; got {array.shape}")
    return array


def check_numbers(numbers, limit: int) -> np.ndarray:
    """Row or start numbers as the core reads them: contiguous int64 within 0 .. limit - 1.

    NumPy's own integers are int32 on some systems (Windows with NumPy 1).
    """
    numbers = np.ascontiguousarray(numbers)
    if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
        raise TypeError(
            f"the core takes a list of whole numbers; got {numbers.dtype} of shape {numbers.shape}"
        )
    numbers = numbers.astype(np.int64, copy=False)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < limit):
        raise IndexError(f"numbers must be from 0 to {limit - 1}")
    return numbers


def check_labels(labels: np.ndarray, n: int, k: int) -> np.ndarray:
    """Labels (n,) from 0 to k - 1."""
    shaped(labels, n)
    if n and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}")
    return labels


class Table:
    """Rows with gaps and their weights, as the core reads them. Values are not copied."""

    def __init__(self, source: Any, missing: float, weights: np.ndarray, *, has_gaps=None, first=0):
        n, p = source.shape
        self.source, self.weights, self.has_gaps = source, weights, has_gaps
        self.n, self.p = n, p
        self.is_sparse = not isinstance(source, np.ndarray)
        values = source.data if self.is_sparse else source
        if values.dtype not in (np.float32, np.float64):
            raise TypeError(f"the core takes float32 and float64; got {values.dtype}")
        own = structs.Table(
            is_sparse=self.is_sparse, is_double=values.dtype == np.float64, n=n, p=p,
            missing=missing, weights=shaped(weights, n),
            has_gaps=shaped(has_gaps, p), first=first,
            one_slab=ENTRIES_OF_ONE_SLAB, per_slab=ENTRIES_PER_SLAB,
        )  # fmt: skip
        if self.is_sparse:
            self._take_sparse(own, source)
        else:
            self._take_dense(own, source)
        self.struct = own

    def _take_sparse(self, own, source) -> None:
        stored = len(source.data)
        starts = self._starts = source.indptr.astype(np.int64)
        indices = self._indices = source.indices.astype(np.int32, copy=False)
        if starts[0] < 0 or starts[-1] > stored or len(indices) != stored:
            raise ValueError("a CSR matrix points beyond its stored entries")
        own.starts = shaped(starts, self.n + 1)
        own.values = shaped(source.data, stored)
        own.indices = shaped(indices, stored)
        self.entries = int(starts[-1] - starts[0])

    def _take_dense(self, own, source) -> None:
        size = source.itemsize
        if any(stride % size for stride in source.strides) or not source.flags.aligned:
            source = self.source = np.ascontiguousarray(source)
        own.values = source
        own.row_stride, own.column_stride = (stride // size for stride in source.strides)
        if self.p == 1:  # the stride of a single column says nothing
            own.column_stride = 1
        self.entries = self.n * self.p

    @property
    def is_small(self) -> bool:
        """Whether its starts are run in one call, side by side (``lloyd.h``), not slab by slab."""
        most = self.struct.one_slab
        return self.entries <= (4 * most if self.n <= FEW_ROWS else most)


class Centers:
    """Centres (G, k, p) of G starts with their penalties (G, p), in the units of the data."""

    def __init__(self, mu, lam, reference, shift):
        groups, k, p = mu.shape
        self.arrays = mu, lam, reference, shift
        self.groups, self.k, self.p = mu.shape
        self.struct = structs.Centers(
            groups, k, mu, shaped(lam, groups, p),
            shaped(reference, p), shaped(shift, p),
        )  # fmt: skip


class Stats(NamedTuple):
    """Sums over rows, for R starts of k clusters each. They add up over any split of the rows."""

    sums: np.ndarray  # (R, k, p) of the observed values, less the shift
    counts: np.ndarray  # (R, k, p) weight of the rows that observe the feature
    sizes: np.ndarray  # (R, k) weight of the rows
    keys: np.ndarray  # (R, k) uint64, sum of the rows' keys: tells partitions apart
    squares: np.ndarray  # (R,) of all observed values, less the shift, squared

    @classmethod
    def zeros(cls, n_starts: int, k: int, p: int) -> Stats:
        shape = n_starts, k
        return cls(
            np.zeros((*shape, p)), np.zeros((*shape, p)), np.zeros(shape),
            np.zeros(shape, np.uint64), np.zeros(n_starts),
        )  # fmt: skip

    def add(self, part: Stats) -> None:
        for total, piece in zip(self, part, strict=True):
            total += piece


def stats_struct(stats: Stats):
    shape = stats.sums.shape
    return structs.Stats(
        stats.sums, shaped(stats.counts, *shape), shaped(stats.sizes, *shape[:2]),
        shaped(stats.keys, *shape[:2]), shaped(stats.squares, *shape[:1]),
    )  # fmt: skip


class Known(NamedTuple):
    """The bounds of the rows of one start (``pass.h``)."""

    expiry: np.ndarray  # (n,) float32
    drop: np.ndarray  # (k,)


def bounds_struct(known: Known | None, n: int, k: int):
    if known is None:
        return structs.Bounds()
    return structs.Bounds(shaped(known.expiry, n), shaped(known.drop, k))


class Starts:
    """R starts of Lloyd's loop that run side by side, wherever the rows are."""

    def __init__(self, mu, lam, reference, shift, *, n_rows, max_iter, tol, weights):
        """``n_rows``: rows whose labels are kept here; 0 if they are elsewhere."""
        count, k, p = mu.shape
        self.mu = np.array(mu, dtype=np.float64, order="C")
        self.lam = np.ascontiguousarray(lam, dtype=np.float64)
        self.reference, self.shift = reference, shift
        self.stats = Stats.zeros(count, k, p)
        self.labels = np.full((count, n_rows), -1, np.int32)
        self.paths = np.zeros((count, max_iter))
        self.n_iter = np.zeros(count, np.int64)
        self.twins = np.full(count, -1, np.int64)
        self.settled = np.zeros(count, np.bool_)
        self.seen = np.zeros(count, np.uint64)
        self.max_iter, self.tol = max_iter, tol
        self.whole_weights, self.total_weight = weights

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.mu.shape

    def centers(self, which: np.ndarray) -> Centers:
        """The centres of some of the starts as they are now."""
        return Centers(self.mu[which], self.lam[which], self.reference, self.shift)

    @property
    def struct(self):
        count, k, p = self.mu.shape
        return structs.Starts(
            count, k, self.mu, shaped(self.lam, count, p), shaped(self.reference, p),
            shaped(self.shift, p), stats_struct(self.stats), self.labels, self.paths, self.n_iter,
            self.twins, self.settled, self.seen, self.max_iter, self.tol, self.whole_weights,
            self.total_weight,
        )  # fmt: skip
