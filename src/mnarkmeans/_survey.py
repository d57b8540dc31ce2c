"""The first look at the data: what is observed, how large it is, whether it is finite.

Compiled passes over one block, as in ``_kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from ._kernels import REORDER, _is_csr, _is_dense, n_rows, row_key


def survey_block(block, weights, counts, sums, least, most, seen):
    """See ``survey``."""


@overload(survey_block, jit_options={"nogil": True, "fastmath": REORDER})
def _survey_block(block, weights, counts, sums, least, most, seen):
    if _is_dense(block):

        def dense(block, weights, counts, sums, least, most, seen):
            values, missing = block.values, block.missing
            infinite = -1
            for i in range(values.shape[0]):
                w = weights[i]
                entries, strange = 0.0, 0.0
                for j in range(values.shape[1]):  # choices instead of branches: vectors
                    v = np.float64(values[i, j])
                    known = (v == v) & (v != missing)
                    entries += 1.0 if known else 0.0
                    strange += 1.0 if np.abs(v) == np.inf else 0.0
                    counts[j] += w if known else 0.0
                    sums[j] += w * v if known else 0.0
                    low = v if known & (w > 0.0) else np.inf
                    high = v if known & (w > 0.0) else -np.inf
                    least[j] = low if low < least[j] else least[j]
                    most[j] = high if high > most[j] else most[j]
                seen[i] = np.int64(entries)
                if strange > 0.0 and infinite < 0:
                    infinite = i
            return infinite

        return dense
    if _is_csr(block):

        def csr(block, weights, counts, sums, least, most, seen):
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
                        most[j] = max(most[j], v)
            return infinite

        return csr


@njit(nogil=True, cache=True)
def survey(block, weights, counts, sums, least, most, seen):
    """One look at a block: what is observed, how large it is, whether it is finite.

    INOUT per feature: counts (weight of observing rows), sums, least, most; rows of weight 0 do
    not count. OUT seen (b,): number of observed entries of each row.
    Returns the first row with an infinite value, or -1.
    """
    return survey_block(block, weights, counts, sums, least, most, seen)


def content_key(block, i):
    """A 64-bit number of the observed values of a row, whatever the order of the columns."""


@overload(content_key, jit_options={"nogil": True})
def _content_key(block, i):
    if _is_dense(block):

        def dense(block, i):
            key = np.uint64(0)
            for j in range(block.values.shape[1]):
                v = np.float64(block.values[i, j])
                if v == v and v != block.missing:
                    key += row_key(_bits(v))
            return key

        return dense
    if _is_csr(block):

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
