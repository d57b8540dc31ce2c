"""Steps of EM beside the E-step: clusters from soft sums (``maximise.h``), and whole rounds of a
mixture with one variance for all entries (``em.h``)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .arrays import Table, shaped
from .library import invoke, structs
from .likelihood import Decay, SoftSums
from .waiting import call


class Missing(NamedTuple):
    """What is missing of clusters and features, each (k, p), from the shift of the sums."""

    mean: np.ndarray
    variance: np.ndarray
    pull: np.ndarray | None = None  # of heavy tails; None: 1


NOTHING_MISSING = (None, None, None)


class Maximised(NamedTuple):
    """Clusters from soft sums; all but the first (k, p)."""

    weights: np.ndarray  # (k,)
    mean: np.ndarray  # from the shift of the sums
    residuals: np.ndarray  # squared, summed
    entries: np.ndarray  # weight of those they are of
    gaps: np.ndarray  # soft weight of the missing entries, those of hidden rows included


class MStep:
    """M-steps from the sums of one look at the rows (``maximise.h``).

    hidden (k,): rows that lost everything.
    """

    def __init__(self, sums: SoftSums, hidden: np.ndarray):
        self.sums, self.hidden = sums, hidden
        k, p = sums.counts.shape
        soft = structs.Softened(
            shaped(sums.sizes, k),
            *(shaped(one, k, p) for one in (*sums[1:4], sums.pulls)),
        )
        self._own = structs.Maximised(k, p, soft, shaped(hidden, k))

    def __call__(self, mean: np.ndarray, missing: Missing | None) -> Maximised:
        """mean (k, p), from the shift: where a cluster stays of which nothing is known.
        missing: None where it is like what is observed."""
        own, (k, p) = self._own, mean.shape
        room = np.empty(k + 4 * k * p)
        cells: Any = room[k:].reshape(4, k, p)
        out = Maximised(room[:k], *cells)
        out.mean[:] = mean
        own.weights, own.mean, own.residuals, own.entries, own.gaps = out
        own.lost_mean, own.lost_variance, own.lost_pull = (
            shaped(one, k, p) for one in missing or NOTHING_MISSING
        )
        invoke("maximise", own)
        return out


class Looked:
    """Clusters with one variance, and what the last look at the rows said of them (``Rounds`` in
    ``core.h``): views of one array that the core reads and writes."""

    def __init__(self, k: int, p: int, whole: np.ndarray | None = None):
        self.whole = np.zeros(4 + 3 * k + 8 * k * p) if whole is None else whole
        self.shape = k, p
        self.theta = self.whole[:4]
        of_clusters: Any = self.whole[4 : 4 + 3 * k].reshape(3, k)
        of_cells: Any = self.whole[4 + 3 * k :].reshape(8, k, p)
        self.weights, self.hidden, self.sizes = of_clusters
        (
            self.mean, self.gaps, self.sums, self.counts, self.squares, self.log_missing,
            self.lost_mean, self.lost_variance,
        ) = of_cells  # fmt: skip

    def copy(self) -> Looked:
        return Looked(*self.shape, self.whole.copy())


class Moves(NamedTuple):
    """How a mechanism moves in rounds of EM."""

    free: np.ndarray  # (4,) int32: what of theta
    starts: np.ndarray | None = None  # (m, 4) where it begins; None: it goes on
    tau: np.ndarray | None = None  # (p,) of a threshold, which does not move


class Until(NamedTuple):
    """When rounds of EM end."""

    rounds: int
    tol: float  # of the mean log-likelihood of a row
    at_least: float = -math.inf  # log-likelihood without which there is but one round


class EM:
    """Rounds of EM with one variance for all entries, of one table (``em.h``).

    scale: the unit of the variance, the mean square of the observed values.
    """

    def __init__(
        self, table: Table, reference, has_gaps, observed: Decay, *, n_rows: float, scale: float,
        threads: int,
    ):  # fmt: skip
        p = table.p
        self._kept = table, reference, has_gaps, observed  # whose addresses are taken
        self._threads = threads
        lost = structs.Lost(p=p, has_gaps=shaped(has_gaps, p))
        self._own = structs.Rounds(
            reference=shaped(reference, p), n_rows=n_rows, scale=scale,
            decay=observed.struct, lost=lost,
        )  # fmt: skip

    def __call__(
        self, state: Looked, moves: Moves, until: Until, *, bound: float, placed: bool,
        equal_sizes: bool,
    ) -> tuple[float, bool]:  # fmt: skip
        """INOUT state; the mean log-likelihood of a row, and whether it has settled.

        placed: the first round leaves the centres where they are.
        """
        table, own, (k, p) = self._kept[0], self._own, state.shape
        starts = None if moves.starts is None else np.array(moves.starts)  # the core fills them in
        (
            own.theta, own.weights, own.hidden, own.sums.sizes, own.mean, own.gaps, own.sums.sums,
            own.sums.counts, own.sums.squares, own.lost.log_missing, own.lost.lost_mean,
            own.lost.lost_variance,
        ) = (
            state.theta, state.weights, state.hidden, state.sizes, state.mean, state.gaps,
            state.sums, state.counts, state.squares, state.log_missing, state.lost_mean,
            state.lost_variance,
        )  # fmt: skip
        own.k = own.lost.k = k
        own.bound, own.placed, own.equal_sizes = bound, placed, equal_sizes
        own.max_rounds, own.tol, own.at_least = until
        own.n_starts = 0 if starts is None else len(starts)
        own.starts = shaped(starts, own.n_starts, 4)
        own.free = shaped(moves.free, 4)
        own.lost.tau = shaped(moves.tau, p)
        call(
            "em_rounds", table.struct, own, threads=self._threads,
            work=3.0 * table.entries * k * until.rounds,
        )  # fmt: skip
        return own.bound, bool(own.converged)
