"""EM of a mixture with gaps, together with the mechanism that loses values.

    rho_il  proportional to  pi_l prod_{j observed} f_lj(x_ij) prod_{j missing} P_lj

with f_lj normal or heavy-tailed (the E-step, ``src/core/mixture.h``). With N, C, S, Q, U its soft
sums (U = C for normal clusters), G = N - C the gaps, e, w the mean and variance of what is missing
(`mechanisms`) and g = G times its pull (`heavy`; 1 for normal clusters),

    mu = (S + g e) / (U + g),     v = (sum_observed rho u (x - mu)^2 + g (w + (e - mu)^2)) / N

where gaps depend on the value, and the same over observed entries alone where they do not; v is
then drawn to what clusters have in common (`spread`), and the mechanism takes its own step. But for
that drawing, every step raises the likelihood.

Where one variance is common to all entries (lam="auto"), the mechanism finds it together with
itself, and centres take longer steps: e moves with mu, by w / v, so that

    mu = (S + G (e - mu w / v)) / (C + G (1 - w / v))

(around the reference, where e = mu / D, it is S / (C + lam G) with lam = 1 - 1/D: the penalised
centre of k-means).

Rows that lost everything are not in the table, and with few features they are many. They are hidden
data as well (unless some feature has no gaps): with Q_l = prod_j P_lj and B = sum_l pi_l Q_l the
likelihood of the others is divided by 1 - B for each, and every round adds pi_l Q_l / (1 - B) such
rows, all gaps, for each row seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._core.likelihood import EStep, Mixture, SoftSums
from .heavy import by_width, lost_of, next_freedom
from .mechanisms import FAMILIES, Clusters, Lost
from .rows import Rows, Start, sums_of
from .spread import prior_rows

# Clusters and mechanism pull at each other where gaps depend on the value; steps of theirs between
# two looks at the rows cost next to nothing and save most of the rounds.
INNER_STEPS = 5
FIRST_STEPS = 5  # of a mechanism together with a common variance, where it begins
# Share of gaps below which variances are believed more, and on complete data as they are.
FEW_GAPS = 0.1
MOST_HIDDEN = 0.95  # share of the rows that may have lost everything
_LEAST_SIZE = 10 * np.finfo(np.float64).eps  # as scikit-learn has it
_LEAST_SHARE = 1e-6  # of a row: below it a cluster has seen nothing of a feature
_LEAST_PULL = 1e-9  # of a row: below it nothing says where a centre is
_LEAST_SPREAD = 1e-9  # of the mean square: of one variance for all


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
    variances: np.ndarray  # (k, p), or (1, 1) where one is common to all entries
    mechanism: Any
    bound: float  # mean log-likelihood of a row, at the last look at the rows
    freedom: float = 0.0  # degrees of freedom of heavy tails; 0: normal
    equal_sizes: bool = False  # all clusters keep the same weight
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

    common: one variance for all entries, and normal clusters.
    prior: rows of the common variance that every variance begins with; "auto" takes them from the
    variances themselves, and none without gaps: there the mixture is GaussianMixture.
    """

    def __init__(
        self, rows: Rows, *, spherical: bool = False, common: bool = False, reg_covar: float = 0.0,
        prior: float | str = 0.0,
    ):  # fmt: skip
        self.rows, self.observed, self.threads = rows, rows.observed, rows.threads
        self.spherical, self.common, self.reg_covar = spherical, common, reg_covar
        self.prior = prior
        self.reference = rows.reference
        self.shift = rows.reference if common else rows.observed.means
        self._offset = self.reference - self.shift
        self._step: EStep | None = None
        self._prior_rows = 0.0

    def with_weights(self, weights: np.ndarray) -> Problem:
        """The same table with other weights of its rows."""
        return Problem(
            Rows(replace(self.observed, weights=weights), self.threads), spherical=self.spherical,
            common=self.common, reg_covar=self.reg_covar, prior=self.prior,
        )  # fmt: skip

    # --- one round ----------------------------------------------------------------------------

    def begin(
        self, sums: SoftSums, family: str, freedom: float = 0.0, *,
        means: np.ndarray | None = None, equal_sizes: bool = False,
    ) -> State:  # fmt: skip
        """Clusters from the sums of a first partition, and the mechanism they suggest.

        family: one of FAMILIES; means: centres, if they are known.
        """
        k, p = sums.counts.shape
        weights = np.full(k, 1.0 / k) if equal_sizes else _shares(sums.sizes)
        nowhere = np.broadcast_to(self.shift, (k, p))
        state = State(weights, nowhere, np.ones((1, 1)), None, -math.inf, freedom, equal_sizes)
        first = Expected.of(sums, np.zeros(k))
        if means is None:
            means = self._centers(first, None, state)
        if self.common:
            residual = self._residual(sums, means - self.reference)
            variances = np.array([[residual / self.rows.observed_weight]])
        else:
            state = state._replace(variances=np.broadcast_to(self._spread(sums), (k, p)))
            variances = self._variances(first, None, state, means)
        state = state._replace(means=means, variances=variances)
        return self._with_mechanism(state, first, family)

    def turned(self, state: State, family: str) -> State:
        """Where another family of mechanisms begins, from the memberships of a state."""
        means = self._centers(state.known, self._given(state), state)
        return self._with_mechanism(state._replace(means=means), state.known, family)

    def _with_mechanism(self, state: State, known: Expected, family: str) -> State:
        clusters = self._clusters(known, state.means, state.variances)
        found = FAMILIES[family](self.rows, clusters, near=state.mechanism)
        variances = state.variances
        if self.common:
            found, variances = self._together(found, known, clusters, FIRST_STEPS)
        else:
            found = found.update(self.rows, clusters)
        return state._replace(
            mechanism=found, variances=variances, expected=None, converged=False,
            bound=state.bound if state.converged else -math.inf,
        )  # fmt: skip

    def maximised(self, state: State) -> State:
        """Clusters and mechanism from the memberships of a state, if they are known."""
        known = state.expected
        if known is None:
            return state
        weights, freedom = state.weights, state.freedom
        if not state.equal_sizes:
            weights = _shares(known.sums.sizes + known.hidden)
        if freedom > 0:
            freedom = next_freedom(known.sums, known.gaps, known.lost, freedom)
        means, variances, found = (self._step_common if self.common else self._steps)(known, state)
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

    def _step_common(self, known: Expected, now: State):
        """Centres, and the mechanism together with one variance for all entries."""
        means = self._centers(known, self._given(now), now)
        clusters = self._clusters(known, means, now.variances)
        found, variances = self._together(now.mechanism, known, clusters)
        return means, variances, found

    def _together(self, mechanism, known: Expected, clusters: Clusters, steps: int = 1):
        residual = self._residual(known.sums, clusters.mean)
        found, variance = mechanism.update_with_spread(self.rows, clusters, residual, steps)
        return found, np.array([[variance]])

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
        away = state.means - self.reference
        return lost_of(state.mechanism, away, state.variances, state.freedom)

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
        before = lost.mean
        if self.common:  # the shift is the reference
            moving = lost.variance / now.variances
            moving = np.where(moving < 1.0, moving, 0.0)  # of two kinds, far apart: plain EM
            before, total = before - moving * old, U + gaps * (1.0 - moving)
        else:
            gaps = gaps if lost.widths is None else gaps * lost.widths.pull
            before, total = before + self._offset, U + gaps
        away = (sums.sums + gaps * before) / np.maximum(total, _LEAST_PULL)
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

    def _residual(self, sums: SoftSums, away: np.ndarray) -> float:
        """Squared distances of all observed values to centres so far from the shift."""
        whole = self.rows.observed_weight * self.rows.scale
        residual = whole + float((away * (sums.counts * away - 2.0 * sums.sums)).sum())
        return max(residual, _LEAST_SPREAD * whole)

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

    def clusters(self, state: State) -> Clusters:
        """The clusters of a state whose memberships are known, as mechanisms see them."""
        return self._clusters(state.known, state.means, state.variances)

    def _spread(self, sums: SoftSums) -> np.ndarray:
        """(p,) observed variance of each feature, for clusters that saw nothing of it."""
        total = np.maximum(sums.counts.sum(axis=0), 1e-300)
        mean = sums.sums.sum(axis=0) / total
        spread = np.maximum(sums.squares.sum(axis=0) / total - mean**2, 0.0)
        return spread + max(self.reg_covar, 1e-12)

    # --- the first partition ------------------------------------------------------------------

    def sums_of_fits(self, fits: Sequence[Start]) -> list[SoftSums]:
        """Those of k-means fits; without squares, which a common variance does not need."""
        sizes, sums, counts = self.rows.hard_sums(fits)
        sums, nothing = sums * self.rows.root, np.zeros_like(sums[0])
        return [SoftSums(*own, nothing, 0.0) for own in zip(sizes, sums, counts, strict=True)]

    def sums_of(self, memberships: np.ndarray) -> SoftSums:
        """The sums that memberships (n, k) give."""
        return sums_of(self.observed, memberships, self.shift)


def _shares(sizes: np.ndarray) -> np.ndarray:
    sizes = sizes + _LEAST_SIZE
    return sizes / sizes.sum()


def core_mixture(state: State, lost: Lost) -> Mixture:
    """The mixture as the core takes it."""
    own = _mixture(state, lost)._asdict()
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
    parts = weights * np.exp(lost.log_missing.sum(axis=1))
    parts = parts * (MOST_HIDDEN / max(float(parts.sum()), MOST_HIDDEN))
    return float(parts.sum()), parts
