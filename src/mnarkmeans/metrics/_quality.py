"""How good is a partition: against the truth, or by itself in the geometry of the fitted model.

    CER = share of row pairs on which two partitions disagree = 1 - Rand index
    MSE = sum over true centres of the squared distance to the nearest estimated one

scikit-learn's indices refuse missing values; those below take them, and equal scikit-learn's where
nothing is missing. Between a row and a point (lam and reference c being the model's)

    d2(x_i, y) = sum_{j observed} (x_ij - y_j)^2 + lam * sum_{j missing} (y_j - c_j)^2

For labels without a model, missing values stand at the means of their features: lam = 1, and c the
means.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn.metrics as skm
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length

from .._kmeans import MNARKMeans
from .._validation import check_table, observe


def clustering_error_rate(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Share of row pairs on which two partitions disagree (1 - Rand index).

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        Two partitions of the same rows; the names of the clusters do not matter.

    Returns
    -------
    float
        0 for equal partitions; 1 when every pair is judged differently.

    Examples
    --------
    >>> from mnarkmeans.metrics import clustering_error_rate
    >>> clustering_error_rate([0, 0, 1, 1], ["b", "b", "a", "a"])
    0.0
    >>> round(clustering_error_rate([0, 0, 1, 1], [0, 0, 0, 1]), 3)
    0.5
    """
    check_consistent_length(labels_true, labels_pred)
    return 1.0 - float(skm.rand_score(labels_true, labels_pred))


def center_mse(centers_true: ArrayLike, centers_pred: ArrayLike) -> float:
    """Sum over true centres of the squared distance to the nearest estimated centre.

    Parameters
    ----------
    centers_true : array-like of shape (k, n_features)
    centers_pred : array-like of shape (m, n_features)

    Returns
    -------
    float

    Examples
    --------
    >>> from mnarkmeans.metrics import center_mse
    >>> center_mse([[0, 0], [3, 0]], [[3, 1], [0, 0]])
    1.0
    """
    truth = check_array(centers_true, dtype=np.float64)
    found = check_array(centers_pred, dtype=np.float64)
    if truth.shape[1] != found.shape[1]:
        raise ValueError(
            f"centers_true has {truth.shape[1]} features and centers_pred has {found.shape[1]}; "
            "give both in the same features."
        )
    return float(skm.pairwise_distances(truth, found, metric="sqeuclidean").min(axis=1).sum())


def silhouette_score(X: Any, labels_or_model: Any) -> float:
    """Mean silhouette of the rows of `X`, which may have missing values.

    A row's silhouette is ``(b - a) / max(a, b)``: a is its distance to its own cluster, b to the
    nearest other one. Rows alone in their cluster count as 0, rows without any observed value are
    left out.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
        Rows to judge, in the form the model was fitted on.
    labels_or_model : array-like of shape (n_samples,) or fitted model
        Labels: distances are means over the rows of a cluster, as scikit-learn's, with missing
        values at the mean of their feature. A fitted model: distances are those to its centres
        (the simplified silhouette), linear in the number of rows.

    Returns
    -------
    float
        Between -1 and 1; larger is better.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans import MNARKMeans
    >>> from mnarkmeans.metrics import silhouette_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2]])
    >>> model = MNARKMeans(2, lam=0.5, random_state=0).fit(X)
    >>> -1 <= silhouette_score(X, model) <= 1
    True
    >>> round(silhouette_score(X, [0, 0, 1, 1]), 2)
    0.29
    """
    rows, labels = _partition(X, labels_or_model)
    if not hasattr(labels_or_model, "cluster_centers_"):
        return float(skm.silhouette_score(rows.values, labels))
    with_members = rows.model.cluster_centers_[np.unique(rows.clusters)]
    distance = np.sqrt(rows.to_centers(with_members))
    at = np.arange(len(labels)), labels
    own = distance[at]
    distance[at] = np.inf
    return float(silhouettes(own, distance.min(axis=1), labels).mean())


def silhouettes(own: np.ndarray, other: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(b - a) / max(a, b) of each row, from its distances a, b; 0 for one alone in its cluster."""
    largest = np.maximum(own, other)
    with np.errstate(invalid="ignore"):
        values = np.where(largest > 0, (other - own) / largest, 0.0)
    alone = np.bincount(labels)[labels] == 1
    return np.where(alone, 0.0, values)


def calinski_harabasz_score(X: Any, labels_or_model: Any) -> float:
    """Calinski-Harabasz index ``[(T - W) / (k - 1)] / [W / (n - k)]``; larger is better.

    W is the penalised loss of the partition, T that of all rows in one cluster.

    Parameters
    ----------
    X : array-like or CSR/CSC matrix of shape (n_samples, n_features)
    labels_or_model : array-like of shape (n_samples,) or fitted model
        As for `silhouette_score`.

    Examples
    --------
    >>> import numpy as np
    >>> from mnarkmeans.metrics import calinski_harabasz_score
    >>> X = np.array([[1.0, 1.0], [1.2, np.nan], [5.0, 5.0], [np.nan, 5.2], [5.1, 4.9]])
    >>> calinski_harabasz_score(X, [0, 0, 1, 1, 1]) > 0
    True
    """
    rows, labels = _partition(X, labels_or_model)
    n, k = len(labels), labels.max() + 1
    within, total = rows.loss(labels), rows.loss(np.zeros_like(labels))
    if within == 0:
        return 1.0  # scikit-learn's convention
    return float((total - within) * (n - k) / (within * (k - 1)))


# --- rows in the geometry of a model --------------------------------------------------------------


class Rows(NamedTuple):
    """The rows of X with at least one observed value, as a model sees them."""

    X: Any
    model: Any
    used: np.ndarray  # which rows of X
    values: Any  # minus the reference, 0 where missing
    observed: Any  # 1 or 0; both dense, or both CSR with the same structure
    clusters: np.ndarray  # by the model

    def to_centers(self, centers: np.ndarray) -> np.ndarray:
        """(n, k) squared distances, by direct differences."""
        model = copy.copy(self.model)
        model.cluster_centers_ = centers
        return np.square(np.asarray(model.transform(self.X), dtype=np.float64)[self.used])

    def loss(self, labels: np.ndarray) -> float:
        """The least loss of a partition; a centre is at the reference where no value pulls."""
        n = len(labels)
        member = sp.csr_array((np.ones(n), (labels, np.arange(n))))
        products = (member @ self.values, member @ self.observed)
        sums, counts = (p.toarray() if sp.issparse(p) else p for p in products)
        pull = counts + self.model.lam_ * (np.bincount(labels)[:, None] - counts)
        centers = np.divide(sums, pull, out=np.zeros_like(pull), where=pull > 0)
        return float(self.to_centers(centers + self.model.reference_)[np.arange(n), labels].sum())


def usable_rows(X: Any, model: Any) -> Rows:
    """The rows as the model reads them; those without an observed value are left out."""
    values, mask = model._observe(X).zero_filled()
    used = np.flatnonzero(np.asarray(mask.sum(axis=1)).ravel() > 0)
    return Rows(X, model, used, values[used], mask[used], np.asarray(model.predict(X))[used])


def _partition(X: Any, labels_or_model: Any) -> tuple[Rows, np.ndarray]:
    """The rows to judge, and their clusters, numbered without empty ones."""
    if hasattr(labels_or_model, "cluster_centers_"):
        rows = usable_rows(X, labels_or_model)
        found = rows.clusters
    else:
        found = np.asarray(labels_or_model)
        model = MNARKMeans(lam=1.0)
        observed = observe(check_table(model, X, reset=True))
        if found.shape != (observed.n_rows,):
            raise ValueError(
                f"Give a fitted model, or one label per row: {observed.n_rows} rows, and labels of "
                f"shape {found.shape}."
            )
        model.lam_, model.reference_ = 1.0, observed.means
        model.cluster_centers_ = observed.means[None]
        rows = usable_rows(X, model)
        found = found[rows.used]
    clusters, labels = np.unique(found, return_inverse=True)
    if not 2 <= len(clusters) < len(labels):
        raise ValueError(
            f"The rows fall into {len(clusters)} cluster(s) and there are {len(labels)} usable "
            "rows; the index needs at least 2 clusters and more rows than clusters."
        )
    return rows, labels
