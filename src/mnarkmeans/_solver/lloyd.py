"""Lloyd's loop, wherever the rows are: one block, slabs on threads, pieces on a cluster.

    assign:  z_i = argmin_l of the row's loss       ``rows.pass_``
    centre:  from the three sums of each cluster    ``_core.update``

Both steps are exact minimisations, so the loss never rises. (On a small table in memory the core
runs the same loop by itself, for many starts at once: ``src/core/lloyd.h``.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .. import _core as core
from .bounds import Bounds


class Rows(Protocol):
    """What the loop asks of the rows."""

    def pass_(self, starts: core.Starts, active: np.ndarray, fresh: bool) -> float:
        """Labels and sums of the active starts: all rows anew, or what changed.

        Returns the largest |x - shift|^2 of a row that changed cluster.
        """

    def rescue(self, starts: core.Starts, r: int) -> None:
        """Fill the empty clusters of start r with the rows that cost most. INOUT sums."""

    def loss_of(self, starts: core.Starts, r: int) -> float:
        """The loss of start r's partition at its new centres, by direct differences."""


class InMemory:
    """The rows of a table in memory, on threads."""

    def __init__(self, table: core.Table, k: int, threads: int):
        self.table, self.threads = table, threads
        self.bounds = Bounds.for_table(table.n, k, table.p)
        self._known: core.Known | None = None

    def pass_(self, starts: core.Starts, active: np.ndarray, fresh: bool) -> float:
        bounds = self.bounds if len(active) == 1 else None
        self._known = None
        if bounds is not None and bounds.worthwhile():
            r = int(active[0])
            self._known = bounds.follow(r, starts.mu[r], starts.lam[r])
        changed, largest = core.pass_(
            self.table, starts, active, fresh=fresh, known=self._known, threads=self.threads
        )
        if bounds is not None:
            bounds.changed = changed
        return largest

    def rescue(self, starts: core.Starts, r: int) -> None:
        core.rescue(self.table, starts, r, self._known, self.threads)

    def loss_of(self, starts: core.Starts, r: int) -> float:
        return core.loss_of(
            self.table, starts.centers(np.array([r])), starts.labels[r], self.threads
        )


def lloyd(
    rows: Rows,
    starts: core.Starts,
    *,
    iteration: int = 0,
    active: np.ndarray | None = None,
    after: Callable[[int, np.ndarray], None] | None = None,
) -> None:
    """Run the starts to their ends, or go on from an iteration. INOUT starts.

    ``after`` is called with the number of iterations done and the starts that go on.
    """
    active = np.arange(len(starts.mu)) if active is None else active
    afresh = True
    while len(active) and iteration < starts.max_iter:
        largest = rows.pass_(starts, active, afresh)
        for r in active[starts.stats.sizes[active].min(axis=1) <= 0.0]:
            rows.rescue(starts, int(r))
        losses, doubtful = core.update(starts, active)
        for a in np.flatnonzero(doubtful):
            losses[a] = rows.loss_of(starts, int(active[a]))
        active, afresh = core.decide(starts, iteration, losses, doubtful, largest, active)
        iteration += 1
        if after is not None:
            after(iteration, active)
