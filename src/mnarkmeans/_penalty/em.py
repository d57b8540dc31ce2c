"""EM of a Gaussian mixture with gaps, together with the mechanism that loses values.

    rho_il  proportional to  pi_l prod_{j observed} N(x_ij; mu_lj, v_lj) prod_{j missing} P_lj

(the E-step, ``src/core/mixture.h``). With N, C, S, Q its soft sums, G = N - C the gaps and e, w the
mean and variance of what is missing (`mechanisms`),

    mu = (S + G e) / N,     v = (sum_observed rho (x - mu)^2 + G (w + (e - mu)^2)) / N

where gaps depend on the value, and the same over observed entries alone where they do not. Then the
mechanism takes its own step. Every step raises the likelihood.

Rows that lost everything are not in the table. With Q_l = prod_j P_lj and B = sum_l pi_l Q_l the
likelihood of the others is divided by 1 - B for each, and every round adds pi_l Q_l / (1 - B) such
rows for each row seen (see `mixture`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .._core.likelihood import EStep, Mixture, SoftSums
from .._data.observed import Observed
from .mechanisms import MECHANISMS, Clusters, Lost
from .mixture import MOST_HIDDEN, Rows

ROWS_AT_ONCE = 1 << 15
# Clusters and mechanism pull at each other where gaps depend on the value; steps of theirs between
# two looks at the rows cost next to nothing and save most of the rounds.
INNER_STEPS = 5
_LEAST_SIZE = 10 * np.finfo(np.float64).eps  # as scikit-learn has it
_LEAST_SHARE = 1e-6  # of a row: below it a cluster has seen nothing of a feature


class State(NamedTuple):
    """A mixture on its way."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, p), in data units
    variances: np.ndarray  # (k, p)
    mechanism: Any
    bound: float  # mean log-likelihood of a row, before the last update
    n_iter: int = 0
    converged: bool = False


class Problem:
    """A table, and how its mixture is to be fitted."""

    def __init__(self, observed: Observed, *, spherical: bool, reg_covar: float, threads: int):
        self.observed, self.rows = observed, Rows(observed, threads)
        self.spherical, self.reg_covar, self.threads = spherical, reg_covar, threads
        self.reference, self.shift = observed.reference, observed.means
        self._step: EStep | None = None

    # --- one round ----------------------------------------------------------------------------

    def begin(self, sums: SoftSums, mechanism: str) -> State:
        """Clusters from the sums of a first partition, and the mechanism they suggest."""
        k, p = sums.counts.shape
        means = np.broadcast_to(self.shift, (k, p))
        variances = np.broadcast_to(self._spread(sums), (k, p))
        means, variances = self._update(sums, None, np.zeros(k), means, variances)
        clusters = self._clusters(sums, np.zeros(k), means, variances)
        found = MECHANISMS[mechanism].begin(self.rows, clusters)
        return State(_shares(sums.sizes), means, variances, found, -math.inf)

    def round(self, state: State) -> State:
        """Memberships, then clusters and mechanism."""
        found, means, variances = state.mechanism, state.means, state.variances
        lost = found.lost(means - self.reference, variances)
        sums, hidden, bound = self._expect(state, lost)
        for _ in range(1 if found.ignorable else INNER_STEPS):
            given = None
            if not found.ignorable:
                given = found.lost(means - self.reference, variances)
            means, variances = self._update(sums, given, hidden, means, variances)
            found = found.update(self.rows, self._clusters(sums, hidden, means, variances))
        shares = _shares(sums.sizes + hidden)
        return State(shares, means, variances, found, bound, state.n_iter + 1)

    def run(self, state: State, *, max_iter: int, tol: float) -> Iterator[State]:
        """Rounds until the bound moves by less than tol."""
        for _ in range(max_iter):
            new = self.round(state)
            done = abs(new.bound - state.bound) < tol
            state = new._replace(converged=done)
            yield state
            if done:
                return

    def _expect(self, state: State, lost: Lost):
        k, p = state.means.shape
        if self._step is None or self._step.mixture.mean.shape != (k, p):
            self._step = EStep(self.observed.table, k, self.shift, self.threads, log_observed=True)
        mixture = core_mixture(state.weights, state.means, state.variances, lost)
        for own, new in zip(self._step.mixture, mixture, strict=True):
            np.copyto(own, new)  # type: ignore[arg-type]
        sums = self._step()
        value = sums.log_likelihood + state.mechanism.total_log_observed(self.rows)
        share, hidden = hidden_rows(state.weights, lost, self.rows.has_gaps)
        value -= self.rows.n_rows * math.log1p(-share)
        return sums, hidden * (self.rows.n_rows / (1.0 - share)), value / self.rows.n_rows

    def _update(self, sums: SoftSums, lost: Lost | None, hidden, means, variances):
        """New centres and variances; where a cluster saw nothing, it keeps what it had."""
        N, S, C, Q, _ = sums
        if lost is None:
            gaps = before = spread = np.zeros_like(C)
        else:
            gaps = np.maximum(N[:, None] - C, 0.0) + hidden[:, None]
            before, spread = lost.mean + (self.reference - self.shift), lost.variance
        total = C + gaps + _LEAST_SIZE
        some = total > _LEAST_SHARE
        away = np.where(some, (S + gaps * before) / total, means - self.shift)
        square = Q - 2.0 * S * away + C * away**2 + gaps * (spread + (before - away) ** 2)
        new = np.where(some, np.maximum(square, 0.0) / total + self.reg_covar, variances)
        if self.spherical:
            new = np.repeat(new.mean(axis=1, keepdims=True), new.shape[1], axis=1)
        return self.shift + away, np.maximum(new, 1e-300)

    def _clusters(self, sums: SoftSums, hidden, means, variances) -> Clusters:
        gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) + hidden[:, None]
        return Clusters(means - self.reference, variances, gaps, sums.sizes + hidden)

    def _spread(self, sums: SoftSums) -> np.ndarray:
        """(p,) observed variance of each feature, for clusters that saw nothing of it."""
        total = np.maximum(sums.counts.sum(axis=0), 1e-300)
        mean = sums.sums.sum(axis=0) / total
        return np.maximum(sums.squares.sum(axis=0) / total - mean**2, 0.0) + max(
            self.reg_covar, 1e-12
        )

    # --- the first partition ------------------------------------------------------------------

    def sums_of(self, memberships: np.ndarray) -> SoftSums:
        """The sums that memberships (n, k) give, a slab of rows at a time."""
        observed, (n, k) = self.observed, memberships.shape
        p = observed.n_features
        sums, counts, squares = (np.zeros((k, p)) for _ in range(3))
        shared = memberships * observed.weights[:, None]
        for begin in range(0, n, ROWS_AT_ONCE):
            part = slice(begin, begin + ROWS_AT_ONCE)
            R = shared[part].T
            source = observed.source[part]
            if observed.is_sparse:
                seen = source.copy()
                values = source.astype(np.float64)
                values.data = values.data - self.shift[values.indices]
                seen.data = np.ones(len(seen.data))
                counts += R @ seen
                sums += R @ values
                values.data = values.data**2
                squares += R @ values
                continue
            seen = ~(np.isnan(source) | (source == observed.missing))
            values = np.subtract(source, self.shift, where=seen, out=np.zeros(source.shape))
            counts += R @ seen.astype(np.float64)
            sums += R @ values
            squares += R @ values**2
        return SoftSums(shared.sum(axis=0), sums, counts, squares, 0.0)


def _shares(sizes: np.ndarray) -> np.ndarray:
    sizes = sizes + _LEAST_SIZE
    return sizes / sizes.sum()


def core_mixture(weights, means, variances, lost: Lost) -> Mixture:
    """The mixture as the core takes it."""
    log_observed = (
        np.zeros_like(lost.log_missing) if lost.log_observed is None else (lost.log_observed)
    )
    arrays = (means, variances, lost.log_missing, log_observed)
    return Mixture(
        np.log(np.maximum(weights, 1e-300)),
        *(np.ascontiguousarray(array, dtype=np.float64) for array in arrays),
    )


def hidden_rows(weights: np.ndarray, lost: Lost, has_gaps: np.ndarray):
    """Share of rows that lose everything, and each cluster's part of it (k,)."""
    if not has_gaps.all():
        return 0.0, np.zeros(len(weights))
    parts = weights * np.exp(lost.log_missing.sum(axis=1))
    parts = parts * (MOST_HIDDEN / max(float(parts.sum()), MOST_HIDDEN))
    return float(parts.sum()), parts
