"""A whole k-means on complete data by single-row moves, as R's default (Hartigan-Wong) does.

A row at squared distance d_a from its centre leaves a cluster of n_a rows for one of n_b when

    n_b / (n_b + 1) d_b  <  n_a / (n_a - 1) d_a

which is the exact fall of the within-cluster sum of squares. Only the authors' initialisation
needs it: there are no gaps and no weights here, so it is a tenth of the package's own solver.
"""

from __future__ import annotations

import numpy as np

from .._core.partitions import move_rows

__all__ = ["move_rows", "same_partitions"]


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
