"""What became of starts: StartResults of several, Solution of the best one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core import Starts
from .bounds import Bounds

EQUAL = 1e-10  # losses that differ by less of themselves differ by rounding only


class WarmStart(NamedTuple):
    """What the last pass of a start left behind, to label the rows once more with less work."""

    labels: np.ndarray  # (n,)
    bounds: Bounds


class StartResults(NamedTuple):
    """What became of R starts."""

    centers: np.ndarray  # (R, k, p)
    losses: np.ndarray  # (R,) final loss of each start
    n_iter: np.ndarray  # (R,)
    paths: np.ndarray  # (R, max_iter) the loss after every iteration, of which n_iter are meant
    converged: np.ndarray  # (R,) stopped before max_iter
    empty: np.ndarray  # (R,) number of clusters that could not be filled
    warm: WarmStart | None = None  # if there was one start only, on a large table

    @classmethod
    def of(cls, starts: Starts) -> StartResults:
        """The results of starts that have ended; a twin ended where the earlier start did."""
        left = starts.twins >= 0
        while left.any():  # those first whose twin is done
            ready = np.flatnonzero(left & ~left[starts.twins])
            twins, own = starts.twins[ready], starts.n_iter[ready]
            last = int(starts.n_iter[twins].max())
            later = np.arange(last) >= own[:, None]
            starts.paths[ready, :last] = np.where(
                later, starts.paths[twins, :last], starts.paths[ready, :last]
            )
            starts.n_iter[ready] = starts.n_iter[twins]
            starts.mu[ready], starts.settled[ready] = starts.mu[twins], starts.settled[twins]
            starts.stats.sizes[ready] = starts.stats.sizes[twins]
            left[ready] = False
        return cls(
            starts.mu,
            starts.paths[np.arange(len(starts.mu)), starts.n_iter - 1],
            starts.n_iter,
            starts.paths,
            starts.settled,
            np.count_nonzero(starts.stats.sizes <= 0.0, axis=1),
        )

    def path(self, r: int) -> np.ndarray:
        """The loss of start r after every iteration."""
        return self.paths[r, : self.n_iter[r]].copy()

    @classmethod
    def joined(cls, pieces: list[StartResults]) -> StartResults:
        if len(pieces) == 1:
            return pieces[0]
        return cls(
            np.concatenate([piece.centers for piece in pieces]),
            np.concatenate([piece.losses for piece in pieces]),
            np.concatenate([piece.n_iter for piece in pieces]),
            np.concatenate([piece.paths for piece in pieces]),
            np.concatenate([piece.converged for piece in pieces]),
            np.concatenate([piece.empty for piece in pieces]),
        )

    @property
    def best(self) -> int:
        """The start with the smallest loss; the first of those that differ by rounding only."""
        return best_start(self.losses)


def best_start(losses: np.ndarray) -> int:
    """The one rule for which start wins, in memory, in batches and on a cluster."""
    return int(np.argmax(losses <= losses.min() * (1.0 + EQUAL)))


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
