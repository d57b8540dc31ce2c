"""What is done to each block: Lloyd's loop, k-means||, and the loss at the final centres.

    step          the centres of the active starts -> S, C, N of the block
    costly        the centres of a start -> rows to which an empty cluster could be relocated
    sum_up        the labels of a start, some changed -> S, C, N of the block
    total_loss    the labels of a start, other centres -> the loss, and the rows of each cluster
    draw          the candidates so far -> rows far from all of them
    pool_weights  the candidates -> how many rows are closest to each

Every function is pure as far as results go: a task that runs twice, or on another worker, gives
the same sums. Rows are known by their number in the whole table, so the division into blocks
affects no choice, only the last digits of sums. The loop itself, with its new centres, losses and
stopping rule, is the one used in memory (``_solver``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _core as core
from .._solver import InMemory, k_means_plus_plus, penalties, random_rows
from .._validation import observe
from ._blocks import Block, Blocks

# --- Lloyd's loop ---------------------------------------------------------------------------------


class Partition(NamedTuple):
    """The labels of G starts: those their centres give; of a single start, but for some rows."""

    mu: np.ndarray  # (G, k, p)
    lam: np.ndarray  # (G, p)
    reference: np.ndarray  # (p,)
    shift: np.ndarray  # (p,)
    rows: np.ndarray = np.empty(0, np.int64)  # that were moved
    clusters: np.ndarray = np.empty(0, np.int32)  # and where to

    @property
    def centers(self) -> core.Centers:
        return core.Centers(*self[:4])

    def labels(self, block: Block, first: int) -> np.ndarray:
        """(b,) of a block whose first row has number ``first``."""
        labels = core.assign(block.table(first), self.centers, threads=1)[0]
        inside = (self.rows >= first) & (self.rows < first + block.n_rows)
        labels[self.rows[inside] - first] = self.clusters[inside]
        return labels


def step(
    block: Block, first: int, starts: Partition, active: np.ndarray, n_starts: int, fresh: bool
) -> tuple[Any, ...]:
    """The sums of the active starts, and the largest |x - shift|^2 of a row that changed cluster
    (added up over blocks, it is no less than that of the whole table).

    A block that has been here before only compares rows that may change clusters, and moves those
    that do: it does what the whole table does in memory.
    """
    rows, kept = block.cache.pop("partition", (None, None))  # no other pass may find it half done
    if rows is None:
        (_, k, p), fresh = starts.mu.shape, True
        rows = InMemory(block.table(first), k, threads=1)
        mu, lam = np.zeros((n_starts, k, p)), np.zeros((n_starts, p))
        kept = core.Starts(mu, lam, starts.reference, starts.shift, n_rows=block.n_rows)
    kept.mu[active], kept.lam[active] = starts.mu, starts.lam
    largest = rows.pass_(kept, active, fresh)
    block.cache["partition"] = rows, kept
    return *(values[active] for values in kept.stats), largest


def add(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(map(sum, zip(*parts, strict=True)))


def sum_up(block: Block, first: int, partition: Partition) -> core.Stats:
    """The sums of one start."""
    stats, labels = core.Stats.zeros(*partition.mu.shape), partition.labels(block, first)
    core.add_rows(block.table(first), partition.centers, labels, stats, threads=1)
    return stats


def total_loss(
    block: Block, first: int, partition: Partition, mu: np.ndarray
) -> tuple[float, np.ndarray]:
    """The loss of the block with these labels and the centres mu (1, k, p), by direct differences,
    and the rows of each cluster."""
    centers, labels = partition._replace(mu=mu).centers, partition.labels(block, first)
    loss = core.loss_of(block.table(first), centers, labels, threads=1)
    return loss, np.bincount(labels, minlength=mu.shape[1])


Costly = tuple[np.ndarray, ...]  # members of each cluster (k,); costs, numbers and labels of rows


def costly(block: Block, first: int, partition: Partition, most: int) -> Costly:
    """Up to ``most`` rows that count and cost most."""
    labels, costs = partition.labels(block, first), np.empty(block.n_rows)
    core.loss_of(block.table(first), partition.centers, labels, threads=1, each=costs)
    counted = block.weights > 0.0
    members = np.bincount(labels[counted], minlength=partition.mu.shape[1])
    rows = np.flatnonzero(counted & (costs > 0.0))
    return merge_costly([(members, costs[rows], rows + first, labels[rows])], most)


def merge_costly(parts: list[Costly], most: int) -> Costly:
    """The rows stay in the order of their numbers."""
    members, *columns = zip(*parts, strict=True)
    costs, rows, labels = map(np.concatenate, columns)
    kept = np.sort(np.lexsort((rows, -costs))[:most])
    return sum(members), costs[kept], rows[kept], labels[kept]


class BlockRows:
    """The rows of all blocks, for Lloyd's loop: what ``_solver.InMemory`` is in memory."""

    def __init__(self, blocks: Blocks):
        self.blocks = blocks
        self._partitions: dict[int, Partition] = {}  # of the last pass

    def pass_(self, starts: core.Starts, active: np.ndarray, fresh: bool) -> float:
        """Blocks remember the labels their centres gave. Where rows were moved since, sums are made
        afresh: the rows that were moved cost most, and would leave their rounding behind."""
        fresh = fresh or any(len(last.rows) for last in self._partitions.values())
        sent = Partition(starts.mu[active], starts.lam[active], starts.reference, starts.shift)
        self._partitions = {
            int(r): sent._replace(mu=sent.mu[[a]], lam=sent.lam[[a]]) for a, r in enumerate(active)
        }
        *stats, largest = self.blocks.reduce(step, add, sent, active, starts.count, fresh)
        for kept, new in zip(starts.stats, stats, strict=True):
            kept[active] = new
        return largest

    def relocate_empty(self, starts: core.Starts, r: int) -> None:
        """The last row of a cluster stays: of each, one costly row may be of no use."""
        partition = self._partitions[r]
        most = int(np.sum(starts.stats.sizes[r] <= 0.0)) + partition.mu.shape[1]
        merge = partial(merge_costly, most=most)
        members, costs, rows, labels = self.blocks.reduce(costly, merge, partition, most)
        chosen = core.choose_relocated(costs, labels, members)
        clusters = np.flatnonzero(chosen >= 0).astype(np.int32)
        partition = partition._replace(rows=rows[chosen[clusters]], clusters=clusters)
        for kept, new in zip(starts.stats, self.blocks.reduce(sum_up, add, partition), strict=True):
            kept[r] = new[0]
        self._partitions[r] = partition

    def loss_of(self, starts: core.Starts, r: int) -> float:
        return self.blocks.reduce(total_loss, add, self._partitions[r], starts.mu[[r]])[0]


# --- starting centres -----------------------------------------------------------------------------

ROUNDS = 5
OVERSAMPLING = 2  # candidates per round, in units of k


def k_means_parallel(
    blocks: Blocks, n_starts: int, k: int, rng: np.random.RandomState, threads: int
) -> np.ndarray:
    """Centres (R, k, p) by k-means|| (Bahmani et al. 2012).

    A pool of candidates grows in a few rounds, each adding 2 k rows drawn with probability
    proportional to weight x squared distance to the pool; weighted by the rows that are closest to
    them, they are then reduced to k by k-means++. One pool serves all starts.
    """
    means = blocks.means  # of all rows: missing values are filled with them
    candidates = np.empty((0, len(means)))
    for size in [1] + ROUNDS * [OVERSAMPLING * k]:
        seed = int(rng.randint(0, 2**31))
        merge = partial(merge_drawn, size=size)
        _, rows = blocks.reduce(draw, merge, candidates, means, seed, size)
        candidates = np.vstack([candidates, rows])
    weights = blocks.reduce(pool_weights, partial(np.sum, axis=0), candidates, means)
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
    begin, before = divmod(first, 4)  # Philox makes four numbers at a time
    stream = np.random.Generator(np.random.Philox(key=seed).advance(begin))
    numbers = stream.random(before + block.n_rows)[before:]
    keys = -np.log(1.0 - numbers[running]) / speed[running]
    winners = np.argsort(keys, kind="stable")[:size]
    return keys[winners], core.fill_rows(block.table(first), running[winners], means)


def merge_drawn(parts: list[Drawn], size: int) -> Drawn:
    keys, rows = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    winners = np.argsort(keys, kind="stable")[:size]
    return keys[winners], rows[winners]


def pool_weights(block: Block, first: int, candidates: np.ndarray, means: np.ndarray) -> np.ndarray:
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
    n_rows, none = block.n_rows, (np.full(block.n_rows, np.inf), np.zeros(block.n_rows, int), 0)
    costs, labels, n_seen = block.cache.get("nearest", none)
    if n_seen > len(candidates):  # a task of an earlier round that runs again
        costs, labels, n_seen = none
    if n_seen < len(candidates):
        mu = np.ascontiguousarray(candidates[None, n_seen:])
        centers = core.Centers(mu, penalties(1.0, 1, len(means)), means, means)
        table, new_costs = block.table(first), np.empty(n_rows)
        new_labels = core.assign(table, centers, threads=1)[0]
        core.loss_of(table, centers, new_labels, threads=1, each=new_costs)
        labels = np.where(new_costs < costs, new_labels + n_seen, labels)
        costs = np.minimum(costs, new_costs)
    block.cache["nearest"] = costs, labels, len(candidates)
    return costs, labels


def on_sample(
    start: Callable[..., np.ndarray], blocks: Blocks, n_starts: int, k: int,
    rng: np.random.RandomState, threads: int,
) -> np.ndarray:  # fmt: skip
    """A start in memory, of some rows, or of all when there are few: then they are the starts of
    the estimator in memory, number for number."""
    return start(blocks.sample(rng), n_starts, k, rng, threads)


STARTS: dict[str, Callable[..., np.ndarray]] = {
    "k-means||": k_means_parallel,
    "k-means++": partial(on_sample, k_means_plus_plus),
    "random": partial(on_sample, random_rows),
}
