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


def _pairs_of(
    labels: np.ndarray, kept: np.ndarray, couples: Any, k: int, threads: int = 1
) -> tuple[np.ndarray, ...]:
    """Pairs together in both, in the first, in the second of C couples (C, G), and the rows (C, 1).

    labels (B, n, G), kept (B, n): judged are the rows that both fits of a couple keep.
    """
    labels, kept = np.ascontiguousarray(labels, np.int32), np.ascontiguousarray(kept)
    couples = np.ascontiguousarray(couples, np.int64)
    pairs = count_pairs(labels, kept, couples, k, threads)
    m = np.count_nonzero(kept[couples[:, 0]] & kept[couples[:, 1]], axis=1).astype(np.float64)
    return pairs[..., 0], pairs[..., 1], pairs[..., 2], m[:, None]


def _two(a: np.ndarray, b: np.ndarray, keep: np.ndarray) -> tuple[Any, Any, Any]:
    """Labels (n,) or (n, G) of two fits as one couple of ``_pairs_of``."""
    labels = np.stack([own.reshape(len(own), -1) for own in (a, b)])
    return labels, np.stack([keep, keep]), [(0, 1)]


def disagreements(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> np.ndarray:
    """(C, G) the authors' instability of each split; their denominator is (m - 1)(m - 2) / 2.

    The couples are the two fits of a split, with labels (B, n, G); judged are the rows that both
    have in ``kept`` (B, n).
    """
    both, in_a, in_b, m = _pairs_of(labels, kept, couples, k)
    return (in_a + in_b - 2.0 * both) / np.maximum((m - 1.0) * (m - 2.0) / 2.0, 1.0)


def disagreement(a: np.ndarray, b: np.ndarray, keep: np.ndarray, k: int) -> float:
    """Of one split: labels a, b (n,) of its two fits, the rows ``keep`` (n,) that are judged."""
    return float(disagreements(*_two(a, b, keep), k)[0, 0])


def adjusted_rand(a: np.ndarray, b: np.ndarray, keep: np.ndarray, k: int) -> np.ndarray:
    """For labels a, b (n,), or (G,) for labels (n, G)."""
    found = _adjusted(*_pairs_of(*_two(a, b, keep), k))[0]
    return found if a.ndim > 1 else found[0]


def _adjusted(both: Any, in_a: Any, in_b: Any, m: Any) -> np.ndarray:
    """From the pairs together in both, in a, in b, of m rows."""
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def pairwise_adjusted_rand(
    labels: np.ndarray, inside: np.ndarray, groups: np.ndarray, k: int, threads: int = 1
) -> np.ndarray:
    """labels (B, n, G), inside (B, n) -> (pairs, G): agreement on the rows two fits share.

    Pairs of fits from different groups (B,): what one group finds is no surprise to its own.
    """
    a, b = np.tril_indices(len(labels), -1)
    couples = np.stack([a, b], axis=1)[groups[a] != groups[b]]
    return _adjusted(*_pairs_of(labels, inside, couples, k, threads))


def alike(labels: np.ndarray, k: int, threads: int = 1) -> np.ndarray:
    """(B, B) adjusted Rand index of each of the partitions (B, n) with each other one."""
    count, n = labels.shape
    found = np.ones((count, count))
    every = np.ones((count, n), bool)
    below = np.tril_indices(count, -1)
    one = pairwise_adjusted_rand(labels[:, :, None], every, np.arange(count), k, threads)[:, 0]
    found[below] = found[below[::-1]] = one
    return found


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
