"""Do the gaps of a feature know the other features? Not if they are due to chance.

With clusters, low values of one feature go with low or high ones of another, so below a limit they
do, whatever the fit and the noise: a test of chance that needs no partition. For a feature j with
gaps and another one l, over the rows in which l was observed,

    T_jl = (sum_i w_i R_ij z_il)^2 / (q (1 - q) sum_i w_i),   q the share of R_ij among these rows

where R_ij = 1 for a gap and z_il are the ranks of x_l, of mean 0 and variance 1. That rows without
any value are not in the table does not matter: l was observed in all of them. And gaps meet gaps:

    U = sum_i w_i  sum_{j < l} (r_jl - mean r)^2,     r_jl the correlation of R_j and R_l

without what all pairs have in common, for some rows may lose more than others, and those that lost
everything are not there. By chance the T are about chi-square with one degree of freedom each, U
with one for each pair but one, and what is returned is their sum, less its mean, in standard
deviations; and the same of the T of each feature alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from .._observed import Observed
from .rows import stored_entries

MOST_FEATURES = 25  # so many with gaps and so many without say enough


class Known(NamedTuple):
    """How far above what chance leads to, in standard deviations; 0 if there is nothing to tell."""

    together: float
    each: np.ndarray  # (features with gaps,)


def gaps_know_others(observed: Observed) -> Known:
    with_gaps = np.flatnonzero(observed.has_gaps)
    of_gaps, complete = _some(with_gaps), _some(np.flatnonzero(~observed.has_gaps))
    entries = stored_entries(observed)
    values, seen = _dense(entries, np.concatenate([of_gaps, complete]), observed.n_features)
    weights = observed.weights[:, None]
    ranks = _ranks(values, weights * seen)
    T, told = _of_values(entries, weights * ranks, weights * seen, with_gaps)
    U, free = _of_gaps(~seen[:, : len(of_gaps)], observed.weights)
    some = np.isin(with_gaps, of_gaps)
    return Known(float(_standard(T[some].sum() + U, told[some].sum() + free)), _standard(T, told))


def _standard(total, free):
    """A sum of chi-squares, less its mean, in standard deviations."""
    return (total - free) / np.sqrt(2.0 * np.maximum(free, 0.5))


def _of_values(entries, ranks: np.ndarray, seen: np.ndarray, with_gaps: np.ndarray):
    """Sum over l of T_jl, and how many there are, for each of the features with gaps.

    ``ranks``, ``seen``: of the features l, times the weights of the rows.
    """
    _, features, per_row = entries
    indptr = np.concatenate([[0], np.cumsum(per_row)])
    ones = sparse.csr_array((np.ones(len(features)), features, indptr))
    ones.resize(len(per_row), max(ones.shape[1], with_gaps.max(initial=-1) + 1))
    total = np.maximum(seen.sum(axis=0), 1e-300)
    share = 1.0 - (ones.T @ seen)[with_gaps] / total
    spread = share * (1.0 - share) * total
    told = spread > 1e-9 * total  # not the feature itself, where no gap is left
    T = np.square(ranks.sum(axis=0) - (ones.T @ ranks)[with_gaps])
    return np.where(told, T / np.where(told, spread, 1.0), 0.0).sum(axis=1), told.sum(axis=1)


def _some(features: np.ndarray) -> np.ndarray:
    """At most MOST_FEATURES of them, at even distances."""
    number = min(len(features), MOST_FEATURES)
    return features[((np.arange(number) + 0.5) * (len(features) / max(number, 1))).astype(np.intp)]


def _of_gaps(gaps: np.ndarray, weights: np.ndarray) -> tuple[float, int]:
    """U and its degrees of freedom."""
    total = weights.sum()
    away = gaps - (weights[:, None] * gaps).sum(axis=0) / total
    common = (weights[:, None] * away).T @ away / total
    spread = np.sqrt(np.diag(common))
    some = spread > 0
    pairs = np.triu_indices(int(some.sum()), 1)
    r = (common[some][:, some] / np.outer(spread[some], spread[some]))[pairs]
    if len(r) < 2:
        return 0.0, 0
    return float(total * np.square(r - r.mean()).sum()), len(r) - 1


def _dense(entries, chosen: np.ndarray, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of some features (0 for gaps), and which of them were observed."""
    values, features, per_row = entries
    place = np.full(n_features, -1)
    place[chosen] = np.arange(len(chosen))
    columns, rows = place[features], np.repeat(np.arange(len(per_row)), per_row)
    some = columns >= 0
    table, seen = np.zeros((len(per_row), len(chosen))), np.zeros((len(per_row), len(chosen)), bool)
    table[rows[some], columns[some]] = values[some]
    seen[rows[some], columns[some]] = True
    return table, seen


def _ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Ranks of weighted values within each column, of mean 0 and variance 1; 0 where the weight
    is 0. Equal values share the middle of their ranks."""
    order = np.argsort(np.where(weights > 0, values, np.inf), axis=0, kind="stable")
    x, w = (np.take_along_axis(part, order, axis=0) for part in (values, weights))
    after = np.cumsum(w, axis=0)
    new = np.ones(x.shape, bool)
    new[1:] = x[1:] != x[:-1]
    begins = np.maximum.accumulate(np.where(new, after - w, 0.0), axis=0)
    last = np.ones(x.shape, bool)
    last[:-1] = new[1:]
    ends = np.minimum.accumulate(np.where(last, after, np.inf)[::-1], axis=0)[::-1]
    rank = 0.5 * (begins + ends - after[-1])
    spread = np.sqrt((w * rank * rank).sum(axis=0) / np.maximum(after[-1], 1e-300))
    rank = np.where((w > 0) & (spread > 0), rank / np.where(spread > 0, spread, 1.0), 0.0)
    ranks = np.empty_like(rank)
    np.put_along_axis(ranks, order, rank, axis=0)
    return ranks
