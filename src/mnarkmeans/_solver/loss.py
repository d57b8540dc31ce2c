"""The maths of the loss.

    L = sum_i s_i min_l [ sum_{j observed} (x_ij - mu_lj)^2 + lam sum_{j missing} (mu_lj - c_j)^2 ]

Three sums per cluster hold all that the centres and the loss need, and they add up over any split
of the rows: S of the observed values, C the weight of the observing rows, N the weight of all rows.

    centre  mu = (S + lam (N - C) c) / (C + lam (N - C))
    loss    sum x^2 + sum_lj [ C mu^2 - 2 mu S + lam (N - C) (mu - c)^2 ]

Both hold with x, mu and c all taken relative to any shift; the solvers work in such shifted
coordinates throughout, written ``m`` (centres) and ``c`` (reference) here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from .._kernels import row_key
from .._rows import REORDER

# A division may be by nothing where its result is not used: "numpy" does not stop to look.
VECTORISED = {"nogil": True, "cache": True, "fastmath": REORDER, "error_model": "numpy"}


class Stats(NamedTuple):
    """Sums over rows, for R starts of k clusters each. They add up over row blocks."""

    sums: np.ndarray  # (R, k, p) of observed values
    counts: np.ndarray  # (R, k, p) weight of the rows that observe the feature
    sizes: np.ndarray  # (R, k) weight of the rows
    keys: np.ndarray  # (R, k) uint64, sum of the rows' keys: tells partitions apart
    squares: np.ndarray  # (R,) of all observed values squared


def zero_stats(n_starts: int, k: int, p: int) -> Stats:
    return Stats(
        np.zeros((n_starts, k, p)),
        np.zeros((n_starts, k, p)),
        np.zeros((n_starts, k)),
        np.zeros((n_starts, k), np.uint64),
        np.zeros(n_starts),
    )


def merge_stats(into: Stats, part: Stats) -> None:
    """INOUT into += part."""
    for total, piece in zip(into, part, strict=True):
        total += piece


def bytes_of_stats(n_starts: int, k: int, p: int) -> int:
    return 16 * n_starts * k * (p + 1)


class Tables(NamedTuple):
    """What the assignment needs of T centres; see ``_kernels`` for the formula."""

    shift: np.ndarray  # (p,)
    A: np.ndarray  # (T, p), or (p, T) for CSR
    B: np.ndarray  # (T, p), or q (T,) for CSR
    const: np.ndarray  # (T,)
    filling: np.ndarray  # (p,) c where every lam is 1: gaps then count as c observed; else empty


@njit(nogil=True, cache=True)
def gaps_as(c, lam):
    """What gaps can be filled with for penalties lam (G,); empty if they have to be told apart."""
    return c if np.all(lam == 1.0) else np.empty(0)


@njit(**VECTORISED)
def dense_tables(shift, centers, lam, c):
    """Tables of the centres (G, k, p) of G starts with penalties lam (G,)."""
    groups, k, p = centers.shape
    A, B = np.empty((groups * k, p)), np.empty((groups * k, p))
    const = np.empty(groups * k)
    for g in range(groups):
        for l in range(k):
            t = g * k + l
            total = 0.0
            for j in range(p):
                m = centers[g, l, j]
                pull = lam[g] * (m - c[j]) ** 2
                A[t, j] = -2.0 * m
                B[t, j] = m * m - pull
                total += pull
            const[t] = total
    return Tables(shift, A, B, const, gaps_as(c, lam))


@njit(nogil=True, cache=True)
def csr_tables(shift, centers, lam):
    """Tables for CSR blocks: the shift is the reference, so c = 0."""
    groups, k, p = centers.shape
    A = np.empty((p, groups * k))
    q, const = np.empty(groups * k), np.empty(groups * k)
    for g in range(groups):
        for l in range(k):
            t = g * k + l
            total = 0.0
            for j in range(p):
                m = centers[g, l, j]
                A[j, t] = -2.0 * m
                total += m * m
            q[t] = (1.0 - lam[g]) / 4.0
            const[t] = lam[g] * total
    return Tables(shift, A, q, const, np.empty(0))


@njit(**VECTORISED)
def update_centers(stats, r, lam, c, m):
    """INOUT m (k, p): the centres that minimise the loss of start r's partition.

    Where lam = 0 and nobody in the cluster observes the feature the loss is flat: m stays.
    An empty cluster stays where it is.
    """
    sums, counts, sizes = stats.sums, stats.counts, stats.sizes
    for l in range(m.shape[0]):
        size = sizes[r, l]
        for j in range(m.shape[1]):
            count = counts[r, l, j]
            gaps = size - count
            pull = lam * gaps if gaps > 0.0 else 0.0
            weight = count + pull
            mean = (sums[r, l, j] + pull * c[j]) / weight
            m[l, j] = mean if weight > 0.0 else m[l, j]


@njit(**VECTORISED)
def partition_loss(stats, r, lam, c, m):
    """The loss of start r's partition with the centres m."""
    sums, counts, sizes = stats.sums, stats.counts, stats.sizes
    total = 0.0
    for l in range(m.shape[0]):
        size = sizes[r, l]
        for j in range(m.shape[1]):
            count, value = counts[r, l, j], m[l, j]
            gaps = size - count
            pull = lam * gaps if gaps > 0.0 else 0.0
            away = value - c[j]
            total += value * (count * value - 2.0 * sums[r, l, j]) + pull * away * away
    return max(stats.squares[r] + total, 0.0)


@njit(nogil=True, cache=True)
def signature(stats, r):
    """A number that two partitions share when they are the same up to the clusters' names."""
    total = np.uint64(0)
    for l in range(stats.keys.shape[1]):
        total += row_key(stats.keys[r, l])
    return total


@njit(nogil=True, cache=True)
def is_determined(stats, r, lam):
    """Whether the partition alone fixes the centres (not so where the loss is flat)."""
    if lam > 0.0:
        return True
    for l in range(stats.counts.shape[1]):
        for j in range(stats.counts.shape[2]):
            if stats.counts[r, l, j] <= 0.0:
                return False
    return True
