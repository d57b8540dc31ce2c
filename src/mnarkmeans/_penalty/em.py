"""EM of a mixture with gaps, together with the mechanism that loses values.

    rho_il  proportional to  pi_l prod_{j observed} f_lj(x_ij) prod_{j missing} P_lj

with f_lj normal or heavy-tailed (the E-step, ``src/core/mixture.h``). What is missing has its mean
and variance from the mechanism (`mechanisms`) and its pull from the tails (`heavy`); sizes, centres
and squared residuals R are the core's (the M-step, ``src/core/maximise.h``). The variances R over
the weight of their entries are drawn to what clusters have in common (`spread`), and the mechanism
takes its own step. But for that drawing, every step raises the likelihood.

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
from .._core.rounds import Maximised, Missing, MStep
from .heavy import by_width, lost_of, next_freedom
from .mechanisms import FAMILIES, Clusters, Lost
from .rows import Rows, sums_of
from .spread import prior_rows

# Clusters and mechanism pull at each other where gaps depend on the value; steps of theirs between
# two looks at the rows cost next to nothing and save most of the rounds.
INNER_STEPS = 5
# Share of gaps below which variances are believed more, and on complete data as they are.
FEW_GAPS = 0.1
_LEAST_SHARE = 1e-6  # of a row: below it nothing says how wide a cluster is


class Expected(NamedTuple):
    """What memberships say: sums over the rows, and the rows that lost everything beside them."""

    sums: SoftSums
    hidden: np.ndarray  # (k,)
    lost: Any = None  # Lost: what the mechanism says of the clusters; None of a first partition


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
        state = State(sums.sizes, nowhere, spread, None, -math.inf, freedom)
        state, clusters = self._moved(MStep(sums, np.zeros(k)), None, state)
        found = FAMILIES[family](self.rows, clusters).update(self.rows, clusters)
        return state._replace(mechanism=found)

    def maximised(self, state: State) -> State:
        """Clusters and mechanism from the memberships of a state, if they are known."""
        known, freedom = state.expected, state.freedom
        if known is None:
            return state
        clusters_of, ignorable = MStep(known.sums, known.hidden), state.mechanism.ignorable
        lost = None if ignorable else known.lost
        for step in range(1 if ignorable else INNER_STEPS):
            if step > 0:
                lost = self._lost(state)
            state, clusters = self._moved(clusters_of, lost, state, again=step > 0)
            found = state.mechanism.update(self.rows, by_width(clusters, lost))
            state = state._replace(mechanism=found)
        if freedom > 0:
            freedom = next_freedom(known.sums, clusters.gaps, known.lost, freedom)
        return state._replace(freedom=freedom, expected=None)

    def _moved(
        self, clusters_of: MStep, lost: Lost | None, state: State, again: bool = False
    ) -> tuple[State, Clusters]:
        """New sizes, centres and variances, and these clusters as mechanisms see them.

        lost: what is missing; None where that does not depend on the value. again: in the same
        round, whose prior is known.
        """
        sums, hidden = clusters_of.sums, clusters_of.hidden
        found = clusters_of(state.means - self.shift, self._missing(lost))
        if not again:
            self._prior_rows = self._rows_of_prior(found, sums.counts, state.freedom)
        means, variances = found.mean + self.shift, self._variances(found, state.variances)
        clusters = Clusters(means - self.reference, variances, found.gaps, sums.sizes + hidden)
        return state._replace(weights=found.weights, means=means, variances=variances), clusters

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
        expected = Expected(sums, hidden * (n / (1.0 - share)), lost)
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

    def _missing(self, lost: Lost | None) -> Missing | None:
        if lost is None:
            return None
        mean, variance = map(np.ascontiguousarray, (lost.mean + self._offset, lost.variance))
        return Missing(mean, variance, None if lost.widths is None else lost.widths.pull)

    def _variances(self, found: Maximised, old: np.ndarray) -> np.ndarray:
        """New variances (k, p); where a cluster saw nothing, it keeps what it had."""
        square, total, rows = found.residuals, found.entries, self._prior_rows
        common = square.sum(axis=0) / np.maximum(total.sum(axis=0), 1e-300)
        new = (square + rows * common) / np.maximum(total + rows, 1e-300) + self.reg_covar
        new = np.where(total > _LEAST_SHARE, new, old)
        if self.spherical:
            new = np.repeat(new.mean(axis=1, keepdims=True), new.shape[1], axis=1)
        return np.maximum(new, 1e-300)

    def _rows_of_prior(self, found: Maximised, seen: np.ndarray, freedom: float) -> float:
        """How many rows the common variance of a feature is worth."""
        if self.prior != "auto":
            return float(self.prior)
        if self.spherical or len(seen) < 2:
            return 0.0
        if freedom > 0:  # a value from heavy tails says less of their width
            seen = seen * (freedom / (freedom + 3.0))
        few_gaps = min(1.0, self.rows.missing_share / FEW_GAPS)
        if few_gaps <= 0:
            return 0.0
        return few_gaps * prior_rows(found.residuals / np.maximum(found.entries, 1e-300), seen)

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
