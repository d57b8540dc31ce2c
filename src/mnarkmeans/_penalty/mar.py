"""Gaps that follow another feature of the row (MAR), as far as complete features can show it.

For a feature d without gaps, cut the rows into bins of x_d and let every bin lose its own share of
the entries that can be lost, G_b of T_b:

    log-likelihood of the pattern = sum_b  G_b log(G_b / T_b) + (T_b - G_b) log(1 - G_b / T_b)

What the best such feature gains over one share for all, less the price of its shares (BIC) and of
having picked it, is to be added to the likelihood of gaps that know nothing of the value: they
may still know something of the rest of the row.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.special import xlogy

BINS = 8


def gain_of_complete_features(
    values, has_gaps: np.ndarray, gaps_per_row: np.ndarray, weights: np.ndarray
) -> float:
    """Log-likelihood gained after its price, at least 0.

    Parameters
    ----------
    values : array or CSR (n, p)
        The table, anything in its gaps.
    has_gaps : array (p,) of bool
        Features that lost something.
    gaps_per_row, weights : arrays (n,)
        Missing entries of each row, and its weight.
    """
    complete = np.flatnonzero(~has_gaps)
    if len(complete) == 0 or not has_gaps.any():
        return 0.0
    columns = values[:, complete]
    columns = columns.toarray() if sparse.issparse(columns) else columns
    at_risk, lost = weights * has_gaps.sum(), weights * gaps_per_row
    best = max(_log_likelihood(_bins(column, weights), lost, at_risk) for column in columns.T)
    one_share = _log_likelihood(np.zeros(len(weights), np.intp), lost, at_risk)
    price = 0.5 * (BINS - 1) * math.log(max(weights.sum(), 2.0)) + math.log(len(complete))
    return max(best - one_share - price, 0.0)


def _bins(column: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The bin of every row; equal values share one, whatever their order and weights."""
    order = np.argsort(column, kind="stable")
    reached = np.cumsum(weights[order])
    cuts = reached[-1] * (np.arange(1, BINS) / BINS - 1e-12)
    return np.searchsorted(column[order][np.searchsorted(reached, cuts)], column, side="left")


def _log_likelihood(bins: np.ndarray, lost: np.ndarray, at_risk: np.ndarray) -> float:
    gone, all_ = np.bincount(bins, lost), np.bincount(bins, at_risk)
    share = gone / np.maximum(all_, 1e-300)
    return float((xlogy(gone, share) + xlogy(all_ - gone, 1.0 - share)).sum())
