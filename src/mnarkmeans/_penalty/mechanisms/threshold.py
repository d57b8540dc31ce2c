"""Values closer to the reference than tau_j get lost (MNAR2).

What is lost of a normal cluster is normal between -tau_j and tau_j (``src/core/around.h``).
No observed value lies below its threshold, so the likeliest tau_j is the smallest observed |x|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..._core.likelihood import lost_around
from ..._core.rounds import Moves
from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

_NOT_THETA = np.zeros(4, np.int32)


@dataclass(frozen=True)
class WithinThreshold(Mechanism):
    """Missing where |x| < tau_j."""

    tau: np.ndarray  # (p,) > 0
    has_gaps: np.ndarray
    name: ClassVar[str] = "threshold"
    sentence: ClassVar[str] = "Values within a distance of the reference are missing"
    in_short: ClassVar[str] = "all those closest to the reference"
    curve: ClassVar[str] = "decaying"
    own_parameters: ClassVar = {"tau": Parameter("p")}
    share_at_reference: ClassVar[float] = 1.0

    @classmethod
    def kind(cls, rows: Rows) -> WithinThreshold:
        return cls(np.maximum(rows.least, 1e-6) * rows.root, rows.has_gaps)

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None) -> WithinThreshold:
        return cls.kind(rows)

    @classmethod
    def is_possible(cls, rows: Rows) -> bool:
        return not rows.reach_reference

    def before(self, rows: Rows) -> WithinThreshold:
        """No observed value is closer, so the threshold is the least one."""
        return self.kind(rows)

    @property
    def t(self) -> float:
        """Of the curve exp(-t x^2) with the same area as the mean threshold."""
        return math.pi / (4.0 * float(self.tau.mean()) ** 2)

    def starts(self, rows: Rows, near: Any = None) -> None:
        return None

    def moves(self, starts: Any = None) -> Moves:
        return Moves(_NOT_THETA, None, self.tau)

    def moved(self, theta: np.ndarray, rows: Rows) -> WithinThreshold:
        return self

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        return Lost(*lost_around(mean, variance, self.has_gaps, tau=self.tau))

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return ((np.abs(values) < self.tau) & self.has_gaps).astype(np.float64)

    def n_parameters(self, k: int) -> float:
        """An end point is known to 1/n, not to 1/sqrt(n): it costs twice as much."""
        return 2 * int(self.has_gaps.sum())
