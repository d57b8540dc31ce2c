"""EM for a mixture with missing values, together with the missingness mechanism.

    p(row i) = sum_l pi_l prod_{j observed} f_lj(x_ij) (1 - P(missing | x_ij)) prod_{j missing} P_lj

with f_lj normal or Student's t. Rows without any observed value are not in the table: the
likelihood of a row is conditional on something of it being observed, and the E-step expects the
number h_l of such rows of each cluster along with the posteriors rho_il.

E-step (``src/core/mixture.h``): N_l = sum_i rho_il, and over the rows that observe j, C_lj, S_lj,
Q_lj = sum of rho_il (1, x, x^2); with Student's t U_lj, S_lj, Q_lj have the weights E[w | x].

M-step: with G = N - C + h missing values of mean e, variance r and weight g (1 if normal),

    pi  proportional to N + h
    mu = (S + g G e) / (U + g G)
    R  = Q - 2 S mu + U mu^2 + g G (r + (e - mu)^2)          squared residuals of C + G values
    v  = (R + d s_j) / (C + G + d)

then the mechanism. What is maximised, the ``objective``, is the
log-likelihood plus the log prior: that of the mechanism, and for the variances

    (d / 2) sum_lj [ log(s_j / v_lj) + 1 - s_j / v_lj ],      s_j the harmonic mean of v_1j ... v_kj

that is, a scaled inverse chi-squared prior worth d values around a variance that clusters share,
itself at its maximum. No iteration lowers the objective. Variances are at least ``reg_covar``; on a
complete table it is added to them instead, as GaussianMixture does.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammainccinv, gammaincinv, polygamma

from .._core import Mixture, SoftSums, soft_rows, soft_sums
from .._observed import Observed, sums_by_cluster
from .mechanisms import MECHANISMS, TINY, Clusters, Missing, Values

# M-steps between two E-steps. Means and mechanism depend on each other, and these cost little.
INNER_STEPS = 3
LEAST_VALUES = 1e-6  # expected values without which a cluster's mean and variance stay
LEAST_VARIANCE = 1e-10  # of the variance of the feature


class Parameters(NamedTuple):
    """Of a mixture."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, p), in data units
    variances: np.ndarray  # (k, p)
    mechanism: Any
    freedom: float = 0.0  # degrees of freedom of Student's t; 0: normal


class Expectation(NamedTuple):
    """The result of an E-step."""

    sums: SoftSums
    hidden: np.ndarray  # (k,) expected rows without any observed value
    missing: Missing
    log_likelihood: float
    objective: float


class State(NamedTuple):
    """Parameters with their E-step, and the objective per row after every iteration."""

    parameters: Parameters
    expectation: Any = None  # of these parameters, after the E-step
    path: tuple[float, ...] = ()
    converged: bool = False


@dataclass
class EM:
    """A table, and how its mixture is fitted."""

    observed: Observed
    spherical: bool = False
    reg_covar: float = 0.0
    prior: float = 0.0  # d above
    threads: int = 1

    @cached_property
    def values(self) -> Values:
        return Values(self.observed)

    @cached_property
    def n_rows(self) -> float:
        return float(self.observed.weights.sum())

    @cached_property
    def spread(self) -> np.ndarray:
        """(p,) variance of the observed values of each feature."""
        sums = self.sums_of(np.ones((self.observed.n_rows, 1)))
        total = np.maximum(sums.counts[0], TINY)
        spread = sums.squares[0] / total - (sums.sums[0] / total) ** 2
        rounding = (1e-8 * self.observed.means) ** 2  # of a constant feature
        return np.maximum(np.maximum(spread, rounding), max(self.reg_covar, 1e-100))

    @cached_property
    def min_variance(self) -> np.ndarray:
        spread = self.spread.mean() if self.spherical else self.spread
        return np.maximum(LEAST_VARIANCE * spread, self.reg_covar)

    def with_prior(self, prior: float) -> EM:
        """The same with another prior; what was computed of the table is shared."""
        other = copy.copy(self)
        other.prior = prior
        return other

    # --- the first parameters -------------------------------------------------------------------

    def start(self, sums: SoftSums, name: str, freedom: float = 0.0) -> Parameters:
        """From the sums of a partition, and the mechanism that suits it best."""
        k = len(sums.sizes)
        means, spread = (np.tile(row, (k, 1)) for row in (self.observed.means, self.spread))
        parameters = Parameters(sums.sizes, means, spread, None, freedom)
        parameters, clusters = self._clusters(parameters, sums, np.zeros(k), None)
        if freedom > 2:  # the squared scale of Student's t, from its variance
            scales = np.maximum(parameters.variances * (1.0 - 2.0 / freedom), self.min_variance)
            parameters = parameters._replace(variances=scales)
            clusters = clusters._replace(variance=scales)
        mechanism = MECHANISMS[name].start(self.values, clusters).update(self.values, clusters)
        return parameters._replace(mechanism=mechanism)

    def sums_of(self, memberships: np.ndarray) -> SoftSums:
        """Sums over the rows for given posteriors (n, k), of values less the means; the same
        around any reference."""
        weights, table = memberships * self.observed.weights[:, None], self.observed
        totals = sums_by_cluster(table.source, weights, table.means, table.missing)
        counts, sums, squares = totals
        return SoftSums(weights.sum(axis=0), sums, counts, squares, 0.0, counts)

    def sums_at(self, parameters: Parameters) -> SoftSums:
        """Sums for the posteriors of these parameters."""
        return self.sums_of(posteriors(self.observed, parameters, self.threads).memberships)

    # --- E-step ---------------------------------------------------------------------------------

    def e_step(self, parameters: Parameters) -> Expectation:
        missing = missing_of(parameters, self.observed.reference)
        table, shift = self.observed.table, self.observed.means
        sums = soft_sums(table, _core_mixture(parameters, missing), shift, self.threads)
        n = self.n_rows
        value = sums.log_likelihood + parameters.mechanism.total_log_observed(self.values)
        share, hidden = hidden_rows(parameters, missing)
        value -= n * math.log1p(-share)
        objective = value + parameters.mechanism.log_prior(self.values)
        if self.prior > 0:
            v = parameters.variances
            common = 1.0 / (1.0 / v).mean(axis=0)
            objective += 0.5 * self.prior * float((np.log(common) - np.log(v)).sum())
        return Expectation(sums, hidden * (n / (1.0 - share)), missing, value, objective)

    # --- M-step ---------------------------------------------------------------------------------

    def m_step(self, parameters: Parameters, expectation: Expectation) -> Parameters:
        sums, hidden, missing = expectation[:3]
        ignorable = parameters.mechanism.ignorable
        for step in range(1 if ignorable else INNER_STEPS):
            if step > 0:
                missing = missing_of(parameters, self.observed.reference)
            expected = None if ignorable else missing
            parameters, clusters = self._clusters(parameters, sums, hidden, expected)
            mechanism = parameters.mechanism.update(self.values, by_width(clusters, missing.widths))
            parameters = parameters._replace(mechanism=mechanism)
        return parameters

    def _clusters(
        self, now: Parameters, sums: SoftSums, hidden: np.ndarray, missing: Missing | None
    ) -> tuple[Parameters, Clusters]:
        """New weights, means and variances; missing: None where values are missing at random."""
        shift, reference = self.observed.means, self.observed.reference
        sizes = sums.sizes + hidden
        weights = (sizes + 1e-14) / (sizes + 1e-14).sum()
        gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) + hidden[:, None]
        total, count, values = sums.sums, sums.pulls, sums.counts
        if missing is not None:
            weight = gaps * missing.weight
            filled = missing.mean + (reference - shift)
            total, count, values = total + weight * filled, count + weight, values + gaps
        known = count > LEAST_VALUES
        mean = np.where(known, total / np.where(known, count, 1.0), now.means - shift)
        residuals = sums.squares - 2.0 * sums.sums * mean + sums.pulls * mean**2
        residuals = np.maximum(residuals, 0.0)
        if missing is not None:
            residuals = residuals + weight * (missing.variance + (filled - mean) ** 2)
        variances = self._variances(residuals, values, now.variances)
        means = mean + shift
        clusters = Clusters(means - reference, variances, gaps, sizes)
        return now._replace(weights=weights, means=means, variances=variances), clusters

    def _variances(self, residuals: np.ndarray, values: np.ndarray, now: np.ndarray) -> np.ndarray:
        shape, prior = residuals.shape, self.prior
        if self.spherical:
            residuals, values = (each.sum(axis=1, keepdims=True) for each in (residuals, values))
            prior, now = prior * shape[1], now[:, :1]
        if prior > 0:
            residuals = residuals + prior / (1.0 / now).mean(axis=0)
        new = residuals / np.maximum(values + prior, TINY)
        new = np.where(values > LEAST_VALUES, new, now)
        if not self.observed.has_gaps.any():
            new = new + self.reg_covar
        new = np.maximum(new, self.min_variance)
        return np.broadcast_to(new, shape).copy() if self.spherical else new

    # --- iterations -----------------------------------------------------------------------------

    def run(self, state: State, *, max_iter: int, tol: float) -> Iterator[State]:
        """Iterations until the objective per row changes by less than tol; the first one of a new
        state is its E-step.
        """
        for _ in range(max_iter):
            if state.converged:
                return
            parameters, last = state.parameters, state.expectation
            if last is not None:
                parameters = self.m_step(parameters, last)
            expectation = self.e_step(parameters)
            path = (*state.path, expectation.objective / self.n_rows)
            converged = last is not None and abs(path[-1] - path[-2]) < tol
            state = State(parameters, expectation, path, converged)
            yield state


def hidden_rows(parameters: Parameters, missing: Missing) -> tuple[float, np.ndarray]:
    """Share of rows without any observed value, and each cluster's part of it (k,)."""
    if not parameters.mechanism.has_gaps.all():
        return 0.0, np.zeros(len(parameters.weights))
    logs = np.log(np.maximum(parameters.weights, TINY)) + missing.log_rate.sum(axis=1)
    share = min(float(np.exp(logs).sum()), 1.0 - 1e-9)
    return share, np.minimum(np.exp(logs), share)


def _core_mixture(parameters: Parameters, missing: Missing) -> Mixture:
    log_weights = np.log(np.maximum(parameters.weights, TINY))
    return Mixture(
        log_weights, parameters.means, parameters.variances, missing.log_rate,
        missing.log_observed, parameters.freedom,
    )  # fmt: skip


def posteriors(observed: Observed, parameters: Parameters, threads: int) -> Any:
    """Posteriors (n, k), log-likelihoods without the mechanism's part, and labels of rows."""
    mixture = _core_mixture(parameters, missing_of(parameters, observed.reference))
    return soft_rows(observed.table, mixture, threads)


# --- Student's t ----------------------------------------------------------------------------------
#
# Clusters are normal with a random width (ECM):
#
#     x = mu + sqrt(v / w) z,   z ~ N(0, 1),   w ~ Gamma(nu / 2, rate nu / 2)
#
# An observed value weighs E[w | x] = (nu + 1) / (nu + (x - mu)^2 / v) in its cluster's mean and
# variance (``src/core/mixture.h``). For a missing value w is replaced by nodes w_m with
# probabilities q_m, so that for every mechanism
#
#     P_lj = sum_m q_m P(mu, v / w_m),     r_m = P(w_m | missing) = q_m P(mu, v / w_m) / P_lj.
#
# nu is not estimated (as in Lange, Little and Taylor 1989): in the designs of studies/soft clusters
# are found as well as with an estimate.

FREEDOM = 4.0


@lru_cache(maxsize=64)
def nodes(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """w_m and q_m by the trapezoidal rule in log w, whose density is smooth and has light tails.

    They leave out a probability of 1e-10 below and 1e-8 above, and are 0.7 standard deviations (or
    0.7, if that is less) apart: log P_lj is right to 1e-4 for rates down to 1e-9.
    """
    half = 0.5 * freedom
    first = math.log(gammaincinv(half, 1e-10) / half)
    last = math.log(gammainccinv(half, 1e-8) / half)
    step = 0.7 * min(1.0, math.sqrt(polygamma(1, half)))
    log_w = np.linspace(first, last, 1 + math.ceil((last - first) / step))
    log_density = half * (log_w - np.exp(log_w))
    weight = np.exp(log_density - log_density.max())
    return np.exp(log_w), weight / weight.sum()


def missing_of(parameters: Parameters, reference: np.ndarray) -> Missing:
    """Missing values of every cluster and feature under the mechanism.

    With Student's t, mean and variance are weighted by w, as the M-step needs them.
    """
    mechanism, freedom = parameters.mechanism, parameters.freedom
    mean, variance = parameters.means - reference, parameters.variances
    if not mechanism.has_gaps.any():
        return Missing(np.zeros(mean.shape), mean, variance)
    if freedom <= 0 or mechanism.ignorable:
        return mechanism.missing(mean, variance)
    w, q = nodes(freedom)
    w_m = w[:, None, None]
    given = mechanism.missing(np.broadcast_to(mean, (len(w), *mean.shape)), variance / w_m)
    logs = given.log_rate + np.log(q)[:, None, None]
    top = logs.max(axis=0)
    posterior = np.exp(logs - top)
    total = posterior.sum(axis=0)
    posterior /= total
    weights = w_m * posterior
    weight = weights.sum(axis=0)
    center = (weights * given.mean).sum(axis=0) / weight
    spread = (weights * (given.variance + (given.mean - center) ** 2)).sum(axis=0) / weight
    expected = (posterior * given.mean).sum(axis=0)
    return Missing(top + np.log(total), center, spread, None, weight, expected, (w, posterior))


def by_width(clusters: Clusters, widths: Any) -> Clusters:
    """Student's t clusters as normal ones of every width, for the update of the mechanism."""
    if widths is None:
        return clusters
    (w, posterior), p = widths, clusters.mean.shape[1]
    return clusters._replace(
        mean=np.tile(clusters.mean, (len(w), 1)),
        variance=(clusters.variance / w[:, None, None]).reshape(-1, p),
        gaps=(clusters.gaps * posterior).reshape(-1, p),
    )


# --- the weight of the prior ----------------------------------------------------------------------

MOST_PRIOR = 200.0  # the largest d: clusters all but share their variances
FEWEST_VALUES = 3.0  # values below which a variance is ignored
FEW_GAPS = 0.1  # share of missing values below which the prior fades; complete tables have none


def prior_weight(em: EM, sums: SoftSums, freedom: float) -> float:
    """d: how much the variances of the clusters of a partition have in common, from a few
    iterations with mcar.

    By chance alone Var(log v_lj) = trigamma(C_lj / 2); if variances vary around a common one with
    d degrees of freedom, by trigamma(d / 2) more (Smyth 2004).
    """
    fading = min(1.0, em.values.missing_share / FEW_GAPS)
    if em.spherical or len(sums.sizes) < 2 or fading <= 0:
        return 0.0
    parameters = em.start(sums, "mcar", freedom)
    weight = _in_common(parameters.variances, sums.counts, freedom)
    *_, state = em.with_prior(weight).run(State(parameters), max_iter=5, tol=0.0)
    free = em.m_step(state.parameters, state.expectation)
    return fading * _in_common(free.variances, state.expectation.sums.counts, freedom)


def _in_common(variances: np.ndarray, counts: np.ndarray, freedom: float) -> float:
    """d from variances (k, p), each of this number of values."""
    if freedom > 0:  # a value from heavy tails is less informative about their width
        counts = counts * (freedom / (freedom + 3.0))
    enough = counts >= FEWEST_VALUES
    degrees = np.maximum(enough.sum(axis=0) - 1, 0)
    if degrees.sum() == 0:
        return 0.0
    half = 0.5 * np.maximum(counts, FEWEST_VALUES)
    logs = np.log(np.maximum(variances, TINY)) - digamma(half) + np.log(half)
    mean = np.where(enough, logs, 0.0).sum(axis=0) / np.maximum(enough.sum(axis=0), 1)
    scatter = np.where(enough & (degrees > 0), (logs - mean) ** 2, 0.0).sum() / degrees.sum()
    return degrees_of_freedom(scatter - polygamma(1, half)[enough].mean(), MOST_PRIOR)


def degrees_of_freedom(excess: float, most: float) -> float:
    """d with trigamma(d / 2) = excess variance of the log-variances, beyond chance."""
    if not excess > polygamma(1, 0.5 * most):
        return most
    return 2.0 * float(brentq(lambda y: polygamma(1, y) - excess, 1e-8, 0.5 * most))
