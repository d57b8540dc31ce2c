"""Missing shares of the cells (cluster, feature): computed once, drawn elsewhere.

Per cluster l and feature j: N_l rows, C_lj observed entries, so the missing share is 1 - C_lj/N_l.
Missing rate against magnitude pools these cells by |mu_lj - c_j|, the distance of the centre from
the reference: under magnitude-decaying missingness the curve falls.
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
    """Missing share against distance from the reference, in bins of equally many entries."""

    magnitude: np.ndarray
    missing_share: np.ndarray
    entries: np.ndarray


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


def missing_against_magnitude(
    centers: np.ndarray, reference: Any, counts: CellCounts, n_bins: int = 12
) -> RateCurve:
    """Pool the cells (cluster, feature) by the centre's distance from the reference.

    Examples
    --------
    >>> counts = CellCounts(np.array([10]), np.array([[2, 9]]))
    >>> curve = missing_against_magnitude(np.array([[0.1, 4.0]]), 0.0, counts, n_bins=2)
    >>> curve.missing_share.round(1)
    array([0.8, 0.1])
    """
    distance = np.abs(centers - reference).ravel()
    entries = np.broadcast_to(counts.sizes[:, None], counts.observed.shape).ravel().astype(float)
    missing = entries - counts.observed.ravel()
    used = entries > 0
    distance, entries, missing = distance[used], entries[used], missing[used]
    order = np.argsort(distance, kind="stable")
    distance, entries, missing = distance[order], entries[order], missing[order]
    position = np.cumsum(entries) - entries / 2
    which = np.minimum((position / entries.sum() * n_bins).astype(int), n_bins - 1)
    bins = np.unique(which)
    total = np.array([entries[which == b].sum() for b in bins])
    center = np.array([np.average(distance[which == b], weights=entries[which == b]) for b in bins])
    share = np.array([missing[which == b].sum() for b in bins]) / total
    return RateCurve(center, share, total)
