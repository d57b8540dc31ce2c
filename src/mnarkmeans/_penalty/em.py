"""EM of a mixture with gaps, together with the mechanism that loses values.

    rho_il  proportional to  pi_l prod_{j observed} f_lj(x_ij) prod_{j missing} P_lj

with f_lj normal or heavy-tailed (the E-step, ``src/core/mixture.h``). With N, C, S, Q, U its soft
sums (U = C for normal clusters), G = N - C the gaps, e, w the mean and variance of what is missing
(`mechanisms`) and g = G times its pull (`heavy`; 1 for normal clusters),

    mu = (S + g e) / (U + g),     v = (sum_observed rho u (x - mu)^2 + g (w + (e - mu)^2)) / N

where gaps depend on the value, and the same over observed entries alone where they do not; v is
then drawn to what clusters have in common (`spread`). Then the mechanism takes its own step. But
for that drawing, every step raises the likelihood.

Rows that lost everything are not in the table. With Q_l = prod_j P_lj and B = sum_l pi_l Q_l the
likelihood of the others is divided by 1 - B for each, and every round adds pi_l Q_l / (1 - B) such
rows for each row seen (see `mixture`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._core.likelihood import EStep, Mixture, SoftSums
from .._data.observed import Observed
from .heavy import by_width, lost_of, next_freedom
from .mechanisms import MECHANISMS, Clusters, Lost
from .mixture import MOST_HIDDEN
from .rows import Rows
from .spread import prior_rows

ROWS_AT_ONCE = 1 << 15
# Clusters and mechanism pull at each other where gaps depend on the value; steps of theirs between
# two looks at the rows cost next to nothing and save most of the rounds.
INNER_STEPS = 5
FEW_GAPS = (
    0.1  # of all entries: below it variances are believed more, and on complete data as they are
)
_LEAST_SIZE = 10 * np.finfo(np.float64).eps  # as scikit-learn has it
_LEAST_SHARE = 1e-6  # of a row: below it a cluster has seen nothing of a feature


class State(NamedTuple):
    """A mixture on its way."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, p), in data units
    variances: np.ndarray  # (k, p)
    mechanism: Any
    bound: float  # mean log-likelihood of a row, before the last update
    freedom: float = 0.0  # degrees of freedom of heavy tails; 0: normal
    n_iter: int = 0
    converged: bool = False


class Problem:
    """A table, and how its mixture is to be fitted.

    prior: rows of the common variance that every variance begins with; "auto" takes them from the
    variances themselves, and none without gaps: there the mixture is GaussianMixture.
    """

    def __init__(
        self, observed: Observed, *, spherical: bool, reg_covar: float, threads: int,
        prior: float | str = 0.0,
    ):  # fmt: skip
        self.observed, self.rows = observed, Rows(observed, threads)
        self.spherical, self.reg_covar, self.threads = spherical, reg_covar, threads
        self.prior = prior
        self.reference, self.shift = observed.reference, observed.means
        self._step: EStep | None = None
        self._prior_rows = 0.0

    def with_weights(self, weights: np.ndarray) -> Problem:
        """The same table with other weights of its rows."""
        return Problem(
            replace(self.observed, weights=weights), spherical=self.spherical,
            reg_covar=self.reg_covar, threads=self.threads, prior=self.prior,
        )  # fmt: skip

    # --- one round ----------------------------------------------------------------------------

    def begin(self, sums: SoftSums, mechanism: str, freedom: float = 0.0) -> State:
        """Clusters from the sums of a first partition, and the mechanism they suggest."""
        k, p = sums.counts.shape
        means = np.broadcast_to(self.shift, (k, p))
        variances = np.broadcast_to(self._spread(sums), (k, p))
        start = State(np.ones(k), means, variances, None, -math.inf)
        means, variances = self._update(sums, None, np.zeros(k), start)
        clusters = self._clusters(sums, np.zeros(k), means, variances)
        found = MECHANISMS[mechanism].begin(self.rows, clusters)
        return State(_shares(sums.sizes), means, variances, found, -math.inf, freedom)

    def round(self, state: State) -> State:
        """Memberships, then clusters and mechanism."""
        found, freedom = state.mechanism, state.freedom
        lost = lost_of(found, state.means - self.reference, state.variances, freedom)
        sums, hidden, bound = self._expect(state, lost)
        now = state
        for step in range(1 if found.ignorable else INNER_STEPS):
            given = None
            if not found.ignorable:
                given = lost_of(found, now.means - self.reference, now.variances, freedom)
            means, variances = self._update(sums, given, hidden, now, again=step > 0)
            clusters = self._clusters(sums, hidden, means, variances)
            found = found.update(self.rows, by_width(clusters, given))
            now = now._replace(means=means, variances=variances)
        if freedom > 0:
            freedom = next_freedom(sums, self._gaps(sums, hidden), lost, freedom)
        return now._replace(
            weights=_shares(sums.sizes + hidden), mechanism=found, bound=bound, freedom=freedom,
            n_iter=state.n_iter + 1,
        )  # fmt: skip

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
        mixture = core_mixture(state, lost)
        self._step.fill(mixture)
        sums = self._step()
        value = sums.log_likelihood + state.mechanism.total_log_observed(self.rows)
        share, hidden = hidden_rows(state.weights, lost, self.rows.has_gaps)
        value -= self.rows.n_rows * math.log1p(-share)
        return sums, hidden * (self.rows.n_rows / (1.0 - share)), value / self.rows.n_rows

    def _update(self, sums: SoftSums, lost: Lost | None, hidden, now: State, again=False):
        """New centres and variances; where a cluster saw nothing, it keeps what it had.

        again: in the same round, whose prior is known.
        """
        _, S, C, Q = sums[:4]
        U = C if sums.pulls is None else sums.pulls
        gaps = pulled = before = spread = np.zeros_like(C)
        if lost is not None:
            gaps = self._gaps(sums, hidden)
            pulled = gaps if lost.widths is None else gaps * lost.widths.pull
            before, spread = lost.mean + (self.reference - self.shift), lost.variance
        total = C + gaps + _LEAST_SIZE
        some = total > _LEAST_SHARE
        away = np.where(
            some, (S + pulled * before) / (U + pulled + _LEAST_SIZE), now.means - self.shift
        )
        square = Q - 2.0 * S * away + U * away**2 + pulled * (spread + (before - away) ** 2)
        square = np.maximum(square, 0.0)
        if not again:
            self._prior_rows = self._rows_of_prior(square / total, C, now.freedom)
        rows = self._prior_rows
        common = square.sum(axis=0) / np.maximum(total.sum(axis=0), 1e-300)
        new = (square + rows * common) / (total + rows) + self.reg_covar
        new = np.where(some, new, now.variances)
        if self.spherical:
            new = np.repeat(new.mean(axis=1, keepdims=True), new.shape[1], axis=1)
        return self.shift + away, np.maximum(new, 1e-300)

    def _rows_of_prior(self, variances, seen, freedom: float) -> float:
        """How many rows the common variance of a feature is worth."""
        if self.prior != "auto":
            return float(self.prior)
        if self.spherical or len(variances) < 2:
            return 0.0
        if freedom > 0:  # a value from heavy tails says less of their width
            seen = seen * (freedom / (freedom + 3.0))
        few_gaps = min(1.0, self.rows.missing_share / FEW_GAPS)
        return few_gaps * prior_rows(variances, seen) if few_gaps > 0 else 0.0

    def _gaps(self, sums: SoftSums, hidden) -> np.ndarray:
        return np.maximum(sums.sizes[:, None] - sums.counts, 0.0) + hidden[:, None]

    def _clusters(self, sums: SoftSums, hidden, means, variances) -> Clusters:
        return Clusters(
            means - self.reference, variances, self._gaps(sums, hidden), sums.sizes + hidden
        )

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


def core_mixture(state: State, lost: Lost) -> Mixture:
    """The mixture as the core takes it."""
    log_observed = (
        np.zeros_like(lost.log_missing) if lost.log_observed is None else lost.log_observed
    )
    means, variances, log_missing, log_observed = (
        np.ascontiguousarray(array, dtype=np.float64)
        for array in (state.means, state.variances, lost.log_missing, log_observed)
    )
    log_weight = np.log(np.maximum(state.weights, 1e-300))
    return Mixture(log_weight, means, variances, log_missing, log_observed, state.freedom)


def hidden_rows(weights: np.ndarray, lost: Lost, has_gaps: np.ndarray):
    """Share of rows that lose everything, and each cluster's part of it (k,)."""
    if not has_gaps.all():
        return 0.0, np.zeros(len(weights))
    parts = weights * np.exp(lost.log_missing.sum(axis=1))
    parts = parts * (MOST_HIDDEN / max(float(parts.sum()), MOST_HIDDEN))
    return float(parts.sum()), parts
