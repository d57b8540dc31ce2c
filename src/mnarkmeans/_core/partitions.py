"""Pairs of rows that partitions agree on (``agreement.h``)."""

from __future__ import annotations

import numpy as np

from .arrays import shaped
from .library import structs
from .waiting import call


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
        shaped(labels, *labels.shape), shaped(kept, count, n), n, candidates, k
    )  # fmt: skip
    call(
        "count_pairs", own, shaped(couples, len(couples), 2), len(couples),
        pairs, threads=threads, work=1.0 * n * candidates * len(couples),
    )  # fmt: skip
    return pairs
