"""Hartigan's moves: one row at a time changes cluster whenever the loss falls.

Seen by a cluster, feature j of row i is a point y of weight w: the observed value with the row's
weight, or the reference with lam times it. If the cluster has weight D and centre m there,

    joining costs   sum_j  w D / (D + w) (y - m)^2
    leaving gains   sum_j  w D / (D - w) (y - m)^2

The factors and all that a gap costs are the same for every row of one weight: they are kept per
cluster (``Prices``) and made anew when a row joins or leaves, so that looking at a row takes no
division.

A partition that no such move improves is also a fixed point of Lloyd's loop, but not the other
way round: these optima are never worse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from .._rows import REORDER, load_row, n_rows
from .._simd_rows import pointer
from .loss import VECTORISED

FEATURES_AT_ONCE = 256  # after so many features a hopeless candidate is given up
LEAST_SHARE = 1e-10  # a move must gain this share of the row's cost, or rounding could cycle


class Prices(NamedTuple):
    """What a row of one weight pays per feature: a factor of (x - m)^2, or a sum for a gap."""

    factor: np.ndarray  # (k, p)
    gap: np.ndarray  # (k, p)


@njit(**VECTORISED)
def _set_prices(sign, w, lam, c, weight, m, l, prices):
    """OUT prices of cluster l for rows of weight w that join (sign 1) or leave (-1)."""
    factor, gap = prices
    for j in range(c.shape[0]):
        D, away = weight[l, j], c[j] - m[l, j]
        # Nobody else in this feature: the centre is the value itself, nothing to pay or gain.
        seen = w * D / (D + sign * w)
        factor[l, j] = seen if D + sign * w > 1e-9 * w else 0.0
        unseen = lam * w * D / (D + sign * lam * w)
        gap[l, j] = unseen * away * away if D + sign * lam * w > 1e-9 * lam * w else 0.0


@njit(nogil=True, fastmath=REORDER)
def _price(x0, mask, m, factor, gap, start, stop):
    """What a row pays in features start..stop of a cluster. All arrays come as pointers."""
    total = 0.0
    for j in range(start, stop):
        d = x0[j] - m[j]
        total += factor[j] * d * d if mask[j] > 0.0 else gap[j]
    return total


@njit(nogil=True, cache=True)
def _shift_cluster(x0, mask, w, lam, c, sign, weight, m):
    """INOUT weight, m (p,) of a cluster that a row joins (sign 1) or leaves (-1)."""
    for j in range(x0.shape[0]):
        seen = mask[j] > 0.0
        own = w if seen else w * lam
        y = x0[j] if seen else c[j]
        new = weight[j] + sign * own
        if new > 1e-9 * own and own > 0.0:
            m[j] += sign * own * (y - m[j]) / new
            weight[j] = new
        elif own > 0.0:
            weight[j] = 0.0  # nobody left who knows this feature: the centre stays


@njit(nogil=True, cache=True)
def pass_over_block(block, weights, shift, c, lam, labels, members, weight, m):
    """INOUT labels (b,), members (k,), weight and m (k, p). Returns (moves, fall of the loss)."""
    k, p = m.shape
    x0, mask = np.empty(p), np.empty(p)
    joining = Prices(np.empty((k, p)), np.empty((k, p)))
    leaving = Prices(np.empty((k, p)), np.empty((k, p)))
    (joined, joined_gap), (left, left_gap) = joining, leaving
    row, gaps = pointer(x0, 0), pointer(mask, 0)
    priced = 0.0  # the weight of a row for which the prices hold
    moves, fall = 0, 0.0
    for i in range(n_rows(block)):
        w, own = weights[i], np.int64(labels[i])
        if w == 0.0 or members[own] <= 1:
            continue
        if w != priced:
            for l in range(k):
                _set_prices(1.0, w, lam, c, weight, m, l, joining)
                _set_prices(-1.0, w, lam, c, weight, m, l, leaving)
            priced = w
        load_row(block, i, shift, x0, mask)
        place = own * p
        gain = _price(
            row, gaps, pointer(m, place), pointer(left, place), pointer(left_gap, place), 0, p
        )
        best, least = own, gain * (1.0 - LEAST_SHARE)
        for l in range(k):
            if l == own:
                continue
            cost, start, place = 0.0, 0, l * p
            while start < p and cost < least:
                stop = min(start + FEATURES_AT_ONCE, p)
                cost += _price(
                    row, gaps, pointer(m, place), pointer(joined, place),
                    pointer(joined_gap, place), start, stop,
                )  # fmt: skip
                start = stop
            if cost < least:
                best, least = np.int64(l), cost
        if best != own:
            _shift_cluster(x0, mask, w, lam, c, -1.0, weight[own], m[own])
            _shift_cluster(x0, mask, w, lam, c, 1.0, weight[best], m[best])
            for changed in (own, best):
                _set_prices(1.0, w, lam, c, weight, m, changed, joining)
                _set_prices(-1.0, w, lam, c, weight, m, changed, leaving)
            members[own] -= 1
            members[best] += 1
            labels[i] = best
            moves += 1
            fall += gain - least
    return moves, fall


def move_rows(data, weights, shift, c, lam, labels, members, weight, m):
    """One pass of moves over all rows, in their order."""
    moves, fall = 0, 0.0
    for start, stop in data.edges:
        rows = slice(start, stop)
        more, further = pass_over_block(
            data.observed.block(start, stop), weights[rows], shift, c, lam,
            labels[rows], members, weight, m,
        )  # fmt: skip
        moves, fall = moves + more, fall + further
    return moves, fall


@overload(move_rows)
def _move_rows(data, weights, shift, c, lam, labels, members, weight, m):
    return lambda data, weights, shift, c, lam, labels, members, weight, m: pass_over_block(
        data, weights, shift, c, lam, labels, members, weight, m
    )


def polish(data, weights, shift, c, lam, max_iter, tol, labels, stats, r, m, path, done):
    """Move rows of start r until no move helps, or a pass gains less than the share tol.

    INOUT labels (n,), m (k, p), path (max_iter,) whose first ``done`` losses are known.
    Returns the number of losses now known.
    """
    k = m.shape[0]
    weight = np.empty_like(m)
    for l in range(k):
        for j in range(m.shape[1]):
            count = stats.counts[r, l, j]
            weight[l, j] = count + lam * max(stats.sizes[r, l] - count, 0.0)
    members = np.zeros(k, np.int64)
    for i in range(labels.shape[0]):
        if weights[i] > 0.0:
            members[labels[i]] += 1
    while done < max_iter:
        moves, fall = move_rows(data, weights, shift, c, lam, labels, members, weight, m)
        if moves == 0:
            break
        path[done] = max(path[done - 1] - fall, 0.0)
        done += 1
        if fall <= tol * path[done - 1]:
            break
    return done


polish_compiled = njit(nogil=True, cache=True)(polish)
