"""EM of a mixture with gaps, together with the mechanism that loses values.

    rho_il  proportional to  pi_l prod_{j observed} f_lj(x_ij) prod_{j missing} P_lj

with f_lj normal or heavy-tailed (the E-step, ``src/core/mixture.h``). With N, C, S, Q, U its soft
sums (U = C for normal clusters), G = N - C the gaps, e, w the mean and variance of what is missing
(`mechanisms`) and g = G times its pull (`heavy`; 1 for normal clusters),

    mu = (S + g e) / (U + g),     v = (sum_observed rho u (x - mu)^2 + g (w + (e - mu)^2)) / N

where gaps depend on the value, and the same over observed entries alone where they do not; v is
then drawn to what clusters have in common (`spread`), and the mechanism takes its own step. But for
that drawing, every step raises the likelihood.

Rows that lost everything are hidden data as well, all gaps (``src/core/em.h``, which also has the
rounds of `common`: mixtures with one variance for all entries).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._core import likelihood
from .._core.likelihood import EStep, Mixture, SoftSums
from .heavy import by_width, lost_of, next_freedom
from .mechanisms import FAMILIES, Clusters, Lost
from .rows import Rows, sums_of
from .spread import prior_rows

# Clusters and mechanism pull at each other where gaps depend on the value; steps of theirs between
# two looks at the rows cost next to nothing and save most of the rounds.
INNER_STEPS = 5
# Share of gaps below which variances are believed more, and on complete data as they are.
FEW_GAPS = 0.1
_LEAST_SIZE = 10 * np.finfo(np.float64).eps  # as scikit-learn has it
_LEAST_SHARE = 1e-6  # of a row: below it a cluster has seen nothing of a feature
_LEAST_PULL = 1e-9  # of a row: below it nothing says where a centre is


class Expected(NamedTuple):
    """What memberships say: sums over the rows, and the rows that lost everything beside them."""

    sums: SoftSums
    hidden: np.ndarray  # (k,)
    gaps: np.ndarray  # (k, p) soft weight of the missing entries, those of hidden rows included
    lost: Any = None  # Lost: what the mechanism says of the clusters; None of a first partition

    @classmethod
    def of(cls, sums: SoftSums, hidden: np.ndarray, lost: Lost | None = None) -> Expected:
        gaps = np.maximum(sums.sizes[:, None] - sums.counts, 0.0) + hidden[:, None]
        return cls(sums, hidden, gaps, lost)


class State(NamedTuple):
    """A mixture on its way."""

    weights: np.ndarray  # (k,)
    means: np.ndarray  # (k, p), in data units
    variances: np.ndarray  # (k, p)
    mechanism: Any
    bound: float  # mean log-likelihood of a row, at the last look at the rows
    freedom: float = 0.0  # degrees of freedom of heavy tails; 0: normal
    bounds: tuple[float, ...] = ()  # after every round so far
    converged: bool = False
    expected: Expected | None = None  # by the memberships of these clusters, if they are known

    @property
    def known(self) -> Expected:
        if self.expected is None:
            raise ValueError("nobody has looked at the rows with these clusters")
        return self.expected


class Problem:
    """A table, and how its mixture is to be fitted.

    prior: rows of the common variance that every variance begins with; "auto" takes them from the
    variances themselves, and none without gaps: there the mixture is GaussianMixture.
    """

    def __init__(
        self, rows: Rows, *, spherical: bool = False, reg_covar: float = 0.0,
        prior: float | str = 0.0,
    ):  # fmt: skip
        self.rows, self.observed, self.threads = rows, rows.observed, rows.threads
        self.spherical, self.reg_covar, self.prior = spherical, reg_covar, prior
        self.reference = rows.reference
        self.shift = rows.observed.means
        self._offset = self.reference - self.shift
        self._step: EStep | None = None
        self._prior_rows = 0.0

    def with_weights(self, weights: np.ndarray) -> Problem:
        """The same table with other weights of its rows."""
        return Problem(
            Rows(replace(self.observed, weights=weights), self.threads), spherical=self.spherical,
            reg_covar=self.reg_covar, prior=self.prior,
        )  # fmt: skip

    # --- one round ----------------------------------------------------------------------------

    def begin(self, sums: SoftSums, family: str, freedom: float = 0.0) -> State:
        """Clusters from the sums of a first partition, and the mechanism they suggest.

        family: one of FAMILIES.
        """
        k, p = sums.counts.shape
        nowhere = np.broadcast_to(self.shift, (k, p))
        spread = np.broadcast_to(self._spread(sums), (k, p))
        state = State(_shares(sums.sizes), nowhere, spread, None, -math.inf, freedom)
        first = Expected.of(sums, np.zeros(k))
        means = self._centers(first, None, state)
        variances = self._variances(first, None, state, means)
        clusters = self._clusters(first, means, variances)
        found = FAMILIES[family](self.rows, clusters).update(self.rows, clusters)
        return state._replace(means=means, variances=variances, mechanism=found)

    def maximised(self, state: State) -> State:
        """Clusters and mechanism from the memberships of a state, if they are known."""
        known = state.expected
        if known is None:
            return state
        weights, freedom = _shares(known.sums.sizes + known.hidden), state.freedom
        if freedom > 0:
            freedom = next_freedom(known.sums, known.gaps, known.lost, freedom)
        means, variances, found = self._steps(known, state)
        return state._replace(
            weights=weights, means=means, variances=variances, mechanism=found, freedom=freedom,
            expected=None,
        )  # fmt: skip

    def _steps(self, known: Expected, now: State):
        """Centres, variances of their own, and the mechanism."""
        lost = self._given(now)
        for step in range(1 if lost is None else INNER_STEPS):
            if step > 0:
                lost = self._lost(now)
            means = self._centers(known, lost, now)
            variances = self._variances(known, lost, now, means, again=step > 0)
            clusters = self._clusters(known, means, variances)
            found = now.mechanism.update(self.rows, by_width(clusters, lost))
            now = now._replace(means=means, variances=variances, mechanism=found)
        return means, variances, found

    def looked(self, state: State) -> State:
        """The memberships of a state, and the mean log-likelihood of a row."""
        lost = self._lost(state)
        k, p = state.means.shape
        if self._step is None or self._step.mixture.mean.shape != (k, p):
            self._step = EStep(self.observed.table, k, self.shift, self.threads, log_observed=True)
        self._step.fill(_mixture(state, lost))
        sums, n = self._step(), self.rows.n_rows
        value = sums.log_likelihood + state.mechanism.total_log_observed(self.rows)
        share, hidden = hidden_rows(state.weights, lost, self.rows.has_gaps)
        bound = (value - n * math.log1p(-share)) / n
        expected = Expected.of(sums, hidden * (n / (1.0 - share)), lost)
        bounds = (*state.bounds, bound)
        return state._replace(bound=bound, bounds=bounds, expected=expected, converged=False)

    def run(self, state: State, *, max_iter: int, tol: float) -> Iterator[State]:
        """Rounds until the bound moves by less than tol. Each ends with a look at the rows."""
        for _ in range(max_iter):
            before, state = state.bound, self.looked(self.maximised(state))
            if abs(state.bound - before) < tol:
                yield state._replace(converged=True)
                return
            yield state

    def _lost(self, state: State) -> Lost:
        return lost_by(state, self.reference)

    def _given(self, state: State) -> Lost | None:
        """What is missing by the last look; None where that does not depend on the value."""
        return None if state.mechanism.ignorable else state.known.lost

    def _centers(self, known: Expected, lost: Lost | None, now: State) -> np.ndarray:
        """New centres; where nothing says where one is, it stays."""
        sums, gaps, old = known.sums, known.gaps, now.means - self.shift
        U = sums.counts if sums.pulls is None else sums.pulls
        if lost is None:
            seen = sums.counts > _LEAST_SHARE
            return self.shift + np.where(seen, sums.sums / (U + _LEAST_SIZE), old)
        gaps = gaps if lost.widths is None else gaps * lost.widths.pull
        total = U + gaps
        away = (sums.sums + gaps * (lost.mean + self._offset)) / np.maximum(total, _LEAST_PULL)
        return self.shift + np.where(total > _LEAST_PULL, away, old)

    def _variances(self, known: Expected, lost: Lost | None, now: State, means, again=False):
        """New variances (k, p); where a cluster saw nothing, it keeps what it had.

        again: in the same round, whose prior is known.
        """
        (_, S, C, Q), away = known.sums[:4], means - self.shift
        U = C if known.sums.pulls is None else known.sums.pulls
        square, total = Q - 2.0 * S * away + U * away**2, C + _LEAST_SIZE
        if lost is not None:
            pulled = known.gaps if lost.widths is None else known.gaps * lost.widths.pull
            before = lost.mean + self._offset
            square = square + pulled * (lost.variance + (before - away) ** 2)
            total = total + known.gaps
        square = np.maximum(square, 0.0)
        if not again:
            self._prior_rows = self._rows_of_prior(square / total, C, now.freedom)
        rows = self._prior_rows
        common = square.sum(axis=0) / np.maximum(total.sum(axis=0), 1e-300)
        new = (square + rows * common) / (total + rows) + self.reg_covar
        new = np.where(total > _LEAST_SHARE, new, now.variances)
        if self.spherical:
            new = np.repeat(new.mean(axis=1, keepdims=True), new.shape[1], axis=1)
        return np.maximum(new, 1e-300)

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

    def _clusters(self, known: Expected, means, variances) -> Clusters:
        sizes = known.sums.sizes + known.hidden
        return Clusters(means - self.reference, variances, known.gaps, sizes)

    def _spread(self, sums: SoftSums) -> np.ndarray:
        """(p,) observed variance of each feature, for clusters that saw nothing of it."""
        total = np.maximum(sums.counts.sum(axis=0), 1e-300)
        mean = sums.sums.sum(axis=0) / total
        spread = np.maximum(sums.squares.sum(axis=0) / total - mean**2, 0.0)
        return spread + max(self.reg_covar, 1e-12)

    # --- the first partition ------------------------------------------------------------------

    def sums_of(self, memberships: np.ndarray) -> SoftSums:
        """The sums that memberships (n, k) give."""
        return sums_of(self.observed, memberships, self.shift)


def _shares(sizes: np.ndarray) -> np.ndarray:
    sizes = sizes + _LEAST_SIZE
    return sizes / sizes.sum()


def lost_by(state: State, reference: np.ndarray) -> Lost:
    """What the mechanism of a state says of its clusters."""
    return lost_of(state.mechanism, state.means - reference, state.variances, state.freedom)


def core_mixture(state: State, reference: np.ndarray) -> Mixture:
    """The mixture as the core takes it."""
    own = _mixture(state, lost_by(state, reference))._asdict()
    arrays = {name: np.ascontiguousarray(own[name]) for name in own if own[name] is not None}
    return Mixture(**{**own, **arrays, "freedom": state.freedom})


def _mixture(state: State, lost: Lost) -> Mixture:
    """The same in arrays of any kind."""
    log_weight = np.log(np.maximum(state.weights, 1e-300))
    return Mixture(
        log_weight, state.means, state.variances, lost.log_missing, lost.log_observed, state.freedom
    )


def hidden_rows(weights: np.ndarray, lost: Lost, has_gaps: np.ndarray):
    """Share of rows that lose everything, and each cluster's part of it (k,)."""
    if not has_gaps.all():
        return 0.0, np.zeros(len(weights))
    return likelihood.hidden_rows(weights, lost.log_missing)
