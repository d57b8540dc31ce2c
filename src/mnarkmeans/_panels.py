"""The dense assignment on panels: many rows at once, each in its own lane of a vector.

    score_it = const_t + sum_{j observed} [ A_tj x'_ij + B_tj ]          (as in ``_kernels``)

A *panel* holds a few rows transposed, in float32: ``values[j]`` (0 in gaps) and ``masks[j]`` (1 or
0) with one row per lane. A *tile* of five or three centres then costs two multiply-adds per centre
and feature for all rows of the panel together, and the smallest and second smallest score are found
lane by lane. Where k is no sum of fives and threes, a centre of infinite score fills the last tile.

Rounding to float32 moves a score by no more than a bound that is computed along with it. A row
whose two smallest scores lie closer than the bounds allow is labelled UNSURE, and the caller
scores it in float64: the labels are those of the plain float64 loop, at the speed of float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from . import _simd as simd
from ._simd import BLOCK, LANES

UNSURE = -1
WIDE, NARROW = 5, 3  # centres of the two kinds of tiles
MOST_FEATURES = 1 << 16  # beyond, rounding of the bound itself would have to be bounded
RUN = 64  # features summed up before they are added to the score: keeps the bound small
CACHE_LINE = 64
SINGLE_UNIT = 2.0**-24  # largest relative error of rounding to float32
SINGLE_TINY = 2.0**-126  # below this float32 rounds by an absolute amount
INFINITY = np.float32(np.inf)
ONE = np.float32(1)


class Tiles(NamedTuple):
    """The centres' tables as the tiles read them, and what their rounding may cost."""

    table: np.ndarray  # for every tile and feature: the A's of the tile's centres, then their B's
    with_gaps: np.ndarray  # per centre in the same order, where a score starts: const
    without_gaps: np.ndarray  # the same for complete rows: const + sum_j B
    weights: np.ndarray  # (p,) the two scores of a row are apart for certain when further than
    fixed: float  # sum_j |x'_j| weights_j + fixed


class Panel(NamedTuple):
    """A few rows, one per lane."""

    values: np.ndarray  # (p * LANES,) x', 0 in gaps
    masks: np.ndarray  # (p * LANES,) 1 observed, 0 gap
    bounds: np.ndarray  # (LANES,) closer scores than this are not told apart
    names: np.ndarray  # (LANES,) int32, the centre of the smallest score


# --- preparing the tables ---------------------------------------------------------------------


@njit(nogil=True, cache=True)
def count_tiles(k):
    """Numbers of wide and narrow tiles that hold k centres, with as little to fill as possible."""
    rest = k % WIDE
    if rest == 0:
        return k // WIDE, 0
    if rest == 4:
        return k // WIDE + 1, 0
    if rest == 1 and k > WIDE:
        return k // WIDE - 1, 2
    return k // WIDE, 1


@njit(nogil=True, cache=True)
def make_tiles(A, B, const, k):
    """Tiles of T = R k centres: R starts of k consecutive centres each."""
    T, p = A.shape
    wide, narrow = count_tiles(k)
    padded = WIDE * wide + NARROW * narrow
    table = np.zeros(2 * (T // k) * padded * p, np.float32)
    with_gaps = np.full((T // k) * padded, INFINITY)
    without_gaps = with_gaps.copy()
    place = 0
    for group in range(T // k):
        label = 0
        for tile in range(wide + narrow):
            width = WIDE if tile < wide else NARROW
            for c in range(min(width, k - label)):
                t = group * k + label + c
                total = const[t]
                with_gaps[group * padded + label + c] = total
                for j in range(p):
                    table[place + 2 * width * j + c] = A[t, j]
                    table[place + 2 * width * j + width + c] = B[t, j]
                    total += B[t, j]
                without_gaps[group * padded + label + c] = total
            label += width
            place += 2 * width * p
    weights = np.empty(p, np.float32)
    fixed = _bound_rounding(A, B, const, weights)
    return Tiles(table, with_gaps, without_gaps, weights, fixed)


@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _bound_rounding(A, B, const, weights):
    """OUT weights; returns fixed (see ``Tiles``).

    No term of a score passes through more than 2 RUN + p / RUN additions, one product and three
    conversions, so its rounding costs at most ``gamma / 2`` of its size, plus SINGLE_TINY where
    numbers are too small to be rounded relatively; both scores of a pair may be wrong. One per
    cent covers the rounding of the bound itself.
    """
    T, p = A.shape
    gamma = 1.01 * 2.0 * SINGLE_UNIT * (2 * min(p, RUN) + p // RUN + 8)
    heaviest, largest_sum = 0.0, 0.0
    weights[:] = 0.0
    for t in range(T):
        size = abs(const[t])
        for j in range(p):
            size += abs(B[t, j])
            larger = np.float32(abs(A[t, j]))
            weights[j] = larger if larger > weights[j] else weights[j]
        heaviest = max(heaviest, size)
    for j in range(p):
        largest_sum += weights[j]
        weights[j] = gamma * weights[j] + SINGLE_TINY
    return gamma * heaviest + 8.0 * SINGLE_TINY * (2 * p + 2 + largest_sum)


# --- panels -----------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def on_cache_line(count, dtype):
    """An empty array that starts on a cache line, so that no vector straddles two."""
    spare = np.empty(count + CACHE_LINE, dtype)
    skip = (-spare.ctypes.data % CACHE_LINE) // spare.itemsize
    return spare[skip : skip + count]


@njit(nogil=True, cache=True)
def make_panel(p):
    return Panel(
        on_cache_line(p * LANES, np.float32),
        on_cache_line(p * LANES, np.float32),
        on_cache_line(LANES, np.float32),
        on_cache_line(LANES, np.int32),
    )


@njit(nogil=True)
def fill_panel(X, missing, row, stop, shift, weights, fixed, values, masks, bounds):
    """OUT values, masks, bounds: rows row, row + 1, ... of X, the last before `stop` repeated.

    IN  weights, fixed: of the tiles. Returns whether nothing was missing.
    """
    p = X.shape[1]
    squares = p - p % BLOCK
    complete = True
    for r in range(0, LANES, BLOCK):
        size = simd.splat(np.float32(fixed), BLOCK)
        seen = simd.splat(ONE, BLOCK)
        for j in range(0, squares, BLOCK):
            block = simd.read_block(X, row + r, stop - 1, j, shift, missing, values)
            size, seen = simd.write_columns(
                block, values, masks, j * LANES + r, weights, j, size, seen
            )
        for j in range(squares, p):
            column = simd.read_column(X, row + r, stop - 1, j, shift, missing, values)
            size, seen = simd.write_columns(
                column, values, masks, j * LANES + r, weights, j, size, seen
            )
        simd.store(bounds, r, size)
        complete = simd.all_lanes_one(seen) and complete
    return complete


# --- tiles ------------------------------------------------------------------------------------

# Panels and tiles get plain arrays and numbers: to take a named tuple apart for every one costs as
# much as the arithmetic. ``ahead`` and ``pace`` are the memory address of what the
# next panel will read, fetched while there is arithmetic to do, and the bytes per feature.


def _compile_tile(width):
    """The comparison of `width` centres for all rows of a panel."""

    @njit(nogil=True)
    def compare_tile(
        values, masks, p, complete, first_scores, table, centre, label, ahead, pace, best, second,
        winner,
    ):  # fmt: skip
        """Returns (best, second, winner) with the tile's centres, from number `centre` on."""
        place = 2 * p * centre
        scores = simd.splat_each(first_scores, centre, width, LANES)
        for start in range(0, p, RUN):
            part = simd.zeros_each(values, width, LANES)
            gaps = simd.zeros_each(values, width, LANES)
            stop = min(start + RUN, p)
            if complete:
                for j in range(start, stop):
                    simd.prefetch(ahead + j * pace)
                    x = simd.load(values, j * LANES, LANES)
                    part = simd.accumulate(part, x, table, place + 2 * width * j)
            else:
                for j in range(start, stop):
                    simd.prefetch(ahead + j * pace)
                    x = simd.load(values, j * LANES, LANES)
                    mask = simd.load(masks, j * LANES, LANES)
                    part = simd.accumulate(part, x, table, place + 2 * width * j)
                    if width == NARROW:  # sums of their own: there are too few to hide latency
                        gaps = simd.accumulate(gaps, mask, table, place + 2 * width * j + width)
                    else:
                        part = simd.accumulate(part, mask, table, place + 2 * width * j + width)
                if width == NARROW:
                    part = simd.add_each(part, gaps)
            scores = simd.add_each(scores, part)
        return simd.keep_two_smallest(scores, label, best, second, winner)

    return compare_tile


_wide_tile, _narrow_tile = _compile_tile(WIDE), _compile_tile(NARROW)


@njit(nogil=True)
def compare_start(values, masks, p, complete, first_scores, table, group, k, ahead, pace):
    """(best, second, winner) of each lane among the k centres of one start, tile by tile."""
    best = second = simd.splat(INFINITY, LANES)
    winner = simd.splat(np.int32(0), LANES)
    wide, narrow = count_tiles(k)
    label, centre = 0, group * (WIDE * wide + NARROW * narrow)
    for _ in range(wide):
        best, second, winner = _wide_tile(
            values, masks, p, complete, first_scores, table, centre + label, label, ahead, pace,
            best, second, winner,
        )  # fmt: skip
        label += WIDE
        ahead += p * pace
    for _ in range(narrow):
        best, second, winner = _narrow_tile(
            values, masks, p, complete, first_scores, table, centre + label, label, ahead, pace,
            best, second, winner,
        )  # fmt: skip
        label += NARROW
        ahead += p * pace
    return best, second, winner


@njit(nogil=True, cache=True)
def label_panels(X, missing, start, stop, shift, tiles, panel, k, nearest):
    """OUT nearest[i - start, g]: best of the k centres of start g for row i, or UNSURE.

    IN  X (n, p) float32 or float64, C-contiguous; missing: the code of a gap beside NaN
        panel: scratch. Returns how many labels are UNSURE.
    """
    p = X.shape[1]
    values, masks, bounds, names = panel
    table, weights, fixed = tiles.table, tiles.weights, tiles.fixed
    wide, narrow = count_tiles(k)
    groups = tiles.with_gaps.shape[0] // (WIDE * wide + NARROW * narrow)
    features_per_start = p * (wide + narrow)
    panel_bytes = LANES * p * X.itemsize
    stride = max(CACHE_LINE, panel_bytes // (features_per_start * groups))
    unsure = 0
    for row in range(start, stop, LANES):
        complete = fill_panel(X, missing, row, stop, shift, weights, fixed, values, masks, bounds)
        first_scores = tiles.without_gaps if complete else tiles.with_gaps
        rows = min(LANES, stop - row)
        here = X.ctypes.data + row * X.strides[0]
        for group in range(groups):
            offset = group * features_per_start * stride
            useful = row + 2 * LANES <= X.shape[0] and offset < panel_bytes
            ahead, pace = (here + panel_bytes + offset, stride) if useful else (here, 0)
            best, second, winner = compare_start(
                values, masks, p, complete, first_scores, table, group, k, ahead, pace
            )
            simd.store(names, 0, winner)
            for r in range(rows):
                nearest[row + r - start, group] = names[r]
            close = simd.lanes_not_above(second, best, simd.load(bounds, 0, LANES))
            if close != 0 and k > 1:
                for r in range(rows):
                    if (close >> np.uint64(r)) & np.uint64(1):
                        nearest[row + r - start, group] = UNSURE
                        unsure += 1
    return unsure


# --- all scores of complete or filled rows, in float64 ----------------------------------------

HALF = LANES // 2  # rows of a float64 panel
MOST_ROWS = 4 * LANES  # rows that ``score_filled`` takes at once


@njit(nogil=True)
def _fill_values(X, missing, row, stop, shift, values):
    """OUT values (p * HALF,): rows row, row + 1, ... minus shift, 0 in gaps."""
    p = X.shape[1]
    squares = p - p % BLOCK
    for r in range(0, HALF, BLOCK):
        for j in range(0, squares, BLOCK):
            block = simd.read_block(X, row + r, stop - 1, j, shift, missing, values)
            simd.write_values(block, values, j * HALF + r, HALF)
        for j in range(squares, p):
            column = simd.read_column(X, row + r, stop - 1, j, shift, missing, values)
            simd.write_values(column, values, j * HALF + r, HALF)


@njit(nogil=True, cache=True)
def wide_table(A, const):
    """(table, const) of T centres as ``score_filled`` reads them: padded to full wide tiles."""
    T, p = A.shape
    n_tiles = (T + WIDE - 1) // WIDE
    table, padded = np.zeros(n_tiles * p * WIDE), np.zeros(n_tiles * WIDE)
    for t in range(T):
        padded[t] = const[t]
        for j in range(p):
            table[((t // WIDE) * p + j) * WIDE + t % WIDE] = A[t, j]
    return table, padded


@njit(nogil=True, cache=True)
def score_filled(X, missing, start, stop, shift, table, const, values, scores):
    """OUT scores[t * MOST_ROWS + i - start] = const_t + sum_{j observed} A_tj x'_ij, in float64.

    IN  table, const: from ``wide_table``; values (p * HALF,): scratch
    """
    p = X.shape[1]
    for row in range(start, stop, HALF):
        _fill_values(X, missing, row, stop, shift, values)
        for t in range(0, const.shape[0], WIDE):
            sums = simd.splat_each(const, t, WIDE, HALF)
            for j in range(p):
                x = simd.load(values, j * HALF, HALF)
                sums = simd.accumulate(sums, x, table, (t * p) + j * WIDE)
            simd.store_each(sums, scores, t * MOST_ROWS + row - start, MOST_ROWS)
