"""Missing shares of the cells (cluster, feature): computed once, drawn elsewhere.

Per cluster l and feature j: N_l rows, C_lj observed entries, so the missing share is 1 - C_lj/N_l.
Missing rate against magnitude pools these cells by the mean of the cluster in the feature: below a
detection limit the curve falls, around a reference it has its peak there, by chance it is flat.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp


class CellCounts(NamedTuple):
    """Sizes (k,) and observed entries (k, p) of every cluster."""

    sizes: np.ndarray
    observed: np.ndarray

    @property
    def missing_share(self) -> np.ndarray:
        """(k, p); an empty cluster has no share and gives NaN."""
        sizes = np.where(self.sizes > 0, self.sizes, np.nan)
        return 1.0 - self.observed / sizes[:, None]


class RateCurve(NamedTuple):
    """Missing share against the mean, in bins of equally many entries."""

    magnitude: np.ndarray
    missing_share: np.ndarray
    entries: np.ndarray

    @classmethod
    def empty(cls) -> RateCurve:
        return cls(np.zeros(0), np.zeros(0), np.zeros(0))


def observed_mask(X: Any) -> Any:
    """True where a value is observed: not NaN in an array, stored in a sparse matrix.

    Examples
    --------
    >>> observed_mask(np.array([[1.0, np.nan]]))
    array([[ True, False]])
    """
    if sp.issparse(X):
        mask = sp.csr_matrix(X, copy=True).astype(np.float64)
        mask.data = (~np.isnan(mask.data)).astype(np.float64)
        return mask
    return ~np.isnan(np.asarray(X, dtype=float))


def cell_counts(X: Any, labels: np.ndarray, n_clusters: int) -> CellCounts:
    """Rows and observed entries of every cluster.

    Examples
    --------
    >>> cell_counts(np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([0, 0]), 1).missing_share
    array([[0. , 0.5]])
    """
    labels = np.asarray(labels)
    n = labels.shape[0]
    member = sp.csr_matrix((np.ones(n), (labels, np.arange(n))), shape=(n_clusters, n))
    counts = member @ observed_mask(X)
    counts = counts.toarray() if sp.issparse(counts) else np.asarray(counts, dtype=float)
    return CellCounts(np.bincount(labels, minlength=n_clusters), counts)


def missing_against_mean(means: np.ndarray, counts: CellCounts, n_bins: int = 12) -> RateCurve:
    """Pool the cells (cluster, feature) by their mean; those without one (NaN) have no part.

    Examples
    --------
    >>> counts = CellCounts(np.array([10]), np.array([[2, 9]]))
    >>> missing_against_mean(np.array([[0.1, 4.0]]), counts, n_bins=2).missing_share.round(1)
    array([0.8, 0.1])
    """
    entries = np.broadcast_to(counts.sizes[:, None], counts.observed.shape).ravel().astype(float)
    missing = entries - counts.observed.ravel()
    used = (entries > 0) & np.isfinite(means.ravel())
    order = np.flatnonzero(used)[np.argsort(means.ravel()[used], kind="stable")]
    mean, entries, missing = means.ravel()[order], entries[order], missing[order]
    position = np.cumsum(entries) - entries / 2
    place = np.minimum((position / entries.sum() * n_bins).astype(int), n_bins - 1)
    total, lost, sums = (
        np.bincount(place, weights) for weights in (entries, missing, entries * mean)
    )
    some = total > 0
    return RateCurve(sums[some] / total[some], lost[some] / total[some], total[some])
