"""Starting centres when the rows are elsewhere.

k-means|| (Bahmani et al. 2012): a pool of candidates grows in a few rounds, each adding about 2 k
rows drawn with probability proportional to weight x squared distance to the pool; the candidates,
weighted by the rows that are closest to them, are then reduced to k by k-means++. One pool serves
all starts: they differ in how it is reduced.

"k-means++" and "random" look at a sample of rows, and at all of them when there are few: then they
are the starts of the in-memory estimator, number for number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from .. import _core as core
from .._observed import Observed
from .._solver import k_means_plus_plus, penalties, random_rows
from .._validation import observe
from ._pieces import Piece, Pieces

ROUNDS = 5
OVERSAMPLING = 2  # candidates per round, in units of k
BYTES_OF_SAMPLE = 1 << 27
ROWS_OF_SAMPLE = 50_000
ROWS_FOR_FIRST = 1_000  # rows among which the first candidate is drawn


class Problem:
    """The rows and the point towards which gaps pull; clean, and ready to be fitted."""

    def __init__(self, pieces: Pieces, reference: np.ndarray):
        self.pieces, self.reference = pieces, reference

    @cached_property
    def means(self) -> np.ndarray:
        return self.pieces.found.means(self.reference)

    @property
    def about(self) -> dict[str, Any]:
        """What tells this problem from another."""
        found = self.pieces.found
        return dict(
            n_rows=found.n_rows, n_features=len(self.reference), reference=self.reference,
            observed=found.counts, sums=found.sums,
        )  # fmt: skip

    def rows(self, size: int, rng: np.random.RandomState) -> tuple[Any, np.ndarray]:
        """About ``size`` different rows drawn at random, or all, and their weights."""
        n = self.pieces.n_rows
        chosen = np.arange(n) if size >= n else np.unique(rng.randint(0, n, size))
        return self.pieces.take(chosen)

    def sample(self, rng: np.random.RandomState) -> Observed:
        """A sample that fits into memory, with the means of all rows."""
        found = self.pieces.found
        size = max(1000, min(ROWS_OF_SAMPLE, BYTES_OF_SAMPLE // (8 * len(self.means))))
        source, weights = self.rows(size, rng)
        return Observed(
            source, math.nan, weights, self.means, self.reference, found.counts, found.has_gaps
        )

    def starts(self, centers: np.ndarray, lam: Any, *, max_iter: int, tol: float) -> core.Starts:
        """Starts (R, k, p) of Lloyd's loop; ``lam``: one number, or one per feature."""
        return core.Starts(
            centers, penalties(lam, len(centers), len(self.means)),
            self.reference, self.means, n_rows=0, max_iter=max_iter, tol=tol,
            weights=self.pieces.found.total_weight,
        )  # fmt: skip


# --- starting centres -------------------------------------------------------------------------


class Race(NamedTuple):
    """The rows that came first in a weighted draw, gaps filled; ``keys`` are finishing times."""

    keys: np.ndarray
    rows: np.ndarray  # (l, p)


class Pool(NamedTuple):
    """The candidates so far; those up to ``n_known`` have been shown to the pieces before."""

    candidates: np.ndarray  # (T, p)
    n_known: int
    means: np.ndarray  # (p,) of all rows: gaps are filled with them

    def grown(self, rows: np.ndarray) -> Pool:
        return Pool(np.vstack([self.candidates, rows]), len(self.candidates), self.means)


def _look_closer(piece: Piece, first: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """OUT memo: distance to, and number of, the closest candidate.

    Distances are those of mean-filled rows: the loss with lam = 1 and the means as reference. Only
    new candidates are looked at, if the piece remembers the others.
    """
    memo, means = piece.memo, pool.means
    start = pool.n_known if memo.n_candidates == pool.n_known else 0
    mu = np.ascontiguousarray(pool.candidates[None, start:])
    centers = core.Centers(mu, penalties(1.0, 1, len(means)), means, means)
    table, values = piece.table(first), np.empty(piece.n_rows)
    labels = core.assign(table, centers, threads=1)[0]
    core.loss_of(table, centers, labels, threads=1, each=values)
    if start and memo.nearest is not None and memo.closest is not None:
        closer = values < memo.nearest
        labels = np.where(closer, labels + start, memo.closest)
        values = np.where(closer, values, memo.nearest)
    memo.nearest, memo.closest, memo.n_candidates = values, labels, len(pool.candidates)
    return values, labels


def propose(piece: Piece, first: int, pool: Pool, seed: int, size: int) -> Race:
    """``size`` rows drawn with probabilities proportional to weight x squared distance.

    Row i draws a number u_i of its own and runs for -log(u_i) / (weight x distance); the first
    ``size`` to arrive are a weighted sample without replacement, whatever the blocks are.
    """
    values, _ = _look_closer(piece, first, pool)
    speed = piece.weights * values
    running = np.flatnonzero(speed > 0.0)
    keys = -np.log(uniform(running + first, seed)) / speed[running]
    winners = np.argsort(keys, kind="stable")[:size]
    return Race(keys[winners], core.fill_rows(piece.table(first), running[winners], pool.means))


def merge_races(parts: list[Race], size: int) -> Race:
    keys = np.concatenate([part.keys for part in parts])
    winners = np.argsort(keys, kind="stable")[:size]
    return Race(keys[winners], np.concatenate([part.rows for part in parts])[winners])


def followers(piece: Piece, first: int, pool: Pool) -> np.ndarray:
    """(T,) weight of the rows closest to each candidate."""
    _, labels = _look_closer(piece, first, pool)
    return np.bincount(labels, piece.weights, len(pool.candidates))


def uniform(rows: np.ndarray, seed: int) -> np.ndarray:
    """A number in (0, 1) for each row number: the same in whichever block the row is."""
    mixed = _mixed(_mixed(rows.astype(np.uint64) ^ np.uint64(seed)))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Numbers well mixed from these (the finaliser of splitmix64, as in ``src/core/rows.h``)."""
    z = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def scalable(problem: Problem, n_starts: int, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means||. Centres (R, k, p)."""
    pool = Pool(_first(problem, rng), 0, problem.means)
    for _ in range(ROUNDS):
        size, seed = OVERSAMPLING * k, int(rng.randint(0, 2**31)) << 32
        race = problem.pieces.reduce(propose, partial(merge_races, size=size), pool, seed, size)
        if not len(race.rows):  # every row is in the pool already
            break
        pool = pool.grown(race.rows)
    weights = problem.pieces.reduce(followers, _add, pool)
    return _reduce(observe(pool.candidates, sample_weight=weights), n_starts, k, rng)


def _reduce(pool: Observed, n_starts: int, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means++ on the pool."""
    return k_means_plus_plus(pool, n_starts, k, rng, 1)


def _first(problem: Problem, rng: np.random.RandomState) -> np.ndarray:
    """One row, drawn by weight."""
    size = ROWS_FOR_FIRST
    while True:
        source, weights = problem.rows(size, rng)
        if weights.any():
            break
        size *= 10  # nearly all rows have no weight; in the end all rows are looked at
    row = rng.choice(len(weights), size=1, p=weights / weights.sum())
    return core.fill_rows(core.Table(source, math.nan, weights), row, problem.means)


def _add(parts: list[np.ndarray]) -> np.ndarray:
    return np.sum(parts, axis=0)


def _on_sample(start: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def sampled(problem: Problem, n_starts: int, k: int, rng: np.random.RandomState) -> np.ndarray:
        return start(problem.sample(rng), n_starts, k, rng, 1)

    return sampled


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means||": scalable,
    "k-means++": _on_sample(k_means_plus_plus),
    "random": _on_sample(random_rows),
}
