"""The CSR assignment: one row at a time, its centres side by side in the lanes of a vector.

    score_it = const_t + sum_{j stored} A_jt ( x'_ij + q_t A_jt )          (as in ``_kernels``)

The table of A is kept in float32, 16 centres to a *strip*, so that one stored entry needs one
cache line and two multiply-adds for 16 centres. Rounding moves a score by no more than a bound that
is computed per row; a row whose two smallest scores lie closer is labelled UNSURE, and the caller
scores it in float64, so the labels are those of the plain float64 loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from . import _simd as simd
from ._panel_rows import on_cache_line
from ._panels import RUN, SINGLE_TINY, SINGLE_UNIT, UNSURE

STRIP = 16  # centres side by side: one cache line of float32
SAFE = 1e37  # nothing that stays below this overflows float32


class Strips(NamedTuple):
    """The centres' table as the kernel reads it, and what its rounding may cost."""

    table: np.ndarray  # (strips * p * STRIP,) A, strip by strip
    q: np.ndarray  # (strips * STRIP,)
    const: np.ndarray  # (strips * STRIP,)
    fixed: float  # a score errs by no more than gamma (fixed + norm |x'|) + tiny (1 + |x'|),
    norm: float  # gamma being the rounding of one term (see ``_gamma``)
    scores: np.ndarray  # (strips * STRIP,) scratch


@njit(nogil=True, cache=True)
def make_strips(A, q, const):
    """Strips of T centres from A (p, T), q (T,), const (T,)."""
    p, T = A.shape
    strips = (T + STRIP - 1) // STRIP
    table = on_cache_line(strips * p * STRIP, np.float32)
    q_strips = np.zeros(strips * STRIP, np.float32)
    const_strips = np.zeros(strips * STRIP, np.float32)
    table[:] = np.float32(0.0)
    squares = np.zeros(T)
    for first in range(0, T, STRIP):
        width = min(STRIP, T - first)
        for j in range(p):
            place = (first * p) + j * STRIP
            for lane in range(width):
                a = A[j, first + lane]
                table[place + lane] = a
                squares[first + lane] += a * a
    fixed, norm = 0.0, 0.0
    for t in range(T):
        q_strips[t] = q[t]
        const_strips[t] = const[t]
        fixed = max(fixed, abs(const[t]) + abs(q[t]) * squares[t])
        norm = max(norm, np.sqrt(squares[t]))
        if abs(q[t]) > SAFE:
            fixed = np.inf
    return Strips(table, q_strips, const_strips, fixed, norm, np.empty(strips * STRIP, np.float32))


@njit(nogil=True)
def _gamma(stored):
    """Relative rounding of a term: additions it passes through, two products, conversions."""
    return 1.01 * SINGLE_UNIT * (min(stored, RUN) + stored // RUN + 8)


@njit(nogil=True)
def _score(data, indices, begin, end, shift, strips):
    """OUT strips.scores of the row with the stored entries begin..end. Returns |x'|^2."""
    p = shift.shape[0]
    table = strips.table
    square = 0.0
    for first in range(0, strips.scores.shape[0], STRIP):
        q = simd.load(strips.q, first, STRIP)
        total = simd.load(strips.const, first, STRIP)
        square = 0.0
        for start in range(begin, end, RUN):
            # Two sums, so that one multiply-add need not wait for the other.
            even, odd = simd.splat(np.float32(0.0), STRIP), simd.splat(np.float32(0.0), STRIP)
            stop = min(start + RUN, end)
            e = start
            while e + 1 < stop:
                j = np.int64(indices[e])
                x = np.float64(data[e]) - shift[j]
                a = simd.load(table, (first * p) + j * STRIP, STRIP)
                inner = simd.muladd(q, a, simd.splat(np.float32(x), STRIP))
                even = simd.muladd(a, inner, even)
                i = np.int64(indices[e + 1])
                y = np.float64(data[e + 1]) - shift[i]
                b = simd.load(table, (first * p) + i * STRIP, STRIP)
                inner = simd.muladd(q, b, simd.splat(np.float32(y), STRIP))
                odd = simd.muladd(b, inner, odd)
                square += x * x + y * y
                e += 2
            if e < stop:
                j = np.int64(indices[e])
                x = np.float64(data[e]) - shift[j]
                a = simd.load(table, (first * p) + j * STRIP, STRIP)
                inner = simd.muladd(q, a, simd.splat(np.float32(x), STRIP))
                even = simd.muladd(a, inner, even)
                square += x * x
            total = simd.add(total, simd.add(even, odd))
        simd.store(strips.scores, first, total)
    return square


@njit(nogil=True, cache=True)
def label_csr(data, indices, indptr, rows, count, shift, strips, k, nearest, gaps):
    """OUT nearest[g, e]: best of the k centres of start g for row rows[e], e < count, or UNSURE.

    OUT gaps[e]: how much further the second centre is, at least; for the last start, and only if
        there is room for it. Returns how many labels are UNSURE.
    """
    unsure = 0
    scores = strips.scores
    for e in range(count):
        begin, end = indptr[rows[e]], indptr[rows[e] + 1]
        square = _score(data, indices, begin, end, shift, strips)
        size = np.sqrt(square)
        largest = max(strips.fixed + strips.norm * size, strips.norm, size)
        bound = _gamma(end - begin) * largest if largest < SAFE else np.inf
        bound += SINGLE_TINY * (end - begin + 1) * (1.0 + strips.norm + size)
        for g in range(nearest.shape[0]):
            best, second, winner = np.inf, np.inf, 0
            for t in range(k):
                score = np.float64(scores[g * k + t])
                if score < best:
                    best, second, winner = score, best, t
                elif score < second:
                    second = score
            nearest[g, e] = winner
            if gaps.shape[0] > 0:
                far = square + bound
                distances = np.sqrt(max(best + far, 0.0)) + np.sqrt(max(second + far, 0.0))
                gap = second - best - 2.0 * bound
                gaps[e] = gap / distances if distances > 0.0 else 0.0
            if not (second - best > 2.0 * bound) and k > 1:
                nearest[g, e] = UNSURE
                unsure += 1
    return unsure
