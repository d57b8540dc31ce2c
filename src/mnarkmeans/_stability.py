"""How far fits to parts of the rows agree: instability, and the stability of each cluster.

With T the contingency table of two partitions, r and c its margins, and (x over 2) = x (x - 1) / 2
pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)

Every candidate for lam is fitted to the same subsets, each with its own starts. The starts are run
with three of the candidates, and all candidates start from the results. (The paper's procedure fits
every candidate from all starts.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ._observed import Observed
from ._solver import STARTS, assign_rows, run_starts

ANCHORS = 3
SHARE_OF_ROWS = 0.8  # of a part


# --- how far partitions agree -------------------------------------------------------------------


def _pairs(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> tuple[np.ndarray, ...]:
    """Pairs together in both, in the first, in the second of C couples (C, G), and the rows (C, 1).

    labels (B, n, G), kept (B, n): rows are counted that both fits of a couple keep.
    """
    couples, offsets = np.reshape(couples, (-1, 2)), k * k * np.arange(labels.shape[2])
    tables = np.empty((len(couples), labels.shape[2], k, k))
    for table, (a, b) in zip(tables, couples, strict=True):
        rows = kept[a] & kept[b]
        cells = labels[a, rows] * k + labels[b, rows] + offsets
        table[:] = np.bincount(cells.ravel(), minlength=table.size).reshape(table.shape)

    def pairs(counts: np.ndarray) -> np.ndarray:
        return (counts * (counts - 1.0) / 2.0).sum(axis=tuple(range(2, counts.ndim)))

    rows = tables[:, :1].sum(axis=(2, 3))
    return pairs(tables), pairs(tables.sum(axis=3)), pairs(tables.sum(axis=2)), rows


def disagreements(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> np.ndarray:
    """(C, G) the authors' instability of each couple; their denominator is (m - 1)(m - 2) / 2."""
    both, in_a, in_b, m = _pairs(labels, kept, couples, k)
    return (in_a + in_b - 2.0 * both) / np.maximum((m - 1.0) * (m - 2.0) / 2.0, 1.0)


def pairwise_adjusted_rand(labels: np.ndarray, kept: np.ndarray, k: int) -> np.ndarray:
    """(pairs, G) agreement of every two fits on the rows that both keep (B, n)."""
    couples = np.stack(np.tril_indices(len(labels), -1), axis=1)
    both, in_a, in_b, m = _pairs(labels, kept, couples, k)
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def cluster_stability(reference: np.ndarray, labels: np.ndarray, kept: np.ndarray, k: int) -> Any:
    """For each cluster of `reference` (n,), the mean of its best Jaccard similarities with those of
    fits, labels (B, n), on the rows they keep (B, n).

    Near 1: the cluster is found again whichever rows are left out; below about 0.5: it dissolves.
    """
    similarity = np.zeros((len(labels), k))
    for b, rows in enumerate(kept):
        table = np.bincount(reference[rows] * k + labels[b, rows], minlength=k * k).reshape(k, k)
        union = table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True) - table
        similarity[b] = (table / np.maximum(union, 1.0)).max(axis=1)
    return similarity.mean(axis=0)


def spread(values: np.ndarray) -> np.ndarray:
    """Standard deviation over the first axis; 0 where there is but one value."""
    return values.std(axis=0, ddof=min(1, len(values) - 1))


# --- parts of the rows --------------------------------------------------------------------------


def thirds(n: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts (2 * n_splits, n): every split draws one of three labels per row, parts 1 and 2."""
    drawn = rng.randint(3, size=(n_splits, n))
    return np.concatenate([drawn == 0, drawn == 1])


def subsamples(n: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts (n_splits, n): SHARE_OF_ROWS of the rows each, without replacement."""
    size = max(min(round(SHARE_OF_ROWS * n), n - 1), 1)
    parts = np.zeros((n_splits, n), bool)
    for part in parts:
        part[rng.permutation(n)[:size]] = True
    return parts


def best_of_starts(
    observed: Observed, starts: np.ndarray, penalties: np.ndarray, **how: Any
) -> np.ndarray:
    """(L, k, p): the best result of the starts (R, k, p), for each of the penalties (L, p).

    Those of one start follow each other: their first partition is summed up once.
    """
    n_starts, count = len(starts), len(penalties)
    lams = np.tile(penalties, (n_starts, 1))
    results = run_starts(observed, np.repeat(starts, count, axis=0), lams, **how)
    best = results.losses.reshape(n_starts, count).argmin(axis=0)
    return results.centers[best * count + np.arange(count)]


def fit_parts(
    observed: Observed, k: int, penalties: np.ndarray, parts: np.ndarray, *, init: str,
    n_starts: int, seeds: np.ndarray, thorough: bool, max_iter: int, tol: float, threads: int,
    progress: Callable[[], None],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Fit every part (B, n) of bool with every candidate (G, p) for lam.

    Returns the labels of all rows (B, n, G) by the fits, and the seconds (B,) per candidate.
    ``thorough``: every candidate from every start. ``progress`` is called after every part.
    """

    (n_parts, n), count = parts.shape, len(penalties)
    labels, seconds = np.empty((n_parts, n, count), np.int32), np.zeros(n_parts)
    n_anchors = min(ANCHORS, count)
    anchors = ((np.arange(n_anchors) + 0.5) * count / n_anchors).astype(int)  # evenly spread
    # Small parts are fitted side by side, each by one thread.
    workers, threads = (threads, 1) if observed.table.is_small else (1, threads)
    how = dict(max_iter=max_iter, tol=tol, threads=threads)

    def fit(b: int) -> None:
        began, part = time.perf_counter(), observed.take(np.flatnonzero(parts[b]))
        centers = STARTS[init](part, n_starts, k, np.random.RandomState(seeds[b]), threads)
        if not thorough:
            centers = best_of_starts(part, centers, penalties[anchors], **how)
        centers = best_of_starts(part, centers, penalties, **how)
        labels[b] = assign_rows(observed, centers, penalties, threads)
        seconds[b] = (time.perf_counter() - began) / count

    with ThreadPoolExecutor(workers) as pool:
        run = pool.map if workers > 1 else map  # Ctrl-C stops calls of the main thread at once
        for _ in run(fit, range(n_parts)):
            progress()
    return labels, seconds
