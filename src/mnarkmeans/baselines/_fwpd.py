"""k-means with the feature-weighted penalty dissimilarity (FWPD).

    w_j     = rows that observe feature j
    d(x, z) = (1 - alpha) * |x - z over the features both have| / dmax
              + alpha * (sum of w_j over features missing in x or z) / (sum of all w_j)
    dmax    = the largest such distance between two rows
    alpha   = min(0.5, share of missing entries)

A centre is the observed mean of its rows; a feature none of them observes is missing in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._imputed import Baseline


class FWPDKMeans(Baseline):
    """k-means with the FWPD dissimilarity of Datta et al.

    Every start gives the rows random labels and ends when the labels repeat; the start with the
    smallest sum of dissimilarities wins. A cluster that loses all its rows takes the row that fits
    its own cluster worst.

    References
    ----------
    Datta, Bhattacharjee and Das, Clustering with missing features: a penalized dissimilarity
    measure based approach, Machine Learning 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.baselines import FWPDKMeans
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2]])
    >>> labels = FWPDKMeans(2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    def _cluster(self, X: np.ndarray, rng: Any) -> tuple[np.ndarray, np.ndarray]:
        """A centre is NaN where no row of the cluster observes the feature."""
        table = prepare(X)
        starts = (
            _one_start(table, self.n_clusters, self.max_iter, rng) for _ in range(self.n_init)
        )
        best = min(starts, key=lambda result: result.loss)
        self.inertia_, self.n_iter_ = best.loss, best.n_iter
        return best.labels, best.centers


class Table(NamedTuple):
    values: np.ndarray  # 0 in the gaps
    observed: np.ndarray  # 1 or 0
    weights: np.ndarray  # observed count of each feature
    dmax: float
    alpha: float


class Result(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    loss: float
    n_iter: int


def prepare(X: np.ndarray) -> Table:
    """Everything of the dissimilarity that does not depend on the centres."""
    observed = (~np.isnan(X)).astype(float)
    values = np.nan_to_num(X, nan=0.0)
    alpha = min(0.5, 1 - observed.mean())
    largest = 0.0
    step = max(1, 2_000_000 // len(X))
    for start in range(0, len(X), step):
        block = slice(start, start + step)
        largest = max(largest, _common(values[block], observed[block], values, observed).max())
    return Table(values, observed, observed.sum(axis=0), np.sqrt(largest) or 1.0, float(alpha))


def dissimilarity(table: Table, centers: np.ndarray) -> np.ndarray:
    """FWPD of every row to every centre (NaN where a centre misses a feature)."""
    has = (~np.isnan(centers)).astype(float)
    filled = np.nan_to_num(centers, nan=0.0)
    distance = np.sqrt(_common(table.values, table.observed, filled, has))
    total = table.weights.sum()
    penalty = (total - (table.observed * table.weights) @ has.T) / total
    return (1 - table.alpha) * distance / table.dmax + table.alpha * penalty


def _common(
    values: np.ndarray, observed: np.ndarray, others: np.ndarray, have: np.ndarray
) -> np.ndarray:
    """Squared distances over the features both sides have."""
    squared = values**2 @ have.T - 2 * values @ others.T + observed @ (others**2).T
    return np.maximum(squared, 0.0)


def observed_means(table: Table, labels: np.ndarray, k: int) -> np.ndarray:
    member = (labels == np.arange(k)[:, None]).astype(float)
    counts = member @ table.observed
    sums = member @ table.values
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)


def _one_start(table: Table, k: int, max_iter: int, rng: np.random.RandomState) -> Result:
    n = len(table.values)
    labels = rng.randint(k, size=n)
    n_iter, repeated = 0, False
    while n_iter < max_iter and not repeated:
        before = _without_empty(labels, k, table)
        centers = observed_means(table, before, k)
        cost = dissimilarity(table, centers)
        labels = cost.argmin(axis=1)
        repeated = np.array_equal(before, labels)
        n_iter += 1
    return Result(labels, centers, float(cost[np.arange(n), labels].sum()), n_iter)


def _without_empty(labels: np.ndarray, k: int, table: Table) -> np.ndarray:
    """An empty cluster takes the row that fits its own cluster worst."""
    empty = np.flatnonzero(np.bincount(labels, minlength=k) == 0)
    if empty.size == 0:
        return labels
    labels = labels.copy()
    cost = dissimilarity(table, observed_means(table, labels, k))[np.arange(len(labels)), labels]
    shared = np.bincount(labels, minlength=k)[labels] > 1
    worst = np.argsort(np.where(shared, -cost, np.inf), kind="stable")
    for label, row in zip(empty, worst, strict=False):
        labels[row] = label
    return labels
