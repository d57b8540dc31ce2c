"""Solvers of the penalised loss: many starts at once, each with its own lam.

``run_starts`` takes clean numbers only: the data are an ``Observed``, the centres are finite.
Judging the input is the business of ``_data.validation``.

    assign:  z_i = argmin_l of the row's loss       (``schedule.sweep``)
    centre:  from the three sums of each cluster    (``loss.update_centers``)

Both steps are exact minimisations, so the loss never rises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from .. import _kernels as kernels
from .._data.observed import Csr, Observed, Packed
from .._panel_rows import pack
from .bounds import FEWEST_FEATURES, Bounds
from .hartigan import polish, polish_compiled
from .loss import (
    bytes_of_stats,
    gaps_as,
    is_determined,
    partition_loss,
    signature,
    update_centers,
    zero_stats,
)
from .schedule import Slabs, move_row, row_costs, sweep, tables_for
from .threads import ordered_map, slices

BYTES_OF_LABELS = 1 << 25  # starts that run side by side: as many as keep their labels below this
NO_TWIN = -1


class Known(NamedTuple):
    """What the last pass of a start left behind, to label the rows once more with less work."""

    labels: np.ndarray  # (n,)
    bounds: Bounds


class Batch(NamedTuple):
    """What became of R starts."""

    centers: np.ndarray  # (R, k, p)
    losses: np.ndarray  # (R,) final loss of each start
    n_iter: np.ndarray  # (R,)
    paths: list[np.ndarray]  # the loss after every iteration
    converged: np.ndarray  # (R,) stopped before max_iter
    empty: np.ndarray  # (R,) number of clusters that could not be filled
    known: Known | None = None  # if there was one start only, on a large table


class Solution(NamedTuple):
    """The best start, finished: the labels are the ones its centres give."""

    centers: np.ndarray  # (k, p)
    labels: np.ndarray  # (n,) int32
    loss: float  # by direct differences
    members: np.ndarray  # (k,) number of rows of each label
    n_iter: int
    path: np.ndarray
    start_losses: np.ndarray
    converged: bool
    empty: int


# --- Lloyd ------------------------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _costliest(costs, weights, labels, members):
    """The row that costs most among clusters that can spare one; -1 if none costs anything."""
    best = -1
    for i in range(costs.shape[0]):
        if (
            weights[i] > 0.0
            and costs[i] > 0.0
            and members[labels[i]] > 1
            and (best < 0 or costs[i] > costs[best])
        ):
            best = i
    return best


@register_jitable
def rescue_empty(data, weights, shift, c, lam, m, r, labels, stats):
    """Move the costliest rows of start r into its empty clusters. INOUT labels, stats."""
    k = m.shape[0]
    members = np.zeros(k, np.int64)
    for i in range(labels.shape[1]):
        if weights[i] > 0.0:
            members[labels[r, i]] += 1
    if members.min() > 0:
        return
    own = labels[r].copy()
    costs = row_costs(data, own, m + shift, lam, c + shift)
    for l in range(k):
        if members[l] > 0:
            continue
        i = _costliest(costs, weights, own, members)
        if i < 0:
            return
        move_row(data, i, weights[i], shift, r, own[i], l, stats)
        members[own[i]] -= 1
        members[l] += 1
        own[i] = l
        labels[r, i] = l
        costs[i] = 0.0


@register_jitable
def advance(it, active, c, lam, tol, stats, m, paths, n_iter, seen, twins, settled):
    """Iteration ``it`` after its pass over the rows: new centres, losses, and who goes on.

    IN  stats of the active starts; INOUT m, paths, n_iter, settled, twins as in ``lloyd``,
        seen (R,): the partition each start had last
    Returns the starts that are still active.
    """
    running = np.ones(active.shape[0], np.bool_)
    for a in range(active.shape[0]):
        r = active[a]
        update_centers(stats, r, lam[r], c, m[r])
        loss = partition_loss(stats, r, lam[r], c, m[r])
        mark = signature(stats, r)
        n_iter[r] = it + 1
        if it == 0:
            paths[r, it] = loss
        else:
            last = paths[r, it - 1]
            paths[r, it] = min(loss, last)
            # Where rounding of the sums outweighs tol, only an unchanged partition stops.
            trusted = tol * last > 1e-14 * stats.squares[r]
            if mark == seen[r] or (trusted and last - loss <= tol * last):
                running[a] = False
                settled[r] = True
        seen[r] = mark
    for a in range(1, active.shape[0]):
        r = active[a]
        for b in range(a):
            s = active[b]
            same = seen[r] == seen[s] and lam[r] == lam[s] and twins[s] == NO_TWIN
            if running[a] and same and is_determined(stats, r, lam[r]):
                twins[r] = s
                running[a] = False
    return active[running]


def lloyd(
    data, weights, whole_weights, shift, c, lam, max_iter, tol, m, labels, stats, paths, n_iter,
    twins, settled,
):  # fmt: skip
    """Lloyd's loop for R starts side by side.

    IN  shift, c (p,), lam (R,); INOUT m (R, k, p), labels (R, n) = -1, stats = 0
    OUT paths (R, max_iter), n_iter (R,), settled (R,): stopped by itself
        twins (R,): an earlier start whose partition this one reached; it goes the same way from
        there, so it is followed no further
    """
    n_starts = m.shape[0]
    active = np.arange(n_starts)
    seen = np.zeros(n_starts, np.uint64)
    for it in range(max_iter):
        # Sums of whole weights are exact, so only changes need be added; others start afresh.
        fresh = it == 0 or not whole_weights
        if fresh:
            for r in active:
                stats.sums[r].fill(0.0)
                stats.counts[r].fill(0.0)
                stats.sizes[r].fill(0.0)
                stats.keys[r].fill(np.uint64(0))
                stats.squares[r] = 0.0
        sweep(data, weights, shift, c, lam, m, active, fresh, labels, stats)
        for r in active:
            if stats.sizes[r].min() <= 0.0:
                rescue_empty(data, weights, shift, c, lam[r], m[r], r, labels, stats)
        active = advance(it, active, c, lam, tol, stats, m, paths, n_iter, seen, twins, settled)
        if active.shape[0] == 0:
            break


lloyd_compiled = njit(nogil=True, cache=True)(lloyd)


# --- starts to solutions ----------------------------------------------------------------------


class Starts:
    """The arrays of a few starts that run side by side, wherever the rows are."""

    def __init__(self, centers, lam, shift, reference, max_iter: int):
        n_starts, k, p = centers.shape
        self.lam, self.max_iter = lam, max_iter
        self.shift = shift
        self.c = reference - shift
        self.m = np.ascontiguousarray(centers - shift, dtype=np.float64)
        self.stats = zero_stats(n_starts, k, p)
        self.paths = np.zeros((n_starts, max_iter))
        self.n_iter = np.zeros(n_starts, np.int64)
        self.twins = np.full(n_starts, NO_TWIN)
        self.settled = np.zeros(n_starts, np.bool_)

    def batch(self) -> Batch:
        for r in np.flatnonzero(self.twins != NO_TWIN):  # twins point backwards: one sweep does
            twin, own = self.twins[r], self.n_iter[r]
            rest = self.paths[twin, own : self.n_iter[twin]]
            self.paths[r, own : own + len(rest)] = rest
            self.n_iter[r] = own + len(rest)
            self.m[r], self.settled[r] = self.m[twin], self.settled[twin]
            self.stats.sizes[r] = self.stats.sizes[twin]
        paths = [path[:stop] for path, stop in zip(self.paths, self.n_iter, strict=True)]
        return Batch(
            self.m + self.shift,
            np.array([path[-1] for path in paths]),
            self.n_iter,
            paths,
            self.settled,
            np.sum(self.stats.sizes <= 0.0, axis=1),
        )


class _Run(Starts):
    """Starts on one table in memory, with a label of every row for each."""

    def __init__(self, observed: Observed, centers, lam, max_iter: int):
        super().__init__(centers, lam, observed.shift, observed.reference, max_iter)
        self.observed = observed
        self.labels = np.full((len(centers), observed.n_rows), -1, np.int32)

    def lloyd(self, data, tol: float) -> None:
        loop = lloyd if isinstance(data, Slabs) else lloyd_compiled
        loop(
            data, self.observed.weights, self.observed.whole_weights, self.shift, self.c,
            self.lam, self.max_iter, tol, self.m, self.labels, self.stats, self.paths,
            self.n_iter, self.twins, self.settled,
        )  # fmt: skip

    def hartigan(self, data, tol: float, threads: int, most: int) -> None:
        """Move single rows, in the best ``most`` starts."""
        loop = polish if isinstance(data, Slabs) else polish_compiled

        def work(r):
            labels = self.labels[r]
            self.n_iter[r] = loop(
                data, self.observed.weights, self.shift, self.c, self.lam[r], self.max_iter,
                tol, labels, self.stats, r, self.m[r], self.paths[r], self.n_iter[r],
            )  # fmt: skip
            self.settled[r] = self.n_iter[r] < self.max_iter

        losses = self.paths[np.arange(len(self.lam)), self.n_iter - 1]
        order = np.argsort(losses, kind="stable")
        chosen = np.sort(order[self.twins[order] == NO_TWIN][:most])
        ordered_map(work, chosen, threads)


def _resident_block(observed: Observed, lam: np.ndarray) -> Packed | Csr:
    """The whole table, dense rows with their panels: they serve every pass of every start."""
    block = observed.block()
    if isinstance(block, Csr):
        return block
    shift = observed.shift
    filling = gaps_as(observed.reference - shift, lam)
    return pack(block.values, block.missing, shift, filling)


ALGORITHMS = ("lloyd", "hartigan")


def run_starts(
    observed: Observed,
    centers: np.ndarray,
    lam: np.ndarray,
    *,
    algorithm: str,
    max_iter: int,
    tol: float,
    threads: int,
    progress: Callable[[Batch], None] | None = None,
    slice_size: int | None = None,
    polished: int | None = None,
) -> Batch:
    """Run the starts ``centers`` (R, k, p), each with its own ``lam`` (R,), to their ends.

    Small tables: slices of starts go to the threads, each slice in one compiled call. Larger ones:
    as many starts as memory allows run side by side, the threads share the rows. Neither cut
    depends on the number of threads. ``progress`` is called with every finished batch.
    ``slice_size``: starts of one compiled call, where the caller has threads busy elsewhere.

    "hartigan" begins with Lloyd's loop, which comes close in few passes; moves of single rows do
    the rest, in about ``polished`` of the starts, those with the smallest losses (None: in all).
    """
    n_starts, k, p = centers.shape
    share = 1.0 if polished is None else min(1.0, polished / n_starts)
    resident = len(observed.slabs()) == 1
    if resident:
        size = slice_size or max(4, -(-n_starts // 4))
    else:
        size = max(1, BYTES_OF_LABELS // (4 * observed.n_rows))

    block = _resident_block(observed, lam) if resident else None

    def work(piece: tuple[int, int]) -> Batch:
        starts = slice(*piece)
        run = _Run(observed, centers[starts], np.ascontiguousarray(lam[starts]), max_iter)
        data: Packed | Csr | Slabs
        if block is not None:
            data = block
        else:
            edges = observed.slabs(bytes_of_stats(piece[1] - piece[0], k, p))
            bounds = Bounds(observed.n_rows, k) if k > 1 and p >= FEWEST_FEATURES else None
            data = Slabs(observed, edges, threads, bounds)
        run.lloyd(data, tol)
        if algorithm == "hartigan":
            most = math.ceil(share * (piece[1] - piece[0]))
            run.hartigan(data, tol, 1 if resident else threads, most)
        batch = run.batch()
        if n_starts == 1 and isinstance(data, Slabs) and data.bounds and algorithm == "lloyd":
            batch = batch._replace(known=Known(run.labels[0], data.bounds))
        if progress is not None:
            progress(batch)
        return batch

    pieces = ordered_map(work, slices(n_starts, size), threads if resident else 1)
    return Batch(
        np.concatenate([b.centers for b in pieces]),
        np.concatenate([b.losses for b in pieces]),
        np.concatenate([b.n_iter for b in pieces]),
        [path for b in pieces for path in b.paths],
        np.concatenate([b.converged for b in pieces]),
        np.concatenate([b.empty for b in pieces]),
        pieces[0].known,
    )


def assign_rows(
    observed: Observed, centers: np.ndarray, lam: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Labels (n, G) of every row for the centres (G, k, p) of G models with penalties lam (G,)."""
    n_models, k, _ = centers.shape
    shift = observed.shift
    data = Slabs(observed, observed.slabs(), threads)
    tables = tables_for(
        data, shift, np.ascontiguousarray(centers - shift, dtype=np.float64), lam,
        observed.reference - shift,
    )  # fmt: skip
    labels = np.empty((n_models, observed.n_rows), np.int32)
    data.map(lambda block, start, stop: kernels.assign_block(block, start, tables, k, labels))
    return labels.T


def best_of(observed: Observed, batch: Batch, lam: np.ndarray, threads: int = 1) -> Solution:
    """Finish the start with the smallest loss; the first of those that differ by rounding only."""
    best = int(np.argmax(batch.losses <= batch.losses.min() * (1.0 + 1e-10)))
    # What is reported belongs to the centres the user sees, in the precision they are kept in.
    centers = batch.centers[best].astype(observed.dtype)
    labels, loss, members = finish(observed, centers, float(lam[best]), threads, batch.known)
    return Solution(
        centers,
        labels,
        loss,
        members,
        int(batch.n_iter[best]),
        batch.paths[best].copy(),
        batch.losses,
        bool(batch.converged[best]),
        int(batch.empty[best]),
    )


def finish(
    observed: Observed,
    centers: np.ndarray,
    lam: float,
    threads: int = 1,
    known: Known | None = None,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels (n,) that the centres (k, p) give, the loss by direct differences, rows per label."""
    exact = centers.astype(np.float64)
    shift, reference = observed.shift, observed.reference
    data = Slabs(observed, observed.slabs(), threads)
    tables = tables_for(data, shift, (exact - shift)[None], np.array([lam]), reference - shift)
    if known is None:
        labels, expiry = np.empty(observed.n_rows, np.int32), np.empty(0, np.float32)
        drop = np.empty(0)
    else:
        labels, bounds = known
        bounds.follow(0, exact - shift, lam)
        expiry, drop = bounds.expiry, bounds.drop

    def work(block, start, stop):
        rows, members = slice(start, stop), np.zeros(len(exact), np.int64)
        loss = kernels.assign_and_cost(
            block, observed.weights[rows], tables, exact, lam, reference, labels[rows], members,
            expiry[rows], drop,
        )  # fmt: skip
        return loss, members

    losses, members = zip(*data.map(work), strict=True)
    return labels, math.fsum(losses), np.sum(members, axis=0)


def row_distances(
    observed: Observed, centers: np.ndarray, lam: float, threads: int = 1
) -> np.ndarray:
    """Loss (n, k) of every row at every centre, by direct differences."""
    exact = centers.astype(np.float64)
    out = np.empty((observed.n_rows, centers.shape[0]), observed.dtype)
    data = Slabs(observed, observed.slabs(), threads)
    data.map(
        lambda block, start, stop: kernels.distances(
            block, exact, lam, observed.reference, out[start:stop]
        )
    )
    return out
