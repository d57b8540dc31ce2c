"""Starting centres for rows in pieces.

k-means|| (Bahmani et al. 2012): a pool of candidates grows in a few rounds, each adding 2 k rows
drawn with probability proportional to weight x squared distance to the pool; the candidates,
weighted by the rows that are closest to them, are then reduced to k by k-means++. One pool serves
all starts: they differ in how it is reduced.

"k-means++" and "random" look at a sample of rows, and at all of them when there are few: then they
are the starts of the in-memory estimator, number for number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from .. import _core as core
from .._solver import k_means_plus_plus, penalties, random_rows
from .._validation import observe
from ._pieces import Piece, Pieces

ROUNDS = 5
OVERSAMPLING = 2  # candidates per round, in units of k


class Pool(NamedTuple):
    """The candidates so far; the first ``n_known`` have been shown to the pieces before."""

    candidates: np.ndarray  # (T, p)
    n_known: int
    means: np.ndarray  # (p,) of all rows: gaps are filled with them


class Drawn(NamedTuple):
    """The rows that came first in a weighted draw, gaps filled; ``keys`` are finishing times."""

    keys: np.ndarray
    rows: np.ndarray  # (l, p)


def k_means_parallel(
    pieces: Pieces, n_starts: int, k: int, rng: np.random.RandomState
) -> np.ndarray:
    """k-means||. Centres (R, k, p)."""
    pool = Pool(np.empty((0, len(pieces.means))), 0, pieces.means)
    for size in [1] + ROUNDS * [OVERSAMPLING * k]:
        seed = int(rng.randint(0, 2**31))
        drawn = pieces.reduce(draw, partial(merge_drawn, size=size), pool, seed, size)
        known = len(pool.candidates)
        pool = Pool(np.vstack([pool.candidates, drawn.rows]), known, pool.means)
    weights = pieces.reduce(followers, partial(np.sum, axis=0), pool)
    return k_means_plus_plus(observe(pool.candidates, sample_weight=weights), n_starts, k, rng, 1)


def draw(piece: Piece, first: int, pool: Pool, seed: int, size: int) -> Drawn:
    """``size`` rows drawn with probabilities proportional to weight x squared distance.

    Row i draws a number u_i of its own and runs for -log(u_i) / (weight x distance); the first
    ``size`` to arrive are a weighted sample without replacement, whatever the blocks are.
    """
    speed = piece.weights
    if len(pool.candidates):
        speed = speed * _closest(piece, first, pool)[0]
    running = np.flatnonzero(speed > 0.0)
    keys = -np.log(1.0 - uniform(seed, first, piece.n_rows)[running]) / speed[running]
    winners = np.argsort(keys, kind="stable")[:size]
    return Drawn(keys[winners], core.fill_rows(piece.table(first), running[winners], pool.means))


def merge_drawn(parts: list[Drawn], size: int) -> Drawn:
    keys = np.concatenate([part.keys for part in parts])
    winners = np.argsort(keys, kind="stable")[:size]
    return Drawn(keys[winners], np.concatenate([part.rows for part in parts])[winners])


def followers(piece: Piece, first: int, pool: Pool) -> np.ndarray:
    """(T,) weight of the rows closest to each candidate."""
    return np.bincount(_closest(piece, first, pool)[1], piece.weights, len(pool.candidates))


def _closest(piece: Piece, first: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Squared distance to, and number of, the closest candidate; remembered by the piece.

    Distances are those of mean-filled rows: the loss with lam = 1 and the means as reference. Only
    new candidates are looked at, if the piece remembers the others.
    """
    memo, means = piece.memo, pool.means
    known = memo.nearest if memo.n_candidates == pool.n_known else None
    start = 0 if known is None else pool.n_known
    mu = np.ascontiguousarray(pool.candidates[None, start:])
    if known is None or mu.size:
        centers = core.Centers(mu, penalties(1.0, 1, len(means)), means, means)
        table, values = piece.table(first), np.empty(piece.n_rows)
        labels = core.assign(table, centers, threads=1)[0]
        core.loss_of(table, centers, labels, threads=1, each=values)
        if known is not None:
            closer = values < known[0]
            labels = np.where(closer, labels + start, known[1])
            values = np.where(closer, values, known[0])
        known = values, labels
    memo.nearest, memo.n_candidates = known, len(pool.candidates)
    return known


def uniform(seed: int, first: int, count: int) -> np.ndarray:
    """A number in [0, 1) for each row from number ``first`` on: the same in whichever block."""
    start, before = divmod(first, 4)  # Philox makes four numbers at a time
    numbers = np.random.Generator(np.random.Philox(key=seed).advance(start))
    return numbers.random(before + count)[before:]


def _on_sample(start: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def sampled(pieces: Pieces, n_starts: int, k: int, rng: np.random.RandomState) -> np.ndarray:
        return start(pieces.sample(rng), n_starts, k, rng, 1)

    return sampled


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means||": k_means_parallel,
    "k-means++": _on_sample(k_means_plus_plus),
    "random": _on_sample(random_rows),
}
