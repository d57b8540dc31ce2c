"""Values get lost around the reference: P(missing | x) = c exp(-t x^2).

With x measured from the reference, clusters N(mu_lj, v_lj) and D = 2 v t + 1, what is lost is
normal again:

    P_lj = c D^(-1/2) exp(-t mu^2 / D),     E[x | missing] = mu / D,     Var[x | missing] = v / D

so that the penalty which makes up for it, lam = 1 - E[x | missing] / mu, is 1 - 1/D: Theorem 3.2.
c = 1 is the paper's MNAR0; its MNAR1, 1 / (1 + exp(a x^2)), is close to c = 1/2. A tiny share r is
lost anywhere, P(missing | x) = c (r + (1 - r) exp(-t x^2)), so that one gap far from the reference
does not speak against the whole curve: what is lost is then of two kinds.

The core climbs (``decay.h``), in units of the mean square, where bounds and tolerances suit any
scale. It reads short histograms: of observed x^2 (`rows`), and, where one variance is common to
all, of mu_lj^2 weighted by the gaps. The terms are nearly linear in them, so a hundred bins, each
at the mean of its members, stand for any number of entries. There s is climbed too:

    sum_lj gaps_lj log P_lj + sum_observed [ log(1 - P(missing | x)) + log N(x; mu, s) ]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..._core.likelihood import Decay, decay_fit
from ..rows import Rows
from .contract import Clusters, Lost, Mechanism, Parameter

_FIRST_STEPS = 10
_CENTER_BINS = 128
_FEW_CENTERS = 2 * _CENTER_BINS  # so many are quicker one by one
_ONES = np.ones(_FEW_CENTERS)
_CEILINGS = (0.05, 0.5, 0.99)  # to begin with: so far from the share lost to 1
_LOGIT_BOUND = 14.0  # c and r stay 1e-6 away from 0 and 1, as in ``decay.h``
_ANYWHERE = 1.0 / (1.0 + math.exp(_LOGIT_BOUND))  # the share r
_LOG_NEAR = math.log1p(-_ANYWHERE)
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
    def begin(cls, rows: Rows, clusters: Clusters, near: Any = None, c=None) -> Decaying:
        """From the best point of a grid that covers all strengths, or from a curve that is near.

        c: a number, if it is given.
        """
        own = cls(1.0, _share(_logit(1.0 if c is None else c)), rows.has_gaps, c is not None)
        if isinstance(near, cls) and c is not None and abs(near.c - c) < _ALIKE:
            return replace(own, t=near.t)
        starts = _grid(rows, clusters, own._theta(rows, clusters), c is None)
        steps = _FIRST_STEPS if clusters.variance.size > 1 else 0  # a common one moves along next
        return own._climbed(rows, clusters, starts, steps)[0]

    def update(self, rows: Rows, clusters: Clusters, steps: int = 2) -> Decaying:
        return self._climbed(rows, clusters, self._theta(rows, clusters)[None], steps)[0]

    def update_with_spread(
        self, rows: Rows, clusters: Clusters, residual: float, steps: int = 1
    ) -> tuple[Decaying, float]:
        start = self._theta(rows, clusters)[None]
        return self._climbed(rows, clusters, start, steps, residual)

    def _theta(self, rows: Rows, clusters: Clusters) -> np.ndarray:
        """As the core has it: (log t, log s, logit c, logit r)."""
        common = clusters.variance.size == 1
        log_s = math.log(clusters.variance[0, 0] / rows.scale) if common else 0.0
        log_t = math.log(max(self.t * rows.scale, 1e-26))
        return np.array([log_t, log_s, _logit(self.c), -_LOGIT_BOUND])

    def _climbed(self, rows: Rows, clusters: Clusters, starts, steps: int, residual=None):
        """Newton's steps from the best of starts (m, 4); with a residual the variance moves too."""
        free = np.array([1, residual is not None, not self.c_given, 0], np.int32)
        data = _likelihood(rows, clusters, residual)
        log_t, log_s, logit_c, _ = decay_fit(data, starts, free, steps).tolist()
        c = self.c if self.c_given else _share(logit_c)
        found = Decaying(math.exp(log_t) / rows.scale, c, self.has_gaps, self.c_given)
        return found, math.exp(log_s) * rows.scale

    def lost(self, mean: np.ndarray, variance: np.ndarray) -> Lost:
        v: Any = variance if variance.size > 1 else float(variance[0, 0])  # the quicker way
        d = 2.0 * v * self.t + 1.0
        q = np.exp((_LOG_NEAR - 0.5 * np.log(d)) - (self.t / d) * np.square(mean))
        p = q + _ANYWHERE
        log_missing, share = np.log(p) + math.log(self.c), q / p  # of what is not lost anywhere
        if not self.has_gaps.all():
            log_missing = np.where(self.has_gaps, log_missing, 0.0)
            share = np.where(self.has_gaps, share, 0.0)
        drawn = 1.0 - 1.0 / d
        apart = mean * drawn
        away = apart * share
        spread = v - (v * drawn) * share + away * (apart - away)
        return Lost(log_missing, mean - away, spread)

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
        return 1 if self.c_given else 2


def lost_far_away(rows: Rows, clusters: Clusters, near: Any) -> float:
    """c r of the curve c (r + (1 - r) exp(-t x^2)): the share that is lost at random."""
    is_near = isinstance(near, Decaying)
    start = (near if is_near else Decaying(1.0, 1.0, rows.has_gaps))._theta(rows, clusters)
    starts = start[None] if is_near else _grid(rows, clusters, start, True)
    floors = [_logit(r) for r in ([0.05] if is_near else [0.02, 0.5, 0.9])]
    starts = np.repeat(starts, len(floors), axis=0)
    starts[:, 3] = np.tile(floors, len(starts) // len(floors))
    residual = float(clusters.variance[0, 0]) * rows.observed_weight
    data = _likelihood(rows, clusters, residual)
    theta = decay_fit(data, starts, np.ones(4, np.int32), 5)
    return _share(theta[2]) * _share(theta[3])


def _logit(share: float) -> float:
    share = min(max(share, 1e-300), 1.0)
    odds = math.log(share) - (math.log1p(-share) if share < 1.0 else -math.inf)
    return min(max(odds, -_LOGIT_BOUND), _LOGIT_BOUND)


def _share(logit: float) -> float:
    return 1.0 / (1.0 + math.exp(-logit))


def _grid(rows: Rows, clusters: Clusters, start: np.ndarray, ceilings: bool) -> np.ndarray:
    """Starting points (m, 4): every strength, with a few ceilings c unless it is given."""
    log_t = np.linspace(-4.0, 8.0, 9)
    points = np.tile(start, (len(log_t), len(_CEILINGS) if ceilings else 1, 1))
    points[..., 0] = log_t[:, None]
    if ceilings:
        missing = float(clusters.gaps.sum())
        share = missing / max(missing + float(rows.magnitudes.weight.sum()), 1e-300)
        points[..., 2] = [_logit(share + (1.0 - share) * part) for part in _CEILINGS]
    return points.reshape(-1, 4)


def _likelihood(rows: Rows, clusters: Clusters, residual: float | None) -> Decay:
    """What the core needs, in units of the mean square."""
    magnitudes, observed = rows.magnitudes, rows.observed_weight
    square, weight, spread = _by_center(rows, clusters)
    left = observed if residual is None else residual / rows.scale
    return Decay(magnitudes.square, magnitudes.weight, square, weight, spread, observed, left)


def _by_center(rows: Rows, clusters: Clusters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """mu^2, the weight of its gaps and the variance in units of s; where one variance is common to
    all and entries are many, in _CENTER_BINS groups of similar mu^2."""
    weight = clusters.gaps.ravel()
    square = np.square(clusters.mean).ravel() / rows.scale
    if clusters.variance.size > 1:
        some = weight > 0
        return square[some], weight[some], (clusters.variance / rows.scale).ravel()[some]
    if len(square) <= _FEW_CENTERS:
        return square, weight, _ONES[: len(square)]
    distance = np.sqrt(square)
    bins = (distance * ((_CENTER_BINS - 1e-6) / max(distance.max(), 1e-300))).astype(np.intp)
    grouped = np.bincount(bins, weight, _CENTER_BINS)
    square = np.bincount(bins, weight * square, _CENTER_BINS) / np.maximum(grouped, 1e-300)
    return square, grouped, _ONES[:_CENTER_BINS]
