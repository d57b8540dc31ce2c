"""Where the starts come from: k-means++ on mean-filled data, random rows, given centres.

All starts are seeded together (``src/core/seeding.h``). Rows are drawn along an order given by
their content, with numbers drawn beforehand: shuffled rows, a row twice or its weight doubled,
dense or sparse storage, float32 or float64 all lead to the same starting centres.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

import numpy as np

from .. import _core as core
from .._data.observed import Observed

_own = threading.local()


def seeded(seed: int) -> np.random.RandomState:
    """What ``RandomState(seed)`` is, for numbers that are drawn at once: it is seeded anew by the
    next call on this thread. (Making one takes longer than a small fit.)"""
    if not hasattr(_own, "numbers"):
        _own.numbers = np.random.RandomState()
    _own.numbers.seed(seed)
    return _own.numbers


def content_order(observed: Observed, threads: int) -> np.ndarray:
    """Rows ordered by what is in them, not by where they stand."""
    return core.content_order(observed.table, threads)


def k_means_plus_plus(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p) of R starts."""
    return core.seed([_seeding(observed, n_starts, k, rng)], threads)[0]


def _seeding(observed: Observed, n_starts: int, k: int, rng: np.random.RandomState) -> core.Seeding:
    draws = rng.random_sample((n_starts, k, 2 + int(math.log(k))))
    return core.Seeding(observed.table, observed.means, draws)


def random_rows(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p): k different rows each, drawn by weight, gaps filled with the means."""
    draws = rng.random_sample((n_starts, k))
    order = content_order(observed, threads)
    weights = observed.weights[order]
    chosen = np.empty((n_starts, k), np.int64)
    for r in range(n_starts):
        free = weights.copy()
        for l in range(k):
            reached = np.cumsum(free)
            beyond = np.searchsorted(reached, draws[r, l] * reached[-1], side="right")
            at = min(beyond, np.searchsorted(reached, reached[-1]))  # the first that completes it
            chosen[r, l], free[at] = order[at], 0.0
    filled = core.fill_rows(observed.table, chosen.ravel(), observed.means)
    return filled.reshape(n_starts, k, -1)


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means++": k_means_plus_plus,
    "random": random_rows,
}


def starts_of_each(
    init: str, tables: Sequence[Observed], n_starts: int, k: int, seeds: Sequence[int], threads: int
) -> list[np.ndarray]:
    """What ``STARTS[init]`` gives for each table with a seed of its own, many tables together."""
    if init == "k-means++":
        drawn = zip(tables, seeds, strict=True)
        return core.seed([_seeding(own, n_starts, k, seeded(seed)) for own, seed in drawn], threads)
    how = STARTS[init]
    return [
        how(own, n_starts, k, seeded(seed), threads)
        for own, seed in zip(tables, seeds, strict=True)
    ]
