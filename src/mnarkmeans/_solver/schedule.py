"""Two ways to run the same passes over the rows.

A driver (Lloyd's loop, Hartigan's, the seeding) is written once against the functions below and
runs in two ways:

- compiled, over a single block: the whole loop is one call without the interpreter. For tables
  that fit into the caches; the *starts* are then spread over the threads.
- as plain Python over ``Slabs``: every pass hands the slabs of rows to threads and adds their
  sums in slab order.

``@overload`` gives each function its compiled meaning for a block; its Python body is the
meaning for ``Slabs``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numba.extending import overload

from .. import _kernels as kernels
from .. import _panels as panels
from .._data.observed import Observed
from .._kernels import costs, step, transfer
from .._panel_rows import HALF, on_cache_line, whole_blocks
from .._rows import REORDER, add_row, is_csr, n_rows, score_row
from .bounds import Bounds
from .loss import Stats, Tables, csr_tables, dense_tables, merge_stats, zero_stats
from .threads import ordered_map


@dataclass(frozen=True)
class Slabs:
    """A table cut into slabs of rows, and the number of threads to work on them."""

    observed: Observed
    edges: list[tuple[int, int]]
    threads: int
    bounds: Bounds | None = None  # to pass over rows that cannot change cluster

    def map(self, work):
        """[work(block, start, stop) for every slab], in slab order."""
        return ordered_map(
            lambda edge: work(self.observed.block(*edge), *edge), self.edges, self.threads
        )


def count_rows(data) -> int:
    return data.observed.n_rows


@overload(count_rows)
def _count_rows(data):
    return lambda data: n_rows(data)


def tables_for(data, shift, centers, lam, c) -> Tables:
    """Tables of centres (G, k, p) in the form the data's kernel wants."""
    if data.observed.is_sparse:
        return csr_tables(shift, centers, lam)
    return dense_tables(shift, centers, lam, c)


@overload(tables_for)
def _tables_for(data, shift, centers, lam, c):
    if is_csr(data):
        return lambda data, shift, centers, lam, c: csr_tables(shift, centers, lam)
    return lambda data, shift, centers, lam, c: dense_tables(shift, centers, lam, c)


def sweep(data, weights, shift, c, lam, m, active, fresh, labels, stats: Stats) -> None:
    """One assignment pass for the active starts; INOUT labels (R, n) and stats."""
    tables = tables_for(data, shift, m[active], lam[active], c)
    expiry, drop = np.empty(0, np.float32), np.empty(0)
    bounds = data.bounds if len(active) == 1 else None
    if bounds is not None and bounds.pay():
        bounds.follow(active[0], m[active[0]], lam[active[0]])
        expiry, drop = bounds.expiry, bounds.drop

    def work(block, start, stop):
        part = zero_stats(*m.shape)
        rows = slice(start, stop)
        changed = step(
            block, start, start, weights[rows], tables, active, fresh, labels, part, expiry[rows],
            drop,
        )  # fmt: skip
        return part, changed

    changed = 0
    for part, more in data.map(work):
        merge_stats(stats, part)
        changed += more
    if bounds is not None:
        bounds.changed = changed


@overload(sweep)
def _sweep(data, weights, shift, c, lam, m, active, fresh, labels, stats):
    def compiled(data, weights, shift, c, lam, m, active, fresh, labels, stats):
        tables = tables_for(data, shift, m[active], lam[active], c)
        expiry, drop = np.empty(0, np.float32), np.empty(0)
        step(data, 0, 0, weights, tables, active, fresh, labels, stats, expiry, drop)

    return compiled


def row_costs(data, labels, centers, lam, reference) -> np.ndarray:
    """The loss of every row (n,) at its own centre, by direct differences."""
    out = np.empty(labels.shape[0])

    def work(block, start, stop):
        costs(block, labels[start:stop], centers, lam, reference, out[start:stop])

    data.map(work)
    return out


@overload(row_costs)
def _row_costs(data, labels, centers, lam, reference):
    def compiled(data, labels, centers, lam, reference):
        out = np.empty(labels.shape[0])
        costs(data, labels, centers, lam, reference, out)
        return out

    return compiled


def move_row(data, i, w, shift, r, old, new, stats: Stats) -> None:
    """INOUT stats of start r: row i leaves one cluster for another."""
    row = data.observed.block(i, i + 1)
    transfer(row, 0, i, -1, w, shift, r, old, stats)
    transfer(row, 0, i, 1, w, shift, r, new, stats)
    if data.bounds is not None:
        data.bounds.forget(i)


@overload(move_row)
def _move_row(data, i, w, shift, r, old, new, stats):
    def compiled(data, i, w, shift, r, old, new, stats):
        transfer(data, i, 0, -1, w, shift, r, old, stats)
        transfer(data, i, 0, 1, w, shift, r, new, stats)

    return compiled


def filled_row(data, i, shift, fill, out) -> None:
    """OUT out (p,): row i minus shift, its gaps filled from ``fill`` (p,)."""
    kernels.fill_row(data.observed.block(i, i + 1), 0, shift, fill, out)


@overload(filled_row)
def _filled_row(data, i, shift, fill, out):
    return lambda data, i, shift, fill, out: kernels.fill_row(data, i, shift, fill, out)


@njit(nogil=True, cache=True)
def _square_rows(block, shift, out):
    sums, counts = np.zeros((1, 1, shift.shape[0])), np.zeros((1, 1, shift.shape[0]))
    for i in range(n_rows(block)):
        out[i] = add_row(block, i, 1.0, shift, 0, 0, sums, counts)


def row_squares(data, shift) -> np.ndarray:
    """|x'|^2 of every row, over its observed entries."""
    out = np.empty(data.observed.n_rows)
    data.map(lambda block, start, stop: _square_rows(block, shift, out[start:stop]))
    return out


@overload(row_squares)
def _row_squares(data, shift):
    def compiled(data, shift):
        out = np.empty(n_rows(data))
        _square_rows(data, shift, out)
        return out

    return compiled


def score_filled(block, start, stop, tables, prepared, scores):
    """OUT scores[t * SCORED + i - start]: the seeding's scores (B = 0) of all T centres."""


@overload(score_filled, jit_options={"nogil": True})
def _score_filled(block, start, stop, tables, prepared, scores):
    if is_csr(block):

        def csr(block, start, stop, tables, prepared, scores):
            nothing = np.empty(0)
            one = np.empty(tables.const.shape[0])
            for i in range(start, stop):
                score_row(block, i, tables, nothing, nothing, one)
                for t in range(one.shape[0]):
                    scores[t * panels.SCORED + i - start] = one[t]

        return csr

    def dense(block, start, stop, tables, prepared, scores):
        panels.score_filled(
            block.values, block.missing, start, stop, tables.shift, *prepared, scores
        )

    return dense


def prepare_filled(block, tables):
    """What ``score_filled`` needs besides the tables."""


@overload(prepare_filled, jit_options={"nogil": True})
def _prepare_filled(block, tables):
    if is_csr(block):
        return lambda block, tables: None

    def dense(block, tables):
        table, const = panels.wide_table(tables.A, tables.const)
        room = whole_blocks(tables.A.shape[1]) * HALF
        values = on_cache_line(room, np.float64)
        return table, const, np.empty(HALF, np.int64), values

    return dense


@njit(nogil=True, fastmath=REORDER)
def _lower_some(scores, squares, weights, keep, nearest):
    """Sum of weights * min(nearest, squares + scores); INOUT nearest, if ``keep``."""
    total = 0.0
    for i in range(squares.shape[0]):
        d = squares[i] + scores[i]
        # Rounding leaves a trace of distance between a row and itself.
        d = 0.0 if d < 1e-13 * squares[i] else d
        d = min(d, nearest[i])
        total += weights[i] * d
        if keep:
            nearest[i] = d
    return total


@njit(nogil=True, cache=True)
def _lower_rows(block, tables, squares, weights, keep, nearest, potentials):
    """See ``lower``; nearest is (G, b) here, for the rows of the block."""
    groups, trials = potentials.shape
    prepared = prepare_filled(block, tables)
    scores = np.empty((tables.const.shape[0] + panels.WIDE) * panels.SCORED)
    for start in range(0, n_rows(block), panels.SCORED):
        stop = min(start + panels.SCORED, n_rows(block))
        score_filled(block, start, stop, tables, prepared, scores)
        for g in range(groups):
            for t in range(trials):
                first = (g * trials + t) * panels.SCORED
                potentials[g, t] += _lower_some(
                    scores[first : first + stop - start], squares[start:stop],
                    weights[start:stop], keep, nearest[g, start:stop],
                )  # fmt: skip


def lower(data, tables, squares, weights, keep, nearest, potentials) -> None:
    """How much G starts would gain from each of their candidate centres (k-means++).

    OUT potentials (G, trials): sum of weights * min(nearest, distance to the candidate)
    INOUT nearest (G, n): lowered to that minimum if ``keep`` (then trials is 1)
    """

    def work(block, start, stop):
        part = np.zeros_like(potentials)
        rows = slice(start, stop)
        _lower_rows(block, tables, squares[rows], weights[rows], keep, nearest[:, rows], part)
        return part

    potentials.fill(0.0)
    for part in data.map(work):
        potentials += part


@overload(lower)
def _lower(data, tables, squares, weights, keep, nearest, potentials):
    def compiled(data, tables, squares, weights, keep, nearest, potentials):
        potentials.fill(0.0)
        _lower_rows(data, tables, squares, weights, keep, nearest, potentials)

    return compiled


__all__ = [
    "Slabs", "count_rows", "filled_row", "lower", "move_row", "row_costs", "row_squares",
    "sweep", "tables_for",
]  # fmt: skip
