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
from scipy import sparse

from .decay import MODELS, Magnitudes, Model, Theta, fit_theta
from .threshold import Threshold

SHORT_ROUNDS = 4  # from every start, before only the best goes on
MOST_ROUNDS = 40
TOLERANCE = 1e-2  # gain of log-likelihood per round below which nothing more will change
MOST_HIDDEN = 0.95  # share of the rows that may have lost everything


class Start(NamedTuple):
    """A fit to begin with: centres (k, p) and the lam that led to them."""

    centers: np.ndarray
    lam: float


class Rows:
    """Rows measured from the reference, in units of the root mean square, gaps as 0.

    Parameters
    ----------
    values, observed : arrays (n, p), both dense or both CSR
        The values (0 where missing), and 1 where observed.
    weights : array (n,)
        Row weights.
    """

    def __init__(self, values, observed, weights: np.ndarray):
        if sparse.issparse(observed):
            per_row = np.diff(observed.indptr)
            stored, features = values.data, values.indices
        else:
            per_row = np.count_nonzero(observed, axis=1)
            at = np.nonzero(observed)
            stored, features = values[at], at[1]
        p = observed.shape[1]
        self.has_gaps = np.bincount(features, minlength=p) < len(weights)
        self.magnitudes = Magnitudes.of(
            stored, np.repeat(weights, per_row), self.has_gaps[features]
        )
        self.scale = self.magnitudes.mean_square or 1.0
        self.values = values * (1.0 / math.sqrt(self.scale))
        self.observed = observed
        self.weights = weights
        self.n_rows = float(weights.sum())
        self.observed_weight = float(weights @ per_row)
        self.gaps_per_row = p - per_row
        self.missing_weight = float(weights @ self.gaps_per_row)
        self.least = _least_magnitude(stored, features, p) / math.sqrt(self.scale)

    @property
    def missing_share(self) -> float:
        return self.missing_weight / (self.missing_weight + self.observed_weight)


def _least_magnitude(stored: np.ndarray, features: np.ndarray, p: int) -> np.ndarray:
    """(p,) smallest observed |x|; of a feature never observed, the largest of the others."""
    least = np.full(p, np.inf)
    np.minimum.at(least, features, np.abs(stored))
    some = np.isfinite(least)
    return np.where(some, least, least[some].max() if some.any() else 0.0)


class Mixture(NamedTuple):
    """A state of the EM."""

    M: np.ndarray  # (k, p) centres
    mechanism: Any  # Theta or Threshold; None before the first round
    gaps: np.ndarray  # (k, p) soft weight of the missing entries
    hidden: np.ndarray  # (k,) weight of the rows that lost everything
    memberships: np.ndarray  # (n, k), weighted
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
    update, lam = FAMILIES[family], state.mechanism.log_missing(state.M)[1]
    state = _round(rows, state._replace(mechanism=None), lam, update, equal_sizes)
    return _run(rows, state, update, equal_sizes, SHORT_ROUNDS)


def finish_mixture(rows: Rows, state: Mixture, family: str, equal_sizes=False) -> Mixture:
    """Rounds until the likelihood settles. With `equal_sizes` all clusters have the same pi_l."""
    return _run(rows, state, FAMILIES[family], equal_sizes, MOST_ROUNDS)


def _begin(rows: Rows, start: Start, family: Family, equal_sizes: bool) -> Mixture:
    """Hard labels of the fit, and the mechanism they suggest."""
    M = start.centers / math.sqrt(rows.scale)
    score = rows.values @ (-2.0 * M.T) + (1.0 - start.lam) * (rows.observed @ np.square(M).T)
    score += start.lam * np.square(M).sum(axis=1)
    memberships = np.zeros(score.shape)
    memberships[np.arange(len(score)), score.argmin(axis=1)] = rows.weights
    state = Mixture(M, None, np.zeros_like(M), np.zeros(len(M)), memberships, -math.inf)
    return _round(rows, state, np.full_like(M, start.lam), family, equal_sizes)


def _run(rows: Rows, state: Mixture, family: Family, equal_sizes: bool, rounds: int) -> Mixture:
    for _ in range(rounds):
        previous = state.log_likelihood
        lam = state.mechanism.log_missing(state.M)[1]
        state = _round(rows, state, lam, family, equal_sizes)
        if state.log_likelihood - previous < TOLERANCE:
            break
    return state


def _round(
    rows: Rows, state: Mixture, lam: np.ndarray, family: Family, equal_sizes: bool
) -> Mixture:
    """One round of EM: centres, mechanism, memberships."""
    N = state.memberships.sum(axis=0)
    S = (rows.values.T @ state.memberships).T
    C = (rows.observed.T @ state.memberships).T
    gaps = np.maximum(N[:, None] - C, 0.0)
    N, all_gaps = N + state.hidden, gaps + state.hidden[:, None]
    denominator = C + lam * all_gaps
    M = np.where(denominator > 1e-9, S / np.maximum(denominator, 1e-9), state.M)
    # The mean square is 1 in these units, so the sum of x^2 is the observed weight.
    residual = rows.observed_weight - 2.0 * float((S * M).sum()) + float((C * M * M).sum())
    residual = max(residual, 1e-9 * rows.observed_weight)
    mechanism = family(rows, M, all_gaps, residual, state.mechanism)
    pi = np.full(len(N), 1.0 / len(N)) if equal_sizes else np.maximum(N, 1e-9) / N.sum()
    memberships, hidden, value = _memberships(rows, M, mechanism, np.log(pi))
    return Mixture(M, mechanism, gaps, hidden, memberships, value)


def _memberships(rows: Rows, M: np.ndarray, mechanism, log_pi: np.ndarray):
    """Weighted memberships (n, k), hidden rows (k,), and the log-likelihood of the mixture."""
    s = mechanism.s
    log_p = mechanism.log_missing(M)[0]
    # sum_j O (-(x - mu)^2 / 2s) + (1 - O) log P, without the x^2 term that all clusters share
    logits = rows.values @ (M / s).T - rows.observed @ (np.square(M) / (2.0 * s) + log_p).T
    logits += log_p.sum(axis=1) + log_pi
    top = logits.max(axis=1, keepdims=True)
    shares = np.exp(logits - top)
    total = shares.sum(axis=1, keepdims=True)
    value = float(rows.weights @ (top + np.log(total))[:, 0])
    value -= 0.5 * rows.observed_weight * (math.log(2.0 * math.pi * s) + 1.0 / s)
    value += mechanism.log_observed(rows.magnitudes)
    hidden = np.exp(log_pi + log_p.sum(axis=1)) * rows.has_gaps.all()
    hidden *= MOST_HIDDEN / max(hidden.sum(), MOST_HIDDEN)
    value -= rows.n_rows * math.log1p(-hidden.sum())
    hidden *= rows.n_rows / (1.0 - hidden.sum())
    return shares * (rows.weights[:, None] / total), hidden, value
