"""The passes over the rows of one piece, and how their results add up.

    step       the centres of the active starts -> S, C, N of the piece
    costly     what rows cost at the centres of a start -> those that could fill an empty cluster
    add_up     the labels of a start, some changed -> S, C, N of the piece
    loss_at    the labels of a start, other centres -> the loss, by direct differences
    assess     the final centres -> the loss and the rows of each cluster
    propose    new candidates -> the rows that would be the best next ones (k-means||)
    followers  all candidates -> the weight of the rows closest to each

Every function is pure as far as results go: a task that is run twice, or on another worker, gives
the same sums. Rows are known by their number in the whole table, so the cut into blocks shows
in no choice, only in the last digits of sums.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _core as core
from .._data.gaps import with_nan
from .._solver.lloyd import InMemory
from .._solver.solve import penalties
from ._pieces import Partition, Piece

# --- one iteration of Lloyd's loop ------------------------------------------------------------


class Job(NamedTuple):
    """What goes out in an iteration."""

    n_starts: int
    active: np.ndarray  # (A,) the starts that go on
    mu: np.ndarray  # (A, k, p)
    lam: np.ndarray  # (A, p)
    reference: np.ndarray  # (p,)
    shift: np.ndarray  # (p,)
    fresh: bool  # sum up all rows anew

    def starts(self, n_rows: int) -> core.Starts:
        """Room for all starts, here."""
        _, k, p = self.mu.shape
        return core.Starts(
            np.zeros((self.n_starts, k, p)), np.zeros((self.n_starts, p)), self.reference,
            self.shift, n_rows=n_rows, max_iter=1, tol=0.0, weights=(False, 0.0),
        )  # fmt: skip


class Part(NamedTuple):
    """What comes back: sums of the active starts, and how large a row changed cluster."""

    stats: core.Stats
    largest: float


def step(piece: Piece, first: int, job: Job) -> Part:
    """The sums of the active starts over the piece, whose first row has number ``first``.

    A piece that has been here before only looks at rows that may change clusters, and moves those
    that do: it does what the whole table does in memory.
    """
    known = piece.memo.take_partition()
    rows, starts = known or Partition(
        InMemory(piece.table(first), job.mu.shape[1], threads=1), job.starts(piece.n_rows)
    )
    starts.mu[job.active], starts.lam[job.active] = job.mu, job.lam
    largest = rows.pass_(starts, job.active, job.fresh or known is None)
    part = Part(core.Stats(*(values[job.active] for values in starts.stats)), largest)
    piece.memo.partition = Partition(rows, starts)
    return part


def merge_steps(parts: list[Part]) -> Part:
    return Part(merge_stats([part.stats for part in parts]), max(part.largest for part in parts))


def merge_stats(parts: list[core.Stats]) -> core.Stats:
    total = core.Stats(*(np.array(values) for values in parts[0]))
    for part in parts[1:]:
        total.add(part)
    return total


# --- the partition of one start ---------------------------------------------------------------


class Labels(NamedTuple):
    """How a start's labels are found again: by the centres of the last pass, but for some rows."""

    start: int
    mu: np.ndarray  # (1, k, p)
    lam: np.ndarray  # (1, p)
    reference: np.ndarray  # (p,)
    shift: np.ndarray  # (p,)
    rows: np.ndarray = np.empty(0, np.int64)  # rising: rows that were moved since
    clusters: np.ndarray = np.empty(0, np.int32)  # and where to

    @property
    def centers(self) -> core.Centers:
        return core.Centers(self.mu, self.lam, self.reference, self.shift)

    def of(self, piece: Piece, first: int) -> np.ndarray:
        """(b,) the labels of a piece, remembered or found anew."""
        known = piece.memo.partition
        if known is not None and np.array_equal(known.starts.mu[self.start], self.mu[0]):
            labels = known.starts.labels[self.start].copy()
        else:
            labels = core.assign(piece.table(first), self.centers, threads=1)[0]
        begin, end = np.searchsorted(self.rows, [first, first + piece.n_rows])
        labels[self.rows[begin:end] - first] = self.clusters[begin:end]
        return labels


def add_up(piece: Piece, first: int, labels: Labels) -> core.Stats:
    """The sums of one start."""
    _, k, p = labels.mu.shape
    stats = core.Stats.zeros(1, k, p)
    core.add_rows(piece.table(first), labels.centers, labels.of(piece, first), stats, threads=1)
    return stats


def loss_at(piece: Piece, first: int, labels: Labels, mu: np.ndarray) -> float:
    """The loss of the piece with these labels and the centres mu (1, k, p)."""
    centers = labels._replace(mu=mu).centers
    return core.loss_of(piece.table(first), centers, labels.of(piece, first), threads=1)


class Costly(NamedTuple):
    """The costliest rows of every cluster, and how many rows each cluster has."""

    members: np.ndarray  # (k,)
    costs: np.ndarray
    rows: np.ndarray
    labels: np.ndarray


def costly(piece: Piece, first: int, labels: Labels, most: int) -> Costly:
    """Up to ``most`` rows per cluster that count and cost anything."""
    own, costs = labels.of(piece, first), np.empty(piece.n_rows)
    core.loss_of(piece.table(first), labels.centers, own, threads=1, each=costs)
    counted = piece.weights > 0.0
    members = np.bincount(own[counted], minlength=labels.mu.shape[1])
    rows = np.flatnonzero(counted & (costs > 0.0))
    return _costliest(Costly(members, costs[rows], rows + first, own[rows]), most)


def _costliest(found: Costly, most: int) -> Costly:
    order = np.lexsort((found.rows, -found.costs, found.labels))
    labels = found.labels[order]
    rank = np.arange(len(order)) - np.searchsorted(labels, labels)
    kept = np.sort(order[rank < most])
    return Costly(found.members, found.costs[kept], found.rows[kept], found.labels[kept])


def merge_costly(parts: list[Costly], most: int) -> Costly:
    members = np.sum([part.members for part in parts], axis=0)
    columns = zip(*(part[1:] for part in parts), strict=True)
    return _costliest(Costly(members, *(np.concatenate(column) for column in columns)), most)


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


# --- the end ----------------------------------------------------------------------------------


class Fitted(NamedTuple):
    """The centres as the user will see them."""

    centers: np.ndarray  # (k, p) float64
    lam: np.ndarray  # (1, p)
    reference: np.ndarray  # (p,)


def assess(piece: Piece, first: int, fitted: Fitted) -> tuple[float, np.ndarray]:
    """The loss of the piece, and the number of its rows in each cluster."""
    mu, lam, reference = fitted
    centers = core.Centers(mu[None], lam, reference, mu.mean(axis=0))
    _, loss, members = core.last_look(piece.table(first), centers, threads=1)
    return loss, members


def merge_assessed(parts: list[tuple[float, np.ndarray]]) -> tuple[float, np.ndarray]:
    return sum(loss for loss, _ in parts), np.sum([members for _, members in parts], axis=0)


def take_rows(piece: Piece, rows: np.ndarray) -> tuple[Any, np.ndarray]:
    """Some rows with their gaps as NaN (or not stored), and their weights."""
    return with_nan(piece.source[rows], piece.missing), piece.weights[rows]
