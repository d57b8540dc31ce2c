"""EM for a mixture with missing values, together with the missingness mechanism.

    p(row i) = sum_l pi_l prod_{j observed} f_lj(x_ij) (1 - P(missing | x_ij)) prod_{j missing} P_lj

with f_lj normal or Student's t. Rows without any observed value are not in the table: the
likelihood of a row is the one given that something of it is observed, and the number h_l of rows
that each cluster lost entirely is expected along with the posteriors rho_il.

E-step (``src/core/mixture.h``): N_l = sum_i rho_il, and over the rows that observe j, C_lj, S_lj,
Q_lj = sum of rho_il (1, x, x^2); with Student's t U_lj, S_lj, Q_lj have the weights E[w | x].

M-step: with G = N - C + h missing values of mean e, variance r and weight g (1 if normal),

    pi  proportional to N + h
    mu = (S + g G e) / (U + g G)
    R  = Q - 2 S mu + U mu^2 + g G (r + (e - mu)^2)          squared residuals of C + G values
    v  = (R + d s_j) / (C + G + d)

then the mechanism, and the degrees of freedom. What is maximised, the ``objective``, is the
log-likelihood plus the log prior: that of the mechanism, and for the variances

    (d / 2) sum_lj [ log(s_j / v_lj) + 1 - s_j / v_lj ],      s_j the harmonic mean of v_1j ... v_kj

that is, a scaled inverse chi-squared prior worth d values around a variance that clusters share,
itself at its maximum. No iteration lowers the objective. Variances are at least ``reg_covar``; on a
complete table it is added to them instead, as GaussianMixture does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma

from .._core.likelihood import EStep, Mixture, SoftSums, soft_rows
from .._observed import Observed
from .mechanisms import MECHANISMS, Clusters, Missing
from .tails import LEAST_FREEDOM, MOST_FREEDOM, Widths, by_width, missing_values, next_freedom
from .values import ROWS_AT_ONCE, Values

# M-steps between two E-steps. Means and mechanism depend on each other, and these cost little.
INNER_STEPS = 3
LONGER_STEP = 4.0  # times the step of EM in the logarithm of the degrees of freedom
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
    """What an E-step says of the table under given parameters."""

    sums: SoftSums
    hidden: np.ndarray  # (k,) expected rows without any observed value
    missing: Missing
    widths: Widths | None
    log_likelihood: float
    objective: float


class State(NamedTuple):
    """Parameters with their E-step, and the objective per row after every iteration."""

    parameters: Parameters
    expectation: Any = None  # of these parameters, after the E-step
    path: tuple[float, ...] = ()
    converged: bool = False


class EM:
    """A table, and how its mixture is fitted; ``prior`` is d above."""

    def __init__(
        self, observed: Observed, *, spherical: bool = False, reg_covar: float = 0.0,
        prior: float = 0.0, threads: int = 1, values: Values | None = None,
    ):  # fmt: skip
        self.observed, self.threads = observed, threads
        self.values = values or Values(observed)
        self.spherical, self.reg_covar, self.prior = spherical, reg_covar, prior
        self.reference, self.shift = observed.reference, observed.means
        self.n_rows = float(observed.weights.sum())
        self._offset = self.reference - self.shift
        self._estep: EStep | None = None

    def copy(self, **changes: Any) -> EM:
        """The same table with another reference, prior or weights of its rows."""
        settings = {
            "observed": self.observed, "spherical": self.spherical, "reg_covar": self.reg_covar,
            "prior": self.prior, "threads": self.threads, **changes,
        }  # fmt: skip
        if "observed" not in changes:
            settings["values"] = self.values
        return EM(**settings)

    # --- the first parameters -------------------------------------------------------------------

    def start(self, memberships: np.ndarray, name: str, freedom: float = 0.0) -> Parameters:
        """From a partition (n, k), hard or soft, and the mechanism that suits it best."""
        sums = self.sums_of(memberships)
        k, p = sums.counts.shape
        spread = np.broadcast_to(self.spread, (k, p))
        means = np.broadcast_to(self.shift, (k, p))
        now = Parameters(sums.sizes, means, spread, None, freedom)
        now, clusters = self._clusters(now, sums, np.zeros(k), None, None)
        if freedom > 2:  # the squared scale of Student's t, from its variance
            now = now._replace(variances=now.variances * (1.0 - 2.0 / freedom))
            clusters = clusters._replace(variance=now.variances)
        mechanism = MECHANISMS[name].start(self.values, clusters).update(self.values, clusters)
        return now._replace(mechanism=mechanism)

    def sums_of(self, memberships: np.ndarray) -> SoftSums:
        """Sums over the rows for given posteriors (n, k), of values less the shift."""
        (n, k), p = memberships.shape, self.observed.n_features
        sums, counts, squares = (np.zeros((k, p)) for _ in range(3))
        shared = memberships * self.observed.weights[:, None]
        for begin in range(0, n, ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            rho, source = shared[part].T, self.observed.source[part]
            if self.observed.is_sparse:
                values = source.astype(np.float64)
                seen = source.copy()
                values.data = values.data - self.shift[values.indices]
                seen.data = np.ones(len(seen.data))
                counts += rho @ seen
                sums += rho @ values
                values.data = values.data**2
                squares += rho @ values
                continue
            seen = self.observed.seen(part)
            values = np.subtract(source, self.shift, where=seen, out=np.zeros(source.shape))
            counts += rho @ seen.astype(np.float64)
            sums += rho @ values
            squares += rho @ values**2
        return SoftSums(shared.sum(axis=0), sums, counts, squares, 0.0)

    @cached_property
    def spread(self) -> np.ndarray:
        """(p,) variance of the observed values of each feature."""
        sums = self.sums_of(np.ones((self.observed.n_rows, 1)))
        total = np.maximum(sums.counts[0], 1e-300)
        spread = sums.squares[0] / total - (sums.sums[0] / total) ** 2
        rounding = (1e-8 * self.shift) ** 2  # of a constant feature
        return np.maximum(np.maximum(spread, rounding), max(self.reg_covar, 1e-100))

    # --- E-step ---------------------------------------------------------------------------------

    def missing(self, parameters: Parameters) -> tuple[Missing, Widths | None]:
        return missing_of(parameters, self.reference)

    def e_step(self, parameters: Parameters) -> Expectation:
        missing, widths = self.missing(parameters)
        k, p = parameters.means.shape
        if self._estep is None or self._estep.mixture.mean.shape != (k, p):
            self._estep = EStep(self.observed.table, k, self.shift, self.threads, log_observed=True)
        self._estep.fill(_core_mixture(parameters, missing))
        sums, n = self._estep(), self.n_rows
        value = sums.log_likelihood + parameters.mechanism.total_log_observed(self.values)
        share, hidden = hidden_rows(parameters, missing)
        value -= n * math.log1p(-share)
        objective = value + self._log_prior(parameters)
        hidden = hidden * (n / (1.0 - share))
        return Expectation(sums, hidden, missing, widths, value, objective)

    def _log_prior(self, parameters: Parameters) -> float:
        value = parameters.mechanism.log_prior(self.values)
        if self.prior > 0:
            v = parameters.variances
            common = 1.0 / (1.0 / v).mean(axis=0)
            value += 0.5 * self.prior * float((np.log(common) - np.log(v)).sum())
        return value

    # --- M-step ---------------------------------------------------------------------------------

    def m_step(self, parameters: Parameters, expectation: Expectation) -> Parameters:
        sums, hidden, missing, widths = expectation[:4]
        ignorable, freedom = parameters.mechanism.ignorable, parameters.freedom
        for step in range(1 if ignorable else INNER_STEPS):
            if step > 0:
                missing, widths = self.missing(parameters)
            expected = None if ignorable else missing
            parameters, clusters = self._clusters(parameters, sums, hidden, expected, widths)
            mechanism = parameters.mechanism.update(self.values, by_width(clusters, widths))
            parameters = parameters._replace(mechanism=mechanism)
        if freedom > 0:
            freedom = next_freedom(sums, clusters.gaps, expectation.widths, freedom)
        return parameters._replace(freedom=freedom)

    def _clusters(
        self, now: Parameters, sums: SoftSums, hidden: np.ndarray, missing: Missing | None,
        widths: Widths | None,
    ) -> tuple[Parameters, Clusters]:  # fmt: skip
        """New weights, means and variances; missing: None where values are missing at random."""
        sizes = sums.sizes + hidden
        weights = (sizes + 1e-14) / (sizes + 1e-14).sum()
        gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) + hidden[:, None]
        pulls = sums.counts if sums.pulls is None else sums.pulls
        total, count, values = sums.sums, pulls, sums.counts
        mean = now.means - self.shift
        if missing is not None:
            weight = gaps if widths is None else gaps * widths.weight
            lost = missing.mean + self._offset
            total, count, values = total + weight * lost, count + weight, values + gaps
        known = count > LEAST_VALUES
        mean = np.where(known, total / np.where(known, count, 1.0), mean)
        residuals = sums.squares - 2.0 * sums.sums * mean + pulls * mean**2
        residuals = np.maximum(residuals, 0.0)
        if missing is not None:
            residuals = residuals + weight * (missing.variance + (lost - mean) ** 2)
        variances = self._variances(residuals, values, now.variances)
        means = mean + self.shift
        clusters = Clusters(means - self.reference, variances, gaps, sizes)
        return now._replace(weights=weights, means=means, variances=variances), clusters

    def _variances(self, residuals: np.ndarray, values: np.ndarray, now: np.ndarray) -> np.ndarray:
        if self.spherical:
            shape = residuals.shape
            residuals, values = (one.sum(axis=1, keepdims=True) for one in (residuals, values))
            prior, now = self.prior * shape[1], now[:, :1]
        else:
            prior = self.prior
        common = 1.0 / (1.0 / now).mean(axis=0)
        new = (residuals + prior * common) / np.maximum(values + prior, 1e-300)
        new = np.where(values > LEAST_VALUES, new, now)
        if not self.values.has_gaps.any():
            new = new + self.reg_covar
        floor = self.spread.mean() if self.spherical else self.spread
        new = np.maximum(new, np.maximum(LEAST_VARIANCE * floor, self.reg_covar))
        return np.broadcast_to(new, shape).copy() if self.spherical else new

    # --- iterations -----------------------------------------------------------------------------

    def run(self, state: State, *, max_iter: int, tol: float) -> Iterator[State]:
        """Iterations until the objective per row changes by less than tol; the first one of a new
        state is its E-step.
        """
        for _ in range(max_iter):
            parameters, last = state.parameters, state.expectation
            if last is not None:
                parameters = self.m_step(parameters, last)
            expectation, parameters = self._best_freedom(parameters, state)
            path = (*state.path, expectation.objective / self.n_rows)
            converged = last is not None and abs(path[-1] - path[-2]) < tol
            state = State(parameters, expectation, path, converged)
            yield state
            if converged:
                return

    def _best_freedom(self, parameters: Parameters, state: State) -> tuple[Expectation, Parameters]:
        """The E-step, with degrees of freedom that do not lower the objective.

        EM moves them slowly, so a longer step is tried first, then that of EM. As the nodes of w
        move with them, even that one can lower the objective: then they stay.
        """
        now, before = parameters.freedom, state.parameters.freedom
        if now <= 0 or state.expectation is None:
            return self.e_step(parameters), parameters
        longer = now * (now / before) ** (LONGER_STEP - 1.0)
        longer = min(max(longer, LEAST_FREEDOM), MOST_FREEDOM)
        for freedom in (longer, now, before):
            parameters = parameters._replace(freedom=freedom)
            expectation = self.e_step(parameters)
            if expectation.objective >= state.expectation.objective:
                break
        return expectation, parameters


def missing_of(parameters: Parameters, reference: np.ndarray) -> tuple[Missing, Widths | None]:
    """What the mechanism says of the missing values of every cluster and feature."""
    return missing_values(
        parameters.mechanism, parameters.means - reference, parameters.variances,
        parameters.freedom,
    )  # fmt: skip


def hidden_rows(parameters: Parameters, missing: Missing) -> tuple[float, np.ndarray]:
    """Share of rows without any observed value, and each cluster's part of it (k,)."""
    k = len(parameters.weights)
    if not parameters.mechanism.has_gaps.all():
        return 0.0, np.zeros(k)
    logs = np.log(np.maximum(parameters.weights, 1e-300)) + missing.log_rate.sum(axis=1)
    share = min(float(np.exp(logs).sum()), 1.0 - 1e-9)
    return share, np.minimum(np.exp(logs), share)


def _core_mixture(parameters: Parameters, missing: Missing) -> Mixture:
    log_weights = np.log(np.maximum(parameters.weights, 1e-300))
    return Mixture(
        log_weights, parameters.means, parameters.variances, missing.log_rate,
        missing.log_observed, parameters.freedom,
    )  # fmt: skip


def posteriors(observed: Observed, parameters: Parameters, threads: int):
    """Posteriors (n, k), log-likelihoods without the mechanism's part, and labels of rows."""
    mixture = _core_mixture(parameters, missing_of(parameters, observed.reference)[0])
    arrays = mixture._asdict()
    for name, array in arrays.items():
        arrays[name] = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array
    return soft_rows(observed.table, Mixture(**arrays), threads)


# --- the weight of the prior --------------------------------------------------------------------

MOST_PRIOR = 200.0  # with so many values of the common variance clusters share it
FEWEST_SEEN = 3.0  # values without which a variance says nothing
PRELIMINARY = 5  # iterations
FEW_GAPS = 0.1  # share of missing values below which the prior fades; complete tables have none


def prior_weight(em: EM, memberships: np.ndarray, freedom: float) -> float:
    """d: how much the variances of clusters have in common, from a few iterations with mcar.

    By chance alone Var(log v_lj) = trigamma(C_lj / 2); if variances vary around a common one with
    d degrees of freedom, by trigamma(d / 2) more (Smyth 2004).
    """
    fading = min(1.0, em.values.missing_share / FEW_GAPS)
    if em.spherical or memberships.shape[1] < 2 or fading <= 0:
        return 0.0
    parameters = em.start(memberships, "mcar", freedom)
    weight = _moments(parameters.variances, em.sums_of(memberships).counts, freedom)
    with_prior = em.copy(prior=weight)
    *_, state = with_prior.run(State(parameters), max_iter=PRELIMINARY, tol=0.0)
    free = em.m_step(state.parameters, state.expectation)
    return fading * _moments(free.variances, state.expectation.sums.counts, freedom)


def _moments(variances: np.ndarray, seen: np.ndarray, freedom: float) -> float:
    """d from variances (k, p) of ``seen`` values each."""
    if freedom > 0:  # a value from heavy tails says less of their width
        seen = seen * (freedom / (freedom + 3.0))
    enough = seen >= FEWEST_SEEN
    degrees = np.maximum(enough.sum(axis=0) - 1, 0)
    if degrees.sum() == 0:
        return 0.0
    half = 0.5 * np.maximum(seen, FEWEST_SEEN)
    logs = np.log(np.maximum(variances, 1e-300)) - digamma(half) + np.log(half)
    mean = np.where(enough, logs, 0.0).sum(axis=0) / np.maximum(enough.sum(axis=0), 1)
    scatter = np.where(enough & (degrees > 0), (logs - mean) ** 2, 0.0).sum() / degrees.sum()
    more = scatter - polygamma(1, half)[enough].mean()
    if not more > polygamma(1, 0.5 * MOST_PRIOR):
        return MOST_PRIOR
    return 2.0 * float(brentq(lambda y: polygamma(1, y) - more, 1e-4, MOST_PRIOR))
