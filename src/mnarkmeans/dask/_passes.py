"""The passes over the rows of one piece, and how their results add up.

    step    the centres of the active starts -> S, C, N of the piece         (``_kernels.step``)
    propose new candidates -> the rows that would be the best next ones      (k-means||)
    assess  the final centres -> the loss of the piece, by direct differences

Every function is pure as far as results go: a task that is run twice, or on another worker, gives
the same sums. Rows are known by their number in the whole table, so the cut into blocks does not
show.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from .._kernels import assign_block, costs, row_key, step
from .._solver.bounds import Bounds
from .._solver.loss import Stats, Tables, csr_tables, dense_tables, merge_stats, zero_stats
from ._pieces import Piece, as_block, filled_rows


class Job(NamedTuple):
    """What goes out in an iteration. Centres and reference are relative to the shift."""

    shift: np.ndarray  # (p,)
    c: np.ndarray  # (p,)
    lam: np.ndarray  # (R,)
    m: np.ndarray  # (A, k, p) of the active starts
    active: np.ndarray  # (A,)
    whole_weights: bool


def tables_of(is_sparse: bool, shift, m, lam, c) -> Tables:
    if is_sparse:
        return csr_tables(shift, m, lam)
    return dense_tables(shift, m, lam, c)


def _is_sparse(piece: Piece) -> bool:
    return sparse.issparse(piece.source)


# --- one iteration of Lloyd's loop ------------------------------------------------------------


def step_piece(piece: Piece, first: int, job: Job) -> Stats:
    """The sums of the active starts over the piece, whose first row has number ``first``.

    A piece that has been here before only looks at rows that may change clusters
    (``_solver.bounds``), and moves those that do.
    """
    known = piece.memo.take_partition()
    n_starts, (_, k, p) = len(job.lam), job.m.shape
    labels, stats, bounds = known or (
        np.full((n_starts, piece.n_rows), -1, np.int32),
        zero_stats(n_starts, k, p),
        Bounds(piece.n_rows, k),
    )
    expiry, drop = np.empty(0, np.float32), np.empty(0)
    alone = len(job.active) == 1 and k > 1
    if alone and bounds.pay():
        bounds.follow(job.active[0], job.m[0], job.lam[job.active[0]])
        expiry, drop = bounds.expiry, bounds.drop
    tables = tables_of(_is_sparse(piece), job.shift, job.m, job.lam[job.active], job.c)
    changed = step(
        piece.block(), first, 0, piece.weights, tables, job.active, known is None, labels, stats,
        expiry, drop,
    )  # fmt: skip
    if alone:
        bounds.changed = changed
    part = Stats(*(values[job.active] for values in stats))
    if job.whole_weights:  # otherwise sums of changes would drift
        piece.memo.partition = labels, stats, bounds
    return part


def merge_parts(parts: list[Stats]) -> Stats:
    total = Stats(*(np.array(values) for values in parts[0]))
    for part in parts[1:]:
        merge_stats(total, part)
    return total


# --- empty clusters ---------------------------------------------------------------------------


class Costly(NamedTuple):
    """The costliest rows of every cluster, and how many rows each cluster has."""

    members: np.ndarray  # (k,)
    costs: np.ndarray
    rows: np.ndarray
    labels: np.ndarray


def costly_rows(piece: Piece, first: int, job: Job, most: int) -> Costly:
    """Up to ``most`` rows per cluster of the one start in the job, by direct differences."""
    k = job.m.shape[1]
    labels, values = _nearest(piece, job.shift, job.m, job.lam, job.c)
    counted = piece.weights > 0.0
    members = np.bincount(labels[counted], minlength=k)
    rows = np.flatnonzero(counted & (values > 0.0))
    return _costliest(
        Costly(members, values[rows], rows + first, labels[rows].astype(np.int64)), most
    )


def _costliest(found: Costly, most: int) -> Costly:
    order = np.lexsort((found.rows, -found.costs, found.labels))
    labels = found.labels[order]
    rank = np.arange(len(order)) - np.searchsorted(labels, labels)
    kept = order[rank < most]
    return Costly(found.members, found.costs[kept], found.rows[kept], found.labels[kept])


def merge_costly(parts: list[Costly], most: int) -> Costly:
    members = np.sum([part.members for part in parts], axis=0)
    together = [
        np.concatenate(column) for column in zip(*(part[1:] for part in parts), strict=True)
    ]
    return _costliest(Costly(members, *together), most)


def _nearest(piece: Piece, shift, m, lam, c) -> tuple[np.ndarray, np.ndarray]:
    """Label and loss of every row for one set of centres m (1, k, p)."""
    labels = np.empty((1, piece.n_rows), np.int32)
    block = piece.block()
    assign_block(block, 0, tables_of(_is_sparse(piece), shift, m, lam, c), m.shape[1], labels)
    values = np.empty(piece.n_rows)
    own = labels[0]
    costs(block, own, m[0] + shift, lam[0], c + shift, values)
    return own, values


# --- starting centres -------------------------------------------------------------------------


class Race(NamedTuple):
    """The rows that came first in a weighted draw, gaps filled; ``keys`` are finishing times."""

    keys: np.ndarray
    rows: np.ndarray  # (l, p)


def look_closer(piece: Piece, candidates: np.ndarray, n_known: int, means: np.ndarray):
    """OUT memo: distance to, and number of, the closest candidate.

    Distances are those of mean-filled rows: the loss with lam = 1 and the means as reference. Only
    candidates from ``n_known`` on are new, if the piece remembers the others.
    """
    memo = piece.memo
    start = n_known if memo.n_candidates == n_known else 0
    zero = np.zeros(len(means))
    new = np.ascontiguousarray(candidates[start:] - means)[None]
    labels, values = _nearest(piece, means, new, np.ones(1), zero)
    if start and memo.nearest is not None and memo.closest is not None:
        closer = values < memo.nearest
        labels = np.where(closer, labels + start, memo.closest)
        values = np.where(closer, values, memo.nearest)
    memo.nearest, memo.closest, memo.n_candidates = values, labels, len(candidates)
    return values, labels


def propose(
    piece: Piece, first: int, candidates, n_known: int, means, seed: int, size: int
) -> Race:
    """``size`` rows drawn with probabilities proportional to weight x squared distance.

    Row i draws a number u_i of its own and runs for -log(u_i) / (weight x distance); the first
    ``size`` to arrive are a weighted sample without replacement, whatever the blocks are.
    """
    values, _ = look_closer(piece, candidates, n_known, means)
    speed = piece.weights * values
    running = np.flatnonzero(speed > 0.0)
    keys = -np.log(uniform(running + first, seed)) / speed[running]
    winners = np.argsort(keys, kind="stable")[:size]
    return Race(keys[winners], filled_rows(piece.block(), running[winners], means))


def merge_races(parts: list[Race], size: int) -> Race:
    keys = np.concatenate([part.keys for part in parts])
    winners = np.argsort(keys, kind="stable")[:size]
    return Race(keys[winners], np.concatenate([part.rows for part in parts])[winners])


def followers(piece: Piece, first: int, candidates, n_known: int, means) -> np.ndarray:
    """(T,) weight of the rows closest to each candidate."""
    _, labels = look_closer(piece, candidates, n_known, means)
    return np.bincount(labels, piece.weights, len(candidates))


def uniform(rows: np.ndarray, seed: int) -> np.ndarray:
    """A number in (0, 1) for each row number: the same in whichever block the row is."""
    mixed = _mix(rows.astype(np.uint64) ^ np.uint64(seed))
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


@njit(nogil=True, cache=True)
def _mix(numbers):
    out = np.empty_like(numbers)
    for i in range(len(numbers)):
        out[i] = row_key(row_key(numbers[i]))
    return out


def take_rows(piece: Piece, rows: np.ndarray):
    """Some rows as they are, with their weights."""
    return piece.source[rows], piece.weights[rows]


# --- the end ----------------------------------------------------------------------------------


def assess(piece: Piece, first: int, centers, lam: float, reference) -> tuple[float, np.ndarray]:
    """The loss of the piece, and the number of its rows in each cluster."""
    shift = reference if _is_sparse(piece) else centers.mean(axis=0)
    labels, values = _nearest(
        piece, shift, (centers - shift)[None], np.array([lam]), reference - shift
    )
    return float(np.sum(values * piece.weights)), np.bincount(labels, minlength=len(centers))


def merge_assessed(parts):
    return sum(loss for loss, _ in parts), np.sum([members for _, members in parts], axis=0)


__all__ = [
    "Costly", "Job", "Race", "as_block", "assess", "costly_rows", "followers", "merge_assessed",
    "merge_costly", "merge_parts", "merge_races", "propose", "step_piece", "take_rows",
]  # fmt: skip
