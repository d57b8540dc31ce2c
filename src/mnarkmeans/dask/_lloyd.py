"""Lloyd's loop with the rows elsewhere: centres go out, sums come back.

pass:   Stats of the active starts = sum over pieces of ``step_piece``
here:   empty clusters, new centres, losses, stopping: ``_solver.solvers.advance``, as in memory
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from .._kernels import transfer
from .._solver.loss import Stats
from .._solver.solvers import Batch, Starts, _costliest, advance
from . import _checkpoint as checkpoints
from ._passes import Job, costly_rows, merge_costly, merge_parts, step_piece
from ._pieces import as_block
from ._run import ClusterLostError, Pieces


class Iteration(NamedTuple):
    """What a callback is told after every iteration."""

    number: int  # the first is 1
    loss: float  # the smallest among the starts
    n_active: int  # starts that go on
    seconds: float  # of this iteration


class Checkpoint(NamedTuple):
    path: str | None
    every: int  # iterations
    resume: bool
    problem: dict  # what is fitted: another fit's file is refused


def run(
    pieces: Pieces,
    starts: Starts,
    *,
    missing: float,
    tol: float,
    checkpoint: Checkpoint,
    callback: Callable[[Iteration], None] | None = None,
) -> Batch:
    """Run the starts to their ends, from their beginning or from the checkpoint."""
    it, active = 0, np.arange(len(starts.lam))
    seen = np.zeros(len(starts.lam), np.uint64)
    found = None
    if checkpoint.path is not None and checkpoint.resume:
        found = checkpoints.load(checkpoint.path, checkpoint.problem)
    if found is not None:
        it, active, seen = checkpoints.restore(starts, found)
    while len(active) and it < starts.max_iter:
        begun = time.perf_counter()
        try:
            _sweep(pieces, starts, active, missing)
        except ClusterLostError as error:
            raise _with_advice(error, it, checkpoint) from error
        active = advance(
            it, active, starts.c, starts.lam, tol, starts.stats, starts.m, starts.paths,
            starts.n_iter, seen, starts.twins, starts.settled,
        )  # fmt: skip
        it += 1
        ended = not len(active) or it == starts.max_iter
        if checkpoint.path is not None and (ended or it % checkpoint.every == 0):
            checkpoints.save(checkpoint.path, starts, it, active, seen, checkpoint.problem)
        if callback is not None:
            reached = starts.paths[np.arange(len(starts.lam)), starts.n_iter - 1]
            callback(Iteration(it, float(reached.min()), len(active), time.perf_counter() - begun))
    return starts.batch()


def _sweep(pieces: Pieces, starts: Starts, active: np.ndarray, missing: float) -> None:
    """INOUT starts.stats of the active starts: their sums over all rows."""
    job = Job(
        starts.shift, starts.c, starts.lam, starts.m[active], active, pieces.found.whole_weights
    )
    total: Stats = pieces.reduce(step_piece, merge_parts, job)
    for kept, new in zip(starts.stats, total, strict=True):
        kept[active] = new
    for r in active:
        if starts.stats.sizes[r].min() <= 0.0:
            _rescue_empty(pieces, starts, r, missing)


def _rescue_empty(pieces: Pieces, starts: Starts, r: int, missing: float) -> None:
    """Move the costliest rows of start r into its empty clusters, as in memory. INOUT stats."""
    one = np.array([r])
    job = Job(
        starts.shift, starts.c, starts.lam[one], starts.m[one], np.zeros(1, np.int64),
        pieces.found.whole_weights,
    )  # fmt: skip
    most = int(np.sum(starts.stats.sizes[r] <= 0.0))
    costly = pieces.reduce(costly_rows, partial(merge_costly, most=most), job, most)
    order = np.argsort(costly.rows)  # equals are taken in the order of the rows
    costs, rows, own = costly.costs[order], costly.rows[order], costly.labels[order]
    members, moves = costly.members.copy(), []
    for l in np.flatnonzero(members == 0):
        i = _costliest(costs, np.ones(len(costs)), own, members)
        if i < 0:
            break
        moves.append((rows[i], own[i], l))
        members[own[i]] -= 1
        members[l] += 1
        own[i], costs[i] = l, 0.0
    for row, old, new in moves:
        source, weights = pieces.take(np.array([row]))
        block = as_block(source, missing)
        transfer(block, 0, row, -1, weights[0], starts.shift, r, old, starts.stats)
        transfer(block, 0, row, 1, weights[0], starts.shift, r, new, starts.stats)


def _with_advice(error: ClusterLostError, it: int, checkpoint: Checkpoint) -> ClusterLostError:
    where = f"In iteration {it + 1} {error}."
    if checkpoint.path is None:
        return ClusterLostError(
            f"{where} Connect to a running cluster and fit again; with checkpoint=PATH a later fit "
            "can go on from where this one stopped."
        )
    return ClusterLostError(
        f"{where} Connect to a running cluster and fit again with resume=True: the centres are in "
        f"{checkpoint.path}."
    )
