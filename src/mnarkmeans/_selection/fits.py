"""Fits to parts of the rows, with every candidate for lam, at the price of a few.

Parts come in pairs. A part draws half of the starts and tries them at some of the candidates, the
anchors. What the pair found there is pooled: each part goes on from the partition that suits it
best, and reaches every candidate from the anchors beside it. Where parts and anchors agree, there
is but one partition to go on from. How far parts agree is judged by parts of different pairs, which
know nothing of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._data.observed import Observed
from .._solver.results import StartResults
from .._solver.solve import assign_rows, run_starts
from .._solver.starts import STARTS, seeded
from .agreement import adjusted_rand

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


class PartFits:
    """The fits to one part of the rows."""

    def __init__(self, part: Observed, k: int, settings: Settings, threads: int):
        self.part, self.k, self.settings, self.threads = part, k, settings, threads

    def thorough(self, lams: np.ndarray, seed: int) -> np.ndarray:
        """Centres (G, k, p): for every lam the best of n_init starts, the same for all."""
        starts = self._starts(self.settings.n_init, seed)
        return self._best(*_each_from_all(starts, len(lams)), lams)

    def first(self, lams: np.ndarray, seed: int) -> np.ndarray:
        """Centres (A, k, p) at the anchors, from a few starts, or from those that begin best.

        (For one k all are followed: small wide tables have partitions that few starts find. For
        several that would make too many clusters look reproducible.)
        """
        starts = self._starts(-(-self.settings.n_init // PARTS_OF_A_GROUP), seed)
        middle = np.repeat(lams[len(lams) // 2], len(starts))
        begun = self._run(starts, middle, max_iter=1)
        followed = FOLLOWED if self.settings.several else len(starts)
        kept = begun.centers[np.argsort(begun.losses, kind="stable")[:followed]]
        return self._best(*_each_from_all(kept, len(lams)), lams)

    def last(self, lams: np.ndarray, pool: Pool) -> np.ndarray:
        """Centres (G, k, p) for every lam, from those of the pool that suit this part best."""
        found = np.stack([
            own[0] if len(own) == 1
            else self._best(own, np.zeros(len(own), int), lams[[a]], max_iter=1)[0]
            for a, own in zip(pool.at, pool.centers, strict=True)
        ])  # fmt: skip
        goal, source = pool.ways(len(lams))
        return self._best(found[source], goal, lams)

    def _starts(self, n_starts: int, seed: int) -> np.ndarray:
        how, rng = STARTS[self.settings.init], seeded(seed)
        return how(self.part, n_starts, self.k, rng, self.threads)

    def _run(self, starts: np.ndarray, lams: np.ndarray, max_iter: int) -> StartResults:
        return run_starts(
            self.part, starts, self.settings.penalties(lams),
            max_iter=max_iter, tol=self.settings.tol, threads=self.threads,
        )  # fmt: skip

    def _best(
        self, starts: np.ndarray, goal: np.ndarray, lams: np.ndarray, max_iter: int | None = None
    ) -> np.ndarray:
        """(L, k, p): the best for each lam of the starts (R, k, p), which are for lams[goal]."""
        results = self._run(starts, lams[goal], max_iter or self.settings.max_iter)
        order = np.lexsort((results.losses, goal))
        return results.centers[order[np.searchsorted(goal[order], np.arange(len(lams)))]]


def _each_from_all(starts: np.ndarray, n_lams: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tile(starts, (n_lams, 1, 1)), np.repeat(np.arange(n_lams), len(starts))


class Pool:
    """What the parts of a group found at the anchors: different partitions of the rows."""

    def __init__(self, observed: Observed, found: np.ndarray, lams: np.ndarray, settings: Settings):
        """``found`` (B, A, k, p), at the anchors of the candidates ``lams``."""
        self.at = anchors(len(lams))
        k = found.shape[2]
        labels = [
            assign_rows(observed, found[:, a], penalty[None], settings.threads)
            for a, penalty in enumerate(settings.penalties(lams[self.at]))
        ]
        kept = [different(own, k) for own in labels]
        self.centers = [found[own, a] for a, own in enumerate(kept)]
        firsts = np.stack([labels[a][:, own[0]] for a, own in enumerate(kept)], axis=1)
        alone = np.array([len(own) == 1 for own in kept])
        # (A - 1,): whether an anchor and the next one have but one partition, the same
        self._alike = alone[1:] & alone[:-1] & _same(firsts[:, 1:], firsts[:, :-1], k)

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


def different(labels: np.ndarray, k: int) -> list[int]:
    """Columns of labels (n, B) that part the rows differently, the first of each kind."""
    left, kept = np.arange(labels.shape[1]), []
    while len(left):
        kept.append(int(left[0]))
        first = np.repeat(labels[:, left[:1]], len(left), axis=1)
        left = left[~_same(labels[:, left], first, k)]
    return kept


def _same(a: np.ndarray, b: np.ndarray, k: int) -> np.ndarray:
    """(B,) whether the columns of labels (n, B) are the same partition, or nearly."""
    return adjusted_rand(a, b, np.ones(len(a), bool), k) >= SAME_PARTITION
