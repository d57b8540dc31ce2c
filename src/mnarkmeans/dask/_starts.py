"""Starting centres when the rows are elsewhere.

k-means|| (Bahmani et al. 2012): a pool of candidates grows in a few rounds, each adding about 2 k
rows drawn with probability proportional to weight x squared distance to the pool; the candidates,
weighted by the rows that are closest to them, are then reduced to k by k-means++. One pool serves
all starts: they differ in how it is reduced.

"k-means++" and "random" look at a sample of rows, and at all of them when there are few: then they
are the starts of the in-memory estimator, number for number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._data.observed import Observed
from .._data.validation import observe
from .._solver.starts import k_means_plus_plus, plus_plus_compiled, random_rows
from ._passes import followers, merge_races, propose
from ._pieces import as_block, filled_rows
from ._run import Pieces

ROUNDS = 5
OVERSAMPLING = 2  # candidates per round, in units of k
BYTES_OF_SAMPLE = 1 << 27
ROWS_OF_SAMPLE = 50_000
ROWS_FOR_FIRST = 1_000  # rows among which the first candidate is drawn


def sample_rows(pieces: Pieces, n_rows: int, rng: np.random.RandomState):
    """About ``n_rows`` different rows drawn at random, or all, with their weights."""
    if n_rows >= pieces.n_rows:
        return pieces.take(np.arange(pieces.n_rows))
    return pieces.take(np.unique(rng.randint(0, pieces.n_rows, n_rows)))


def sample_observed(
    pieces: Pieces, means, reference, missing: float, rng: np.random.RandomState
) -> Observed:
    """A sample as an ``Observed``, with the means of all rows."""
    width = len(means) * 8
    size = max(1000, min(ROWS_OF_SAMPLE, BYTES_OF_SAMPLE // width))
    source, weights = sample_rows(pieces, size, rng)
    return Observed(
        source, missing, weights, means, reference, pieces.found.counts,
        bool(np.all(weights == np.floor(weights))),
    )  # fmt: skip


def scalable(
    pieces: Pieces, n_starts: int, k: int, rng: np.random.RandomState, means, reference, missing
) -> np.ndarray:
    """k-means||. Centres (R, k, p)."""
    pool, known = _first(pieces, means, missing, rng), 0
    for _ in range(ROUNDS):
        size, seed = OVERSAMPLING * k, int(rng.randint(0, 2**31)) << 32
        race = pieces.reduce(
            propose, partial(merge_races, size=size), pool, known, means, seed, size
        )
        if not len(race.rows):  # every row is in the pool already
            break
        known = len(pool)
        pool = np.vstack([pool, race.rows])
    weights = pieces.reduce(followers, _add, pool, known, means)
    return _reduce(observe(pool, sample_weight=weights), n_starts, k, rng)


def _reduce(pool: Observed, n_starts: int, k: int, rng: np.random.RandomState) -> np.ndarray:
    """k-means++ on the pool, drawn in the order in which the candidates came.

    (An order by content, as in memory, would turn on the last digits of the means, and so on how
    the rows are cut into blocks.)
    """
    draws = rng.random_sample((n_starts, k, 2 + int(np.log(k))))
    centers = np.empty((n_starts, k, pool.n_features))
    order = np.arange(pool.n_rows)
    plus_plus_compiled(pool.block(), pool.weights, order, pool.means, draws, centers)
    return centers


def _first(pieces: Pieces, means, missing: float, rng) -> np.ndarray:
    """One row, drawn by weight."""
    size = ROWS_FOR_FIRST
    while True:
        source, weights = sample_rows(pieces, size, rng)
        if weights.any():
            break
        size *= 10  # nearly all rows have no weight; in the end all rows are looked at
    row = rng.choice(len(weights), size=1, p=weights / weights.sum())
    return filled_rows(as_block(source, missing), row, means)


def _add(parts: list) -> np.ndarray:
    return np.sum(parts, axis=0)


def _on_sample(start: Callable) -> Callable:
    def sampled(pieces, n_starts, k, rng, means, reference, missing) -> np.ndarray:
        sample = sample_observed(pieces, means, reference, missing, rng)
        return start(sample, n_starts, k, rng, 1)

    return sampled


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means||": scalable,
    "k-means++": _on_sample(k_means_plus_plus),
    "random": _on_sample(random_rows),
}
