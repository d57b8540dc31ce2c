"""Fits to parts of the rows, with every candidate for lam, at the price of a few.

Parts come in pairs. A part draws half of the starts and tries them at some of the candidates, the
anchors. What the pair found there is pooled: each part goes on from the partition that suits it
best, and reaches every candidate from the anchors beside it. Where parts and anchors agree, there
is but one partition to go on from. How far parts agree is judged by parts of different pairs, which
know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._observed import Observed
from .._solver import StartResults, assign_rows, run_starts_of_each, starts_of_each
from .agreement import alike

ANCHORS = 3
FOLLOWED = 2  # starts of a part that go on after their first pass, if there are many k to fit
PARTS_OF_A_GROUP = 2  # a pair; larger groups make too many clusters look reproducible
SAME_PARTITION = 0.95  # adjusted Rand index


@dataclass(frozen=True)
class Settings:
    """How a part is fitted."""

    init: str
    n_init: int
    max_iter: int
    tol: float
    threads: int
    thorough: bool = False  # every candidate from n_init starts of its own, in every part
    several: bool = False  # numbers of clusters are compared, not only candidates for lam
    features: np.ndarray | None = None  # (p,) which ones lam is for; None: all of them

    def penalties(self, lams: np.ndarray) -> np.ndarray:
        """(G, 1) or (G, p): what each lam stands for, 0 for features that it is not for."""
        return lams[:, None] * np.atleast_1d(True if self.features is None else self.features)


class Way(NamedTuple):
    """A part that is to be fitted from some starts."""

    part: Observed
    starts: np.ndarray  # (R, k, p)
    goal: np.ndarray  # (R,) for which of the lams each is
    lams: np.ndarray  # (L,)


class PartFits:
    """The fits to parts of the rows, many parts at once."""

    def __init__(self, parts: Sequence[Observed], k: int, settings: Settings):
        self.parts, self.k, self.settings = parts, k, settings

    def thorough(self, lams: np.ndarray, seeds: Sequence[int]) -> list[np.ndarray]:
        """Centres (G, k, p): for every lam the best of n_init starts, the same for all."""
        starts = self._starts(self.settings.n_init, seeds)
        return self._best(self._each_from_all(starts, lams))

    def few_starts(self, seeds: Sequence[int]) -> list[np.ndarray]:
        """A part's share of the starts of its group."""
        return self._starts(-(-self.settings.n_init // PARTS_OF_A_GROUP), seeds)

    def first(self, lams: np.ndarray, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Centres (A, k, p) at the anchors, from a few starts, or from those that begin best.

        (For one k all are followed: small wide tables have partitions that few starts find. For
        several that would make too many clusters look reproducible.)
        """
        middle = lams[[len(lams) // 2]]
        begun = self._run(self._each_from_all(starts, middle), max_iter=1)
        followed = FOLLOWED if self.settings.several else len(starts[0])
        kept = [own.centers[np.argsort(own.losses, kind="stable")[:followed]] for own in begun]
        return self._best(self._each_from_all(kept, lams))

    def last(self, lams: np.ndarray, pools: Sequence[Pool]) -> list[np.ndarray]:
        """Centres (G, k, p) for every lam, from those of a part's pool that suit it best."""
        found = [[own[0] for own in pool.centers] for pool in pools]
        several = [
            (b, a) for b, pool in enumerate(pools)
            for a, own in enumerate(pool.centers) if len(own) > 1
        ]  # fmt: skip
        tried = []
        for b, a in several:
            begin, at = pools[b].centers[a], pools[b].at[[a]]
            tried.append(Way(self.parts[b], begin, np.zeros(len(begin), int), lams[at]))
        for (b, a), best in zip(several, self._best(tried, max_iter=1), strict=True):
            found[b][a] = best[0]
        ways = []
        for part, centers, pool in zip(self.parts, found, pools, strict=True):
            goal, source = pool.ways(len(lams))
            ways.append(Way(part, np.stack(centers)[source], goal, lams))
        return self._best(ways)

    def _starts(self, n_starts: int, seeds: Sequence[int]) -> list[np.ndarray]:
        settings = self.settings
        return starts_of_each(settings.init, self.parts, n_starts, self.k, seeds, settings.threads)

    def _each_from_all(self, starts: Sequence[np.ndarray], lams: np.ndarray) -> list[Way]:
        """(The lams of one start follow each other: they begin with the same partition, which is
        then summed up once.)"""
        count, every = len(lams), np.arange(len(lams))
        return [
            Way(part, np.repeat(own, count, axis=0), np.tile(every, len(own)), lams)
            for part, own in zip(self.parts, starts, strict=True)
        ]

    def _run(self, ways: Sequence[Way], max_iter: int) -> list[StartResults]:
        return run_starts_of_each(
            [way.part for way in ways], [way.starts for way in ways],
            [self.settings.penalties(way.lams[way.goal]) for way in ways],
            max_iter=max_iter, tol=self.settings.tol, threads=self.settings.threads,
        )  # fmt: skip

    def _best(self, ways: Sequence[Way], max_iter: int | None = None) -> list[np.ndarray]:
        """(L, k, p) for each way: where the best of its starts for each lam ends."""
        results = self._run(ways, max_iter or self.settings.max_iter)
        return [_best_of(own, way) for own, way in zip(results, ways, strict=True)]


def _best_of(results: StartResults, way: Way) -> np.ndarray:
    order = np.lexsort((results.losses, way.goal))
    return results.centers[order[np.searchsorted(way.goal[order], np.arange(len(way.lams)))]]


class Pool:
    """What the parts of a group found at the anchors: different partitions of the rows."""

    def __init__(self, observed: Observed, found: np.ndarray, lams: np.ndarray, settings: Settings):
        """``found`` (B, A, k, p), at the anchors of the candidates ``lams``."""
        self.at = anchors(len(lams))
        n_parts, n_anchors, k, p = found.shape
        penalties = np.tile(settings.penalties(lams[self.at]), (n_parts, 1))
        every = assign_rows(observed, found.reshape(-1, k, p), penalties, settings.threads).T
        labels = every.reshape(n_parts, n_anchors, -1).transpose(1, 0, 2)
        kept = [different(own, k) for own in labels]
        self.centers = [found[own, a] for a, own in enumerate(kept)]
        firsts = np.stack([labels[a][own[0]] for a, own in enumerate(kept)])
        alone = np.array([len(own) == 1 for own in kept])
        same = np.diagonal(alike(firsts, k), 1) >= SAME_PARTITION
        # (A - 1,): whether an anchor and the next one have but one partition, the same
        self._alike = alone[1:] & alone[:-1] & same

    def ways(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Which candidates are to be reached from which anchors: two arrays, one entry per way.

        From the nearest, and from the one on the other side if that has something else.
        """
        goal, source = [], []
        for g in range(size):
            nearest = int(np.argmin(np.abs(self.at - g)))
            other = nearest + (1 if g > self.at[nearest] else -1)
            goal.append(g)
            source.append(nearest)
            if 0 <= other < len(self.at) and not self._alike[min(nearest, other)]:
                goal.append(g)
                source.append(other)
        return np.array(goal), np.array(source)


def groups_of(n_parts: int, thorough: bool) -> np.ndarray:
    """(B,) the group of each part, itself alone if ``thorough``; there are two at least."""
    count = n_parts if thorough else max(2, n_parts // PARTS_OF_A_GROUP)
    return np.arange(n_parts) % count


def anchors(size: int) -> np.ndarray:
    """Which of so many candidates: a few, evenly spread."""
    count = min(ANCHORS, size)
    return ((np.arange(count) + 0.5) * size / count).astype(int)


def different(labels: np.ndarray, k: int, threads: int = 1) -> list[int]:
    """Which of the partitions (B, n) part the rows differently, the first of each kind."""
    same = alike(labels, k, threads) >= SAME_PARTITION
    kept: list[int] = []
    for b in range(len(labels)):
        if not same[b, kept].any():
            kept.append(b)
    return kept
