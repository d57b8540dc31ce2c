"""The first look at the data: what is observed, how large it is, whether it is finite.

Compiled passes over one block, as in ``_kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from . import _simd as simd
from ._kernels import row_key
from ._rows import ENTRIES, ask_ahead, is_csr, is_dense, n_rows
from ._simd_rows import pointer, pointers, read_entries


def _compile_look(part):
    """Surveys ENTRIES entries of a row from j on; `part`: only the `count` that are left."""

    @njit(nogil=True)
    def look(values, missing, j, count, w, counts, sums, least, finite):
        x, seen = read_entries(values, j, count, part, missing, ENTRIES)
        weight, zero = simd.splat(w, ENTRIES), simd.splat(0.0, ENTRIES)
        x = simd.where(seen, x, zero)
        total = simd.load_first(sums, j, count, part, ENTRIES)
        simd.store_first(sums, j, count, part, simd.muladd(weight, x, total))
        total = simd.load_first(counts, j, count, part, ENTRIES)
        total = simd.where(seen, simd.add(total, weight), total)
        simd.store_first(counts, j, count, part, total)
        if w > 0.0:
            smallest = simd.load_first(least, j, count, part, ENTRIES)
            lower = simd.both(seen, simd.below(x, smallest))
            simd.store_first(least, j, count, part, simd.where(lower, x, smallest))
        return simd.count(seen), simd.muladd(x, zero, finite)  # an infinite value leaves NaN

    return look


_look_whole, _look_part = _compile_look(False), _compile_look(True)


@njit(nogil=True)
def _look(values, missing, p, w, counts, sums, least):
    """(observed entries of a row, 0 or NaN if one is infinite)."""
    entries, finite = 0, simd.splat(0.0, ENTRIES)
    rest = p % ENTRIES
    for j in range(0, p - rest, ENTRIES):
        seen, finite = _look_whole(values, missing, j, ENTRIES, w, counts, sums, least, finite)
        entries += seen
    if rest > 0:
        seen, finite = _look_part(values, missing, p - rest, rest, w, counts, sums, least, finite)
        entries += seen
    return entries, simd.total(finite)


def survey_block(block, weights, counts, sums, least, seen):
    """See ``survey``."""


@overload(survey_block, jit_options={"nogil": True})
def _survey_block(block, weights, counts, sums, least, seen):
    if is_dense(block):

        def dense(block, weights, counts, sums, least, seen):
            values, missing, p = pointers(block)[0], block.missing, counts.shape[0]
            infinite = -1
            for i in range(seen.shape[0]):
                ask_ahead(block, i)
                entries, finite = _look(
                    pointer(values, i * p), missing, p, weights[i], pointer(counts, 0),
                    pointer(sums, 0), pointer(least, 0),
                )  # fmt: skip
                seen[i] = entries
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
