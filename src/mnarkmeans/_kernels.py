"""The compiled steps over the rows of one block. Arrays in, arrays out; no threads in here.

With x' = x - shift, m = centre - shift, c' = reference - shift, the score of row i and centre t,
up to a constant of the row, needs only the observed entries:

    score_it = const_t + sum_{j observed} [ A_tj x'_ij + B_tj ]
    A = -2 m,   B = m^2 - lam (m - c')^2,   const = lam |m - c'|^2

Dense blocks take A and B of shape (T, p). CSR blocks have shift = reference, so c' = 0 and
B = q A^2 with q = (1 - lam) / 4: one table of shape (p, T) serves, and B holds q (T,).

A handful of row primitives differ between dense and CSR blocks (``@overload``: numba picks by
the block's type); everything else is written once.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from . import _csr_lanes as csr_lanes
from . import _panels as panels
from . import _simd as simd
from ._observed import Csr, Dense
from ._simd import BLOCK

# "reassoc" lets sums be vectorised; "nnan" must stay off, it would delete the tests for gaps.
REORDER = {"contract", "reassoc"}
MOST_UNSURE = 0.1  # above this share of unsure labels the plain assignment is the faster one
HALF_BLOCK = BLOCK // 2
ROWS_AT_ONCE = 256  # rows that stay in cache between being scored and being added to the sums


def _is_dense(block) -> bool:
    return getattr(block, "instance_class", None) is Dense


def _is_csr(block) -> bool:
    return getattr(block, "instance_class", None) is Csr


# --- row primitives ---------------------------------------------------------------------------


def n_rows(block):
    """Number of rows of a block."""


@overload(n_rows)
def _n_rows(block):
    if _is_dense(block):
        return lambda block: block.values.shape[0]
    if _is_csr(block):
        return lambda block: block.indptr.shape[0] - 1


def load_row(block, i, shift, x0, mask):
    """OUT x0: the row minus shift, 0 in the gaps. OUT mask: 1 where observed, 0 in the gaps."""


@overload(load_row, jit_options={"nogil": True})
def _load_row(block, i, shift, x0, mask):
    if _is_dense(block):

        def dense(block, i, shift, x0, mask):
            values, missing = block.values, block.missing
            for j in range(shift.shape[0]):
                v = np.float64(values[i, j])
                seen = (v == v) & (v != missing)
                x0[j] = v - shift[j] if seen else 0.0
                mask[j] = 1.0 if seen else 0.0

        return dense
    if _is_csr(block):

        def csr(block, i, shift, x0, mask):
            x0[:] = 0.0
            mask[:] = 0.0
            for e in range(block.indptr[i], block.indptr[i + 1]):
                j = block.indices[e]
                x0[j] = block.data[e] - shift[j]
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
    if _is_dense(block):

        def dense(block, i, tables, x0, mask, scores):
            load_row(block, i, tables.shift, x0, mask)
            _affine_dots(x0, mask, tables.A, tables.B, tables.const, scores)

        return dense
    if _is_csr(block):

        def csr(block, i, tables, x0, mask, scores):
            scores[:] = tables.const
            for e in range(block.indptr[i], block.indptr[i + 1]):
                j = block.indices[e]
                _add_entry(block.data[e] - tables.shift[j], tables.A[j], tables.B, scores)

        return csr


def add_row(block, i, w, shift, r, cluster, sums, counts):
    """INOUT sums, counts [r, cluster]: add w x' and w in the observed entries.

    Returns w |x'|^2. The arrays come whole: cutting a view out of them costs more than the sums.
    """


@overload(add_row, jit_options={"nogil": True, "fastmath": REORDER})
def _add_row(block, i, w, shift, r, cluster, sums, counts):
    if _is_dense(block):

        def dense(block, i, w, shift, r, cluster, sums, counts):
            values, missing = block.values, block.missing
            p = shift.shape[0]
            first = (r * sums.shape[1] + cluster) * p
            whole = p - p % BLOCK
            squares = simd.splat(0.0, BLOCK)
            for j in range(0, whole, BLOCK):
                squares = simd.add_entries(
                    values, i, j, shift, missing, w, first + j, sums, counts, squares
                )
            square = simd.total(squares) if whole > 0 else 0.0
            if whole + HALF_BLOCK <= p:
                half = simd.add_entries(
                    values, i, whole, shift, missing, w, first + whole, sums, counts,
                    simd.splat(0.0, HALF_BLOCK),
                )  # fmt: skip
                square += simd.total(half)
                whole += HALF_BLOCK
            rest = simd.splat(0.0, 1)  # vectors of one: as quick for gaps as for numbers
            for j in range(whole, p):
                rest = simd.add_entries(
                    values, i, j, shift, missing, w, first + j, sums, counts, rest
                )
            return w * (square + simd.total(rest))

        return dense
    if _is_csr(block):

        def csr(block, i, w, shift, r, cluster, sums, counts):
            square = 0.0
            for e in range(block.indptr[i], block.indptr[i + 1]):
                j = block.indices[e]
                x = block.data[e] - shift[j]
                sums[r, cluster, j] += w * x
                counts[r, cluster, j] += w
                square += x * x
            return w * square

        return csr


def row_cost(block, i, center, lam, reference, pull):
    """The loss of a row at a centre by direct differences; pull = |center - reference|^2."""


@overload(row_cost, jit_options={"nogil": True, "fastmath": REORDER})
def _row_cost(block, i, center, lam, reference, pull):
    if _is_dense(block):

        def dense(block, i, center, lam, reference, pull):
            values, missing = block.values, block.missing
            near, gaps = 0.0, 0.0
            for j in range(center.shape[0]):
                v = np.float64(values[i, j])
                seen = (v == v) & (v != missing)
                d = v - center[j] if seen else 0.0
                g = 0.0 if seen else center[j] - reference[j]
                near += d * d
                gaps += g * g
            return near + lam * gaps

        return dense
    if _is_csr(block):

        def csr(block, i, center, lam, reference, pull):
            near, seen_pull = 0.0, 0.0
            for e in range(block.indptr[i], block.indptr[i + 1]):
                j = block.indices[e]
                d = block.data[e] - center[j]
                g = center[j] - reference[j]
                near += d * d
                seen_pull += g * g
            # Only rounding can make the difference negative.
            return near + lam * max(pull - seen_pull, 0.0)

        return csr


# --- steps over a block -----------------------------------------------------------------------


@njit(nogil=True, cache=True)
def row_key(i):
    """A well mixed 64-bit number for row i (the finaliser of splitmix64)."""
    z = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True)
def _argmin(scores, start, stop):
    best = start
    for t in range(start + 1, stop):
        if scores[t] < scores[best]:
            best = t
    return best - start


@njit(nogil=True, cache=True)
def assign_by_rows(block, start, stop, tables, k, nearest):
    """The plain assignment: one row at a time, float64. Twin and fallback of the fast ones.

    OUT nearest[i - start, g]: the best of the k centres of group g for rows start..stop.
    """
    scores = np.empty(tables.const.shape[0])
    x0, mask = np.empty(tables.shift.shape[0]), np.empty(tables.shift.shape[0])
    for i in range(start, stop):
        score_row(block, i, tables, x0, mask, scores)
        for g in range(scores.shape[0] // k):
            nearest[i - start, g] = _argmin(scores, g * k, (g + 1) * k)


@njit(nogil=True, cache=True)
def _settle(block, start, stop, tables, k, nearest):
    """INOUT nearest: score the rows that are UNSURE as the plain assignment does."""
    for i in range(start, stop):
        if nearest[i - start].min() == panels.UNSURE:
            assign_by_rows(block, i, i + 1, tables, k, nearest[i - start : i - start + 1])


def prepare(block, tables, k):
    """What ``assign`` needs besides the tables, made once for many calls."""


@overload(prepare, jit_options={"nogil": True})
def _prepare(block, tables, k):
    if _is_dense(block):

        def dense(block, tables, k):
            p = tables.shift.shape[0]
            tiles = panels.make_tiles(tables.A, tables.B, tables.const, k)
            trusted = np.array([p <= panels.MOST_FEATURES])
            return tiles, panels.make_panel(p), trusted

        return dense
    if _is_csr(block):

        def csr(block, tables, k):
            trusted = np.array([True])
            return csr_lanes.make_strips(tables.A, tables.B, tables.const), trusted

        return csr


def label_fast(block, start, stop, tables, prepared, k, nearest):
    """OUT nearest[i - start, g] in float32 arithmetic; UNSURE where that cannot tell.

    Returns how many are UNSURE.
    """


@overload(label_fast, jit_options={"nogil": True})
def _label_fast(block, start, stop, tables, prepared, k, nearest):
    if _is_dense(block):
        return lambda block, start, stop, tables, prepared, k, nearest: panels.label_panels(
            block.values, block.missing, start, stop, tables.shift, *prepared[:2], k, nearest
        )
    if _is_csr(block):
        return lambda block, start, stop, tables, prepared, k, nearest: csr_lanes.label_csr(
            block.data, block.indices, block.indptr, start, stop, tables.shift, prepared[0],
            nearest.shape[1], k, nearest,
        )  # fmt: skip


@njit(nogil=True)
def assign(block, start, stop, tables, prepared, k, nearest):
    """The same result as ``assign_by_rows``, by the fastest way the block's type has."""
    trusted = prepared[-1]
    if not trusted[0]:
        assign_by_rows(block, start, stop, tables, k, nearest)
        return
    unsure = label_fast(block, start, stop, tables, prepared, k, nearest)
    if unsure > 0:
        _settle(block, start, stop, tables, k, nearest)
    trusted[0] = unsure <= MOST_UNSURE * nearest.size


@njit(nogil=True, cache=True)
def assign_block(block, tables, k, labels):
    """OUT labels (b, G): the best centre of each group for every row of the block."""
    prepared = prepare(block, tables, k)
    for start in range(0, n_rows(block), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_rows(block))
        assign(block, start, stop, tables, prepared, k, labels[start:stop])


@njit(nogil=True, cache=True)
def step(block, first, weights, tables, active, fresh, labels, stats):
    """One pass: give every row its best centre and keep the sums of the clusters up to date.

    IN  block, weights (b,), tables of len(active) * k centres, active: the starts they belong to,
        first: number of the block's first row in the table, fresh: stats are 0, add every row
    INOUT labels (b, R), -1 before the first pass; stats: sums over the rows of the block (what
        changed, unless fresh)
    """
    k = stats.sizes.shape[1]
    shift = tables.shift
    sums, counts, sizes, keys, squares = stats  # taken apart here: dear to do for every row
    prepared = prepare(block, tables, k)
    nearest = np.empty((ROWS_AT_ONCE, active.shape[0]), np.int32)
    for start in range(0, n_rows(block), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_rows(block))
        assign(block, start, stop, tables, prepared, k, nearest[: stop - start])
        for i in range(start, stop):
            w = weights[i]
            for a in range(active.shape[0]):
                r = active[a]
                old, new = labels[i, r], nearest[i - start, a]
                labels[i, r] = new
                if (new == old and not fresh) or w == 0.0:
                    continue
                if old >= 0 and not fresh:
                    sizes[r, old] -= w
                    keys[r, old] += signed_key(first + i, -1)
                    add_row(block, i, -w, shift, r, old, sums, counts)
                sizes[r, new] += w
                keys[r, new] += signed_key(first + i, 1)
                square = add_row(block, i, w, shift, r, new, sums, counts)
                if old < 0 or fresh:
                    squares[r] += square


@njit(nogil=True, cache=True)
def transfer(block, i, first, sign, w, shift, r, cluster, stats):
    """INOUT stats: add (sign 1) or take away (-1) row i of the block to a cluster of start r."""
    stats.sizes[r, cluster] += sign * w
    stats.keys[r, cluster] += signed_key(first + i, sign)
    return add_row(block, i, sign * w, shift, r, cluster, stats.sums, stats.counts)


@njit(nogil=True, cache=True)
def signed_key(i, sign):
    """The key of row i, or what takes it away again (sign -1)."""
    return row_key(i) if sign > 0 else np.uint64(0) - row_key(i)


@njit(nogil=True, cache=True)
def _square_distance(a, b):
    total = 0.0
    for j in range(a.shape[0]):
        total += (a[j] - b[j]) ** 2
    return total


@njit(nogil=True, cache=True)
def _pulls(centers, reference):
    pulls = np.empty(centers.shape[0])
    for t in range(centers.shape[0]):
        pulls[t] = _square_distance(centers[t], reference)
    return pulls


@njit(nogil=True, cache=True)
def costs(block, labels, centers, lam, reference, out):
    """OUT out (b,): loss of each row at its own centre, by direct differences."""
    pulls = _pulls(centers, reference)
    for i in range(n_rows(block)):
        t = labels[i]
        out[i] = row_cost(block, i, centers[t], lam, reference, pulls[t])


@njit(nogil=True, cache=True)
def assign_and_cost(block, tables, centers, lam, reference, labels, out):
    """OUT labels (b, 1) as ``assign_block``, out (b,) as ``costs``: the rows are read once."""
    k = centers.shape[0]
    pulls = _pulls(centers, reference)
    prepared = prepare(block, tables, k)
    for start in range(0, n_rows(block), ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, n_rows(block))
        assign(block, start, stop, tables, prepared, k, labels[start:stop])
        for i in range(start, stop):
            t = labels[i, 0]
            out[i] = row_cost(block, i, centers[t], lam, reference, pulls[t])


@njit(nogil=True, cache=True)
def distances(block, centers, lam, reference, out):
    """OUT out (b, k): loss of each row at every centre, by direct differences."""
    for t in range(centers.shape[0]):
        pull = _square_distance(centers[t], reference)
        for i in range(n_rows(block)):
            out[i, t] = row_cost(block, i, centers[t], lam, reference, pull)


@njit(nogil=True, cache=True)
def fill_row(block, i, shift, fill, out):
    """OUT out (p,): row i minus shift, its gaps filled from ``fill`` (p,)."""
    mask = np.empty(fill.shape[0])
    load_row(block, i, shift, out, mask)
    for j in range(fill.shape[0]):
        if mask[j] == 0.0:
            out[j] = fill[j]
