"""The compiled steps over the rows of one block. Arrays in, arrays out; no threads in here.

A step labels a stretch of rows for all its centres (``assign``) and adds those that changed to the
sums of their clusters. The labels come from float32 vectors (``_panels``, ``_csr_lanes``), which
say where they cannot tell; there the plain float64 loop decides.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from . import _csr_lanes as csr_lanes
from . import _panel_rows as panel_rows
from . import _panels as panels
from . import _simd as simd
from ._panel_rows import MOST_ROWS
from ._rows import (
    ROWS_AHEAD,
    add_row,
    ask_ahead,
    is_csr,
    is_dense,
    is_packed,
    load_row,
    n_rows,
    row_bytes,
    row_cost,
    score_row,
)
from ._simd_rows import pointer

MOST_UNSURE = 0.1  # above this share of unsure labels the plain assignment is the faster one
MOSTLY = 0.75  # when more rows than this share of a stretch are wanted, all are taken
LABELS = 32  # compared at once
CAUTIOUS = 1.0 - 1e-6  # covers the rounding of a gap


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
def assign_by_rows(block, rows, count, tables, k, nearest):
    """The plain assignment: one row at a time, float64. Twin and fallback of the fast ones.

    OUT nearest[g, e]: the best of the k centres of group g for row rows[e], e < count.
    """
    scores = np.empty(tables.const.shape[0])
    x0, mask = np.empty(tables.shift.shape[0]), np.empty(tables.shift.shape[0])
    for e in range(count):
        score_row(block, rows[e], tables, x0, mask, scores)
        for g in range(nearest.shape[0]):
            nearest[g, e] = _argmin(scores, g * k, (g + 1) * k)


@njit(nogil=True, cache=True)
def _settle(block, rows, count, tables, k, nearest):
    """INOUT nearest: score the rows that are UNSURE as the plain assignment does."""
    for e in range(count):
        for g in range(nearest.shape[0]):
            if nearest[g, e] == panels.UNSURE:
                assign_by_rows(block, rows[e : e + 1], 1, tables, k, nearest[:, e : e + 1])


def prepare(block, tables, k):
    """What ``assign`` needs besides the tables, made once for many calls."""


@overload(prepare, jit_options={"nogil": True})
def _prepare(block, tables, k):
    if is_packed(block):

        def packed(block, tables, k):
            trusted = np.array([tables.shift.shape[0] <= panels.MOST_FEATURES])
            return panels.make_tiles(tables, k), trusted

        return packed
    if is_dense(block):

        def dense(block, tables, k):
            p = tables.shift.shape[0]
            tiles = panels.make_tiles(tables, k)
            trusted = np.array([p <= panels.MOST_FEATURES])
            return tiles, panel_rows.make_panel(p), trusted

        return dense
    if is_csr(block):

        def csr(block, tables, k):
            trusted = np.array([True])
            return csr_lanes.make_strips(tables.A, tables.B, tables.const), trusted

        return csr


def label_fast(block, rows, count, tables, prepared, k, nearest, gaps):
    """OUT nearest[g, e] in float32 arithmetic, UNSURE where that cannot tell; gaps[e], if wanted.

    Returns how many are UNSURE.
    """


@overload(label_fast, jit_options={"nogil": True})
def _label_fast(block, rows, count, tables, prepared, k, nearest, gaps):
    if is_packed(block):
        return lambda block, rows, count, tables, prepared, k, nearest, gaps: panels.label_packed(
            block, rows[0], count, prepared[0], k, nearest, gaps
        )
    if is_dense(block):
        return lambda block, rows, count, tables, prepared, k, nearest, gaps: panels.label_panels(
            block.values, block.missing, rows, count, tables.shift, *prepared[:2], k, nearest, gaps
        )
    if is_csr(block):
        return lambda block, rows, count, tables, prepared, k, nearest, gaps: csr_lanes.label_csr(
            block.data, block.indices, block.indptr, rows, count, tables.shift, prepared[0], k,
            nearest, gaps,
        )  # fmt: skip


@njit(nogil=True)
def assign(block, rows, count, tables, prepared, k, nearest, gaps):
    """The same result as ``assign_by_rows``, by the fastest way the block's type has.

    OUT gaps[e]: a lower bound for how much further the second centre of rows[e] is; 0 or less
        where nothing is known. May be empty: not wanted.
    """
    trusted = prepared[-1]
    if not trusted[0]:
        assign_by_rows(block, rows, count, tables, k, nearest)
        gaps[:] = np.float32(0.0)
        return
    unsure = label_fast(block, rows, count, tables, prepared, k, nearest, gaps)
    if unsure > 0:
        _settle(block, rows, count, tables, k, nearest)
    trusted[0] = unsure <= MOST_UNSURE * count * nearest.shape[0]


@njit(nogil=True, cache=True)
def _consecutive(start, stop, rows):
    """OUT rows: start, start + 1, ... Returns how many there are before ``stop``."""
    for i in range(start, stop):
        rows[i - start] = i
    return stop - start


@njit(nogil=True, cache=True)
def assign_block(block, first, tables, k, labels):
    """OUT labels[g, first + i]: the best centre of each group for row i of the block."""
    prepared = prepare(block, tables, k)
    rows, gaps = np.empty(MOST_ROWS, np.int64), np.empty(0, np.float32)
    nearest = np.empty((labels.shape[0], MOST_ROWS), np.int32)
    for start in range(0, n_rows(block), MOST_ROWS):
        count = _consecutive(start, min(start + MOST_ROWS, n_rows(block)), rows)
        assign(block, rows, count, tables, prepared, k, nearest, gaps)
        for g in range(labels.shape[0]):
            for e in range(count):
                labels[g, first + start + e] = nearest[g, e]


@njit(nogil=True, cache=True)
def _wakeful(start, stop, labels, expiry, drop, rows):
    """OUT rows: those of start..stop that may change cluster (``_solver.bounds``); their number.

    All of them where most would be: consecutive rows are read faster.
    """
    count = 0
    for i in range(start, stop):
        rows[count] = i
        count += 0 if expiry[i] > drop[labels[i]] else 1
    return count if count < MOSTLY * (stop - start) else _consecutive(start, stop, rows)


@njit(nogil=True)
def _changing(rows, count, nearest, own, every, places):
    """OUT places: where e < count the label own[rows[e]] is not nearest[e], or every e.

    IN  rows, nearest, own, places: pointers. Returns how many there are.
    """
    found, done = 0, 0
    if rows[count - 1] - rows[0] == count - 1 and not every:  # consecutive: in vectors
        done = count - count % LABELS
        for start in range(0, done, LABELS):
            bits = simd.differing(
                simd.load(nearest, start, LABELS), simd.load(own, rows[0] + start, LABELS)
            )
            while bits != 0:
                places[found] = start + simd.lowest_bit(bits)
                found += 1
                bits &= bits - np.uint64(1)
    for e in range(done, count):
        places[found] = e
        found += 1 if every or nearest[e] != own[rows[e]] else 0
    return found


@njit(nogil=True, cache=True)
def step(block, first, base, weights, tables, active, fresh, labels, stats, expiry, drop):
    """One pass: give every row its best centre and keep the sums of the clusters up to date.

    IN  block, weights (b,), tables of len(active) * k centres, active: the starts they belong to,
        first: number of the block's first row in the table, fresh: stats are 0, add every row
        drop (k,): see ``_solver.bounds``
    INOUT labels[r, base + i], -1 before the first pass; stats: sums over the rows of the block
        (what changed, unless fresh); expiry (b,) if bounds are kept (for one start), else empty
    Returns how many labels changed.
    """
    k = stats.sizes.shape[1]
    shift = tables.shift
    bounded = expiry.shape[0] > 0
    sums, counts, sizes, keys, squares = stats  # taken apart here: dear to do for every row
    prepared = prepare(block, tables, k)
    rows, places = np.empty(MOST_ROWS, np.int64), np.empty(MOST_ROWS, np.int64)
    nearest = np.empty((active.shape[0], MOST_ROWS), np.int32)
    gaps = np.empty(MOST_ROWS if bounded else 0, np.float32)
    changed = 0
    for start in range(0, n_rows(block), MOST_ROWS):
        stop = min(start + MOST_ROWS, n_rows(block))
        if bounded and not fresh:
            own = labels[active[0], base : base + stop]
            count = _wakeful(start, stop, own, expiry, drop, rows)
        else:
            count = _consecutive(start, stop, rows)
        if count == 0:
            continue
        assign(block, rows, count, tables, prepared, k, nearest, gaps)
        for a in range(active.shape[0]):
            r = active[a]
            found = _changing(
                pointer(rows, 0), count, pointer(nearest, a * MOST_ROWS),
                pointer(labels, r * labels.shape[1] + base), fresh, pointer(places, 0),
            )  # fmt: skip
            for e in places[:found]:
                i, new = rows[e], nearest[a, e]
                old = labels[r, base + i]
                labels[r, base + i] = new
                changed += new != old
                w = weights[i]
                if w == 0.0:
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
        if bounded:
            for e in range(count):
                expiry[rows[e]] = CAUTIOUS * (gaps[e] + drop[nearest[0, e]])
    return changed


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
        out[i] = row_cost(block, i, centers, t, lam, reference, pulls[t])


@njit(nogil=True, cache=True)
def assign_and_cost(block, weights, tables, centers, lam, reference, labels, members, expiry, drop):
    """OUT labels (b,) as ``assign_block``, members (k,): rows of each label in the block.

    IN  labels, expiry (b,), drop (k,): known before (``_solver.bounds``); expiry may be empty
    Returns the loss of the block's rows, by direct differences.
    """
    k = centers.shape[0]
    pulls = _pulls(centers, reference)
    prepared = prepare(block, tables, k)
    rows, gaps = np.empty(MOST_ROWS, np.int64), np.empty(0, np.float32)
    nearest = np.empty((1, MOST_ROWS), np.int32)
    loss, size = 0.0, row_bytes(block)
    for start in range(0, n_rows(block), MOST_ROWS):
        stop = min(start + MOST_ROWS, n_rows(block))
        if expiry.shape[0] > 0:
            count = _wakeful(start, stop, labels, expiry, drop, rows)
        else:
            count = _consecutive(start, stop, rows)
        if count > 0:
            assign(block, rows, count, tables, prepared, k, nearest, gaps)
        for e in range(count):
            labels[rows[e]] = nearest[0, e]
        for i in range(start, stop):
            ask_ahead(block, i + ROWS_AHEAD, size)
            t = labels[i]
            members[t] += 1
            loss += weights[i] * row_cost(block, i, centers, t, lam, reference, pulls[t])
    return loss


@njit(nogil=True, cache=True)
def distances(block, centers, lam, reference, out):
    """OUT out (b, k): loss of each row at every centre, by direct differences."""
    for t in range(centers.shape[0]):
        pull = _square_distance(centers[t], reference)
        for i in range(n_rows(block)):
            out[i, t] = row_cost(block, i, centers, t, lam, reference, pull)


@njit(nogil=True, cache=True)
def fill_row(block, i, shift, fill, out):
    """OUT out (p,): row i minus shift, its gaps filled from ``fill`` (p,)."""
    mask = np.empty(fill.shape[0])
    load_row(block, i, shift, out, mask)
    for j in range(fill.shape[0]):
        if mask[j] == 0.0:
            out[j] = fill[j]
