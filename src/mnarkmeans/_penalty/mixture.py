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

from .._core import Starts, pass_
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
NEARLY = {"mnar0": "pure", "mnar1": "half"}  # families of decay with c fixed, and their models
MOST_HIDDEN = 0.95  # share of the rows that may have lost everything


class Start(NamedTuple):
    """A fit to begin with: centres (k, p) and the lam that led to them."""

    centers: np.ndarray
    lam: Any  # a number, or one for every feature


class Rows:
    """The rows of a table, measured from the reference in units of the root mean square.

    Nothing is copied: the core reads the table as it is, and what comes out is brought into these
    units, in which bounds and tolerances suit any scale.
    """

    def __init__(self, observed: Observed, threads: int = 1):
        weights, p = observed.weights, observed.n_features
        self.table, self.threads = observed.table, threads
        self._step: EStep | None = None
        self.reference, self.has_gaps = observed.reference, observed.has_gaps
        self.some_complete = not self.has_gaps.all()
        values, per_row, at_risk, least = self._entries(observed)
        entry_weights = None if (weights == 1.0).all() else np.repeat(weights, per_row)
        self.magnitudes = Magnitudes.of(values, entry_weights, at_risk)
        self.scale = self.magnitudes.mean_square or 1.0
        self.root = math.sqrt(self.scale)
        self.weights = weights
        self.n_rows = float(weights.sum())
        # Sums of products, not matrix products: their threads would only wait for each other.
        self.observed_weight = float((weights * per_row).sum())
        self.gaps_per_row = p - per_row
        self.missing_weight = float((weights * self.gaps_per_row).sum())
        negative = values < 0
        below = (
            np.count_nonzero(negative) if entry_weights is None else entry_weights[negative].sum()
        )
        self.share_below = float(below) / max(self.observed_weight, 1e-300)
        # Of a feature never observed, the largest of the others.
        some = np.isfinite(least)
        most = least[some].max() if some.any() else 0.0
        self.least = np.where(some, least, most) / self.root

    def _entries(self, observed: Observed):
        """Observed values less the reference, how many each row has, which of them could have been
        lost (None: all), and the smallest magnitude of each feature."""
        least = np.full(observed.n_features, np.inf)
        if observed.is_sparse:
            values, features, per_row = stored_entries(observed)
            np.minimum.at(least, features, np.abs(values))
            return values, per_row, self.has_gaps[features] if self.some_complete else None, least
        with np.errstate(invalid="ignore"):  # R's NA is a NaN that complains
            away, seen = observed.source - observed.reference, seen_entries(observed)
        size = np.abs(away)
        if not math.isnan(observed.missing):
            size[~seen] = np.nan
        least = np.fmin.reduce(size, axis=0, initial=np.inf)
        at_risk = np.broadcast_to(self.has_gaps, seen.shape)[seen] if self.some_complete else None
        return away[seen], np.count_nonzero(seen, axis=1), at_risk, least

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

    def hard_sums(self, starts: Sequence[Start]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes (R, k), sums and counts (R, k, p) of the rows by the labels that fits give them."""
        mu = self.reference + np.stack([start.centers for start in starts])
        lam = np.stack([np.broadcast_to(start.lam, mu.shape[2]) for start in starts])
        fits = Starts(
            mu, lam, self.reference, self.reference, n_rows=self.table.n, max_iter=1, tol=0.0,
            weights=(False, self.n_rows),
        )  # fmt: skip
        pass_(self.table, fits, np.arange(len(mu)), fresh=True, known=None, threads=self.threads)
        return fits.stats.sizes, fits.stats.sums / self.root, fits.stats.counts

    def _in_units(self, found: SoftSums) -> SoftSums:
        return found._replace(sums=found.sums / self.root, squares=found.squares / self.scale)


def seen_entries(observed: Observed) -> np.ndarray:
    """(n, p) bool of a dense table."""
    seen = ~np.isnan(observed.source)
    if not math.isnan(observed.missing):
        seen &= observed.source != observed.missing
    return seen


def stored_entries(observed: Observed) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed values less the reference, their features, and how many each row has."""
    source = observed.source
    if observed.is_sparse:
        values = source.data.astype(np.float64) - observed.reference[source.indices]
        return values, source.indices, np.diff(source.indptr)
    seen = seen_entries(observed)
    features = np.nonzero(seen)[1]
    values = source[seen].astype(np.float64) - observed.reference[features]
    return values, features, np.count_nonzero(seen, axis=1)


class Mixture(NamedTuple):
    """A state of the EM."""

    M: np.ndarray  # (k, p) centres
    lam: np.ndarray  # (k, p) penalty that the mechanism asks for there
    mechanism: Any  # Theta or Threshold; None before the first round
    gaps: np.ndarray  # (k, p) soft weight of the missing entries
    hidden: np.ndarray  # (k,) weight of the rows that lost everything
    soft: SoftSums  # over the rows, weighted by their memberships
    log_likelihood: float
    settled: bool = False  # another round would change next to nothing


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


def begin_mixture(
    rows: Rows, starts: Sequence[Start], family: str, equal_sizes=False, at_least=-math.inf
) -> Mixture:
    """A few rounds from every start; the best of them. Those that are not ``at_least`` so likely
    after their first round are left there."""
    update = FAMILIES[family]
    states = [_begin(rows, start, update, equal_sizes) for start in starts]
    states = [_short(rows, state, update, equal_sizes, at_least) for state in states]
    return max(states, key=lambda state: state.log_likelihood)


def continue_mixture(
    rows: Rows, state: Mixture, family: str, equal_sizes=False, at_least=-math.inf
) -> Mixture:
    """The same from where another family has led."""
    update, before = FAMILIES[family], state
    begin = _near(before.mechanism, family)
    state = _round(rows, before._replace(mechanism=begin, settled=False), update, equal_sizes)
    if before.settled and abs(state.log_likelihood - before.log_likelihood) < TOLERANCE:
        return state._replace(settled=True)  # both say the same
    return _short(rows, state, update, equal_sizes, at_least)


def _near(mechanism: Any, family: str) -> Theta | None:
    """Where a family can begin: the mechanism of another that is nearly its own."""
    if not isinstance(mechanism, Theta) or family not in NEARLY:
        return None
    own = mechanism.with_ceiling(MODELS[NEARLY[family]].logit_c)
    return own if abs(own.c - mechanism.c) < 0.02 else None


def finish_mixture(
    rows: Rows, state: Mixture, family: str, equal_sizes=False, at_least=-math.inf
) -> Mixture:
    """Rounds until the likelihood settles. With `equal_sizes` all clusters have the same pi_l."""
    state = _round(rows, state, FAMILIES[family], equal_sizes)
    if state.log_likelihood < at_least:
        return state
    return _run(rows, state, FAMILIES[family], equal_sizes, MOST_ROUNDS - 1)


def _short(rows: Rows, state: Mixture, update: Family, equal_sizes: bool, at_least) -> Mixture:
    if state.log_likelihood < at_least:
        return state
    return _run(rows, state, update, equal_sizes, SHORT_ROUNDS)


def _begin(rows: Rows, start: Start, family: Family, equal_sizes: bool) -> Mixture:
    """The sums of the fit's hard labels, and the mechanism they suggest."""
    M = start.centers / rows.root
    lam, nothing = np.full_like(M, start.lam), np.zeros_like(M)
    sizes, sums, counts = rows.hard_sums([start])
    soft = SoftSums(sizes[0], sums[0], counts[0], nothing, 0.0)
    state = Mixture(M, lam, None, nothing, nothing[:, 0], soft, -math.inf)
    return _round(rows, state, family, equal_sizes)


def _run(rows: Rows, state: Mixture, family: Family, equal_sizes: bool, rounds: int) -> Mixture:
    for _ in range(rounds):
        previous = state.log_likelihood
        state = _round(rows, state, family, equal_sizes)
        if state.log_likelihood - previous < TOLERANCE * max(1.0, state.M.size / SMALL):
            return state._replace(settled=True)
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
