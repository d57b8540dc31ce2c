"""The dense assignment on panels: many rows at once, each in its own lane of a vector.

    score_it = const_t + sum_{j observed} [ A_tj x'_ij + B_tj ]          (as in ``_kernels``)

A *panel* holds a few rows transposed, in float32 (``_panel_rows``): ``values[j]`` (0 in gaps) and
``masks[j]`` (1 or 0) with one row per lane. A *tile* of five or three centres then costs two
multiply-adds per centre and feature for all rows of the panel together, and the smallest and second
smallest score are found lane by lane. Where k is no sum of fives and threes, a centre of infinite
score fills the last tile. Rows without gaps need no masks, which is half the work; nor do any where
lam is 1: there a gap counts as the reference observed, and is filled with it.

Rounding to float32 moves a score by no more than a bound that is computed along with it. A row
whose two smallest scores lie closer than the bounds allow is labelled UNSURE, and the caller
scores it in float64: the labels are those of the plain float64 loop, at the speed of float32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from . import _simd as simd
from . import _simd_tiles as tiled
from ._panel_rows import (
    FILLED,
    HALF,
    NOTHING_AHEAD,
    ask,
    fill_panel,
    fill_values,
    in_blocks,
    locate,
    plan_ahead,
    whole_blocks,
)
from ._simd import LANES
from ._simd_rows import pointer

UNSURE = -1
WIDE, NARROW = 5, 3  # centres of the two kinds of tiles
MOST_FEATURES = 1 << 16  # beyond, rounding of the bound itself would have to be bounded
RUN = 64  # features summed up before they are added to the score: keeps the bound small
SINGLE_UNIT = 2.0**-24  # largest relative error of rounding to float32
SINGLE_TINY = 2.0**-126  # below this float32 rounds by an absolute amount
INFINITY = np.float32(np.inf)


class Tiles(NamedTuple):
    """The centres' tables as the tiles read them, and what their rounding may cost."""

    table: np.ndarray  # for every tile and feature: the A's of the tile's centres, then their B's
    first_scores: np.ndarray  # per centre in the same order: const, then const + sum_j B
    filling: np.ndarray  # what gaps are filled with instead of being masked, in blocks; or empty
    norm: float  # the two scores of a row are apart for certain when further than
    fixed: float  # norm |x'| + fixed


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
def make_tiles(tables, k):
    """Tiles of T = R k centres: R starts of k consecutive centres each."""
    A, B, const = tables.A, tables.B, tables.const
    T, p = A.shape
    wide, narrow = count_tiles(k)
    padded = WIDE * wide + NARROW * narrow
    table = np.zeros(2 * (T // k) * padded * p, np.float32)
    n_scores = (T // k) * padded
    first_scores = np.full(2 * n_scores, INFINITY)
    place = 0
    for group in range(T // k):
        label = 0
        for tile in range(wide + narrow):
            width = WIDE if tile < wide else NARROW
            for c in range(min(width, k - label)):
                t = group * k + label + c
                score = group * padded + label + c
                total = const[t]
                first_scores[score] = total
                for j in range(p):
                    table[place + 2 * width * j + c] = A[t, j]
                    table[place + 2 * width * j + width + c] = B[t, j]
                    total += B[t, j]
                first_scores[n_scores + score] = total
            label += width
            place += 2 * width * p
    norm, fixed = _bound_rounding(A, B, const)
    return Tiles(table, first_scores, in_blocks(tables.filling), norm, fixed)


@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _bound_rounding(A, B, const):
    """(norm, fixed) of ``Tiles``.

    No term of a score passes through more than 2 RUN + p / RUN additions, one product and three
    conversions, so its rounding costs at most ``gamma / 2`` of its size, plus SINGLE_TINY where
    numbers are too small to be rounded relatively; both scores of a pair may be wrong. The sizes
    of the terms with x' add up to no more than |A_t| |x'|. One per cent covers the rounding of the
    bound itself.
    """
    T, p = A.shape
    gamma = 1.01 * 2.0 * SINGLE_UNIT * (2 * min(p, RUN) + p // RUN + 8)
    heaviest, largest = 0.0, 0.0
    for t in range(T):
        size, square = abs(const[t]), 0.0
        for j in range(p):
            size += abs(B[t, j])
            square += A[t, j] * A[t, j]
        heaviest = max(heaviest, size)
        largest = max(largest, square)
    norm = np.sqrt(largest)
    tiny = 8.0 * SINGLE_TINY * (2 * p + 2 + np.sqrt(p) * norm)
    lost = gamma * norm * np.sqrt(p) * 2.0**-60  # |x'| of entries whose squares round to 0
    return gamma * norm + np.sqrt(p) * SINGLE_TINY, gamma * heaviest + tiny + lost


# --- tiles ------------------------------------------------------------------------------------


# Arrays come as pointers: to hand over an array for every panel and tile is dear.


def _compile_tile(width):
    """The comparison of `width` centres for all rows of a panel."""

    @njit(nogil=True, inline="always")
    def compare_tile(
        values, masks, p, complete, first_scores, table, label, ahead, following, asked, best,
        second, winner,
    ):  # fmt: skip
        """Returns (best, second, winner) with the tile's centres, the first of which is `label`."""
        scores = tiled.splat_each(first_scores, 0, width, LANES)
        for start in range(0, p, RUN):
            part = tiled.zeros_each(values, width, LANES)
            gaps = tiled.zeros_each(values, width, LANES)
            stop = min(start + RUN, p)
            if complete:
                for j in range(start, stop):
                    ask(ahead, following, asked + j)
                    x = simd.load(values, j * LANES, LANES)
                    part = tiled.accumulate(part, x, table, 2 * width * j)
            else:
                for j in range(start, stop):
                    ask(ahead, following, asked + j)
                    x = simd.load(values, j * LANES, LANES)
                    mask = simd.load(masks, j * LANES, LANES)
                    part = tiled.accumulate(part, x, table, 2 * width * j)
                    if width == NARROW:  # sums of their own: there are too few to hide latency
                        gaps = tiled.accumulate(gaps, mask, table, 2 * width * j + width)
                    else:
                        part = tiled.accumulate(part, mask, table, 2 * width * j + width)
                if width == NARROW:
                    part = tiled.add_each(part, gaps)
            scores = tiled.add_each(scores, part)
        return tiled.keep_two_smallest(scores, label, best, second, winner)

    return compare_tile


_wide_tile, _narrow_tile = _compile_tile(WIDE), _compile_tile(NARROW)


@njit(nogil=True, inline="always")
def _label_panel(
    values, masks, squares, complete, p, n_scores, first_scores, table, norm, fixed, k, ahead,
    following, asked, used, room, nearest, wants_gaps, gaps,
):  # fmt: skip
    """OUT nearest[g * room + r] of the rows r < used of one panel; see ``label_panels``."""
    wide, narrow = count_tiles(k)
    score = n_scores if complete else 0
    slack = np.float32(4 * SINGLE_UNIT * (p + 8))
    square = simd.load(squares, 0, LANES)
    bound = tiled.rounding(square, np.float32(norm), np.float32(fixed))
    place, unsure = 0, 0
    for group in range(n_scores // (WIDE * wide + NARROW * narrow)):
        best = second = simd.splat(INFINITY, LANES)
        winner = simd.splat(np.int32(0), LANES)
        label = 0
        for _ in range(wide):
            best, second, winner = _wide_tile(
                values, masks, p, complete, pointer(first_scores, score), pointer(table, place),
                label, ahead, following, asked, best, second, winner,
            )  # fmt: skip
            place += 2 * WIDE * p
            score += WIDE
            label += WIDE
            asked += p
        for _ in range(narrow):
            best, second, winner = _narrow_tile(
                values, masks, p, complete, pointer(first_scores, score), pointer(table, place),
                label, ahead, following, asked, best, second, winner,
            )  # fmt: skip
            place += 2 * NARROW * p
            score += NARROW
            label += NARROW
            asked += p
        simd.store(nearest, group * room, winner)
        if wants_gaps:
            simd.store(gaps, 0, tiled.gap_between(best, second, bound, square, slack))
        close = tiled.lanes_not_above(second, best, bound)
        if close != 0 and k > 1:
            for r in range(used):
                if (close >> np.uint64(r)) & np.uint64(1):
                    nearest[group * room + r] = np.int32(UNSURE)
                    unsure += 1
    return unsure


@njit(nogil=True, cache=True)
def label_panels(X, missing, rows, count, shift, tiles, panel, k, nearest, gaps):
    """OUT nearest[g, e]: best of the k centres of start g for row rows[e], e < count, or UNSURE.

    IN  X (n, p) float32 or float64, C-contiguous; missing: the code of a gap beside NaN
        panel: scratch; nearest has room for whole panels
    OUT gaps[e]: how much further the second centre is, at least; for the last start, and only if
        there is room for it
    Returns how many labels are UNSURE.
    """
    p, room = X.shape[1], nearest.shape[1]
    places, values, masks, squares = panel
    table, first_scores, filling, norm, fixed = tiles
    locate(X, rows, count, places)
    n_scores = first_scores.shape[0] // 2
    wide, narrow = count_tiles(k)
    groups = n_scores // (WIDE * wide + NARROW * narrow)
    while_filled = p * (LANES // FILLED)
    steps = while_filled + p * (wide + narrow) * groups
    wants_gaps, filled = gaps.shape[0] > 0, filling.shape[0] > 0
    unsure = 0
    for e in range(0, count, LANES):
        following = pointer(places, e + LANES)
        ahead = plan_ahead(following, p * X.itemsize, steps)
        complete = fill_panel(
            pointer(X, 0), p, missing, pointer(places, e), pointer(shift, 0), filled,
            pointer(filling, 0), ahead, following, pointer(values, 0), pointer(masks, 0),
            pointer(squares, 0),
        )  # fmt: skip
        unsure += _label_panel(
            pointer(values, 0), pointer(masks, 0), pointer(squares, 0), complete, p, n_scores,
            pointer(first_scores, 0), pointer(table, 0), norm, fixed, k, ahead, following,
            while_filled, min(LANES, count - e), room, pointer(nearest, e), wants_gaps,
            pointer(gaps, e if wants_gaps else 0),
        )  # fmt: skip
    return unsure


@njit(nogil=True, cache=True)
def label_packed(packed, start, count, tiles, k, nearest, gaps):
    """As ``label_panels`` for rows start, start + 1, ... of a table whose panels are kept.

    IN  packed: a ``Packed``; start: a multiple of LANES
    """
    X, _, panels, masks, squares, complete = packed
    table, first_scores, _, norm, fixed = tiles
    p, room, n_scores = X.shape[1], nearest.shape[1], first_scores.shape[0] // 2
    size, masked = whole_blocks(p) * LANES, masks.shape[0] > 0
    wants_gaps, nowhere = gaps.shape[0] > 0, np.empty(0, np.int64)
    unsure = 0
    for e in range(0, count, LANES):
        number = (start + e) // LANES
        unsure += _label_panel(
            pointer(panels, number * size), pointer(masks, number * size if masked else 0),
            pointer(squares, number * LANES), complete[number], p, n_scores,
            pointer(first_scores, 0), pointer(table, 0), norm, fixed, k, NOTHING_AHEAD,
            pointer(nowhere, 0), 0, min(LANES, count - e), room, pointer(nearest, e), wants_gaps,
            pointer(gaps, e if wants_gaps else 0),
        )  # fmt: skip
    return unsure


# --- all scores of complete or filled rows, in float64 ----------------------------------------

SCORED = 4 * LANES  # rows that ``score_filled`` takes at once


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
def score_filled(X, missing, start, stop, shift, table, const, places, values, scores):
    """OUT scores[t * SCORED + i - start] = const_t + sum_{j observed} A_tj x'_ij, in float64.

    IN  table, const: from ``wide_table``; places (HALF,), values (p * HALF,): scratch
    """
    p = X.shape[1]
    for row in range(start, stop, HALF):
        for e in range(HALF):
            places[e] = X.ctypes.data + min(row + e, stop - 1) * X.strides[0]
        fill_values(X, missing, places, 0, shift, values)
        for t in range(0, const.shape[0], WIDE):
            sums = tiled.splat_each(const, t, WIDE, HALF)
            for j in range(p):
                x = simd.load(values, j * HALF, HALF)
                sums = tiled.accumulate(sums, x, table, (t * p) + j * WIDE)
            tiled.store_each(sums, scores, t * SCORED + row - start, SCORED)
