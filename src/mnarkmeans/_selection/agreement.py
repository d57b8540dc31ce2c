"""How far two partitions agree, from their contingency table.

With T the table, r and c its margins, and (x over 2) = x (x - 1) / 2 pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.partitions import count_pairs


def _pairs(a: np.ndarray, b: np.ndarray, keep: np.ndarray, k: int) -> Any:
    """Pairs of kept rows together in both, in a, in b, for labels (n,) or (n, G); and kept rows."""
    left, right = (np.ascontiguousarray(own.reshape(len(own), -1), np.int32) for own in (a, b))
    pairs = count_pairs(left, right, np.ascontiguousarray(keep), k).T
    return *(pairs if a.ndim > 1 else pairs[:, 0]), float(np.count_nonzero(keep))


def disagreement(a: np.ndarray, b: np.ndarray, keep: np.ndarray, k: int) -> np.ndarray:
    """The authors' instability of one split; their denominator is (m - 1)(m - 2) / 2.

    a, b (n,) or (n, G): labels of two fits; keep (n,): the rows that are judged.
    """
    both, in_a, in_b, m = _pairs(a, b, keep, k)
    return (in_a + in_b - 2.0 * both) / max((m - 1.0) * (m - 2.0) / 2.0, 1.0)


def adjusted_rand(a: np.ndarray, b: np.ndarray, keep: np.ndarray, k: int) -> np.ndarray:
    """For labels a, b (n,), or (G,) for labels (n, G)."""
    both, in_a, in_b, m = _pairs(a, b, keep, k)
    expected = in_a * in_b / max(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def pairwise_adjusted_rand(labels: np.ndarray, inside: np.ndarray, k: int) -> np.ndarray:
    """labels (B, n, G), inside (B, n) -> (pairs of B, G): agreement on the rows two fits share."""
    pairs = [(a, b) for a in range(len(labels)) for b in range(a)]
    found = [adjusted_rand(labels[a], labels[b], inside[a] & inside[b], k) for a, b in pairs]
    return np.array(found).reshape(len(pairs), labels.shape[2])


def cluster_stability(reference: np.ndarray, labels: np.ndarray, inside: np.ndarray, k: int) -> Any:
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
