"""Clusters and missing pattern together: a mixture with soft labels.

Labels fitted with a penalty have already used the gaps, so a likelihood that takes them for
granted confirms whatever lam they were fitted with. Here a row belongs to every cluster with
its probability instead,

    rho_il  proportional to  pi_l  prod_{j observed} N(x_ij; mu_lj, s)  prod_{j missing} P_lj

and each round of EM updates

    mu_lj = S_lj / (C_lj + lam_lj (N_l - C_lj)),     lam_lj = 1 - E[x | missing] / mu_lj

from the soft sums (the penalised centre update with the penalty of the theory: the exact EM step
when the missing values are the hidden data) and then the mechanism.

Rows that lost every value are not in the table, and with few features they are many. They are
hidden data as well: with Q_l = prod_j P_lj and B = sum_l pi_l Q_l, the likelihood of the rows that
are left is divided by 1 - B for each of them, and every round adds pi_l Q_l / (1 - B) rows per row
seen, all gaps, to N_l. (None, when some feature has no gaps.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import Centers, Stats, add_rows, assign
from .._core.likelihood import EStep, SoftSums
from .._data.observed import Observed
from .decay import MODELS, Magnitudes, Model, Theta, fit_theta
from .threshold import Threshold

SHORT_ROUNDS = 4  # from every start, before only the best goes on
MOST_ROUNDS = 40
# Gain of log-likelihood per round below which nothing more will change, for up to SMALL coordinates
# of centres; of more, each may still gain as much.
TOLERANCE = 1e-2
SMALL = 1000
MOST_HIDDEN = 0.95  # share of the rows that may have lost everything


class Start(NamedTuple):
    """A fit to begin with: centres (k, p) and the lam that led to them."""

    centers: np.ndarray
    lam: float


class Rows:
    """The rows of a table, measured from the reference in units of the root mean square.

    Nothing is copied: the core reads the table as it is, and what comes out is brought into these
    units, in which bounds and tolerances suit any scale.
    """

    def __init__(self, observed: Observed, threads: int = 1):
        values, features, per_row = stored_entries(observed)
        weights, p = observed.weights, observed.n_features
        self.table, self.threads = observed.table, threads
        self._step: EStep | None = None
        self.reference = observed.reference
        self.has_gaps = np.bincount(features, minlength=p) < len(weights)
        entry_weights = np.repeat(weights, per_row)
        self.magnitudes = Magnitudes.of(values, entry_weights, self.has_gaps[features])
        self.some_complete = not self.has_gaps.all()
        self.scale = self.magnitudes.mean_square or 1.0
        self.root = math.sqrt(self.scale)
        self.weights = weights
        self.n_rows = float(weights.sum())
        self.observed_weight = float((weights * per_row).sum())
        self.gaps_per_row = p - per_row
        self.missing_weight = float((weights * self.gaps_per_row).sum())
        below = float(entry_weights[values < 0].sum())
        self.share_below = below / max(self.observed_weight, 1e-300)
        self.least = _least_magnitude(values, features, p) / self.root

    @property
    def tell_nothing(self) -> bool:
        """No gaps, or no value away from the reference."""
        return min(self.missing_weight, self.observed_weight, self.magnitudes.mean_square) <= 0

    @property
    def missing_share(self) -> float:
        return self.missing_weight / (self.missing_weight + self.observed_weight)

    def soften(self, M: np.ndarray, s: float, log_missing, log_weight) -> SoftSums:
        """One E-step at centres M (k, p), variance s; log-likelihood in the units of the data."""
        if self._step is None or self._step.mixture.mean.shape != M.shape:
            self._step = EStep(self.table, len(M), self.reference, self.threads)
        mixture = self._step.mixture
        np.multiply(M, self.root, out=mixture.mean)
        np.add(mixture.mean, self.reference, out=mixture.mean)
        mixture.variance.fill(s * self.scale)
        mixture.log_missing[:] = log_missing
        mixture.log_weight[:] = log_weight
        return self._in_units(self._step())

    def hard_sums(self, start: Start) -> SoftSums:
        """The sums of the rows by the labels that a fit gives them."""
        k, p = start.centers.shape
        mu = (self.reference + start.centers)[None]
        centers = Centers(mu, np.full((1, p), start.lam), self.reference, self.reference)
        labels = assign(self.table, centers, self.threads)[0]
        stats = Stats.zeros(1, k, p)
        add_rows(self.table, centers, labels, stats, self.threads)
        return self._in_units(
            SoftSums(stats.sizes[0], stats.sums[0], stats.counts[0], np.zeros((k, p)), 0.0)
        )

    def _in_units(self, found: SoftSums) -> SoftSums:
        return found._replace(sums=found.sums / self.root, squares=found.squares / self.scale)


def stored_entries(observed: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed values less the reference, their features, and how many each row has."""
    source = observed.source
    if observed.is_sparse:
        values = source.data.astype(np.float64) - observed.reference[source.indices]
        return values, source.indices, np.diff(source.indptr)
    seen = ~(np.isnan(source) | (source == observed.missing))
    features = np.nonzero(seen)[1]
    values = source[seen].astype(np.float64) - observed.reference[features]
    return values, features, np.count_nonzero(seen, axis=1)


def _least_magnitude(stored: np.ndarray, features: np.ndarray, p: int) -> np.ndarray:
    """(p,) smallest observed |x|; of a feature never observed, the largest of the others."""
    least = np.full(p, np.inf)
    np.minimum.at(least, features, np.abs(stored))
    some = np.isfinite(least)
    return np.where(some, least, least[some].max() if some.any() else 0.0)


class Mixture(NamedTuple):
    """A state of the EM."""

    M: np.ndarray  # (k, p) centres
    lam: np.ndarray  # (k, p) penalty that the mechanism asks for there
    mechanism: Any  # Theta or Threshold; None before the first round
    gaps: np.ndarray  # (k, p) soft weight of the missing entries
    hidden: np.ndarray  # (k,) weight of the rows that lost everything
    soft: SoftSums  # over the rows, weighted by their memberships
    log_likelihood: float


# --- families of mechanisms: (rows, M, gaps, residual, previous or None) -> mechanism

Family = Callable[[Rows, np.ndarray, np.ndarray, float, Any], Any]


def _at_random(rows: Rows, M, gaps, residual, previous) -> Theta:
    missing, at_risk = float(gaps.sum()), float(rows.magnitudes.weight.sum())
    return Theta.at_random(residual / rows.observed_weight, missing / (missing + at_risk))


def _decaying(model: Model) -> Family:
    def update(rows: Rows, M, gaps, residual, previous) -> Theta:
        steps = 5 if previous is None else 1
        return fit_theta(
            rows.magnitudes, M, gaps, residual, start=previous, model=model, max_steps=steps
        )

    return update


def _below_threshold(rows: Rows, M, gaps, residual, previous) -> Threshold:
    if previous is None:
        return Threshold(rows.least, residual / rows.observed_weight)
    return previous.with_spread(M, gaps, residual, rows.observed_weight)


FAMILIES: dict[str, Family] = {
    "mcar": _at_random,
    "mnar0": _decaying(MODELS["pure"]),
    "mnar1": _decaying(MODELS["half"]),
    "mnar2": _below_threshold,
    "ceiling": _decaying(MODELS["ceiling"]),
}


def begin_mixture(rows: Rows, starts: Sequence[Start], family: str, equal_sizes=False) -> Mixture:
    """A few rounds from every start; the best of them."""
    states = [_begin(rows, start, FAMILIES[family], equal_sizes) for start in starts]
    states = [_run(rows, state, FAMILIES[family], equal_sizes, SHORT_ROUNDS) for state in states]
    return max(states, key=lambda state: state.log_likelihood)


def continue_mixture(rows: Rows, state: Mixture, family: str, equal_sizes=False) -> Mixture:
    """A few rounds from where another family has led."""
    update = FAMILIES[family]
    state = _round(rows, state._replace(mechanism=None), update, equal_sizes)
    return _run(rows, state, update, equal_sizes, SHORT_ROUNDS)


def finish_mixture(rows: Rows, state: Mixture, family: str, equal_sizes=False) -> Mixture:
    """Rounds until the likelihood settles. With `equal_sizes` all clusters have the same pi_l."""
    return _run(rows, state, FAMILIES[family], equal_sizes, MOST_ROUNDS)


def _begin(rows: Rows, start: Start, family: Family, equal_sizes: bool) -> Mixture:
    """The sums of the fit's hard labels, and the mechanism they suggest."""
    M = start.centers / rows.root
    lam, nothing = np.full_like(M, start.lam), np.zeros_like(M)
    state = Mixture(M, lam, None, nothing, nothing[:, 0], rows.hard_sums(start), -math.inf)
    return _round(rows, state, family, equal_sizes)


def _run(rows: Rows, state: Mixture, family: Family, equal_sizes: bool, rounds: int) -> Mixture:
    for _ in range(rounds):
        previous = state.log_likelihood
        state = _round(rows, state, family, equal_sizes)
        if state.log_likelihood - previous < TOLERANCE * max(1.0, state.M.size / SMALL):
            break
    return state


def _round(rows: Rows, state: Mixture, family: Family, equal_sizes: bool) -> Mixture:
    """One round of EM: centres, mechanism, memberships."""
    N, S, C = state.soft[:3]
    gaps = np.maximum(N[:, None] - C, 0.0)
    N, all_gaps = N + state.hidden, gaps + state.hidden[:, None]
    denominator = C + state.lam * all_gaps
    M = np.where(denominator > 1e-9, S / np.maximum(denominator, 1e-9), state.M)
    # The mean square is 1 in these units, so the sum of x^2 is the observed weight.
    residual = rows.observed_weight - 2.0 * float((S * M).sum()) + float((C * M * M).sum())
    residual = max(residual, 1e-9 * rows.observed_weight)
    mechanism = family(rows, M, all_gaps, residual, state.mechanism)
    pi = np.full(len(N), 1.0 / len(N)) if equal_sizes else np.maximum(N, 1e-9) / N.sum()
    log_p, lam = mechanism.log_missing(M)
    soft, hidden, value = _expect(rows, M, mechanism, log_p, np.log(pi))
    return Mixture(M, lam, mechanism, gaps, hidden, soft, value)


def _expect(rows: Rows, M: np.ndarray, mechanism, log_p: np.ndarray, log_pi: np.ndarray):
    """Sums of the memberships, hidden rows (k,), and the log-likelihood of the mixture."""
    soft = rows.soften(M, mechanism.s, log_p, log_pi)
    value = soft.log_likelihood + 0.5 * rows.observed_weight * math.log(rows.scale)
    value += mechanism.log_observed(rows.magnitudes)
    if rows.some_complete:
        return soft, np.zeros(len(M)), value
    hidden = np.exp(log_pi + log_p.sum(axis=1))
    hidden *= MOST_HIDDEN / max(hidden.sum(), MOST_HIDDEN)
    value -= rows.n_rows * math.log1p(-hidden.sum())
    hidden *= rows.n_rows / (1.0 - hidden.sum())
    return soft, hidden, value
