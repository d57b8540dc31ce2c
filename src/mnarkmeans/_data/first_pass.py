"""The first look at the data: what is observed, how large it is, whether it is finite.

Compiled passes over one block, as in ``_kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from .. import _simd as simd
from .._kernels import row_key
from .._rows import ENTRIES, is_csr, is_dense, n_rows
from .._simd_rows import address, pointer, pointers, read_entries

ROWS = 32  # surveyed together: their sums stay in registers


def _compile_look(part):
    """Surveys ENTRIES columns of some rows from j on; `part`: only the `width` that are left."""

    @njit(nogil=True)
    def look(values, missing, p, n_rows, j, width, weights, counts, sums, least, seen):
        zero = finite = simd.splat(0.0, ENTRIES)
        count = simd.load_first(counts, j, width, part, ENTRIES)
        total = simd.load_first(sums, j, width, part, ENTRIES)
        smallest = simd.load_first(least, j, width, part, ENTRIES)
        for i in range(n_rows):
            simd.prefetch(address(pointer(values, (i + ROWS) * p + j)))  # the same of the next rows
            x, here = read_entries(values, i * p + j, width, part, missing, ENTRIES)
            weight = simd.splat(weights[i], ENTRIES)
            x = simd.where(here, x, zero)
            finite = simd.muladd(x, zero, finite)  # an infinite value leaves NaN
            total = simd.muladd(weight, x, total)
            count = simd.where(here, simd.add(count, weight), count)
            lower = simd.both(simd.both(here, simd.below(zero, weight)), simd.below(x, smallest))
            smallest = simd.where(lower, x, smallest)
            seen[i] += np.int32(simd.count(here))
        simd.store_first(counts, j, width, part, count)
        simd.store_first(sums, j, width, part, total)
        simd.store_first(least, j, width, part, smallest)
        return simd.total(finite)

    return look


_look_whole, _look_part = _compile_look(False), _compile_look(True)


@njit(nogil=True)
def _look(values, missing, p, n_rows, weights, counts, sums, least, seen):
    """INOUT what is known of the features, seen (0 before). NaN if there is an infinite value."""
    finite, rest = 0.0, p % ENTRIES
    for j in range(0, p - rest, ENTRIES):
        finite += _look_whole(
            values, missing, p, n_rows, j, ENTRIES, weights, counts, sums, least, seen
        )
    if rest > 0:
        finite += _look_part(
            values, missing, p, n_rows, p - rest, rest, weights, counts, sums, least, seen
        )
    return finite


@njit(nogil=True)
def _first_infinite(values, missing, p, n_rows):
    for i in range(n_rows):
        for j in range(p):
            v = np.float64(values[i * p + j])
            if np.abs(v) == np.inf and v != missing:
                return i
    return -1


def survey_block(block, weights, counts, sums, least, seen):
    """See ``survey``."""


@overload(survey_block, jit_options={"nogil": True})
def _survey_block(block, weights, counts, sums, least, seen):
    if is_dense(block):

        def dense(block, weights, counts, sums, least, seen):
            values, missing, p = pointers(block)[0], block.missing, counts.shape[0]
            infinite = -1
            seen[:] = 0
            for start in range(0, seen.shape[0], ROWS):
                n_rows, place = min(ROWS, seen.shape[0] - start), pointer(values, start * p)
                finite = _look(
                    place, missing, p, n_rows, pointer(weights, start), pointer(counts, 0),
                    pointer(sums, 0), pointer(least, 0), pointer(seen, start),
                )  # fmt: skip
                if finite != finite and infinite < 0:
                    infinite = start + _first_infinite(place, missing, p, n_rows)
            return infinite

        return dense
    if is_csr(block):

        def csr(block, weights, counts, sums, least, seen):
            data, indices, indptr = block
            infinite = -1
            for i in range(indptr.shape[0] - 1):
                w = weights[i]
                seen[i] = indptr[i + 1] - indptr[i]
                for e in range(indptr[i], indptr[i + 1]):
                    j, v = indices[e], np.float64(data[e])
                    if np.abs(v) == np.inf and infinite < 0:
                        infinite = i
                    counts[j] += w
                    sums[j] += w * v
                    if w > 0.0:
                        least[j] = min(least[j], v)
            return infinite

        return csr


@njit(nogil=True, cache=True)
def survey(block, weights, counts, sums, least, seen):
    """One look at a block: what is observed, how large it is, whether it is finite.

    INOUT per feature: counts (weight of observing rows), sums, least; rows of weight 0 do
    not count. OUT seen (b,): number of observed entries of each row.
    Returns the first row with an infinite value, or -1.
    """
    return survey_block(block, weights, counts, sums, least, seen)


def content_key(block, i):
    """A 64-bit number of the observed values of a row, whatever the order of the columns."""


@overload(content_key, jit_options={"nogil": True})
def _content_key(block, i):
    if is_dense(block):

        def dense(block, i):
            key = np.uint64(0)
            for j in range(block.values.shape[1]):
                v = np.float64(block.values[i, j])
                if v == v and v != block.missing:
                    key += row_key(_bits(v))
            return key

        return dense
    if is_csr(block):

        def csr(block, i):
            key = np.uint64(0)
            for e in range(block.indptr[i], block.indptr[i + 1]):
                key += row_key(_bits(np.float64(block.data[e])))
            return key

        return csr


@njit(nogil=True, cache=True)
def content_keys(block, out):
    """OUT out (b,) uint64."""
    for i in range(n_rows(block)):
        out[i] = content_key(block, i)


@intrinsic
def _bits(typingctx, value):
    """The 64 bits of a float64 as an unsigned integer."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(types.uint64))

    return types.uint64(types.float64), codegen
