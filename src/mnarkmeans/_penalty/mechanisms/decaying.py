"""Values get lost around the reference: P(missing | x) = c exp(-t x^2).

With x measured from the reference, clusters N(mu_lj, v_lj) and D = 2 v t + 1, what is lost is
normal again:

    P_lj = c D^(-1/2) exp(-t mu^2 / D),     E[x | missing] = mu / D,     Var[x | missing] = v / D

so that the penalty which makes up for it, lam = 1 - E[x | missing] / mu, is 1 - 1/D: Theorem 3.2.
c = 1 is the paper's MNAR0; its MNAR1, 1 / (1 + exp(a x^2)), is close to c = 1/2. A tiny share r is
lost anywhere, P(missing | x) = c (r + (1 - r) exp(-t x^2)), so that one gap far from the reference
does not speak against the whole curve: what is lost is then of two kinds.

The core climbs (``decay.h``), in units of the mean square, where bounds and tolerances suit any
scale. It reads a short histogram of observed x^2 (`rows`). Where one variance is common to all, it
is climbed too:

    sum_lj gaps_lj log P_lj + sum_observed [ log(1 - P(missing | x)) + log N(x; mu, s) ]

t = 0 is the curve without a slope: every value is lost at the rate c, whatever it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..._core.likelihood import Decay, decay_fit, lost_around
from ..._core.rounds import Moves
from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

_FIRST_STEPS = 10
_STRENGTHS = np.linspace(-4.0, 8.0, 9)  # log t to begin with, in units of the mean square
_CEILINGS = (0.05, 0.5, 0.99)  # c to begin with: so far from the share lost to 1
_LOGIT_BOUND = 14.0  # c and r stay 1e-6 away from 0 and 1, as in ``decay.h``
_ANYWHERE = 1.0 / (1.0 + math.exp(_LOGIT_BOUND))  # the share r
_ALIKE = 0.02  # c of another curve from which a curve with c given can begin


@dataclass(frozen=True)
class Decaying(Mechanism):
    """P(missing | x) = c exp(-t x^2)."""

    t: float
    c: float
    has_gaps: np.ndarray
    c_given: bool = False
    name: ClassVar[str] = "decay"
    sentence: ClassVar[str] = "Values close to the reference are missing more often"
    in_short: ClassVar[str] = "near the reference, fading with the distance"
    curve: ClassVar[str] = "decaying"
    own_parameters: ClassVar = {"t": Parameter(""), "c": Parameter("", most=1.0)}

    @property
    def share_at_reference(self) -> float:
        return self.c

    @classmethod
    def kind(cls, rows: Rows, c: float | None = None, t: float | None = None) -> Decaying:
        """Before anything is known; what is given stays (t: 0 only)."""
        share = _share(_logit(1.0 if c is None else c))
        return cls(1.0 if t is None else t, share, rows.has_gaps, c is not None)

    @classmethod
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None, **given) -> Decaying:
        """From the best point of a grid that covers all strengths, or from a curve that is near."""
        own = cls.kind(rows, **given)
        starts = own.starts(rows, near)
        return own._climbed(rows, clusters, starts, _FIRST_STEPS if len(starts) > 1 else 0)

    def starts(self, rows: Rows, near: Any = None) -> np.ndarray:
        """Where its steps begin (m, 4): every strength, with a few ceilings c unless it is given,
        or the strength of a curve that is near."""
        own, missing = self._theta(rows), rows.missing_weight
        share = missing / max(missing + float(rows.magnitudes.weight.sum()), 1e-300)
        if self.t == 0.0:
            own[2] = _logit(share)
            return own[None]
        if self.c_given and isinstance(near, Decaying) and abs(near.c - self.c) < _ALIKE:
            return replace(self, t=near.t)._theta(rows)[None]
        points = np.empty((len(_STRENGTHS), 1 if self.c_given else len(_CEILINGS), 4))
        points[:] = own
        points[..., 0] = _STRENGTHS[:, None]
        if not self.c_given:
            points[..., 2] = [_logit(share + (1.0 - share) * part) for part in _CEILINGS]
        return points.reshape(-1, 4)

    def update(self, rows: Rows, clusters: Clusters, steps: int = 2) -> Decaying:
        return self._climbed(rows, clusters, self._theta(rows)[None], steps)

    def _theta(self, rows: Rows) -> np.ndarray:
        """As the core has it: (log t, log s, logit c, logit r)."""
        log_t = math.log(max(self.t * rows.scale, 1e-26))
        return np.array([log_t, 0.0, _logit(self.c), -_LOGIT_BOUND])

    def _free(self, with_spread: bool) -> np.ndarray:
        return np.array([self.t > 0, with_spread, not self.c_given, 0], np.int32)

    def _climbed(self, rows: Rows, clusters: Clusters, starts: np.ndarray, steps: int) -> Decaying:
        """Newton's steps from the best of starts (m, 4)."""
        starts[:, 1] = _log_spread(rows, clusters)
        theta = decay_fit(_likelihood(rows, clusters), starts, self._free(False), steps)
        return self.moved(theta, rows)

    def moves(self, starts: np.ndarray | None = None) -> Moves:
        return Moves(self._free(True), starts)

    def moved(self, theta: np.ndarray, rows: Rows) -> Decaying:
        t = math.exp(theta[0]) / rows.scale if self.t > 0 else self.t
        c = self.c if self.c_given else _share(theta[2])
        return Decaying(t, c, self.has_gaps, self.c_given)

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        return Lost(*lost_around(mean, variance, self.has_gaps, t=self.t, c=self.c, r=_ANYWHERE))

    def log_observed(self, values: np.ndarray, features: np.ndarray) -> np.ndarray:
        return np.where(self.has_gaps[features], self._log_seen(np.square(values), self.t), 0.0)

    def total_log_observed(self, rows: Rows) -> float:
        magnitudes = rows.magnitudes
        seen = self._log_seen(magnitudes.square, self.t * rows.scale)
        return float((magnitudes.weight * seen).sum())

    def _log_seen(self, square: np.ndarray, t: float) -> np.ndarray:
        seen = (1.0 - self.c) - self.c * (1.0 - _ANYWHERE) * np.expm1(-t * square)
        return np.log(np.maximum(seen, 1e-300))

    def probability(self, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
        seen = np.exp(self._log_seen(np.square(values), self.t))
        return np.where(self.has_gaps, 1.0 - seen, 0.0)

    def n_parameters(self, k: int) -> float:
        return (self.t > 0) + (not self.c_given)


def lost_far_away(rows: Rows, clusters: Clusters, near: Any) -> float:
    """c r of the curve c (r + (1 - r) exp(-t x^2)): the share that is lost at random."""
    is_near = isinstance(near, Decaying)
    starts = near._theta(rows)[None] if is_near else Decaying.kind(rows).starts(rows)
    floors = [_logit(r) for r in ([0.05] if is_near else [0.02, 0.5, 0.9])]
    starts = np.repeat(starts, len(floors), axis=0)
    starts[:, 1] = _log_spread(rows, clusters)
    starts[:, 3] = np.tile(floors, len(starts) // len(floors))
    theta = decay_fit(_likelihood(rows, clusters), starts, np.ones(4, np.int32), 5)
    return _share(theta[2]) * _share(theta[3])


def _logit(share: float) -> float:
    share = min(max(share, 1e-300), 1.0)
    odds = math.log(share) - (math.log1p(-share) if share < 1.0 else -math.inf)
    return min(max(odds, -_LOGIT_BOUND), _LOGIT_BOUND)


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _log_spread(rows: Rows, clusters: Clusters) -> float:
    """log s: of one variance for all; 0 where clusters have their own."""
    common = clusters.variance.size == 1
    return math.log(clusters.variance[0, 0] / rows.scale) if common else 0.0


def _likelihood(rows: Rows, clusters: Clusters) -> Decay:
    """What the core needs, in units of the mean square; one variance is that of the residuals."""
    magnitudes, observed = rows.magnitudes, rows.observed_weight
    weight, spread, residual = clusters.gaps.ravel(), None, observed
    square = np.square(clusters.mean).ravel() / rows.scale
    if clusters.variance.size > 1:
        some = weight > 0
        square, weight = square[some], weight[some]
        spread = (clusters.variance / rows.scale).ravel()[some]
    else:
        residual *= float(clusters.variance[0, 0]) / rows.scale
    return Decay(magnitudes.square, magnitudes.weight, square, weight, spread, observed, residual)
