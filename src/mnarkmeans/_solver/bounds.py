"""Which rows can still change cluster: bounds on distances, carried from pass to pass.

The loss of row i at a centre mu is a squared distance,

    d_i(mu)^2 = sum_j w_ij (y_ij - mu_j)^2,   y = x, w = 1 where observed;  y = c, w = lam in gaps

so when centre l moves by D_l, d_i changes by no more than s D_l with s = sqrt(max(1, lam)). A row
whose second centre is further than its own by ``gap`` keeps its cluster l for certain until

    drop_l = sum over the passes since of  s (D_l + largest D of the other centres)

has used the gap up. With drop_l summed up from the beginning, a row sleeps while

    expiry_i = gap_i + drop_l (when measured)  >  drop_l (now),

one number per row that changes only when the row is looked at. Labels are the same as without.
"""

from __future__ import annotations

import numpy as np

MARGIN = 1.0 + 1e-6  # covers the rounding of the moves
FEWEST_FEATURES = 8  # shorter rows are compared as fast as their bounds are looked up
RESTLESS = 1 / 3  # while more rows than this share change cluster, centres move too far to prune


class Bounds:
    """The bounds of one start's rows."""

    def __init__(self, n_rows: int, k: int):
        self.expiry = np.full(n_rows, -np.inf, np.float32)
        self.drop = np.zeros(k)
        self.changed = n_rows  # labels that changed in the last pass
        self._start = -1
        self._centers = np.empty(0)

    def pay(self) -> bool:
        """Whether to keep bounds in the next pass; until then they cost more than they save."""
        return self._start >= 0 or self.changed < RESTLESS * len(self.expiry)

    def follow(self, start: int, centers: np.ndarray, lam: float) -> None:
        """The next pass is for this start with these centres (k, p)."""
        if start == self._start:
            moves = np.sqrt(np.sum((centers - self._centers) ** 2, axis=1))
            others = np.full(len(moves), moves.max())
            others[moves.argmax()] = np.partition(moves, -2)[-2] if len(moves) > 1 else 0.0
            self.drop += MARGIN * np.sqrt(max(1.0, lam)) * (moves + others)
        else:
            self.expiry.fill(-np.inf)
            self.drop.fill(0.0)
        self._start, self._centers = start, centers.copy()

    def forget(self, row: int) -> None:
        """The row was moved to another cluster by other means."""
        self.expiry[row] = -np.inf
