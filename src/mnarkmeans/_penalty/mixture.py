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

from .._core.likelihood import SoftSums
from .decay import MODELS, Model, Theta, fit_theta
from .rows import Rows, Start
from .threshold import Threshold

SHORT_ROUNDS = 4  # from every start, before only the best goes on
MOST_ROUNDS = 40
# Gain of log-likelihood per round below which nothing more will change, for up to SMALL coordinates
# of centres; of more, each may still gain as much.
TOLERANCE = 1e-2
SMALL = 1000
NEARLY = {"mnar0": "pure", "mnar1": "half"}  # families of decay with c fixed, and their models
MOST_HIDDEN = 0.95  # share of the rows that may have lost everything


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
