"""What can be done with one row of a block, dense or CSR. Arrays in, arrays out.

With x' = x - shift, m = centre - shift, c' = reference - shift, the score of row i and centre t,
up to a constant of the row, needs only the observed entries:

    score_it = const_t + sum_{j observed} [ A_tj x'_ij + B_tj ]
    A = -2 m,   B = m^2 - lam (m - c')^2,   const = lam |m - c'|^2

Dense blocks take A and B of shape (T, p). CSR blocks have shift = reference, so c' = 0 and
B = q A^2 with q = (1 - lam) / 4: one table of shape (p, T) serves, and B holds q (T,).

Each function is written for both kinds of blocks; ``@overload`` lets numba pick by the type.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from . import _simd as simd
from ._data.observed import Csr, Dense, Packed
from ._simd import CACHE_LINE
from ._simd_rows import address, pointer, pointers, read_entries

ROWS_AHEAD = 16  # asked for before they are needed: a third less time than without

# "reassoc" lets sums be vectorised; "nnan" must stay off, it would delete the tests for gaps.
REORDER = {"contract", "reassoc"}


def is_dense(block) -> bool:
    return getattr(block, "instance_class", None) in (Dense, Packed)


def is_packed(block) -> bool:
    return getattr(block, "instance_class", None) is Packed


def is_csr(block) -> bool:
    return getattr(block, "instance_class", None) is Csr


def n_rows(block):
    """Number of rows of a block."""


@overload(n_rows)
def _n_rows(block):
    if is_dense(block):
        return lambda block: block.values.shape[0]
    if is_csr(block):
        return lambda block: block.indptr.shape[0] - 1


def row_bytes(block):
    """Bytes of a row that are worth asking for ahead: short rows come by themselves, CSR too."""


@overload(row_bytes)
def _row_bytes(block):
    if is_dense(block):
        return lambda block: (
            block.values.strides[0] if block.values.strides[0] >= 2 * CACHE_LINE else 0
        )
    if is_csr(block):
        return lambda block: 0


def ask_ahead(block, i, size):
    """Ask for row i of ``size`` bytes: where little is done with a row, memory lags behind."""


@overload(ask_ahead, jit_options={"nogil": True})
def _ask_ahead(block, i, size):
    if is_dense(block):

        def dense(block, i, size):
            place = address(pointers(block)[0]) + i * size
            for line in range(0, size, CACHE_LINE):
                simd.prefetch(place + line)

        return dense
    if is_csr(block):
        return lambda block, i, size: None


def load_row(block, i, shift, x0, mask):
    """OUT x0: the row minus shift, 0 in the gaps. OUT mask: 1 where observed, 0 in the gaps."""


@overload(load_row, jit_options={"nogil": True})
def _load_row(block, i, shift, x0, mask):
    if is_dense(block):

        def dense(block, i, shift, x0, mask):
            values, missing = pointers(block)[0], block.missing
            row = i * shift.shape[0]
            for j in range(shift.shape[0]):
                v = np.float64(values[row + j])
                seen = (v == v) & (v != missing)
                x0[j] = v - shift[j] if seen else 0.0
                mask[j] = 1.0 if seen else 0.0

        return dense
    if is_csr(block):

        def csr(block, i, shift, x0, mask):
            data, indices, indptr = pointers(block)
            x0[:] = 0.0
            mask[:] = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                x0[j] = data[e] - shift[j]
                mask[j] = 1.0

        return csr


@njit(nogil=True, cache=True, fastmath=REORDER)
def _affine_dots(x0, mask, A, B, const, scores):
    """OUT scores[t] = const[t] + A[t] . x0 + B[t] . mask."""
    for t in range(const.shape[0]):
        total = 0.0
        for j in range(x0.shape[0]):
            total += A[t, j] * x0[j] + B[t, j] * mask[j]
        scores[t] = const[t] + total


@njit(nogil=True, cache=True, fastmath=REORDER)
def _add_entry(x, a, q, scores):
    """INOUT scores += a (x + q a): one stored entry of a CSR row, all centres at once."""
    for t in range(scores.shape[0]):
        scores[t] += a[t] * (x + q[t] * a[t])


def score_row(block, i, tables, x0, mask, scores):
    """OUT scores[t] of one row for all centres; x0 and mask are scratch."""


@overload(score_row, jit_options={"nogil": True})
def _score_row(block, i, tables, x0, mask, scores):
    if is_dense(block):

        def dense(block, i, tables, x0, mask, scores):
            load_row(block, i, tables.shift, x0, mask)
            _affine_dots(x0, mask, tables.A, tables.B, tables.const, scores)

        return dense
    if is_csr(block):

        def csr(block, i, tables, x0, mask, scores):
            data, indices, indptr = pointers(block)
            scores[:] = tables.const
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                _add_entry(data[e] - tables.shift[j], tables.A[j], tables.B, scores)

        return csr


# Rows are taken in vectors of eight entries and one with the rest. These functions get pointers:
# to hand over an array costs as much as a short row does.
ENTRIES = 8


def _compile_add(part):
    """Adds ENTRIES entries of a row from j on to sums, or if `part` the `count` that are left."""

    @njit(nogil=True)
    def add(values, missing, j, count, weight, shift, sums, counts, square):
        x, seen = read_entries(values, j, count, part, missing, ENTRIES)
        x = simd.sub(x, simd.load_first(shift, j, count, part, ENTRIES))
        x = simd.where(seen, x, simd.splat(0.0, ENTRIES))
        total = simd.load_first(sums, j, count, part, ENTRIES)
        simd.store_first(sums, j, count, part, simd.muladd(weight, x, total))
        total = simd.load_first(counts, j, count, part, ENTRIES)
        total = simd.where(seen, simd.add(total, weight), total)
        simd.store_first(counts, j, count, part, total)
        return simd.muladd(x, x, square)

    return add


_add_whole, _add_part = _compile_add(False), _compile_add(True)


@njit(nogil=True)
def _add(values, missing, p, w, shift, sums, counts):
    weight, square = simd.splat(w, ENTRIES), simd.splat(0.0, ENTRIES)
    rest = p % ENTRIES
    for j in range(0, p - rest, ENTRIES):
        square = _add_whole(values, missing, j, ENTRIES, weight, shift, sums, counts, square)
    if rest > 0:
        square = _add_part(values, missing, p - rest, rest, weight, shift, sums, counts, square)
    return w * simd.total(square)


def add_row(block, i, w, shift, r, cluster, sums, counts):
    """INOUT sums, counts [r, cluster]: add w x' and w in the observed entries.

    Returns w |x'|^2. The arrays come whole: cutting a view out of them costs more than the sums.
    """


@overload(add_row, jit_options={"nogil": True, "fastmath": REORDER})
def _add_row(block, i, w, shift, r, cluster, sums, counts):
    if is_dense(block):

        def dense(block, i, w, shift, r, cluster, sums, counts):
            p = shift.shape[0]
            place = (r * sums.shape[1] + cluster) * p
            return _add(
                pointer(pointers(block)[0], i * p), block.missing, p, w, pointer(shift, 0),
                pointer(sums, place), pointer(counts, place),
            )  # fmt: skip

        return dense
    if is_csr(block):

        def csr(block, i, w, shift, r, cluster, sums, counts):
            data, indices, indptr = pointers(block)
            square = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                x = data[e] - shift[j]
                sums[r, cluster, j] += w * x
                counts[r, cluster, j] += w
                square += x * x
            return w * square

        return csr


def _compile_cost(part):
    """Adds (observed part, missing part) of the loss of ENTRIES entries of a row, as ``_add``."""

    @njit(nogil=True)
    def cost(values, missing, j, count, center, reference, near, gaps):
        x, seen = read_entries(values, j, count, part, missing, ENTRIES)
        m, zero = simd.load_first(center, j, count, part, ENTRIES), simd.splat(0.0, ENTRIES)
        difference = simd.where(seen, simd.sub(x, m), zero)
        pull = simd.sub(m, simd.load_first(reference, j, count, part, ENTRIES))
        pull = simd.where(seen, zero, pull)
        return simd.muladd(difference, difference, near), simd.muladd(pull, pull, gaps)

    return cost


_cost_whole, _cost_part = _compile_cost(False), _compile_cost(True)


@njit(nogil=True)
def _cost(values, missing, p, center, lam, reference):
    near, gaps = simd.splat(0.0, ENTRIES), simd.splat(0.0, ENTRIES)
    rest = p % ENTRIES
    for j in range(0, p - rest, ENTRIES):
        near, gaps = _cost_whole(values, missing, j, ENTRIES, center, reference, near, gaps)
    if rest > 0:
        near, gaps = _cost_part(values, missing, p - rest, rest, center, reference, near, gaps)
    return simd.total(simd.muladd(simd.splat(lam, ENTRIES), gaps, near))


def row_cost(block, i, centers, t, lam, reference, pull):
    """The loss of a row at centre t by direct differences; pull = |centre - reference|^2."""


@overload(row_cost, jit_options={"nogil": True, "fastmath": REORDER})
def _row_cost(block, i, centers, t, lam, reference, pull):
    if is_dense(block):

        def dense(block, i, centers, t, lam, reference, pull):
            p = reference.shape[0]
            return _cost(
                pointer(pointers(block)[0], i * p), block.missing, p, pointer(centers, t * p), lam,
                pointer(reference, 0),
            )  # fmt: skip

        return dense
    if is_csr(block):

        def csr(block, i, centers, t, lam, reference, pull):
            data, indices, indptr = pointers(block)
            near, seen_pull = 0.0, 0.0
            for e in range(indptr[i], indptr[i + 1]):
                j = indices[e]
                d = data[e] - centers[t, j]
                g = centers[t, j] - reference[j]
                near += d * d
                seen_pull += g * g
            # Only rounding can make the difference negative.
            return near + lam * max(pull - seen_pull, 0.0)

        return csr
