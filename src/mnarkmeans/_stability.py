"""How far fits to parts of the rows agree: instability, and the stability of each cluster.

With T the contingency table of two partitions, r and c its margins, and (x over 2) = x (x - 1) / 2
pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)

Every candidate for lam is fitted to the same parts, each with starts of its own. They are tried at
three of the candidates, and all candidates go on from what was found there. (The paper's procedure
fits every candidate from all starts.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ._observed import Observed
from ._solver import assign_rows, run_starts_of_each

ANCHORS = 3
SHARE_OF_ROWS = 0.8  # of a part
MOST_AT_ONCE, STARTS_AT_ONCE = 1 << 25, 5  # entries x centres of small parts fitted together


# --- how far partitions agree -------------------------------------------------------------------


def _pairs(labels: np.ndarray, kept: np.ndarray, couples: Any, k: int) -> tuple[np.ndarray, ...]:
    """Pairs together in both, in the first, in the second of C couples (C, G), and the rows (C, 1).

    labels (B, n, G), kept (B, n): judged are the rows that both fits of a couple keep.
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
    """(C, G) the authors' instability of each couple; their denominator is (m - 1)(m - 2) / 2.

    labels (B, n, G); judged are the rows that both fits of a couple have in ``kept`` (B, n).
    """
    both, in_a, in_b, m = _pairs(labels, kept, couples, k)
    return (in_a + in_b - 2.0 * both) / np.maximum((m - 1.0) * (m - 2.0) / 2.0, 1.0)


def pairwise_adjusted_rand(labels: np.ndarray, inside: np.ndarray, k: int) -> np.ndarray:
    """labels (B, n, G), inside (B, n) -> (pairs, G): agreement on the rows two fits share."""
    couples = np.stack(np.tril_indices(len(labels), -1), axis=1)
    both, in_a, in_b, m = _pairs(labels, inside, couples, k)
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


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


# --- parts of the rows --------------------------------------------------------------------------


def thirds(n: int, n_splits: int, rng: np.random.RandomState) -> np.ndarray:
    """Parts (2 * n_splits, n): every split draws one of three labels per row, parts 1 and 2."""
    drawn = rng.randint(3, size=(n_splits, n))
    return np.concatenate([drawn == 0, drawn == 1])


def subsamples(n: int, n_splits: int, share: float, rng: np.random.RandomState) -> np.ndarray:
    """Parts (n_splits, n): a share of the rows each, without replacement."""
    size = subsample_size(n, share)
    parts = np.zeros((n_splits, n), bool)
    for part in parts:
        part[rng.permutation(n)[:size]] = True
    return parts


def subsample_size(n: int, share: float) -> int:
    return min(max(round(share * n), 1), n - 1) if n > 1 else n


def check_part(size: int, k: int, n: int) -> None:
    """Refuse parts of so many rows if more clusters are asked for."""
    if size < k:
        raise ValueError(
            f"n_samples={n} usable rows are too few to choose with n_clusters={k}: a part of them "
            f"has only {size} rows. Ask for fewer clusters, or use MNARKMeans."
        )


# --- fits to parts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What the fits of B parts with G candidates for lam showed, for one k."""

    k: int
    lams: np.ndarray  # (G,) rising
    labels: np.ndarray  # (B, n, G) of every row, by the fit to the part
    inside: np.ndarray  # (B, n) rows of the part
    seconds: np.ndarray  # (B,) per candidate

    @cached_property
    def smallest_cluster(self) -> np.ndarray:
        """(G,) rows of the smallest cluster, median over the parts."""
        n_candidates, k = len(self.lams), self.k
        names = k * np.arange(n_candidates)
        sizes = [
            np.bincount((own + names).ravel(), minlength=k * n_candidates) for own in self.labels
        ]
        return np.median(np.reshape(sizes, (-1, n_candidates, k)).min(axis=2), axis=0)

    @property
    def next_to_empty(self) -> np.ndarray:
        """(G,) candidates of which a cluster has next to no rows."""
        return self.smallest_cluster < max(2.0, 0.05 * self.labels.shape[1] / self.k)

    def instability_of_thirds(self) -> np.ndarray:
        """(n_splits, G) disagreement on the rows of the third part, as the paper's authors do."""
        n_splits = len(self.labels) // 2
        couples = np.arange(2 * n_splits).reshape(2, n_splits).T
        return disagreements(self.labels, ~self.inside, couples, self.k)

    def instability_of_subsamples(self) -> np.ndarray:
        """(pairs, G) 1 - adjusted Rand index of every two parts."""
        return 1.0 - pairwise_adjusted_rand(self.labels, self.inside, self.k)


def gather(
    observed: Observed, k: int, lams: np.ndarray, features: np.ndarray, parts: np.ndarray,
    starts: Callable[[list[Observed], np.ndarray], list[np.ndarray]], *, thorough: bool,
    max_iter: int, tol: float, threads: int, report: Callable[[], None] = lambda: None,
) -> Evidence:  # fmt: skip
    """Fit every part (B, n) of bool with every candidate (G,) and label all rows.

    ``features`` (p,): 0 for those without a penalty. ``starts(tables, numbers)``: (R, k, p) for
    each of the tables, the parts with these numbers. ``thorough``: every candidate from every
    start.
    """

    def best(tables: list[Observed], begin: Sequence[np.ndarray], some: np.ndarray) -> list[Any]:
        """(L, k, p) for each table: where the best of its starts leads with each of the lams.

        (The lams of one start follow each other: they begin with the same partition, which is then
        summed up once.)
        """
        found = run_starts_of_each(
            tables, [np.repeat(own, len(some), axis=0) for own in begin],
            [np.tile(np.outer(some, features), (len(own), 1)) for own in begin],
            max_iter=max_iter, tol=tol, threads=threads,
        )  # fmt: skip
        firsts = [own.losses.reshape(-1, len(some)).argmin(axis=0) for own in found]
        every = np.arange(len(some))
        return [
            own.centers.reshape(-1, len(some), *own.centers.shape[1:])[first, every]
            for own, first in zip(found, firsts, strict=True)
        ]

    n_parts, n = parts.shape
    labels, seconds = np.empty((n_parts, n, len(lams)), np.int32), np.zeros(n_parts)
    size = 1
    if observed.table.is_small:  # such parts are fitted many at once, each by one thread
        size = max(1, MOST_AT_ONCE // (observed.table.entries * len(lams) * STARTS_AT_ONCE * k))
    for lot in np.array_split(np.arange(n_parts), -(-n_parts // size)):
        began = time.perf_counter()
        tables = [observed.take(np.flatnonzero(parts[b])) for b in lot]
        centers = starts(tables, lot)
        if not thorough:
            centers = best(tables, centers, lams[anchors(len(lams))])
        every = np.concatenate(best(tables, centers, lams))
        penalties = np.tile(np.outer(lams, features), (len(lot), 1))
        own = assign_rows(observed, every, penalties, threads)
        labels[lot] = own.T.reshape(len(lot), len(lams), n).transpose(0, 2, 1)
        seconds[lot] = (time.perf_counter() - began) / len(lot)
        for _ in lot:
            report()
    return Evidence(k, lams, labels, parts, seconds / len(lams))


def anchors(size: int) -> np.ndarray:
    """Which of so many candidates: a few, evenly spread."""
    count = min(ANCHORS, size)
    return ((np.arange(count) + 0.5) * size / count).astype(int)
