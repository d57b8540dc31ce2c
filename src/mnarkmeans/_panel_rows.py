"""Rows into panels: transposed and rounded to float32, one row per lane.

    values[j, t] = x'_tj   (0 in gaps, or what they are filled with),   masks[j, t] = 1 or 0

A panel of LANES rows is made where it is needed and thrown away, while the rows of the next one
are asked for. Tables that fit into the caches are turned into panels once and for all (``pack``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from . import _simd as simd
from ._data.observed import Packed
from ._simd import CACHE_LINE, LANES
from ._simd_rows import pointer, read_columns, write_columns, write_filled, write_values

FILLED = 16  # rows of a panel that are filled together
HALF = LANES // 2  # rows of a float64 panel
MOST_ROWS = 256  # rows that are labelled by one call: they stay in cache until they are summed up
ZERO, ONE = np.float32(0), np.float32(1)


class Panel(NamedTuple):
    """A few rows, one per lane."""

    places: np.ndarray  # memory addresses of the rows to come
    values: np.ndarray  # (p * LANES,) x', 0 in gaps; and room for the rest of a block
    masks: np.ndarray  # the same, 1 observed, 0 gap
    squares: np.ndarray  # (LANES,) |x'|^2


@njit(nogil=True, cache=True)
def on_cache_line(count, dtype):
    """An empty array that starts on a cache line, so that no vector straddles two."""
    spare = np.empty(count + CACHE_LINE, dtype)
    skip = (-spare.ctypes.data % CACHE_LINE) // spare.itemsize
    return spare[skip : skip + count]


@njit(nogil=True, cache=True)
def whole_blocks(p):
    """p rounded up to blocks of eight columns, which is how rows are taken into a panel."""
    return -(-p // 8) * 8


@njit(nogil=True, cache=True)
def make_panel(p):
    return Panel(
        np.empty(MOST_ROWS + 2 * LANES, np.int64),
        on_cache_line(whole_blocks(p) * LANES, np.float32),
        on_cache_line(whole_blocks(p) * LANES, np.float32),
        on_cache_line(LANES, np.float32),
    )


@njit(nogil=True)
def locate(X, rows, count, places):
    """OUT places: addresses of the rows; then those that follow the last one, as far as there are.

    The rows that follow fill up the last panel, and are likely to be wanted next.
    """
    base, stride = X.ctypes.data, X.strides[0]
    for e in range(count):
        places[e] = base + rows[e] * stride
    last = X.shape[0] - 1
    for e in range(count, count + 2 * LANES - count % LANES):
        places[e] = base + min(rows[count - 1] + 1 + e - count, last) * stride


# What the next panel will read is asked for bit by bit, while this one is filled and compared.


class Ahead(NamedTuple):
    """Requests for the rows of the next panel, one per step of the work until all are made."""

    requests: int
    span: int  # bytes of a request
    start: int  # address of the first row if one follows the other, 0 if they are scattered


NOTHING_AHEAD = Ahead(0, CACHE_LINE, 0)


@njit(nogil=True)
def plan_ahead(places, row_bytes, steps):
    """Requests that cover the LANES rows at ``places`` in so many steps."""
    start, span = places[0], CACHE_LINE
    if places[LANES - 1] - start == (LANES - 1) * row_bytes:
        size = LANES * row_bytes
        while size > steps * span:
            span += CACHE_LINE
        return Ahead(-(-size // span), span, start)
    while span < row_bytes and LANES * -(-row_bytes // span) > steps:
        span += CACHE_LINE
    return Ahead(LANES * -(-row_bytes // span), span, 0)


@njit(nogil=True)
def ask(ahead, places, number):
    """Request ``number`` for the rows at ``places``; scattered rows take turns."""
    if number < ahead.requests:
        if ahead.start != 0:
            begin = ahead.start + number * ahead.span
        else:
            begin = places[number % LANES] + (number // LANES) * ahead.span
        for line in range(0, ahead.span, CACHE_LINE):
            simd.prefetch(begin + line)


# Arrays come as pointers from here on: to hand over an array for every few columns is dear.


def _compile_take(width, part, coded, filled):
    """Takes `width` columns of FILLED rows into a panel, or if `part` the `count` that are left.

    `coded`: there is a code for gaps beside NaN. `filled`: gaps take the numbers of ``filling``,
    and there are no masks.
    """

    @njit(nogil=True, inline="always")
    def take(
        X, missing, places, r, j, count, shift, filling, ahead, following, asked, values, masks,
        square, seen,
    ):  # fmt: skip
        for number in range(asked, asked + width):
            ask(ahead, following, number)
        columns = read_columns(
            X, places, r, j, width, count, part, shift, missing, coded, FILLED, values
        )
        if filled:
            return write_filled(columns, values, j * LANES + r, square, filling, j), seen
        return write_columns(columns, values, masks, j * LANES + r, square, seen)

    return take


def _compile_fill(coded, filled):
    """The filling of a panel, eight columns at a time; see ``_compile_take``."""
    take8 = _compile_take(8, False, coded, filled)
    take_part8 = _compile_take(8, True, coded, filled)
    take_part4 = _compile_take(4, True, coded, filled)

    @njit(nogil=True)
    def fill(X, p, missing, places, shift, filling, ahead, following, values, masks, squares):
        rest, asked = p % 8, 0
        complete = True
        for r in range(0, LANES, FILLED):
            square, seen = simd.splat(ZERO, FILLED), simd.splat(ONE, FILLED)
            for j in range(0, p - rest, 8):
                square, seen = take8(
                    X, missing, places, r, j, 8, shift, filling, ahead, following, asked, values,
                    masks, square, seen,
                )  # fmt: skip
                asked += 8
            if rest > 4:
                square, seen = take_part8(
                    X, missing, places, r, p - rest, rest, shift, filling, ahead, following, asked,
                    values, masks, square, seen,
                )  # fmt: skip
            elif rest > 0:
                square, seen = take_part4(
                    X, missing, places, r, p - rest, rest, shift, filling, ahead, following, asked,
                    values, masks, square, seen,
                )  # fmt: skip
            asked += rest
            simd.store(squares, r, square)
            complete = simd.all_lanes_one(seen) and complete
        return complete

    return fill


_mask_coded, _mask_plain = _compile_fill(True, False), _compile_fill(False, False)
_fill_coded, _fill_plain = _compile_fill(True, True), _compile_fill(False, True)


@njit(nogil=True)
def fill_panel(
    X, p, missing, places, shift, filled, filling, ahead, following, values, masks, squares
):
    """OUT values, masks, squares of the rows at ``places``, asking for those at ``following``.

    Returns whether the rows have no gaps, or none that were not filled.
    """
    if missing == missing:
        if filled:
            return _fill_coded(
                X, p, missing, places, shift, filling, ahead, following, values, masks, squares
            )
        return _mask_coded(
            X, p, missing, places, shift, filling, ahead, following, values, masks, squares
        )
    if filled:
        return _fill_plain(
            X, p, missing, places, shift, filling, ahead, following, values, masks, squares
        )
    return _mask_plain(
        X, p, missing, places, shift, filling, ahead, following, values, masks, squares
    )


@njit(nogil=True, cache=True)
def in_blocks(filling):
    """The numbers gaps are filled with (p,), rounded, with room for the rest of a block."""
    out = np.zeros(whole_blocks(filling.shape[0]), np.float32)
    for j in range(filling.shape[0]):
        out[j] = filling[j]
    return out


@njit(nogil=True, cache=True)
def pack(X, missing, shift, filling):
    """The panels of a whole table; filling (p,) or empty: see ``_solver.loss.gaps_as``."""
    n, p = X.shape
    count, size = -(-n // LANES), whole_blocks(p) * LANES
    filled, filling = filling.shape[0] > 0, in_blocks(filling)
    panels = on_cache_line(count * size, np.float32)
    masks = on_cache_line(0 if filled else count * size, np.float32)
    squares = on_cache_line(count * LANES, np.float32)
    complete = np.empty(count, np.bool_)
    places = np.empty(LANES, np.int64)
    for number in range(count):
        for r in range(LANES):
            places[r] = X.ctypes.data + min(number * LANES + r, n - 1) * X.strides[0]
        complete[number] = fill_panel(
            pointer(X, 0), p, missing, pointer(places, 0), pointer(shift, 0), filled,
            pointer(filling, 0), NOTHING_AHEAD, pointer(places, 0), pointer(panels, number * size),
            pointer(masks, 0 if filled else number * size), pointer(squares, number * LANES),
        )  # fmt: skip
    return Packed(X, missing, panels, masks, squares, complete)


# --- float64, for the seeding -----------------------------------------------------------------


@njit(nogil=True)
def fill_values(X, missing, places, first, shift, values):
    """OUT values (p * HALF,): rows at places[first], ... minus shift, 0 in gaps."""
    p = X.shape[1]
    rest = p % 8
    for r in range(0, HALF, 8):
        for j in range(0, p - rest, 8):
            columns = read_columns(
                X, places, first + r, j, 8, 8, False, shift, missing, True, 8, values
            )
            write_values(columns, values, j * HALF + r, HALF)
        if rest > 0:
            columns = read_columns(
                X, places, first + r, p - rest, 8, rest, True, shift, missing, True, 8, values
            )
            write_values(columns, values, (p - rest) * HALF + r, HALF)
