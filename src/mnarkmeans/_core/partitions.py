"""Pairs of rows that partitions agree on (``agreement.h``), moves of single rows (``moves.h``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import library as structs
from .arrays import at, where
from .library import library
from .waiting import DONE, address, call


def count_pairs(a: np.ndarray, b: np.ndarray, kept: np.ndarray, k: int) -> np.ndarray:
    """(G, 3) pairs of kept rows together in both, in a, in b; labels a, b (n, G) below k."""
    both = np.stack([a, b])
    return count_pairs_of(both, np.broadcast_to(kept, both.shape[:2]), [(0, 1)], k)[0]


def count_pairs_of(
    labels: np.ndarray, kept: np.ndarray, couples: Sequence[tuple[int, int]], k: int
) -> np.ndarray:
    """(C, G, 3) as ``count_pairs``, for couples of the fits with labels (B, n, G).

    Judged are the rows that both have in ``kept`` (B, n).
    """
    _, n, candidates = labels.shape
    if labels.size and not (labels.min() >= 0 and labels.max() < k):
        raise ValueError(f"labels must be from 0 to {k - 1}")
    fits = [at(own, np.int32, (n, candidates)) for own in labels]
    pairs = np.empty((len(couples), candidates, 3))
    for (a, b), own in zip(couples, pairs, strict=True):
        shared = kept[a] & kept[b]
        status = library.mnarkmeans_count_pairs(
            fits[a], fits[b], at(shared, np.bool_, (n,)), n, candidates, k, where(own)
        )
        if status != DONE:
            raise MemoryError
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
