"""How far two partitions agree, from their contingency table.

With T the table, r and c its margins, and (x over 2) = x (x - 1) / 2 pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pairs_together(a, b, keep, k):
    """Pairs of kept rows together in both, in a, in b; and the number of rows."""
    table = np.zeros((k, k))
    m = 0.0
    for i in range(a.shape[0]):
        if keep[i]:
            table[a[i], b[i]] += 1.0
            m += 1.0
    both = 0.0
    rows, columns = np.zeros(k), np.zeros(k)
    for x in range(k):
        for y in range(k):
            both += table[x, y] * (table[x, y] - 1.0) / 2.0
            rows[x] += table[x, y]
            columns[y] += table[x, y]
    in_a = np.sum(rows * (rows - 1.0)) / 2.0
    in_b = np.sum(columns * (columns - 1.0)) / 2.0
    return both, in_a, in_b, m


@njit(cache=True, nogil=True)
def disagreement(a, b, keep, k):
    """The authors' instability of one split; their denominator is (m - 1)(m - 2) / 2."""
    both, in_a, in_b, m = pairs_together(a, b, keep, k)
    return (in_a + in_b - 2.0 * both) / max((m - 1.0) * (m - 2.0) / 2.0, 1.0)


@njit(cache=True, nogil=True)
def adjusted_rand(a, b, keep, k):
    both, in_a, in_b, m = pairs_together(a, b, keep, k)
    expected = in_a * in_b / max(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    return 1.0 if most == expected else (both - expected) / (most - expected)


@njit(cache=True, nogil=True)
def pairwise_adjusted_rand(labels, inside, k):
    """labels (B, n, G), inside (B, n) -> (pairs of B, G): agreement on the rows two fits share."""
    n_splits, _, n_candidates = labels.shape
    out = np.empty((n_splits * (n_splits - 1) // 2, n_candidates))
    for g in range(n_candidates):
        pair = 0
        for a in range(n_splits):
            for b in range(a):
                shared = inside[a] & inside[b]
                out[pair, g] = adjusted_rand(labels[a, :, g], labels[b, :, g], shared, k)
                pair += 1
    return out


def cluster_stability(reference: np.ndarray, labels: np.ndarray, inside: np.ndarray, k: int):
    """For each cluster of `reference`, the mean over fits of its best Jaccard similarity.

    reference (n,), labels (B, n), inside (B, n). Near 1: the cluster is found again whichever
    rows are left out; below about 0.5: it dissolves.
    """
    found = np.zeros((len(labels), k))
    for b, (own, kept) in enumerate(zip(labels, inside, strict=True)):
        table = np.zeros((k, k))
        np.add.at(table, (reference[kept], own[kept]), 1.0)
        union = table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True) - table
        found[b] = (table / np.maximum(union, 1.0)).max(axis=1)
    return found.mean(axis=0)


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation over the first axis; 0 where there is but one value."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
