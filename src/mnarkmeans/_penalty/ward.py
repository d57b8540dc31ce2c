"""Ward's clusters of weighted points: merge the two whose union costs least, until k are left.

The cost of a union is w_a w_b / (w_a + w_b) |a - b|^2, and after a merger

    cost(ab, c) = ((w_a + w_c) cost(a, c) + (w_b + w_c) cost(b, c) - w_c cost(a, b)) / w_abc

Merging any two that are nearest to each other leads to the same tree as merging the nearest of all
(a chain of nearest neighbours ends in such a pair), at n^2 work in all.
"""

from __future__ import annotations

import numpy as np


def ward_labels(squares: np.ndarray, weights: np.ndarray, k: int) -> np.ndarray:
    """(n,) labels of k clusters of a few hundred points, from their squared distances (n, n)."""
    merged = sorted(_mergers(_costs(squares, weights), weights.astype(float)))
    parent = np.arange(len(weights))
    for _, _, kept, gone in merged[: len(weights) - k]:
        parent[parent == parent[gone]] = parent[kept]
    return np.unique(parent, return_inverse=True)[1].astype(np.int32)


def _costs(squares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    both = weights[:, None] + weights
    costs = weights[:, None] * weights / np.where(both > 0, both, 1.0) * (squares + squares.T) / 2
    np.fill_diagonal(costs, np.inf)
    return costs


def _mergers(costs: np.ndarray, weights: np.ndarray) -> list[tuple[float, int, int, int]]:
    """(cost, number, kept, gone) of all mergers; a merged cluster goes on under ``kept``."""
    merged: list[tuple[float, int, int, int]] = []
    there = np.ones(len(weights), bool)
    chain: list[int] = []
    for number in range(len(weights) - 1):
        if not chain:
            chain.append(int(np.argmax(there)))
        while True:
            a = chain[-1]
            b = int(np.argmin(costs[a]))
            if len(chain) > 1 and costs[a, chain[-2]] <= costs[a, b]:
                b = chain[-2]
                break
            chain.append(b)
        del chain[-2:]
        cost, (kept, gone) = costs[a, b], sorted((a, b))
        merged.append((float(cost), number, kept, gone))
        w_a, w_b, total = weights[kept], weights[gone], weights[kept] + weights[gone] + weights
        others = (w_a + weights) * costs[kept] + (w_b + weights) * costs[gone] - weights * cost
        there[gone] = False
        new = np.where(there, others / np.where(total > 0, total, 1.0), np.inf)
        new[kept] = np.inf
        costs[kept], costs[:, kept] = new, new
        costs[gone], costs[:, gone] = np.inf, np.inf
        weights[kept] += weights[gone]
    return merged
