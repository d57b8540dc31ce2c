"""A whole k-means on complete data by single-row moves, as R's default (Hartigan-Wong) does.

A row at squared distance d_a from its centre leaves a cluster of n_a rows for one of n_b when

    n_b / (n_b + 1) d_b  <  n_a / (n_a - 1) d_a

which is the exact fall of the within-cluster sum of squares. Only the authors' initialisation
needs it: there are no gaps and no weights here, so it is a tenth of the package's own solver.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def move_rows(X, centers, max_iter):
    """IN X (n, p); INOUT centers (R, k, p); returns labels (R, n) of R starts."""
    n, p = X.shape
    n_starts, k, _ = centers.shape
    labels = np.empty((n_starts, n), np.int32)
    for r in range(n_starts):
        m = centers[r]
        own = labels[r]
        _nearest(X, m, own)
        sizes = _means(X, own, m)
        for _ in range(max_iter):
            moved = False
            for i in range(n):
                a = own[i]
                if sizes[a] <= 1:
                    continue
                least = _square(X[i], m[a]) * sizes[a] / (sizes[a] - 1) * (1 - 1e-10)
                b = a
                for l in range(k):
                    if l != a:
                        cost = _square(X[i], m[l]) * sizes[l] / (sizes[l] + 1)
                        if cost < least:
                            b, least = l, cost
                if b != a:
                    sizes[a] -= 1
                    sizes[b] += 1
                    for j in range(p):
                        m[a, j] -= (X[i, j] - m[a, j]) / sizes[a]
                        m[b, j] += (X[i, j] - m[b, j]) / sizes[b]
                    own[i] = b
                    moved = True
            if not moved:
                break
        _means(X, own, m)  # afresh: the running ones carry rounding
    return labels


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc"})
def _square(x, m):
    total = 0.0
    for j in range(x.shape[0]):
        d = x[j] - m[j]
        total += d * d
    return total


@njit(nogil=True, cache=True)
def _nearest(X, m, own):
    for i in range(X.shape[0]):
        best = np.inf
        for l in range(m.shape[0]):
            cost = _square(X[i], m[l])
            if cost < best:
                best = cost
                own[i] = l


@njit(nogil=True, cache=True)
def _means(X, own, m):
    """OUT m: the mean of each cluster (kept where it is empty); returns the sizes."""
    k, p = m.shape
    sums, sizes = np.zeros((k, p)), np.zeros(k)
    for i in range(X.shape[0]):
        sizes[own[i]] += 1
        for j in range(p):
            sums[own[i], j] += X[i, j]
    for l in range(k):
        if sizes[l] > 0:
            for j in range(p):
                m[l, j] = sums[l, j] / sizes[l]
    return sizes


@njit(nogil=True, cache=True)
def same_partitions(labels, k):
    """Starts (rows of labels) that end in different partitions, and which of them each one is."""
    n_starts = labels.shape[0]
    first = np.empty(n_starts, np.int64)
    which = np.empty(n_starts, np.int64)
    found = 0
    for r in range(n_starts):
        which[r] = found
        for other in range(found):
            if _renamed(labels[r], labels[first[other]], k):
                which[r] = other
                break
        if which[r] == found:
            first[found] = r
            found += 1
    return first[:found], which


@njit(nogil=True, cache=True)
def _renamed(a, b, k):
    """Are a and b one partition under two sets of names?"""
    names, taken = np.full(k, -1), np.zeros(k, np.bool_)
    for i in range(a.shape[0]):
        if names[a[i]] < 0:
            if taken[b[i]]:
                return False
            names[a[i]] = b[i]
            taken[b[i]] = True
        elif names[a[i]] != b[i]:
            return False
    return True
