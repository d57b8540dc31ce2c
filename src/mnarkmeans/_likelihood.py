"""The likelihood of the missing pattern, clusters given.

Model, with values measured from the reference: clusters are N(mu_l, s I), and a value x is
missing with probability

    P(missing | x) = c (r + (1 - r) exp(-t x^2))

c at the reference, falling with the distance from it to c r, the share missing at random. Then

    P_lj = P(missing | cluster l, feature j) = c (r + (1 - r) q_lj)
    q_lj = D^(-1/2) exp(-t mu_lj^2 / D),        D = 2 s t + 1

and for given memberships and centres the log-likelihood is closed:

    sum_lj m_lj log P_lj  +  sum_obs [ log(1 - P(missing | x)) + log N(x; mu, s) ]

(m_lj: weight of the missing entries). Theorem 3.2 of the paper gives the penalty that undoes
the bias of the missing values for c = 1 and r = 0, `1 - 1/D`; the same algebra with c and r
gives it times `w_lj = (1 - r) q_lj / (r + (1 - r) q_lj)`, the share of the gaps that is not
missing at random. One number for all entries is the mean weighted by m_lj mu_lj^2, the weight
each has in the loss.

The data enter through two short histograms: observed x^2, and mu_lj^2 weighted by m_lj. The
first sum is nearly linear in log x^2 and the second in mu^2, so a few hundred bins, each at the
mean of its members, stand for any number of entries, and the optimiser costs the same for
hundreds of values and for billions. All squares are in units of the data's mean square: bounds
and tolerances then suit any scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

_MAGNITUDE_BINS = 192
_CENTER_BINS = 256
_SMALLEST_MAGNITUDE = 1e-12  # share of the mean square below which x counts as x = reference
_LOGIT_BOUND = 14.0  # c and r stay 1e-6 away from 0 and 1: no logarithm of zero can arise
MODELS = {  # which of (t, s, c, r) are estimated; otherwise c = 1 and r = 0
    "pure": np.array([True, True, False, False]),
    "ceiling": np.array([True, True, True, False]),
    "mixed": np.array([True, True, True, True]),
}
_BOUNDS = np.array([math.log(1e6), math.log(1e12), _LOGIT_BOUND, _LOGIT_BOUND])


@dataclass(frozen=True)
class Missingness:
    """What the missing pattern says about the mechanism, and the penalty that follows.

    Attributes
    ----------
    lam : float
        The penalty chosen, between 0 (missing at random) and 1.
    lam_theory : float
        The penalty of Theorem 3.2 for the estimated mechanism, from which `lam` is made.
    lam_star : float
        Strength t of the mechanism: P(missing | x) = c exp(-t x^2).
    sigma2 : float
        Variance of a feature within a cluster.
    share_at_reference : float
        The c above: the probability of being missing at the reference itself.
    share_at_random : float
        Probability of being missing far from the reference, when that is estimated as well
        (a description: it does not enter lam).
    log_likelihood, log_likelihood_mcar : float
        Of this model, and of gaps that know nothing of the value (pure MCAR). Their difference
        says how strongly the data prefer the one to the other.
    """

    lam: float
    lam_theory: float
    lam_star: float
    sigma2: float
    share_at_reference: float
    share_at_random: float
    log_likelihood: float
    log_likelihood_mcar: float

    @classmethod
    def nothing_to_estimate(cls, missing: float, observed: float) -> Missingness:
        """No gaps, or no value away from the reference: every lam is as good, so 0."""
        share = missing / (missing + observed) if missing > 0 else 0.0
        return cls(0.0, 0.0, 0.0, 0.0, share, share, 0.0, 0.0)


@dataclass(frozen=True)
class Magnitudes:
    """Histogram of the observed squared distances to the reference, in units of their mean.

    Bins are equal in the logarithm and stand at the mean of their members.
    """

    square: np.ndarray
    weight: np.ndarray
    mean_square: float

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray) -> Magnitudes:
        """Collect observed values, already measured from the reference."""
        square = np.square(np.asarray(values, dtype=np.float64))
        total = weights.sum()
        mean_square = float(square @ weights / total) if total > 0 else 0.0
        if mean_square <= 0:
            return cls(np.zeros(0), np.zeros(0), 0.0)
        logs = np.log(np.maximum(square / mean_square, _SMALLEST_MAGNITUDE))
        low = logs.min()
        width = max(logs.max() - low, 1e-12) / _MAGNITUDE_BINS
        bins = np.minimum(((logs - low) / width).astype(np.intp), _MAGNITUDE_BINS - 1)
        weight = np.bincount(bins, weights, _MAGNITUDE_BINS)
        mean_log = np.bincount(bins, weights * logs, _MAGNITUDE_BINS)
        used = weight > 0
        return cls(np.exp(mean_log[used] / weight[used]), weight[used], mean_square)


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


def lam_of_theory(lam_star: float, sigma2: float) -> float:
    """Theorem 3.2: the penalty that recovers the centres when P(missing | x) = exp(-t x^2)."""
    return 1.0 - 1.0 / (2.0 * sigma2 * lam_star + 1.0)


def missing_probability(theta: Theta, M: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P_lj, and the penalty lam_lj = w_lj (1 - 1/D) that belongs to it."""
    t, s, r = theta.t, theta.s, theta.r
    d = 2.0 * s * t + 1.0
    q = (1.0 - r) * np.exp(-0.5 * math.log(d) - (t / d) * np.square(M))
    return theta.c * (r + q), q / (r + q) * lam_of_theory(t, s)


def log_observed(theta: Theta, magnitudes: Magnitudes) -> float:
    """Sum over observed entries of log(1 - P(missing | x))."""
    far = -np.expm1(-theta.t * magnitudes.square)
    not_c = 1.0 / (1.0 + math.exp(theta.vector[2]))
    return float(magnitudes.weight @ np.log(not_c + theta.c * (1.0 - theta.r) * far))


def mean_penalty(theta: Theta, M: np.ndarray, missing_weight: np.ndarray) -> float:
    """One penalty for all gaps: the mean of lam_lj weighted by their part of the loss."""
    lam = missing_probability(theta, M)[1]
    importance = np.square(M) * missing_weight
    total = importance.sum()
    return float((importance * lam).sum() / total) if total > 0 else float(lam.mean())


def fit_theta(
    magnitudes: Magnitudes,
    M: np.ndarray,
    missing_weight: np.ndarray,
    residual_square: float,
    start: Theta | None = None,
    free: np.ndarray = MODELS["mixed"],
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
    free : array (4,) of bool
        Parameters to estimate; the others stay at c = 1 and r = 0.
    max_steps : int
        Newton steps at most.
    """
    observed = float(magnitudes.weight.sum())
    missing = float(missing_weight.sum())
    residual = max(residual_square, 1e-9 * observed)
    gaps = _center_histogram(M, missing_weight)
    data = (magnitudes.square, magnitudes.weight, gaps, observed, residual)
    if start is None:
        grid = _grid(math.log(residual / observed), missing / (missing + observed), free)
        first = grid[np.argmax(_log_likelihoods(grid, *data))]
    else:
        first = np.clip(start.vector, -_BOUNDS, _BOUNDS)
    return Theta(_climb(first, free, max_steps, data)[0])


def _center_histogram(M: np.ndarray, missing_weight: np.ndarray) -> np.ndarray:
    """mu^2 and its missing weight, in at most _CENTER_BINS groups of similar mu^2."""
    square, weight = np.square(M).ravel(), missing_weight.ravel()
    square, weight = square[weight > 0], weight[weight > 0]
    if len(square) > _CENTER_BINS:
        order = np.argsort(square, kind="stable")
        edges = np.linspace(0, len(square), _CENTER_BINS + 1).astype(np.intp)[:-1]
        grouped = np.add.reduceat(weight[order], edges)
        square = np.add.reduceat((weight * square)[order], edges) / grouped
        weight = grouped
    return np.vstack([square, weight])


@njit(cache=True, nogil=True)
def _log_likelihood(theta, square, weight, gaps, observed, residual, gradient):
    """Value at theta = (log t, log s, logit c, logit r); OUT gradient (4).

    `gaps` holds mu^2 and the weight of the missing entries in its two rows.
    """
    t = math.exp(theta[0])
    s = math.exp(theta[1])
    c = 1.0 / (1.0 + math.exp(-theta[2]))
    not_c = 1.0 / (1.0 + math.exp(theta[2]))
    r = 1.0 / (1.0 + math.exp(-theta[3]))
    not_r = 1.0 / (1.0 + math.exp(theta[3]))
    d = 2.0 * s * t + 1.0

    # Observed: log(1 - P(missing | x)) + log N(x; mu, s), where 1 - P = (1-c) + c (1-r) (1-e^-u).
    value = -0.5 * (observed * math.log(2.0 * math.pi * s) + residual / s)
    g_t = 0.0
    g_s = 0.5 * (residual / s - observed)
    g_c = 0.0
    g_r = 0.0
    for i in range(square.shape[0]):
        u = t * square[i]
        far = -math.expm1(-u)
        seen = not_c + c * not_r * far
        share = weight[i] / seen
        value += weight[i] * math.log(seen)
        g_t += share * c * not_r * u * (1.0 - far)
        g_c -= share * c * not_c * (r + not_r * (1.0 - far))
        g_r -= share * c * r * not_r * far

    # Missing: log P_lj; d log q / d log t and d log q / d log s from the formula of q.
    for i in range(gaps.shape[1]):
        pull = t * gaps[0, i] / d
        q = math.exp(-0.5 * math.log(d) - pull)
        p = r + not_r * q
        w = gaps[1, i] * not_r * q / p
        value += gaps[1, i] * math.log(c * p)
        g_t -= w * (s * t + pull) / d
        g_s -= w * s * t * (1.0 - 2.0 * pull) / d
        g_c += gaps[1, i] * not_c
        g_r += gaps[1, i] * r * not_r * (1.0 - q) / p
    gradient[0] = g_t
    gradient[1] = g_s
    gradient[2] = g_c
    gradient[3] = g_r
    return value


@njit(cache=True, nogil=True)
def _log_likelihoods(thetas, square, weight, gaps, observed, residual):
    """Values at many thetas (m, 4)."""
    values = np.empty(thetas.shape[0])
    gradient = np.empty(4)
    for i in range(thetas.shape[0]):
        values[i] = _log_likelihood(thetas[i], square, weight, gaps, observed, residual, gradient)
    return values


def _grid(log_s: float, missing_share: float, free: np.ndarray) -> np.ndarray:
    """Starting points (m, 4): every strength, with a few ceilings c and floors r."""
    log_t = np.linspace(-4.0, 8.0, 9)
    ceilings = missing_share + (1.0 - missing_share) * np.array([0.3, 0.7, 0.99])
    floors = np.array([0.02, 0.5, 0.9])
    logit_c = np.log(ceilings / (1.0 - ceilings)) if free[2] else np.array([_LOGIT_BOUND])
    logit_r = np.log(floors / (1.0 - floors)) if free[3] else np.array([-_LOGIT_BOUND])
    axes = np.meshgrid(log_t, [log_s], logit_c, logit_r, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


def _climb(
    theta: np.ndarray, free: np.ndarray, max_steps: int, data: tuple
) -> tuple[np.ndarray, float]:
    """Damped Newton ascent inside the box; the Hessian is differenced from exact gradients."""
    gradient, shifted = np.empty(4), np.empty(4)
    value = _log_likelihood(theta, *data, gradient)
    damping = 1e-3
    for _ in range(max_steps):
        outward = np.sign(gradient) * theta >= _BOUNDS
        active = np.flatnonzero(free & ~outward)
        if len(active) == 0:
            break
        hessian = np.empty((len(active), len(active)))
        for column, j in enumerate(active):
            step = np.zeros(4)
            step[j] = 1e-5
            _log_likelihood(theta + step, *data, shifted)
            hessian[:, column] = (shifted[active] - gradient[active]) / 1e-5
        gain = 0.0
        for _attempt in range(20):
            trial = theta.copy()
            trial[active] += _damped_step(hessian, gradient[active], damping)
            trial = np.clip(trial, -_BOUNDS, _BOUNDS)
            trial_value = _log_likelihood(trial, *data, shifted)
            if trial_value > value:
                gain = trial_value - value
                theta, value, gradient = trial, trial_value, shifted.copy()
                damping = max(damping * 0.1, 1e-9)
                break
            damping *= 10.0
        if gain < 1e-10 * (1.0 + abs(value)):
            break
    return theta, value


def _damped_step(hessian: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
    """Solve (-H + ridge) step = gradient.

    The ridge is `damping` times the size of the diagonal, so it means the same for every amount
    of data; an upward direction of H is lifted out first, and no step exceeds 2 (a factor 7).
    """
    curvature, axes = np.linalg.eigh(-0.5 * (hessian + hessian.T))
    size = max(float(np.abs(np.diag(hessian)).max()), 1e-12)
    step = axes @ ((axes.T @ gradient) / (np.maximum(curvature, 0.0) + damping * size))
    longest = float(np.abs(step).max())
    return step * (2.0 / longest) if longest > 2.0 else step
