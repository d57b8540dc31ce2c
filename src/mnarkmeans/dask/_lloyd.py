"""Lloyd's loop with the rows elsewhere: centres go out, sums come back.

pass:   Stats of the active starts = sum over pieces of ``step``
here:   new centres, losses, stopping, as in memory: ``_solver.lloyd``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .. import _core as core
from .._solver.lloyd import lloyd
from .._solver.results import StartResults
from . import _checkpoint as checkpoints
from ._passes import (
    Job,
    Labels,
    add_up,
    costly,
    loss_at,
    merge_costly,
    merge_stats,
    merge_steps,
    step,
)
from ._run import ClusterLostError, Pieces


class Iteration(NamedTuple):
    """What a callback is told after every iteration."""

    number: int  # the first is 1
    loss: float  # the smallest among the starts
    n_active: int  # starts that go on
    seconds: float  # of this iteration


Callback = Callable[[Iteration], object]


class Checkpoint(NamedTuple):
    path: str | None
    every: int  # iterations
    resume: bool
    problem: dict[str, Any]  # what is fitted: another fit's file is refused


class Elsewhere:
    """The rows of all pieces, as ``_solver.lloyd`` asks for them."""

    def __init__(self, pieces: Pieces):
        self.pieces = pieces
        self._labels: dict[int, Labels] = {}  # of the last pass

    def pass_(self, starts: core.Starts, active: np.ndarray, fresh: bool) -> float:
        reference, shift = starts.reference, starts.shift
        mu, lam = starts.mu[active], starts.lam[active]
        job = Job(len(starts.mu), active, mu, lam, reference, shift, fresh)
        stats, largest = self.pieces.reduce(step, merge_steps, job)
        for kept, new in zip(starts.stats, stats, strict=True):
            kept[active] = new
        self._labels = {
            int(r): Labels(int(r), mu[[a]], lam[[a]], reference, shift)
            for a, r in enumerate(active)
        }
        return largest

    def rescue(self, starts: core.Starts, r: int) -> None:
        """Pieces keep the labels their centres gave; those that were changed travel."""
        most = int(np.sum(starts.stats.sizes[r] <= 0.0))
        found = self.pieces.reduce(costly, partial(merge_costly, most=most), self._labels[r], most)
        order = np.argsort(found.rows)  # equals are taken in the order of the rows
        taken = core.choose_rescued(found.costs[order], found.labels[order], found.members)
        clusters = np.flatnonzero(taken >= 0).astype(np.int32)
        rows = found.rows[order][taken[clusters]]
        by_row = np.argsort(rows)
        self._labels[r] = self._labels[r]._replace(rows=rows[by_row], clusters=clusters[by_row])
        stats = self.pieces.reduce(add_up, merge_stats, self._labels[r])
        for kept, new in zip(starts.stats, stats, strict=True):
            kept[r] = new[0]

    def loss_of(self, starts: core.Starts, r: int) -> float:
        return self.pieces.reduce(loss_at, sum, self._labels[r], starts.mu[[r]])


def run(
    pieces: Pieces,
    starts: core.Starts,
    *,
    checkpoint: Checkpoint,
    callback: Callback | None = None,
) -> StartResults:
    """Run the starts to their ends, from their beginning or from the checkpoint."""
    done, active = 0, None
    if checkpoint.path is not None and checkpoint.resume:
        found = checkpoints.load(checkpoint.path, checkpoint.problem)
        if found is not None:
            done, active = checkpoints.restore(starts, found)
    begun = time.perf_counter()

    def after(iteration: int, active: np.ndarray) -> None:
        nonlocal done, begun
        done = iteration
        ended = not len(active) or iteration == starts.max_iter
        if checkpoint.path is not None and (ended or iteration % checkpoint.every == 0):
            checkpoints.save(checkpoint.path, starts, iteration, active, checkpoint.problem)
        if callback is not None:
            loss = float(starts.paths[np.arange(len(starts.mu)), starts.n_iter - 1].min())
            callback(Iteration(iteration, loss, len(active), time.perf_counter() - begun))
        begun = time.perf_counter()

    try:
        lloyd(Elsewhere(pieces), starts, iteration=done, active=active, after=after)
    except ClusterLostError as error:
        raise _with_advice(error, done, checkpoint) from error
    return StartResults.of(starts)


def _with_advice(error: ClusterLostError, done: int, checkpoint: Checkpoint) -> ClusterLostError:
    where = f"In iteration {done + 1} {error}."
    if checkpoint.path is None:
        return ClusterLostError(
            f"{where} Connect to a running cluster and fit again; with checkpoint=PATH a later fit "
            "can go on from where this one stopped."
        )
    return ClusterLostError(
        f"{where} Connect to a running cluster and fit again with resume=True: the centres are in "
        f"{checkpoint.path}."
    )
