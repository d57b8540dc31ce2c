"""Starting centres for rows in blocks.

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

import numpy as np

from .. import _core as core
from .._solver import k_means_plus_plus, penalties, random_rows
from .._validation import observe
from ._blocks import Block, Blocks

ROUNDS = 5
OVERSAMPLING = 2  # candidates per round, in units of k


def k_means_parallel(
    blocks: Blocks, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """k-means||. Centres (R, k, p)."""
    means = blocks.means  # of all rows: missing values are filled with them
    candidates = np.empty((0, len(means)))
    for size in [1] + ROUNDS * [OVERSAMPLING * k]:
        seed = int(rng.randint(0, 2**31))
        merge = partial(merge_drawn, size=size)
        _, rows = blocks.reduce(draw, merge, candidates, means, seed, size)
        candidates = np.vstack([candidates, rows])
    weights = blocks.reduce(followers, partial(np.sum, axis=0), candidates, means)
    return k_means_plus_plus(observe(candidates, sample_weight=weights), n_starts, k, rng, threads)


Drawn = tuple[np.ndarray, np.ndarray]  # finishing times, and the rows (m, p), filled


def draw(
    block: Block, first: int, candidates: np.ndarray, means: np.ndarray, seed: int, size: int
) -> Drawn:
    """``size`` rows drawn with probabilities proportional to weight x squared distance.

    Row i draws a number u_i of its own and runs for -log(u_i) / (weight x distance); the first
    ``size`` to arrive are a weighted sample without replacement, whatever the blocks are.
    """
    speed = block.weights
    if len(candidates):
        speed = speed * _closest(block, first, candidates, means)[0]
    running = np.flatnonzero(speed > 0.0)
    keys = -np.log(1.0 - uniform(seed, first, block.n_rows)[running]) / speed[running]
    winners = np.argsort(keys, kind="stable")[:size]
    return keys[winners], core.fill_rows(block.table(first), running[winners], means)


def merge_drawn(parts: list[Drawn], size: int) -> Drawn:
    keys, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    winners = np.argsort(keys, kind="stable")[:size]
    return keys[winners], rows[winners]


def followers(block: Block, first: int, candidates: np.ndarray, means: np.ndarray) -> np.ndarray:
    """(T,) weight of the rows closest to each candidate."""
    labels = _closest(block, first, candidates, means)[1]
    return np.bincount(labels, block.weights, len(candidates))


def _closest(
    block: Block, first: int, candidates: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distance to, and number of, the closest candidate; remembered by the block.

    Distances are those of mean-filled rows: the loss with lam = 1 and the means as reference. Only
    the candidates that the block has not seen yet are compared.
    """
    known, start = block.cache.get("nearest", (None, 0))
    if start > len(candidates):  # a task of an earlier round that runs again
        known, start = None, 0
    if known is None or start < len(candidates):
        mu = np.ascontiguousarray(candidates[None, start:])
        centers = core.Centers(mu, penalties(1.0, 1, len(means)), means, means)
        table, values = block.table(first), np.empty(block.n_rows)
        labels = core.assign(table, centers, threads=1)[0]
        core.loss_of(table, centers, labels, threads=1, each=values)
        if known is not None:
            closer = values < known[0]
            labels = np.where(closer, labels + start, known[1])
            values = np.where(closer, values, known[0])
        known = values, labels
    block.cache["nearest"] = known, len(candidates)
    return known


def uniform(seed: int, first: int, count: int) -> np.ndarray:
    """A number in [0, 1) for each row from number ``first`` on: the same in whichever block."""
    start, before = divmod(first, 4)  # Philox makes four numbers at a time
    numbers = np.random.Generator(np.random.Philox(key=seed).advance(start))
    return numbers.random(before + count)[before:]


def _on_sample(start: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda blocks, n_starts, k, rng, threads: start(
        blocks.sample(rng), n_starts, k, rng, threads
    )


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means||": k_means_parallel,
    "k-means++": _on_sample(k_means_plus_plus),
    "random": _on_sample(random_rows),
}
