"""How far two partitions agree, from their contingency table.

With T the table, r and c its margins, and (x over 2) = x (x - 1) / 2 pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.partitions import count_pairs, count_pairs_of


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
    return _adjusted(*_pairs(a, b, keep, k))


def _adjusted(both: Any, in_a: Any, in_b: Any, m: Any) -> np.ndarray:
    """From the pairs together in both, in a, in b, of m rows."""
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def pairwise_adjusted_rand(
    labels: np.ndarray, inside: np.ndarray, groups: np.ndarray, k: int
) -> np.ndarray:
    """labels (B, n, G), inside (B, n) -> (pairs, G): agreement on the rows two fits share.

    Pairs of fits from different groups (B,): what one group finds is no surprise to its own.
    """
    couples = [(a, b) for a in range(len(labels)) for b in range(a) if groups[a] != groups[b]]
    labels, inside = np.ascontiguousarray(labels, np.int32), np.ascontiguousarray(inside)
    both, in_a, in_b = np.moveaxis(count_pairs_of(labels, inside, couples, k), 2, 0)
    shared = inside.astype(np.float64) @ inside.T
    m = np.array([shared[couple] for couple in couples]).reshape(-1, 1)
    return _adjusted(both, in_a, in_b, m)


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
