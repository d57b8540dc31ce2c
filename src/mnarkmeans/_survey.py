"""The first look at the data: what is observed, how large it is, whether it is finite.

Compiled passes over one block, as in ``_kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from . import _simd as simd
from ._kernels import row_key
from ._panels import CACHE_LINE
from ._rows import is_csr, is_dense, n_rows
from ._simd_rows import pointer, pointers, read_entries

ROWS_AHEAD = 16  # asked for before they are needed: a third less time than without


def _compile_look(lanes):
    """Surveys the entries j, j + 1, ... of a row, as long as there are so many left."""

    @njit(nogil=True)
    def look(values, missing, j, p, w, counts, sums, least):
        weight, seen = simd.splat(w, lanes), simd.splat(0.0, lanes)
        zero = finite = simd.splat(0.0, lanes)
        while p - j >= lanes:
            x, mask = read_entries(values, j, missing, lanes)
            seen = simd.add(seen, mask)
            finite = simd.muladd(x, zero, finite)  # an infinite value leaves NaN
            simd.store(sums, j, simd.muladd(weight, x, simd.load(sums, j, lanes)))
            simd.store(counts, j, simd.muladd(weight, mask, simd.load(counts, j, lanes)))
            if w > 0.0:
                simd.store(least, j, simd.lower(simd.load(least, j, lanes), x, mask))
            j += lanes
        return j, simd.total(seen), simd.total(finite)

    return look


_look8, _look4, _look1 = _compile_look(8), _compile_look(4), _compile_look(1)


@njit(nogil=True)
def _look(values, missing, p, w, counts, sums, least):
    """(observed entries of a row, 0 or NaN if one is infinite)."""
    j, seen8, finite8 = _look8(values, missing, 0, p, w, counts, sums, least)
    j, seen4, finite4 = _look4(values, missing, j, p, w, counts, sums, least)
    j, seen1, finite1 = _look1(values, missing, j, p, w, counts, sums, least)
    return seen8 + seen4 + seen1, finite8 + finite4 + finite1


def survey_block(block, weights, counts, sums, least, seen):
    """See ``survey``."""


@overload(survey_block, jit_options={"nogil": True})
def _survey_block(block, weights, counts, sums, least, seen):
    if is_dense(block):

        def dense(block, weights, counts, sums, least, seen):
            (values,), missing, p = pointers(block), block.missing, counts.shape[0]
            row_bytes = block.values.strides[0]
            ahead = block.values.ctypes.data + ROWS_AHEAD * row_bytes
            infinite = -1
            for i in range(seen.shape[0]):
                for line in range(0, row_bytes, CACHE_LINE):
                    simd.prefetch(ahead + i * row_bytes + line)
                entries, finite = _look(
                    pointer(values, i * p), missing, p, weights[i], pointer(counts, 0),
                    pointer(sums, 0), pointer(least, 0),
                )  # fmt: skip
                seen[i] = np.int64(entries)
                if finite != finite and infinite < 0:
                    infinite = i
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
