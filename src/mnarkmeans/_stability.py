"""How far fits to parts of the rows agree: instability, and the stability of each cluster.

With T the contingency table of two partitions, r and c its margins, and (x over 2) = x (x - 1) / 2
pairs of x rows:

    pairs together in one and apart in the other = (r over 2) + (c over 2) - 2 (T over 2)
    adjusted Rand index = (sum (T over 2) - E) / (((r over 2) + (c over 2)) / 2 - E),
                          E = (r over 2) (c over 2) / (m over 2)

Every candidate for lam is fitted to the same parts. Parts come in pairs: a part draws half of the
starts and tries them at three of the candidates, the anchors; what the pair found there is pooled,
each part goes on from the partition that suits it best, and reaches the other candidates from the
anchors beside them. How far parts agree is judged by parts of different pairs, which share no
starts. (The paper's procedure fits every candidate from n_init starts of its own in every part.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ._observed import Observed
from ._solver import (
    StartResults,
    assign_rows,
    run_starts_of_each,
    starts_of_each,
)

ANCHORS = 3
FOLLOWED = 2  # starts of a part that go on after their first pass, if several k are compared
SAME_PARTITION = 0.95  # adjusted Rand index
SHARE_OF_ROWS = 0.8  # of a part
MOST_AT_ONCE = 1 << 25  # entries x centres of the small parts that are fitted together


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


def pairwise_adjusted_rand(
    labels: np.ndarray, inside: np.ndarray, groups: np.ndarray, k: int
) -> np.ndarray:
    """labels (B, n, G), inside (B, n) -> (pairs, G): agreement on the rows two fits share.

    Only pairs of fits from different groups (B,) are judged.
    """
    a, b = np.tril_indices(len(labels), -1)
    couples = np.stack([a, b], axis=1)[groups[a] != groups[b]]
    both, in_a, in_b, m = _pairs(labels, inside, couples, k)
    expected = in_a * in_b / np.maximum(m * (m - 1.0) / 2.0, 1.0)
    most = (in_a + in_b) / 2.0
    room = most - expected
    return np.where(room == 0.0, 1.0, (both - expected) / np.where(room == 0.0, 1.0, room))


def alike(labels: np.ndarray, k: int) -> np.ndarray:
    """(B, B) adjusted Rand index of each of the partitions (B, n) with each other one."""
    count, n = labels.shape
    found = np.ones((count, count))
    every = np.ones((count, n), bool)
    below = np.tril_indices(count, -1)
    one = pairwise_adjusted_rand(labels[:, :, None], every, np.arange(count), k)[:, 0]
    found[below] = found[below[::-1]] = one
    return found


def different(labels: np.ndarray, k: int) -> list[int]:
    """Which of the partitions (B, n) part the rows differently, the first of each kind."""
    same = alike(labels, k) >= SAME_PARTITION
    kept: list[int] = []
    for b in range(len(labels)):
        if not same[b, kept].any():
            kept.append(b)
    return kept


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
class Settings:
    """How a part is fitted."""

    init: str
    n_init: int
    max_iter: int
    tol: float
    threads: int
    features: Any = 1.0  # 1 or 0 for each: those that lose values by chance have no penalty
    thorough: bool = False  # every candidate from n_init starts of its own, in every part
    several: bool = False  # numbers of clusters are compared, not only candidates for lam

    def penalties(self, lams: np.ndarray, table: Observed) -> np.ndarray:
        """(R, p) of R starts."""
        return lams[:, None] * np.broadcast_to(self.features, table.n_features)


@dataclass(frozen=True)
class Evidence:
    """What the fits of B parts with G candidates for lam showed, for one k."""

    k: int
    lams: np.ndarray  # (G,) rising
    labels: np.ndarray  # (B, n, G) of every row, by the fit to the part
    inside: np.ndarray  # (B, n) rows of the part
    seconds: np.ndarray  # (B,) per candidate
    groups: np.ndarray  # (B,) parts of one group shared their starts

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
        """(pairs, G) 1 - adjusted Rand index of parts that did not share their starts."""
        return 1.0 - pairwise_adjusted_rand(self.labels, self.inside, self.groups, self.k)


class Job(NamedTuple):
    """A part that is to be fitted from some starts."""

    part: Observed
    starts: np.ndarray  # (R, k, p)
    lam_index: np.ndarray  # (R,) for which of the lams each is
    lams: np.ndarray  # (L,)


class PartFits:
    """Fits to parts (B, n) of the rows of a table."""

    def __init__(self, observed: Observed, k: int, parts: np.ndarray, settings: Settings):
        self.observed, self.k, self.parts, self.settings = observed, k, parts, settings
        self.is_small = observed.table.is_small
        self.seconds = np.zeros(len(parts))
        self._kept: dict[int, Observed] = {}  # of a small table

    def at_each(
        self, n_starts: int, fit: Callable[[list[int], list[Observed]], list[Any]]
    ) -> list[Any]:
        """fit(numbers, tables) for parts that are fitted together, from so many starts each.

        Parts of a small table are fitted many at once; those of a large one after the other.
        """
        size = 1
        if self.is_small:
            size = max(1, MOST_AT_ONCE // (self.observed.table.entries * n_starts * self.k))
        results = []
        for first in range(0, len(self.parts), size):
            lot = list(range(len(self.parts)))[first : first + size]
            begin = time.perf_counter()
            results += fit(lot, [self._rows(b) for b in lot])
            self.seconds[lot] += (time.perf_counter() - begin) / len(lot)
        return results

    def _rows(self, b: int) -> Observed:
        if b in self._kept:
            return self._kept[b]
        taken = self.observed.take(np.flatnonzero(self.parts[b]))
        if self.is_small:
            self._kept[b] = taken
        return taken

    def drawn(self, tables: Sequence[Observed], n_starts: int, seeds: Any) -> list[np.ndarray]:
        """Starts (R, k, p) of each table."""
        how = self.settings
        return starts_of_each(how.init, tables, n_starts, self.k, seeds, how.threads)

    def best(self, jobs: Sequence[Job], max_iter: int | None = None) -> list[np.ndarray]:
        """(L, k, p) for each job: where the best of its starts for each lam ends."""
        found = []
        for job, results in zip(jobs, self.run(jobs, max_iter), strict=True):
            order = np.lexsort((results.losses, job.lam_index))
            first = np.searchsorted(job.lam_index[order], np.arange(len(job.lams)))
            found.append(results.centers[order[first]])
        return found

    def run(self, jobs: Sequence[Job], max_iter: int | None = None) -> list[StartResults]:
        how = self.settings
        return run_starts_of_each(
            [job.part for job in jobs], [job.starts for job in jobs],
            [how.penalties(job.lams[job.lam_index], job.part) for job in jobs],
            max_iter=max_iter or how.max_iter, tol=how.tol, threads=how.threads,
        )  # fmt: skip


def _every_start(tables: Sequence[Observed], starts: Sequence[Any], lams: np.ndarray) -> list[Job]:
    """Every lam from every start. (The lams of one start follow each other: they begin with the
    same partition, which is then summed up once.)"""
    count, every = len(lams), np.arange(len(lams))
    return [
        Job(part, np.repeat(own, count, axis=0), np.tile(every, len(own)), lams)
        for part, own in zip(tables, starts, strict=True)
    ]


class Pool:
    """What the parts of a group found at the anchors: different partitions of the rows."""

    def __init__(self, observed: Observed, found: np.ndarray, lams: np.ndarray, how: Settings):
        """``found`` (B, A, k, p), at the anchors of the candidates ``lams``."""
        self.at = anchors(len(lams))
        n_parts, n_anchors, k, p = found.shape
        penalties = how.penalties(np.tile(lams[self.at], n_parts), observed)
        every = assign_rows(observed, found.reshape(-1, k, p), penalties, how.threads).T
        labels = every.reshape(n_parts, n_anchors, -1).transpose(1, 0, 2)
        kept = [different(own, k) for own in labels]
        self.centers = [found[own, a] for a, own in enumerate(kept)]
        firsts = np.stack([labels[a][own[0]] for a, own in enumerate(kept)])
        alone = np.array([len(own) == 1 for own in kept])
        same = np.diagonal(alike(firsts, k), 1) >= SAME_PARTITION
        # (A - 1,): whether an anchor and the next one have but one partition, the same
        self._alike = alone[1:] & alone[:-1] & same

    def sources(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Which candidates are reached from which anchors: two arrays, one entry per fit.

        From the nearest, and from the one on the other side if that has something else.
        """
        candidate, source = [], []
        for g in range(size):
            nearest = int(np.argmin(np.abs(self.at - g)))
            other = nearest + (1 if g > self.at[nearest] else -1)
            candidate.append(g)
            source.append(nearest)
            if 0 <= other < len(self.at) and not self._alike[min(nearest, other)]:
                candidate.append(g)
                source.append(other)
        return np.array(candidate), np.array(source)


def anchors(size: int) -> np.ndarray:
    """Which of so many candidates: a few, evenly spread."""
    count = min(ANCHORS, size)
    return ((np.arange(count) + 0.5) * size / count).astype(int)


def gather(
    observed: Observed, k: int, lams: np.ndarray, parts: np.ndarray, seeds: np.ndarray,
    settings: Settings, report: Callable[[], None] = lambda: None,
) -> Evidence:  # fmt: skip
    """Fit every part (B, n) of bool with every candidate (G,) and label all rows."""
    n_parts, n = parts.shape
    labels = np.empty((n_parts, n, len(lams)), np.int32)
    fits = PartFits(observed, k, parts, settings)
    groups = np.arange(n_parts) % (n_parts if settings.thorough else max(2, n_parts // 2))
    pools = [] if settings.thorough else _pools(fits, lams, groups, seeds)

    def finish(lot: list[int], tables: list[Observed]) -> list[np.ndarray]:
        if settings.thorough:
            starts = fits.drawn(tables, settings.n_init, seeds[lot].tolist())
            centers = fits.best(_every_start(tables, starts, lams))
        else:
            centers = _from_pools(fits, tables, [pools[groups[b]] for b in lot], lams)
        every = np.concatenate(centers)
        penalties = settings.penalties(np.tile(lams, len(lot)), observed)
        own = assign_rows(observed, every, penalties, settings.threads)
        labels[lot] = own.T.reshape(len(lot), len(lams), n).transpose(0, 2, 1)
        for _ in lot:
            report()
        return centers

    fits.at_each(settings.n_init * len(lams), finish)
    return Evidence(k, lams, labels, parts, fits.seconds / len(lams), groups)


def _pools(fits: PartFits, lams: np.ndarray, groups: np.ndarray, seeds: np.ndarray) -> list[Pool]:
    """What every group of parts finds at the anchors, from starts of its own.

    (For one k all starts are followed: small wide tables have partitions that few starts find. For
    several that would make too many clusters look reproducible.)
    """
    how, at = fits.settings, lams[anchors(len(lams))]
    n_starts = -(-how.n_init // 2)

    def draw(lot: list[int], tables: list[Observed]) -> list[np.ndarray]:
        return fits.drawn(tables, n_starts, seeds[lot].tolist())

    # Those of small parts are drawn together, each by one thread.
    drawn = fits.at_each(1, draw) if fits.is_small else []

    def begin(lot: list[int], tables: list[Observed]) -> list[np.ndarray]:
        starts = [drawn[b] for b in lot] if drawn else draw(lot, tables)
        middle = at[[len(at) // 2]]
        begun = fits.run(_every_start(tables, starts, middle), max_iter=1)
        followed = FOLLOWED if how.several else n_starts
        kept = [own.centers[np.argsort(own.losses, kind="stable")[:followed]] for own in begun]
        return fits.best(_every_start(tables, kept, at))

    found = np.stack(fits.at_each(how.n_init * len(at), begin))
    return [
        Pool(fits.observed, found[groups == group], lams, how) for group in range(groups.max() + 1)
    ]


def _from_pools(
    fits: PartFits, tables: list[Observed], pools: list[Pool], lams: np.ndarray
) -> list[np.ndarray]:
    """Centres (G, k, p) for every lam, from those of a part's pool that suit it best."""
    found = [[own[0] for own in pool.centers] for pool in pools]
    several = [
        (b, a) for b, pool in enumerate(pools)
        for a, own in enumerate(pool.centers) if len(own) > 1
    ]  # fmt: skip
    tried = [
        Job(tables[b], own := pools[b].centers[a], np.zeros(len(own), int), lams[pools[b].at[[a]]])
        for b, a in several
    ]
    for (b, a), best in zip(several, fits.best(tried, max_iter=1), strict=True):
        found[b][a] = best[0]
    jobs = []
    for part, centers, pool in zip(tables, found, pools, strict=True):
        candidate, source = pool.sources(len(lams))
        jobs.append(Job(part, np.stack(centers)[source], candidate, lams))
    return fits.best(jobs)
