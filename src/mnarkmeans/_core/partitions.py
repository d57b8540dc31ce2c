"""Pairs of rows that partitions agree on (``agreement.h``), moves of single rows (``moves.h``)."""

from __future__ import annotations

import numpy as np

from . import library as structs
from .arrays import at, where
from .waiting import address, call


def count_pairs(
    labels: np.ndarray, kept: np.ndarray, couples: np.ndarray, k: int, threads: int = 1
) -> np.ndarray:
    """(C, G, 3) pairs of rows together in both, in the first, in the second of couples (C, 2).

    They are couples of the fits with labels (B, n, G) below k; judged are the rows that both have
    in ``kept`` (B, n).
    """
    count, n, candidates = labels.shape
    if labels.size and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}")
    if couples.size and not (couples.min() >= 0 and couples.max() < count):
        raise IndexError(f"couples must be of {count} fits")
    pairs = np.empty((len(couples), candidates, 3))
    own = structs.Partitions(
        at(labels, np.int32, labels.shape), at(kept, np.bool_, (count, n)), n, candidates, k
    )  # fmt: skip
    call(
        "count_pairs", address(own), at(couples, np.int64, (len(couples), 2)), len(couples),
        where(pairs), threads=threads, work=1.0 * n * candidates * len(couples),
    )  # fmt: skip
    return pairs


def move_rows(X: np.ndarray, centers: np.ndarray, max_iter: int, threads: int = 1) -> np.ndarray:
    """IN X (n, p) without gaps; INOUT centers (R, k, p); returns labels (R, n) of R starts."""
    (n, p), (n_starts, k, _) = X.shape, centers.shape
    labels = np.empty((n_starts, n), np.int32)
    moving = structs.Moving(
        at(X, np.float64, (n, p)), n, p, n_starts, k, max_iter,
        at(centers, np.float64, (n_starts, k, p)), where(labels),
    )  # fmt: skip
    call("move_rows", address(moving), threads=threads, work=10.0 * n * p * k * n_starts)
    return labels
