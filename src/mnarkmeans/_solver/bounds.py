"""When to keep bounds on which rows can change cluster, and how far the centres have moved.

``src/core/pass.h`` has the formula: a row need not be looked at while expiry_i > drop_l,
where drop_l sums up how far centre l and the others may have come closer to each other.
"""

from __future__ import annotations

import numpy as np

from .._core import Known

MARGIN = 1.0 + 1e-6  # covers the rounding of the moves
FEWEST_FEATURES = 8  # shorter rows are compared as fast as their bounds are looked up
RESTLESS = 1 / 3  # while more rows than this share change cluster, centres move too far to prune


class Bounds:
    """The bounds of one start's rows."""

    def __init__(self, n_rows: int, k: int):
        self.known = Known(np.full(n_rows, -np.inf, np.float32), np.zeros(k))
        self.changed = n_rows  # labels that changed in the last pass
        self._start = -1
        self._centers = np.empty(0)

    @classmethod
    def for_table(cls, n_rows: int, k: int, p: int) -> Bounds | None:
        """Bounds, if they can pay for themselves in a table of this shape."""
        return cls(n_rows, k) if k > 1 and p >= FEWEST_FEATURES else None

    def worthwhile(self) -> bool:
        """Whether to keep bounds in the next pass; until then they cost more than they save."""
        return self._start >= 0 or self.changed < RESTLESS * len(self.known.expiry)

    def follow(self, start: int, centers: np.ndarray, lam: np.ndarray) -> Known:
        """The next pass is for this start, with these centres (k, p) and penalties (p,)."""
        if start == self._start:
            moves = np.sqrt(np.sum((centers - self._centers) ** 2, axis=1))
            others = np.full(len(moves), moves.max())
            others[moves.argmax()] = np.partition(moves, -2)[-2] if len(moves) > 1 else 0.0
            self.known.drop[:] += MARGIN * np.sqrt(max(1.0, lam.max())) * (moves + others)
        else:
            self.known.expiry.fill(-np.inf)
            self.known.drop.fill(0.0)
        self._start, self._centers = start, centers.copy()
        return self.known
