"""Where the starts come from: k-means++ on mean-filled data, random rows, given centres.

Filling gaps with the observed means and taking squared distances is the penalised loss with
lam = 1 and the means as the reference, so the kernels of the solver serve here too: with the means
as the shift, a filled row is its observed part, and

    |x_i - m|^2 = |x'_i|^2 - 2 x'_i . m + |m|^2

All starts are seeded together. Rows are drawn along an order given by their content, with numbers
drawn beforehand: shuffled rows, a row twice or its weight doubled, dense or sparse storage all
lead to the same starting centres.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from .._data.first_pass import content_keys
from .._data.observed import Observed
from .schedule import Slabs, count_rows, filled_row, lower, row_squares, tables_for
from .threads import ordered_map, slices

BYTES_OF_DISTANCES = 1 << 25


@njit(nogil=True, cache=True)
def cumulate(mass, weights, order, reached):
    """OUT reached[e]: total of weights * mass of the rows order[0] .. order[e].

    Where all of it is 0 (fewer distinct rows than centres), the weights alone count.
    """
    total = 0.0
    for e in range(order.shape[0]):
        i = order[e]
        total += weights[i] * mass[i]
        reached[e] = total
    if total <= 0.0:
        for e in range(order.shape[0]):
            total += weights[order[e]]
            reached[e] = total


@njit(nogil=True, cache=True)
def pick(order, reached, u):
    """The row at share u (in [0, 1)) of what was cumulated along ``order``."""
    low, high = 0, order.shape[0] - 1
    total = reached[high]
    while low < high:  # the first that goes beyond the share, or completes the total
        middle = (low + high) // 2
        if reached[middle] > u * total or reached[middle] == total:
            high = middle
        else:
            low = middle + 1
    return order[low]


def plus_plus(data, weights, order, means, draws, centers):
    """Greedy k-means++ for G starts. IN draws (G, k, trials) in [0, 1); OUT centers (G, k, p).

    Centres are kept relative to the means until the end.
    """
    groups, k, trials = draws.shape
    lam, zero = np.ones(groups), np.zeros(means.shape[0])
    squares = row_squares(data, means)
    nearest = np.ones((groups, count_rows(data)))
    candidates = np.empty((groups, trials, means.shape[0]))
    chosen = np.empty((groups, 1, means.shape[0]))
    potentials, kept = np.empty((groups, trials)), np.empty((groups, 1))
    reached = np.empty(order.shape[0])
    for l in range(k):
        n_trials = 1 if l == 0 else trials
        for g in range(groups):
            cumulate(nearest[g], weights, order, reached)
            for t in range(n_trials):
                row = pick(order, reached, draws[g, l, t])
                filled_row(data, row, means, zero, candidates[g, t])
        if n_trials > 1:
            tables = tables_for(data, means, candidates, lam, zero)
            lower(data, tables, squares, weights, False, nearest, potentials)
        for g in range(groups):
            best = np.argmin(potentials[g]) if n_trials > 1 else 0
            for j in range(means.shape[0]):  # plain loops compile far faster than slices
                chosen[g, 0, j] = centers[g, l, j] = candidates[g, best, j]
        if l == k - 1:
            break
        if l == 0:
            nearest.fill(np.inf)
        tables = tables_for(data, means, chosen, lam, zero)
        lower(data, tables, squares, weights, True, nearest, kept)
    for g in range(groups):
        for l in range(k):
            for j in range(means.shape[0]):
                centers[g, l, j] += means[j]


plus_plus_compiled = njit(nogil=True, cache=True)(plus_plus)


def content_order(observed: Observed, threads: int) -> np.ndarray:
    """Rows ordered by what is in them, not by where they stand."""
    keys = np.empty(observed.n_rows, np.uint64)
    Slabs(observed, observed.slabs(), threads).map(
        lambda block, start, stop: content_keys(block, keys[start:stop])
    )
    return np.argsort(keys, kind="stable")


def k_means_plus_plus(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p) of R starts."""
    trials = 2 + int(np.log(k))
    draws = rng.random_sample((n_starts, k, trials))
    order = content_order(observed, threads)
    centers = np.empty((n_starts, k, observed.n_features))
    resident = len(observed.slabs()) == 1
    if resident:
        size = max(4, -(-n_starts // 4))
    else:
        size = max(1, BYTES_OF_DISTANCES // (8 * observed.n_rows))

    def work(piece: tuple[int, int]) -> None:
        starts = slice(*piece)
        seed = plus_plus_compiled if resident else plus_plus
        data = observed.block() if resident else Slabs(observed, observed.slabs(), threads)
        seed(data, observed.weights, order, observed.means, draws[starts], centers[starts])

    ordered_map(work, slices(n_starts, size), threads if resident else 1)
    return centers


def random_rows(
    observed: Observed, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p): k different rows each, drawn by weight, gaps filled with the means."""
    draws = rng.random_sample((n_starts, k))
    order = content_order(observed, threads)
    data = Slabs(observed, observed.slabs(), threads)
    centers = np.empty((n_starts, k, observed.n_features))
    reached = np.empty(observed.n_rows)
    for r in range(n_starts):
        free = np.ones(observed.n_rows)
        for l in range(k):
            cumulate(free, observed.weights, order, reached)
            row = pick(order, reached, draws[r, l])
            free[row] = 0.0
            filled_row(data, row, np.zeros_like(observed.means), observed.means, centers[r, l])
    return centers


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means++": k_means_plus_plus,
    "random": random_rows,
}
