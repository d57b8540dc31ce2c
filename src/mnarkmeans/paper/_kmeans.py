"""Whole k-means runs on a complete table, as R's default does: what the authors start from.

k-means++, then moves of single rows until none helps (Hartigan-Wong); the formula is in
``moves.h``. There are no gaps and no weights here, so it is a tenth of the package's own solver.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.partitions import move_rows

MAX_ITER = 100


class Starts(NamedTuple):
    """Different starting centres (R, k, p), and for each start drawn which of them it got."""

    centers: np.ndarray
    which: np.ndarray


def run_kmeans(X: np.ndarray, k: int, n_runs: int, rng: np.random.Generator) -> Starts:
    """The centres of `n_runs` runs on X without gaps; runs that end alike are kept once."""
    centers = plus_plus(X, k, n_runs, rng)
    labels = move_rows(X, centers, MAX_ITER)
    first, which = same_partitions(labels, k)
    return Starts(centers[first], which)


def plus_plus(X: np.ndarray, k: int, n_starts: int, rng: np.random.Generator) -> np.ndarray:
    """Plain k-means++ (one candidate per step): centres (n_starts, k, p) among the rows of X."""
    squares = (X**2).sum(axis=1)
    starts = np.empty((n_starts, k, X.shape[1]))
    nearest = np.full((n_starts, len(X)), np.inf)
    chosen = rng.integers(len(X), size=n_starts)
    for step in range(k):
        starts[:, step] = X[chosen]
        if step == k - 1:
            break
        distance = squares[chosen][:, None] - 2 * X[chosen] @ X.T + squares
        np.minimum(nearest, np.maximum(distance, 0.0), out=nearest)
        reach = np.cumsum(nearest, axis=1)
        target = rng.random(n_starts) * reach[:, -1]
        chosen = np.minimum((reach <= target[:, None]).sum(axis=1), len(X) - 1)
    return starts


def same_partitions(labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts (rows of labels) that end in different partitions, and which of them each one is."""
    seen: dict[bytes, int] = {}
    first: list[int] = []
    which: list[int] = []
    for r, own in enumerate(labels):
        name = _named_by_first_rows(own, k).tobytes()
        if name not in seen:
            seen[name] = len(first)
            first.append(r)
        which.append(seen[name])
    return np.array(first), np.array(which)


def _named_by_first_rows(own: np.ndarray, k: int) -> np.ndarray:
    """The same partition, every cluster named by its first row."""
    n = len(own)
    first = np.full(k, n)
    first[own[::-1]] = np.arange(n)[::-1]  # of several, the last to be written stays
    return first[own]
