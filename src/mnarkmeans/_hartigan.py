"""Hartigan's moves: one row at a time changes cluster whenever the loss falls.

Seen by a cluster, feature j of row i is a point y of weight w: the observed value with the row's
weight, or the reference with lam times it. If the cluster has weight D and centre m there,

    joining costs   sum_j  w D / (D + w) (y - m)^2
    leaving gains   sum_j  w D / (D - w) (y - m)^2

A partition that no such move improves is also a fixed point of Lloyd's loop, but not the other
way round: these optima are never worse.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numba.extending import overload

from ._kernels import REORDER, load_row, n_rows

FEATURES_AT_ONCE = 256  # after so many features a hopeless candidate is given up
LEAST_SHARE = 1e-10  # a move must gain this share of the row's cost, or rounding could cycle


@njit(nogil=True, cache=True, fastmath=REORDER)
def _joining(x0, mask, w, lam, c, weight, m, start, stop):
    total = 0.0
    for j in range(start, stop):
        seen = mask[j] > 0.0
        own = w if seen else w * lam
        d = (x0[j] if seen else c[j]) - m[j]
        joint = weight[j] + own
        total += own * weight[j] / (joint if joint > 0.0 else 1.0) * d * d
    return total


@njit(nogil=True, cache=True, fastmath=REORDER)
def _leaving(x0, mask, w, lam, c, weight, m):
    total = 0.0
    for j in range(x0.shape[0]):
        seen = mask[j] > 0.0
        own = w if seen else w * lam
        d = (x0[j] if seen else c[j]) - m[j]
        rest = weight[j] - own
        # Alone in this feature: the centre is the value itself, nothing to gain.
        factor = own * weight[j] / rest if rest > 1e-9 * own else 0.0
        total += factor * d * d
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
    moves, fall = 0, 0.0
    for i in range(n_rows(block)):
        w, own = weights[i], labels[i]
        if w == 0.0 or members[own] <= 1:
            continue
        load_row(block, i, shift, x0, mask)
        gain = _leaving(x0, mask, w, lam, c, weight[own], m[own])
        best, least = own, gain * (1.0 - LEAST_SHARE)
        for l in range(k):
            if l == own:
                continue
            cost, start = 0.0, 0
            while start < p and cost < least:
                stop = min(start + FEATURES_AT_ONCE, p)
                cost += _joining(x0, mask, w, lam, c, weight[l], m[l], start, stop)
                start = stop
            if cost < least:
                best, least = l, cost
        if best != own:
            _shift_cluster(x0, mask, w, lam, c, -1.0, weight[own], m[own])
            _shift_cluster(x0, mask, w, lam, c, 1.0, weight[best], m[best])
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
