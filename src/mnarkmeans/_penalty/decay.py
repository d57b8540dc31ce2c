"""The likelihood of the missing pattern, clusters given.

Model, with values measured from the reference: clusters are N(mu_l, s I), and a value x is
missing with probability

    P(missing | x) = c (r + (1 - r) exp(-t x^2))

c at the reference, falling with the distance from it to c r, the share missing at random. Then

    P_lj = P(missing | cluster l, feature j) = c (r + (1 - r) q_lj)
    q_lj = D^(-1/2) exp(-t mu_lj^2 / D),        D = 2 s t + 1

and for given memberships and centres the log-likelihood is closed:

    sum_lj m_lj log P_lj  +  sum_obs [ log(1 - P(missing | x)) + log N(x; mu, s) ]

(m_lj: weight of the missing entries). The penalty that undoes the bias of the missing values is
`lam_lj = 1 - E[x | missing] / mu_lj = -2 s d log P_lj / d(mu_lj^2)`, whatever the mechanism. For
c = 1 and r = 0 (the paper's MNAR0) that is Theorem 3.2, `1 - 1/D`, and here it is that times
`w_lj = (1 - r) q_lj / (r + (1 - r) q_lj)`, the share of the gaps that is not missing at random.
The logistic curve of MNAR1, 1 / (1 + exp(a x^2)), is close to c = 1/2 with r = 0.

The data enter through two short histograms: observed x^2, and mu_lj^2 weighted by m_lj. The
first sum is nearly linear in log x^2 and the second in mu^2, so a few hundred bins, each at the
mean of its members, stand for any number of entries, and the optimiser costs the same for
hundreds of values and for billions. All squares are in units of the data's mean square: bounds
and tolerances then suit any scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._core.likelihood import Decay, decay_fit
from .rows import Magnitudes

_CENTER_BINS = 128
_LEAST_PROBABILITY = 1e-300
_LOGIT_BOUND = 14.0  # c and r stay 1e-6 away from 0 and 1, as in decay.h


class Model(NamedTuple):
    """Which of (t, s, c, r) are estimated; otherwise logit c as given, and r = 0."""

    free: np.ndarray
    logit_c: float = _LOGIT_BOUND


MODELS = {
    "pure": Model(np.array([1, 1, 0, 0], np.int32)),
    "half": Model(np.array([1, 1, 0, 0], np.int32), logit_c=0.0),
    "ceiling": Model(np.array([1, 1, 1, 0], np.int32)),
    "mixed": Model(np.array([1, 1, 1, 1], np.int32)),
}


@dataclass(frozen=True)
class Theta:
    """The mechanism and the noise: (log t, log s, logit c, logit r)."""

    vector: np.ndarray

    @classmethod
    def at_random(cls, variance: float, missing_share: float) -> Theta:
        """Gaps that know nothing of the value: r = 1 (and any t)."""
        share = min(max(missing_share, 1e-6), 1 - 1e-6)
        logit = math.log(share) - math.log1p(-share)
        return cls(np.array([0.0, math.log(max(variance, 1e-12)), logit, math.inf]))

    def with_floor(self, r: float) -> Theta:
        """The same with a share r of it that is missing at random."""
        logit = math.log(r / (1.0 - r))
        return Theta(np.append(np.clip(self.vector[:3], -_LOGIT_BOUND, _LOGIT_BOUND), logit))

    def with_ceiling(self, logit_c: float) -> Theta:
        """The same with another probability at the reference, and nothing missing at random."""
        return Theta(np.array([*self.vector[:2], logit_c, -_LOGIT_BOUND]))

    @property
    def t(self) -> float:
        return math.exp(self.vector[0])

    @property
    def s(self) -> float:
        return math.exp(self.vector[1])

    @property
    def c(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.vector[2]))

    @property
    def r(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.vector[3]))

    @property
    def share_at_reference(self) -> float:
        """P(missing | x = 0)."""
        return self.c

    def log_missing(self, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """log P_lj, and the penalty lam_lj that belongs to it."""
        r = self.r
        log_q, d = decayed(M, self.s, self.t)
        q = (1.0 - r) * np.exp(log_q)
        p = np.maximum(r + q, _LEAST_PROBABILITY)
        return math.log(self.c) + np.log(p), q / p * (1.0 - 1.0 / d)

    def log_observed(self, magnitudes: Magnitudes) -> float:
        """Sum over observed entries of log(1 - P(missing | x))."""
        far = -np.expm1(-self.t * magnitudes.square)
        not_c = 1.0 / (1.0 + math.exp(self.vector[2]))
        return float(magnitudes.weight @ np.log(not_c + self.c * (1.0 - self.r) * far))


def decayed(M: np.ndarray, s, t: float) -> tuple[np.ndarray, Any]:
    """log q_lj and D: what is lost at rate exp(-t x^2) from N(M, s) is N(M / D, s / D).

    s: a number, or one for every entry of M.
    """
    d = 2.0 * s * t + 1.0
    return -0.5 * np.log(d) - (t / d) * np.square(M), d


def fit_theta(
    magnitudes: Magnitudes,
    M: np.ndarray,
    missing_weight: np.ndarray,
    residual_square: float,
    start: Theta | None = None,
    model: Model = MODELS["mixed"],
    max_steps: int = 60,
) -> Theta:
    """Maximise the likelihood over (t, s, c, r), centres and memberships given.

    Parameters
    ----------
    magnitudes : Magnitudes
        Observed values.
    M : array (k, p)
        Centres, in units of the root mean square and measured from the reference.
    missing_weight : array (k, p)
        Summed weight of the gaps of every cluster and feature.
    residual_square : float
        Weighted sum of squared distances of observed entries to their centres, same units.
    start : Theta, optional
        Begin there; otherwise at the best point of a grid that covers all strengths.
    model : Model
        The parameters to estimate.
    max_steps : int
        Newton steps at most.
    """
    observed, at_risk = magnitudes.total, float(magnitudes.weight.sum())
    missing = float(missing_weight.sum())
    residual = max(residual_square, 1e-9 * observed)
    histogram = _center_histogram(M, missing_weight)
    data = Decay(magnitudes.square, magnitudes.weight, *histogram, observed, residual)
    if start is None:
        starts = _grid(math.log(residual / observed), missing / (missing + at_risk), model)
    else:
        starts = start.vector[None]
    return Theta(decay_fit(data, starts, model.free, max_steps))


def _center_histogram(M: np.ndarray, missing_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """mu^2 and its missing weight, in at most _CENTER_BINS groups of similar mu^2."""
    square, weight = np.square(M).ravel(), missing_weight.ravel()
    square, weight = square[weight > 0], weight[weight > 0]
    if len(square) > _CENTER_BINS:
        distance = np.sqrt(square)
        bins = (distance * ((_CENTER_BINS - 1e-6) / max(distance.max(), 1e-300))).astype(np.intp)
        grouped = np.bincount(bins, weight, _CENTER_BINS)
        square = np.bincount(bins, weight * square, _CENTER_BINS) / np.maximum(grouped, 1e-300)
        square, weight = square[grouped > 0], grouped[grouped > 0]
    return square, weight


def _grid(log_s: float, missing_share: float, model: Model) -> np.ndarray:
    """Starting points (m, 4): every strength, with a few ceilings c and floors r."""
    log_t = np.linspace(-4.0, 8.0, 9)
    ceilings = missing_share + (1.0 - missing_share) * np.array([0.3, 0.7, 0.99])
    floors = np.array([0.02, 0.5, 0.9])
    logit_c = np.log(ceilings / (1.0 - ceilings)) if model.free[2] else [model.logit_c]
    logit_r = np.log(floors / (1.0 - floors)) if model.free[3] else [-_LOGIT_BOUND]
    points = np.empty((len(log_t), len(logit_c), len(logit_r), 4))
    points[..., 0] = log_t[:, None, None]
    points[..., 1] = log_s
    points[..., 2] = np.reshape(logit_c, (-1, 1))
    points[..., 3] = logit_r
    return points.reshape(-1, 4)
