"""The first look at the data: what is observed, how large it is, whether it is finite.

Compiled passes over one block, as in ``_kernels``.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic, overload

from ._kernels import _is_csr, _is_dense, n_rows, row_key


def tally_row(block, i, w, counts, sums, least, most):
    """INOUT per feature: weight, weighted sum, extremes. Returns (observed entries, all finite)."""


@overload(tally_row, jit_options={"nogil": True})
def _tally_row(block, i, w, counts, sums, least, most):
    if _is_dense(block):

        def dense(block, i, w, counts, sums, least, most):
            values, missing = block.values, block.missing
            seen_entries, strange = 0, 0
            for j in range(counts.shape[0]):
                v = np.float64(values[i, j])
                seen = (v == v) & (v != missing)
                seen_entries += int(seen)
                strange += int(np.abs(v) == np.inf)
                counts[j] += w if seen else 0.0
                sums[j] += w * v if seen else 0.0
                if w > 0.0:
                    least[j] = min(least[j], v if seen else np.inf)
                    most[j] = max(most[j], v if seen else -np.inf)
            return seen_entries, strange == 0

        return dense
    if _is_csr(block):

        def csr(block, i, w, counts, sums, least, most):
            strange = 0
            for e in range(block.indptr[i], block.indptr[i + 1]):
                j, v = block.indices[e], np.float64(block.data[e])
                strange += int(np.abs(v) == np.inf)
                counts[j] += w
                sums[j] += w * v
                if w > 0.0:
                    least[j] = min(least[j], v)
                    most[j] = max(most[j], v)
            return np.int64(block.indptr[i + 1] - block.indptr[i]), strange == 0

        return csr


@njit(nogil=True, cache=True)
def survey(block, weights, counts, sums, least, most, seen):
    """One look at a block: what is observed, how large it is, whether it is finite.

    INOUT per feature: counts (weight of observing rows), sums, least, most; rows of weight 0 do
    not count. OUT seen (b,): number of observed entries of each row.
    Returns the first row with an infinite value, or -1.
    """
    infinite = -1
    for i in range(n_rows(block)):
        seen[i], finite = tally_row(block, i, weights[i], counts, sums, least, most)
        if not finite and infinite < 0:
            infinite = i
    return infinite


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
